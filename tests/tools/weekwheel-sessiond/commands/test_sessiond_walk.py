#!/usr/bin/env python3
"""weekwheel-sessiond serves others while KEYS, SCAN and FLUSHALL go through all keys, and keeps the order of one client."""
# tier: check
import select
import signal
import tempfile

from sessiond import Sessiond, encoded
from harness import Case, check, equal, main, until

OK = b"+OK\r\n"
MANY = 30000


def fill(client, prefix="s:"):
    for first in range(0, MANY, 5000):
        client.send(b"".join(encoded("SET", f"{prefix}{i:06}", "v") for i in range(first, first + 5000)))
        equal({client.answer() for _ in range(5000)}, {OK})


def names(answer):
    return answer.split(b"\r\n")[2::2]


class Walks(Case):
    def others_are_served(self, command, prefix="s:", rounds=20):
        """In one of some rounds another client of the same loop asks three times before the walk is over."""
        with Sessiond("--threads", "1") as server, server.client() as a, server.client() as b:
            for _ in range(rounds):
                if a.ask("DBSIZE") == b":0\r\n":
                    fill(a, prefix)
                a.send(command)
                for _ in range(3):
                    equal(b.ask("PING"), b"+PONG\r\n")
                if not select.select([a.socket], [], [], 0)[0]:
                    a.answer()
                    return
                a.answer()
            self.fail("nobody was served meanwhile")

    # A pattern and keys that take long: some 10 ms on a fast machine.
    def test_others_are_served_during_keys(self):
        self.others_are_served(encoded("KEYS", "*aaaaaaaaaab*"), "a" * 1000)

    def test_others_are_served_during_scan(self):
        self.others_are_served(encoded("SCAN", 0, "COUNT", MANY, "MATCH", "*aaaaaaaaaab*"), "a" * 1000)

    def test_others_are_served_during_flush(self):
        self.others_are_served(encoded("FLUSHALL"))

    def test_each_key_is_there_once(self):
        with Sessiond("--threads", "1") as server, server.client() as a:
            fill(a)
            expected = sorted(b"s:%06d" % i for i in range(MANY))
            equal(sorted(names(a.ask("KEYS", "*"))), expected)
            equal(sorted(names(a.ask("KEYS", "s:00001?"))), expected[10:20])
            cursor, found = b"0", []
            while True:
                answer = a.ask("SCAN", cursor, "COUNT", 20000)
                cursor = answer.split(b"\r\n")[2]
                found += answer.split(b"\r\n")[5::2]
                if cursor == b"0":
                    break
            equal(sorted(filter(None, found)), expected)

    def test_the_commands_of_a_client_stay_in_order(self):
        with Sessiond("--threads", "1") as server, server.client() as a:
            fill(a)
            a.send(encoded("SET", "first", 1) + encoded("KEYS", "f*") + encoded("CLIENT", "REPLY", "SKIP")
                   + encoded("KEYS", "*") + encoded("SET", "second", 2) + encoded("FLUSHALL") + encoded("DBSIZE")
                   + encoded("SET", "third", 3) + encoded("KEYS", "*") + encoded("CLIENT", "REPLY", "OFF"))
            equal([a.answer() for _ in range(7)], [
                OK, b"*1\r\n$5\r\nfirst\r\n", OK, OK, b":0\r\n", OK, b"*1\r\n$5\r\nthird\r\n"])

    def test_within_a_transaction_nobody_sees_a_part(self):
        with Sessiond("--threads", "1") as server, server.client() as a:
            fill(a)
            a.send(encoded("MULTI") + encoded("KEYS", "s:000000") + encoded("FLUSHALL") + encoded("DBSIZE")
                   + encoded("EXEC"))
            equal([a.answer() for _ in range(4)], [OK] + 3 * [b"+QUEUED\r\n"])
            equal(a.answer(), b"*3\r\n*1\r\n$8\r\ns:000000\r\n" + OK + b":0\r\n")

    def test_a_client_may_go_in_the_middle(self):
        with Sessiond("--threads", "1") as server, server.client() as b:
            fill(b)
            for command in ("KEYS", "*"), ("SCAN", 0, "COUNT", MANY), ("FLUSHALL",):
                with server.client() as a:
                    a.send(encoded("CLIENT", "SETNAME", "walker") + encoded(*command))
                    equal(a.answer(), OK)
                    b.ask("CLIENT", "KILL", "TYPE", "normal")
                equal(b.ask("PING"), b"+PONG\r\n")
            equal(server.stop(), 0)

    def test_what_was_flushed_does_not_come_back(self):
        with tempfile.TemporaryDirectory() as folder:
            with Sessiond("--data", folder) as server, server.client() as a:
                fill(a)
                equal(a.ask("SELECT", 3) + a.ask("SET", "other", 1), OK + OK)
                equal(a.ask("SELECT", 0) + a.ask("FLUSHDB") + a.ask("SET", "after", 1), OK + OK + OK)
                server.stop(signal.SIGKILL)
            with Sessiond("--data", folder) as server, server.client() as a:
                equal(a.ask("KEYS", "*"), b"*1\r\n$5\r\nafter\r\n")
                equal(a.ask("SELECT", 3) + a.ask("DBSIZE"), OK + b":1\r\n")
                fill(a)
                equal(a.ask("FLUSHALL", "ASYNC"), OK)
                check(a.ask("KEYS", "*") == b"*0\r\n", "all databases are empty")


