#!/usr/bin/env python3
"""Scripts that want to hold weekwheel-sessiond for ever, take all of its memory, or get out of their sandbox."""
# tier: check
import os
import signal
import threading
import time

from harness import Case, check, equal, main
from sessiond import Sessiond, encoded

MB = 1 << 20
LONG = b"took too long"
# What each is answered with, if not by the end of its time.
MEMORY = b"not enough memory"
LOOPS = [
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do pcall(pcall, function() while true do end end) end",
    "xpcall(function() while true do end end, function() while true do end end)",
    "local f f = function() return f() end return f()",
    "while true do redis.pcall('get', 'x') end",
    "while true do redis.pcall('nosuch') end",
    "while true do redis.sha1hex('x') end",
    "local s = string.rep('a', 60000) while true do local x = s < s .. 'b' end",
    "local s = string.rep('a', 4000000) local t = s .. '' while true do local x = s .. 'b' < t end",
    "local s = string.rep('a', 2800) while true do string.find(s, '.-b') end",
    "local s = string.rep('a', 2000) while true do for x in string.gmatch(s, 'a-b') do end end",
    "local t = {} for i = 1, 100000 do t[i] = i % 7 end while true do table.sort(t) end",
    "local t = {} for i = 1, 100000 do t[i] = i end while true do table.insert(t, 1, 0) end",
    "local t = {} for i = 1, 300000 do t[i] = i end while true do table.sort(t, math.max) end",
    "local t = {} t[1] = t while true do pcall(table.sort, {3, 2, 1}, function() while true do end end) end",
    "local a = {} for i = 1, 40 do a = {a, a} end return a",
    "pcall(setmetatable, _G, {}) while true do end",
    "local s = ('x'):rep(1000) return (s:gsub('.', function() while true do end end))",
    "while true do tostring(setmetatable({}, {__tostring = function() while true do end end})) end",
    "while true do redis.call('keys', '*a*a*a*a*') end",
    "table.insert({}, -2 ^ 31, 1)",
    "local t = {} for i = 1, 200000 do t[i] = 1 end while true do next(t, 100000) unpack(t, 1, 7000) end",
]
BOMBS = [
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do t[#t + 1] = string.rep('x', 1000) .. #t end",
    "return string.rep('x', 2 ^ 31)",
    "return string.rep('', 2 ^ 40)",
    "return string.rep(string.rep('x', 2 ^ 20), 2 ^ 20)",
    "local t = {} for i = 1, 100 do t[i] = string.rep('x', 2 ^ 20) end return table.concat(t)",
    "local s = string.rep('x', 2 ^ 20) return (string.gsub(s, 'x', s))",
    "local s = string.rep('%s', 99) return string.format(s, unpack((function() local t = {} for i = 1, 99 do "
    "t[i] = string.rep('x', 2 ^ 20) end return t end)()))",
    "local t = {} while true do t = {t} end",
    "local s = string.rep('x', 2 ^ 20) local t = {} for i = 1, 8 do t[i] = s end return t",
]
REFUSED = [
    "return string.find(string.rep('a', 30000), '.-.-.-.-b')",
    "return string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40))",
    "return string.match(string.rep('(', 100000), string.rep('%b()', 100))",
    "return string.find('', string.rep('a*', 100000))",
    "return string.find('x', string.rep('(', 100000))",
    "return (string.gsub(string.rep('a', 100000), '.-b', ''))",
    "return string.find(string.rep('a', 2 ^ 20), string.rep('a', 2 ^ 19) .. 'b', 1, true)",
    "local function f(n) return 1 + f(n + 1) end return f(1)",
    "local function f() return pcall(f) and error('x') end error(tostring(f()))",
    "local s = 'x' for i = 1, 300 do s = s:gsub('.', function(c) return ('y'):gsub('.', function() error('z') end) end) end",
    "return " + "(" * 5000 + "1" + ")" * 5000,
    "return " + "{" * 5000 + "}" * 5000,
    "return tostring(string.format('%99999d', 1))",
    "return {unpack({}, 1, 1e7)}", "return unpack({}, 0, 2 ^ 31 - 1)", "return unpack({}, -2 ^ 31, 2 ^ 31 - 1)",
    "return unpack({}, -2, 2 ^ 31 - 2)", "return unpack({}, 1, 2 ^ 31 - 1)",
    "return os.exit(1)", "return io.open('/etc/passwd')", "return require('os')", "return dofile('/etc/passwd')",
    "return loadfile('/etc/passwd')", "return load(function() end)", "return loadstring('return 1')",
    "return debug.getregistry()", "return getfenv(0)", "return setfenv(1, {})", "return newproxy(true)",
    "error({})", "error({err = {}})", "local t = {} t[1] = t return t",
    "return collectgarbage('collect')", "return coroutine.create(print)", "return string.dump(function() end)",
    "return package.loaded", "return module('x')", "x = 1", "_G.x = 1", "rawset(_G, 'x', 1)", "rawset(redis, 'call', 1)",
    "redis.call = nil", "string.rep = nil", "setmetatable(redis, {})", "setmetatable(_G, nil)", "KEYS = 1",
    "getmetatable('').__index.rep = nil", "getmetatable('').x = 1", "table.insert(string, 'x')", "table.insert(_G, 1)",
    "setmetatable(string, {__index = function() return 1 end})",
    "\x1bLuaQ\x00\x01\x04\x08\x04\x08\x00", "\x1bLua", "return loadstring(string.char(27) .. 'LuaQ')",
    "redis.call('multi')", "redis.call('subscribe', 'x')", "redis.call('auth', 'x')", "redis.call('eval', 'return 1', 0)",
    "redis.call('evalsha', 'x', 0)", "redis.call('script', 'flush')", "redis.call('shutdown')", "redis.call('quit')",
    "redis.call('flushall')", "redis.call('config', 'get', '*')", "redis.call('client', 'kill', 'x')",
    "redis.call('hello', 3)", "redis.call('watch', 'x')", "redis.call('exec')", "redis.call('reset')",
    "redis.call('psubscribe', '*')", "redis.call('select', 1)", "redis.call('save')", "redis.call('advance', 1)",
]


class Hostile(Case):
    def setUp(self):
        super().setUp()
        self.start("20ms")

    def start(self, most):
        self.server = self.enterContext(Sessiond("--threads", "2", "--script-time", most))
        self.client = self.enterContext(self.server.client())
        self.over = threading.Event()
        self.asked = 0

    def probe(self):
        """Others are served meanwhile."""
        with self.server.client() as client:
            while not self.over.is_set():
                equal(client.ask("SET", "probe", self.asked), b"+OK\r\n")
                equal(client.ask("EVAL", "return redis.call('get', KEYS[1])", 1, "probe"),
                      b"$%d\r\n%d\r\n" % (len(str(self.asked)), self.asked))
                self.asked += 1

    def ask(self, script, *words):
        return self.client.ask("EVAL", script, *(words or ["0"]))

    def each(self, scripts, is_right):
        failed = []
        other = threading.Thread(target=lambda: failed.extend(self.fault()))
        other.start()
        try:
            for script in scripts:
                answer = self.ask(script)
                check(is_right(answer), f"{script[:200]!r}: {answer[:300]!r}")
                # The next script finds all as it was.
                equal(self.ask("return {string.rep('x', 2), type(redis.call), #KEYS, #ARGV, ('a'):upper()}"),
                      b"*5\r\n$2\r\nxx\r\n$8\r\nfunction\r\n:0\r\n:0\r\n$1\r\nA\r\n")
        finally:
            self.over.set()
            other.join()
        equal(failed, [])
        check(self.asked > 0, "the probe was answered")

    def fault(self):
        try:
            self.probe()
        except (AssertionError, OSError) as error:
            return [error]
        return []

    def test_loops_are_ended(self):
        self.each(LOOPS, lambda answer: LONG in answer or MEMORY in answer)

    def test_memory_is_bounded(self):
        self.each(BOMBS, lambda answer: LONG in answer or MEMORY in answer or answer == b"$0\r\n\r\n" or len(answer) > MB)

    def test_the_sandbox_is_closed(self):
        self.start("10s")   # none of them is ended by its time, however slow the machine
        self.each(REFUSED, lambda answer: answer[:5] == b"-ERR " and LONG not in answer)

    def test_what_was_written_is_taken_back(self):
        """A loop that has written: it gets more time, and is then undone, whatever it catches."""
        equal(self.client.ask("MSET", "a", "1", "b", "2", "c", "3"), b"+OK\r\n")
        equal(self.client.ask("EXPIRE", "c", "1000"), b":1\r\n")
        before = self.client.ask("PEXPIRETIME", "c")
        for loop in ("while true do end", "while true do redis.call('incr', 'n') end",
                     "while true do pcall(function() while true do redis.call('append', 'b', 'x') end end) end"):
            answer = self.ask("redis.call('set', 'a', 'x') redis.call('del', 'b') redis.call('set', 'new', 1) "
                              "redis.call('rename', 'c', 'd') redis.call('persist', 'd') redis.call('set', 'b', 'y') " + loop)
            check(LONG in answer or b"too many bytes" in answer, answer)
            equal(self.client.ask("MGET", "a", "b", "c", "d", "new", "n"),
                  b"*6\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n" + b"$-1\r\n" * 3)
            equal(self.client.ask("PEXPIRETIME", "c"), before)
            equal(self.client.ask("DBSIZE"), b":3\r\n")

    def test_scripts_of_a_transaction_share_the_time(self):
        self.client.ask("MULTI")
        for _ in range(20):
            self.client.ask("EVAL", "while true do end", 0)
        self.client.ask("SET", "a", 1)
        answer = self.client.ask("EXEC")
        equal(answer.count(LONG) + answer.count(b"longer than --script-time"), 20)
        check(answer.endswith(b"+OK\r\n"), answer)

    def test_beginning_again_gives_the_time_anew(self):
        wait = "redis.call('set', KEYS[1], 1) local function now() local t = redis.call('time') return t[1] * 1000 + t[2] / 1000 end "\
               "local last = now() + 60 while now() < last do end return redis.call('get', 'other')"
        equal(self.ask(wait, 1, "a"), b"$-1\r\n")

    def test_time_of_others_does_not_count(self):
        self.start("1s")
        wait = "local function now() local t = redis.call('time') return t[1] * 1000 + t[2] / 1000 end "\
               "local last = now() + 300 while now() < last do end return 1"
        for words in (("MULTI",), ("EVAL", wait, 0), ("EVAL", "return 2", 0)):
            self.client.ask(*words)
        self.client.send(encoded("EXEC"))
        time.sleep(0.1)
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        self.server.process.send_signal(signal.SIGCONT)
        equal(self.client.answer(), b"*2\r\n:1\r\n:2\r\n")

    def test_compiling_counts(self):
        """The compiler takes the square of this text's size, and a transaction holds all keys meanwhile."""
        self.client.ask("MULTI")
        for number in range(20):
            self.client.ask("EVAL", f"return {number} == " + "x or " * 13000 + "x", 0)
        answer = self.client.ask("EXEC")
        check(answer.count(LONG) + answer.count(b"longer than --script-time") >= 19, answer)
        self.client.ask("MULTI")
        self.client.ask("SCRIPT", "LOAD", "return 1")
        equal(self.client.ask("EXEC"), b"*1\r\n$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n")

    def test_names_of_random_bytes(self):
        for _ in range(200):
            self.client.ask("EVAL", os.urandom(50), 0)
            self.client.ask("EVALSHA", os.urandom(40), 0)
        equal(self.ask("return 1"), b":1\r\n")

    def test_many_scripts(self):
        """Only so many are kept."""
        for number in range(3000):
            equal(self.ask(f"return {number}"), b":%d\r\n" % number)
        equal(self.client.ask("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 0)[:9], b"-NOSCRIPT")


if __name__ == "__main__":
    main()
