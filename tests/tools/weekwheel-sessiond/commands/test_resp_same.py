#!/usr/bin/env python3
"""The same commands, taken at random, at weekwheel-sessiond and at Redis: answers and events are the same bytes."""
# tier: check
import os
import random
import re
import time

from sessiond import RedisServer, Sessiond, encoded
from harness import Case, equal, main, seed

OPS = int(os.environ.get("WW_RESP_OPS", "10000"))
BATCH = 50
# Answers that tell a time left: so much may lie between the two.
SLACK = {"TTL": 1, "PTTL": 2000, "EXPIRETIME": 1, "PEXPIRETIME": 2000}
KEYS = ["a", "b", "c", "key:4", "k" * 16, "k" * 17, "", b"\0\xff\r\n", "number"]
VALUES = ["", "x", "12", "-7", "9223372036854775807", "-9223372036854775808", "007", "1.5", " 1", b"\0\1\r\n", "y" * 100,
          "z" * 5000]
NUMBERS = ["0", "1", "-1", "5", "1000000", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "x", "",
           "1e3", "+1"]
# As seconds it is too much for Redis, as milliseconds only for us.
CENTURIES = "92233720368547758"
# In seconds.
YEARS = "100000000"
# No time so near that it may pass meanwhile, and none beyond a century.
TTLS = ["100", "5000", "86400", "604800", "0", "-5", "x", "", YEARS, "9223372036854775807", CENTURIES]


class Words:
    """Makes commands. Those with a moment of wall time take one that is far enough away."""

    def __init__(self, rng):
        self.rng = rng
        self.now = int(time.time())
        self.compared = 0

    def key(self):
        return self.rng.choice(KEYS)

    def cased(self, word):
        return word if self.rng.random() < 0.8 else "".join(self.rng.choice((c.lower(), c.upper())) for c in word)

    def moment(self, ms, past=True):
        """What SET lets expire at once is there in Redis until somebody looks."""
        if self.rng.random() < 0.2:
            return self.rng.choice(["0", "-1", "x", "1" if past else "", "-1" if ms else "9223372036854775807"])
        at = self.now + self.rng.choice([-1000 if past else 1000, 3600, 604800, 10 ** 9])
        return str(at * 1000 + self.rng.randrange(1000) if ms else at)

    def set_options(self):
        words = []
        for _ in range(self.rng.choice([0, 0, 1, 1, 1, 2, 3])):
            word = self.rng.choice(["EX", "PX", "EXAT", "PXAT", "KEEPTTL", "NX", "XX", "GET", "NOPE"])
            words.append(self.cased(word))
            if word in ("EX", "PX") and self.rng.random() < 0.95:
                words.append(self.ttl(word == "PX"))
            elif word in ("EXAT", "PXAT") and self.rng.random() < 0.95:
                words.append(self.moment(word == "PXAT", past=False))
        return words

    def ttl(self, ms):
        value = self.rng.choice(TTLS)
        if ms and value in TTLS[:4]:
            return value + "000"
        return "-5" if ms and value == CENTURIES else value

    def expire_options(self):
        return [self.cased(self.rng.choice(["NX", "XX", "GT", "LT", "NX", "XX", "GT", "LT", "ZZ"]))
                for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2]))]

    def expiry(self, ms):
        """A time that is compared with another is never the same: a ms between the two servers would decide."""
        time_left, options = self.ttl(ms), self.expire_options()
        if time_left in TTLS[:4] + [value + "000" for value in TTLS[:4]] + [YEARS] and options:
            self.compared += 1
            time_left = str(int(time_left) + self.compared * (1000 if ms else 1))
        return [time_left] + options

    def keys(self):
        return [self.key() for _ in range(self.rng.randrange(1, 5))]

    def pairs(self):
        words = []
        for _ in range(self.rng.randrange(1, 4)):
            words += [self.key(), self.rng.choice(VALUES)]
        return words if self.rng.random() < 0.95 else words + [self.key()]

    def getex_options(self):
        word = self.rng.choice(["EX", "PX", "EXAT", "PXAT", "PERSIST", "KEEPTTL", ""])
        if not word:
            return []
        words = [self.cased(word)]
        if word in ("EX", "PX"):
            words.append(self.ttl(word == "PX"))
        elif word in ("EXAT", "PXAT"):
            words.append(self.moment(word == "PXAT"))
        if self.rng.random() < 0.1:
            words.append("PERSIST")
        return words

    def command(self):
        rng = self.rng
        name = rng.choice(list(COMMANDS))
        words = [self.cased(name)] + COMMANDS[name](self)
        # With less or more these would tell keys in some order.
        chance = rng.random() if name not in ("SCAN", "KEYS") else 1
        if chance < 0.02 and len(words) > 1:
            words.pop()
        elif chance < 0.04:
            words.append(rng.choice(VALUES))
        return name, words

    def commands(self):
        """One, behind what it needs: a watched key that was not there may come and go unseen, as it may not in Redis."""
        name, words = self.command()
        if name != "WATCH":
            return [(name, words)]
        return [("SETNX", ["SETNX", key, "x"]) for key in words[1:]] + [(name, words)]


