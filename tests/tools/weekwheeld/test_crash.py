#!/usr/bin/env python3
"""A server under random load loses its power, at hundreds of moments. What it acknowledged is there when it comes back.

All that it writes and syncs is recorded, and many disks are rebuilt that a power failure may have left (see
tests/support/power.py). Each is checked and served, and its jobs are compared with what the clients had heard by then
(see tests/support/history.py):

- with --sync always, all that was answered has happened;
- with --sync interval, all that was answered before the last moments has happened;
- with --sync system, all that was there when the server last ended by itself;
- always, the store is sound, no job is there that nobody put, and no id is given twice.

Meanwhile the server ends and starts again, by itself and killed. Its store has small limits: the index takes over from
the journal many times.

WW_STATES is how many disks are rebuilt (60), and WW_SYNC names the modes (always). A bad disk is kept in the build
folder, with the command to look at it again.
"""
# tier: long, apart, no-sanitizers
# needs: tests/weekwheeld_small
import base64
import json
import os
import random
import shutil
import signal
import time

import power
from history import History
from harness import BUILD, SMALL, Case, Fsck, Server, equal, main, seed

STATES = int(os.environ.get("WW_STATES") or 60)
MODES = (os.environ.get("WW_SYNC") or "always").split()
AGAIN = os.environ.get("WW_CRASH")
ROUNDS = 50         # between two starts of the server
ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
CLIENTS = 5
SECOND = 10**9
HOUR = 3600
INTERVAL = 0.05
# What was answered so long before a power failure is kept: the interval, and the time that a sync takes.
LOST = {"always": 0, "interval": int((INTERVAL + 0.5) * SECOND), "system": None}
now = time.monotonic_ns


class Job:
    """What the load knows of a job that it has put."""

    def __init__(self, count, chance):
        self.name, self.id, self.ended = str(count), None, False
        self.body = b"%d " % count + b"p" * chance.choice((0, 10, 300, 300, 9000, 60000 * (count % 50 == 0)))
        self.delay = chance.choice((0, 0, 0, 1, HOUR, HOUR, chance.randrange(7 * 24 * HOUR)))
        self.every = chance.random() < 0.1
        self.key = b"k%d" % count if self.every or chance.random() < 0.3 else None


