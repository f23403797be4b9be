#!/usr/bin/env python3
"""Calls that write to the store's files fail, each in turn. A command that could not be stored is answered with an error
and has not happened. The server goes on, unless a sync has failed: then it acknowledges nothing any more. After a kill
and a new start it has all that it acknowledged, and of what it did not at most the command whose sync has failed.

WW_FAULTS=all makes each call fail in every way. Otherwise the ways take turns.
"""
# tier: long
# needs: tests/weekwheeld_small
import errno
import os
import re
import shutil
import signal
import zlib

from faults import FOREVER, SIZE, SYNC, WRITE, Plan
from harness import SMALL, Case, Fsck, Server, equal, main, until

ERRORS = ("OUT_OF_MEMORY", "INTERNAL_ERROR")
WAYS = (  # a name, how many calls fail, with which error (0: half is written), and which calls
    ("ENOSPC", 1, errno.ENOSPC, WRITE | SIZE),
    ("EIO", 1, errno.EIO, WRITE | SYNC | SIZE),
    ("half a write", 1, 0, WRITE),
    ("ENOSPC from then on", FOREVER, errno.ENOSPC, WRITE | SIZE),
    ("EIO from then on", FOREVER, errno.EIO, WRITE | SYNC | SIZE),
)
# What a restart does not change in a job.
LASTING = ("id", "version", "tube", "key", "priority", "releases", "buries", "kicks", "error", "body")


def stored(client):
    """All jobs, and whether each can be delivered."""
    jobs = client.all_jobs()
    for job in jobs:
        job["body"] = "%d bytes, %x" % (job["length"], zlib.crc32(job["body"].encode()))
    return [tuple(job[name] for name in LASTING) + (job["state"].replace("reserved", "ready"),) for job in jobs]


def same(found, expected, what=""):
    assert found == expected, "%sthe store has %r and should have %r" % (
        what, [job for job in found if job not in expected], [job for job in expected if job not in found])


class Story:
    """Commands one by one, and the jobs stored after each."""

    def __init__(self, client):
        self.client = client
        self.truth = stored(client)
        self.errors = 0

    def ask(self, line, *good):
        """Return the answer, or None for an error, after which nothing has changed."""
        answer = self.client.ask(line)
        now = stored(self.client)
        if answer in ERRORS:
            self.errors += 1
            same(now, self.truth, "%r was answered by %s, and " % (line[:40], answer))
            return None
        assert re.match("|".join(good), answer), (line, answer)
        self.truth = now
        return answer

    def put(self, line):
        answer = self.ask(line, "INSERTED", "REPLACED")
        if answer:
            assert self.there(int(answer.split()[1])), line
            return int(answer.split()[1])
        return None

    def there(self, number):
        return [job for job in self.truth if job[0] == number]

    def state(self, number):
        return self.there(number)[0][-1]


def story(client):
    """Some of every command that writes. Any of them may fail."""
    told = Story(client)
    told.put("put 7 0 100 5\r\nhello")
    told.put("put-key 3 3600 100 5 key every=60\r\nlater")
    told.put("put-key 4 1800 100 6 key\r\nsooner")
    told.put(b"put 9 0 100 50000\r\n" + b"b" * 50000 + b"\r\n")
    for verb in ("release %d 5 7200", "bury %d 6", "delete %d"):
        answer = told.ask("reserve-with-timeout 0", "RESERVED", "TIMED_OUT")
        if not answer or answer == "TIMED_OUT":
            continue
        number = int(answer.split()[1])
        if not told.ask(verb % number, "RELEASED", "BURIED", "DELETED"):
            # The lease is as it was.
            equal(client.ask("touch %d" % number), "TOUCHED")
            equal(client.ask("release %d 5 0" % number) in ("RELEASED",) + ERRORS, True)
            told.truth = stored(client)
        elif verb.startswith("delete"):
            assert not told.there(number)
        elif verb.startswith("bury"):
            equal(told.state(number), "buried")
            told.ask("kick-job %d" % number, "KICKED")
    return told


def serves(server, client, may_refuse=False):
    """Whether the server goes on as if nothing had happened. If not, a sync has failed, and it refuses all."""
    answers = [client.put(b"after", tube="after")]

    def is_over():
        if answers[-1] in ERRORS and "could not be synced" not in server.get("/healthz")[1]:
            # The index tries again after a moment.
            answers.append(client.put(b"after", tube="after"))
            return False
        return True

    until(is_over, "the server goes on")
    if may_refuse and answers[-1] in ERRORS:
        assert client.put(b"again") in ERRORS and client.put(b"again") in ERRORS
        return False
    answer = answers[-1]
    assert answer.startswith("INSERTED "), "after the fault: " + answer
    equal(client.ask("delete " + answer.split()[1]), "DELETED")
    client.ask("use default")
    return True


def said_once(server):
    """The message names the file and the error."""
    found = re.findall("weekwheeld: (.*) could not be synced: Input/output error: every change is refused", server.said)
    assert len(found) == 1 and re.search(r"jobs[^/]*(/journal\.(\d+|new)|/index\.db(-wal)?)?$", found[0]), server.said


def again(data, environment, truth, fsck, is_sure=True):
    """A killed server has the same jobs after a new start; if it is not sure, but for one."""
    fsck.check(data)
    with Server("--data", data, "--http", "127.0.0.1:0", program=SMALL, **environment) as server, server.client() as client:
        found = stored(client)
        others = {job[0] for job in set(found) ^ set(truth)}
        if is_sure or len(others) > 1:
            same(found, truth)
        assert serves(server, client)


