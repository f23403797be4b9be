#!/usr/bin/env python3
"""Corners of the protocol that no random command comes to, at weekwheel-sessiond and at Redis: the same bytes."""
# tier: check
import os
import re
import tempfile

from sessiond import RedisServer, Sessiond, encoded
from harness import Case, equal, main

MARK = b"$4\r\nmark\r\n"


def commands(*lines):
    """The bytes of commands: each a list of words, or a text that is split at its blanks."""
    return b"".join(encoded(*(line.split(" ") if isinstance(line, str) else line)) for line in lines)


def said(server, steps):
    """
    What each client hears in all. A step is a client's number and the bytes that it sends. One ends before the next
    begins: its client asks for a mark. At the end each client says QUIT.
    """
    clients = []
    for number, (who, data) in enumerate(steps):
        while len(clients) <= who:
            clients.append(server.client())
        client = clients[who]
        client.send(data)
        if number + 1 < len(steps):
            client.send(encoded("PING", "mark"))
            while MARK not in client.unread:
                client.more()
            client.unread = client.unread.replace(MARK, b"")
    heard = []
    for client in clients:
        with client:
            try:
                client.send(encoded("QUIT"))
            except OSError:
                pass
            # They count their clients each for itself.
            heard.append(re.sub(rb"\$2\r\nid\r\n:\d+", b"id", rest(client)))
    return heard


def rest(client):
    """What still comes. Who is closed while it says something may lose what it has not read, but nothing here is long."""
    data = client.unread
    try:
        while more := client.socket.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


class Corners(Case):
    ours = theirs = ()

    def setUp(self):
        super().setUp()
        self.redis = self.enterContext(RedisServer(*self.theirs))
        self.server = self.enterContext(Sessiond(*self.ours))

    def same(self, *steps):
        """Each step is what the first client sends, or a number and what that one does."""
        steps = [step if isinstance(step, tuple) else (0, step) for step in steps]
        equal(said(self.server, steps), said(self.redis, steps), steps)

    def each(self, *lines):
        """Each of these alone."""
        for line in lines:
            self.same(commands(line))


class Refusals(Corners):
    def test_while_subscribed(self):
        for protocol in ("HELLO 2", "HELLO 3"):
            for word in ("CLIENT GETNAME", "CLIENT NOPE", "CONFIG GET databases", "PUBSUB NUMPAT", "GET a", "GET", "MULTI",
                         "EXEC", "EXEC x", "DISCARD"):
                self.same(commands(protocol, "SUBSCRIBE a", word, "PING"))

    def test_exec_says_that_it_ends_the_transaction(self):
        self.each("EXEC x", "EXEC")
        self.same(commands("MULTI", "EXEC x", "EXEC"))
        self.same(commands("SET a 1", "WATCH a", "SET a 2", "EXEC x", "MULTI", "PING", "EXEC"))

    def test_what_a_transaction_may_not(self):
        self.same(commands("MULTI", "SSUBSCRIBE a", "SUBSCRIBE a", "PSUBSCRIBE a", "GET b", "EXEC", "PING"))


class Strangers(Corners):
    theirs = ("--requirepass", "secret")

    def setUp(self):
        file = tempfile.NamedTemporaryFile("w", encoding="utf-8")
        self.addCleanup(file.close)
        file.write("secret\n")
        file.flush()
        self.ours = ("--requirepass-file", file.name)
        super().setUp()

    def test_are_refused(self):
        self.each("EXEC", "EXEC x", "GET a", "MULTI", "CLIENT ID", "CLIENT NOPE", "NOPE", "RESET", "HELLO 3", "PING")


class Replies(Corners):
    def test_some_are_left_out(self):
        for protocol in ("HELLO 2", "HELLO 3"):
            for first in ("CLIENT REPLY OFF", "CLIENT REPLY SKIP"):
                for word in ("PING", "NOPE", "SUBSCRIBE a b", "PSUBSCRIBE a", "UNSUBSCRIBE", "CLIENT REPLY ON",
                             "CLIENT REPLY SKIP", "KEYS nothing", "CLIENT LIST", "CONFIG GET databases"):
                    self.same(commands(protocol, first, word, "PING", "CLIENT REPLY ON", "PING", "RESET"))

    def test_within_a_transaction(self):
        for word in ("CLIENT REPLY OFF", "CLIENT REPLY SKIP"):
            self.same(commands("MULTI", "PING", word, "PING", "EXEC", "PING", "CLIENT REPLY ON", "PING"))
        self.same(commands("CLIENT REPLY SKIP", "MULTI", "PING", "EXEC"))

    def test_messages_are_heard(self):
        for word in ("CLIENT REPLY OFF", "CLIENT REPLY SKIP"):
            self.same(commands("HELLO 3", "SUBSCRIBE a", word, "PUBLISH a mine", "CLIENT REPLY ON"),
                      (1, commands("PUBLISH a yours")), commands("PING"))