class Load:
    """Clients that send random commands in batches. `events` is the history of what they did and heard."""

    def __init__(self, mode, chance):
        self.chance = chance
        self.jobs, self.by_name, self.calls = [], {}, 0
        self.events = [{"event": "begin", "t": now(), "lost": LOST[mode]}]
        self.clients, self.held, self.touched, self.replaced = [], [], set(), set()

    def go(self, server):
        self.clients = [server.client() for _ in range(CLIENTS)]
        self.held = [[] for _ in self.clients]
        for _ in range(ROUNDS):
            self.round()

    def note(self, event, **more):
        self.events.append({"event": event, "t": now(), **more})

    def round(self):
        """Each client sends a batch before any answer is read: the server has work of several at a time."""
        expected, self.touched, self.replaced = [], set(), set()
        before = [list(held) for held in self.held]
        for client, held in zip(self.clients, self.held):
            batch = [self.draw(held) for _ in range(self.chance.choice((1, 1, 2, 10, 30)))]
            client.send(b"".join(line for line, _ in batch))
            expected.append((client, [heard for _, heard in batch]))
        for client, batch in expected:
            for heard in batch:
                heard(client.answer())
        for client, held, had in zip(self.clients, self.held, before):
            for job in [job for job in held if job in self.replaced]:
                self.end_replaced(client, held, job, job in had)
                had = [other for other in had if other is not job]

    def end_replaced(self, client, held, job, is_old):
        """A client has a job that was put again in this round. If it had it before, what it says of that delivery changes
        nothing. If it has got it in this round, it asks which of the two it has. If it has both, only a delete is taken as
        said of the old one."""
        words = {b"delete": "DELETED", b"release": "RELEASED", b"bury": "BURIED"}
        word = self.chance.choice(list(words)) if held.count(job) == 1 else b"delete"
        if is_old or held.count(job) > 1:
            line = b"%s %d%s\r\n" % (word, job.id, {b"delete": b"", b"release": b" 5 0", b"bury": b" 5"}[word])
            client.send(line)
            equal(client.answer(), words[word], (line, job.name))
            held.remove(job)
        else:
            client.send(b"touch %d\r\n" % job.id)
            if client.answer() != "TOUCHED":
                held.remove(job)

    def draw(self, held):
        """A command, and what is done with its answer."""
        choice = self.chance.random()
        if held and choice < 0.35:
            job = held[self.chance.randrange(len(held))]
            if job in self.touched:
                return self.put()
            self.touched.add(job)
            held.remove(job)
            return self.chance.choice((self.delete, self.delete, self.release, self.bury))(job, by=self.number_of(held))
        if choice < 0.6:
            return self.put()
        known = [job for job in self.jobs[-300:] if job.id]
        if choice < 0.85 or not known:
            return self.reserve(held)
        job = self.chance.choice(known)
        # A put that overtakes the delete of its key would make another job.
        if job.key and (job in self.touched or job.ended):
            return self.put()
        self.touched.add(job)
        changes = [self.kick, self.move]
        # Who has not reserved a repeated job ends it; who has ends a delivery only.
        if not job.every:
            changes.append(self.again)
            if not any(job in others for others in self.held):
                changes += [self.delete, self.cancel]
        return self.chance.choice(changes)(job)

    def number_of(self, held):
        """The client that has these jobs."""
        return next(i for i, one in enumerate(self.held) if one is held)

    def change(self, job, line, good, to, delay=None, **by):
        """A command that has this effect if it is answered so."""
        self.calls += 1
        call, sent = self.calls, now()
        is_timed = delay is not None and not job.every
        due = {"due": [sent + delay * SECOND, now() + (delay + HOUR) * SECOND]} if is_timed else {}
        self.note("call", call=call, job=job.name, to=to, **due, **by)
        job.ended |= to == "gone"

        def heard(answer):
            words = answer.split()
            known = {"id": int(words[1])} if words[0] == "INSERTED" else {}
            job.id = known.get("id", job.id)
            late = {"due": [sent + delay * SECOND, now() + delay * SECOND]} if is_timed else {}
            self.note("answer", call=call, ok=words[0] in good, **known, **late)
            if words[0] == "REPLACED":
                self.replaced.add(job)

        return line, heard

    def put(self):
        job = Job(len(self.jobs), self.chance)
        self.jobs.append(job)
        self.by_name[job.name] = job
        return self.again(job)

    def again(self, job):
        """Put it for the first time; or with its key, which replaces it."""
        if job.id and not job.key:
            return self.kick(job)
        options = b" " + job.key if job.key else b""
        options += b" every=1" if job.every else b""
        line = b"%s %d %d 60 %d%s\r\n%s\r\n" % (
            b"put-key" if job.key else b"put", self.chance.randrange(2000), job.delay, len(job.body), options, job.body)
        return self.change(job, line, ("INSERTED", "REPLACED"), "waiting", job.delay)

    def reserve(self, held):
        self.calls += 1
        call = self.calls
        self.note("ask", call=call)

        def heard(answer):
            if answer.startswith("RESERVED "):
                head, body = answer.split("|", 1)
                name, number = body.split(" ", 1)[0], int(head.split()[1])
                self.note("deliver", call=call, job=name, id=number, run=60 * SECOND,
                          by=self.number_of(held))
                if name in self.by_name:
                    self.by_name[name].id = number
                    held.append(self.by_name[name])
            else:
                self.note("answer", call=call, ok=False)

        return b"reserve-with-timeout 0\r\n", heard

    def delete(self, job, **by):
        return self.change(job, b"delete %d\r\n" % job.id, ("DELETED",), "waiting" if job.every else "gone", **by)

    def cancel(self, job):
        if not job.key:
            return self.delete(job)
        return self.change(job, b"delete-key %s\r\n" % job.key, ("DELETED", "RUNNING"), "gone")

    def release(self, job, **by):
        delay = self.chance.choice((0, 0, 1, HOUR))
        return self.change(job, b"release %d 5 %d\r\n" % (job.id, delay), ("RELEASED",), "waiting", delay, **by)

    def bury(self, job, **by):
        return self.change(job, b"bury %d 5\r\n" % job.id, ("BURIED",), "buried", **by)

    def kick(self, job):
        return self.change(job, b"kick-job %d\r\n" % job.id, ("KICKED",), "waiting", 0)

    def move(self, job):
        delay = self.chance.choice((HOUR, self.chance.randrange(7 * 24 * HOUR)))
        line = b"move-key %s %d\r\n" % (job.key, delay) if job.key else b"move %d %d\r\n" % (job.id, delay)
        return self.change(job, line, ("MOVED",), "waiting", delay)


def run(mode, chance):
    """Record a server under load. Returns the events of its disk, and those of its clients."""
    os.mkdir("data")
    often = ("--sync-interval", str(INTERVAL)) if mode == "interval" else ()
    load, records = Load(mode, chance), []
    for number, end in enumerate(ENDS):
        records.append(f"record.{number}")
        with Server("--data", "data", "--sync", mode, *often, program=SMALL,
                    **power.recorded("data", records[-1])) as server:
            load.note("started")
            load.go(server)
            server.stop(end)
        load.note("killed")
        if end == signal.SIGTERM:
            load.note("closed")
    return records, load.events


