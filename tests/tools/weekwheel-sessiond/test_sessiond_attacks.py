#!/usr/bin/env python3
"""Ten clients ask weekwheel-sessiond for all that it has and read nothing, or begin what they do not end. Others are served."""
# tier: check
import contextlib
import os

from attack import Attack, Probe, Process
from harness import Case, check, descriptors, equal, main, matches, stopped
from sessiond import Sessiond, encoded

MB = 1 << 20
KEYS = 50000


def fill(client):
    """Many keys, each with a short value."""
    for first in range(0, KEYS, 1000):
        client.send(b"".join(encoded("SET", f"key:{number}", "v" * 10) for number in range(first, first + 1000)))
        for _ in range(1000):
            client.answer()


class Attacks(Case):
    COUNT, BOUND, SECONDS = 10, 32 * MB, 3
    LEAST, PART = 0.02, 2   # seconds of processor time that anybody may wait, or a part of the cost of all

    def setUp(self):
        super().setUp()
        descriptors(4 * self.COUNT + 200)

    def attack(self, rest, first=b"", big=0, is_filled=False, options=()):
        server = self.enterContext(Sessiond("--threads", "1", "--max-buffers", str(self.BOUND), *options))
        with server.client() as client:
            if is_filled:
                fill(client)
            client.ask("SET", "big", b"v" * big)
        with Attack(server, server.port, self.COUNT, rest, first) as attack:
            attack.run(Probe(server, b"PING\r\n"), self.SECONDS)
            attack.held(self.BOUND, self.LEAST, self.PART)

    def test_keys(self):
        self.attack(b"KEYS *\r\n", is_filled=True)

    def test_keys_in_a_transaction(self):
        self.attack(encoded("KEYS", "*" + "a" * 100) * 20 + b"EXEC\r\n", b"MULTI\r\n", is_filled=True)

    def test_large_transactions(self):
        self.attack(b"GET big\r\n" * 200 + b"EXEC\r\n", b"MULTI\r\n", MB)

    def test_long_transactions(self):
        self.attack(b"GET key:7\r\n" * KEYS + b"EXEC\r\n", b"MULTI\r\n", is_filled=True)

    def test_values_of_many_keys(self):
        self.attack(encoded("MGET", *(f"key:{number}" for number in range(KEYS))), is_filled=True)

    def test_many_large_values(self):
        self.attack(encoded("MGET", *["big"] * 200), big=MB)

    def test_large_values(self):
        self.attack(b"GET big\r\n" * 10, big=4 * MB)

    def test_large_values_that_grow(self):
        self.attack(b"APPEND big x\r\n", big=8 * MB)

    def test_values_that_have_no_end(self):
        self.attack(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16000000\r\n" + b"v" * 8000000)

    def test_subscriptions(self):
        """While clients that are closed give their memory back, others take no more. Three of these may come between two probes."""
        self.PART = 1
        self.attack(encoded("SUBSCRIBE", *(f"channel:{number}" for number in range(KEYS))))

    def test_lists_of_long_names(self):
        self.attack(encoded("CLIENT", "SETINFO", "lib-name", "n" * 3 * MB) + b"CLIENT LIST\r\n" * 50)

    def test_empty_arguments(self):
        self.attack(b"*1000000\r\n" + b"$0\r\n\r\n" * 300000)


class Refusals(Case):
    def test_a_large_value_is_no_number(self):
        """That is known by its size, without a copy."""
        with Sessiond() as server, server.client() as client:
            equal(client.ask("SET", "big", b"1" * (64 * MB)), b"+OK\r\n")
            process = Process(server)
            process.forget_peak()
            before = process.memory("VmHWM")
            for words in (("INCR", "big"), ("DECR", "big"), ("INCRBY", "big", 5), ("DECRBY", "big", 5)):
                equal(client.ask(*words), b"-ERR value is not an integer or out of range\r\n")
            taken = process.memory("VmHWM") - before
            check(taken < 32 * MB or os.environ.get("SANITIZE"), taken)

    def test_large_values_get_other_names_in_turn(self):
        """The journal gets each with its new name. Another client comes between them."""
        with Sessiond("--threads", "1", "--data", "data", "--sync", "system") as server, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.client()) for _ in range(10)]
            for number, client in enumerate(clients):
                equal(client.ask("SET", number, b"v" * (8 * MB)), b"+OK\r\n")
            with server.client() as other:
                equal(other.ask("PING"), b"+PONG\r\n")
                process = Process(server)
                with stopped(server):
                    for number, client in enumerate(clients):
                        client.send(encoded("RENAME", number, f"other{number}"))
                    other.send(encoded("PING"))
                begun = process.processor()
                equal(other.answer(), b"+PONG\r\n")
                waited = process.processor() - begun
            equal([client.answer() for client in clients], [b"+OK\r\n"] * 10)
            check(waited < (process.processor() - begun) / 2, (waited, process.processor() - begun))

    def test_words_are_bounded(self):
        """Of commands without keys, channels or values."""
        refusal = b"-ERR too many arguments\r\n"
        with Sessiond() as server, server.client() as client:
            for words in (("CONFIG", "GET"), ("COMMAND", "INFO"), ("COMMAND", "DOCS"), ("INFO",)):
                equal((words, client.ask(*words, *["x"] * 1025)), (words, refusal))
                check(client.ask(*words, *["x"] * 1000)[:1] in b"*$", words)
            equal(client.ask("EXISTS", *["x"] * 2000), b":0\r\n")
            equal(client.ask("PUBSUB", "NUMSUB", *["x"] * 2000)[:7], b"*4000\r\n")
            equal(client.ask("MULTI") + client.ask("CONFIG", "GET", *["x"] * 1025), b"+OK\r\n" + refusal)
            equal(client.ask("EXEC")[:10], b"-EXECABORT")

    def test_a_walk_of_a_transaction_is_bounded(self):
        with Sessiond() as server, server.client() as client:
            equal(client.ask("SET", "k", "v"), b"+OK\r\n")
            client.send(b"MULTI\r\n" + encoded("KEYS", "*") + encoded("SCAN", 0, "COUNT", 60000) * 2 + b"EXEC\r\n")
            answers = [client.answer() for _ in range(5)]
            parts = answers[-1].split(b"\r\n")
            equal(parts[:3], [b"*3", b"*1", b"$1"])
            matches("^-ERR this looks at too many keys, channels or clients", answers[-1].decode())
            equal(client.ask("SCAN", 0, "COUNT", 1000000)[:10], b"*2\r\n$1\r\n0\r\n"[:10])

    def test_patterns_of_a_transaction_are_bounded(self):
        with Sessiond() as server, server.client() as client:
            for number in range(2000):
                client.send(encoded("SET", "a" * 4000 + str(number), "v"))
            for _ in range(2000):
                client.answer()
            # Each costs 4,000 steps for each key, and the keys are no more than a transaction may look at.
            scan = encoded("SCAN", 0, "COUNT", 2000, "MATCH", "a?" * 2000)
            client.send(b"MULTI\r\n" + scan * 20 + b"EXEC\r\n")
            answer = [client.answer() for _ in range(22)][-1].decode()
            matches("-ERR this looks at too many keys, channels or clients", answer)
            check(1 <= answer.count("-ERR") < 20, answer[:1000])
            # The next transaction begins anew, and outside of one there is no bound.
            client.send(b"MULTI\r\n" + scan + b"EXEC\r\n")
            check(b"-ERR" not in [client.answer() for _ in range(3)][-1], "one scan")
            for _ in range(20):
                check(client.ask("SCAN", 0, "COUNT", 2000, "MATCH", "a?" * 2000).startswith(b"*2"), "a scan")

    def test_samples_of_a_transaction_are_bounded(self):
        with Sessiond() as server, server.client() as client:
            fill(client)
            client.send(b"MULTI\r\n" + encoded("INFO", "keyspace") * 1000 + encoded("KEYS", "none") + b"EXEC\r\n")
            answer = [client.answer() for _ in range(1003)][-1].decode()
            # They have looked at all keys that the transaction may look at.
            equal(answer.count(f"keys={KEYS}"), 1000)
            matches("-ERR this looks at too many keys, channels or clients", answer)

    def test_random_keys_of_a_transaction_are_bounded(self):
        """Each looks at some keys, and at many places where a table had more keys once."""
        with Sessiond() as server, server.client() as client:
            fill(client)
            for first in range(0, KEYS - 10, 10000):
                exec_random = b"MULTI\r\n" + b"RANDOMKEY\r\n" * 20000 + b"EXEC\r\n"
                client.send(exec_random)
                answer = [client.answer() for _ in range(20002)][-1]
                check(1 <= answer.count(b"$") < 20000, answer.count(b"$"))
                equal(answer.count(b"$") + answer.count(b"-ERR this looks at too many keys"), 20000)
                keys = [f"key:{number}" for number in range(first, min(first + 10000, KEYS - 10))]
                equal(client.ask("DEL", *keys), b":%d\r\n" % len(keys))
            check(client.ask("RANDOMKEY").startswith(b"$"), "outside of one there is no bound")

    def test_clients_of_a_transaction_are_bounded(self):
        """CLIENT KILL and CLIENT LIST ask the system for the address of each."""
        with Sessiond() as server, contextlib.ExitStack() as stack:
            *_, client = [stack.enter_context(server.client()) for _ in range(200)]
            equal(client.ask("PING"), b"+PONG\r\n")
            for words, alone in ((("KILL", "ADDR", "192.0.2.1:1"), b":0\r\n"), (("LIST", "TYPE", "master"), b"$0\r\n\r\n")):
                client.send(b"MULTI\r\n" + encoded("CLIENT", *words) * 500 + b"EXEC\r\n")
                answer = [client.answer() for _ in range(502)][-1].decode()
                matches("-ERR this looks at too many keys, channels or clients", answer)
                check(answer.count(alone.decode()) >= 65536 // 4 // 201, "some of them are carried out")
                for _ in range(500):
                    equal(client.ask("CLIENT", *words), alone)

    def test_messages_of_a_transaction_are_bounded(self):
        pattern = "a?" * 2000
        with Sessiond("--max-patterns", "1000") as server, server.client() as client, server.client() as listener:
            for number in range(100):
                listener.ask("PSUBSCRIBE", pattern + str(number))
                listener.ask("SUBSCRIBE", "a" * 4000 + str(number))
            for words in (("PUBLISH", "a" * 4000, "x"), ("PUBSUB", "CHANNELS", pattern)):
                client.send(b"MULTI\r\n" + encoded(*words) * 200 + b"EXEC\r\n")
                answer = [client.answer() for _ in range(202)][-1]
                refused = answer.count(b"-ERR this looks at too many keys, channels or clients")
                check(1 <= refused < 200, (words, refused))
                client.send(b"MULTI\r\n" + encoded(*words) + b"EXEC\r\n")
                check(b"-ERR" not in [client.answer() for _ in range(3)][-1], "one of them")

    def test_events_of_a_command_are_bounded(self):
        """They are compared with all patterns, and nothing is done of what would take too long."""
        pairs = [word for number in range(20000) for word in (f"key:{number}", "v")]
        refusal = "events of that many keys take too long with these patterns"
        with Sessiond("--notify-keyspace-events", "KA") as server, server.client() as client, server.client() as listener:
            def sets(keys):
                client.send(b"MULTI\r\n" + b"".join(encoded("SET", *pairs[i:i + 2]) for i in range(0, 2 * keys, 2)) + b"EXEC\r\n")
                return [client.answer() for _ in range(keys + 2)][-1].decode()
            for number in range(200):
                listener.ask("PSUBSCRIBE", f"__keyspace@0__:key:*none{number}")
            matches("^-ERR " + refusal, client.ask("MSET", *pairs).decode())
            matches("^-EXECABORT .*" + refusal, sets(20000))
            equal(client.ask("DBSIZE"), b":0\r\n")
            equal(client.ask("MSET", *pairs[:2000]), b"+OK\r\n")
            equal(sets(1000), "*1000\r\n" + "+OK\r\n" * 1000)
            matches("^-ERR " + refusal, client.ask("DEL", *pairs[::2]).decode())
            # Reads tell nothing, and nothing is told without events.
            equal(client.ask("EXISTS", *pairs[::2]), b":1000\r\n")
            equal(client.ask("CONFIG", "SET", "notify-keyspace-events", ""), b"+OK\r\n")
            equal(client.ask("MSET", *pairs), b"+OK\r\n")

    def test_listeners_of_any_event_are_bounded(self):
        """Each is sent all events of its kind. A transaction has those of the databases that it chooses."""
        names = [f"key:{number}" for number in range(20000)]
        pairs = [word for name in names for word in (name, "v")]
        refusal = "events of that many keys take too long with these patterns and listeners"
        with Sessiond("--notify-keyspace-events", "EA") as server, server.client() as client, contextlib.ExitStack() as stack:
            def transaction(*commands):
                client.send(b"MULTI\r\n" + b"".join(encoded(*words) for words in commands) + b"EXEC\r\n")
                return [client.answer() for _ in range(len(commands) + 2)][-1].decode()
            for event, commands in (("del", (("DEL", *names),)), ("set", (("MSET", *pairs),)),
                                    ("rename_to", tuple(("RENAME", "a", "b") for _ in names))):
                for _ in range(20):
                    equal(stack.enter_context(server.client()).ask("SUBSCRIBE", f"__keyevent@1__:{event}")[:1], b"*")
                check(not transaction(*commands).startswith("-"), "another database")
                matches("^-EXECABORT .*" + refusal, transaction(("SELECT", "1"), *commands))
                matches("^-EXECABORT .*" + refusal, transaction(("SELECT", "1"), ("SELECT", "99"), ("SELECT", "x"), *commands))
                check(not transaction(("SELECT", "1"), ("SELECT", "0"), *commands).startswith("-"), "back again")
                equal(client.ask("SELECT", "1"), b"+OK\r\n")
                matches("^-EXECABORT .*" + refusal, transaction(*commands))
                if len(commands) == 1:
                    matches("^-ERR " + refusal, client.ask(*commands[0]).decode())
                check(not transaction(("SELECT", "0"), *commands).startswith("-"), "a database without listeners")
                stack.close()
                check(not client.ask("SELECT", "0").startswith(b"-"), "the first database")

    def test_names_of_a_command_are_bounded(self):
        names = [f"key:{number}" for number in range(100001)]
        pairs = [word for name in names for word in (name, "v")]
        with Sessiond() as server, server.client() as client:
            few = names[:33334]
            for words in (("MSET", *pairs[:2 * 33334]), ("MSETNX", *pairs[:2 * 33334]), ("PUBSUB", "NUMSUB", *names),
                          *((word, *names) for word in ("MGET", "DEL", "UNLINK", "EXISTS")),
                          *((word, *few) for word in ("SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"))):
                matches("^-ERR more than 100000 keys or channels in a command", client.ask(*words).decode())
            equal(client.ask("DBSIZE"), b":0\r\n")
            equal(client.ask("MSET", *pairs[:2 * 33333]), b"+OK\r\n")
            equal(client.ask("DEL", *names[1:]), b":33332\r\n")
            for words, count in ((("SET", "a", "b"), 33334), (("PING",), 100001), (("MSET", *pairs[:2 * 20000]), 2), (("DEL", *names[:75000]), 2)):
                client.send(b"MULTI\r\n" + encoded(*words) * count + b"EXEC\r\n")
                answers = [client.answer() for _ in range(count + 2)]
                matches("^-EXECABORT .* more than 100000 commands, keys and channels", answers[-1].decode())
            equal(client.ask("DBSIZE"), b":1\r\n")

    def test_subscriptions_that_a_transaction_ends_are_bounded(self):
        """It cannot do that in pieces, and a client may have millions."""
        with Sessiond() as server, server.client() as client:
            client.ask("HELLO", "3")
            for part in range(3):
                client.send(encoded("SUBSCRIBE", *(f"channel:{part}:{number}" for number in range(30000))))
                for _ in range(30000):
                    check(client.answer().startswith(b">3"), "subscribed")
            client.send(b"MULTI\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nEXEC\r\n")
            answer = [client.answer() for _ in range(4)][-1]
            matches("^.2\r\n-ERR this looks at too many keys, channels or clients", answer.decode())
            client.send(encoded("UNSUBSCRIBE"))
            equal([client.answer() for _ in range(90000)][-1][-4:], b":0\r\n")

    def test_bytes_that_are_set_at_once_are_bounded(self):
        """One large value among them does not count: alone it would take as long."""
        value = "v" * (1 << 20)
        with Sessiond() as server, server.client() as client:
            for large, count, fits in (("v" * (40 << 20), 31, True), (value, 31, True), (value, 32, False)):
                pairs = [word for number in range(count) for word in (str(number), value)] + ["large", large]
                matches("^.OK" if fits else "^-ERR a command or transaction cannot change so many bytes", client.ask("MSET", *pairs).decode())
                client.send(b"MULTI\r\n" + b"".join(encoded("SET", *pairs[i:i + 2]) for i in range(0, len(pairs), 2)) + b"EXEC\r\n")
                answer = [client.answer() for _ in range(count + 3)][-1].decode()
                matches(f"^.{count + 1}" if fits else "^-EXECABORT .* more than 32 MiB of commands besides the largest", answer)

    def test_what_a_transaction_copies_is_bounded(self):
        """Each APPEND makes another value of the former one, and each RENAME a record of the journal."""
        for commands, last in ((("APPEND a b",) * 3, "APPEND a b"), (("RENAME a b", "RENAME b a") * 2, "RENAME a b")):
            with Sessiond() as server, server.client() as client:
                equal(client.ask("SET", "a", "v" * (16 << 20)), b"+OK\r\n")
                client.send("".join(f"{line}\r\n" for line in ("MULTI", *commands, "EXEC")).encode())
                first, second, third = [client.answer() for _ in range(len(commands) + 2)][-1].decode().split("\r\n")[1:4]
                matches("^(:|.OK)", first)
                matches("^(:|.OK)", second)
                matches("^-ERR this copies too many bytes for a transaction", third)
                matches("^(:|.OK)", client.ask(*last.split()).decode())

    def test_logins_of_a_transaction_are_bounded(self):
        with open("password", "w", encoding="utf-8") as file:
            file.write("secret\n")
        with Sessiond("--requirepass-file", "password") as server, server.client() as client:
            equal(client.ask("AUTH", "secret"), b"+OK\r\n")
            client.send(b"MULTI\r\n" + b"AUTH secret\r\n" * 4097 + b"EXEC\r\n")
            answers = [client.answer() for _ in range(4099)][-1].split(b"\r\n")[1:-1]
            equal(answers[:-1], [b"+OK"] * 4096)
            matches("^-ERR this looks at too many", answers[-1].decode())

    def test_words_of_a_transaction_are_bounded(self):
        """INFO compares each of its words with the names of its parts."""
        info = encoded("INFO", *["none"] * 999)
        with Sessiond() as server, server.client() as client:
            for count, answer in ((98, rb"^\*98\r\n"), (99, rb"^-EXECABORT .* more than 100000 commands")):
                client.send(b"MULTI\r\n" + info * count + b"EXEC\r\n")
                self.assertRegex([client.answer() for _ in range(count + 2)][-1], answer)

    def test_what_tells_of_the_server_counts_more(self):
        """It takes long, and its answer may be none: CLIENT REPLY OFF."""
        with Sessiond() as server, server.client() as client:
            refused = rb"^-EXECABORT .* more than 100000 commands"
            for word, count, answer in ((b"INFO none\r\n", 5882, rb"^\*5882\r\n"), (b"INFO none\r\n", 5883, refused),
                                        (b"COMMAND DOCS\r\n", 5883, refused), (b"CONFIG GET *\r\n", 5556, refused)):
                client.send(b"MULTI\r\n" + word * count + b"EXEC\r\n")
                self.assertRegex([client.answer() for _ in range(count + 2)][-1], answer)

    def test_watched_keys_are_bounded(self):
        names = [f"key:{number}" for number in range(50000)]
        with Sessiond() as server, server.client() as client:
            equal(client.ask("WATCH", *names), b"+OK\r\n")
            matches("^-ERR more than 50000 watched keys", client.ask("WATCH", *names, "more").decode())
            matches("^-ERR more than 50000 watched keys", client.ask("WATCH", "more").decode())
            # What is refused is not watched, and EXEC names what it compares.
            client.send(b"MULTI\r\n" + encoded("SET", "more", "v") + b"EXEC\r\n")
            equal([client.answer() for _ in range(3)][-1], b"*1\r\n+OK\r\n")
            for more, answer in (((), "^.1\r\n:0"), (("more",), "^-EXECABORT .*more than 100000 commands, keys and channels, with the watched ones")):
                equal(client.ask("WATCH", *names), b"+OK\r\n")
                client.send(b"MULTI\r\n" + encoded("DEL", *names, *more) + b"EXEC\r\n")
                matches(answer, [client.answer() for _ in range(3)][-1].decode())
            for _ in range(4):
                equal(client.ask("WATCH", *names), b"+OK\r\n")
                equal(client.ask("UNWATCH"), b"+OK\r\n")

    def test_a_transaction_does_not_delete_very_many_keys(self):
        with Sessiond() as server, server.client() as client:
            for number in range(5):
                equal(client.ask("SELECT", number), b"+OK\r\n")
                fill(client)
            for first in (b"FLUSHALL\r\n", b"SELECT 1\r\nFLUSHDB\r\n"):
                client.send(b"MULTI\r\nSET a 1\r\n" + first + b"EXEC\r\n")
                answers = [client.answer() for _ in range(3 + first.count(b"\n"))]
                matches("^-EXECABORT .* FLUSHALL and FLUSHDB delete too many keys", answers[-1].decode())
            equal(client.ask("EXISTS", "a"), b":0\r\n")
            client.send(b"MULTI\r\nFLUSHDB\r\nSET a 1\r\nEXEC\r\n")
            equal([client.answer() for _ in range(4)][-1], b"*2\r\n+OK\r\n+OK\r\n")
            equal(client.ask("FLUSHALL"), b"+OK\r\n")
            equal(client.ask("DBSIZE"), b":0\r\n")

    def test_answers_to_one_command_are_bounded(self):
        with Sessiond("--max-buffers", "32M") as server, server.client() as client, server.client() as greedy:
            for key, size in (("big", MB), ("huge", 20 * MB)):
                equal(client.ask("SET", key, b"v" * size), b"+OK\r\n")
            # An eighth of the bound; a single value may be longer.
            equal(len(client.ask("MGET", *["big"] * 3)), 3 * (MB + 12) + 4)
            equal(len(client.ask("GET", "huge")), 20 * MB + 13)
            with self.assertRaises(ConnectionError):
                greedy.ask("MGET", *["big"] * 5)
            server.stop()
            matches("answered with more than an eighth of --max-buffers", server.said)

    def test_patterns_are_shared(self):
        with Sessiond("--max-patterns", "900") as server, server.client() as greedy, server.client() as modest:
            greedy.send(encoded("PSUBSCRIBE", *(f"*a*b{number}" for number in range(900))))
            answers = [greedy.answer() for _ in range(900)]
            equal(sum(answer.startswith(b"*3") for answer in answers), 100)
            equal(answers[-1], b"-ERR max number of patterns reached\r\n")
            # What others have is compared anyway.
            modest.send(encoded("PSUBSCRIBE", *(f"*a*b{number}" for number in range(100))))
            for _ in range(100):
                check(modest.answer().startswith(b"*3"), "it has them")
            with server.client() as third:
                third.send(encoded("PSUBSCRIBE", *(f"*c{number}" for number in range(8))))
                for _ in range(8):
                    check(third.answer().startswith(b"*3"), "some are left for one more")
            equal(modest.ask("PUNSUBSCRIBE", "*a*b0")[:4], b"*3\r\n")
            server.stop()
            matches("too many patterns for --max-patterns", server.said)


if __name__ == "__main__":
    main()
