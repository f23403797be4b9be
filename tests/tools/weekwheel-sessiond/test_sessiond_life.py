#!/usr/bin/env python3
"""weekwheel-sessiond: deadlines and lifetimes on a virtual clock, the bound of memory, passwords."""
# tier: check, waits
import os
import re
import signal
import time
import unittest

from sessiond import SESSIOND, RedisServer, Sessiond, encoded
from harness import Case, check, equal, main, matches, need_program, run, until

HOUR = 3600
OK = b"+OK\r\n"
NULL = b"$-1\r\n"


def bulk(text):
    return b"$%d\r\n%s\r\n" % (len(text), text.encode())


def number(answer):
    assert answer[:1] == b":", answer
    return int(answer[1:])


def advance(client, seconds):
    equal(client.ask("ADVANCE", int(seconds * 1000)), OK)


def message(channel, text, pattern=None):
    words = ["pmessage", pattern, channel, text] if pattern else ["message", channel, text]
    return b"*%d\r\n" % len(words) + b"".join(bulk(word) for word in words)


class Deadlines(Case):
    def test_expiry_is_told_in_its_millisecond_with_the_value(self):
        with Sessiond("--clock", "virtual") as server, server.client() as a, server.client() as b:
            equal(a.ask("CONFIG", "SET", "notify-keyspace-events", "KEx"), OK)
            for pattern in ("__keyspace*", "__keyevent*", "__expired*"):
                b.ask("PSUBSCRIBE", pattern)
            equal(a.ask("SELECT", 3) + a.ask("SET", "a", "cart", "PX", 1000), OK + OK)
            advance(a, 0.999)
            equal(number(a.ask("PTTL", "a")), 1)
            advance(a, 0.001)
            # What b is asked comes behind what it was told before.
            b.send(encoded("PING"))
            told = [b.answer() for _ in range(4)]
            equal(told[:3], [message("__keyspace@3__:a", "expired", "__keyspace*"),
                             message("__keyevent@3__:expired", "a", "__keyevent*"),
                             message("__expired@3__:a", "cart", "__expired*")])
            equal(a.ask("GET", "a"), NULL)

    def test_a_value_is_given_or_told(self):
        """On the real clock, asked for when it expires: none is both, and none is neither."""
        ways = [["GETDEL"], ["GETEX", "EX", 100000], ["GETEX", "PERSIST"], ["GETSET", "new"], ["SET", "new", "GET"]]
        with Sessiond() as server, server.client() as a, server.client() as b:
            b.ask("PSUBSCRIBE", "__expired@*")
            for turn in range(60):
                name, *options = ways[turn % len(ways)]
                keys = [f"{turn}:{i}" for i in range(1000)]
                a.send(b"".join(encoded("SET", key, "v", "PX", 1 + turn % 6) for key in keys) +
                       b"".join(encoded(name, key, *options) for key in keys))
                equal({a.answer() for _ in keys}, {OK})
                given = {key for key in keys if a.answer() != NULL}
                left = set(keys) - given
                while left:
                    key = b.answer().split(b"__:")[1].split(b"\r\n")[0].decode()
                    check(key in left, (name, key))
                    left.remove(key)

    def test_a_thousand_of_one_deadline_beside_others(self):
        with Sessiond("--clock", "virtual") as server, server.client() as a, server.client() as b:
            equal(a.ask("CONFIG", "SET", "notify-keyspace-events", "Ex"), OK)
            b.ask("SUBSCRIBE", "__keyevent@0__:expired")
            for first in range(0, 10000, 1000):
                a.send(b"".join(encoded("SET", f"other:{i}", "x", "EX", 1000 + i) for i in range(first, first + 1000)))
                equal({a.answer() for _ in range(1000)}, {OK})
            a.send(b"".join(encoded("SET", f"same:{i}", "x", "EX", 60) for i in range(1000)))
            equal({a.answer() for _ in range(1000)}, {OK})
            advance(a, 60)
            told = {b.answer() for _ in range(1000)}
            equal(told, {message("__keyevent@0__:expired", f"same:{i}") for i in range(1000)})
            equal(number(a.ask("DBSIZE")), 10000)

    def test_a_key_that_has_expired_is_not_counted(self):
        """From the moment in which nobody finds it: the driver may be late."""
        asked = encoded("EXISTS", "a") + encoded("DBSIZE") + encoded("INFO", "keyspace")
        with Sessiond() as server, server.client() as a:
            for _ in range(300):
                a.send(encoded("SET", "a", "x", "PX", 1) + 100 * asked)
                answers = [a.answer() for _ in range(301)][1:]
                for there, size, info in zip(answers[0::3], answers[1::3], answers[2::3]):
                    assert number(there) or (number(size) == 0 and b"db0" not in info), (there, size, info)

    def test_info_knows_how_many_keys_expire(self):
        line = lambda client: client.ask("INFO", "keyspace").decode().split("\r\n", 2)[2].replace("\r\n", " ").split()
        with Sessiond("--clock", "virtual") as server, server.client() as a:
            for number_of in range(30):
                a.ask("SET", number_of, "x", *(("EX", 100 + number_of % 2 * 200) if number_of < 20 else ()))
            a.ask("SELECT", 2)
            a.ask("SET", "a", "x")
            equal(line(a), ["db0:keys=30,expires=20,avg_ttl=200000", "db2:keys=1,expires=0,avg_ttl=0"])
            a.ask("EXPIRE", "a", 50)
            equal(line(a)[1], "db2:keys=1,expires=1,avg_ttl=50000")
            advance(a, 200)
            equal(line(a), ["db0:keys=20,expires=10,avg_ttl=100000"])
            a.ask("FLUSHALL")
            # Of many it is an estimate, unless all are the same.
            a.send(b"".join(encoded("SET", i, "x", "EX", 1000) for i in range(20000)))
            equal({a.answer() for _ in range(20000)}, {OK})
            equal(line(a), ["db2:keys=20000,expires=20000,avg_ttl=1000000"])
            a.send(b"".join(encoded("PERSIST", i) for i in range(0, 20000, 2)))
            equal({a.answer() for _ in range(10000)}, {b":1\r\n"})
            check(8000 < int(re.search("expires=(\\d+)", line(a)[0])[1]) < 12000, line(a))

    def test_each_key_can_be_the_random_one(self):
        for count, more in (1, 0), (10, 0), (64, 0), (10, 300):
            with Sessiond() as server, server.client() as a:
                # Those that are deleted leave gaps.
                a.send(b"".join(encoded("SET", i, "x") for i in range(count + more)) +
                       b"".join(encoded("DEL", i) for i in range(more)) + 3000 * encoded("RANDOMKEY"))
                equal([a.answer() for _ in range(count + 2 * more)][:1], [OK])
                equal({a.answer() for _ in range(3000)}, {bulk(str(i)) for i in range(more, count + more)})
                a.ask("FLUSHALL")
                equal(a.ask("RANDOMKEY"), NULL)

    def test_keys_without_a_deadline_stay(self):
        with Sessiond("--clock", "virtual") as server, server.client() as a:
            a.ask("SET", "a", "x")
            a.ask("SET", "b", "x", "EX", 40 * 365 * 86400)
            a.ask("SET", "c", "x", "EX", 40 * 365 * 86400)
            equal(a.ask("PERSIST", "c"), b":1\r\n")
            advance(a, 39 * 365 * 86400)
            equal([number(a.ask("TTL", key)) for key in "abc"], [-1, 365 * 86400, -1])
            advance(a, 366 * 86400)
            equal([number(a.ask("TTL", key)) for key in "abc"], [-1, -2, -1])