def stored_jobs(client):
    """What is found in the store."""
    began = now()
    jobs = client.all_jobs()
    ended = now()
    for job in jobs:
        left = int(float(job["left"]) * SECOND)
        # What has been due for long becomes ready soon after a start.
        since = began + left - SECOND // 1000 if left else 0
        yield {"job": base64.b64decode(job["body"]).split(b" ")[0].decode(), "id": job["id"], "state": job["state"],
               "due": [since, ended + left + SECOND // 1000]}


class Past:
    """The history up to a moment, and up to when all that was answered is kept."""

    def __init__(self, events):
        self.events, self.at = events, 0
        self.history, self.closed = History(), 0
        self.history.late = None
        self.lives = []  # of the server: [since when it answered, until when or None]

    def move_to(self, time):
        while self.at < len(self.events) and self.events[self.at]["t"] <= time:
            event = self.events[self.at]
            self.at += 1
            if event["event"] == "started":
                self.lives.append([event["t"], None])
                continue
            if event["event"] == "killed":
                self.lives[-1][1] = event["t"]
            if event["event"] == "closed":
                self.closed = event["t"]
            else:
                self.history.feed(event)

    def stable(self, time):
        """What was answered until then is kept. Only the time counts in which a server ran that could sync."""
        left = self.history.lost
        for began, ended in reversed(self.lives):
            until = min(time, ended or time)
            if until - began >= left:
                return max(until - left, self.closed)
            left -= until - began
        return self.closed


def problems(folder, past, mode, time):
    """What is wrong with a disk after a power failure at that time."""
    try:
        Crash.fsck.check(folder)
        with Server("--data", folder, "--sync", mode, program=SMALL) as server, server.client() as client:
            found = past.history.after_power(past.stable(time), now(), list(stored_jobs(client)))
            number = int(client.put().split()[1])
            if number <= past.history.highest:
                found.append(f"the id {number} is given again")
            return found
    except (AssertionError, EOFError, OSError) as error:
        return [f"{type(error).__name__}: {error}"]


class Crash(Case):
    fsck = None

    def setUp(self):
        super().setUp()
        Crash.fsck = Fsck()

    def test_what_was_acknowledged_outlives_a_power_failure(self):
        start = seed()
        if AGAIN:
            self.again(AGAIN)
            return
        for mode in MODES:
            self.examine(mode, start)

    def examine(self, mode, start):
        folder = os.path.join(self.folder, mode)
        os.mkdir(folder)
        os.chdir(folder)
        records, heard = run(mode, random.Random(f"{start} {mode}"))
        wanted = -(-STATES // len(MODES))
        events, past = power.read(*records), Past(heard)
        disk, chance = power.Disk(events), random.Random(start)
        # A server that nobody has reached has nothing to lose.
        first = next(i for i, event in enumerate(events) if event[0] > heard[1]["t"])
        bad = 0
        for at in sorted(chance.choices(range(first, len(events)), k=wanted)):
            disk.replay(at + 1)
            past.move_to(events[at][0])
            left, how = disk.left(random.Random(f"{start} {at}"))
            wrong = problems(left, past, mode, events[at][0])
            shutil.rmtree(left)
            if wrong:
                bad += 1
                if bad <= 3:
                    self.keep(mode, at, start, records, heard)
                    print(f"--sync {mode}, after event {at} of {len(events)}: {how}", *wrong[:5], sep="\n  ")
        past.move_to(now())
        bad += len(past.history.wrong)
        print(*past.history.wrong[:5], sep="\n")
        turns = len({name for name in disk.seen if name.startswith("journal.")}) - len(records)
        print(f"--sync {mode}: {len(past.history.jobs)} jobs, {len(events)} writes and syncs, the index took over {turns} times; "
              f"{wanted} disks, {bad} bad")
        assert not bad, f"{bad} times it went wrong"
        assert turns > 5, "the index has hardly been written"

    @staticmethod
    def keep(mode, at, start, records, heard):
        folder = os.path.join(os.path.abspath(BUILD), f"crash-{mode}-{start}-{at}")
        os.makedirs(folder, exist_ok=True)
        for record in records:
            shutil.copy(record, folder)
        with open(os.path.join(folder, "history"), "w", encoding="utf-8") as file:
            json.dump((mode, at, start, records, heard), file)
        print(f"see it again: WW_CRASH={folder} {os.path.relpath(__file__)}")

    def again(self, folder):
        with open(os.path.join(folder, "history"), encoding="utf-8") as file:
            mode, at, start, records, heard = json.load(file)
        events, past = power.read(*(os.path.join(folder, record) for record in records)), Past(heard)
        disk = power.Disk(events)
        disk.replay(at + 1)
        past.move_to(events[at][0])
        left, how = disk.left(random.Random(f"{start} {at}"))
        shutil.copytree(left, os.path.join(folder, "disk"), dirs_exist_ok=True)
        wrong = problems(left, past, mode, events[at][0])
        print(f"the disk is {folder}/disk: {how}", *wrong, sep="\n  ")
        assert not wrong


main()
