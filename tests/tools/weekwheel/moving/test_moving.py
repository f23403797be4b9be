#!/usr/bin/env python3
"""weekwheel import --from beanstalkd://: every job of a beanstalkd comes to weekwheeld once, whatever happens meanwhile."""
# tier: check
import base64
import collections
import contextlib
import os
import random
import re
import signal
import socket
import threading
import time

from harness import PATIENCE, Beanstalkd, Case, Relay, Server, check, conversation, equal, free_port, main, matches, objects, seed, until


class Moving(Case):
    def setUp(self):
        super().setUp()
        self.source = self.enter(Beanstalkd())
        self.server = self.enter(Server())
        self.url = "beanstalkd://127.0.0.1:%d" % self.source.port
        self.client = self.enter(self.source.client())

    def put_many(self, bodies, tube="t", delay=0, priority=0):
        self.client.send("use %s\r\n" % tube)
        equal(self.client.line(), "USING " + tube)
        bodies = list(bodies)
        for at in range(0, len(bodies), 100):
            for body in bodies[at:at + 100]:
                self.client.send("put %d %d 60 %d\r\n%s\r\n" % (priority, delay, len(body), body))
            for _ in bodies[at:at + 100]:
                matches("^INSERTED", self.client.line())

    def move(self, status, *arguments, url=None):
        """Import with --json. Return the counts."""
        ended = self.server.program.run(status, "import", "--from", url or self.url, "--json", *arguments)
        return objects(ended.out)[0]

    def there(self):
        """The bodies of the jobs that the target has, and how often."""
        with self.server.client() as client:
            return collections.Counter(base64.b64decode(job["body"]).decode() for job in client.all_jobs())

    def test_all_that_a_job_has_comes_along(self):
        began = time.time()
        self.client.put(b"a\r\nb\0", priority=7, ttr=11, tube="one")
        self.client.put(b"", priority=4294967295, delay=4294967000, ttr=4294967295, tube="two")
        self.client.put(b"soon", delay=100, tube="two")
        for name in ("x", "y", "z"):
            self.client.put(name.encode(), tube="bad")
        self.client.ask("watch bad")
        taken = [self.client.ask("reserve").split()[1] for _ in range(3)]
        for number in (1, 0, 2):  # the order in which they are kicked
            equal(self.client.ask(f"bury {taken[number]} {number}"), "BURIED")
        self.client.put(b"later", tube="paused")
        equal(self.client.ask("pause-tube paused 5000"), "PAUSED")
        dry = self.server.program.run(0, "import", "--from", self.url, "--dry-run")
        equal(dry.err, "")
        matches("^bad: 0 ready, 0 delayed, 3 buried, 0 run", dry.out)
        matches("^paused: 1 ready, .* paused for [45]... s$", dry.out)
        equal(self.there(), {})
        # A worker that waits here gets no buried job.
        worker = self.enter(self.server.client())
        conversation(worker, ("watch bad", "WATCHING 2"))
        worker.send("reserve\r\n")
        self.enter(self.server.client()).until_waiting()
        equal(self.move(0), {"read": 7, "put": 7, "kept": 0, "deleted": 7, "returned": 0, "doubled": 0, "schedules": 0, "left": 0,
                             "reserved": 0, "left_out": 0})
        took = time.time() - began
        with self.server.client() as client:
            jobs = {base64.b64decode(job["body"]): job for job in client.all_jobs()}
            first = jobs[b"a\r\nb\0"]
            equal((first["tube"], first["priority"], first["run"], first["state"]), ("one", 7, 11, "ready"))
            far = jobs[b""]
            equal((far["tube"], far["priority"], far["run"], far["state"]), ("two", 4294967295, 4294967295, "delayed"))
            for job, delay in ((far, 4294967000), (jobs[b"soon"], 100)):
                late = float(job["due"]) - began - delay
                check(0 <= late <= took + 1.01, late)
            for name, priority in ((b"x", 0), (b"y", 1), (b"z", 2)):
                equal((jobs[name]["state"], jobs[name]["priority"]), ("buried", priority))
            equal(client.ask("use bad"), "USING bad")
            equal(client.ask("peek-buried").split("|")[1], "y")
            client.ask("watch paused")
            pause = int(client.numbers("stats-tube paused")["pause-time-left"])
            check(4000 < pause <= 5000, pause)
        equal(self.client.numbers("stats")["current-jobs-ready"], "0")

    def test_one_tube(self):
        self.client.put(b"mine", tube="one")
        self.client.put(b"mine too", delay=1000, tube="one")
        self.client.put(b"theirs", tube="two")
        self.client.put(b"theirs too", delay=1000, tube="two")
        self.client.put(b"theirs as well", tube="default")
        matches("no tube on: .*did you mean 'one'",
                self.server.program.run(1, "import", "--from", self.url, "--tube", "on").err)
        equal(self.move(0, "--tube", "one")["put"], 2)
        equal(self.there(), {"mine": 1, "mine too": 1})
        equal(self.client.numbers("stats")["total-jobs"], "5")
        equal(self.client.numbers("stats-tube two")["current-jobs-ready"], "1")

    def test_order_of_ready_jobs(self):
        for number in range(300):
            self.client.put(b"%d" % number, priority=number % 3)
        self.move(0)
        with self.server.client() as client:
            got = [int(client.ask("reserve").split("|")[1]) for _ in range(300)]
        equal(got, sorted(range(300), key=lambda number: (number % 3, number)))

    def test_while_producers_put_and_workers_work(self):
        dice = random.Random(seed())
        number = 4000
        self.put_many((str(i) for i in range(0, 500)), delay=1000)
        self.put_many(str(i) for i in range(500, 1000))
        done = collections.Counter()

        def produce():
            with self.source.connect() as client:
                for i in range(1000, number):
                    matches("INSERTED", client.put(b"%d" % i, delay=dice.choice((0, 0, 1, 500)), tube="t%d" % (i % 3)))

        def work():
            with self.source.connect() as client:
                for name in ("t", "t0", "t1", "t2"):
                    client.ask("watch " + name)
                while not ended.is_set():
                    answer = client.ask("reserve-with-timeout 0")
                    if answer.startswith("RESERVED"):
                        time.sleep(0.002)
                        done[answer.split("|")[1]] += 1
                        equal(client.ask("delete " + answer.split()[1]), "DELETED")

        ended = threading.Event()
        producer, worker = threading.Thread(target=produce), threading.Thread(target=work)
        producer.start()
        worker.start()
        follow = self.server.program.start("import", "--from", self.url, "--follow", "--json")
        until(lambda: len(self.there()) > 500, "some have moved")
        follow.kill()
        follow.communicate()
        until(lambda: "weekwheel-import" not in self.client.ask("list-tubes"), "it is gone")
        before = sum(self.there().values())
        follow = self.server.program.start("import", "--from", self.url, "--follow", "--json")
        producer.join()
        until(lambda: self.idle(), "the source has no job that waits")
        ended.set()
        worker.join()
        follow.send_signal(signal.SIGTERM)
        out, err = follow.communicate(timeout=PATIENCE)
        equal(follow.returncode, 0, err)
        counts = objects(out)[0]
        check(before + counts["put"] > 1000 and sum(done.values()) > 0, (counts, done))
        equal(counts["read"], counts["deleted"] + counts["returned"] + counts["doubled"])
        jobs = self.there() + done
        equal(set(jobs), {str(i) for i in range(number)})
        # Only those that it counts may have been done twice, and the 128 that were at both when it was killed.
        check(sum(jobs.values()) - number <= counts["doubled"] + 128, (counts, jobs.most_common(3)))

    def idle(self):
        with self.source.connect() as client:
            numbers = client.numbers("stats")
        return all(numbers["current-jobs-" + state] == "0" for state in ("ready", "delayed", "reserved", "buried"))

    def kill_at(self, word, url=None):
        """Start an import and kill it when it sends that word to the source."""
        killed = threading.Event()

        def kill():
            started[0].kill()
            started[0].wait()
            killed.set()
            return "stop"

        started = []
        with Relay(self.source.port, word, kill) as relay:
            started.append(self.server.program.start("import", "--from", "beanstalkd://" + relay.address))
            check(killed.wait(PATIENCE), "it was killed")
            out, err = started[0].communicate()
            equal((out, err), ("", ""))

    def test_what_was_put_when_it_was_killed_is_not_put_again(self):
        for i in range(3):
            self.client.put(b"%d" % i, tube="t")
        self.client.ask("watch t")
        for _ in range(3):
            equal(self.client.ask("bury %s 0" % self.client.ask("reserve").split()[1]), "BURIED")
        self.put_many((str(i) for i in range(3, 6)), delay=1000)
        self.put_many(str(i) for i in range(6, 9))
        # It moves ready jobs first, then delayed ones. A worker of the target is quick.
        self.kill_at(b"delete 7")
        with self.server.client() as client:
            client.ask("watch t")
            equal(client.ask("delete " + client.ask("reserve").split()[1]), "DELETED")
        for word in (b"delete 4", b"delete 1"):
            until(lambda: self.client.numbers("stats-tube t")["current-jobs-reserved"] == "0", "they are ready again")
            self.kill_at(word)
        equal(self.client.numbers("stats")["current-jobs-buried"], "3")
        counts = self.move(0)
        equal((counts["put"], counts["kept"], counts["deleted"]), (2, 1, 3))
        equal(self.there(), {str(i): 1 for i in range(9) if i != 6})
        with self.server.client() as client:
            equal([job["state"] for job in client.all_jobs()].count("buried"), 3)

    def test_kills_at_any_time(self):
        dice = random.Random(seed())
        number, kills = 6000, 0
        self.put_many((str(i) for i in range(2000)), delay=1000)
        self.put_many((str(i) for i in range(2000, 4000)), tube="u")
        self.put_many((str(i) for i in range(4000, number)), tube="v", delay=5000)
        while not self.idle() and kills < 30:
            started = self.server.program.start("import", "--from", self.url)
            time.sleep(dice.uniform(0.005, 0.03))
            started.kill()
            started.communicate()
            kills += 1
        print(f"{kills} kills")
        equal(self.move(0)["left"], 0)
        there = self.there()
        equal((len(there), set(there.values())), (number, {1}))

    def test_a_worker_of_the_source_is_faster(self):
        """It gets a job after it was put here, and before it is deleted there: the job is its own again."""
        self.client.put(b"x", delay=1000, tube="t")
        self.client.ask("watch t")

        def take():
            equal(self.client.ask("kick-job 1"), "KICKED")
            matches("^RESERVED 1 1", self.client.ask("reserve"))

        with Relay(self.source.port, b"delete ", take) as relay:
            counts = self.move(1, url="beanstalkd://" + relay.address)
        equal((counts["returned"], counts["reserved"], counts["doubled"]), (1, 1, 0))
        equal(self.there(), {})
        equal(self.client.ask("release 1 0 0"), "RELEASED")
        equal(self.move(0)["put"], 1)
        equal(self.there(), {"x": 1})

    def test_a_job_that_the_source_has_done_meanwhile_is_taken_back(self):
        self.client.put(b"x", delay=1000, tube="t")
        with Relay(self.source.port, b"delete ", lambda: self.client.ask("delete 1")) as relay:
            counts = self.move(0, url="beanstalkd://" + relay.address)
        equal((counts["returned"], counts["doubled"], self.there()), (1, 0, {}))

    def test_a_job_that_may_be_done_twice_is_counted(self):
        self.client.put(b"x", delay=1000, tube="t")
        worker = self.enter(self.server.client())

        def take():
            matches("^RESERVED 1", worker.ask("reserve-job 1"))
            equal(self.client.ask("delete 1"), "DELETED")

        with Relay(self.source.port, b"delete ", take) as relay:
            ended = self.server.program.run(0, "import", "--from", "beanstalkd://" + relay.address)
        matches("1 job may be done twice", ended.err)
        equal(self.there(), {"x": 1})

    def test_a_job_is_buried_before_the_source_loses_it(self):
        self.client.put(b"x", tube="t")
        self.client.ask("watch t")
        equal(self.client.ask("bury %s 5" % self.client.ask("reserve").split()[1]), "BURIED")
        with Relay(self.server.port, b"reserve-job", lambda: "stop") as relay:
            ended = self.server.program.run(1, "import", "--from", self.url, "--server", relay.address)
        matches("connection was lost", ended.err)
        equal(self.client.numbers("stats-tube t")["current-jobs-buried"], "1")
        with self.server.client() as client:
            equal(client.numbers("stats-tube t")["current-jobs-delayed"], "1")
        equal(self.move(0)["kept"], 1)
        with self.server.client() as client:
            equal([(job["state"], job["priority"]) for job in client.all_jobs()], [("buried", 5)])

    def test_one_import_at_a_time(self):
        follow = self.server.program.start("import", "--from", self.url, "--follow")
        until(lambda: "weekwheel-import" in self.client.ask("list-tubes"), "it is at work")
        matches("another import takes its jobs now", self.server.program.run(1, "import", "--from", self.url).err)
        self.server.program.run(0, "import", "--from", self.url, "--dry-run")
        follow.kill()
        follow.communicate()
        until(lambda: "weekwheel-import" not in self.client.ask("list-tubes"), "it is gone")
        self.move(0)

    def test_a_weekwheeld_as_a_source(self):
        with Server() as source:
            source.program.run(0, "put", "--key", "a", "--tube", "t", "x")
            ended = self.server.program.run(0, "import", "--from", "beanstalkd://" + source.address)
        matches("is a weekwheeld: keys, periods, .*'weekwheel export'", ended.err)
        equal(self.there(), {"x": 1})

    def test_a_token(self):
        self.client.put(b"x", tube="t")
        with open("tokens", "w", encoding="utf-8") as file:
            for name, right in (("putter", "put:t"), ("other", "put:u")):
                file.write(self.server.program.run(0, "token", "--token-file", name, name, right).out)
        os.chmod("tokens", 0o600)
        with Server("--auth-file", "tokens") as server:
            for arguments, why in (((), "the server wants a token"), (("--token-file", "other"), "needs the right put")):
                matches(why, server.program.run(1, "import", "--from", self.url, *arguments).err)
            equal(self.client.numbers("stats-tube t")["current-jobs-ready"], "1")
            matches("^1 job read, 1 put, 1 deleted",
                    server.program.run(0, "import", "--from", self.url, "--token-file", "putter").out)

    def test_a_server_that_counts_less_than_it_says(self):
        """The counts of both sides are compared at the end."""
        self.client.put(b"x", tube="t")
        with Relay(self.server.port, None, None, lambda data: re.sub(rb"(total-jobs: )\d", rb"\g<1>1", data)) as relay:
            ended = self.server.program.run(1, "import", "--from", self.url, "--server", relay.address)
        matches("counts 0 new jobs, but has acknowledged 1; compare 'weekwheel stats'", ended.err)

    def test_times_to_run_of_a_second_and_large_bodies(self):
        source = self.enter(Beanstalkd("-z", "6000000"))
        server = self.enter(Server("--max-job-size", "6000000"))
        client = self.enter(source.client())
        for number in range(50):
            client.put(b"%d" % number, ttr=1)
        for number in range(3):
            client.put(b"%d" % number + 5000000 * b"x", delay=1000 * (number % 2))
        ended = server.program.run(0, "import", "--from", "beanstalkd://127.0.0.1:%d" % source.port)
        equal(ended.out, "53 jobs read, 53 put, 53 deleted at the source; 0 left there\n")
        with server.client() as client:
            equal(sorted(job["length"] for job in client.all_jobs())[-3:], 3 * [5000001])

    def test_jobs_that_workers_run_are_waited_for(self):
        self.client.put(b"x")
        matches("^RESERVED 1", self.client.ask("reserve"))
        ended = self.server.program.run(1, "import", "--from", self.url)
        equal(ended.out, "0 jobs read, 0 put, 0 deleted at the source; 1 left there\n")
        matches("^1 job is left, which workers of the source run: --wait waits", ended.err)
        waiting = self.server.program.start("import", "--from", self.url, "--wait", "--json")
        self.client.until_stats("current-connections", 2)
        equal(self.client.ask("release 1 0 0"), "RELEASED")
        out, _ = waiting.communicate(timeout=PATIENCE)
        equal((waiting.returncode, objects(out)[0]["put"]), (0, 1))

    def test_a_bar_shows_how_far_it_is(self):
        self.put_many(str(i) for i in range(300))
        terminal, other = os.openpty()
        with open(terminal, "rb") as shown:
            started = self.server.program.start("import", "--from", self.url, stderr=other)
            os.close(other)
            text = b""
            with contextlib.suppress(OSError):  # its end
                while more := os.read(shown.fileno(), 4096):
                    text += more
            out, _ = started.communicate(timeout=PATIENCE)
        matches(r"moving \[#+\.+\]  *\d+ %", text.decode())
        matches("^300 jobs read, 300 put", out)

    def test_errors_say_what_to_do(self):
        def fails(pattern, *arguments, url=self.url, status=1):
            matches(pattern, self.server.program.run(status, "import", "--from", url, *arguments).err)

        fails("no-such-host.invalid:11300: .*; is beanstalkd running there", url="beanstalkd://no-such-host.invalid")
        fails("Connection refused; is beanstalkd running there", url="beanstalkd://127.0.0.1:%d" % free_port())
        fails("expected beanstalkd://HOST:PORT", url="beanstalkd://")
        fails("--from: expected beanstalkd://HOST:PORT, redis://", url="gopher://x", status=2)
        fails("expected beanstalkd://HOST:PORT; --tube chooses", url=self.url + "/mail")
        fails("127.0.0.1:1: Connection refused; start weekwheeld there", "--server", "127.0.0.1:1")
        fails("no keys, .*name a weekwheeld", "--server", "127.0.0.1:%d" % self.source.port)
        fails("jobs cannot move to where they are", url="beanstalkd://127.0.0.1:%d" % self.server.port)
        fails("no operand is expected.*\n.*Try 'weekwheel import --from URL --help'", "x", status=2)
        matches("'weekwheel import --from beanstalkd://x' moves its jobs",
                self.server.program.run(2, "import", "beanstalkd://x").err)
        matches("^Usage: weekwheel import --from", self.server.program.run(0, "import", "--from", "URL", "--help").out)
        matches("--from URL ", self.server.program.run(0, "import", "--help").out)
        with Relay(self.source.port, None, None, lambda data: data.replace(b"\nid: ", b"\nno: ")) as relay:
            fails("its stats have no id, .*very old", url="beanstalkd://" + relay.address)
        with socket.create_server(("127.0.0.1", 0)) as other:
            def answer():
                with other.accept()[0] as connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\n\n")
                    connection.recv(100)
            threading.Thread(target=answer, daemon=True).start()
            fails("not beanstalkd's protocol", url="beanstalkd://127.0.0.1:%d" % other.getsockname()[1])

    def test_a_target_that_refuses(self):
        """What it took before is deleted at the source, the rest stays there."""
        server = self.enter(Server("--max-job-size", "10"))
        self.put_many(["small", "small too", "much larger", "small 3"])
        ended = server.program.run(1, "import", "--from", self.url, "--json")
        matches("job 3 of 11 bytes in tube t: the body is larger than the server allows; .*; it stays there", ended.err)
        matches("^1 job could not move and is named above", ended.err)
        equal([objects(ended.out)[0][name] for name in ("deleted", "left_out")], [3, 1])
        until(lambda: self.client.numbers("stats-tube t")["current-jobs-ready"] == "1", "it is ready again")
        equal(self.move(0)["put"], 1)
        equal(self.there(), {"much larger": 1})

    def test_jobs_that_workers_run_are_counted_beside_some_that_stay(self):
        """Of those, only one that was found ready is reserved."""
        server = self.enter(Server("--max-job-size", "10"))
        self.put_many(["run one", "run two"], tube="run")
        self.client.ask("watch run")
        for number in (1, 2):
            matches(f"^RESERVED {number}", self.client.ask("reserve"))
        self.put_many(["a larger one", "another larger one"], tube="delayed", delay=1000)
        self.put_many(["a larger ready one"], tube="ready")
        ended = server.program.run(1, "import", "--from", self.url)
        equal(ended.out, "3 jobs read, 0 put, 0 deleted at the source; 5 left there\n")
        matches("^3 jobs could not move", ended.err)
        matches("^2 jobs are left, which workers of the source run", ended.err)

    def test_a_source_that_takes_no_jobs(self):
        """It cannot be asked which job is the last."""
        server = self.enter(Server("--max-job-size", "10"))
        self.put_many(["small", "a larger one", "small too"], delay=1000)
        self.source.process.send_signal(signal.SIGUSR1)
        equal(self.client.ask("put 0 0 60 1\r\nx"), "DRAINING")
        ended = server.program.run(1, "import", "--from", self.url, "--json")
        matches("^weekwheel: 127.0.0.1:[0-9]+: it is draining, .*: mend or remove those there, or start it again with its files", ended.err)
        equal([objects(ended.out)[0][name] for name in ("deleted", "left_out")], [2, 1])
        equal(self.client.ask("delete 2"), "DELETED")
        equal(self.move(0)["left"], 0)

    def test_jobs_behind_one_that_stays(self):
        """peek shows only the first job of a tube and state, which may be one that cannot move."""
        server = self.enter(Server("--max-job-size", "10"))
        for state, delay in (("delayed", 1000), ("buried", 0), ("ready", 0)):
            self.put_many(["larger " + state, f"a {state}", f"b {state}"], tube=state, delay=delay)
            if state == "buried":
                self.client.ask("watch buried")
                for _ in range(3):
                    equal(self.client.ask("bury %s 0" % self.client.ask("reserve").split()[1]), "BURIED")
        self.put_many(["larger paused", "a paused"], tube="paused")
        equal(self.client.ask("pause-tube paused 5000"), "PAUSED")
        # Far apart, and due before: the nearest ids do not have it.
        self.put_many((f"{i}" for i in range(300)), tube="gone", delay=5000)
        self.put_many(["last"], tube="delayed", delay=2000)
        for arguments in ((), ("--wait",)):
            ended = server.program.run(1, "import", "--from", self.url, *arguments)
            for number, state in ((1, "delayed"), (4, "buried"), (7, "ready"), (10, "paused")):
                matches(f"job {number} of {len(state) + 7} bytes in tube {state}: .*; it stays there", ended.err)
            equal(ended.err.count("it stays there"), 4)
            matches("; 4 left there", ended.out)
            with server.client() as client:
                equal(len(client.all_jobs()), 308)
            until(lambda: self.client.numbers("stats")["current-jobs-reserved"] == "0", "the ready one waits again")
        # Each is as it was.
        for state in ("delayed", "buried", "ready"):
            equal(self.client.numbers("stats-tube " + state)["current-jobs-" + state], "1")


if __name__ == "__main__":
    main()
