#!/usr/bin/env python3
"""The same scripts at weekwheel-sessiond and at Redis: what libraries send, and random ones. Answers are the same bytes."""
# tier: check
import os
import random
import time

from harness import Case, equal, main, seed
from sessiond import RedisServer, Sessiond, encoded

SCRIPTS = int(os.environ.get("WW_SCRIPTS", "3000"))

# What libraries send, by its effect.
ADD = "return redis.call('exists', KEYS[1]) < 1 and redis.call('setex', KEYS[1], ARGV[2], ARGV[1])"
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
EXTEND = """
local token = redis.call('get', KEYS[1])
if not token or token ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left < 0 then left = 0 end
local most = ARGV[2]
if ARGV[3] == '0' then most = ARGV[2] + left end
redis.call('pexpire', KEYS[1], most)
return 1
"""
ACQUIRE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2])
elseif redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1
else return 0 end
"""
CONSUME = """
redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX')
local used = redis.call('incrby', KEYS[1], ARGV[1])
local left = redis.call('pttl', KEYS[1])
return {used, left > 0}
"""
HIT = """
local hits = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left <= 0 or ARGV[1] == '1' then
  redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[2]))
  left = tonumber(ARGV[2])
end
return {hits, left > 0 and 1 or 0}
"""
OBTAIN = """
for i, key in ipairs(KEYS) do
  if redis.call('get', key) ~= false and redis.call('get', key) ~= ARGV[1] then return false end
