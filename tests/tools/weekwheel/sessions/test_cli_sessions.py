#!/usr/bin/env python3
"""weekwheel sessions: what a server of sessions has, counted from outside; Redis is such a server, too."""
# tier: check
import json
import socket
import threading

from harness import WEEKWHEEL, Case, Redis, equal, free_port, main, matches, run


LEFT = "what is left"


class Sessions(Case):
    def setUp(self):
        super().setUp()
        self.redis = self.enterContext(Redis())
        self.address = "127.0.0.1:%d" % self.redis.port

    def ask(self, *words):
        return self.redis.ask(*words)

    def counts(self, *arguments, **env):
        return json.loads(run(0, WEEKWHEEL, "sessions", "--json", *arguments, self.address, **env).out)

    def test_what_is_there(self):
        self.ask("EVAL", "for i = 0, 2499 do redis.call('SET', 'sess:' .. i, string.rep('x', i % 50), 'EX',"
                         " i < 100 and 50 or 108000) end", "0")
        self.ask("SET", "forever", "y" * 200)
        self.ask("SET", "month", "z" * 100, "EX", 31 * 24 * 3600)
        self.ask("LPUSH", "list", "1")
        found = self.counts("--largest", "3")
        equal(found["sessions"], 2503)
        equal(found["other_keys"], 1)
        equal(found["value_bytes"], sum(number % 50 for number in range(2500)) + 300)
        equal(found["expire_within"], {"minute": 100, "hour": 0, "day": 0, "week": 2400, "later": 1, "never": 2})
        equal(found["days"], [100, 2400, 0, 0, 0, 0, 0])
        equal([(one["key"], one["bytes"]) for one in found["largest"][:2]], [("forever", 200), ("month", 100)])
        equal(found["largest"][0]["left_ms"], None)
        equal(self.counts("--match", "sess:1?", "--largest", "0")["sessions"], 10)
        equal(self.counts("--db", "1")["sessions"], 0)
        said = run(0, WEEKWHEEL, "sessions", self.address).out
        matches("has 2503 sessions, with .* of values", said)
        matches("within a week +2400  ####", said)
        matches("200 B  'forever', no deadline", said)

    def test_password(self):
        self.ask("CONFIG", "SET", "requirepass", "secret")
        matches("NOAUTH.*set REDISCLI_AUTH", run(1, WEEKWHEEL, "sessions", self.address).err)
        equal(self.counts(REDISCLI_AUTH="secret")["sessions"], 0)

    def another(self, *answers):
        """The address of a server that speaks another protocol."""
        listener = self.enterContext(socket.create_server(("127.0.0.1", 0)))

        def say():
            client, _ = listener.accept()
            for answer in answers or (b"HTTP/1.1 400 Bad Request\r\n\r\n",):
                client.recv(1000)
                client.sendall(answer)
            client.close()

        threading.Thread(target=say, daemon=True).start()
        return "127.0.0.1:%d" % listener.getsockname()[1]

    def test_numbers_that_are_too_large(self):
        """What a server says has room in no number of ours, or is none."""
        texts = [json.dumps({"sessions": 4, "largest": [{"key": str(i), "bytes": 1, "left": LEFT} for i in range(4)]}),
                 '{"counts": [1]}', '{"counts": [1]}', '{"counts": [1, 0, 0, 0, 0, 0, 0]}']
        for number in ("1e300", "-1e300", "-0.5", "0.25"):
            texts[0] = texts[0].replace(f'"{LEFT}"', number, 1)
        address = self.another(*(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode() for text in texts))
        found = json.loads(run(0, WEEKWHEEL, "sessions", "--json", "http://" + address).out)
        equal([one["left_ms"] for one in found["largest"]], [2 ** 63 - 1, 0, 0, 250])

    def test_wrong_words(self):
        matches("expected HOST:PORT", run(2, WEEKWHEEL, "sessions", "nix").err)
        matches("one address is expected", run(2, WEEKWHEEL, "sessions", "a:1", "b:2").err)
        matches("at most 100", run(2, WEEKWHEEL, "sessions", "--largest", "101").err)
        matches("its answers are not those of Redis", run(1, WEEKWHEEL, "sessions", self.another()).err)
        matches("is weekwheel-sessiond running there", run(1, WEEKWHEEL, "sessions", "127.0.0.1:%d" % free_port()).err)


if __name__ == "__main__":
    main()
