#!/usr/bin/env python3
"""weekwheel-sessiond goes on serving others whatever a client does to let them wait, or to take memory."""
# tier: check, threads
import contextlib
import re
import signal

from attack import Process
from sessiond import Sessiond, encoded
from harness import Case, check, equal, main, matches, stopped, until

OK = b"+OK\r\n"
MEGABYTE = 1 << 20


def most_memory(server):
    """The most bytes that the server has ever taken."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) * 1024


class Memory(Case):
    def test_arguments_count(self):
        """Empty arguments take more memory than bytes."""
        with Sessiond("--max-buffers", "8M", "--threads", "1") as server, server.client() as hostile, server.client() as modest:
            equal(modest.ask("SET", "k", "v"), OK)
            with self.assertRaises(ConnectionError):
                hostile.send(b"*1000000\r\n" + b"$0\r\n\r\n" * 600000)
                hostile.more()
            equal(modest.ask("GET", "k"), b"$1\r\nv\r\n")
            server.stop()
            matches("more than --max-buffers", server.said)

    def test_long_names_are_refused(self):
        with Sessiond("--max-buffers", "8M", "--threads", "1") as server, server.client() as client:
            for words in (("SETNAME",), ("SETINFO", "LIB-NAME"), ("SETINFO", "LIB-VER")):
                matches("cannot be longer than 1024 bytes", client.ask("CLIENT", *words, "n" * MEGABYTE).decode())
                equal(client.ask("CLIENT", *words, "n" * 1024), OK)

    def stays_small(self, hoard):
        """What 70 clients let be made within one turn of a loop is bounded, too. Sanitizers keep some of what was freed."""
        with Sessiond("--max-buffers", "16M", "--threads", "1") as server, server.client() as modest:
            equal(modest.ask("SET", "big", "v" * (8 * MEGABYTE)), OK)
            clients = [server.client() for _ in range(70)]
            before = most_memory(server)
            hoard(server, clients, modest)
            equal(modest.ask("STRLEN", "big"), b":%d\r\n" % (8 * MEGABYTE))
            check(most_memory(server) - before < 450 * MEGABYTE, most_memory(server) - before)
            for client in clients:
                client.__exit__()
            server.stop()
            matches("more than --max-buffers", server.said)

    def test_many_large_answers(self):
        def hoard(server, clients, modest):
            with stopped(server):
                for client in clients:
                    client.send(b"GET big\r\n")
            # They come in turns.
            until(lambda: b"connected_clients:71\r\n" not in modest.ask("INFO", "clients"), "one is closed")

        self.stays_small(hoard)

    def one_answer(self, command):
        def hoard(_, clients, __):
            clients[0].send(command)
            with self.assertRaises(ConnectionError):
                while True:
                    clients[0].more()

        self.stays_small(hoard)

    def test_one_large_answer(self):
        self.one_answer(encoded("MGET", *["big"] * 100))

    def test_many_answers_at_once(self):
        self.one_answer(b"MULTI\r\n" + b"GET big\r\n" * 100 + b"EXEC\r\n")

    def test_one_message_to_many(self):
        def hoard(_, clients, modest):
            for client in clients:
                client.send(b"SUBSCRIBE c\r\n")
                client.answer()
            modest.ask("PUBLISH", "c", "v" * (3 * MEGABYTE))

        self.stays_small(hoard)

    def test_a_long_message_to_many_is_refused(self):
        """Its copies would hold the loop. Nobody loses the connection for it."""
        with Sessiond("--threads", "1") as server, server.client() as modest, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.client()) for _ in range(20)]
            for client in clients[:-1]:
                client.ask("SUBSCRIBE", "c")
            clients[-1].ask("PSUBSCRIBE", "c*")
            message = "v" * (13 * MEGABYTE)
            matches("-ERR too many clients listen for a message of this length", modest.ask("PUBLISH", "c", message).decode())
            for word, answer in (("PUBLISH", b":1\r\n"), ("SPUBLISH", b":0\r\n")):
                equal(modest.ask(word, "c1", message), answer)
            clients[-1].answer()
            equal(modest.ask("PUBLISH", "c", "short"), b":20\r\n")
            for client in clients:
                matches("short", client.answer().decode())

    def test_a_long_value_that_expires_comes_empty(self):
        """Whoever listens hears of the end, and keeps the connection."""
        with Sessiond("--threads", "1", "--clock", "virtual") as server, server.client() as client, contextlib.ExitStack() as stack:
            def expired(key, size):
                client.ask("SET", key, "v" * size, "PX", 1000)
                equal(client.ask("ADVANCE", 1000), OK)
                return {listener.answer() for listener in listeners}

            listeners = [stack.enter_context(server.client()) for _ in range(20)]
            for listener in listeners:
                listener.ask("PSUBSCRIBE", "__expired@*")
            long, alone = (b"*4\r\n$8\r\npmessage\r\n$11\r\n__expired@*\r\n$%d\r\n__expired@0__:%s\r\n$0\r\n\r\n" %
                           (14 + len(key), key) for key in (b"long", b"alone"))
            equal(expired("long", 14 * MEGABYTE), {long})
            equal({answer[-3:] for answer in expired("short", 12 * MEGABYTE)}, {b"v\r\n"})
            for listener in listeners[1:]:
                listener.ask("PUNSUBSCRIBE")
            del listeners[1:]
            equal(expired("alone", 17 * MEGABYTE), {alone})
            equal({answer[-3:] for answer in expired("alone", 14 * MEGABYTE)}, {b"v\r\n"})
            server.stop()
            matches("values that expire are told as empty ones", server.said)

    def test_long_names_of_channels_are_copied_too(self):
        with Sessiond("--threads", "1") as server, server.client() as modest, contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(server.client()).ask("PSUBSCRIBE", "*")
            name = "n" * (14 * MEGABYTE)
            matches("-ERR too many clients listen for a message of this length", modest.ask("PUBLISH", name, "").decode())
            modest.send(b"MULTI\r\n" + encoded("PUBLISH", "n" * (2 * MEGABYTE), "") * 10 + b"EXEC\r\n")
            answers = [modest.answer() for _ in range(12)][-1].decode()
            equal((answers.count(":20"), answers.count("-ERR this looks at too many")), (7, 3))

    def test_long_names_do_not_meet_many_patterns(self):
        """10,000 patterns that each take long. Neither does a channel, nor a key in events."""
        with Sessiond("--threads", "1", "--notify-keyspace-events", "KA") as server, server.client() as modest, contextlib.ExitStack() as stack:
            for client in range(14):
                patterns = ["*" + "?a" * 30 + f"b{client}.{number}" for number in range(600)]
                listener = stack.enter_context(server.client())
                listener.send(encoded("PSUBSCRIBE", *patterns))
                for _ in patterns:
                    listener.answer()
            process, name = Process(server), "a" * 65000
            before = process.processor()
            matches("^-ERR comparing a name of this length with all patterns takes too long", modest.ask("PUBLISH", name, "v").decode())
            matches("^-ERR events of that many keys take too long", modest.ask("SET", name, "v").decode())
            equal(modest.ask("SPUBLISH", name, "v"), b":0\r\n")
            cost, before = process.processor() - before, process.processor()
            # What is permitted takes long enough to compare with.
            equal(modest.ask("PUBLISH", "a" * 900, "v"), b":0\r\n")
            check(cost < 20 * (process.processor() - before), (cost, process.processor() - before))
            matches("^-ERR events of that many keys take too long", modest.ask("MSET", *(["a" * 900, "v"] * 4)).decode())
            equal(modest.ask("MSET", *(["a" * 100, "v"] * 3)), OK)

    def test_events_of_long_keys_are_bounded(self):
        """A key stands in the channel of one event, and in the message of the other."""
        keys = [f"{number}" + "k" * 65000 for number in range(10)]
        refusal = "events of that many keys take too long"
        for events, channel in (("KA", "__keyspace@0__:*"), ("EA", "__keyevent@0__:set")):
            with Sessiond("--notify-keyspace-events", events) as server, server.client() as client, contextlib.ExitStack() as stack:
                for _ in range(100):
                    stack.enter_context(server.client()).ask("PSUBSCRIBE", *(channel + "*" * more for more in range(8)))
                words = [word for key in keys[:7] for word in (key, "v")]
                matches("^-ERR " + refusal, client.ask("MSET", *words).decode())
                client.send(b"MULTI\r\n" + b"".join(encoded("SET", key, "v") for key in keys) + b"EXEC\r\n")
                matches("^-EXECABORT .*" + refusal, [client.answer() for _ in range(12)][-1].decode())
                equal(client.ask("DBSIZE"), b":0\r\n")
                equal(client.ask("SET", keys[0], "v"), OK)

    def test_long_messages_of_a_transaction_are_bounded(self):
        with Sessiond("--threads", "1") as server, server.client() as client, contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(server.client()).ask("SUBSCRIBE", "c")
            client.send(b"MULTI\r\n" + encoded("PUBLISH", "c", "v" * (2 * MEGABYTE)) * 10 + b"EXEC\r\n")
            answers = [client.answer() for _ in range(12)][-1].decode()
            equal((answers.count(":20"), answers.count("-ERR this looks at too many")), (7, 3))


MANY = 20000


def listener(server):
    """A client that has subscribed to many channels."""
    client = server.client()
    for first in range(0, MANY, 5000):
        client.send(encoded("SUBSCRIBE", *(f"c{number}" for number in range(first, first + 5000))))
        for _ in range(5000):
            client.answer()
    return client


class Shares(Case):
    """One client has much to do. Another that asks something meanwhile is answered before that is done."""

    def asked_meanwhile(self, server, modest, hostile, *words):
        with stopped(server):
            hostile()
            modest.send(encoded(*words))
        return modest.answer()

    def test_many_commands(self):
        with Sessiond("--threads", "1") as server, listener(server), server.client() as hostile, server.client() as modest:
            answer = self.asked_meanwhile(server, modest, lambda: hostile.send(b"PUBSUB CHANNELS nope\r\n" * 300),
                                          "INFO", "stats")
            done = int(re.search(rb"total_commands_processed:(\d+)", answer).group(1))
            check(done < 150, done)
            equal({hostile.answer() for _ in range(300)}, {b"*0\r\n"})

    def channels(self, server, modest, hostile):
        """How many channels there still are."""
        return int(self.asked_meanwhile(server, modest, hostile, "PUBSUB", "CHANNELS").split(b"\r\n")[0][1:])

    def test_who_has_subscribed_to_much_leaves(self):
        with Sessiond("--threads", "2") as server, server.client() as modest, server.client(), listener(server) as hostile:
            check(0 < self.channels(server, modest, lambda: hostile.__exit__()) < MANY, "some are left")
            # To one that leaves nothing is said any more.
            until(lambda: modest.ask("PUBLISH", f"c{MANY - 1}", "x") == b":0\r\n", "the last subscription is gone")
            until(lambda: modest.ask("PUBSUB", "CHANNELS") == b"*0\r\n", "all are gone")
            until(lambda: b"connected_clients:2\r" in modest.ask("INFO", "clients"), "the client is gone")

    @staticmethod
    def costs_of_channels():
        """Processor time of subscribing to 400,000 channels, 500 at a time."""
        with Sessiond("--threads", "1") as server, server.client() as hostile:
            process, costs, last = Process(server), [], b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"
            for first in range(0, 400000, 500):
                before = process.processor()
                hostile.send(encoded("SUBSCRIBE", *(f"c{number}" for number in range(first, first + 500))) + b"PING\r\n")
                while not hostile.unread.endswith(last):
                    hostile.more()
                hostile.unread = b""
                costs.append(process.processor() - before)
            return costs

    def test_tables_of_channels_grow_little_by_little(self):
        """No step takes much longer than others. What the system does meanwhile counts, too, but not at the same step each time."""
        costs = sorted(min(each) for each in zip(*(self.costs_of_channels() for _ in range(3))))
        check(costs[-1] < 12 * costs[len(costs) // 2], (costs[len(costs) // 2], costs[-3:]))

    def test_other_kinds_do_not_matter(self):
        """Who has many channels and no pattern gives up all patterns at once."""
        with Sessiond("--threads", "1") as server:
            process = Process(server)
            before = process.processor()
            with listener(server) as hostile:
                subscribing, before = process.processor() - before, process.processor()
                hostile.send(b"PUNSUBSCRIBE\r\n" * 3000)
                equal({hostile.answer() for _ in range(3000)}, {b"*3\r\n$12\r\npunsubscribe\r\n$-1\r\n:%d\r\n" % MANY})
                check(process.processor() - before < 4 * subscribing, (subscribing, process.processor() - before))

    def test_all_subscriptions_end(self):
        with Sessiond("--threads", "1") as server, server.client() as modest, listener(server) as hostile:
            check(0 < self.channels(server, modest, lambda: hostile.send(b"UNSUBSCRIBE\r\nPING\r\n")) < MANY, "some are left")
            answers = [hostile.answer() for _ in range(MANY)]
            equal(answers[-1], b"*3\r\n$11\r\nunsubscribe\r\n$6\r\nc19999\r\n:0\r\n")
            equal(len(set(answers)), MANY)
            equal(hostile.answer(), b"+PONG\r\n")

    def test_reset(self):
        with Sessiond("--threads", "1") as server, server.client() as modest, listener(server) as hostile:
            check(0 < self.channels(server, modest, lambda: hostile.send(b"RESET\r\nPING\r\n")) < MANY, "some are left")
            equal(hostile.answer() + hostile.answer(), b"+RESET\r\n+PONG\r\n")

    def test_one_stops_the_server_while_a_client_leaves(self):
        with Sessiond("--threads", "1") as server, listener(server) as hostile:
            with stopped(server):
                hostile.__exit__()
                server.process.send_signal(signal.SIGTERM)
            equal(server.ended(), 0)

    def test_what_waited_for_its_reader_is_kept(self):
        """A command that is carried out when the client has read a large answer is in the journal before it is answered."""
        with Sessiond("--data", "kept") as server, server.client() as client:
            equal(client.ask("SET", "big", "v" * (8 * MEGABYTE)), OK)
            client.send(encoded("GET", "big") + encoded("SET", "k", "v"))
            client.answer()
            equal(client.answer(), OK)
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "kept") as server, server.client() as client:
            equal(client.ask("GET", "k"), b"$1\r\nv\r\n")


class Words(Case):
    def test_that_go_on_behind_a_nul(self):
        """They begin as one that the server knows, and are compared with no more bytes than that has."""
        with Sessiond() as server, server.client() as a:
            for size in (1, 5, 100, 8 * MEGABYTE):
                nuls = b"\0" * size
                equal(a.ask("SET", "a", "b", b"EX" + nuls, 10), b"-ERR syntax error\r\n")
                matches("^-ERR Unsupported option", a.ask("EXPIRE", "a", 10, b"NX" + nuls)[:99].decode())
                matches("^-ERR unknown command 'GET'", a.ask(b"GET" + nuls, "a").decode())
                equal(a.ask("INFO", b"ALL" + nuls), b"$0\r\n\r\n")


class Patterns(Case):
    """Without a bound each of these takes minutes."""

    def test_of_keys(self):
        with Sessiond("--threads", "1") as server, server.client() as client:
            for number in range(50):
                equal(client.ask("SET", "a" * 65000 + str(number), "v"), OK)
            equal(client.ask("KEYS", "*" + "a" * 32000 + "b"), b"*0\r\n")
            equal(client.ask("KEYS", "*" + "a" * 4000 + "b"), b"*0\r\n")
            equal(client.ask("KEYS", "*a*7")[:4], b"*5\r\n")

    def test_of_channels(self):
        with Sessiond("--threads", "1") as server, server.client() as listener, server.client() as client:
            listener.send(encoded("SUBSCRIBE", "a" * 1000000))
            listener.answer()
            listener.send(encoded("PSUBSCRIBE", "*" + "a" * 500000 + "b", "*" * 500000 + "c", "a*"))
            for _ in range(3):
                listener.answer()
            equal(client.ask("PUBSUB", "CHANNELS", "*" + "a" * 4000 + "b"), b"*0\r\n")
            equal(client.ask("PUBSUB", "CHANNELS", "a*")[:4], b"*1\r\n")
            equal(client.ask("PUBLISH", "a" * 900000, "said"), b":1\r\n")


if __name__ == "__main__":
    main()