end
for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', tonumber(ARGV[2])) end
return redis.status_reply('OK')
"""
ALL_OR_NONE = "redis.replicate_commands() local t = redis.call('TIME') return t[1] + 0 > 0"
STORIES = [
    (ADD, [(["cache:a"], ["one", "100"]), (["cache:a"], ["two", "100"]), (["cache:b"], ["x", "100"])]),
    (ACQUIRE, [(["lock"], ["me", "50000"]), (["lock"], ["you", "50000"]), (["lock"], ["me", "60000"])]),
    (EXTEND, [(["lock"], ["me", "70000", "1"]), (["lock"], ["you", "70000", "1"]), (["lock"], ["me", "1000", "0"]),
              (["none"], ["me", "1000", "0"])]),
    (RELEASE, [(["lock"], ["you"]), (["lock"], ["me"]), (["lock"], ["me"])]),
    (CONSUME, [(["limit"], ["1", "100"]), (["limit"], ["3", "100"]), (["limit"], ["x", "100"]), (["limit"], ["1", "x"])]),
    (HIT, [(["hits"], ["0", "60000"]), (["hits"], ["0", "60000"]), (["hits"], ["1", "60000"]), (["hits"], ["1", "x"])]),
    (OBTAIN, [(["l1", "l2"], ["me", "50000"]), (["l2", "l3"], ["you", "50000"]), (["l1", "l2"], ["me", "5000"])]),
    (ALL_OR_NONE, [([], [])]),
]

TEXTS = [
    "", "return", "return 1", "return -1.9", "return 1e30", "return 0/0", "return true", "return false", "return nil",
    "return 'x'", "return {1, 2, nil, 3}", "return {true, false, 1}", "return {{{1}, {}}, {ok = 'x'}, {err = 'E y'}}",
    "return {1, err = 'x'}", "return {err = 'x', ok = 'y'}", "return {ok = 1}", "return {err = 1}", "return {ok = 'x\\r\\ny'}",
    "return {err = 'x\\r\\ny'}", "return redis.error_reply('x')", "return redis.error_reply('MY x')",
    "return redis.error_reply('-ERR x')", "return redis.error_reply()", "return redis.error_reply(1)",
    "return redis.status_reply('x')", "return redis.sha1hex('')", "return redis.sha1hex(12)", "return redis.sha1hex()",
    "return redis.log(redis.LOG_WARNING, 'x')", "return redis.log(9, 'x')", "return redis.log('x')", "return redis.log('x', 'y')",
    "return foo", "foo = 1", "\n\nerror('x')", "error({err = 'MY boo'})", "error()", "error('x', 0)", "return return",
    "return redis.call()", "return redis.call(nil)", "return redis.call({})", "return redis.call(1)", "return redis.call('nosuch')",
    "return redis.pcall('nosuch')", "return redis.pcall()", "return redis.call('set', 'x')", "return redis.call('set', 'x', {})",
    "return redis.call('multi')", "return redis.call('eval', 'return 1', 0)", "return redis.call('subscribe', 'x')",
    "return redis.call('auth', 'x')", "return redis.call('config', 'get', 'x')", "return redis.call('client', 'id')",
    "return redis.call('ping')", "return redis.call('ping', 'x')", "return redis.call('echo', 0.1)", "return redis.call('echo', -0)",
    "return redis.call('echo', 12345678901234567890)", "return redis.call('echo', 3.0)", "return redis.call('echo', 2 ^ 53)",
    "return pcall(error, 'x')", "local ok, e = pcall(redis.call, 'nosuch') return e", "return {pcall(redis.call, 'get')}",
    "local ok, e = pcall(error, {err = 'x'}) return e", "local ok, e = pcall(error, {1}) return e[1]",
    "return 'a' .. nil", "return nil + 1", "local t = nil return t.x", "return nosuch.x", "return redis.nosuch",
    "return redis.replicate_commands()", "return _VERSION", "return #KEYS + #ARGV", "return KEYS[1]", "return KEYS", "KEYS = 1",
    "redis.call = 1", "string.x = 1", "return os", "return require('x')", "return print", "return unpack({1, 2})",
    "return select('#', 1, 2)", "return {redis.call('get', 'nokey')}", "return type(redis.call('get', 'nokey'))",
    "return redis.call('set', 'z', '1').ok", "return {tostring(0.1), tostring(1e15), tostring(2 ^ 53)}",
    "return redis.REDIS_VERSION", "return tostring(redis.REDIS_VERSION_NUM)", "return 'a\\0b'", "return redis.call('set', 'n\\0n', '\\r\\n')",
    "return redis.call('get', 'n\\0n')", "return math.floor(3.7)", "return string.format('%5.2f|%q|%d', 3.14159, 'a\"b', 42)",
    "return {('abc'):find('b(.)')}", "return (('a-b'):gsub('%-', '+'))", "return table.concat({1, 2, 3}, ',', 2)",
    "local t = {3, 1, 2} table.sort(t) return t", "return tonumber('0x10')", "return tonumber('z', 36)", "return tonumber('x') or 'no'",
]
COMMANDS = [
    ["EVAL"], ["EVAL", "return 1"], ["EVAL", "return 1", "x"], ["EVAL", "return 1", "-1"], ["EVAL", "return 1", "1"],
    ["EVALSHA", "abc", "0"], ["EVALSHA", "f" * 40, "x"], ["EVALSHA", "F" * 40, "0"], ["EVALSHA", "f" * 40, "-1"],
    ["SCRIPT"], ["SCRIPT", "LOAD"], ["SCRIPT", "LOAD", "return 1"], ["SCRIPT", "LOAD", "return return"],
    ["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"], ["EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"],
    ["SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "x"],
    ["SCRIPT", "EXISTS"], ["SCRIPT", "KILL"], ["SCRIPT", "FLUSH", "x"], ["SCRIPT", "FLUSH", "ASYNC"], ["SCRIPT", "FLUSH"],
    ["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"], ["SCRIPT", "NOPE"], ["SCRIPT", "FLUSH", "SYNC", "x"],
    ["EVAL_RO", "return redis.call('set', 'x', '1')", "0"], ["EVAL_RO", "return redis.pcall('del', 'x')", "0"],
    ["EVAL_RO", "return redis.call('get', KEYS[1])", "1", "x"], ["EVALSHA_RO", "abc", "0"],
    ["MULTI"], ["EVAL", "return redis.call('incr', KEYS[1])", "1", "n"], ["EVAL", "return redis.call('incr', 'other')", "0"],
    ["EVAL", "error('x')", "0"], ["EVALSHA", "f" * 40, "0"], ["SET", "after", "1"], ["EXEC"], ["MGET", "n", "other", "after"],
    ["CLIENT", "REPLY", "ON"],
]

KEYS = ["a", "b", "c", "number", "k" * 40]
VALUES = ["", "x", "12", "-7", "9223372036854775807", "1.5", "y" * 300]


class Writer:
    """Writes scripts."""

    def __init__(self, rng):
        self.rng = rng

    def key(self):
        return self.rng.choice(["KEYS[1]", "KEYS[2]", f"'{self.rng.choice(KEYS)}'"])

    def value(self):
        return self.rng.choice(["ARGV[1]", "ARGV[2]", "v", "n", f"'{self.rng.choice(VALUES)}'", str(self.rng.randrange(-5, 1000)),
                                "1.5", "nil", "{}", "true", "#KEYS", "n + 1", "type(v)"])

    def command(self):
        name = self.rng.choice(list(CALLS))
        words = [f"'{name}'"] + CALLS[name](self)
        if self.rng.random() < 0.05:
            words.append(self.value())
        return f"redis.{self.rng.choice(['call', 'pcall', 'pcall'])}({', '.join(words)})"

    def statement(self, depth):
        rng = self.rng
        kind = rng.randrange(10)
        if kind < 4:
            return f"v = {self.command()}"
        if kind < 6:
            return self.command()
        if kind == 6 and depth < 2:
            return f"if v == {self.value()} then {self.block(depth + 1)} else {self.block(depth + 1)} end"
        if kind == 7 and depth < 2:
            return f"for i = 1, {rng.randrange(4)} do {self.block(depth + 1)} n = n + i end"
        if kind == 8:
            return f"t[#t + 1] = {self.value()}"
        return rng.choice(["n = tonumber(v) or n", "n = n + #t", "v = type(v) == 'table' and (v.err or v.ok or v[1]) or v",
                           "if not v then v = 'none' end", "local ok, e = pcall(redis.call, 'incr', KEYS[1]) t[#t + 1] = e"])

    def block(self, depth):
        return " ".join(self.statement(depth) for _ in range(self.rng.randrange(1, 5)))

    def script(self):
        end = self.rng.choice(["v", "n", "t", "{v, n, t}", "{t, v}", "v == n", "redis.call('mget', KEYS[1], 'a', 'b')", "{1, nil, v}"])
        return f"local v, n, t = ARGV[1], 0, {{}} {self.block(0)} return {end}"


CALLS = {
    "get": lambda w: [w.key()], "set": lambda w: [w.key(), w.value()] + w.rng.choice([[], [], ["'NX'"], ["'XX'", "'GET'"],
                                                                                   ["'EX'", "100"], ["'PX'", "x"], ["'KEEPTTL'"]]),
    "setex": lambda w: [w.key(), "1000", w.value()], "setnx": lambda w: [w.key(), w.value()], "getdel": lambda w: [w.key()],
    "getset": lambda w: [w.key(), w.value()], "mget": lambda w: [w.key(), w.key()], "mset": lambda w: [w.key(), w.value()],
    "append": lambda w: [w.key(), "'z'"], "strlen": lambda w: [w.key()], "incr": lambda w: [w.key()],
    "incrby": lambda w: [w.key(), w.value()], "decrby": lambda w: [w.key(), "2"], "del": lambda w: [w.key(), w.key()],
    "exists": lambda w: [w.key(), w.key()], "type": lambda w: [w.key()], "rename": lambda w: [w.key(), w.key()],
    "renamenx": lambda w: [w.key(), w.key()], "persist": lambda w: [w.key()], "expire": lambda w: [w.key(), "5000"],
    "ttl": lambda w: ["'nokey'"], "getex": lambda w: [w.key(), "'PERSIST'"], "dbsize": lambda w: [], "echo": lambda w: [w.value()],
    "publish": lambda w: ["'channel'", "'m'"], "nosuch": lambda w: [w.value()], "unlink": lambda w: [w.key()],
}


class Same(Case):
    def setUp(self):
        super().setUp()
        self.redis = self.enterContext(RedisServer())
        # Nothing here takes long, but for a machine that is slow.
        self.server = self.enterContext(Sessiond("--script-time", "10s"))
        self.ours = self.enterContext(self.server.client())
        self.theirs = self.enterContext(self.redis.client())

    def ask(self, *words):
        ours, theirs = self.ours.ask(*words), self.theirs.ask(*words)
        if ours != theirs:
            raise AssertionError(f"{words}\n  ours:   {ours!r}\n  theirs: {theirs!r}")
        return ours

    def keys(self):
        """All that there is."""
        for key in sorted(self.both("KEYS", "*")[0]):
            self.ask("GET", key)
            ours, theirs = self.both("PTTL", key)
            assert abs(int(ours[1:]) - int(theirs[1:])) < 5000, (key, ours, theirs)

    def both(self, *words):
        answers = self.ours.ask(*words), self.theirs.ask(*words)
        if words[0] != "KEYS":
            return answers
        names = [answer.split(b"\r\n")[2:-1:2] for answer in answers]
        equal(sorted(names[0]), sorted(names[1]))
        return names

    def test_scripts_of_libraries(self):
        for script, calls in STORIES:
            for keys, arguments in calls:
                self.ask("EVAL", script, len(keys), *keys, *arguments)
        self.keys()

    def test_texts(self):
        for protocol in (2, 3):
            for client in (self.ours, self.theirs):
                client.ask("HELLO", protocol)
            for text in TEXTS:
                self.ask("EVAL", text, 0)
            for words in COMMANDS:
                self.ask(*words)

    def test_random_scripts(self):
        number = seed()
        rng = random.Random(number)
        writer = Writer(rng)
        began = time.monotonic()
        for at in range(SCRIPTS):
            keys = [rng.choice(KEYS) for _ in range(2)]
            words = [writer.script(), rng.choice([2, 2, 2, 0]), *keys, rng.choice(VALUES), rng.choice(VALUES)]
            try:
                self.ask("EVAL", *words)
                if at % 100 == 99:
                    self.keys()
            except AssertionError as error:
                raise AssertionError(f"script {at} of seed {number}: {error}") from error
        print(f"{SCRIPTS} scripts in {time.monotonic() - began:.0f} s")

    def test_a_client_that_hears_itself(self):
        """The events of a script's changes come to the client that runs it, and its answer is whole."""
        for client in (self.ours, self.theirs):
            client.ask("CONFIG", "SET", "notify-keyspace-events", "KEA")
            client.ask("HELLO", 3)
            client.ask("PSUBSCRIBE", "__key*__:*", "channel")
        heard = []
        for client in (self.ours, self.theirs):
            equal(client.answer()[:2], b">3")
            client.send(encoded("EVAL", "redis.call('set', KEYS[1], 1) redis.call('publish', 'channel', 'x') "
                                "return {redis.call('incr', KEYS[1]), redis.call('get', KEYS[1])}", 1, "k"))
            client.send(encoded("PUBLISH", "channel", "end"))
            parts = [client.answer()]
            while b"end" not in parts[-1]:
                parts.append(client.answer())
            heard.append(sorted(parts))
        equal(heard[0], heard[1])

    def test_no_answers(self):
        with self.server.client() as client:
            client.send(b"CLIENT REPLY OFF\r\n")
            client.send(b"EVAL \"redis.call('set', 'x', 5) return redis.call('incr', 'x')\" 0\r\n")
            client.send(b"CLIENT REPLY ON\r\n")
            equal(client.answer(), b"+OK\r\n")
            equal(client.ask("GET", "x"), b"$1\r\n6\r\n")


if __name__ == "__main__":
    main()
