#!/usr/bin/env python3
"""Redis's clock is set forwards and backwards. Jobs come by the new time, and none is lost or early.

A redis-server gets shifted_clock.c in front of its C library. Processes that use the store (actors in store_rig.h) have
clocks that go on. A job that comes by the wrong time comes hours later, so no test depends on how long a step takes.
"""
# tier: check, waits
# needs: tests/test_redis_worker
import contextlib
import os
import struct

from harness import PATIENCE, Actor, Case, Redis, compiled, equal, main, until

SECOND = 1_000_000  # us
HOUR = 3600 * SECOND
SHARDS = 16


class SteppedRedis(Redis):
    """A Redis whose clock the test sets."""

    def __init__(self):
        self.shift = 0
        self.step(0)
        library = compiled("support/redis/shifted_clock.c", "-shared", "-fPIC")
        super().__init__(LD_PRELOAD=library, SHIFT=os.path.abspath("shift"))

    def step(self, us):
        """Set the clock, forwards or backwards."""
        self.shift += us
        # The file is mapped, so it is written in place.
        with open("shift", "r+b" if os.path.exists("shift") else "wb") as file:
            file.write(struct.pack("=q", self.shift))

    def now(self):
        seconds, us = self.ask("TIME")
        return int(seconds) * SECOND + int(us)


class Worker(Actor):
    """An actor that answers each line it is sent."""

    def __init__(self, url):
        super().__init__(url)
        equal(self.hear(), ["ok"])

    def hear(self):
        return self.process.stdout.readline().split()

    def ask(self, *words):
        self.say(*words)
        return self.hear()

    def put(self, delay, body):
        job = int(self.ask("put", "t", delay, body)[0])
        assert job > 0, job
        return job

    def wait(self, seconds=PATIENCE):
        """Id, token, attempt, end of the lease, body."""
        words = self.ask("wait", "t", seconds * 1000)
        assert words[0] == "1", f"no job came: {words}"
        return (*map(int, words[1:5]), words[5])

    def finish(self, job, token):
        return int(self.ask("finish", job, token)[0])

    def expect(self, body, attempt=1):
        job, token, tries, ends, name = self.wait()
        equal((name, tries), (body, attempt))
        return job, token, ends

    def expect_nothing(self):
        equal(self.ask("wait", "t", 0), ["0"])


@contextlib.contextmanager
def stepping():
    """A Redis whose clock the test sets, and a worker that waits for jobs."""
    with SteppedRedis() as redis, Worker(redis.url) as actor:
        # When this job comes, the worker has begun to wait.
        actor.put(SECOND // 20, "first")
        assert actor.finish(*actor.expect("first")[:2]) == 0
        yield redis, actor


class ClockSteps(Case):
    def test_after_a_step_forwards_due_jobs_come(self):
        with stepping() as (redis, actor):
            actor.put(HOUR, "far")
            actor.expect_nothing()
            redis.step(HOUR)
            job, token, _ = actor.expect("far")
            assert actor.finish(job, token) == 0

    def test_after_a_step_backwards_new_jobs_come_by_the_new_time_and_others_wait(self):
        with stepping() as (redis, actor):
            actor.put(HOUR, "later")
            redis.step(-2 * HOUR)
            due = redis.now() + SECOND
            actor.put(SECOND, "soon")
            job, token, ends = actor.expect("soon")
            assert redis.now() >= due, "soon was early"
            assert ends >= due, "its lease began before it was due"
            assert actor.finish(job, token) == 0
            actor.expect_nothing()
            redis.step(3 * HOUR)
            job, token, _ = actor.expect("later")
            assert actor.finish(job, token) == 0

    def test_a_lease_ends_by_the_new_time_and_its_token_is_stale(self):
        with stepping() as (redis, actor):
            actor.put(0, "held")
            job, token, _ = actor.expect("held")
            redis.step(HOUR)
            again, later, _ = actor.expect("held", 2)
            assert again == job and later > token
            assert actor.finish(job, token) == -9
            # A clock that goes back does not end it sooner.
            redis.step(-HOUR)
            actor.expect_nothing()
            assert actor.finish(job, later) == 0

    def test_tokens_grow_while_time_goes_back(self):
        with stepping() as (redis, actor):
            highest = {}
            for turn in range(3):
                for i in range(SHARDS):
                    actor.put(0, f"{turn}-{i}")
                for _ in range(SHARDS):
                    job, token, *_ = actor.wait()
                    assert token > highest.get(job % SHARDS, 0), f"token {token} of shard {job % SHARDS} in turn {turn}"
                    highest[job % SHARDS] = token
                    assert actor.finish(job, token) == 0
                redis.step(-HOUR)
            assert len(highest) == SHARDS, "not all shards had jobs"

    def test_shards_of_a_dead_process_are_taken_over_although_its_time_is_ahead(self):
        with stepping() as (redis, actor), Worker(redis.url) as other:
            until(lambda: actor.ask("stats")[:2] == [str(SHARDS // 2), "2"], "two share the shards")
            other.kill()
            redis.step(-2 * HOUR)
            until(lambda: actor.ask("stats")[:2] == [str(SHARDS), "1"], "one has all shards")
            for i in range(SHARDS):
                actor.put(SECOND // 10, f"j{i}")
            for _ in range(SHARDS):
                job, token, *_ = actor.wait()
                assert actor.finish(job, token) == 0


main()