class Lifetimes(Case):
    def test_touches_move_the_idle_deadline_only(self):
        with Sessiond("--clock", "virtual", "--lifetime", "1h") as server, server.client() as a:
            equal(a.ask("SET", "a", "1", "EX", 1800), OK)
            advance(a, 1700)
            equal(a.ask("EXPIRE", "a", 1800), b":1\r\n")
            equal(number(a.ask("TTL", "a")), 1800)
            advance(a, 1700)
            equal(a.ask("GETEX", "a", "EX", 1800), bulk("1"))
            equal(number(a.ask("TTL", "a")), 200)
            equal(a.ask("INCR", "a") + a.ask("APPEND", "a", "5") + a.ask("SET", "a", "7", "KEEPTTL"), b":2\r\n:2\r\n" + OK)
            equal(a.ask("RENAME", "a", "b") + a.ask("PEXPIRE", "b", 10 ** 9), OK + b":1\r\n")
            advance(a, 199)
            equal(a.ask("GET", "b"), bulk("7"))
            advance(a, 1)
            equal(a.ask("GET", "b"), NULL)

    def test_a_set_begins_a_lifetime(self):
        with Sessiond("--clock", "virtual", "--lifetime", "1h") as server, server.client() as a:
            a.ask("SET", "a", "1", "EX", 7200)
            a.ask("SET", "b", "1")
            a.ask("SET", "c", "1", "EX", 7200, "LIFETIME", 9000)
            a.ask("SET", "d", "1", "LIFETIME", 60)
            equal([number(a.ask("TTL", key)) for key in "abcd"], [3600, -1, 7200, 60])
            advance(a, 59)
            a.ask("SET", "a", "2", "EX", 7200)
            equal(a.ask("EXPIRE", "d", 100), b":1\r\n")
            equal([number(a.ask("TTL", key)) for key in "abcd"], [3600, -1, 7141, 1])
            equal(a.ask("EXPIRE", "c", 20000) + a.ask("PERSIST", "d"), b":1\r\n:1\r\n")
            equal([number(a.ask("TTL", key)) for key in "cd"], [8941, 1])

    def test_a_set_may_keep_a_lifetime(self):
        with Sessiond("--clock", "virtual", "--lifetime", "1h", "--keep-lifetimes") as server, server.client() as a:
            a.ask("SET", "a", "1", "EX", 1800)
            a.ask("SETEX", "b", 1800, "1")
            a.ask("SET", "c", "1", "EX", 1800)
            a.ask("SET", "d", "1")
            advance(a, 1700)
            a.ask("SET", "a", "2", "EX", 1800)
            a.ask("SETEX", "b", 1800, "2")
            advance(a, 1700)
            a.ask("SET", "a", "3", "EX", 1800)
            a.ask("SETEX", "b", 1800, "3")
            # One that is new, and one that had no lifetime to go on with.
            a.ask("SET", "c", "1", "EX", 1800)
            a.ask("SET", "d", "1", "EX", 7200)
            equal([number(a.ask("TTL", key)) for key in "abcd"], [200, 200, 1800, 3600])
            a.ask("SET", "a", "4", "EX", 1800, "LIFETIME", 900)
            a.ask("SET", "d", "4", "KEEPTTL", "LIFETIME", 60)
            equal([number(a.ask("TTL", key)) for key in "ad"], [900, 60])

    def test_keepttl_with_another_lifetime(self):
        """The idle deadline stays, or begins anew where the former lifetime would have ended before it."""
        for keeps in ([], ["--keep-lifetimes"]):
            with Sessiond("--clock", "virtual", "--lifetime", "600s", *keeps) as server, server.client() as a:
                for key, time in (("before", 500), ("behind", 900), ("none", 0)):
                    equal(a.ask("SET", key, "1", *(["EX", time] if time else ["LIFETIME", 600])), OK)
                advance(a, 400)
                for key in "before", "behind", "none":
                    equal(a.ask("SET", key, "2", "KEEPTTL", "LIFETIME", 1000), OK)
                equal([number(a.ask("TTL", key)) for key in ("before", "behind", "none")], [100, 900, 1000])
                # The same pace, and the end of the lifetime that was given.
                advance(a, 50)
                equal([number(a.ask("EXPIRE", key, 5000)) for key in ("before", "behind")], [1, 1])
                equal([number(a.ask("TTL", key)) for key in ("before", "behind")], [950, 950])
                equal(a.ask("SET", "behind", "3", "KEEPTTL", "LIFETIME", 10), OK)
                equal(number(a.ask("TTL", "behind")), 10)

    def test_keepttl_with_another_lifetime_after_a_crash(self):
        options = ["--data", "data", "--lifetime", "600s", "--clock"]
        with Sessiond(*options, "virtual") as server, server.client() as a:
            equal(a.ask("SET", "a", "1", "EX", 900), OK)
            advance(a, 400)
            equal(a.ask("SET", "a", "2", "KEEPTTL", "LIFETIME", 1000), OK)
            server.stop(signal.SIGKILL)
        with Sessiond(*options, "virtual:100") as server, server.client() as a:
            # 800, and at most the sixteenth of its time that a crash adds.
            check(800 <= number(a.ask("TTL", "a")) <= 857, "as long as was said")

    # What a request does that has read the session before its end, and the answer: as if it had then ended at once.
    LATE = {"set": (["SET", "set", "late", "EX", 1800], OK), "setex": (["SETEX", "setex", 1800, "late"], OK),
            "psetex": (["PSETEX", "psetex", 1800000, "late"], OK), "plain": (["SET", "plain", "late"], OK),
            "get": (["SET", "get", "late", "GET"], NULL),
            "nxget": (["SET", "nxget", "late", "NX", "GET"], b"-ERR the lifetime of the key has just ended\r\n"), "keepttl": (["SET", "keepttl", "late", "KEEPTTL"], OK),
            "xx": (["SET", "xx", "late", "XX"], NULL), "nx": (["SET", "nx", "late", "NX", "EX", 1800], NULL),
            "setnx": (["SETNX", "setnx", "late"], b":0\r\n"), "getset": (["GETSET", "getset", "late"], NULL),
            "mset": (["MSET", "mset", "late"], OK), "msetnx": (["MSETNX", "new", "new", "msetnx", "late"], b":0\r\n"),
            "append": (["APPEND", "append", "late"], b":4\r\n"), "incr": (["INCR", "incr"], b":1\r\n"),
            "rename": (["RENAME", "other", "rename"], OK), "renamenx": (["RENAMENX", "third", "renamenx"], b":0\r\n"),
            "getex": (["GETEX", "getex", "EX", 1800], NULL), "expire": (["EXPIRE", "expire", 1800], b":0\r\n")}

    def live_to_the_end(self, client, keys, end=3600):
        """Keys in use, from now until their lifetimes have ended."""
        for key in keys:
            equal(client.ask("SETEX", key, 1800, "1"), OK)
        for _ in range(end // 900):
            for key in keys:
                equal(client.ask("SETEX", key, 1800, "2"), OK)
            advance(client, 900)
        equal(client.ask("EXISTS", *keys), b":0\r\n")

    def test_a_late_write_does_not_bring_back_what_has_ended(self):
        with Sessiond("--clock", "virtual", "--lifetime", "1h", "--keep-lifetimes") as server, server.client() as a, \
                server.client() as b:
            self.live_to_the_end(a, self.LATE)
            a.ask("CONFIG", "SET", "notify-keyspace-events", "EA")
            b.ask("PSUBSCRIBE", "__*")
            # In a transaction, and not.
            for together in (False, True):
                a.ask("MSET", "other", "x", "third", "x")
                equal(len([b.answer() for _ in range(2)]), 2)
                if together:
                    a.ask("MULTI")
                    a.send(b"".join(encoded(*words) for words, _ in self.LATE.values()))
                    equal({a.answer() for _ in self.LATE}, {b"+QUEUED\r\n"})
                    equal(a.ask("EXEC"), b"*%d\r\n" % len(self.LATE) + b"".join(answer for _, answer in self.LATE.values()))
                else:
                    for name, (words, answer) in self.LATE.items():
                        equal((name, a.ask(*words)), (name, answer))
                equal(a.ask("EXISTS", "new", "other", *self.LATE) + a.ask("EXISTS", "third"), b":0\r\n:1\r\n")
                # Nobody hears of a key that was set, or has expired once more, but of the one that was to be renamed.
                matches(rb"__keyevent@0__:del\r\n\$5\r\nother", b.answer())
                advance(a, 20)
            equal(a.ask("SET", "set", "new", "LIFETIME", 60, "EX", 20), OK)
            equal(a.ask("SET", "nx", "new", "LIFETIME", 60, "NX"), OK)
            equal([number(a.ask("TTL", key)) for key in ("set", "nx")], [20, 60])
            advance(a, 19.999)
            equal(a.ask("SET", "plain", "late") + a.ask("EXISTS", "plain"), OK + b":0\r\n")
            advance(a, 0.001)
            equal(a.ask("SETEX", "plain", 1800, "new") + a.ask("TTL", "plain"), OK + b":1800\r\n")
            equal(a.ask("EXPIRE", "plain", 9999) + a.ask("TTL", "plain"), b":1\r\n:3600\r\n")

    def test_a_late_write_of_what_was_idle_goes_on_with_its_lifetime(self):
        """Or somebody with a cookie could begin a lifetime whenever he likes, by a request that is slow."""
        with Sessiond("--clock", "virtual", "--lifetime", "1h", "--keep-lifetimes") as server, server.client() as a:
            for _ in range(2):
                for key in "abcd":
                    a.ask("SETEX", key, 20, "1")
                advance(a, 20)
                a.ask("SETEX", "a", 9999, "2")
                a.ask("MSET", "b", "2")
                equal(a.ask("EXPIRE", "b", 9999), b":1\r\n")
                # These know that there is none: it is another key, as of a lock or a counter.
                equal(a.ask("SET", "c", "2", "NX", "EX", 9999) + a.ask("INCR", "d") + a.ask("EXPIRE", "d", 9999), OK + 2 * b":1\r\n")
                equal([number(a.ask("TTL", key)) for key in "abcd"], [3580, 3580, 3600, 3600])
                a.ask("DEL", *"abcd")
            # What was deleted begins anew, and so does what was idle for longer.
            a.ask("SETEX", "b", 20, "1")
            advance(a, 80)
            a.ask("SETEX", "b", 9999, "1")
            equal(number(a.ask("TTL", "b")), 3600)

    def test_how_long_it_stays_ended(self):
        for options, stays in ((["--lifetime", "1h"], 0), (["--lifetimes", "--stay-ended", "10s"], 10),
                               (["--lifetime", "1h", "--stay-ended", "10s"], 10),
                               (["--lifetime", "1h", "--keep-lifetimes", "--stay-ended", "0"], 0),
                               (["--lifetimes", "--keep-lifetimes"], 60)):
            with Sessiond("--clock", "virtual", *options) as server, server.client() as a:
                a.ask("SET", "a", "1", "LIFETIME", 100)
                advance(a, 100)
                if stays:
                    advance(a, stays - 1)
                    equal(a.ask("SET", "a", "1") + a.ask("EXISTS", "a"), OK + b":0\r\n")
                    advance(a, 1)
                equal(a.ask("SET", "a", "1") + a.ask("EXISTS", "a"), OK + b":1\r\n")
        bad = run(2, SESSIOND, "--stay-ended", "1m")
        matches("--stay-ended is for --lifetime TIME: give that too", bad.err)

    def test_on_the_real_clock_none_comes_back(self):
        """Written again and again, from two sides, while its lifetime ends: the driver is late, and the keys are many."""
        with Sessiond("--lifetime", "300ms", "--keep-lifetimes") as server, server.client() as a, server.client() as b:
            keys = [f"sess:{i}" for i in range(3000)]
            writes = b"".join(encoded("SETEX", key, 100, "x") for key in keys)
            began = time.monotonic()
            rounds = 0
            while time.monotonic() < began + 1.5 or rounds < 3:
                for client in a, b:
                    client.send(writes)
                for client in a, b:
                    equal({client.answer() for _ in keys}, {OK})
                rounds += time.monotonic() > began + 0.8
            equal(a.ask("EXISTS", *keys), b":0\r\n")
            equal(re.search(rb"expired_keys:(\d+)", a.ask("INFO", "stats"))[1], b"3000")

    def test_a_set_without_a_time_keeps_a_lifetime(self):
        """Some libraries write so, and then give the time, or never."""
        sets = {"set": ["SET", "set", "2"], "getset": ["GETSET", "getset", "2"], "mset": ["MSET", "mset", "2"],
                "xx": ["SET", "xx", "2", "XX", "GET"]}
        for own in ["--lifetime", "1h"], ["--lifetimes"]:
            with Sessiond("--clock", "virtual", *own, "--keep-lifetimes") as server, server.client() as a:
                for key, words in sets.items():
                    a.ask("SET", key, "1", "EX", 3000, "LIFETIME", 3600)
                advance(a, 2000)
                for key, words in sets.items():
                    a.ask(*words)
                    equal((key, number(a.ask("TTL", key))), (key, 1600))
                    equal(a.ask("EXPIRE", key, 1000) + a.ask("EXPIRE", key, 9999), b":1\r\n:1\r\n")
                    equal((key, number(a.ask("TTL", key))), (key, 1600))
                # There is none to keep.
                equal(a.ask("SET", "new", "1") + a.ask("SET", "new", "2"), OK + OK)
                equal(number(a.ask("TTL", "new")), -1)
                advance(a, 1600)
                equal(a.ask("EXISTS", *sets), b":0\r\n")

    def test_a_first_deadline_begins_a_lifetime(self):
        """Of a key that was set without one, whatever gives it the deadline."""
        gives = {"set": ["SET", "set", "2", "EX", 99999], "setex": ["SETEX", "setex", 99999, "2"],
                 "getset": ["SET", "getset", "2", "PX", 99999000], "expire": ["EXPIRE", "expire", 99999],
                 "getex": ["GETEX", "getex", "EX", 99999], "persist": ["EXPIRE", "persist", 99999]}
        for more in (), ("--keep-lifetimes",):
            with Sessiond("--clock", "virtual", "--lifetime", "1h", *more) as server, server.client() as a:
                for key in gives:
                    equal(a.ask("SET", key, "1"), OK)
                a.ask("GETSET", "getset", "1")
                a.ask("SET", "persist", "1", "LIFETIME", 7200)
                advance(a, 1000)
                for words in gives.values():
                    a.ask(*words)
                equal({key: number(a.ask("TTL", key)) for key in gives}, dict.fromkeys(gives, HOUR) | {"persist": 6200})
                advance(a, 1000)
                for key in gives:
                    equal(a.ask("EXPIRE", key, 99999), b":1\r\n")
                equal({key: number(a.ask("TTL", key)) for key in gives},
                      dict.fromkeys(gives, HOUR - 1000) | {"persist": 5200})
        # Lifetimes of their own only: others have none.
        with Sessiond("--clock", "virtual", "--lifetimes", "--keep-lifetimes") as server, server.client() as a:
            a.ask("SET", "a", "1")
            a.ask("SET", "a", "1", "EX", 99999)
            equal(number(a.ask("TTL", "a")), 99999)

    def test_without_lifetimes_one_is_refused(self):
        with Sessiond() as server, server.client() as a:
            equal(a.ask("SET", "a", "1", "LIFETIME", 60),
                  b"-ERR LIFETIME needs a server with --lifetime or --lifetimes\r\n")
            equal(a.ask("ADVANCE", 1)[:5], b"-ERR ")
        with Sessiond("--lifetimes") as server, server.client() as a:
            equal(a.ask("SET", "a", "1", "EX", 100) + a.ask("TTL", "a"), OK + b":100\r\n")
            equal(a.ask("SET", "a", "1", "EX", 100, "LIFETIME", 60) + a.ask("TTL", "a"), OK + b":60\r\n")


class Bound(Case):
    SIZE = 20000

    def fill(self, client, count, *options):
        """Return the answers that are no OK."""
        client.send(b"".join(encoded("SET", f"key:{i}", self.SIZE * "x", *options) for i in range(count)))
        return [answer for answer in (client.answer() for _ in range(count)) if answer != OK]

    def test_noeviction_refuses(self):
        with Sessiond("--maxmemory", "4M") as server, server.client() as a:
            refused = self.fill(a, 300, "EX", "1000")
            equal(set(refused), {b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"})
            kept = number(a.ask("DBSIZE"))
            assert 180 < kept < 215 and kept + len(refused) == 300, kept
            equal(a.ask("GET", "key:0"), bulk(self.SIZE * "x"))
            equal(a.ask("DEL", "key:0") + a.ask("SET", "key:0", "y"), b":1\r\n" + OK)

    def test_each_command_that_is_refused_has_one_answer(self):
        """Also if it answers with the former value. A pipeline would go on with the answers of others."""
        oom = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
        with Sessiond("--maxmemory", "4M") as server, server.client() as a:
            self.fill(a, 300)
            large = 3 * 1024 * 1024 * "y"
            for words in (["SET", "key:0", large, "GET"], ["SET", "key:0", large, "XX", "GET"], ["GETSET", "key:0", large],
                          ["SET", "new", large, "NX", "GET"], ["APPEND", "key:0", large], ["SETEX", "key:0", "100", large],
                          ["SET", "key:0", large, "KEEPTTL"]):
                equal(a.ask(*words) + a.ask("ECHO", "next"), oom + bulk("next"))
            equal(a.ask("GET", "key:0") + a.ask("TTL", "key:0"), bulk(self.SIZE * "x") + b":-1\r\n")
            # A name is no new value, so there is nothing to refuse.
            equal(a.ask("RENAME", "key:0", "k" * 65535) + a.ask("STRLEN", "k" * 65535), OK + b":%d\r\n" % self.SIZE)
        error = b"-ERR a key has at most 65535 bytes\r\n"
        with Sessiond() as server, server.client() as a:
            for words in (["SET", "k" * 65536, "b", "GET"], ["GETSET", "k" * 65536, "b"]):
                equal(a.ask(*words) + a.ask("ECHO", "next"), error + bulk("next"))
            for name in ("MSET", "MSETNX"):
                equal(a.ask(name, "a", 1, "k" * 65536, 2) + a.ask("EXISTS", "a"), error + b":0\r\n")

    def test_of_many_keys_all_are_set_or_none(self):
        """Also on disk, and to those who hear of it. Some keys were there before, and one is there twice."""
        oom = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
        with Sessiond("--data", "data", "--maxmemory", "4M", "--notify-keyspace-events", "KA") as server, server.client() as a, server.client() as b:
            b.ask("PSUBSCRIBE", "*")
            equal(a.ask("SET", "key:0", "before", "PX", "1000000") + a.ask("SET", "key:1", "stays"), OK + OK)
            for _ in range(3):
                b.answer()
            words = [word for i in range(300) for word in (f"key:{i}", self.SIZE * "x")]
            for pairs in (["key:0", "y", *words], ["key:0", self.SIZE * "z", "key:0", "short", "key:1", "", *words]):
                equal(a.ask("MSET", *pairs), oom)
                equal(a.ask("MSETNX", "other", "x", *words[4:]), oom)
                equal(a.ask("MGET", "key:0", "key:1", "key:2", "other"), b"*4\r\n" + bulk("before") + bulk("stays") + 2 * NULL)
                equal(a.ask("DBSIZE") + a.ask("TTL", "key:1"), b":2\r\n:-1\r\n")
                check(990000 < number(a.ask("PTTL", "key:0")) <= 1000000, "the time of before")
            equal(a.ask("MSET", "key:1", "stays", "last", "x"), OK)
            # Nobody has heard of the others.
            matches("key:1", b.answer().decode())
            matches("last", b.answer().decode())
        with Sessiond("--data", "data", "--maxmemory", "4M") as server, server.client() as a:
            equal(a.ask("MGET", "key:0", "key:1", "last") + a.ask("DBSIZE"), b"*3\r\n" + bulk("before") + bulk("stays") + bulk("x") + b":3\r\n")
            check(900000 < number(a.ask("PTTL", "key:0")) <= 1000000, "the time of before")

    def test_allkeys_lru_evicts_what_is_used_least(self):
        with Sessiond("--maxmemory", "4M", "--maxmemory-policy", "allkeys-lru") as server, server.client() as a, \
                server.client() as b:
            equal(a.ask("CONFIG", "SET", "notify-keyspace-events", "Ee"), OK)
            b.ask("SUBSCRIBE", "__keyevent@0__:evicted")
            equal(a.ask("SET", "used", "often"), OK)
            for _ in range(20):
                a.ask("GET", "used")
            equal(self.fill(a, 600), [])
            equal(a.ask("GET", "used"), bulk("often"))
            kept = number(a.ask("DBSIZE"))
            assert 150 < kept < 215, kept
            equal(len({b.answer() for _ in range(601 - kept)}), 601 - kept)

    def test_volatile_lru_evicts_no_key_without_a_deadline(self):
        with Sessiond("--maxmemory", "4M", "--maxmemory-policy", "volatile-lru") as server, server.client() as a:
            equal(a.ask("SET", "stays", "x"), OK)
            equal(self.fill(a, 300, "EX", "1000"), [])
            equal(a.ask("GET", "stays"), bulk("x"))
            equal(a.ask("PERSIST", "key:299"), b":1\r\n")
            equal(set(self.fill(a, 600)), {b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"})
            equal(a.ask("EXISTS", "key:299", "stays"), b":2\r\n")


class Conversations(Case):
    """Scripted ones, at Redis too."""

    def both(self, *conversation, ours=(), theirs=(), protocols=(2, 3)):
        with RedisServer(*theirs) as redis, Sessiond(*ours) as server:
            for protocol in protocols:
                said = []
                for one in (redis, server):
                    with one.client() as client, one.client() as other:
                        client.ask("HELLO", protocol)
                        # They count their clients each for itself.
                        said.append([re.sub(rb"id\r\n:\d+", b"id", answer)
                                     for answer in self.talk(client, other, conversation)])
                equal(*said)

    def talk(self, client, other, conversation):
        """A word "other" before a command sends it by the other client; "+N" waits for so many more answers."""
        heard = []
        for line in conversation:
            words = line.split(" ")
            if words[0].startswith("+"):
                heard += [client.answer() for _ in range(int(words[0]))]
            elif words[0] == "other":
                heard.append(other.ask(*words[1:]))
            else:
                heard.append(client.ask(*words))
        return heard

    def test_channels(self):
        self.both("SUBSCRIBE a", "SUBSCRIBE a", "PSUBSCRIBE a*", "SSUBSCRIBE s", "other PUBLISH a hello", "+2",
                  "other PUBLISH ab hello", "+1", "other PUBLISH b hello", "other SPUBLISH s x", "+1",
                  "other PUBSUB CHANNELS", "other PUBSUB NUMSUB a b", "other PUBSUB NUMPAT", "other PUBSUB SHARDNUMSUB s",
                  "other PUBSUB CHANNELS b*", "PING", "PING x", "GET a", "UNSUBSCRIBE b", "UNSUBSCRIBE", "UNSUBSCRIBE",
                  "PUNSUBSCRIBE a*", "SUNSUBSCRIBE", "PUNSUBSCRIBE", "PING", "SET a b", "SUBSCRIBE c", "RESET", "PING")

    def test_a_password(self):
        with open("password", "w", encoding="utf-8") as file:
            file.write("secret\nmore\n")
        os.chmod("password", 0o600)
        self.both("GET a", "HELLO", "AUTH wrong", "AUTH you secret", "PING", "NOPE", "GET", "AUTH a b c",
                  "HELLO 3 AUTH default wrong", "AUTH secret", "PING", "HELLO 2 AUTH default secret SETNAME me",
                  "CLIENT GETNAME", "RESET", "PING", "AUTH default secret", "ECHO x",
                  ours=("--requirepass-file", "password"), theirs=("--requirepass", "secret"),
                  protocols=(3,))  # it takes a second for each wrong one, and changes the protocol itself

    def test_replies_off(self):
        with Sessiond() as server, server.client() as a:
            a.send(encoded("CLIENT", "REPLY", "OFF") + encoded("SET", "a", "b") + encoded("NOPE") +
                   encoded("CLIENT", "REPLY", "ON") + encoded("CLIENT", "REPLY", "SKIP") + encoded("GET", "a") +
                   encoded("GET", "a"))
            equal(a.answer() + a.answer(), OK + bulk("b"))

    def test_what_redis_has_and_this_has_not(self):
        with Sessiond() as server, server.client() as a:
            equal(a.ask("hset", "a", "b", "c"),
                  b"-ERR unknown command 'hset': weekwheel-sessiond keeps strings with deadlines and has not all of "
                  b"Redis; see DIFFERENCES in its manual\r\n")
            equal(a.ask("MULTI") + a.ask("LPUSH", "a", "b")[:4] + a.ask("EXEC")[:10], OK + b"-ERR-EXECABORT")

    def test_clients(self):
        with Sessiond("--threads", "3") as server, server.client() as a, server.client() as b, server.client() as c:
            equal(a.ask("CLIENT", "SETNAME", "first") + b.ask("CLIENT", "SETINFO", "lib-name", "x"), OK + OK)
            c.ask("SUBSCRIBE", "x")
            text = a.ask("CLIENT", "LIST").decode()
            matches(r"name=first .* cmd=client ", text)
            matches(r" lib-name=x ", text)
            matches(r" flags=P .* sub=1 ", text)
            equal(text.count("addr=127.0.0.1:"), 2 * 3)
            equal(number(a.ask("CLIENT", "KILL", "ID", number(b.ask("CLIENT", "ID")))), 1)
            equal(b.rest(), b"")
            equal(number(a.ask("CLIENT", "KILL", "TYPE", "pubsub")), 1)
            equal(a.ask("CLIENT", "LIST").count(b"id="), 1)
            equal(c.rest(), b"")

    def test_clients_that_were_killed_are_gone_at_once(self):
        with Sessiond("--threads", "3") as server, server.client() as a:
            for _ in range(30):
                with server.client() as b:
                    equal(number(a.ask("CLIENT", "KILL", "ID", number(b.ask("CLIENT", "ID")))), 1)
                    equal(a.ask("CLIENT", "LIST").count(b"id="), 1)

    def test_what_libraries_ask_of_the_server(self):
        with Sessiond() as server, server.client() as a:
            about = dict(line.split(":", 1) for line in a.ask("INFO").decode().splitlines() if ":" in line)
            check(about["arch_bits"] in ("32", "64"), about)
            equal([about[name] for name in ("cluster_enabled", "redis_mode", "loading", "role")],
                  ["0", "standalone", "0", "master"])
            equal(a.ask("SUBSCRIBE", "a") + a.ask("UNSUBSCRIBE"), b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
                  b"*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n")
            matches(r"\+pubsub\r\n\+loading\r\n\+stale\r\n\+fast", a.ask("COMMAND", "INFO", "PUBLISH").decode())
            check(b"+pubsub" not in a.ask("COMMAND", "INFO", "PING", "PUBSUB"), "flags")

    def test_numbers_that_begin_again(self):
        commands = lambda: int(re.search(rb"total_commands_processed:(\d+)", a.ask("INFO", "stats"))[1])
        with Sessiond() as server, server.client() as a:
            for _ in range(10):
                a.ask("GET", "a")
            before = commands()
            equal(a.ask("CONFIG", "RESETSTAT"), OK)
            check(before >= 10 > commands(), "commands are counted from 0")
            matches(r"keyspace_misses:0\r", a.ask("INFO", "stats").decode())

    def test_clients_that_do_not_read(self):
        """Answers wait with the commands; a listener is closed."""
        with Sessiond("--threads", "2") as server, server.client() as a, server.client() as b:
            a.ask("SET", "large", 100000 * "x")
            b.ask("SUBSCRIBE", "news")
            a.send(100 * encoded("GET", "large"))
            equal({a.answer() for _ in range(100)}, {bulk(100000 * "x")})
            a.send(100 * encoded("GET", "large"))
            with server.client() as c:
                for _ in range(60):
                    c.send(10 * encoded("PUBLISH", "news", 100000 * "x"))
                    for _ in range(10):
                        c.answer()
                until(lambda: c.ask("PUBSUB", "NUMSUB", "news") == b"*2\r\n$4\r\nnews\r\n:0\r\n", "the listener is gone")
            equal({a.answer() for _ in range(100)}, {bulk(100000 * "x")})

    def test_a_large_value_comes_slowly(self):
        with Sessiond() as server, server.client() as a, server.client() as b:
            command = encoded("SET", "a", 3000000 * "y") + encoded("STRLEN", "a")
            for at in range(0, len(command), 250007):
                a.send(command[at:at + 250007])
                equal(b.ask("PING"), b"+PONG\r\n")
            equal(a.answer() + a.answer(), OK + b":3000000\r\n")

    def test_errors_of_the_protocol_close(self):
        for data in (b"*1\r\n+PING\r\n", b"*x\r\n", b"GET \"a\r\n", b"*1\r\n$-1\r\n"):
            said = []
            with RedisServer() as redis, Sessiond() as server:
                for one in (redis, server):
                    with one.client() as client:
                        client.send(encoded("PING") + data)
                        said.append(client.rest())
            equal(*said)

    def test_a_browser_cannot_write(self):
        with Sessiond() as server:
            for head in (b"POST / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n"):
                with server.client() as client:
                    client.send(head + b"\r\nSET a b\r\n")
                    try:
                        client.rest()
                    except ConnectionResetError:
                        pass
            with server.client() as client:
                equal(client.ask("GET", "a"), NULL)

    def test_shutdown(self):
        with Sessiond() as server, server.client() as a:
            for words in ("NOPE", "SAVE NOSAVE", "NOW NOSAVE SAVE", "ABORT NOW", "NOSAVE ABORT", "NOW NOPE"):
                equal((words, a.ask("SHUTDOWN", *words.split())), (words, b"-ERR syntax error\r\n"))
            equal(a.ask("SHUTDOWN", "ABORT", "ABORT"), b"-ERR No shutdown in progress.\r\n")
            a.send(encoded("SHUTDOWN", "NOSAVE"))
            equal((a.rest(), server.ended()), (b"", 0))

    def test_scan_meets_each_once(self):
        with Sessiond() as server, server.client() as a:
            for first in range(0, 5000, 1000):
                a.send(b"".join(encoded("SET", f"key:{i}", "x") for i in range(first, first + 1000)))
                equal({a.answer() for _ in range(1000)}, {OK})
            met, cursor = [], b"0"
            while True:
                answer = a.ask("SCAN", cursor, "COUNT", 100, "MATCH", "key:*")
                cursor, *keys = [line for line in answer.split(b"\r\n") if line and line[:1] not in b"*$"]
                met += keys
                a.ask("SET", f"other:{len(met)}", "x")
                a.ask("DEL", f"other:{len(met) - 500}")
                if cursor == b"0":
                    break
            equal(sorted(met), sorted(b"key:%d" % i for i in range(5000)))
            keys = {a.ask("RANDOMKEY") for _ in range(300)}
            assert len(keys) > 200, len(keys)


class Options(Case):
    def test_wrong_ones_are_refused(self):
        if not os.access(SESSIOND, os.X_OK):
            raise unittest.SkipTest("this build has no weekwheel-sessiond: configure says what it lacks")
        for option, expected in (("--maxmemory=1", "bytes, 1048576 to "), ("--lifetime=0", "a time such as"),
                                 ("--listen=nowhere", "HOST:PORT"), ("--databases=0", "1 to 64"), ("--notify-keyspace-events=Km", "letters of"), ("--clock=x", "virtual"),
                                 ("--maxmemory-policy=volatile-lru", "is for --maxmemory"), ("x", "only options"),
                                 ("--keep-lifetimes", "is for --lifetime"),
                                 ("--maxmemory-policy=x", "noeviction"), ("--requirepass-file=none", "No such file")):
            matches(expected, run(2, SESSIOND, option).err)
        matches("everybody could use it, unencrypted", run(2, SESSIOND, "--listen", "0.0.0.0:0").err)
        for name in ("--lifetime", "--maxmemory", "--requirepass-file", "redis-cli -p 6380"):
            matches(name, run(0, SESSIOND, "--help").out)

    def test_events_are_on_from_the_start(self):
        """What a client sets is lost with the server."""
        with Sessiond("--notify-keyspace-events", "xE") as server, server.client() as a, server.client() as b:
            equal(a.ask("CONFIG", "GET", "notify-keyspace-events")[-8:], b"$2\r\nxE\r\n")
            b.ask("SUBSCRIBE", "__keyevent@0__:expired")
            equal(a.ask("SET", "a", "x", "PX", 1), OK)
            equal(b.answer(), message("__keyevent@0__:expired", "a"))
            equal(a.ask("CONFIG", "SET", "notify-keyspace-events", ""), OK)

    def test_a_virtual_clock_begins_ahead(self):
        with Sessiond("--data", "ahead", "--clock", "virtual") as server, server.client() as a:
            equal([a.ask("SET", key, "v", "EX", time) for key, time in (("short", 100), ("long", 100000))], [b"+OK\r\n"] * 2)
        with Sessiond("--data", "ahead", "--clock", "virtual:50000.5") as server, server.client() as a:
            equal(a.ask("EXISTS", "short"), b":0\r\n")
            equal(a.ask("PTTL", "long"), b":49999500\r\n")
        # No real time counts, neither that of the run nor that between.
        for how in (signal.SIGTERM, signal.SIGKILL):
            with Sessiond("--data", "ahead", "--clock", "virtual:0") as server, server.client() as a:
                time.sleep(0.01)
                equal(a.ask("PTTL", "long"), b":49999500\r\n")
                server.stop(how)


if __name__ == "__main__":
    main()
