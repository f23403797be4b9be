#!/usr/bin/env python3
"""A database that an earlier weekwheel has made and used is brought up to date, and each job in it is delivered once.

The earlier version is the last one without headers and expiry in SQL. It is built from the repository's history: where that
is not there, the test is skipped. WW_FROM names another commit, WW_FORMER a folder that has a build of it.
"""
# tier: long, waits
import base64
import os
import signal
import subprocess
import unittest

from harness import PATIENCE, ROOT, WEEKWHEEL, WEEKWHEELD, Case, Server, check, compiled, environment, equal, main, matches, need_server, run, until
from postgres import Postgres

FROM = os.environ.get("WW_FROM") or "f7df07f8da7e86b0cf1bca797ac37b818f2b20f0"
PLAIN = {"MAKEFLAGS": None, "MAKELEVEL": None, "B": None, "CONFIGURE_FLAGS": None, "LD_PRELOAD": None}
FAR = "'2099-01-01 09:00Z'"


def former_build(folder):
    """Where the programs of the earlier version are."""
    built = os.environ.get("WW_FORMER")
    if built:
        return os.path.join(built, "build", "bin")
    if subprocess.run(["git", "-C", ROOT, "cat-file", "-e", FROM + "^{commit}"], capture_output=True, check=False).returncode:
        raise unittest.SkipTest("the repository's history is not here")
    # It is written to a file, as a pipe would hide that git fails.
    subprocess.run(["git", "-C", ROOT, "archive", "-o", os.path.join(folder, "former.tar"), FROM], check=True)
    subprocess.run(["tar", "-xf", "former.tar"], check=True, cwd=folder)
    made = subprocess.run(["make", "-j2", "CONFIGURE_FLAGS=--disable-redis --disable-sessiond", "build/bin/weekwheel", "build/bin/weekwheeld"],
                          cwd=folder, env=environment(**PLAIN), capture_output=True, text=True, timeout=30 * PATIENCE, check=False)
    equal(made.returncode, 0, made.stdout[-2000:] + made.stderr[-2000:])
    return os.path.join(folder, "build", "bin")


