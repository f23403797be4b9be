#!/usr/bin/env python3
"""From 0.1.0 to this version with all data, and back as docs/versions.md says.

0.1.0 is built from the clone's history, in B/0.1.0. OLD is a folder with its programs, to take instead.
"""
# tier: long, no-sanitizers, waits
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from unittest import mock

import harness
import sessiond
from harness import BUILD, PATIENCE, ROOT, WEEKWHEEL, Case, Redis, Server, check, compiled, equal, main, run

RELEASE = "53f60450b40af2343edcf2d5408b8eed1147e8e6"
DAY, YEAR = 86400, 365 * 86400
OLD = os.environ.get("OLD")
# How long it is until then or since, and what a limit counts: after a kill it begins anew.
PASSING = {"left", "debounced", "held", "leases"}
BYTES = bytes(range(256))


def setUpModule():
    global OLD
    OLD = os.path.abspath(OLD) if OLD else built()


def built():
    """The folder with the programs of the release, built if they are not yet there."""
    if os.environ.get("SANITIZE"):
        raise unittest.SkipTest("the release is not instrumented")
    has_it = subprocess.run(["git", "-C", ROOT, "cat-file", "-e", RELEASE], capture_output=True, check=False)
    if has_it.returncode:
        raise unittest.SkipTest("this is no clone with the history since 0.1.0")
    source, programs = os.path.join(BUILD, "0.1.0"), ("weekwheel", "weekwheeld", "weekwheel-sessiond")
    if not os.path.isdir(source):
        os.makedirs(source + ".new")
        archive = subprocess.run(["git", "-C", ROOT, "archive", RELEASE], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "-C", source + ".new"], input=archive, check=True)
        os.rename(source + ".new", source)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "CONFIGURE"))}
    subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "B=build", *(f"build/bin/{name}" for name in programs)],
                   cwd=source, env={**plain, "B": "build"}, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(source, "build", "bin")


def old(name):
    return os.path.join(OLD, name)


# ---- Jobs -------------------------------------------------------------------------------------------------------

def reserve(client, tube):
    """The id of a job of that tube alone."""
    client.ask("watch " + tube)
    client.ask("ignore default")
    answer = client.ask("reserve-with-timeout 0")
    client.ask("watch default")
    client.ask("ignore " + tube)
    assert answer.startswith("RESERVED "), answer
    return answer.split()[1]


def fill(server):
    """Put jobs of each kind and state by the old command line. Return the connection that has one of them."""
    def old_one(*arguments, stdin=b""):
        run(0, old("weekwheel"), *arguments, stdin=stdin, WEEKWHEEL_SERVER=server.address, TZ="UTC")
    for arguments in (("a", "ready"), ("a", "--in", "8h", "soon"), ("a", "--in", "180d", "far"),
                      ("a", "--in", "1h", "-k", "key one", "keyed"), ("a", "--at", "2099-01-01 10:00", "by the wall clock"),
                      ("a", "--in", "1h", "-k", "deb", "--debounce", "2h", "first"),
                      ("a", "--in", "1h", "-k", "deb", "--debounce", "2h", "second"),
                      ("u", "-k", "uni", "--unique", "1d", "held"),
                      ("p", "-k", "per", "--every", "6h", "--in", "6h", "--missed", "all", "each"),
                      ("p", "-k", "per2", "--every", "7h", "--in", "7h", "--missed", "skip", "--skip", "1m", "some"),
                      ("g", "-g", "one", "x1"), ("g", "-g", "two", "x2"), ("g", "-g", "one", "x3"),
                      ("h", "-k", "kept", "--keep", "1d", "--attempts", "3", "--backoff", "1h", "tried"),
                      ("h", "-k", "kept2", "--keep", "1d", "--attempts", "1", "buried at once"),
                      ("h", "-k", "kept3", "--keep", "1d", "done"),
                      ("v", "--url", "https://example.org/x", "-m", "PUT", "-H", "A: b", "--in", "3h", "request")):
        old_one("put", "-t", *arguments)
    old_one("put", "-t", "b", "-p", "7", "-r", "99s", "-", stdin=BYTES)
    old_one("limit", "a", "--running", "5", "--rate", "100/1m", "--burst", "20")
    old_one("limit", "g", "--each-group", "--running", "1")
    old_one("limit", "g", "--group", "one", "--rate", "1/10s")
    old_one("schedule", "add", "backup", "0 3 * * *", "./backup", "--tz", "Europe/Berlin")
    old_one("schedule", "add", "m", "*/5 9-17 * * mon-fri", "report", "--overlap", "skip", "--spread", "1m", "-g", "gg",
            "--keep", "1d", "--attempts", "3", "--paused", "--end", "2040-01-01")
    client = server.client()
    equal(client.ask("delete " + reserve(client, "u")), "DELETED")
    by_key = {}
    for _ in range(3):
        id = reserve(client, "h")
        by_key[[job for job in client.all_jobs() if job["id"] == int(id)][0]["key"]] = id
    equal(client.ask(f"release {by_key['kept']} 0 9000"), "RELEASED")
    equal(client.ask(f"bury {by_key['kept2']} 0"), "BURIED")
    equal(client.ask("delete " + by_key["kept3"]), "DELETED")
    client.put(b"taken", tube="res", ttr=1000)
    reserve(client, "res")
    return client


