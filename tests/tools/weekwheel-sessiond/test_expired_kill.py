#!/usr/bin/env python3
"""weekwheel-sessiond --expired-to with --data: what expired is told over restarts and kills, also what did so meanwhile.

WW_KILLS sets how often the server is killed (8).
"""
# tier: long
import calendar
import json
import os
import random
import signal
import threading
import time

from sessiond import Sessiond, encoded
from harness import PATIENCE, Case, Server, compiled, equal, free_port, main, matches, seed, stopped, until

KILLS = int(os.environ.get("WW_KILLS") or 8)
OK = b"+OK\r\n"


def to(port, *more, **env):
    return Sessiond("--expired-to", f"beanstalk://127.0.0.1:{port}/ended", "--data", "data", "--http", "127.0.0.1:0", *more,
                    **env)


def millis(text):
    """A time as jobs have it, in ms of Unix time."""
    matches(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", text)
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) * 1000 + int(text[20:23])


def number(server, name):
    for line in server.get("/metrics")[1].splitlines():
        if line.startswith(("weekwheel_sessiond_expired_to_%s " % name, "weekwheel_sessiond_expired_to_%s_total " % name)):
            return int(line.split()[1])
    return None


def take(jobs, seconds=0):
    """A job's body, or None."""
    answer = jobs.ask("reserve-with-timeout %d" % seconds)
    if not answer.startswith("RESERVED "):
        return None
    equal(jobs.ask("delete " + answer.split()[1]), "DELETED")
    return json.loads(answer.split("|", 1)[1])


def told(jobs, count):
    """The keys of so many jobs, and no more."""
    jobs.ask("watch ended")
    keys = [take(jobs, PATIENCE)["key"] for _ in range(count)]
    equal(take(jobs), None)
    return sorted(keys)


class Load:
    """Random commands, and what they mean for each life of a key: a life is a value. Each answer says which life it met."""

    def __init__(self, chance):
        self.chance, self.lives = chance, 0
        self.current, self.deadline = {}, {}   # of a key: its life; of a life: it must not end before, in ms
        self.of = {}                           # of a key: all its lives
        self.must, self.may = set(), set()     # what has to be told, and what may be, or may not
        self.met = {}                          # of a life: from when to when the last command was that met it

    def ended(self, life):
        if life:
            self.must.add(life)

    def command(self):
        key, ttl = "k%d" % self.chance.randrange(60), self.chance.choice((1, 20, 80, 300, 1000))
        kind = self.chance.random()
        if kind < 0.6:
            self.lives += 1
            life = "life %d" % self.lives
            self.of.setdefault(key, set()).add(life)
            return key, life, ttl, ("SET", key, life, "PX", ttl, "GET")
        if kind < 0.7:
            return key, None, None, ("GETDEL", key)
        return key, None, ttl, ("GETEX", key, "PX", ttl)

    def may_be_moved(self, key, deadline):
        """Whichever life is there may have got this deadline, and ended before it could be answered."""
        for life in {self.current.get(key)} | (self.may & self.of.get(key, set())):
            if self.deadline.get(life):
                self.deadline[life] = min(self.deadline[life], deadline)

    def understand(self, command, answer, sent):
        key, life, ttl, words = command
        met = None if answer == b"$-1\r\n" else answer.split(b"\r\n")[1].decode()
        before = self.current.get(key)
        if before in self.may:
            # Whether that life ever was is not known: this answer says what was there.
            before = None
        assert met is None or before in (None, met), (command, answer, before)
        if not met:
            if words[0] == "GETEX":
                self.may_be_moved(key, sent + ttl)
            self.ended(before)
            self.current[key] = None
        self.met[met] = sent, int(time.time() * 1000) + 1
        if words[0] == "GETDEL" or (life and met):
            self.may.discard(met)
            self.deadline[met] = None
            self.current[key] = None
        if words[0] == "GETEX" and met:
            self.deadline[met] = sent + ttl
        if life:
            self.current[key], self.deadline[life] = life, sent + ttl

    def unknown(self, command, sent):
        """It was sent, and not answered."""
        key, life, ttl, words = command
        before = self.current.get(key)
        if words[0] == "GETEX":
            self.may_be_moved(key, sent + ttl)
            return
        self.may.update({before, life} - {None})
        if life:
            self.current[key], self.deadline[life] = life, 0

    def batch(self, client):
        """Send some commands at once. Returns 0 when the server has gone."""
        commands = [self.command() for _ in range(self.chance.randrange(1, 30))]
        sent, answered = int(time.time() * 1000) - 1, 0
        try:
            client.send(b"".join(encoded(*command[3]) for command in commands))
            for command in commands:
                self.understand(command, client.answer(), sent)
                answered += 1
        except OSError:
            for command in commands[answered:]:
                self.unknown(command, sent)
            return 0
        return 1


