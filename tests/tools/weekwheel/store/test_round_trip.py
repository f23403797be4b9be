#!/usr/bin/env python3
"""What export writes of a store, import makes of another: list, peek and history then say of each job what they said before."""
# tier: check
import contextlib
from datetime import datetime, timezone
from decimal import Decimal

from harness import Case, Redis, Server, alone, check, equal, main, need_redis, need_server
from harness import exact_objects as objects

# A job gets another id, and time goes on.
OTHER = ("token", "id", "left")
TIMES = ("due", "created")
SPANS = ("delay", "debounced")


@contextlib.contextmanager
def directory(name):
    yield [name], lambda: Server("--data", name)


@contextlib.contextmanager
def in_redis(name):
    with Redis(folder="redis-" + name) as redis:
        yield [redis.url], redis.server


def fill(server):
    """A job in each state, whose key says which."""
    program, keep = server.program, ("--keep", "7d")

    def put(key, *options):
        said = program.run(0, "put", "--json", "--key", key, *options, f"body of {key}")
        return objects(said.out)[0]["id"]
    put("delayed", "--in", "3h", "--backoff", "5s", "--attempts", "4")
    put("ready", *keep)
    put("wall", "--at", "2099-01-01 09:00:00Z", "--group", "g")
    put("periodic", "--every", "1h", "--in", "2h", *keep)
    program.run(0, "bury", "--reason", "why", put("buried", "--in", "1h", *keep))
    program.run(0, "bury", put("kicked", "--in", "1h", *keep))
    program.run(0, "kick", "--all")
    program.run(0, "bury", "--reason", "why", put("buried", "--in", "1h", *keep))
    for _ in range(2):
        put("debounced", "--in", "1h", "--debounce", "2h")
    put("unique", "--in", "1h", "--unique", "1d")
    put("failed", "--tube", "fails", "--attempts", "3", "--backoff", "1h", *keep)
    program.run(None, "work", "--tube", "fails", "--drain", "--", "sh", "-c", "echo bad >&2; exit 3")
    put("ended", "--tube", "ends", "--unique", "1d", *keep)
    program.run(0, "work", "--tube", "ends", "--drain", "--", "cat")
    program.run(0, "limit", "few", "--running", "1", "--rate", "5/1m")
    put("limited", "--tube", "few")
    put("reserved", "--tube", "taken", "--run", "1h")


def micros(text):
    """Of a time in an export, rounded up as in Redis."""
    whole, part = text.rstrip("Z").split(".")
    return int(datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp()) * 10**6 + -(-int(part) // 1000)


def plain(job):
    said = {name: value for name, value in job.items() if name not in OTHER + TIMES + SPANS}
    said.update((name, micros(job[name])) for name in TIMES if job.get(name))
    if said.get("state") == "reserved":
        said["state"] = "ready"
    return said


def first_put(job):
    return micros(job["due"]) - int((Decimal(job["left"]) + Decimal(job["debounced"])) * 10**6)


def expect_same(before, after):
    jobs = [{job["key"]: job for job in lines if "key" in job} for lines in (before, after)]
    equal(sorted(jobs[1]), sorted(jobs[0]))
    for key, one in jobs[0].items():
        two = jobs[1][key]
        if one["state"] == "ended":
            # Nothing else is left of it.
            equal([two[name] for name in ("state", "tube", "unique", "version")], [one[name] for name in ("state", "tube", "unique", "version")])
            continue
        equal(plain(two), plain(one), key)
        check(0 <= Decimal(two["delay"]) - Decimal(one["delay"]) < Decimal("0.000001"), key)
    check(abs(first_put(jobs[1]["debounced"]) - first_put(jobs[0]["debounced"])) < 10, "the first of the debounced puts")
    equal([line for line in after if "limit" in line], [line for line in before if "limit" in line])


def go(source, target):
    with source("one") as (first, serve), target("two") as (second, serve_again):
        with serve() as server, server.client() as client:
            fill(server)
            equal(client.ask("watch taken"), "WATCHING 2")
            equal(client.ask("ignore default"), "WATCHING 1")
            equal(client.ask("reserve-with-timeout 60").split()[0], "RESERVED")
            check(len(objects(server.program.run(0, "history", "--json").out)) >= 3, "runs")
            text = alone.run(0, "export", *first).raw
        before = objects(text.decode())
        # A directory has no leases.
        check({job["state"] for job in before if "state" in job} >= {"delayed", "ready", "buried", "ended"}, "states")
        alone.run(0, "import", *second, stdin=text)
        alone.run(0, "fsck", *second)
        expect_same(before, objects(alone.run(0, "export", *second).out))
        with serve_again() as again:
            program = again.program
            listed = {job["key"]: job for job in objects(program.run(0, "list", "--json").out)}
            equal((listed["buried"]["state"], listed["buried"]["error"], "debounced" in listed["debounced"]), ("buried", "why", True))
            peeked = objects(program.run(0, "peek", "--json", listed["failed"]["id"]).out)[0]
            equal([peeked[name] for name in ("tries", "releases", "error")], [1, 1, listed["failed"]["error"]])
            # Nobody ran a job here.
            equal(program.run(0, "history", "--json").out, "")
            ended = program.run(0, "put", "--json", "--tube", "ends", "--key", "ended", "--unique", "1d", "x")
            equal(objects(ended.out)[0]["result"], "ended")


class RoundTrips(Case):
    def setUp(self):
        need_server()
        super().setUp()

    def test_from_a_directory_to_another(self):
        go(directory, directory)

    def test_from_a_directory_to_redis(self):
        need_redis()
        go(directory, in_redis)

    def test_from_redis_to_a_directory(self):
        need_redis()
        go(in_redis, directory)

    def test_from_redis_to_another(self):
        need_redis()
        go(in_redis, in_redis)


main()