class Channels(Case):
    """PUBSUB CHANNELS goes through all channels, of which a client may have many."""
    PATTERN = "*" + 12 * "a?" + "b*"

    def listen(self, client):
        client.send(encoded("SUBSCRIBE", *(40 * "a" + f"{i:06}" for i in range(MANY))))
        for _ in range(MANY):
            client.answer()

    def test_others_are_served(self):
        with Sessiond("--threads", "1") as server, server.client() as a, server.client() as b, server.client() as c:
            self.listen(a)
            for _ in range(20):
                b.send(encoded("PUBSUB", "CHANNELS", self.PATTERN))
                for _ in range(3):
                    equal(c.ask("PING"), b"+PONG\r\n")
                is_early = not select.select([b.socket], [], [], 0)[0]
                equal(b.answer(), b"*0\r\n")
                if is_early:
                    return
            self.fail("nobody was served meanwhile")

    def test_each_is_told_once(self):
        with Sessiond("--threads", "1") as server, server.client() as a, server.client() as b:
            self.listen(a)
            equal(sorted(names(b.ask("PUBSUB", "CHANNELS")))[-1], 40 * b"a" + b"%06d" % (MANY - 1))
            equal(len(names(b.ask("PUBSUB", "CHANNELS", "*"))), MANY)
            equal(len(names(b.ask("PUBSUB", "CHANNELS", "*00"))), MANY // 100)
            b.send(encoded("MULTI") + encoded("PUBSUB", "CHANNELS", "*000001") + encoded("PING") + encoded("EXEC"))
            equal([b.answer() for _ in range(3)], [OK] + 2 * [b"+QUEUED\r\n"])
            equal(b.answer(), b"*2\r\n*1\r\n$46\r\n" + 40 * b"a" + b"000001\r\n+PONG\r\n")

    def test_channels_and_clients_may_go_in_the_middle(self):
        with Sessiond("--threads", "2") as server, server.client() as b:
            for _ in range(10):
                with server.client() as a, server.client() as c:
                    self.listen(a)
                    for client in (b, c):
                        client.send(encoded("PUBSUB", "CHANNELS", self.PATTERN) + encoded("PING"))
                    c.socket.close()
                    a.send(encoded("RESET"))
                equal([b.answer(), b.answer()], [b"*0\r\n", b"+PONG\r\n"])
            until(lambda: b.ask("PUBSUB", "CHANNELS") == b"*0\r\n", "no channel is left")
            equal(b.ask("PUBSUB", "NUMSUB", 40 * "a" + "000000"), b"*2\r\n$46\r\n" + 40 * b"a" + b"000000\r\n:0\r\n")


if __name__ == "__main__":
    main()
