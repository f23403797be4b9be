#!/usr/bin/env python3
"""weekwheel-expirer --expired-to beside real Redis and weekwheeld: each end becomes a job, and no deletion does."""
# tier: check, waits
import json
import os
import re
import time

from expirer import EXPIRER, Expirer, Lazy, told
from harness import Case, Server, check, compiled, equal, free_port, main, matches, run, stopped, until
from masters import LazyCluster


def to(redis, port, *more, **env):
    return Expirer(redis.url, "--expired-to", f"beanstalk://127.0.0.1:{port}/ended", *more, **env)


def now_ms(redis):
    seconds, microseconds = map(int, redis.ask("TIME"))
    return seconds * 1000 + microseconds // 1000


def iso(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + ".%03dZ" % (ms % 1000)


def all_expired(expirer, bodies):
    """They have surely expired, unless this machine was too busy to tell."""
    check({body["why"] for body in bodies} <= {"expired", *(["gone"] if expirer.metric("doubts_total") else [])}, bodies)


class ExpiredTo(Case):
    def test_an_end_becomes_a_job_and_a_deletion_does_not(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port) as expirer:
            expirer.exact()
            redis.ask("SET", "deleted", "v", "PX", 3000)
            redis.ask("SET", "moved", "v", "PX", 2000)
            redis.ask("SET", "stays", "v", "PX", 2000)
            redis.ask("SET", "sess:Zoë", "v", "PX", 2200)
            ends = {key: redis.ask("PEXPIRETIME", key) for key in ("moved", "sess:Zoë")}
            until(lambda: expirer.metric("known") == 4, "all are known")
            redis.ask("DEL", "deleted")
            redis.ask("PERSIST", "stays")
            ends["moved"] = ends["moved"] + 400
            redis.ask("PEXPIREAT", "moved", ends["moved"])
            bodies = told(jobs, 2)
            all_expired(expirer, bodies.values())
            for key, end in ends.items():
                matches("^[0-9a-f]{16}-[0-9a-f]{16}$", bodies[key].pop("id"))
                bodies[key].pop("why")
                equal(bodies[key], {"database": 0, "key": key, "value": None, "deadline": iso(end)})
            until(lambda: expirer.metric("expired_to_told_total") == 2, "both are told")
            until(lambda: expirer.metric("known") == 0, "none is left")

    def test_two_expirers_make_one_job(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, \
                to(redis, other.port) as one, to(redis, other.port) as another:
            for expirer in one, another:
                expirer.exact()
            for i in range(100):
                redis.ask("SET", f"key:{i}", "v", "PX", 2000 + i)
            equal(len(told(jobs, 100)), 100)
            until(lambda: one.metric("expired_to_told_total") + another.metric("expired_to_told_total") > 100, "both tell")

    def test_a_mass_deletion_is_no_expiry(self):
        """Redis tells all of it in one message, whose end comes after the answers to what was asked meanwhile."""
        every = "for i = 1, 40000 do redis.call(%s) end"
        name = "'key:' .. i .. string.rep('x', 40)"
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port) as expirer:
            expirer.exact()
            redis.ask("EVAL", every % f"'SET', {name}, 'v', 'PX', 6000 + i % 1000", "0")
            until(lambda: redis.ask("PTTL", "key:1000" + 40 * "x") < 50, "the first deadlines are near")
            redis.ask("EVAL", every % f"'UNLINK', {name}", "0")
            deleted = now_ms(redis)
            until(lambda: expirer.metric("known") == 0, "none is left")
            until(lambda: expirer.metric("expired_to_waiting") == 0, "all are told")
            jobs.ask("watch ended")
            while (answer := jobs.ask("reserve-with-timeout 0")).startswith("RESERVED"):
                body = json.loads(answer.split("|", 1)[1])
                if body["deadline"] > iso(deleted):
                    equal(body["why"], "gone")
                jobs.ask("delete " + answer.split()[1])

    def test_a_message_that_arrives_in_pieces_around_the_deadline(self):
        """The keys are due while a part of it is there. The rest comes before Redis's answer, or after."""
        if os.environ.get("SANITIZE"):
            self.skipTest("a sanitizer has to be the first that is loaded")
        shim = compiled("support/redis/short_reads.c", "-shared", "-fPIC", "-ldl")
        with Lazy() as redis, Server() as other, other.client() as jobs, \
                to(redis, other.port, LD_PRELOAD=shim, SHORT_READS="3000") as expirer:
            expirer.exact()
            jobs.ask("watch ended")
            for count in 60, 110, 160, 210:
                names = [f"{count}:{i}" + 40 * "x" for i in range(count)]
                at = now_ms(redis) + 1500
                redis.ask("EVAL", "for _, key in ipairs(KEYS) do redis.call('SET', key, 'v', 'PXAT', ARGV[1]) end",
                          str(count), *names, str(at))
                until(lambda count=count: expirer.metric("known") == count, "all are known")
                until(lambda at=at: now_ms(redis) > at - 200, "the deadline is near")
                with stopped(expirer):
                    redis.ask("UNLINK", *names)
                    is_before = now_ms(redis) < at
                    until(lambda at=at: now_ms(redis) > at + 50, "the deadline is over")
                until(lambda: expirer.metric("known") == 0, "none is left")
                until(lambda: expirer.metric("expired_to_waiting") == 0, "all are told")
                while (answer := jobs.ask("reserve-with-timeout 0")).startswith("RESERVED"):
                    equal(json.loads(answer.split("|", 1)[1])["why"] == "gone" or not is_before, True, (count, answer))
                    jobs.ask("delete " + answer.split()[1])

    def test_what_cannot_be_told_waits(self):
        port = free_port()
        with Lazy() as redis, to(redis, port) as expirer:
            expirer.exact()
            redis.ask("SET", "key", "v", "PX", 2000)
            until(lambda: expirer.metric("expired_to_waiting") == 1, "it waits")
            expirer.hear("expiries wait to be reported")
            with Server("--listen", f"127.0.0.1:{port}") as other, other.client() as jobs:
                all_expired(expirer, told(jobs, 1).values())

    def test_a_value_is_read_before_the_end(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, \
                to(redis, other.port, "--with-value", "2s", "--most-value", "10") as expirer:
            expirer.exact()
            redis.ask("SET", "text", "Zoë")
            redis.ask("SET", "empty", "")
            redis.ask("SET", "long", "x" * 11)
            redis.ask("SET", "longest", "x" * 10)
            redis.ask("HSET", "hash", "field", "v")
            keys = ["text", "empty", "long", "longest", "hash"]
            at = redis.ask("TIME")
            at = int(at[0]) * 1000 + int(at[1]) // 1000 + 4000
            for key in keys:
                redis.ask("PEXPIREAT", key, at)
            bodies = told(jobs, len(keys))
            for key, value in ("text", "Zoë"), ("empty", ""), ("longest", "x" * 10):
                equal(bodies[key]["value"], value)
                assert iso(at - 2001) <= bodies[key]["value_as_of"] < iso(at), bodies[key]
            equal([bodies[key]["value"] for key in ("long", "hash")], [None, None])
            equal([bodies[key]["type"] for key in ("long", "hash")], ["string", "hash"])
            equal(expirer.metric("values_unread_total"), 0)
            # It lives for less than the lead, and is read all the same.
            redis.ask("SET", "short", "v", "PX", 1900)
            until(lambda: redis.ask("EXISTS", "short") == 0 or expirer.metric("known") == 1, "it is known, or has ended")
            bodies = told(jobs, 1) if expirer.metric("known") else {}
            equal([body["value"] for body in bodies.values() if expirer.metric("values_unread_total") == 0], ["v"] * len(bodies))

    def test_a_value_that_changes_before_the_end_is_read_again(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port, "--with-value", "60s") as expirer:
            def is_read(times):
                calls = re.search(r"cmdstat_getrange:calls=(\d+)", redis.ask("INFO", "commandstats"))
                return calls and int(calls[1]) >= times

            expirer.exact()
            redis.ask("CONFIG", "RESETSTAT")
            redis.ask("SET", "key", "old", "PX", 5000)
            until(lambda: is_read(1), "the value is read")
            redis.ask("SETRANGE", "key", "0", "new")
            until(lambda: is_read(2), "the value is read again")
            equal(told(jobs, 1)["key"]["value"], "new")

    def test_without_the_right_to_read_there_is_no_value(self):
        with Lazy() as redis, Server() as other, other.client() as jobs:
            redis.ask("ACL", "SETUSER", "default", "-getrange", "-type")
            with to(redis, other.port, "--with-value", "50ms") as expirer:
                expirer.exact()
                redis.ask("SET", "key", "v", "PX", 2000)
                body = told(jobs, 1)["key"]
                equal((body["value"], "type" in body), (None, False))
                equal(expirer.metric("values_unread_total"), 1)

    def test_a_window_makes_no_difference(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port, "--window", "1s") as expirer:
            expirer.exact()
            for i in range(100):
                redis.ask("SET", f"key:{i}", "v", "PX", 2500 + 10 * i)
            redis.ask("SET", "later", "v", "EX", 1000)
            # Why they ended is not certain: a page of its own passes may look at a key in its last moment.
            equal(len(told(jobs, 100)), 100)
            until(lambda: expirer.metric("known") == 0, "none is left")
            check(expirer.metric("passes_total") > 2, "it has gone through all keys again and again")

    def test_a_deletion_while_it_stood_still_may_be_an_end(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port) as expirer:
            expirer.exact()
            redis.ask("SET", "deleted", "v", "PX", 2000)
            redis.ask("SET", "ended", "v", "PX", 2000)
            redis.ask("SET", "later", "v", "PX", 5000)
            until(lambda: expirer.metric("known") == 3, "all are known")
            with stopped(expirer):
                redis.ask("DEL", "deleted")
                time.sleep(2.5)  # let the deadline pass meanwhile: there is nothing to wait for
            bodies = told(jobs, 3)
            equal([bodies[key]["why"] for key in ("deleted", "ended")], ["gone", "gone"])
            check(expirer.metric("doubts_total") > 0, "that is counted")

    def test_a_lost_connection_leaves_nothing_out(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port) as expirer:
            expirer.exact()
            for i in range(1000):
                redis.ask("SET", f"key:{i}", "v", "PX", 3000 + i)
            for count in range(10):
                redis.ask("CLIENT", "KILL", "TYPE", "normal")
                expirer.exact(2 + count)
            equal(len(told(jobs, 1000)), 1000)

    def test_a_cluster(self):
        with LazyCluster() as cluster, Server() as other, other.client() as jobs:
            with to(cluster, other.port, "--with-value", "1s") as expirer:
                expirer.exact(3)
                for i in range(60):
                    cluster.ask(f"key:{i}", ("SET", f"key:{i}", f"v{i}", "PX", 2000 + i))
                bodies = told(jobs, 60)
                equal({key: body["value"] for key, body in bodies.items()}, {f"key:{i}": f"v{i}" for i in range(60)})
                all_expired(expirer, bodies.values())

    def test_options_that_do_not_go_together(self):
        said = run(2, EXPIRER, "--expired-to", "beanstalk://h/t", "--only-later", "redis://127.0.0.1").err
        matches("--only-later and --expired-to exclude each other", said)


if __name__ == "__main__":
    main()
