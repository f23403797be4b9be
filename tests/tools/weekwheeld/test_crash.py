#!/usr/bin/env python3
"""A server under random load loses its power, at hundreds of moments. What it acknowledged is there when it comes back.

All that it writes and syncs is recorded, and many disks are rebuilt that a power failure may have left (see
tests/support/power.py). Each is checked and served, and its jobs are compared with what the clients had heard by then:

- with --sync always, all that was answered has happened;
- with --sync interval, all that was answered before the last moments has happened;
- with --sync system, anything may be lost;
- always, the store is sound, no job is there that nobody put, and no id is given twice.

WW_STATES is how many disks are rebuilt (60), and WW_SYNC names the modes (always). A bad disk is kept in the build
folder, with the command to look at it again.
"""
import base64
import math
import os
import pickle
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
import power
from history import History
from weekwheel import BUILD, Case, Fsck, Server, main, seed

STATES = int(os.environ.get("WW_STATES") or 60)
MODES = (os.environ.get("WW_SYNC") or "always").split()
AGAIN = os.environ.get("WW_CRASH")
ROUNDS = 150
CLIENTS = 5
HOUR = 3600
INTERVAL = 0.05
# What was answered so long before a power failure is kept: the interval, and the time that a sync takes.
LOST = {"always": 0, "interval": INTERVAL + 0.5, "system": math.inf}
EVER = (0, math.inf)
now = time.monotonic


class Load:
    """Clients that send random commands in batches, and the history of what they heard."""

    def __init__(self, server, chance):
        self.chance, self.history, self.wrong = chance, History(), []
        self.clients = [server.client() for _ in range(CLIENTS)]
        self.held = [[] for _ in self.clients]
        self.count, self.touched = 0, set()
        self.history.began = now()

    def round(self):
        """Each client sends a batch before any answer is read: the server has work of several at a time."""
        expected, self.touched = [], set()
        for client, held in zip(self.clients, self.held):
            batch = [self.draw(held) for _ in range(self.chance.choice((1, 1, 2, 10, 30)))]
            client.send(b"".join(line for line, _ in batch))
            expected.append((client, [heard for _, heard in batch]))
        for client, batch in expected:
            for heard in batch:
                heard(client.answer(), now())

    def draw(self, held):
        """A command, and what is done with its answer."""
        choice = self.chance.random()
        if held and choice < 0.35:
            job = held[self.chance.randrange(len(held))]
            if job in self.touched:
                return self.put()
            self.touched.add(job)
            held.remove(job)
            return self.chance.choice((self.delete, self.delete, self.release, self.bury))(job)
        if choice < 0.6:
            return self.put()
        known = [job for job in list(self.history.jobs.values())[-300:] if job.id]
        if choice < 0.85 or not known:
            return b"reserve-with-timeout 0\r\n", lambda answer, time: self.reserved(held, answer, time)
        job = self.chance.choice(known)
        # A put that overtakes the delete of its key would make another job.
        if job.keyed and (job in self.touched or any(one.state == "gone" for one in job.operations)):
            return self.put()
        self.touched.add(job)
        changes = [self.kick, self.move]
        # Who has not reserved a repeated job, or whose delivery was replaced, ends it; who has ends a delivery only.
        if not job.every:
            changes.append(self.again)
            if not any(job in others for others in self.held):
                changes.append(self.delete)
        return self.chance.choice(changes)(job)

    def change(self, job, line, good, state, delay=None):
        """A command that has this effect if it is answered so."""
        sent = now()
        due = EVER if job.every or delay is None else (sent + delay, math.inf)
        operation = self.history.change(job, state, sent, due)

        def heard(answer, time):
            if answer.split()[0] not in good:
                job.operations.remove(operation)
                return
            operation.answered = time
            if due is not EVER:
                operation.due = sent + delay, time + delay
            if answer.startswith("INSERTED"):
                self.name(job, int(answer.split()[1]), time)

        return line, heard

    def name(self, job, number, time):
        wrong = self.history.name(job, number, time)
        if wrong:
            self.wrong.append(wrong)

    def put(self):
        self.count += 1
        body = b"%d " % self.count + b"p" * self.chance.choice((0, 10, 300, 300, 9000, 60000 * (self.count % 50 == 0)))
        job = self.history.add(body)
        job.delay = self.chance.choice((0, 0, 0, 1, HOUR))
        job.every = self.chance.random() < 0.1
        job.keyed = job.every or self.chance.random() < 0.3
        return self.again(job)

    def again(self, job):
        """Put it for the first time; or with its key, which replaces it."""
        if job.id and not job.keyed:
            return self.kick(job)
        verb = b"put-key" if job.keyed else b"put"
        options = b" k%d" % int(job.body.split()[0]) if job.keyed else b""
        options += b" every=1" if job.every else b""
        line = b"%s %d %d 60 %d%s\r\n%s\r\n" % (
            verb, self.chance.randrange(2000), job.delay, len(job.body), options, job.body)
        return self.change(job, line, ("INSERTED", "REPLACED"), "waiting", job.delay)

    def reserved(self, held, answer, time):
        if answer.startswith("RESERVED "):
            head, body = answer.split("|", 1)
            job = self.history.jobs[body.encode()]
            self.name(job, int(head.split()[1]), time)
            held.append(job)

    def delete(self, job):
        return self.change(job, b"delete %d\r\n" % job.id, ("DELETED",), "waiting" if job.every else "gone")

    def release(self, job):
        delay = self.chance.choice((0, 0, 1, HOUR))
        return self.change(job, b"release %d 5 %d\r\n" % (job.id, delay), ("RELEASED",), "waiting", delay)

    def bury(self, job):
        return self.change(job, b"bury %d 5\r\n" % job.id, ("BURIED",), "buried")

    def kick(self, job):
        return self.change(job, b"kick-job %d\r\n" % job.id, ("KICKED",), "waiting", 0)

    def move(self, job):
        return self.change(job, b"move %d %d\r\n" % (job.id, HOUR), ("MOVED",), "waiting", HOUR)


