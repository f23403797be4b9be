#!/usr/bin/env python3
"""Many clients, and clients that misbehave: the server answers the others meanwhile and outlives them.

WW_CLIENTS sets how many idle clients there are, 10,000 by default. WW_GARBAGE sets how many send garbage, 200 by default.
"""
# tier: long, waits, no-sanitizers
import os
import random
import signal
import socket
import struct

from harness import Case, Server, conversation, descriptors, equal, main, seed, until

SPARE = 200


def memory_of(server):
    """The bytes of the server in memory."""
    with open("/proc/%d/statm" % server.process.pid) as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def is_at_most(used, most):
    """Sanitizers keep freed memory and need more, so with them any use is right."""
    assert used < most or os.environ.get("SANITIZE"), "%d bytes, more than %d" % (used, most)


def works(client):
    """Some of every command."""
    answer = client.put(b"x", tube="works")
    assert answer.startswith("INSERTED "), answer
    number = answer.split()[1]
    conversation(client, ("reserve-job " + number, "RESERVED %s 1|x" % number), ("release %s 5 100" % number, "RELEASED"),
                 ("kick 1", "KICKED 1"), ("delete " + number, "DELETED"), ("use default", "USING default"))


def fill(client, command, most):
    """Send until the server reads no more."""
    client.socket.setblocking(False)
    sent = 0
    try:
        while sent < most:
            sent += client.socket.send(command * 1000)
    except BlockingIOError:
        pass
    client.socket.settimeout(60)
    assert sent < most, "all of %d bytes was taken" % sent
    return sent


def garbage(draw):
    """Random bytes, or words that are almost commands."""
    words = (b"put", b"put-key", b"reserve", b"reserve-with-timeout", b"reserve-job", b"delete", b"release", b"release-job",
             b"bury", b"bury-job", b"touch", b"kick", b"kick-job", b"peek", b"peek-ready", b"peek-key", b"use", b"watch",
             b"ignore", b"stats", b"stats-job", b"stats-tube", b"list-tubes", b"pause-tube", b"list-delayed", b"forecast",
             b"move", b"move-key", b"delete-key", b"advance", b"put-at", b"0", b"1", b"2", b"4294967295", b"4294967296",
             b"18446744073709551616", b"-1", b"1e9", b"0.5", b"9.9999999999", b"%", b"%41", b"%zz", b"default", b"t", b"-",
             b"every=1", b"every=1e300", b"attempts=1", b"backoff=99999999999", b"version=1", b"limit=1", b"tube=t",
             b"body=yes", b"state=ready,buried", b"after=1", b"missed=all", b"=", b"\0", b"\xff\xfe", b"\r", b"\n",
             b"x" * 230, b"x" * 70000)
    kind = draw.random()
    if kind < 0.3:
        return bytes(draw.randrange(256) for _ in range(draw.randrange(2000)))
    text = b""
    for _ in range(draw.randrange(1, 40)):
        text += b" ".join(draw.choice(words if draw.random() < 0.5 else words[:31])
                          for _ in range(draw.randrange(1, 8))) + draw.choice((b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b""))
    return text


def throw_garbage(server, draw, count):
    with server.client() as client:
        for number in range(count):
            bad = server.client()
            try:
                for _ in range(draw.randrange(1, 4)):
                    bad.socket.settimeout(5)
                    bad.send(garbage(draw))
                ends = draw.random()
                if ends < 0.3:
                    bad.socket.shutdown(socket.SHUT_WR)
                    while True:
                        bad.more()
                elif ends < 0.6:
                    bad.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except (EOFError, OSError):
                pass
            bad.close()
            if number % 10 == 0:
                assert client.put(tube="works%d" % number).startswith("INSERTED ")
                client.numbers("stats")


