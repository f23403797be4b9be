#!/usr/bin/env python3
"""weekwheel-sessiond bounds what clients take: commands that never end, transactions, answers that nobody reads."""
# tier: check, threads

from sessiond import Sessiond, encoded
from harness import Case, equal, main, matches, stopped, until

OK = b"+OK\r\n"
MEGABYTE = 1 << 20


class Bounds(Case):
    def served(self, hoard):
        """Clients hoard more than there may be. Those with the most are closed, and a modest one is served."""
        with Sessiond("--max-buffers", "8M", "--threads", "2") as server, server.client() as modest:
            equal(modest.ask("SET", "big", "v" * MEGABYTE), OK)
            hoarders = [server.client() for _ in range(12)]
            for client in hoarders:
                try:
                    hoard(client)
                except ConnectionError:
                    pass
            equal(modest.ask("GET", "absent"), b"$-1\r\n")
            equal(modest.ask("STRLEN", "big"), b":%d\r\n" % MEGABYTE)
            until(lambda: b"connected_clients:13\r" not in modest.ask("INFO", "clients"), "one of them is closed")
            for client in hoarders:
                client.__exit__()
            server.stop()
            return server.said

    def test_answers_beside_a_long_turn(self):
        """Commands that wait for another turn are carried out once, and their answers are those of any other time."""
        def asked(*commands):
            return b"".join(encoded(*command) for command in commands)

        def conversations():
            yield asked(("KEYS", "*"))
            yield asked(("SCAN", "0", "COUNT", "1000"))
            yield asked(("MGET", "k1", "big", "k2"), ("GET", "k3"))
            yield asked(("GET", "big"), ("GET", "k1"))
            yield asked(("GETEX", "big", "EX", "1000"), ("GET", "k1"))
            yield asked(("MULTI",), ("SCAN", "5"), ("SCAN", "5"), ("KEYS", "k*"), ("EXEC",), ("GET", "k1"))
            yield asked(("MULTI",), *(20 * [("GET", "big")]), ("EXEC",))
            yield asked(("GETDEL", "k9"), ("GET", "k1"))

        with Sessiond("--threads", "1") as server, server.client() as a:
            for i in range(1, 9):
                equal(a.ask("SET", "k%d" % i, str(i)), OK)
            equal(a.ask("SET", "big", "v" * 100000), OK)
            for i in range(16):
                equal(a.ask("SET", "huge%d" % i, "v" * (4 * MEGABYTE)), OK)
            count = a.ask("DBSIZE")
            equal(count, b":25\r\n")

            def talk(client, conversation):
                """The answers to it, and to what follows."""
                client.send(conversation + encoded("ECHO", "the end"))
                answers = []
                while not answers or answers[-1] != b"$7\r\nthe end\r\n":
                    answers.append(client.answer())
                return answers
            for conversation in conversations():
                equal(a.ask("SET", "k9", "9"), OK)
                wanted = talk(a, conversation)
                equal(a.ask("SET", "k9", "9"), OK)
                clients = [server.client() for _ in range(6)]
                with stopped(server):
                    for client in clients[::2]:
                        client.send(encoded("MGET", *("huge%d" % i for i in range(16))))
                    for client in clients[1:2]:
                        client.send(conversation + encoded("ECHO", "the end"))
                answers = []
                while not answers or answers[-1] != b"$7\r\nthe end\r\n":
                    answers.append(clients[1].answer())
                equal([sorted(answer.split()) for answer in answers], [sorted(answer.split()) for answer in wanted], conversation[:60])
                for client in clients[::2]:
                    equal(len(client.answer()), 5 + 16 * (4 * MEGABYTE + 12))
                for client in clients:
                    client.__exit__()

    def test_answers_that_nobody_reads(self):
        # More than the kernel keeps of each.
        said = self.served(lambda client: client.send(b"GET big\r\n" * 40))
        matches("more than --max-buffers", said)

    def test_commands_that_do_not_end(self):
        said = self.served(lambda client: client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4000000\r\n" + b"v" * 2000000))
        matches("more than --max-buffers", said)

    def test_transactions_that_do_not_end(self):
        def hoard(client):
            equal(client.ask("MULTI"), OK)
            for _ in range(4):
                client.send(encoded("SET", "k", "v" * 500000))
                client.answer()

        said = self.served(hoard)
        matches("more than --max-buffers", said)

    def test_subscriptions_with_long_names(self):
        def hoard(client):
            for number in range(4):
                client.send(encoded("SUBSCRIBE", f"{number}" + "c" * 500000))
                client.answer()

        said = self.served(hoard)
        matches("more than --max-buffers", said)

    def test_one_that_has_little_stays(self):
        """Only those with the most are closed."""
        with Sessiond("--max-buffers", "8M", "--threads", "1") as server, server.client() as small, server.client() as large:
            equal(small.ask("MULTI"), OK)
            equal(small.ask("SET", "k", "v" * 1000), b"+QUEUED\r\n")
            equal(large.ask("MULTI"), OK)
            with self.assertRaises(ConnectionError):
                for _ in range(20):
                    large.ask("SET", "k", "v" * MEGABYTE)
            equal(small.ask("EXEC"), b"*1\r\n" + OK)

    def test_clients_of_one_address(self):
        with Sessiond("--max-connections-per-address", "2") as server, server.client() as first:
            for _ in range(3):
                with server.client() as second:
                    equal(second.ask("PING"), b"+PONG\r\n")
                    with server.client() as third:
                        equal(third.answer(), b"-ERR max number of clients reached\r\n")
                # Its place is free when the server has seen that it is gone.
                until(lambda: b"connected_clients:1\r\n" in first.ask("INFO", "clients"), "it is gone")
            server.stop()
            matches("--max-connections-per-address", server.said)


if __name__ == "__main__":
    main()