def run(mode, chance):
    """Record a server under load. Returns its events and the history."""
    os.mkdir("data")
    often = ("--sync-interval", str(INTERVAL)) if mode == "interval" else ()
    with Server("--data", "data", "--sync", mode, *often, **power.recorded("data", "record")) as server:
        load = Load(server, chance)
        for _ in range(ROUNDS):
            load.round()
        server.stop(signal.SIGKILL)
    assert not load.wrong, load.wrong
    return load.history


def stored_jobs(client):
    began = now()
    jobs = client.all_jobs()
    ended = now()
    return [{"id": job["id"], "body": base64.b64decode(job["body"]), "state": job["state"],
             "due": (began + float(job["left"]), ended + float(job["left"]))} for job in jobs]


def problems(folder, history, mode, time):
    """What is wrong with a disk after a power failure at that time."""
    try:
        Crash.fsck.check(folder)
        with Server("--data", folder, "--sync", mode) as server, server.client() as client:
            found = list(history.judge(stored_jobs(client), time, time - LOST[mode], now()))
            number = int(client.put().split()[1])
            if number <= history.highest_id(time):
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
        history = run(mode, random.Random(f"{start} {mode}"))
        events = power.read("record")
        disk = power.Disk(events)
        chance = random.Random(start)
        # A server that nobody has reached has nothing to lose.
        first = next(i for i, event in enumerate(events) if event[0] / 1e9 > history.began)
        bad = 0
        for at in sorted(chance.choices(range(first, len(events)), k=-(-STATES // len(MODES)))):
            disk.replay(at + 1)
            left, how = disk.left(random.Random(f"{start} {at}"))
            wrong = problems(left, history, mode, events[at][0] / 1e9)
            shutil.rmtree(left)
            if wrong:
                bad += 1
                if bad <= 3:
                    self.keep(mode, at, start, history)
                    print(f"--sync {mode}, after event {at} of {len(events)}: {how}", *wrong[:5], sep="\n  ")
        jobs = len(history.jobs)
        print(f"--sync {mode}: {jobs} jobs, {len(events)} writes and syncs, {-(-STATES // len(MODES))} disks, {bad} bad")
        assert not bad, f"{bad} disks are bad"

    @staticmethod
    def keep(mode, at, start, history):
        folder = os.path.join(os.path.abspath(BUILD), f"crash-{mode}-{start}-{at}")
        os.makedirs(folder, exist_ok=True)
        shutil.copy("record", folder)
        with open(os.path.join(folder, "history"), "wb") as file:
            pickle.dump((mode, at, start, history), file)
        print(f"see it again: WW_CRASH={folder} {os.path.relpath(__file__)}")

    def again(self, folder):
        with open(os.path.join(folder, "history"), "rb") as file:
            mode, at, start, history = pickle.load(file)
        events = power.read(os.path.join(folder, "record"))
        disk = power.Disk(events)
        disk.replay(at + 1)
        left, how = disk.left(random.Random(f"{start} {at}"))
        shutil.copytree(left, os.path.join(folder, "disk"), dirs_exist_ok=True)
        wrong = problems(left, history, mode, events[at][0] / 1e9)
        print(f"the disk is {folder}/disk: {how}", *wrong, sep="\n  ")
        assert not wrong


main()
