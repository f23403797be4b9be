#!/usr/bin/env python3
"""What a worker says of its job is about the delivery that it has: a job that was put again meanwhile is delivered."""
# tier: check, waits
import contextlib
import errno
import os
import re
import shutil

from faults import FOREVER, SIZE, WRITE, Plan
from harness import Case, Redis, Server, WEEKWHEEL, conversation, equal, main, until

MODES = ("", " every=3600", " debounce=1000", " mode=keep-earlier", " mode=keep-later", " attempts=5 backoff=3600")


def put(client, word, body, options="", ttr=60):
    """Put the job of the key, and return its id."""
    answer = client.ask("put-key 0 0 %d %d k%s\r\n%s" % (ttr, len(body), options, body)).split()
    equal(answer[0], word, options)
    return int(answer[1])


def reserved(client, number, body):
    equal(client.ask("reserve-with-timeout 10"), "RESERVED %d %d|%s" % (number, len(body), body))


def state(client, number):
    return client.numbers("stats-job %d" % number)["state"]


class Fence:
    def test_what_was_put_during_a_delivery_is_delivered(self):
        with self.server() as server, server.client() as worker, server.client() as producer:
            for options in MODES:
                for line, said in (("delete %d", "DELETED"), ("release %d 0 9", "RELEASED"), ("bury %d 9", "BURIED"),
                                   ("release-job %d 0 - bad", "RELEASED"), ("bury-job %d 9 bad", "BURIED")):
                    number = put(producer, "INSERTED", "old", options)
                    reserved(worker, number, "old")
                    equal(put(producer, "REPLACED", "new", options), number)
                    before = producer.numbers("stats-job %d" % number)
                    # It may learn that its time is not lengthened, and end all the same.
                    if "bad" in line:
                        equal(worker.ask("touch %d" % number), "NOT_FOUND")
                    equal(worker.ask(line % number), said, line + options)
                    after = producer.numbers("stats-job %d" % number)
                    equal({name: after[name] for name in after if name not in ("age", "time-left")},
                          {name: before[name] for name in before if name not in ("age", "time-left")}, line + options)
                    reserved(worker, number, "new")
                    equal(worker.ask("delete %d" % number), "DELETED")
                    equal(producer.ask("delete-key k"), "DELETED" if "every" in options else "NOT_FOUND")

    def test_who_has_seen_it_deletes_no_other(self):
        """Of a list, for which a user has agreed: what was put again since has the same id."""
        with self.server() as server, server.client() as client, server.client() as producer:
            def version():
                return int(re.search(r'"version":(\d+)', producer.ask("list-delayed id=%d" % number)).group(1))
            number = put(producer, "INSERTED", "old")
            seen = version()
            put(producer, "REPLACED", "new")
            conversation(client, ("delete-job %d version=%d" % (number, seen), "STALE"))
            reserved(client, number, "new")
            for line in ("delete-job %d" % number, "delete-job %d version=%d" % (number, version())):
                conversation(client, (line, "NOT_FOUND"), ("touch %d" % number, "TOUCHED"))
            equal(client.ask("release %d 0 0" % number), "RELEASED")
            conversation(client, ("delete-job %d version=%d" % (number, version()), "DELETED"), ("delete-job %d" % number, "NOT_FOUND"))

    def test_of_a_unique_job_nothing_else_is_put(self):
        with self.server() as server, server.client() as worker, server.client() as producer:
            number = put(producer, "INSERTED", "old", " unique=1000")
            reserved(worker, number, "old")
            put(producer, "KEPT", "new", " unique=1000")
            equal(worker.ask("delete %d" % number), "DELETED")
            put(producer, "ENDED", "new", " unique=1000")

    def test_another_worker_has_it_since(self):
        with self.server() as server, server.client() as first, server.client() as second, server.client() as producer:
            for options in MODES:
                number = put(producer, "INSERTED", "old", options)
                reserved(first, number, "old")
                put(producer, "REPLACED", "new", options)
                reserved(second, number, "new")
                conversation(first, ("touch %d" % number, "NOT_FOUND"), ("delete %d" % number, "DELETED"))
                conversation(second, ("touch %d" % number, "TOUCHED"), ("delete %d" % number, "DELETED"))
                equal(producer.ask("delete-key k"), "DELETED" if "every" in options else "NOT_FOUND")

    def test_another_worker_has_ended_it_since(self):
        with self.server() as server, server.client() as first, server.client() as second, server.client() as producer:
            for line, after in (("delete", "delayed"), ("release %d 0 0", "ready"), ("bury %d 0", "buried")):
                number = put(producer, "INSERTED", "old", " every=3600")
                reserved(first, number, "old")
                put(producer, "REPLACED", "new", " every=3600")
                reserved(second, number, "new")
                second.ask(line % number if "%" in line else "%s %d" % (line, number))
                equal(first.ask("delete %d" % number), "DELETED")
                equal(state(producer, number), after)
                equal(producer.ask("delete-key k"), "DELETED")

    def test_the_time_to_run_was_up_before(self):
        with self.server() as server, server.client() as worker, server.client() as producer:
            for options in MODES:
                for waits in (0, 1):
                    number = put(producer, "INSERTED", "old", options, ttr=1)
                    reserved(worker, number, "old")
                    self.pass_time(producer, number)
                    # The server notices when it asks for more.
                    if waits:
                        conversation(worker, ("watch other", "WATCHING 2"), ("ignore default", "WATCHING 1"),
                                     ("reserve-with-timeout 0", "TIMED_OUT"), ("watch default", "WATCHING 2"))
                    # A put that keeps the job must not be lost, either.
                    is_kept = "keep" in options
                    put(producer, "KEPT" if is_kept else "REPLACED", "new", options)
                    equal(worker.ask("delete %d" % number), "NOT_FOUND" if is_kept else "DELETED")
                    reserved(worker, number, "old" if is_kept else "new")
                    equal(worker.ask("delete %d" % number), "DELETED")
                    equal(producer.ask("delete-key k"), "DELETED" if "every" in options else "NOT_FOUND")

    def test_too_late_and_not_replaced(self):
        """As in beanstalkd, the worker may delete it while nobody else has it. That does not end a job with a key."""
        with self.server() as server, server.client() as worker, server.client() as other, server.client() as producer:
            number = int(producer.put(b"old", ttr=1).split()[1])
            reserved(worker, number, "old")
            self.pass_time(producer, number)
            conversation(worker, ("touch %d" % number, "NOT_FOUND"), ("delete %d" % number, "DELETED"))
            equal(producer.ask("peek %d" % number), "NOT_FOUND")
            for options in ("", " every=3600"):
                for line in ("delete %d", "release %d 0 0", "bury %d 0"):
                    number = put(producer, "INSERTED", "old", options, ttr=1)
                    reserved(worker, number, "old")
                    self.pass_time(producer, number)
                    # Nor does it when it is said twice.
                    conversation(worker, (line % number, "NOT_FOUND"), ("delete %d" % number, "NOT_FOUND"))
                    reserved(other, number, "old")
                    equal(worker.ask("delete %d" % number), "NOT_FOUND")
                    equal(other.ask("delete %d" % number), "DELETED")
                    equal(producer.ask("delete-key k"), "DELETED" if options else "NOT_FOUND")

    def test_a_client_that_has_the_job_twice(self):
        """The job stays until both are done."""
        with self.server() as server, server.client() as worker, server.client() as producer:
            number = put(producer, "INSERTED", "old")
            reserved(worker, number, "old")
            put(producer, "REPLACED", "new")
            reserved(worker, number, "new")
            equal(worker.ask("touch %d" % number), "TOUCHED")
            equal(worker.ask("delete %d" % number), "DELETED")
            equal(state(producer, number), "reserved")
            conversation(worker, ("delete %d" % number, "DELETED"), ("delete %d" % number, "NOT_FOUND"))
            # Both at once.
            number = put(producer, "INSERTED", "old")
            reserved(worker, number, "old")
            put(producer, "REPLACED", "new")
            reserved(worker, number, "new")
            worker.send("delete %d\r\n" % number * 3)
            equal([worker.line() for _ in range(3)], ["DELETED", "DELETED", "NOT_FOUND"])
            equal(producer.ask("peek-key k"), "NOT_FOUND")

    def test_a_client_has_had_one_put_several_times(self):
        """What it says of each delivery is about that put, in whatever way the last one ends."""
        with self.server() as server, server.client() as worker, server.client() as producer:
            for line, said in (("delete %d", "DELETED"), ("release %d 0 9", "RELEASED"), ("bury %d 9", "BURIED")):
                for is_before in (1, 0):
                    number = put(producer, "INSERTED", "old", ttr=1)
                    for _ in range(2):
                        reserved(worker, number, "old")
                        self.pass_time(producer, number)
                    reserved(worker, number, "old")
                    if is_before:
                        put(producer, "REPLACED", "new")
                    equal(worker.ask(line % number), said)
                    if not is_before:
                        number = put(producer, *(("INSERTED", "new") if "delete" in line else ("REPLACED", "new")))
                    # The two that timed out.
                    word = "DELETED" if is_before or "delete" not in line else "NOT_FOUND"
                    if word == "DELETED":
                        conversation(worker, ("delete %d" % number, word), ("delete %d" % number, word))
                    reserved(worker, number, "new")
                    equal(worker.ask("delete %d" % number), "DELETED")
                    equal(producer.ask("delete-key k"), "NOT_FOUND")

    def test_a_client_that_knows_that_its_first_delivery_is_over(self):
        with self.server() as server, server.client() as worker, server.client() as producer:
            number = put(producer, "INSERTED", "old")
            reserved(worker, number, "old")
            put(producer, "REPLACED", "new")
            equal(worker.ask("touch %d" % number), "NOT_FOUND")
            reserved(worker, number, "new")
            conversation(worker, ("delete %d" % number, "DELETED"), ("delete %d" % number, "NOT_FOUND"))
            # One whose time to run was up, and that got the same job again.
            number = put(producer, "INSERTED", "old", ttr=1)
            reserved(worker, number, "old")
            self.pass_time(producer, number)
            reserved(worker, number, "old")
            conversation(worker, ("delete %d" % number, "DELETED"), ("delete %d" % number, "NOT_FOUND"))

    def test_who_has_ended_a_delivery_deletes_what_is_there(self):
        with self.server() as server, server.client() as worker, server.client() as producer:
            for line, said in (("bury %d 0", "BURIED"), ("release %d 0 9", "RELEASED"), ("delete %d", "DELETED")):
                number = put(producer, "INSERTED", "old", " every=3600")
                reserved(worker, number, "old")
                equal(worker.ask(line % number), said)
                put(producer, "REPLACED", "new")
                conversation(worker, ("delete %d" % number, "DELETED"), ("peek %d" % number, "NOT_FOUND"))

    def test_a_job_that_was_cancelled(self):
        with self.server() as server, server.client() as worker, server.client() as producer:
            number = put(producer, "INSERTED", "old")
            reserved(worker, number, "old")
            equal(producer.ask("delete-key k"), "RUNNING")
            other = put(producer, "INSERTED", "new")
            equal(worker.ask("delete %d" % number), "NOT_FOUND")
            equal(state(producer, other), "ready")

    def test_another_worker_gets_jobs_of_one_that_leaves(self):
        """What the server has kept of the one that left, a sanitizer finds at its end."""
        with self.server() as server, server.client() as other, server.client() as producer:
            keys, rounds = 100, 5
            for _ in range(rounds):
                for key in range(keys):
                    producer.ask("put-key 0 0 60 3 k%d\r\nold" % key)
                worker = server.client()
                for key in range(keys):
                    assert worker.ask("reserve-with-timeout 10").startswith("RESERVED ")
                for key in range(keys):
                    producer.ask("put-key 0 0 60 3 k%d\r\nnew" % key)
                other.send("reserve-with-timeout 10\r\n" * keys)
                worker.close()
                numbers = [int(other.answer().split("|")[0].split()[1]) for _ in range(keys)]
                for number in numbers:
                    equal(other.ask("delete %d" % number), "DELETED")
            equal(producer.all_jobs(), [])
            equal(server.stop(), 0)

    def test_many_at_once(self):
        with self.server() as server, server.client() as worker, server.client() as producer:
            numbers = []
            for key in range(100):
                numbers.append(int(producer.ask("put-key 0 0 60 3 k%d\r\nold" % key).split()[1]))
                reserved(worker, numbers[-1], "old")
            for key in range(0, 100, 2):
                equal(producer.ask("put-key 0 0 60 3 k%d\r\nnew" % key), "REPLACED %d" % numbers[key])
            worker.send("".join("delete %d\r\n" % number for number in numbers))
            equal([worker.line() for _ in numbers], ["DELETED"] * 100)
            equal(sorted(job["id"] for job in producer.all_jobs()), sorted(numbers[::2]))

    def test_a_limit_counts_what_runs(self):
        """A worker that has the former job does not keep the new one from starting, and its end frees no second place."""
        for limit in ("running=1", "running=1 each=yes"):
            with self.server() as server, server.client() as first, server.client() as second, server.client() as producer:
                equal(producer.ask("limit-tube default " + limit), "LIMITED")
                number = put(producer, "INSERTED", "old", " group=g")
                reserved(first, number, "old")
                put(producer, "REPLACED", "new", " group=g")
                reserved(second, number, "new")
                other = int(producer.ask("put-key 0 0 60 1 - group=g\r\nx").split()[1])
                equal(first.ask("delete %d" % number), "DELETED")
                equal(first.ask("reserve-with-timeout 0"), "TIMED_OUT")
                equal(second.ask("delete %d" % number), "DELETED")
                reserved(first, other, "x")
                equal(first.ask("delete %d" % other), "DELETED")
                equal(producer.ask("limit-tube default" + limit.replace("running=1", "")), "LIMITED")

    def test_the_program_works_off_what_its_command_puts(self):
        with self.server() as server, server.client() as producer:
            for options in ((), ("--keep-earlier",), ("--debounce", "1h")):
                mark = "again" + "".join(options)
                server.program.run(0, "put", "--key", "k", *options, "first ")
                script = 'cat; test -e "%s" || { touch "%s"; "%s" put -s %s --key k %s second >/dev/null; }' % (
                    mark, mark, os.path.abspath(WEEKWHEEL), server.address, " ".join(options))
                done = server.program.run(0, "work", "--drain", "--", "sh", "-c", script)
                equal(done.out, "first second")
                equal(producer.all_jobs(), [])


