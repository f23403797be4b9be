#!/usr/bin/env python3
"""weekwheel import --from redis:// and sidekiq://: the members of sorted sets become jobs, once and at their time."""
# tier: check
import base64
import json
import random
import re
import signal
import socket
import threading

from harness import PATIENCE, Case, Redis, Relay, Server, check, close_listener, equal, main, matches, objects, seed, until

FAR = 4000000000
# How members are removed.
REMOVE = b"*6\r\n$4\r\nEVAL"


def item(jid, queue, **more):
    """A member of Sidekiq's sets."""
    return json.dumps({"class": "Mail", "args": [1, "ä"], "queue": queue, "jid": jid, **more}, ensure_ascii=False)


class Moving(Case):
    def setUp(self):
        super().setUp()
        self.redis = self.enter(Redis())
        self.server = self.enter(Server())
        self.address = f"127.0.0.1:{self.redis.port}"

    def add(self, key, *pairs):
        words = [word for score, member in pairs for word in (score, member)]
        equal(self.redis.ask("ZADD", key, *words), len(pairs))

    def move(self, status, url, *arguments):
        return objects(self.server.program.run(status, "import", "--from", url, "--json", *arguments).out)[0]

    def set(self, key="mails", address=None):
        return f"redis://{address or self.address}/{key}"

    def jobs(self):
        """The jobs of the target by their bodies; there are no two of one body."""
        with self.server.client() as client:
            listed = client.all_jobs()
        jobs = {base64.b64decode(job["body"]).decode(): job for job in listed}
        equal(len(jobs), len(listed))
        return jobs

    def test_what_answers_may_be_no_redis(self):
        """Whatever it says, the import ends with an error, and not by a signal."""
        texts = (b"*2147483647", b"+OK", b":5", b"*-1", b"$-1", b"$2\r\nok", b"*1\r\n+x", b"*2\r\n$1\r\n0\r\n*1\r\n:3", b"HTTP/1.1 400 Bad Request",
                 b"*3\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb", b"*2\r\n:1\r\n:1", b"*0",
                 b"*20000\r\n" + b"\r\n".join(20000 * [b"$1\r\n1"]))

        def talk(client):
            number = 0
            with client, client.makefile("rb") as lines:
                for line in lines:
                    if line.startswith(b"*"):
                        number += 1
                        client.sendall((good.get(number) or text) + b"\r\n")

        def accept():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                try:
                    talk(client)
                except OSError:
                    pass

        # It answers like Redis up to the first of these commands, or the second, and so on, and then with one of the texts.
        whole = {1: b"+OK", 2: b"+zset", 3: b"+OK", 4: b"$0\r\n", 5: b"*2\r\n$1\r\na\r\n$1\r\n1", 6: b":1"}
        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=accept)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(close_listener, listener)
        for count in range(len(whole)):
            good = {number: whole[number] for number in range(1, count + 1)}
            for text in texts:
                ended = self.server.program.run(None, "import", "--from", self.set(address="127.0.0.1:%d" % listener.getsockname()[1]),
                                                "-t", "x", "--timeout", "2s")
                assert ended.status in (0, 1) and (ended.status == 1 or count > 2), (count, text, str(ended))

    def test_members_are_due_at_their_scores(self):
        self.add("mails", (FAR, "b"), (FAR + 0.25, "c"), (1, "a"), (-5, "\r\n"), ("-inf", ""), ("inf", "never"))
        matches("^mails: 5 jobs$", self.server.program.run(0, "import", "--from", self.set(), "-t", "x", "--dry-run").out)
        # Only the move needs a tube.
        matches("^mails: 5 jobs$", self.server.program.run(0, "import", "--from", self.set(), "--dry-run").out)
        matches("--tube is missing", self.server.program.run(2, "import", "--from", self.set()).err)
        equal(self.move(0, self.set(), "--tube", "mail", "--run", "5m"),
              {"read": 5, "put": 5, "kept": 0, "deleted": 5, "returned": 0, "doubled": 0, "schedules": 0, "left": 0, "reserved": 0, "left_out": 0})
        jobs = self.jobs()
        equal({body: job["state"] for body, job in jobs.items()},
              {"a": "ready", "b": "delayed", "c": "delayed", "\r\n": "ready", "": "ready"})
        equal((jobs["b"]["due"], jobs["c"]["due"], jobs["b"]["clock"]), (str(FAR), f"{FAR}.25", "wall"))
        equal((jobs["a"]["tube"], jobs["a"]["run"], jobs["a"]["priority"]), ("mail", 300, 1024))
        equal(self.redis.ask("ZRANGE", "mails", 0, -1), ["never"])

    def test_milliseconds_and_keys_with_slashes(self):
        self.add("7/mails", (FAR * 1000 + 250, "x"))
        equal(self.move(0, self.set("0/7/mails"), "--tube", "mail", "--unit", "ms")["put"], 1)
        equal(self.jobs()["x"]["due"], f"{FAR}.25")

    def test_sidekiq(self):
        again = item("a1", "mailers", retry_count=2, error_message="no")
        self.add("schedule", (FAR, item("b2", "default")), (1.5, item("c3", "low")))
        self.add("retry", (FAR + 60.5, again))
        self.add("dead", (1700000000.25, item("d4", "default", retry_count=25)))
        url = "sidekiq://" + self.address
        dry = self.server.program.run(0, "import", "--from", url, "--dry-run", "--json").out
        equal(objects(dry), [{"set": "schedule", "jobs": 2, "left_out": 0}, {"set": "retry", "jobs": 1, "left_out": 0}])
        equal(self.move(0, url)["put"], 3)
        jobs = {re.sub("-[0-9a-f]{32}$", "", job["key"]): (job["tube"], job["state"], job["due"], body) for body, job in self.jobs().items()}
        equal(jobs[f"sidekiq-a1-{FAR}.5".replace(str(FAR), str(FAR + 60))], ("mailers", "delayed", f"{FAR + 60}.5", again))
        equal(jobs[f"sidekiq-b2-{FAR}"][:2], ("default", "delayed"))
        equal(jobs["sidekiq-c3-1.5"][:2], ("low", "ready"))
        equal(self.move(0, url, "--dead", "--tube", "graves")["put"], 1)
        dead = self.jobs()[item("d4", "default", retry_count=25)]
        equal((dead["tube"], dead["state"]), ("graves", "buried"))

    def test_odd_jobs_stay_and_are_named_and_the_others_move(self):
        """Whatever is wrong with one, and wherever it stands among the others."""
        odd = {"no json": "no object of JSON", '["an", "array"]': "no object of JSON", '{"class": "Mail"': "no object of JSON", "": "no object",
               item("o1", "no good"): "the queue 'no good' is not a name of a tube", item("o2", 300 * "q"): "not a name of a tube",
               item("o3", "default", more=70000 * "x"): "--max-job-size", item("o4", "\x1b[31m"): "not a name of a tube"}
        self.add("schedule", *((number, member) for number, member in enumerate(odd)), (5e9, item("late", "default")),
                 (FAR * 1000, item("ms", "default")))
        reasons = [*odd.values(), "after the year 2115", "milliseconds rather than seconds"]
        # More than a batch of them before the others.
        self.add("schedule", *((100 + number, f"broken {number}") for number in range(300)))
        self.add("schedule", *((FAR + number, item(f"g{number}", "default")) for number in range(300)))
        self.add("retry", (FAR + 60.5, item("again", "mailers")), (FAR + 61, "{"))
        url, stay = "sidekiq://" + self.address, len(reasons) + 301

        def named(ended):
            lines = ended.err.splitlines()
            for reason in reasons:
                check([line for line in lines if reason in line and f"{self.address}/0: the member of" in line], reason)
            equal(len([line for line in lines if line.endswith("; it stays there")]), stay, ended.err[:2000])
            check("\x1b" not in ended.err, ended.err)

        dry = self.server.program.run(1, "import", "--from", url, "--dry-run")
        equal(dry.out, f"schedule: 300 jobs, and {stay - 1} that would stay\nretry: 1 job, and 1 that would stay\n")
        named(dry)
        equal(self.jobs(), {})
        ended = self.server.program.run(1, "import", "--from", url)
        equal(ended.out, f"301 jobs read, 301 put, 301 deleted at the source; {stay} left there\n")
        named(ended)
        matches(f"^{stay} jobs could not move and are named above", ended.err)
        equal(len(self.jobs()), 301)
        # Once they are mended, they move; the others are still named.
        self.redis.ask("ZREM", "schedule", item("o1", "no good"))
        self.add("schedule", (1, item("o1", "good")))
        counts = self.move(1, url)
        equal((counts["put"], counts["left"], counts["left_out"]), (1, stay - 1, stay - 1))
        equal(self.move(1, url, "--tube", "all")["put"], 2)

    def test_what_follows_an_odd_job_moves_as_it_comes(self):
        self.add("mails", (1, "early"), (FAR * 1000, "ms"))
        follow = self.server.program.start("import", "--from", self.set(), "-t", "mail", "--follow", "--json")
        for number in range(5):
            self.add("mails", (FAR + number, f"{number}"), (-number, f"-{number}"))
            until(lambda: self.redis.ask("ZRANGE", "mails", 0, -1) == ["ms"], "only the odd one is there")
        follow.send_signal(signal.SIGTERM)
        out, err = follow.communicate(timeout=PATIENCE)
        equal((follow.returncode, err.count("it stays there"), objects(out)[0]["put"]), (1, 1, 11), err)

    def test_ids_that_begin_alike(self):
        """Each is a job of its own."""
        self.add("schedule", *((FAR, item(100 * "j" + f"{number}", "default")) for number in range(3)))
        equal(self.move(0, "sidekiq://" + self.address)["put"], 3)

    def test_one_id_with_several_members(self):
        """A job that was pushed again has its former id, and may have its time, too: all move, and each that cannot is named."""
        self.add("schedule", *((FAR, item("same", queue, more=number)) for queue in ("good", "no good") for number in range(2)))
        ended = self.server.program.run(1, "import", "--from", "sidekiq://" + self.address)
        equal(ended.out, "2 jobs read, 2 put, 2 deleted at the source; 2 left there\n")
        equal(ended.err.count("it stays there"), 2)
        equal(len(self.jobs()), 2)

    def test_into_a_store_in_redis(self):
        """The source and the store may be one Redis."""
        self.add("schedule", (FAR, item("b2", "default")))
        self.add("dead", (1, item("d4", "default")))
        with self.redis.server() as server:
            for arguments in ((), ("--dead",)):
                server.program.run(0, "import", "--from", "sidekiq://" + self.address, *arguments)
            with server.client() as client:
                equal(sorted(job["state"] for job in client.all_jobs()), ["buried", "delayed"])

    def test_a_member_with_another_score_is_another_job(self):
        for count in (1, 2):
            self.add("retry", (count, item("a1", "default", retry_count=1)))
            self.add("mails", (count, "again"))
            equal(self.move(0, "sidekiq://" + self.address)["put"], 1)
            equal(self.move(0, self.set(), "--tube", "default")["put"], 1)
            with self.server.client() as client:
                for _ in range(2):
                    equal(client.ask("delete " + client.ask("reserve").split()[1]), "DELETED")

    def test_what_was_put_when_it_was_killed_is_not_put_again(self):
        self.add("mails", *((FAR + i, f"{i}") for i in range(300)), *((i, f"ready {i}") for i in range(3)))
        started, killed = [], threading.Event()

        def kill():
            started[0].kill()
            started[0].wait()
            killed.set()
            return "stop"

        with Relay(self.redis.port, REMOVE, kill) as relay:
            started.append(self.server.program.start("import", "--from", self.set(address=relay.address), "-t", "mail"))
            check(killed.wait(PATIENCE), "it was killed")
            started[0].communicate()
            address = relay.address
        equal(self.redis.ask("ZCARD", "mails"), 303)
        with self.server.client() as client:
            client.ask("watch mail")
            equal(client.ask("delete " + client.ask("reserve").split()[1]), "DELETED")
        # By the name that the source had before.
        with Relay(self.redis.port, REMOVE, lambda: None, port_here=int(address.split(":")[1])):
            counts = self.move(0, self.set(address=address), "--tube", "mail")
        equal((counts["put"], counts["kept"], counts["deleted"]), (175, 128, 303))
        equal(len(self.jobs()), 302)

    def test_a_poller_is_faster(self):
        """It takes two jobs after they were put here: one is taken back, the other is with a worker by then."""
        self.add("mails", (FAR, "x"), (FAR + 1, "y"), (FAR + 2, "z"))
        worker = self.enter(self.server.client())

        def take():
            equal(self.redis.ask("ZREM", "mails", "x", "z"), 2)
            matches("^RESERVED 3 ", worker.ask("reserve-job 3"))

        with Relay(self.redis.port, REMOVE, take) as relay:
            ended = self.server.program.run(0, "import", "--from", self.set(address=relay.address), "-t", "m", "--json")
        matches("1 job may be done twice", ended.err)
        counts = objects(ended.out)[0]
        equal((counts["put"], counts["deleted"], counts["returned"], counts["doubled"]), (3, 1, 1, 1))
        equal(set(self.jobs()), {"y", "z"})

    def test_a_member_that_gets_another_score_meanwhile(self):
        self.add("mails", (FAR, "x"))
        with Relay(self.redis.port, REMOVE, lambda: self.redis.ask("ZADD", "mails", FAR + 7, "x")) as relay:
            counts = self.move(0, self.set(address=relay.address), "-t", "mail")
        equal((counts["put"], counts["deleted"], counts["returned"]), (2, 1, 1))
        equal(self.jobs()["x"]["due"], str(FAR + 7))

    def test_one_import_at_a_time(self):
        follow = self.server.program.start("import", "--from", self.set(), "-t", "mail", "--follow")
        until(lambda: "name=weekwheel-import" in self.redis.ask("CLIENT", "LIST"), "it is at work")
        self.fails("another import takes its jobs now", self.set("0/mails"), "-t", "mail", "--follow")
        equal(self.move(0, "sidekiq://" + self.address)["read"], 0)
        follow.send_signal(signal.SIGINT)
        follow.communicate(timeout=PATIENCE)
        self.add("mails", (FAR, "x"))
        equal(self.move(0, self.set(), "-t", "mail")["read"], 1)

    def test_while_producers_add(self):
        dice, number = random.Random(seed()), 3000
        follow = self.server.program.start("import", "--from", self.set(), "-t", "mail", "--follow", "--json")
        for at in range(0, number, 100):
            self.add("mails", *((FAR + dice.randrange(1000), f"{i}") for i in range(at, at + 100)))
        until(lambda: self.redis.ask("ZCARD", "mails") == 0, "all have moved")
        follow.send_signal(signal.SIGTERM)
        out, err = follow.communicate(timeout=PATIENCE)
        equal((follow.returncode, objects(out)[0]["put"], objects(out)[0]["deleted"]), (0, number, number), err)
        equal(set(self.jobs()), {str(i) for i in range(number)})

    def fails(self, pattern, url, *arguments, status=1, **env):
        matches(pattern, self.server.program.run(status, "import", "--from", url, *arguments, **env).err)

    def test_errors_say_what_to_do(self):
        self.add("ms", (FAR * 1000, "x"))
        self.add("s", (FAR, "x"))
        self.add("late", (5000000000, "x"))
        self.add("schedule", (FAR, item("a", "no good")))
        self.redis.ask("SET", "text", "x")
        mail = ("--tube", "mail")
        self.fails("milliseconds rather than seconds: expected --unit ms", self.set("ms"), *mail)
        self.fails("seconds rather than milliseconds: expected --unit s", self.set("s"), *mail, "--unit", "ms")
        self.fails("after the year 2115", self.set("late"), *mail)
        self.fails("the queue .no good. is not a name of a tube: choose one with --tube", "sidekiq://" + self.address)
        self.fails("there is no sorted set 'none', or it is empty", self.set("none"), *mail)
        self.fails("WRONGTYPE", self.set("text"), *mail)
        self.fails("the key of the sorted set is missing", f"redis://{self.address}", *mail)
        self.fails("the database is a number", f"sidekiq://{self.address}/x")
        self.fails("the port is not a number", "redis://127.0.0.1:x/mails", *mail)
        self.fails("the host is missing", "redis:///mails", *mail)
        self.fails("Connection refused; is Redis running there", "redis://127.0.0.1:1/mails", *mail)
        self.fails("--tube is missing", self.set(), status=2)
        self.fails("--tz is for bullmq://", "sidekiq://" + self.address, "--tz", "UTC", status=2)
        self.fails("--unit is for redis://", "sidekiq://" + self.address, "--unit", "ms", status=2)
        self.fails("--unit 'h': expected s or ms", self.set(), "--unit", "h", status=2)
        self.fails("--dead is for sidekiq://", self.set(), *mail, "--dead", status=2)
        self.fails("--run is for Redis", "beanstalkd://localhost", "--run", "5", status=2)
        self.fails("expected beanstalkd://HOST:PORT, redis://", "gopher://localhost", status=2)
        self.fails("there is no such|no keys|cannot|refused", self.set("s"), *mail, "--server", "127.0.0.1:1")
        equal([self.redis.ask("ZCARD", key) for key in ("ms", "s", "late", "schedule")], [1, 1, 1, 1])
        equal(self.jobs(), {})
        with socket.create_server(("127.0.0.1", 0)) as other:
            def answer():
                with other.accept()[0] as connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\n\n")
                    connection.recv(100)
            threading.Thread(target=answer, daemon=True).start()
            self.fails("what answers there is no Redis", self.set(address="127.0.0.1:%d" % other.getsockname()[1]), *mail)

    def test_passwords(self):
        with Redis("--requirepass", "pa ss", folder="secret") as redis:
            for url, env, pattern in ((f"redis://127.0.0.1:{redis.port}/x", {}, "NOAUTH"),
                                      (f"redis://:no@127.0.0.1:{redis.port}/x", {}, "WRONGPASS"),
                                      (f"redis://:pa%20ss@127.0.0.1:{redis.port}/x", {}, "can read the password.*\n.*no sorted"),
                                      (f"redis://default:pa%20ss@127.0.0.1:{redis.port}/x", {}, "no sorted set 'x'"),
                                      (f"redis://127.0.0.1:{redis.port}/x", {"REDISCLI_AUTH": "pa ss"}, "no sorted set 'x'")):
                self.fails(pattern, url, "--tube", "mail", **env)


if __name__ == "__main__":
    main()
