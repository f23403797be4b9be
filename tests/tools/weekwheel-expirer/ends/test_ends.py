#!/usr/bin/env python3
"""weekwheel-expirer --expired-to beside real Redis and weekwheeld: each end becomes a job, and no deletion does."""
# tier: check, waits
import json
import time

from expirer import EXPIRER, Expirer, Lazy
from harness import PATIENCE, Case, Server, equal, free_port, main, matches, run, stopped, until


def told(jobs, count, more=0):
    """So many jobs out of the tube, and no more: what they say, by key."""
    jobs.ask("watch ended")
    bodies = []
    while len(bodies) < count:
        answer = jobs.ask("reserve-with-timeout %d" % PATIENCE)
        matches("^RESERVED ", answer)
        bodies.append(json.loads(answer.split("|", 1)[1]))
        equal(jobs.ask("delete " + answer.split()[1]), "DELETED")
    equal(jobs.ask("reserve-with-timeout %d" % more), "TIMED_OUT")
    return {body.get("key", body.get("key_base64")): body for body in bodies}


def to(redis, port, *more):
    return Expirer(redis.url, "--expired-to", f"beanstalk://127.0.0.1:{port}/ended", *more)


def iso(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + ".%03dZ" % (ms % 1000)


class ExpiredTo(Case):
    def test_an_end_becomes_a_job_and_a_deletion_does_not(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port) as expirer:
            expirer.exact()
            redis.ask("SET", "deleted", "v", "PX", 2000)
            redis.ask("SET", "moved", "v", "PX", 500)
            redis.ask("SET", "stays", "v", "PX", 500)
            redis.ask("SET", "sess:Zoë", "v", "PX", 700)
            ends = {key: redis.ask("PEXPIRETIME", key) for key in ("moved", "sess:Zoë")}
            until(lambda: expirer.metric("known") == 4, "all are known")
            redis.ask("DEL", "deleted")
            redis.ask("PERSIST", "stays")
            ends["moved"] = ends["moved"] + 400
            redis.ask("PEXPIREAT", "moved", ends["moved"])
            bodies = told(jobs, 2)
            for key, end in ends.items():
                matches("^[0-9a-f]{16}-[0-9a-f]{16}$", bodies[key].pop("id"))
                equal(bodies[key], {"database": 0, "key": key, "value": None, "why": "expired", "deadline": iso(end)})
            until(lambda: expirer.metric("expired_to_told_total") == 2, "both are told")
            until(lambda: expirer.metric("known") == 0, "none is left")

    def test_two_expirers_make_one_job(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, \
                to(redis, other.port) as one, to(redis, other.port) as another:
            for expirer in one, another:
                expirer.exact()
            for i in range(100):
                redis.ask("SET", f"key:{i}", "v", "PX", 100 + i)
            equal(len(told(jobs, 100)), 100)
            until(lambda: one.metric("expired_to_told_total") + another.metric("expired_to_told_total") > 100, "both tell")

    def test_what_cannot_be_told_waits(self):
        port = free_port()
        with Lazy() as redis, to(redis, port) as expirer:
            expirer.exact()
            redis.ask("SET", "key", "v", "PX", 300)
            until(lambda: expirer.metric("expired_to_waiting") == 1, "it waits")
            expirer.hear("what expires waits to be told")
            with Server("--listen", f"127.0.0.1:{port}") as other, other.client() as jobs:
                equal(told(jobs, 1)["key"]["why"], "expired")

    def test_a_deletion_while_it_stood_still_may_be_an_end(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port) as expirer:
            expirer.exact()
            redis.ask("SET", "deleted", "v", "PX", 1000)
            redis.ask("SET", "ended", "v", "PX", 1000)
            redis.ask("SET", "later", "v", "PX", 2500)
            until(lambda: expirer.metric("known") == 3, "all are known")
            with stopped(expirer):
                redis.ask("DEL", "deleted")
                time.sleep(1.5)  # let the deadline pass meanwhile: there is nothing to wait for
            why = {key: body["why"] for key, body in told(jobs, 3).items()}
            equal(why, {"deleted": "gone", "ended": "gone", "later": "expired"})

    def test_a_lost_connection_leaves_nothing_out(self):
        with Lazy() as redis, Server() as other, other.client() as jobs, to(redis, other.port) as expirer:
            expirer.exact()
            for i in range(1000):
                redis.ask("SET", f"key:{i}", "v", "PX", 300 + i)
            for count in range(10):
                redis.ask("CLIENT", "KILL", "TYPE", "normal")
                expirer.exact(2 + count)
            equal(len(told(jobs, 1000)), 1000)

    def test_options_that_do_not_go_together(self):
        said = run(2, EXPIRER, "--expired-to", "beanstalk://h/t", "--only-later", "redis://127.0.0.1").err
        matches("--only-later and --expired-to exclude each other", said)


if __name__ == "__main__":
    main()
