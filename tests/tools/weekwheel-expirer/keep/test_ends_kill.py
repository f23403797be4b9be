#!/usr/bin/env python3
"""weekwheel-expirer --data, killed again and again beside traffic: no end that it could know is missing, none is early.

WW_KILLS sets how often it is killed (8).
"""
# tier: long
import json
import os
import random
import threading
import time

from expirer import Expirer, Lazy
from harness import Case, Server, main, seed, stopped, until
from sessiond import Client, encoded

KILLS = int(os.environ.get("WW_KILLS") or 8)
KEYS = 500


def now_ms():
    return int(time.time() * 1000)


class Traffic:
    """Each key lives once. Redis and this test have the same clock."""

    def __init__(self, redis, chance):
        self.client, self.chance = Client(redis.port), chance
        self.ends, self.must, self.deleted, self.count = {}, set(), {}, 0

    def ask(self, commands):
        self.client.send(b"".join(encoded(*command) for command in commands))
        return [self.client.line() for _ in commands]

    def set(self, count):
        """Keys that end within two seconds. Returns them."""
        keys = [f"key:{self.count + i}" for i in range(count)]
        self.count += count
        self.ends.update((key, now_ms() + self.chance.randrange(300, 2000)) for key in keys)
        self.ask([("SET", key, "v", "PXAT", self.ends[key]) for key in keys])
        return keys

    def change(self, key):
        """Delete it, or move its end on. Either may come too late."""
        if self.chance.random() < 0.3:
            if self.ask([("DEL", key)]) == [b":1\r\n"]:
                self.deleted[key] = now_ms()
                self.must.discard(key)
        else:
            # An earlier one that nobody has learned before a kill nobody can tell from a deletion.
            later = self.ends[key] + self.chance.randrange(500)
            if self.ask([("PEXPIREAT", key, later)]) == [b":1\r\n"]:
                self.ends[key] = later


class Judge:
    def __init__(self, jobs, traffic):
        self.jobs, self.traffic, self.got = jobs, traffic, {}
        jobs.ask("watch ended")

    def take(self):
        while (answer := self.jobs.ask("reserve-with-timeout 0")).startswith("RESERVED "):
            self.jobs.ask("delete " + answer.split()[1])
            body = json.loads(answer.split("|", 1)[1])
            key = body["key"]
            assert key not in self.got, ("told twice", self.got[key], body)
            self.got[key] = body
            if key in self.traffic.deleted:
                # Only in the last moment before its deadline may a deletion be taken for an end.
                assert body["why"] == "gone" or self.traffic.deleted[key] >= self.traffic.ends[key], ("deleted, and told as expired", body)
            else:
                assert now_ms() > self.traffic.ends[key], ("early", self.traffic.ends[key], body)

    def missing(self):
        self.take()
        return sorted(self.traffic.must - set(self.got))


class EndsKill(Case):
    def start(self, redis, other):
        return Expirer(redis.url, "--data", "data", "--expired-to", f"beanstalk://127.0.0.1:{other.port}/ended")

    def round(self, expirer, traffic, chance):
        expirer.exact()
        # Only then does the number of known keys say that all of the new ones are.
        until(lambda: expirer.metric("known") == 0, "earlier keys have ended")
        keys = traffic.set(KEYS)
        until(lambda: expirer.metric("known") >= KEYS or now_ms() > min(traffic.ends[key] for key in keys), "all are known")
        # Which of them are known on a busy machine, when some have ended already, nobody can say.
        if expirer.metric("known") >= KEYS:
            traffic.must.update(keys)
        stop = now_ms() + chance.randrange(0, 1500)
        while now_ms() < stop:
            traffic.change(chance.choice(keys))
            time.sleep(0.002)  # traffic, and no more of it than Redis answers
        traffic.set(20)

    def test_kills(self):
        chance = random.Random(seed())
        with Lazy() as redis, Server() as other, other.client() as jobs:
            traffic = Traffic(redis, chance)
            judge = Judge(jobs, traffic)
            for _ in range(KILLS):
                with self.start(redis, other) as expirer:
                    fault = chance.random()
                    if fault < 0.3:
                        late = threading.Timer(chance.random(), redis.ask, ("CLIENT", "KILL", "TYPE", "pubsub"))
                        late.start()
                        self.round(expirer, traffic, chance)
                        late.join()
                    elif fault < 0.5:
                        with stopped(other):
                            self.round(expirer, traffic, chance)
                            expirer.kill()
                    elif fault < 0.6:
                        self.round(expirer, traffic, chance)
                        with stopped(expirer):
                            time.sleep(chance.random())  # let keys end meanwhile
                    else:
                        self.round(expirer, traffic, chance)
                    expirer.kill()
                time.sleep(chance.random() * 0.5)  # let keys end while nobody is there
                judge.take()
            with self.start(redis, other) as expirer:
                expirer.exact()
                try:
                    until(lambda: not judge.missing() and expirer.metric("known") == 0, "all ends are told")
                finally:
                    why = [body["why"] for body in judge.got.values()]
                    print(f"{traffic.count} keys, {len(traffic.deleted)} deleted, {len(judge.got)} told, of which "
                          f"{why.count('gone')} may be deletions; missing: {judge.missing()[:10]}")


if __name__ == "__main__":
    main()