class Load(Case):
    def test_idle_connections(self):
        wanted = int(os.environ.get("WW_CLIENTS") or 10000)
        count = min(wanted, descriptors(wanted + SPARE) - SPARE)
        if count < wanted:
            print("ulimit -n allows for %d connections instead of %d" % (count, wanted))
        with Server() as server, server.client() as client:
            before = memory_of(server)
            idle = []
            for number in range(count):
                # From several addresses, so that there are ports for all.
                idle.append(socket.create_connection(("127.0.0.1", server.port), 60, ("127.0.0.%d" % (2 + number % 8), 0)))
                if number % 1000 == 0:
                    works(client)
            # Others have their turn while so many come.
            until(lambda: client.numbers("stats")["current-connections"] == str(count + 1), "all have come in")
            each = (memory_of(server) - before) / count
            print("%d idle connections, %d bytes each" % (count, each))
            is_at_most(each, 8192)
            works(client)
            # Half of them wait for jobs and get them.
            for connection in idle[::2]:
                connection.sendall(b"reserve\r\n")
            client.until_waiting(len(idle[::2]))
            works(client)
            client.send(b"put 0 0 60 1\r\nx\r\n" * len(idle[::2]))
            for _ in idle[::2]:
                assert client.line().startswith("INSERTED ")
            for connection in idle[::2]:
                assert connection.recv(100).startswith(b"RESERVED ")
            for number, connection in enumerate(idle):
                if number % 3 == 0:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
            client.until_stats("current-connections", 1)
            numbers = client.numbers("stats")
            equal((numbers["current-jobs-ready"], numbers["current-jobs-reserved"]), (str(len(idle[::2])), "0"))
            works(client)
            equal(server.stop(), 0)

    def test_half_closed(self):
        with Server() as server, server.client() as client:
            for text, answers in ((b"", []), (b"put 0 0 60 5\r\nab", []), (b"stats-job 1\r\nstats-jo", ["NOT_FOUND"]),
                                  (b"reserve\r\n", ["TIMED_OUT"]), (b"reserve\r\nreserve\r\nlist-tube-used\r\n",
                                                                   ["TIMED_OUT", "TIMED_OUT", "USING default"]),
                                  (b"put 0 0 60 1\r\nx\r\ndelete 1\r\n", ["INSERTED 1", "DELETED"])):
                with server.client() as half:
                    half.send(text)
                    half.socket.shutdown(socket.SHUT_WR)
                    equal([half.line() for _ in answers], answers)
                    assert half.is_closed(), text
            # One client closes its side while it waits, and one does not read the answer.
            half = server.client()
            half.send(b"reserve\r\n")
            client.until_waiting()
            half.socket.shutdown(socket.SHUT_WR)
            equal(half.line(), "TIMED_OUT")
            deaf = server.client()
            deaf.send(b"reserve\r\n")
            client.until_waiting()
            deaf.close()
            client.until_stats("current-connections", 1)
            equal(client.put(), "INSERTED 2")
            equal(client.ask("reserve-with-timeout 0"), "RESERVED 2 1|x")
            equal(server.stop(), 0)

    def test_clients_that_never_read(self):
        with Server() as server, server.client() as client:
            equal(client.put(b"x" * 65535), "INSERTED 1")
            before = memory_of(server)
            deaf = [server.client() for _ in range(5)]
            for number, each in enumerate(deaf):
                fill(each, (b"peek 1\r\n", b"stats\r\n", b"nix\r\n")[number % 3], 1 << 26)
                works(client)
            used = memory_of(server) - before
            is_at_most(used, len(deaf) * 24 << 20)
            deaf[0].close()
            works(client)
            # The others have still not read when the server ends.
            equal(server.stop(), 0)

    def test_the_server_does_not_keep_all_that_a_waiting_client_sends(self):
        with Server() as server, server.client() as client:
            with server.client() as busy:
                busy.send(b"reserve\r\n")
                before = memory_of(server)
                fill(busy, b"stats-job 9\r\n", 1 << 26)
                is_at_most(memory_of(server) - before, 4 << 20)
                works(client)
                client.put()
                equal(busy.answer().split("|")[1], "x")
                for _ in range(1000):
                    equal(busy.line(), "NOT_FOUND")

    def test_a_slow_reader(self):
        with Server() as server, server.client() as client, server.client() as slow:
            equal(client.put(b"x" * 50000), "INSERTED 1")
            count = 400
            slow.send(b"peek 1\r\n" * count)
            got = reads = 0
            expected = count * (len(b"FOUND 1 50000\r\n\r\n") + 50000)
            while got < expected:
                got += len(slow.socket.recv(1000 if got < 100000 else 65536))
                reads += 1
                if reads % 20 == 0:
                    works(client)
            equal(got, expected)
            equal(slow.ask("list-tube-used"), "USING default")

    def test_a_line_without_an_end(self):
        with Server() as server, server.client() as client, server.client() as endless:
            before = memory_of(server)
            for _ in range(1000):
                endless.send(b"x" * 1000)
            works(client)
            is_at_most(memory_of(server) - before, 2 << 20)
            endless.send(b"\r\nlist-tube-used\r\n")
            equal(endless.line(), "BAD_FORMAT")
            equal(endless.line(), "USING default")

    def test_garbage(self):
        draw = random.Random(seed())
        count = int(os.environ.get("WW_GARBAGE") or 200)
        for where in ((), ("--clock", "virtual"), ("--data", "jobs")):
            with Server(*where) as server:
                throw_garbage(server, draw, count // 2)
                with server.client() as client:
                    works(client)
                equal(server.stop(signal.SIGTERM), 0)


main()