def look(server):
    """All jobs, limits, schedules and runs, each by what names it."""
    with server.client() as client:
        return [{entry["id"]: entry for entry in client.all_jobs()},
                {(entry["tube"], entry["group"]): entry for entry in client.jobs("list-limits")},
                {entry["name"]: entry for entry in client.jobs("list-schedules body=yes")},
                {entry["run"]: entry for entry in client.jobs("history")}]


def same(before, after, what):
    """All is there as it was, but for what passes by itself, and what the job of an open connection is."""
    for entries, entries_after in zip(before, after):
        equal(entries_after.keys(), entries.keys(), what)
        for key, entry in entries.items():
            names = {"body"} if entry["tube"] == "res" else entry.keys() & entries_after[key].keys() - PASSING
            equal({name: entries_after[key][name] for name in names}, {name: entry[name] for name in names}, what)


def finish_all(server):
    """The bodies of what is ready, each taken once. One of the group "one" comes in 10 seconds at most."""
    bodies = []
    with server.client() as client:
        for tube in ("a", "g", "res", "b"):
            client.ask("watch " + tube)
        while len(bodies) < 6:
            client.send("reserve-with-timeout 60\r\n")
            word, id, size = client.line().split()
            equal(word, "RESERVED")
            bodies.append(client.block(int(size)))
            equal(client.ask("delete " + id), "DELETED")
    equal(sorted(bodies), sorted((b"ready", b"x1", b"x2", b"x3", b"taken", BYTES)))


