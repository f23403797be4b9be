#!/usr/bin/env python3
"""weekwheel-sessiond: no session ends early or late when somebody sets the wall clock, whenever that is."""
# tier: check
import os
import re
import signal
import time

from sessiond import Sessiond
from harness import Case, check, compiled, equal, main, until

OK = b"+OK\r\n"
YEAR_1970 = 1000
DAY = 86400


def number(answer):
    assert answer[:1] == b":", answer
    return int(answer[1:])


def grown(a):
    return int(re.search(rb"journal_since_image:(\d+)", a.ask("INFO", "persistence"))[1])


class Clock(Case):
    def setUp(self):
        super().setUp()
        self.library = compiled("support/shifted_wall.c", "-shared", "-fPIC")
        self.shift = 0

    def set_clock(self, shift):
        """Let the wall clock be so many seconds later than it is."""
        self.shift = shift
        with open("shift.new", "w", encoding="ascii") as file:
            file.write(str(shift))
        os.rename("shift.new", "shift")

    def wall(self):
        return time.time() + self.shift

    def start(self, *more, clock="real"):
        return Sessiond("--data", "data", "--clock", clock, *more, LD_PRELOAD=self.library, SHIFT_FILE=os.path.abspath("shift"))

    def near(self, value, wanted, most=20):
        check(wanted - most <= value <= wanted + 1, (value, wanted))

    def look(self, a):
        """All answers are by the clock as it is now."""
        self.near(int(a.ask("TIME").split(b"\r\n")[2]), self.wall())
        self.near(number(a.ask("TTL", "a")), 1800, 140)
        self.near(number(a.ask("EXPIRETIME", "a")), self.wall() + 1800, 140)
        equal(a.ask("SET", "at", "x", "EXAT", int(self.wall()) + 500), OK)
        self.near(number(a.ask("TTL", "at")), 500)
        equal(a.ask("EXPIREAT", "a", int(self.wall()) + 1700, "GT") + a.ask("EXPIRE", "a", 1700, "GT"), b":0\r\n:0\r\n")
        equal(a.ask("PEXPIREAT", "at", int(self.wall() * 1000) - 1000), b":1\r\n")
        equal(a.ask("EXISTS", "at"), b":0\r\n")

    def test_steps_end_no_session(self):
        """While the server runs, and while it does not."""
        now = int(time.time())
        for first, then in ((0, 3600), (0, -3600), (0, YEAR_1970 - now), (YEAR_1970 - now, 0), (400 * DAY, 0), (0, 400 * DAY)):
            for end in (signal.SIGTERM, signal.SIGKILL):
                self.set_clock(first)
                with self.start("--lifetime", "2h") as server, server.client() as a:
                    equal(a.ask("FLUSHALL"), OK)
                    equal(a.ask("SET", "a", "x", "EX", 1800), OK)
                    self.look(a)
                    self.set_clock(then)
                    self.look(a)
                    equal(a.ask("SET", "b", "x", "EX", 100), OK)
                    server.stop(end)
                for again in (then, first):
                    self.set_clock(again)
                    with self.start("--lifetime", "2h") as server, server.client() as a:
                        self.near(number(a.ask("TTL", "b")), 106 if end == signal.SIGKILL else 100)
                        equal(a.ask("EXPIRE", "a", 9999) + a.ask("EXPIRE", "b", 100), b":1\r\n:1\r\n")
                        self.near(number(a.ask("TTL", "a")), 7200)
                        equal(a.ask("EXPIRE", "a", 1800), b":1\r\n")
                        self.look(a)
                        server.stop(end)

    def left(self, shift, *more):
        """What is left of "a" after a boot with this clock. A virtual clock is one of another boot each time."""
        self.set_clock(shift)
        with self.start(*more, clock="virtual") as server, server.client() as a:
            return number(a.ask("TTL", "a"))

    def test_after_a_boot_the_clock_says_how_long_the_machine_was_off(self):
        self.set_clock(0)
        with self.start(clock="virtual") as server, server.client() as a:
            equal(a.ask("SET", "a", "x", "EX", 10 * DAY), OK)
        self.near(self.left(DAY), 9 * DAY)
        # It was wrong then or is wrong now: nobody knows.
        self.near(self.left(0), 9 * DAY, 40)
        self.near(self.left(40 * DAY), 9 * DAY, 40)
        self.near(self.left(42 * DAY, "--max-downtime", "1d"), 9 * DAY, 40)
        self.near(self.left(44 * DAY, "--max-downtime", "3d"), 7 * DAY, 40)
        equal(self.left(84 * DAY, "--max-downtime", "60d"), -2)

    def test_an_idle_server_notes_the_clocks(self):
        """Else the time since its last change would count as time off."""
        self.set_clock(0)
        with self.start("--max-downtime", "200ms") as server, server.client() as a:
            equal(a.ask("SET", "a", "x", "EX", 1000), OK)
            before = grown(a)
            until(lambda: grown(a) > before, "a record of the clocks")
            server.stop(signal.SIGKILL)
        with self.start() as server, server.client() as a:
            self.near(number(a.ask("TTL", "a")), 1063, 200)

    def test_an_idle_server_notes_a_step(self):
        """Else a step would count as time off after a power failure that comes before the next change."""
        self.set_clock(0)
        with self.start("--max-downtime", "40m") as server, server.client() as a:
            equal(a.ask("SET", "a", "x", "EX", 10000), OK)
            before = grown(a)
            self.set_clock(1800)
            until(lambda: grown(a) > before, "a record of the step")
            server.stop(signal.SIGKILL)
        self.near(self.left(1800, "--max-downtime", "40m"), 10625, 200)


if __name__ == "__main__":
    main()
