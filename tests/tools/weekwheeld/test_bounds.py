#!/usr/bin/env python3
"""What one client may take of the server: its share of a turn, after which the others come, and memory."""
import contextlib
import signal
import sys

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
from weekwheel import Case, Server, check, equal, main, until

MANY = 20000


@contextlib.contextmanager
def stopped(server):
    """What clients send meanwhile comes to the server at once, in the order in which it was sent."""
    server.process.send_signal(signal.SIGSTOP)

    def is_stopped():
        with open("/proc/%d/stat" % server.process.pid, encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"

    until(is_stopped, "the server is stopped")
    yield
    server.process.send_signal(signal.SIGCONT)


def pipeline(client, lines, window=500):
    """The answers to many commands."""
    answers = []
    for first in range(0, len(lines), window):
        client.send("".join(line + "\r\n" for line in lines[first:first + window]))
        answers += [client.answer() for _ in lines[first:first + window]]
    return answers


class Shares(Case):
    """Each test ends a client's long work only after another client was answered."""

    def setUp(self):
        super().setUp()
        server = self.enterContext(Server())
        self.server, self.heavy, self.light = server, server.client(), server.client()
        for client in (self.heavy, self.light):
            self.addCleanup(client.close)

    def asked_meanwhile(self, heavy, line, before=0):
        """What the light client is answered to a line that comes behind what the heavy client does, and some of its own."""
        with stopped(self.server):
            heavy()
            self.light.send("list-tube-used\r\n" * before + line + "\r\n")
        for _ in range(before):
            self.light.answer()
        answer = self.light.answer()
        return dict(entry.split(": ", 1) for entry in answer.split("---\n", 1)[1].splitlines())

    def test_pipelined_commands(self):
        found = self.asked_meanwhile(lambda: self.heavy.send("list-tube-used\r\n" * 5000), "stats")
        check(int(found["cmd-list-tube-used"]) <= 1000, found)
        equal({self.heavy.answer() for _ in range(5000)}, {"USING default"})

    def test_a_kick(self):
        pipeline(self.heavy, ["put 0 3600 60 1\r\nx"] * MANY)
        found = self.asked_meanwhile(lambda: self.heavy.send("kick %d\r\nlist-tube-used\r\n" % (2 * MANY)),
                                     "stats-tube default")
        check(int(found["current-jobs-ready"]) < MANY, found)
        equal(self.heavy.answer(), "KICKED %d" % MANY)
        equal(self.heavy.answer(), "USING default")

    def test_a_kick_of_buried_jobs_leaves_delayed_ones(self):
        for number in range(1, 301):
            self.heavy.put()
            equal(self.heavy.ask("reserve-job %d" % number), "RESERVED %d 1|x" % number)
            equal(self.heavy.ask("bury %d 0" % number), "BURIED")
        self.heavy.put(delay=3600)
        equal(self.heavy.ask("kick 200"), "KICKED 200")
        equal(self.heavy.ask("kick 200"), "KICKED 100")
        equal(self.heavy.ask("kick 200"), "KICKED 1")
        equal(self.heavy.ask("kick 200"), "KICKED 0")

    def test_the_end_of_a_client_with_many_jobs(self):
        pipeline(self.light, ["put 0 0 60 1\r\nx"] * MANY)
        pipeline(self.heavy, ["reserve"] * MANY)
        found = self.asked_meanwhile(self.heavy.close, "stats-tube default", 1001)
        check(0 < int(found["current-jobs-reserved"]) < MANY, found)
        self.light.until_stats("current-jobs-ready", MANY)

    def test_the_end_of_a_client_that_watches_many_tubes(self):
        pipeline(self.heavy, ["watch tube-%d" % number for number in range(MANY)])
        found = self.asked_meanwhile(self.heavy.close, "stats", 1001)
        check(1 < int(found["current-tubes"]) < MANY, found)
        self.light.until_stats("current-tubes", 1)

    def test_a_server_that_ends_finishes_what_closed_clients_left(self):
        pipeline(self.light, ["put 0 0 60 1\r\nx"] * MANY)
        pipeline(self.heavy, ["reserve"] * MANY)
        with stopped(self.server):
            self.heavy.close()
            self.server.process.send_signal(signal.SIGTERM)
        equal(self.server.process.wait(), 0)


main()