class ExpiredKill(Case):
    def test_what_waits_outlasts_an_orderly_end_and_a_kill(self):
        port = free_port()
        for number_of_signal in (signal.SIGTERM, signal.SIGKILL):
            for saves in (0, 1):
                with to(port) as server, server.client() as a:
                    equal(a.ask("SET", "soon", "x", "PX", 1), OK)
                    equal(a.ask("SET", "meanwhile", "x", "PX", 100), OK)
                    equal(a.ask("SET", "later", "x", "EX", 1000), OK)
                    until(lambda server=server: number(server, "waiting") in (1, 2), "one waits, or both on a busy machine")
                    if saves:
                        equal(a.ask("SAVE"), OK)
                    server.stop(number_of_signal)
                time.sleep(0.15)  # let it expire while nobody is there: there is nothing to wait for
                # Without --expired-to what waits stays; what has expired meanwhile is told to nobody.
                with Server("--listen", "127.0.0.1:%d" % port) as other, other.client() as jobs:
                    with to(port) as server:
                        equal(told(jobs, 2), ["meanwhile", "soon"])
                        until(lambda server=server: number(server, "told") == 2, "both are told")
                        server.stop(number_of_signal)
                    with to(port) as server, server.client() as a:
                        equal(a.ask("EXISTS", "later", "soon", "meanwhile"), b":1\r\n")
                        equal(number(server, "waiting"), 0)
                        equal(told(jobs, 0), [])
                        equal(a.ask("FLUSHALL"), OK)

    def test_a_start_that_tells_nobody_keeps_what_waits(self):
        port = free_port()
        with to(port) as server, server.client() as a:
            equal(a.ask("SET", "soon", "x" * 1000, "PX", 1), OK)
            until(lambda: number(server, "waiting") == 1, "one waits")
            equal(server.stop(), 0)
            matches("1 expiries could not be reported to .*: they are kept", server.said)
        for _ in range(2):
            with Sessiond("--data", "data") as server, server.client() as a:
                matches("1 expiries wait to be reported, and stay in data until a start with --expired-to", server.said)
                equal(a.ask("SET", "other", "x", "PX", 1), OK)
                until(lambda a=a: a.ask("EXISTS", "other") == b":0\r\n", "it has expired")
        with Server("--listen", "127.0.0.1:%d" % port) as other, other.client() as jobs, to(port) as server:
            equal(told(jobs, 1), ["soon"])

    def test_what_a_start_found_stays_though_nobody_is_told(self):
        """What had expired before a start is in the journal from then on, so that another one does not judge it anew."""
        port = free_port()
        with to(port) as server, server.client() as a:
            equal(a.ask("SET", "meanwhile", "x", "PX", 50), OK)
            server.stop(signal.SIGKILL)
        time.sleep(0.1)  # let it expire while nobody is there
        with to(port) as server:
            equal(number(server, "waiting"), 1)
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server:
            matches("1 expiries wait to be reported, and stay", server.said)
            server.stop(signal.SIGKILL)
        with Server("--listen", "127.0.0.1:%d" % port) as other, other.client() as jobs, to(port):
            equal(told(jobs, 1), ["meanwhile"])

    def test_after_the_machine_was_down(self):
        """Deadlines from before the driver's time, which begins with the machine's, keep their distances."""
        port, library = free_port(), compiled("support/shifted_wall.c", "-shared", "-fPIC")

        def start(hours):
            return to(port, "--clock", "virtual", LD_PRELOAD=library, SHIFT=str(hours * 3600))

        with start(0) as server, server.client() as a:
            ends = {}
            for key, hours in (("long ago", 1), ("just", 160), ("grace", 172), ("alive", 400)):
                equal(a.ask("SET", key, "x", "EX", hours * 3600), OK)
                ends[key] = int(a.ask("PEXPIRETIME", key)[1:-2]) + hours * 3600000 // 16
            equal(a.ask("SET", "twice", "first", "PX", 1000), OK)
            equal(a.ask("ADVANCE", 2000), OK)
            equal(a.ask("SET", "twice", "second", "PX", 1000), OK)
            until(lambda: number(server, "waiting") == 1, "one waits")
            equal(a.ask("SAVE"), OK)
            server.stop(signal.SIGKILL)
        with start(175) as server, server.client() as a:
            equal(a.ask("EXISTS", "long ago", "just", "grace", "alive", "twice"), b":2\r\n")
            server.stop(signal.SIGKILL)
        with Server("--listen", "127.0.0.1:%d" % port) as other, other.client() as jobs, start(176) as server:
            jobs.ask("watch ended")
            bodies = [take(jobs, PATIENCE) for _ in range(4)]
            equal(sorted((body["key"], body["value"]) for body in bodies),
                  [("just", "x"), ("long ago", "x"), ("twice", "first"), ("twice", "second")])
            for body in bodies:
                if body["key"] in ends:
                    assert abs(millis(body["deadline"]) - ends[body["key"]]) <= 1, (body, ends)
            until(lambda: number(server, "told") == 4, "all are told")
            server.stop(signal.SIGKILL)
        with start(400 + 26) as server, server.client() as a:
            equal(a.ask("DBSIZE"), b":0\r\n")

    def test_a_lifetime_that_is_over_ends_only_what_is_there(self):
        """The image has sessions whose lifetimes are over by now, and the journal says what became of them."""
        port, library = free_port(), compiled("support/shifted_wall.c", "-shared", "-fPIC")

        def start(hours):
            return to(port, "--lifetimes", "--clock", "virtual", LD_PRELOAD=library, SHIFT=str(hours * 3600))

        with start(0) as server, server.client() as a:
            for key in ("deleted", "renewed", "touched", "over"):
                equal(a.ask("SET", key, "old", "EX", 1800, "LIFETIME", 3600), OK)
            equal(a.ask("SAVE"), OK)
            equal(a.ask("DEL", "deleted"), b":1\r\n")
            equal(a.ask("SET", "renewed", "new", "EX", 36000, "LIFETIME", 36000), OK)
            equal(a.ask("EXPIRE", "touched", 36000), b":1\r\n")
            server.stop(signal.SIGKILL)
        with Server("--listen", "127.0.0.1:%d" % port) as other, other.client() as jobs, start(2) as server:
            equal(told(jobs, 2), ["over", "touched"])
            with server.client() as a:
                equal(a.ask("GET", "renewed"), b"$3\r\nnew\r\n")
                left = int(a.ask("TTL", "renewed")[1:-2])
                assert 28000 < left <= 28800, left

    def test_kills(self):
        """Nothing that has expired is untold, nothing is told that has not, or too early, and nothing twice."""
        chance = random.Random(seed())
        load, got = Load(chance), {}
        with Server() as other, other.client() as jobs:
            jobs.ask("watch ended")
            for count in range(KILLS):
                away = stopped(other) if chance.random() < 0.3 else None
                if away:
                    away.__enter__()
                with to(other.port, "--sync", chance.choice(("interval", "always"))) as server, server.client() as a:
                    late = threading.Timer(chance.random() * 0.4, server.process.send_signal,
                                           (signal.SIGTERM if chance.random() < 0.2 and not away else signal.SIGKILL,))
                    late.start()
                    while load.batch(a):
                        if chance.random() < 0.02:
                            a.send(encoded("BGSAVE"))
                            try:
                                a.answer()
                            except OSError:
                                break
                    late.join()
                    server.ended()
                if away:
                    away.__exit__(None, None, None)
                time.sleep(chance.random() * 0.2)  # what expires while nobody is there
                while body := take(jobs):
                    self.judge(load, got, body)
            with to(other.port) as server, server.client() as a:
                until(lambda: a.ask("DBSIZE") == b":0\r\n" and number(server, "waiting") == 0, "all have expired")
                for life in list(load.current.values()):
                    if life not in load.may:
                        load.ended(life)
                untold = []

                def all_told():
                    while body := take(jobs):
                        self.judge(load, got, body)
                    untold[:] = sorted(load.must - set(got) - load.may)
                    return not untold

                # A key that has just expired is no longer counted, and does not wait yet.
                try:
                    until(all_told, "all that has expired is told")
                finally:
                    print(f"{load.lives} lives, {len(got)} told, of which {len(set(got) & load.must)} had to be; "
                          f"{KILLS} kills; untold: {len(untold)} {untold[:10]}")

    def judge(self, load, got, body):
        life, ms = body["value"], millis(body["deadline"])
        assert life not in got, ("told twice", got[life], body)
        got[life] = body
        at = load.deadline.get(life)
        # A command may meet a life in its last moment, and a moment later it is too late to move its end or to take it away.
        since, until_when = load.met.get(life, (0, 0))
        assert since <= ms <= until_when or at is not None, ("deleted or replaced", load.met[life], ms, body)
        assert since <= ms <= until_when or ms >= at, ("too early", at, ms, body)


if __name__ == "__main__":
    main()
