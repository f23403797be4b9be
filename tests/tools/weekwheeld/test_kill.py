#!/usr/bin/env python3
"""A busy server is killed and started again on the same folder, many times. It keeps what it has acknowledged.

Clients send random commands all the while. What they did and heard, and what the store has after each start, is judged by
tests/support/history.py.

WW_KILLS sets how often it is killed: by default 20 times with a folder and 10 times with Redis.
"""
# tier: long, waits
# needs: tests/weekwheeld_small
import base64
import os
import random
import signal
import threading
import time

from history import History
from harness import SMALL, Case, Fsck, Redis, Server, main, seed, until

CLIENTS = 6
LONGEST = 0.4  # seconds until it is killed
TUBES = ("default", "t")
SECOND = 10**9
HOUR = 3600


def now():
    """The clock by which the server counts delays."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Job:
    """What the clients know of a job. Its body begins with its number."""

    def __init__(self, number, ttr, key, tube):
        self.number, self.ttr, self.id = number, ttr, None
        self.name, self.key, self.tube, self.puts = str(number), key, tube, 0


class World:
    """The clients' common history."""

    def __init__(self, start, **begin):
        self.random = random.Random(start)
        self.lock = threading.Lock()
        self.history = History(**begin)
        self.jobs, self.known = [], []
        self.calls = self.clients = 0
        self.failures, self.counts = [], {}

    def fail(self, text):
        self.failures.append(text)

    def wrong(self):
        return "\n".join((self.failures + self.history.wrong)[:10])

    def note(self, event, **more):
        """Returns the number of the call."""
        if event in ("call", "ask"):
            self.calls += 1
            more["call"] = self.calls
        self.history.feed({"event": event, "t": now(), **more})
        return self.calls

    def called(self, job, number):
        if job.id is None:
            self.known.append(job)
        job.id = number

    def find(self, body):
        head, _, rest = body.partition(" ")
        if not head.isdigit() or int(head) >= len(self.jobs) or rest.strip("p"):
            self.fail("there is a body %r" % body[:40])
            return None
        return self.jobs[int(head)]


class Worker(threading.Thread):
    """A client that sends random commands, and notes each before it sends and when it is answered."""

    def __init__(self, world, server):
        super().__init__(daemon=True)
        world.clients += 1
        self.world, self.server, self.me = world, server, str(world.clients)
        self.random = random.Random(world.random.getrandbits(32))
        self.held, self.had, self.tube = [], set(), None
        self.start()

    def run(self):
        try:
            while True:
                self.life()
        except (EOFError, OSError):
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.world.fail("%s: %s" % (type(error).__name__, error))

    def life(self):
        """One connection."""
        with self.server.client() as client:
            client.ask("watch t")
            self.tube = self.random.choice(TUBES)
            client.ask("use " + self.tube)
            for _ in range(self.random.randrange(5, 100)):
                with self.world.lock:
                    batch = [self.draw() for _ in range(self.random.choice((1, 1, 2, 5, 20)))]
                client.send(b"".join(line for line, _ in batch))
                for line, heard in batch:
                    answer = client.answer()
                    with self.world.lock:
                        word = line.split(b" ")[0].decode() + " " + answer.split()[0]
                        self.world.counts[word] = self.world.counts.get(word, 0) + 1
                        heard(answer)
            with self.world.lock:
                self.world.note("left", by=self.me)
                self.held, self.had = [], set()

    def draw(self):
        """A command, and the function for its answer."""
        choice = self.random.random()
        if self.held and choice < 0.4:
            return self.end()
        if choice < 0.65:
            return self.put()
        if choice < 0.92 or not self.world.known:
            return self.reserve()
        job = self.random.choice(self.world.known[-200:])
        # What it says of a job that it has had may be about that delivery.
        if job in self.had:
            return self.reserve()
        return self.random.choice((self.delete, self.kick, *[self.again] * 4 * (job.key is not None and job.tube == self.tube)))(job)

    def end(self):
        """End what it has. If the job was put again, the history knows of which delivery it is the end: of several, a delete
        is that of the oldest."""
        job, number, of = self.random.choice(self.held)
        if job.puts > 1:
            of = next(of for _, same, of in self.held if same == number)
            self.held.remove((job, number, of))
            return self.delete(job, number, by=self.me, of=of)
        self.held.remove((job, number, of))
        if self.random.random() < 0.2:
            return self.touch(job, of)
        return self.random.choice((self.delete, self.delete, self.delete, self.release, self.bury))(job, by=self.me)

    def change(self, job, line, good, to, delay=None, heard=lambda answer: None, **more):
        """A command that has this effect if it is answered by one of these words, and none if there is no such job or lease."""
        sent = now()
        due = {} if delay is None else {"due": [sent + delay * SECOND, sent + (delay + HOUR) * SECOND]}
        call = self.world.note("call", job=job.name, to=to, **due, **more)

        def answered(answer):
            word, *rest = answer.split()
            if word not in (*good.split(), "NOT_FOUND"):
                self.world.fail("%r: %s" % (line[:40], answer))
            known = {} if delay is None else {"due": [sent + delay * SECOND, now() + delay * SECOND]}
            if word == "INSERTED":
                known["id"] = int(rest[0])
                self.world.called(job, known["id"])
            self.world.note("answer", call=call, ok=word in good.split(), **known)
            heard(word)

        return line, answered

    def put(self):
        number = len(self.world.jobs)
        key = b"k%d" % number if self.random.random() < 0.3 else None
        job = Job(number, self.random.choice((1, 2, 60, 60)), key, self.tube)
        self.world.jobs.append(job)
        return self.again(job)

    def again(self, job):
        """Put it for the first time; or with its key, which replaces it in whatever hands it is."""
        job.puts += 1
        delay = self.random.choice((0, 0, 0, 1, 2, HOUR))
        body = b"%d " % job.number + b"p" * self.random.choice((0, 10, 300, 300, 9000, 60000 * (job.number % 50 == 0)))
        line = b"%s %d %d %d %d%s\r\n%s\r\n" % (b"put-key" if job.key else b"put", self.random.randrange(2000), delay, job.ttr,
                                             len(body), b" " + job.key if job.key else b"", body)
        return self.change(job, line, "INSERTED REPLACED", "waiting", delay)

    def reserve(self):
        call = self.world.note("ask")

        def heard(answer):
            if not answer.startswith("RESERVED "):
                if answer not in ("TIMED_OUT", "DEADLINE_SOON"):
                    self.world.fail("reserve: " + answer)
                self.world.note("answer", call=call, ok=False)
                return
            head, body = answer.split("|", 1)
            job = self.world.find(body)
            if job:
                self.world.called(job, int(head.split()[1]))
                self.world.note("deliver", call=call, job=job.name, id=int(head.split()[1]), run=job.ttr * SECOND, by=self.me)
                self.held.append((job, job.id, call))
                self.had.add(job)

        return b"reserve-with-timeout %d\r\n" % (self.random.random() < 0.05), heard

    def delete(self, job, number=None, **by):
        return self.change(job, b"delete %d\r\n" % (number or job.id), "DELETED", "gone", **by)

    def release(self, job, **by):
        delay = self.random.choice((0, 0, 1, HOUR))
        line = b"release %d %d %d\r\n" % (job.id, self.random.randrange(2000), delay)
        return self.change(job, line, "RELEASED", "waiting", delay, **by)

    def bury(self, job, **by):
        return self.change(job, b"bury %d %d\r\n" % (job.id, self.random.randrange(2000)), "BURIED", "buried", **by)

    def touch(self, job, of):
        def heard(word):
            if word == "TOUCHED":
                self.held.append((job, job.id, of))

        return self.change(job, b"touch %d\r\n" % job.id, "TOUCHED", "leased", heard=heard, by=self.me, run=job.ttr * SECOND)

    def kick(self, job):
        return self.change(job, b"kick-job %d\r\n" % job.id, "KICKED", "waiting", 0)