class Jobs(Case):
    def both_ways(self, arguments, end):
        """Up, back and up again; the last server delivers what is ready."""
        with Server(*arguments, program=old("weekwheeld")) as server:
            client = fill(server)
            before = look(server)
            server.stop(end)
            client.close()
        for program, what in ((harness.WEEKWHEELD, "up"), (old("weekwheeld"), "back"), (harness.WEEKWHEELD, "up again")):
            with Server(*arguments, program=program) as server:
                same(before, look(server), what)
                with server.client() as client:
                    client.ask("use u")
                    equal(client.ask("put-key 1024 0 60 4 uni unique=100\r\nheld").split()[0], "ENDED", what)
                if what == "up again":
                    finish_all(server)
                server.stop(end)

    def test_a_directory(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            shutil.rmtree("jobs", ignore_errors=True)
            self.both_ways(("--data", "jobs"), end)
            run(0, WEEKWHEEL, "fsck", "jobs")

    def test_redis(self):
        with Redis() as redis:
            self.both_ways(("--store", redis.url), signal.SIGTERM)

    def test_lines_of_export(self):
        """Of the old program, imported by the new one."""
        with Server("--data", "jobs", program=old("weekwheeld")) as server:
            fill(server).close()
            before = look(server)
        run(0, old("weekwheel"), "export", "jobs", "--output", "jobs.json")
        run(0, WEEKWHEEL, "import", "again", "jobs.json")
        with Server("--data", "again") as server:
            after = look(server)
        jobs = after[0]
        by_body = {job["tube"] + job["body"]: job for job in jobs.values()}
        equal(len(jobs), len(before[0]))
        for job in before[0].values():
            new = by_body[job["tube"] + job["body"]]
            for name in ("key", "priority", "due", "run", "every", "attempts", "backoff"):
                equal(new[name], job[name], job)
            equal(new["state"] == "buried", job["state"] == "buried")
        same([{}, before[1], before[2], {}], [{}, after[1], after[2], {}], "imported")

    def test_what_only_this_version_knows_goes_first(self):
        """By the command of docs/versions.md. What 0.1.0 does otherwise is no loss."""
        with open(os.path.join(ROOT, "docs/versions.md"), encoding="utf-8") as file:
            command = re.search(r"(?m)^(weekwheel list .*select\(\.expire or .*)$", file.read())[1]
        with Server("--data", "jobs") as server:
            for arguments in (("plain",), ("--expire", "10m", "ready"), ("--code", "3", "coded"),
                              ("--in", "1h", "--expire", "10m", "soon"), ("--in", "200d", "--expire", "1d", "far"), ("--in", "200d", "also plain"),
                              ("--in", "1h", "--then", "{}", "first")):
                server.program.run(0, "put", *arguments)
            server.program.run(0, "schedule", "add", "often", "0 3 * * *", "x", "--expire", "5m")
        with Server("--data", "jobs", program=old("weekwheeld")) as server, server.client() as client:
            equal(client.ask("list-delayed"), "INTERNAL_ERROR")
            equal(client.ask("reserve-with-timeout 60"), "RESERVED 1 5|plain")
        check("Another version wrote the file" in server.said, server.said)
        with Server("--data", "jobs") as server, server.client() as client:
            equal(len(client.all_jobs()), 7)
            path = os.path.dirname(WEEKWHEEL) + os.pathsep + os.environ["PATH"]
            run(0, "sh", "-c", command, WEEKWHEEL_SERVER=server.address, PATH=path)
        with Server("--data", "jobs", program=old("weekwheeld")) as server, server.client() as client:
            equal({job["id"] for job in client.all_jobs()}, {1, 6})
            equal([entry["name"] for entry in client.jobs("list-schedules")], ["often"])
        run(0, old("weekwheel"), "fsck", "jobs")


# ---- Sessions ---------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def served(program, *arguments, end=signal.SIGTERM, **env):
    with mock.patch.object(sessiond, "SESSIOND", program), sessiond.Sessiond(*arguments, **env) as server, \
            server.client() as client:
        yield server, client
        server.stop(end)


NEW = sessiond.SESSIOND


def log_in(client):
    for number in range(50):
        client.ask("SET", f"s:{number}", "v" * number, "EX", 3000 + number)
    client.ask("SET", "life", "x", "EX", 4000, "LIFETIME", 5000)
    client.ask("SET", "for ever", "x")
    client.ask("SET", "bytes", BYTES, "PX", 12345678)
    client.ask("GET", "s:5")
    client.ask("EXPIRE", "s:7", 900)
    client.ask("DEL", "s:8")
    client.ask("SELECT", 3)
    client.ask("SET", "of the third", "y", "EX", 7777)


def number(answer):
    assert answer[:1] == b":", answer
    return int(answer[1:])


def sessions(client):
    """{database and key: value, when it ends by the wall clock, what is left of it; both in ms}."""
    found = {}
    for database in (0, 3):
        client.ask("SELECT", database)
        for key in client.ask("KEYS", "*").split(b"\r\n")[2::2]:
            found[database, key] = client.ask("GET", key), number(client.ask("PEXPIRETIME", key)), number(client.ask("PTTL", key))
    check(len(found) > 50, found.keys())
    return found


class Sessions(Case):
    def test_a_directory(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            for arguments in ((), ("--lifetime", "2h"), ("--lifetime", "2h", "--keep-lifetimes")):
                shutil.rmtree("data", ignore_errors=True)
                with served(old("weekwheel-sessiond"), "--data", "data", *arguments, end=end) as (_, client):
                    log_in(client)
                    before = sessions(client)
                with served(NEW, "--data", "data", *arguments, end=end) as (_, client):
                    after = sessions(client)
                equal(after.keys(), before.keys())
                for key, (value, ends, left) in before.items():
                    # A crash may lose touches within a sixteenth of the time, which each session therefore gets.
                    most = (left // 16 + 1000) * (end == signal.SIGKILL)
                    equal(after[key][0], value)
                    check(ends - 1 <= after[key][1] <= ends + 1 + most, (key, ends, after[key]))

    def test_a_wall_clock_that_was_wrong(self):
        """No session of a server whose clock was years off lives for years, or has ended. It gets what was left."""
        library = compiled("support/shifted_wall.c", "-shared", "-fPIC")
        shifted = {"LD_PRELOAD": library, "SHIFT_FILE": os.path.abspath("shift")}

        def set_clock(shift):
            with open("shift", "w", encoding="ascii") as file:
                file.write(str(shift))
        for first, then in ((9 * YEAR, 0), (-9 * YEAR, 0), (0, 9 * YEAR), (0, -9 * YEAR), (5 * DAY, 0)):
            for end in (signal.SIGTERM, signal.SIGKILL):
                shutil.rmtree("data", ignore_errors=True)
                set_clock(first)
                began = time.monotonic()
                with served(old("weekwheel-sessiond"), "--data", "data", end=end, **shifted) as (_, client):
                    log_in(client)
                    before = sessions(client)
                set_clock(then)
                for _ in range(2):
                    with served(NEW, "--data", "data", **shifted) as (_, client):
                        after = sessions(client)
                        equal(after.keys(), before.keys())
                        for key, (value, _, left) in after.items():
                            equal(value, before[key][0])
                            usual, passed = before[key][2], (time.monotonic() - began) * 1000
                            check(usual - passed <= left <= usual * 17 / 16 + 1000, (first, then, end, key, before[key], left))

    def test_the_way_back_is_a_copy(self):
        """0.1.0 refuses the directory and leaves it alone; `weekwheel sessions import` brings it the sessions."""
        with served(NEW, "--data", "data") as (_, client):
            log_in(client)
        def files():
            found = {}
            for name in sorted(os.listdir("data")):
                with open(os.path.join("data", name), "rb") as file:
                    found[name] = file.read()
            return found
        before = files()
        ended = run(1, old("weekwheel-sessiond"), "--listen", "127.0.0.1:0", "--data", "data")
        check("has another format: it was written by another version" in ended.err, ended)
        equal(files(), before)
        with served(NEW, "--data", "data") as (new, client), \
                served(old("weekwheel-sessiond"), "--data", "back") as (back, copy):
            for database in (0, 3):
                run(0, WEEKWHEEL, "sessions", "import", "--from", f"redis://127.0.0.1:{new.port}/{database}", "--db", str(database),
                    f"127.0.0.1:{back.port}")
            there, here = sessions(client), sessions(copy)
        equal(here.keys(), there.keys())
        for key, (value, ends, _) in there.items():
            equal(here[key][0], value)
            check(ends - 1 <= here[key][1] <= ends + 1000 * PATIENCE or ends < 0, (key, ends, here[key]))


if __name__ == "__main__":
    main()