COMMANDS = {
    "GET": lambda w: [w.key()],
    "SET": lambda w: [w.key(), w.rng.choice(VALUES)] + w.set_options(),
    "SETEX": lambda w: [w.key(), w.ttl(False), w.rng.choice(VALUES)],
    "PSETEX": lambda w: [w.key(), w.ttl(True), w.rng.choice(VALUES)],
    "SETNX": lambda w: [w.key(), w.rng.choice(VALUES)],
    "GETEX": lambda w: [w.key()] + w.getex_options(),
    "GETDEL": lambda w: [w.key()],
    "GETSET": lambda w: [w.key(), w.rng.choice(VALUES)],
    "MGET": lambda w: w.keys(),
    "MSET": lambda w: w.pairs(),
    "MSETNX": lambda w: w.pairs(),
    "APPEND": lambda w: [w.key(), w.rng.choice(VALUES)],
    "STRLEN": lambda w: [w.key()],
    "INCR": lambda w: ["number" if w.rng.random() < 0.5 else w.key()],
    "DECR": lambda w: ["number" if w.rng.random() < 0.5 else w.key()],
    "INCRBY": lambda w: [w.key(), w.rng.choice(NUMBERS)],
    "DECRBY": lambda w: [w.key(), w.rng.choice(NUMBERS)],
    "DEL": lambda w: w.keys(),
    "UNLINK": lambda w: w.keys(),
    "EXISTS": lambda w: w.keys(),
    "TOUCH": lambda w: w.keys(),
    "TYPE": lambda w: [w.key()],
    "RENAME": lambda w: [w.key(), w.key()],
    "RENAMENX": lambda w: [w.key(), w.key()],
    "PERSIST": lambda w: [w.key()],
    "EXPIRE": lambda w: [w.key()] + w.expiry(False),
    "PEXPIRE": lambda w: [w.key()] + w.expiry(True),
    "EXPIREAT": lambda w: [w.key(), w.moment(False)] + w.expire_options(),
    "PEXPIREAT": lambda w: [w.key(), w.moment(True)] + w.expire_options(),
    "TTL": lambda w: [w.key()],
    "PTTL": lambda w: [w.key()],
    "EXPIRETIME": lambda w: [w.key()],
    "PEXPIRETIME": lambda w: [w.key()],
    "DBSIZE": lambda w: [],
    "MULTI": lambda w: [],
    "EXEC": lambda w: [],
    "DISCARD": lambda w: [],
    "WATCH": lambda w: w.keys(),
    "UNWATCH": lambda w: [],
    "PING": lambda w: w.keys()[:w.rng.randrange(3)],
    "ECHO": lambda w: [w.key()],
    "SELECT": lambda w: [w.rng.choice(["0", "0", "0", "1", "16", "-1", "x"])],
    "PUBLISH": lambda w: [w.key(), w.rng.choice(VALUES)],
    "PUBSUB": lambda w: [w.rng.choice(["NUMSUB", "NUMPAT", "NOPE"])],
    "HELLO": lambda w: [w.rng.choice(["2", "3", "3", "4", "x"]), w.rng.choice(["SETNAME", "AUTH", "NOPE"])],
    "FLUSHDB": lambda w: w.rng.choice([[], ["SYNC"], ["ASYNC"], ["NOPE"]]) if w.rng.random() < 0.2 else ["NO"],
    "OBJECT_": lambda w: w.keys(),
    "CLIENT": lambda w: w.rng.choice([["GETNAME"], ["SETNAME", "me"], ["SETNAME", "a b"], ["NOPE"], ["SETNAME", ""],
                                      ["REPLY", "x"], ["NO-EVICT", "x"]]),
    "CONFIG": lambda w: w.rng.choice([["GET", "databases"], ["GET", "nothing"], ["NOPE"], ["GET"],
                                      ["SET", "nothing", "1"], ["GET", "Notify-*"]]),
    "AUTH": lambda w: w.rng.choice([["x"], ["default", "x"], ["you", "x"], ["a", "b", "c"]]),
    "SCAN": lambda w: w.rng.choice([["x"], ["0", "COUNT", "0"], ["0", "COUNT"], ["0", "NOPE", "1"], ["0", "COUNT", "x"],
                                    ["0", "MATCH", "nothing*", "COUNT", "1000"], ["0", "TYPE", "hash", "COUNT", "1000"]]),
    "KEYS": lambda w: w.rng.choice([["nothing*"], ["key:[3-5]"], ["[^a-z]:*"], ["number"]]),
}