class Lines(Corners):
    def test_where_words_end(self):
        for line in (b"GET a\vb", b"ECHO a\f", b"ECHO \va", b"ECHO 'a'\v'b'", b"ECHO \"a\"\v", b"ECHO a\tb", b"ECHO a\rb",
                     b"\fPING\f", b"PING\r", b"ECHO a\"b\"", b"ECHO \"a\"b", b"ECHO \"a\\", b"ECHO \x85b\xa0c"):
            self.same(line + b"\r\nPING\r\n")


class Clients(Corners):
    def test_wrong_ones(self):
        self.each("CLIENT LIST x", "CLIENT LIST TYPE", "CLIENT LIST TYPE x", "CLIENT LIST TYPE MASTER",
                  "CLIENT LIST TYPE replica", "CLIENT LIST TYPE slave", "CLIENT LIST TYPE PubSub", "CLIENT KILL x",
                  "CLIENT KILL ID x", "CLIENT KILL ID 0", "CLIENT KILL ID -1", "CLIENT KILL ID 99999", "CLIENT KILL ID",
                  "CLIENT KILL TYPE x", "CLIENT KILL TYPE PUBSUB", "CLIENT KILL SKIPME x", "CLIENT KILL SKIPME",
                  "CLIENT KILL USER default", "CLIENT KILL USER nobody", "CLIENT KILL ADDR 1.2.3.4:5 ID",
                  "CLIENT KILL LADDR 1.2.3.4:5 NOPE x", "CLIENT KILL ID x NOPE", "CLIENT KILL ID 99999999999999999999")

    def test_who_ends_itself_hears_that_and_nothing_else(self):
        for kill in ("CLIENT KILL TYPE normal SKIPME no", "CLIENT KILL TYPE NORMAL SKIPME NO", "CLIENT KILL SKIPME no"):
            self.same(commands(kill, "PING", "SET a 1"))
        self.same(commands("GET a"))

    def test_who_is_ended(self):
        for kill in ("CLIENT KILL TYPE pubsub", "CLIENT KILL TYPE PubSub", "CLIENT KILL SKIPME yes",
                     "CLIENT KILL TYPE normal"):
            self.same((1, commands("SUBSCRIBE a")), (0, commands(kill, "PING")))


class Arguments(Corners):
    def test_cursors(self):
        for cursor in ("x", "", "-", "+", "-1", "+0", "-0", "0 ", " 0", "00", "0x0", "1.0", "18446744073709551615",
                       "18446744073709551616", "-18446744073709551616", "9" * 30, "0" * 30):
            self.same(commands(["SCAN", cursor, "COUNT", "100000"]))

    def test_of_types_the_last_counts(self):
        self.same(commands("SET a 1", "SCAN 0 TYPE hash TYPE STRING", "SCAN 0 TYPE string TYPE hash", "SCAN 0 TYPE x"))

    def test_times(self):
        for word in ("EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"):
            for time in ("9223372036854775807", "-9223372036854775808", "9223372036854775", "-9223372036854776", "0"):
                for option in ("", " NX", " XX", " GT", " LT", " GT XX", " LT XX"):
                    self.same(commands("SET a 1", "SET b 1 EX 1000", f"{word} a {time}{option}", f"{word} b {time}{option}",
                                       "EXISTS a b"))

    def test_numbers_of_databases(self):
        self.each(*("SELECT " + number for number in ("15", "16", "-1", "2147483647", "2147483648", "-2147483649", "x",
                                                      "9223372036854775807", "9223372036854775808", "01")))

    def test_words_with_line_ends(self):
        for word in ("no\r\n", "\r\nno\npe\r\n", "\n", ""):
            self.same(commands(["EXPIRE", "a", "10", word], ["NOPE" + word, word], ["CLIENT", word], ["HELLO", "3", word],
                               ["CONFIG", "SET", "no" + word, word], ["CLIENT", "KILL", "USER", word]))

    def test_hello_carries_out_its_options_in_order(self):
        for words in ("SETNAME \t AUTH you x", "AUTH you x SETNAME \t", "SETNAME \t NOPE", "SETNAME a AUTH default x",
                      "SETNAME", "NOPE SETNAME \t", "SETNAME a NOPE", "SETNAME a SETNAME b", "SETNAME a AUTH you x"):
            self.same(commands("HELLO 3 " + words, "CLIENT GETNAME"))

    def test_channels(self):
        self.each("PUBSUB CHANNELS a b", "PUBSUB SHARDCHANNELS a b", "pubsub Channels a b", "PUBSUB NUMPAT a")

    def test_keys_of_commands(self):
        self.each(*("COMMAND GETKEYS " + words for words in (
            "get", "get a", "get a b", "mset a b c", "ping", "ping x", "nope x", "client", "client id", "client nope",
            "ssubscribe a", "spublish a b", "sunsubscribe", "sunsubscribe a", "subscribe a", "watch a", "del a b a")))

    def test_parameters(self):
        self.each("CONFIG GET DataBases", "CONFIG GET data*ases", "CONFIG GET " + "*" * 64 + "nothing",
                  "CONFIG GET databases DATABASES")

    def test_an_end_that_has_not_begun(self):
        self.each("SHUTDOWN ABORT", "SHUTDOWN ABORT NOW", "SHUTDOWN x", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT ABORT")


if __name__ == "__main__":
    main()
