#!/usr/bin/env python3
"""What a script may do is what its client may do, command by command; and who sees of it what, and when."""
# tier: check, threads
import hashlib
import os
import threading

from harness import Case, check, equal, main
from sessiond import Sessiond, encoded

TOKEN = "a-token-of-a-site-with-some-length"
KEY = b"-NOPERM this user has no permissions to access one of the keys used as arguments"
ALL = b"-NOPERM this user has no permissions to run this command for all keys"
CHANNEL = b"-NOPERM this user has no permissions to access one of the channels used as arguments"
# Moves some of one account to the other. Whoever sees both sees the same sum.
MOVE = """
local n = tonumber(ARGV[1])
redis.call('decrby', KEYS[1] or 'one', n)
for i = 1, 2000 do redis.call('get', KEYS[1] or 'one') end
return redis.call('incrby', KEYS[2] or 'two', n)
"""


class Rights(Case):
    def test_each_command_is_looked_at(self):
        with open("tokens", "w", encoding="utf-8") as file:
            file.write(f"site sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()} read,write:sess:*\n")
        os.chmod("tokens", 0o600)
        with Sessiond("--auth-file", "tokens") as server, server.client() as client:
            equal(client.ask("EVAL", "return 1", 0), b"-NOAUTH Authentication required.\r\n")
            equal(client.ask("AUTH", TOKEN), b"+OK\r\n")
            equal(client.ask("EVAL", "return redis.call('set', KEYS[1], 1)", 1, "sess:a"), b"+OK\r\n")
            equal(client.ask("EVAL", "return redis.call('mget', KEYS[1], 'sess:b')", 1, "sess:a"), b"*2\r\n$1\r\n1\r\n$-1\r\n")
            for call, why in (("'get', 'x'", KEY), ("'set', KEYS[1], 1", KEY), ("'mget', 'sess:a', 'x'", KEY),
                              ("'rename', 'sess:a', 'x'", KEY), ("'keys', '*'", ALL), ("'dbsize'", ALL), ("'randomkey'", ALL),
                              ("'publish', 'x', 'm'", CHANNEL)):
                answer = client.ask("EVAL", f"redis.call('set', 'sess:n', 1) return redis.call({call})", 1, "x")
                check(answer.startswith(why + b" script: "), (call, answer))
                equal(client.ask("EVAL", f"return redis.pcall({call})", 1, "x"), why + b"\r\n")
            equal(client.ask("GET", "sess:n"), b"$1\r\n1\r\n")

    def test_others_see_all_or_nothing(self):
        """From threads of their own, with keys that are declared and keys that are not."""
        with Sessiond("--threads", "4", "--script-time", "10s") as server, server.client() as looker:
            equal(looker.ask("MSET", "one", 1000, "two", 1000), b"+OK\r\n")
            failed = []

            def move(keys, count):
                try:
                    with server.client() as client:
                        for number in range(count):
                            check(client.ask("EVAL", MOVE, len(keys), *keys, number % 7).startswith(b":"), "it moves")
                except (AssertionError, OSError) as error:
                    failed.append(error)

            movers = [threading.Thread(target=move, args=(keys, 100)) for keys in (["one", "two"], ["one"], [])]
            for mover in movers:
                mover.start()
            while any(mover.is_alive() for mover in movers):
                parts = looker.ask("MGET", "one", "two").split(b"\r\n")
                equal(int(parts[2]) + int(parts[4]), 2000)
                parts = looker.ask("EVAL", "return {redis.call('get', 'one'), redis.call('get', 'two')}", 0).split(b"\r\n")
                equal(int(parts[2]) + int(parts[4]), 2000)
            for mover in movers:
                mover.join()
            equal(failed, [])

    def test_nobody_hears_of_what_was_undone(self):
        with Sessiond("--script-time", "5ms", "--notify-keyspace-events", "KEA") as server, server.client() as client, \
             server.client() as listener:
            listener.ask("PSUBSCRIBE", "__key*__:*")
            answer = client.ask("EVAL", "redis.call('set', 'a', 1) redis.call('del', 'a') while true do end", 1, "a")
            check(b"took too long" in answer, answer)
            # This one begins again, as it uses a key that it does not name: its event comes once.
            equal(client.ask("EVAL", "redis.call('set', KEYS[1], 1) return redis.call('incr', 'c')", 1, "b"), b":1\r\n")
            client.send(encoded("PUBLISH", "__key_end__:", "end"))
            heard = []
            while not heard or b"end" not in heard[-1]:
                heard.append(listener.answer())
            equal([b"__:a" in message or message.endswith(b"\r\na\r\n") for message in heard].count(True), 0)
            equal(len(heard), 5)

    def test_a_key_ends_once(self):
        """While a script is at work that has set it anew, and is then undone; or by itself, on a slow machine."""
        with Sessiond("--script-time", "20ms", "--data", "data", "--notify-keyspace-events", "Ex") as server, \
             server.client() as client, server.client() as listener:
            listener.ask("PSUBSCRIBE", "__keyevent@0__:expired")
            client.ask("SET", "a", "x", "PX", 150)
            answer = client.ask("EVAL", "redis.call('set', KEYS[1], 1) while true do end", 1, "a")
            check(b"took too long" in answer, answer)
            equal(client.ask("GET", "a"), b"$-1\r\n")
            client.ask("SET", "b", "x", "PX", 1)
            for key in (b"a", b"b"):
                check(listener.answer().endswith(b"\r\n" + key + b"\r\n"), key)

    def test_a_script_hears_no_messages(self):
        with Sessiond() as server, server.client() as client:
            client.ask("MULTI")
            client.ask("SUBSCRIBE", "channel")
            client.ask("EVAL", "return type(redis.call('publish', 'channel', 'm'))", 0)
            client.send(encoded("EXEC") + encoded("PING", "end"))
            heard = []
            while not heard or b"$3\r\nend\r\n" not in heard[-1]:
                heard.append(client.answer())
            check(b"$6\r\nnumber\r\n" in b"".join(heard), heard)

    def test_a_script_hears_no_ends(self):
        """Each SET puts another key out, and the script's own client is told of that: in RESP2 by what looks like an answer."""
        script = "local n = 0 for i = 1, 40 do local a = redis.call('SET', 'k' .. i, string.rep('x', 100000)) " \
                 "if a.ok then n = n + 1 end end %s"
        with Sessiond("--threads", "1", "--maxmemory", "1M", "--maxmemory-policy", "allkeys-lru", "--script-time", "100ms",
                      "--notify-keyspace-events", "Ee") as server, server.client() as client:
            for end, answer in (("return n", b":40\r\n"), ("while true do end", b"so it was ended, and has changed nothing")):
                client.ask("MULTI")
                client.ask("SUBSCRIBE", "__keyevent@0__:evicted")
                client.ask("EVAL", script % end, 0)
                client.send(encoded("EXEC") + encoded("PING", "end"))
                heard = b""
                while b"$3\r\nend\r\n" not in heard:
                    heard += client.answer()
                check(answer in heard and b"+OK" not in heard, heard)
                # What was put out stays so.
                check(heard.count(b"evicted\r\n$") >= 30, heard)
                client.ask("RESET")

    def test_a_watched_key(self):
        with Sessiond() as server, server.client() as a, server.client() as b:
            a.ask("SET", "k", 1)
            a.ask("WATCH", "k")
            b.ask("EVAL", "return redis.call('incr', KEYS[1])", 1, "k")
            a.ask("MULTI")
            a.ask("SET", "k", 9)
            equal(a.ask("EXEC"), b"*-1\r\n")
            equal(a.ask("GET", "k"), b"$1\r\n2\r\n")


if __name__ == "__main__":
    main()