def verify(world, client, settled):
    """The store has what was acknowledged."""
    began = now()
    stored = client.all_jobs()
    for one in stored:
        job = world.find(base64.b64decode(one["body"]).decode())
        if job:
            left = int(float(one["left"]) * SECOND)
            # Redis counts whole microseconds, and what has been due for long becomes ready soon after a start.
            world.note("found", job=job.name, id=one["id"], state=one["state"],
                       due=[began + left - SECOND // 1000 if left else 0, now() + left + SECOND // 1000])
    world.note("looked", settled=settled)


def die(world, server):
    """Kill the server while it works."""
    workers = [Worker(world, server) for _ in range(CLIENTS)]
    threading.Event().wait(world.random.random() * LONGEST)
    server.stop(signal.SIGKILL)
    for worker in workers:
        worker.join()
    world.note("killed")


def finish(world, kills):
    """Every kind of command was sent."""
    print("%d kills, %d events; %s" % (
        kills, world.history.number, ", ".join("%s %d" % entry for entry in sorted(world.counts.items()))))
    for what in ("put INSERTED", "reserve-with-timeout RESERVED", "delete DELETED", "release RELEASED", "bury BURIED"):
        assert kills == 0 or any(word.startswith(what) for word in world.counts), what


class Kills(Case):
    def test_jobs_in_redis_outlive_a_kill(self):
        """One of two busy servers is killed. The other one and the successor have what was acknowledged."""
        world = World(seed(), leases="last")
        kills = int(os.environ.get("WW_KILLS") or 10)
        with Redis() as redis, redis.server() as other:
            for number in range(kills + 1):
                with redis.server() as server:
                    for where in (server, other):
                        with where.client() as client:
                            verify(world, client, settled=False)
                    if number < kills and not world.wrong():
                        die(world, server)
                assert not world.wrong(), "after %d kills:\n%s" % (number, world.wrong())
            with other.client() as client:
                client.ask("watch t")
                # Nothing is stuck. A job whose worker is gone comes again.
                for job in [job for job in client.all_jobs() if job["state"] == "reserved" and job["run"] <= 2]:
                    until(lambda job=job: client.numbers("stats-job %d" % job["id"])["state"] != "reserved", "its time is up")
        finish(world, kills)

    def test_what_is_acknowledged_outlives_a_kill(self):
        world = World(seed())
        fsck = Fsck()
        data = "jobs"
        kills = int(os.environ.get("WW_KILLS") or 20)
        for number in range(kills + 1):
            sync = world.random.choice(("always", "interval", "system"))
            with Server("--data", data, "--sync", sync, program=SMALL) as server:
                with server.client() as client:
                    verify(world, client, settled=True)
                if number < kills and not world.wrong():
                    die(world, server)
                    fsck.check(data)
            assert not world.wrong(), "after %d kills, --sync %s:\n%s" % (number, sync, world.wrong())
        finish(world, kills)


main()