class Upgrade(Case):
    def put(self, sql):
        return int(self.postgres.psql("SELECT weekwheel." + sql)[0][0])

    def jobs(self, server):
        """By id, all but what changes by itself."""
        with server.client() as client:
            client.numbers("stats")  # it owns the store
            return {job["id"]: {name: value for name, value in job.items() if name not in ("left", "token", "created", "reserves", "tries")} for job in client.all_jobs()}

    def use_the_former(self, former, url):
        """Jobs that a server has, near and far, in the tables of turns and of hours."""
        library = compiled("support/postgres/short_ring.c", "-shared", "-fPIC", "-ldl")
        with Server("--store", url, program=os.path.join(former, "weekwheeld"), LD_PRELOAD=library, RING_MS="300") as server:
            with server.client() as client:
                client.numbers("stats")
                self.put(f"put('default', 'far', at => {FAR}, key => 'k', priority => 7, attempts => 5, \"group\" => 'g')")
                self.put("put('default', 'in days', delay => '3 days', backoff => '1 minute', keep => '1 day')")
                self.put("put_many('default', '{many 1,many 2}'::text[], delay => '5 hours')")
                client.put(b"by the protocol, far", delay=90000)
                until(lambda: self.postgres.psql("SELECT count(*) FROM weekwheel.job") >= [("5",)] or client.put(b"x", tube="stir") is None,
                      "far jobs lie in the tables of their hours", 0.1)
                self.put("put('default', 'near', delay => '20 minutes')")
                self.put("put('default', 'now')")
                self.put("put('default', 'leaves', key => 'leaves', delay => '1 day')")
                self.put("put('buried', 'buried')")
                client.ask("watch buried")
                client.ask("ignore default")
                job = client.ask("reserve").split()[1]
                equal(client.ask(f"bury {job} 0"), "BURIED")
                client.ask("use default")
                client.put(b"by the protocol, near", delay=1200)
                client.ask("watch default")
                # A worker has one, and finishes it when there is no server.
                lease = next(answer for answer in iter(lambda: client.ask("reserve-with-timeout 10"), "TIMED_OUT"))
                job = int(lease.split()[1])
                self.finish = f"SELECT weekwheel.finish({job}, {client.jobs(f'list-delayed id={job}')[0]['token']})"
                equal(lease.split("|")[1], "now")
                # New tables are not made under it.
                matches("end it first, to bring the tables up to date", run(1, WEEKWHEEL, "postgres", "setup", url).err)
                jobs = self.jobs(server)
                # A server that ends by itself would end the delivery.
                server.stop(signal.SIGKILL)
        return jobs

    def test_each_job_is_delivered_once(self):
        need_server()
        former = former_build(self.folder)
        self.postgres = self.enter(Postgres())
        url = self.postgres.url()
        run(0, os.path.join(former, "weekwheel"), "postgres", "setup", url)
        self.postgres.psql("CREATE ROLE app LOGIN; SELECT weekwheel.allow('app', 'default')")
        self.postgres.psql("CREATE VIEW mine AS SELECT id, body FROM weekwheel.jobs")
        before = self.use_the_former(former, url)
        # What nobody has taken yet, and asks for what the server has.
        rows = {self.put(f"put('default', 'untaken, far', at => {FAR}, key => 'u', attempts => 3)"): "untaken, far",
                self.put("put('default', 'untaken, now')"): "untaken, now",
                self.put("put('default', 'untaken, near', delay => '30 minutes', \"group\" => 'g')"): "untaken, near"}
        self.postgres.psql("SELECT weekwheel.cancel('default', 'leaves')")
        self.postgres.psql(self.finish)
        matches('setup" brings them up to date(.|\n)*setup" brings them', run(1, WEEKWHEELD, "--store", url, "--listen", "127.0.0.1:0").err)
        run(0, WEEKWHEEL, "postgres", "setup", url)
        run(0, WEEKWHEEL, "postgres", "check", url)
        check(len(self.postgres.psql("SELECT * FROM mine")) >= 10, "views of others stay")
        equal(self.postgres.psql("""SELECT weekwheel.put('default', 'new', headers => '{"a": "b"}', delay => '1 day') > 0""", user="app"), [("t",)])
        self.deliver(url, before, rows)

    def deliver(self, url, before, rows):
        gone = {"leaves", "now"}
        with Server("--store", url) as server:
            until(lambda: self.postgres.psql("SELECT count(*) FROM weekwheel.jobs WHERE state = 'new'") == [("0",)], "all are taken", 0.1)
            after = self.jobs(server)
            bodies = {job: base64.b64decode(of["body"]).decode() for job, of in after.items()}
            for job, was in before.items():
                body = base64.b64decode(was["body"]).decode()
                if body not in gone:
                    equal({name: after[job].get(name) for name in was}, was)
            former = [base64.b64decode(was["body"]).decode() for was in before.values()]
            equal(sorted(bodies.values()), sorted([body for body in former if body not in gone] + list(rows.values()) + ["new"]))
            with server.client() as client:
                for tube in ("default", "buried", "stir"):
                    client.ask("use " + tube)
                    client.ask("watch " + tube)
                    while client.ask("kick 1000") != "KICKED 0":
                        pass
                got = []
                while (answer := client.ask("reserve-with-timeout 2")) != "TIMED_OUT":
                    equal(client.ask("delete " + answer.split()[1]), "DELETED")
                    got.append((int(answer.split()[1]), answer.split("|", 1)[1]))
                equal(sorted(got), sorted(bodies.items()))
            equal(server.stop(), 0)
        with Server("--store", url) as server:
            equal(self.jobs(server), {})
        print(f"{len(got)} jobs, each delivered once", flush=True)


if __name__ == "__main__":
    main()