def is_near(names, ours, theirs):
    """Whether two answers are the same but for times left that are nearly the same."""
    slack = max((SLACK[name] for name in names if name in SLACK), default=0)
    lines = ours.split(b"\r\n"), theirs.split(b"\r\n")
    return len(lines[0]) == len(lines[1]) and all(
        a == b or (a[:1] == b[:1] == b":" and abs(int(a[1:]) - int(b[1:])) <= slack) for a, b in zip(*lines))


def short_names(name, words):
    """Without a name of a client that is longer than ours may be."""
    return name, [word[:1000] for word in words] if name in ("HELLO", "CLIENT") else words


class Pair:
    """A client of each server. In MULTI the answer of EXEC has those of several commands."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours.client(), theirs.client()
        self.queue = []

    def send(self, batch):
        data = b"".join(encoded(*words) for _, words in batch)
        self.ours.send(data)
        self.theirs.send(data)

    def compare(self, number, name, words):
        ours, theirs = self.ours.answer(), self.theirs.answer()
        if name in ("HELLO", "EXEC"):
            # They count their clients each for itself.
            ours, theirs = (re.sub(rb"\$2\r\nid\r\n:\d+", b"id", data) for data in (ours, theirs))
        if theirs == b"+QUEUED\r\n":
            self.queue.append(name)
        if not is_near(self.queue if name == "EXEC" else [name], ours, theirs):
            raise AssertionError(f"command {number}: {words}\n  ours:   {ours!r}\n  theirs: {theirs!r}")
        if name in ("EXEC", "DISCARD"):
            self.queue = []


class Same(Case):
    def check(self, protocol, number):
        rng = random.Random(number + protocol)
        words = Words(rng)
        with RedisServer() as redis, Sessiond() as server:
            pairs = [Pair(server, redis) for _ in range(3)]
            for client in (pairs[2].ours, pairs[2].theirs):
                equal(client.ask("CONFIG", "SET", "notify-keyspace-events", "KEA"), b"+OK\r\n")
                client.ask("PSUBSCRIBE", "__key*__:*")
            for pair in pairs[:2]:
                for client in (pair.ours, pair.theirs):
                    client.ask("HELLO", protocol)
            done = 0
            while done < OPS:
                # One at a time, or the order at a server would be of chance.
                pair = rng.choice(pairs[:2])
                batch = [short_names(*command) for _ in range(rng.randrange(1, BATCH)) for command in words.commands()]
                pair.send(batch)
                for name, command in batch:
                    pair.compare(done, name, command)
                    done += 1
            events = []
            for client, publisher in ((pairs[2].ours, server), (pairs[2].theirs, redis)):
                with publisher.client() as other:
                    other.ask("PUBLISH", "__key_end__:", "")
                heard = []
                while not heard or b"__key_end__" not in heard[-1]:
                    heard.append(client.answer())
                events.append(heard)
            for at, (ours, theirs) in enumerate(zip(*events)):
                equal(ours, theirs, f"event {at}, after {events[1][max(0, at - 3):at]}")
            equal(len(events[0]), len(events[1]))
            print(f"{done} commands, {len(events[0])} events")

    def test_resp2(self):
        self.check(2, seed())

    def test_resp3(self):
        self.check(3, seed())


if __name__ == "__main__":
    main()