def fails_once(plan, fsck, data, sync, way, first):
    """Return whether any call failed."""
    name, times, error, what = way
    with Server("--data", data, "--sync", sync, "--http", "127.0.0.1:0", program=SMALL, **plan.environment) as server:
        with server.client() as client:
            for job in client.all_jobs():
                client.ask("delete %d" % job["id"])
            client.put(b"first", priority=1)
            client.put(b"second", priority=2)
            try:
                plan.set(first, times, error, what)
                told = story(client)
                failed = plan.failed()
                plan.set(0)
                goes_on = serves(server, client, may_refuse=what & SYNC)
                truth = stored(client)
                same(truth, told.truth)
            except (AssertionError, EOFError, OSError) as problem:
                raise AssertionError("--sync %s, %s at call %d: %r" % (sync, name, first, problem)) from problem
            finally:
                plan.set(0)
                # While the client is connected: its going would release its jobs.
                server.stop(signal.SIGKILL)
    try:
        if not goes_on:
            said_once(server)
        again(data, plan.environment, truth, fsck, is_sure=goes_on)
    except AssertionError as problem:
        raise AssertionError("--sync %s, %s at call %d, then a new start: %s" % (sync, name, first, problem)) from problem
    return failed


def each_fails(sync, step):
    plan, fsck = Plan(), Fsck()
    every = os.environ.get("WW_FAULTS") == "all"
    failures = []
    first, quiet = 1, 0
    # In each way, another call is the last one.
    while quiet < len(WAYS):
        quiet += 1
        for index, way in enumerate(WAYS):
            # Each call fails in every way, or in one whose turn it is. After the last call none fails.
            if not every and index != (first // step) % len(WAYS):
                continue
            data = "jobs"
            try:
                if fails_once(plan, fsck, data, sync, way, first):
                    quiet = 0
            except AssertionError as problem:
                quiet = 0
                failures.append(str(problem))
                shutil.rmtree(data)
        first += step if not every else 1
    print("--sync %s: %d calls" % (sync, first - 1))
    assert not failures, "%d times:\n%s" % (len(failures), "\n".join(line[:1500] for line in failures[:6]))


class Faults(Case):
    def test_each_call_fails(self):
        each_fails("always", 2)

    def test_each_call_fails_if_the_system_syncs(self):
        each_fails("system", 4)

    def test_a_sync_fails_between_writes(self):
        """With --sync interval a write is answered before it is synced. After a failed sync no write is answered well."""
        plan, fsck, data = Plan(), Fsck(), "jobs"
        with Server("--data", data, "--sync", "interval", "--sync-interval", "0.01", "--http", "127.0.0.1:0",
                    **plan.environment) as server, server.client() as client:
            told = Story(client)
            # SQLite does not tell of a folder's sync that has failed, which on a busy machine may be the first one.
            plan.set(1, FOREVER, errno.EIO, SYNC)
            # With more and more jobs to look at, each put would take longer than the last.
            puts = 0
            while told.put("put-key 0 0 100 1 key%d\r\nx" % (puts % 8)):
                puts += 1
            assert plan.failed()
            plan.set(0)
            assert not serves(server, client, may_refuse=True)
            assert client.ask("reserve-with-timeout 0") in ERRORS
            status, text = server.get("/healthz")
            equal(status, 503)
            assert re.search(r"jobs.* could not be synced: Input/output error", text), text
            server.stop(signal.SIGKILL)
        said_once(server)
        again(data, plan.environment, told.truth, fsck)

    def test_a_failed_sync_is_final(self):
        """A write that reports failure may be on the disk all the same, or be lost although the next sync succeeds."""
        plan, fsck, final = Plan(), Fsck(), 0
        for first in range(1, 1000):
            data = "jobs%d" % first
            with Server("--data", data, "--http", "127.0.0.1:0", **plan.environment) as server, server.client() as client:
                client.put(b"first")
                before = stored(client)
                plan.set(first, FOREVER, errno.EIO, WRITE | SYNC | SIZE, done=1)
                answer = client.put(b"second")
                failed = plan.failed()
                plan.set(0)
                if not failed:
                    break
                assert answer in ERRORS, (first, answer)
                same(stored(client), before, "call %d: " % first)
                final += not serves(server, client, may_refuse=True)
                server.stop(signal.SIGKILL)
            fsck.check(data)
            with Server("--data", data, **plan.environment) as server, server.client() as client:
                found = stored(client)
                same(found[:1], before, "call %d, then a new start: " % first)
                assert len(found) <= 2, found
        print("%d calls, after %d of which nothing was acknowledged" % (first - 1, final))
        assert final and first < 1000, (final, first)

    def test_each_call_of_a_start_fails(self):
        plan, fsck = Plan(), Fsck()
        for first in range(1, 1000):
            data = "jobs%d" % first
            failed = 0
            # An empty folder, and one with a job.
            for truth in ([], ["job"]):
                plan.set(first, 1, errno.EIO if first % 2 else errno.ENOSPC, WRITE | SYNC | SIZE)
                try:
                    with Server("--data", data, **plan.environment) as server:
                        server.stop(signal.SIGKILL)
                except AssertionError as error:
                    assert re.search("weekwheeld: (cannot open .*: |the disk of .* is full)", str(error)), error
                failed += plan.failed()
                plan.set(0)
                with Server("--data", data, **plan.environment) as server, server.client() as client:
                    equal([job["tube"] for job in client.all_jobs()], ["default"] * len(truth))
                    if not truth:
                        client.put()
                    server.stop(signal.SIGKILL)
                fsck.check(data)
            if not failed:
                print("a start: %d calls" % (first - 1))
                return


main()