class InMemory(Fence, Case):
    def server(self):
        return Server("--clock", "virtual")

    def pass_time(self, client, number):
        client.ask("advance 2")
        until(lambda: state(client, number) != "reserved", "its time to run is up")
        client.ask("kick-job %d" % number)


class OnDisk(InMemory):
    def server(self):
        return Server("--clock", "virtual", "--data", "jobs")

    def test_a_lease_lives_until_its_write_does(self):
        """A put and an end in the same write."""
        with self.server() as server, server.client() as worker:
            number = put(worker, "INSERTED", "old", " every=3600")
            reserved(worker, number, "old")
            worker.send("put-key 0 0 60 3 k every=3600\r\nnew\r\ndelete %d\r\npeek-key k\r\n" % number)
            equal([worker.answer() for _ in range(3)], ["REPLACED %d" % number, "DELETED", "FOUND %d 3|new" % number])


class WritesFail(Case):
    """A delivery whose end could not be written goes on."""

    def setUp(self):
        super().setUp()
        self.plan = Plan()

    def server(self):
        return Server("--clock", "virtual", "--data", "jobs", **self.plan.environment)

    @contextlib.contextmanager
    def full(self):
        """The disk is."""
        self.plan.set(1, FOREVER, errno.ENOSPC, WRITE | SIZE)
        yield
        self.plan.set(0)

    def test_a_delivery_that_seemed_over(self):
        with self.server() as server, server.client() as worker:
            number = put(worker, "INSERTED", "old")
            reserved(worker, number, "old")
            with self.full():
                worker.send("put-key 0 0 60 3 k\r\nnew\r\ntouch %d\r\n" % number)
                equal([worker.line() for _ in range(2)], ["OUT_OF_MEMORY"] * 2)
            with self.full():
                equal(worker.ask("delete %d" % number), "OUT_OF_MEMORY")
            equal(state(worker, number), "reserved")
            worker.ask("advance 59")
            equal(worker.ask("reserve-with-timeout 0"), "DEADLINE_SOON")
            until(lambda: worker.ask("delete %d" % number) == "DELETED", "the disk has room")
            conversation(worker, ("reserve-with-timeout 0", "TIMED_OUT"), ("delete %d" % number, "NOT_FOUND"))

    def test_a_put_and_an_end_in_the_same_write(self):
        with self.server() as server, server.client() as worker:
            number = put(worker, "INSERTED", "old")
            reserved(worker, number, "old")
            with self.full():
                worker.send("put-key 0 0 60 3 k\r\nnew\r\ndelete %d\r\n" % number)
                equal([worker.line() for _ in range(2)], ["OUT_OF_MEMORY"] * 2)
            equal(worker.ask("peek %d" % number), "FOUND %d 3|old" % number)
            until(lambda: worker.ask("delete %d" % number) != "OUT_OF_MEMORY", "the disk has room")
            equal(worker.ask("peek %d" % number), "NOT_FOUND")

    def test_a_touch_finds_that_a_delivery_is_not_over(self):
        """Its end is then that of any other: it is given back when the client leaves."""
        with self.server() as server, server.client() as producer:
            with server.client() as worker:
                number = put(worker, "INSERTED", "old")
                reserved(worker, number, "old")
                with self.full():
                    worker.send("put-key 0 0 60 3 k\r\nnew\r\ntouch %d\r\n" % number)
                    equal([worker.line() for _ in range(2)], ["OUT_OF_MEMORY"] * 2)
                equal(worker.ask("touch %d" % number), "TOUCHED")
            until(lambda: state(producer, number) == "ready", "the job is given back")
            reserved(producer, number, "old")


class InRedis(Fence, Case):
    def setUp(self):
        super().setUp()
        self.redis = Redis()
        self.addCleanup(self.redis.kill)

    def server(self):
        return self.redis.server()

    def pass_time(self, client, number):
        until(lambda: state(client, number) != "reserved", "its time to run is up")
        client.ask("kick-job %d" % number)

    def test_a_delivery_that_redis_has_lost(self):
        """Its put was saved, as by a node that takes over."""
        with self.server() as server, server.client() as worker:
            number = int(worker.put(b"old").split()[1])
            self.redis.kill()
            shutil.copytree(self.redis.folder, "saved")
            self.redis.start()
            reserved(worker, number, "old")
            self.redis.kill()
            shutil.rmtree(self.redis.folder)
            os.rename("saved", self.redis.folder)
            self.redis.start()
            equal(until(lambda: self.settled(worker, "delete %d" % number), "Redis is back"), "DELETED")
            equal(worker.ask("peek %d" % number), "NOT_FOUND")

    def settled(self, client, line):
        """The answer, once there is one."""
        answer = client.ask(line)
        return answer != "INTERNAL_ERROR" and answer


main()
