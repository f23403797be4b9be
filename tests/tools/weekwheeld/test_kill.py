#!/usr/bin/env python3
"""A busy server is killed and started again on the same folder, many times. It keeps what it has acknowledged.

No job whose put was acknowledged is lost unless its delete was sent. No job whose delete was acknowledged comes back.
None is delivered before its time, nor twice without a kill, a lease that ran out or a release in between.

WW_KILLS sets how often it is killed: by default 20 times with a folder and 10 times with Redis.
"""
import base64
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
from weekwheel import Case, Fsck, Redis, Server, main, seed, until

CLIENTS = 6
LONGEST = 0.4  # seconds until it is killed
TUBES = ("default", "t")
HOUR = 3600


def now():
    """The clock by which the server counts delays."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Job:
    """What the clients know of a job from commands and answers. Its body begins with its number."""

    def __init__(self, number, due, ttr):
        self.number, self.due, self.ttr = number, due, ttr
        self.id = None          # known once acknowledged or seen
        self.acknowledged = False
        self.deletes = 0        # sent and not refused
        self.deleted = False    # acknowledged
        self.holder = None
        self.until = 0          # the lease lasts at least so long
        self.kicks = 0          # sent
        self.kicking = 0        # sent and not answered
        self.buried = False     # acknowledged, and not kicked since
        self.past = []          # commands and answers

    def __str__(self):
        return "job %d (id %s; %s)" % (self.number, self.id, " ".join(self.past[-20:]))

    def note(self, worker, what):
        self.past.append("%.3f:%d:%s" % (now() % 1000, worker.number, what.decode() if isinstance(what, bytes) else what))


class World:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.jobs = []
        self.by_id = {}
        self.failures = []
        self.counts = {}

    def fail(self, text):
        if len(self.failures) < 10:
            self.failures.append(text)

    def name(self, job, number):
        """The server calls the job by that id."""
        if job.id is None and number not in self.by_id:
            job.id = number
            self.by_id[number] = job
        elif job.id != number:
            self.fail("%s is called %d, as is %s" % (job, number, self.by_id.get(number)))

    def find(self, body):
        head, _, rest = body.partition(" ")
        if not head.isdigit() or int(head) >= len(self.jobs) or rest.strip("p"):
            self.fail("there is a body %r" % body[:40])
            return None
        return self.jobs[int(head)]


class Worker(threading.Thread):
    """A client that sends random commands, and notes each before it sends and when it is answered."""

    def __init__(self, world, server, number):
        super().__init__(daemon=True)
        self.world, self.server, self.number = world, server, number
        self.random = random.Random(world.random.getrandbits(32))
        self.client = None
        self.held = []
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
        self.client = self.server.client()
        with self.client as client:
            client.ask("watch t")
            client.ask("use " + self.random.choice(TUBES))
            for _ in range(self.random.randrange(5, 100)):
                with self.world.lock:
                    batch = [self.draw() for _ in range(self.random.choice((1, 1, 2, 5, 20)))]
                client.send(b"".join(line for line, _, _ in batch))
                for line, heard, job in batch:
                    answer = client.answer()
                    with self.world.lock:
                        word = line.split(b" ")[0].decode() + " " + answer.split()[0]
                        self.world.counts[word] = self.world.counts.get(word, 0) + 1
                        if job:
                            job.note(self, answer)
                        heard(answer)
            with self.world.lock:
                for job in self.held:
                    job.holder = None
                self.held = []

    def draw(self):
        """A command, the function for its answer, and its job if it has one."""
        choice = self.random.random()
        if self.held and choice < 0.4:
            job = self.held.pop(self.random.randrange(len(self.held)))
            return self.random.choice((self.delete, self.delete, self.delete, self.release, self.bury, self.touch))(job)
        if choice < 0.65:
            return self.put()
        if choice < 0.92 or not self.world.by_id:
            return self.reserve()
        job = self.world.by_id[self.random.choice(list(self.world.by_id)[-200:])]
        if job.holder is self:
            return self.reserve()
        return self.random.choice((self.delete, self.kick))(job)

    def about(self, job, line, heard):
        job.note(self, line[:-2])
        return line, heard, job

    def refused(self, job, ends, answer):
        """The answer says that this client has no lease any more, which must be true."""
        if answer != "NOT_FOUND":
            self.world.fail("%s: %s" % (job, answer))
        elif now() < ends:
            self.world.fail("%s: a lease that lasts is not found" % job)

    def put(self):
        world = self.world
        delay = self.random.choice((0, 0, 0, 1, 2, HOUR))
        ttr = self.random.choice((1, 2, 60, 60))
        job = Job(len(world.jobs), now() + delay, ttr)
        world.jobs.append(job)
        body = b"%d " % job.number + b"p" * self.random.choice((0, 10, 300, 300, 9000, 60000 * (job.number % 50 == 0)))

        def heard(answer):
            if not answer.startswith("INSERTED "):
                world.fail("put: " + answer)
                return
            world.name(job, int(answer.split()[1]))
            job.acknowledged = True

        return b"put %d %d %d %d\r\n%s\r\n" % (self.random.randrange(2000), delay, ttr, len(body), body), heard, job

    def reserve(self):
        sent = now()
        line = b"reserve-with-timeout %d\r\n" % (self.random.random() < 0.05)

        def heard(answer):
            if answer in ("TIMED_OUT", "DEADLINE_SOON"):
                return
            if not answer.startswith("RESERVED "):
                self.world.fail("reserve: " + answer)
                return
            head, body = answer.split("|", 1)
            job = self.world.find(body)
            if job:
                self.world.name(job, int(head.split()[1]))
                self.given(job, sent)

        return line, heard, None

    def given(self, job, sent):
        time_now = now()
        job.note(self, "RESERVED")
        if job.deleted:
            self.world.fail("%s was deleted, and is delivered" % job)
        if job.buried:
            self.world.fail("%s was buried, and is delivered" % job)
        if time_now < job.due:
            self.world.fail("%s is delivered %.3f s early" % (job, job.due - time_now))
        # The lease of an answer that was read so late may have ended.
        if time_now >= sent + job.ttr:
            return
        if job.holder and time_now < job.until:
            self.world.fail("%s is delivered twice" % job)
        job.holder, job.until = self, sent + job.ttr
        if job not in self.held:
            self.held.append(job)

    def mine(self, job):
        return job.until if job.holder is self else 0

    def kicks(self, job):
        """A number that tells later whether a kick may have come after the command that is sent now."""
        return job.kicks if job.kicking == 0 else -1

    def delete(self, job):
        ends = self.mine(job)
        job.deletes += 1

        def heard(answer):
            if answer == "DELETED":
                if job.deleted:
                    self.world.fail("%s is deleted twice" % job)
                job.deleted = True
                # A reserve sent just before may have delivered it to this client.
                if job in self.held:
                    self.held.remove(job)
                return
            job.deletes -= 1
            self.refused(job, ends, answer)

        return self.about(job, b"delete %d\r\n" % job.id, heard)

    def release(self, job):
        ends, kicks = self.mine(job), self.kicks(job)
        delay = self.random.choice((0, 0, 1, HOUR))
        due = now() + delay
        job.holder = None

        def heard(answer):
            if answer != "RELEASED":
                self.refused(job, ends, answer)
            elif job.kicks == kicks:
                job.due = max(job.due, due)

        return self.about(job, b"release %d %d %d\r\n" % (job.id, self.random.randrange(2000), delay), heard)

    def bury(self, job):
        ends, kicks = self.mine(job), self.kicks(job)
        job.holder = None

        def heard(answer):
            if answer != "BURIED":
                self.refused(job, ends, answer)
            elif job.kicks == kicks:
                job.buried = True

        return self.about(job, b"bury %d %d\r\n" % (job.id, self.random.randrange(2000)), heard)

    def touch(self, job):
        ends, sent = self.mine(job), now()

        def heard(answer):
            if answer != "TOUCHED":
                self.refused(job, ends, answer)
            elif job.holder is self:
                job.until = sent + job.ttr
                if job not in self.held:
                    self.held.append(job)

        return self.about(job, b"touch %d\r\n" % job.id, heard)

    def kick(self, job):
        job.kicks += 1
        job.kicking += 1
        job.due = 0
        job.buried = False

        def heard(answer):
            job.kicking -= 1
            if answer not in ("KICKED", "NOT_FOUND"):
                self.world.fail("kick-job: " + answer)

        return self.about(job, b"kick-job %d\r\n" % job.id, heard)


def verify(world, client, leases_last=False):
    """The store has what was acknowledged."""
    there = set()
    for stored in client.all_jobs():
        job = world.find(base64.b64decode(stored["body"]).decode())
        if not job:
            continue
        world.name(job, stored["id"])
        if job.number in there:
            world.fail("%s is there twice" % job)
        there.add(job.number)
        if job.deleted:
            world.fail("%s was deleted, and is there" % job)
        if job.buried and stored["state"] != "buried":
            world.fail("%s was buried, and is %s" % (job, stored["state"]))
        if stored["state"] == "ready" and now() < job.due:
            world.fail("%s is ready %.3f s early" % (job, job.due - now()))
        if stored["state"] == "reserved" and not leases_last:
            world.fail("%s is reserved, and nobody is there" % job)
    for job in world.jobs:
        if job.acknowledged and not job.deletes and job.number not in there:
            world.fail("%s was put, and is lost" % job)


def die(world, server):
    """Kill the server while it works."""
    workers = [Worker(world, server, number) for number in range(CLIENTS)]
    threading.Event().wait(world.random.random() * LONGEST)
    server.stop(signal.SIGKILL)
    for worker in workers:
        worker.join()
    for job in world.jobs:
        job.holder = None
        job.kicking = 0


class Kills(Case):
    def test_jobs_in_redis_outlive_a_kill(self):
        """One of two busy servers is killed. The other one and the successor have what was acknowledged."""
        world = World(seed())
        kills = int(os.environ.get("WW_KILLS") or 10)
        with Redis() as redis, redis.server() as other:
            for number in range(kills + 1):
                with redis.server() as server:
                    for where in (server, other):
                        with where.client() as client:
                            verify(world, client, leases_last=True)
                    if number < kills and not world.failures:
                        die(world, server)
                assert not world.failures, "after %d kills:\n%s" % (number, "\n".join(world.failures))
            with other.client() as client:
                client.ask("watch t")
                # Nothing is stuck. A job whose worker is gone comes again.
                for job in [job for job in client.all_jobs() if job["state"] == "reserved" and job["run"] <= 2]:
                    until(lambda job=job: client.numbers("stats-job %d" % job["id"])["state"] != "reserved", "its time is up")
        print("%d kills; %s" % (kills, ", ".join("%s %d" % entry for entry in sorted(world.counts.items()))))
        for what in ("put INSERTED", "reserve-with-timeout RESERVED", "delete DELETED", "release RELEASED", "bury BURIED"):
            assert kills == 0 or any(word.startswith(what) for word in world.counts), what

    def test_what_is_acknowledged_outlives_a_kill(self):
        world = World(seed())
        fsck = Fsck()
        data = "jobs"
        kills = int(os.environ.get("WW_KILLS") or 20)
        for number in range(kills + 1):
            sync = world.random.choice(("always", "interval", "system"))
            with Server("--data", data, "--sync", sync) as server:
                with server.client() as client:
                    verify(world, client)
                if number < kills and not world.failures:
                    die(world, server)
                    fsck.check(data)
            assert not world.failures, "after %d kills, --sync %s:\n%s" % (number, sync, "\n".join(world.failures))
        print("%d kills; %s" % (kills, ", ".join("%s %d" % entry for entry in sorted(world.counts.items()))))
        # Every kind of command was sent.
        for what in ("put INSERTED", "reserve-with-timeout RESERVED", "delete DELETED", "release RELEASED", "bury BURIED"):
            assert kills == 0 or any(word.startswith(what) for word in world.counts), what


main()
