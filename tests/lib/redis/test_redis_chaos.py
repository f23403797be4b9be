#!/usr/bin/env python3
"""Chaos: jobs in Redis while everything that can break breaks.

Producers put jobs. Workers are killed, stopped for longer than their leases and resumed, and have clocks of their own.
Connections are cut. Redis is killed and started again with what it wrote. At the end:

- every job whose put was acknowledged has been delivered;
- none was leased before its due time by Redis's clock;
- a job was leased twice only where the first lease had run out, and then with a higher token: behind a fence, no effect
  of a lower token follows one of a higher one;
- no finished job comes again.

tests/support/history.py judges that.

WW_CHAOS_SECONDS is how long it goes on (20), and WW_CHAOS_NODES is 1, or 3 for a cluster (1).
"""
# tier: long, waits, no-sanitizers
# needs: tests/test_redis_worker
import contextlib
import itertools
import os
import random
import signal
import threading
import time

from history import History
from harness import Actor, Case, Cluster, Redis, main, seed, until

SECONDS = float(os.environ.get("WW_CHAOS_SECONDS") or 20)
NODES = int(os.environ.get("WW_CHAOS_NODES") or 1)
WORKERS, PRODUCERS = 5, 2
RUN = 1_000_000  # us of a lease
PAUSE = 0.4  # s between two happenings at most


class Journal:
    """Lines of all actors, and the history that they tell in the order of Redis's clock and of the tokens."""

    def __init__(self):
        self.lock = threading.Lock()
        self.due, self.acknowledged, self.leases, self.finished = {}, {}, {}, set()

    def read(self, line):
        words = line.split()
        with self.lock:
            if len(words) == 3 and words[0] == "T":
                self.due[words[1]] = int(words[2]) * 1000
            elif len(words) == 3 and words[0] == "P":
                self.acknowledged[words[1]] = int(words[2])
            elif len(words) == 6 and words[0] == "J":
                number, token, attempt, ends = map(int, words[1:5])
                self.leases.setdefault(words[5], []).append(((ends - RUN) * 1000, token, attempt, number))
            elif len(words) == 4 and words[0] == "F" and words[3] == "0":
                self.finished.add((int(words[1]), int(words[2])))

    def missing(self):
        with self.lock:
            return [body for body in self.acknowledged if body not in self.leases]

    def judge(self):
        """The history, judged. An actor's line may be read before that of another which came earlier, or be cut off."""
        history, calls = History(tokens="job", leases="last"), itertools.count()

        def note(event, time, **more):
            history.feed({"event": event, "t": time, **more})

        def done(time, is_answered=True, number=None, **more):
            call = next(calls)
            note("call", time, call=call, **more)
            if is_answered:
                note("answer", time, call=call, ok=True, **({} if number is None else {"id": number}))

        for body in {**self.due, **self.acknowledged, **self.leases}:
            due = {"due": [self.due[body]] * 2} if body in self.due else {}
            done(0, body in self.acknowledged, self.acknowledged.get(body), job=body, to="waiting", **due)
        leases = sorted((*lease, body) for body, leases in self.leases.items() for lease in leases)
        for time, token, attempt, number, body in leases:
            call = next(calls)
            note("ask", time, call=call)
            note("deliver", time, call=call, job=body, id=number, token=token, attempt=attempt, run=RUN * 1000)
            if (number, token) in self.finished:
                done(time, job=body, to="gone")
        note("end", max([lease[0] for lease in leases] + list(self.due.values())), all=True)
        return history.wrong


class Process(Actor):
    """A worker or a producer, whose lines go to the journal."""

    def __init__(self, journal, url, order, shift=0):
        super().__init__(url, ACTOR_HOLD_US="8000", ACTOR_SHIFT_S=str(shift) if shift else None)
        self.journal, self.stopped = journal, False
        self.say(order)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            # The last one may be cut off.
            if line.endswith("\n"):
                self.journal.read(line)

    def signal(self, number):
        self.process.send_signal(number)
        self.stopped = number == signal.SIGSTOP

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        super().kill()


class Chaos:
    def __init__(self, chance, servers, url):
        self.chance, self.servers, self.url = chance, servers, url
        self.journal = Journal()
        self.counts = {}
        # A producer names its jobs after itself, so each has another name.
        self.names = 0
        self.workers, self.producers = [], []
        try:
            self.workers += (self.new_worker() for _ in range(WORKERS))
            self.producers += (self.new_producer() for _ in range(PRODUCERS))
        except BaseException:
            self.end()
            raise

    def new_worker(self):
        return Process(self.journal, self.url, "work t", self.chance.choice([0, 0, -300, 420]))

    def new_producer(self):
        self.names += 1
        delay = self.chance.choice([0, 50000, 2000000])
        return Process(self.journal, self.url, f"produce t p{self.names} {RUN // 1000} {delay}")

    # What may happen

    def kill_worker(self):
        i = self.chance.randrange(WORKERS)
        self.workers[i].kill()
        self.workers[i] = self.new_worker()

    def kill_producer(self):
        i = self.chance.randrange(PRODUCERS)
        self.producers[i].kill()
        self.producers[i] = self.new_producer()

    def stop_worker(self):
        self.chance.choice(self.workers).signal(signal.SIGSTOP)

    def resume_workers(self):
        for worker in self.workers:
            if worker.stopped:
                worker.signal(signal.SIGCONT)

    def cut_connections(self):
        with contextlib.suppress(OSError):
            self.chance.choice(self.servers).ask("CLIENT", "KILL", "TYPE", self.chance.choice(["normal", "pubsub"]))

    def kill_redis(self):
        server = self.chance.choice(self.servers)
        server.kill()
        time.sleep(self.chance.random() * PAUSE)
        server.start()

    def go(self):
        happenings = [self.kill_worker] * 4 + [self.kill_producer] + [self.stop_worker] * 3
        happenings += [self.resume_workers] * 2 + [self.cut_connections] * 3 + [self.kill_redis]
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            happening = self.chance.choice(happenings)
            happening()
            self.counts[happening.__name__] = self.counts.get(happening.__name__, 0) + 1
            time.sleep(self.chance.random() * PAUSE)
        for producer in self.producers:
            producer.kill()
        self.resume_workers()
        # The rest is done, whichever worker had it.
        until(lambda: not self.journal.missing(), "all that was acknowledged is done", 0.05)

    def end(self):
        for process in self.workers + self.producers:
            process.kill()


class Everything(Case):
    def test_chaos(self):
        chance = random.Random(seed())
        synced = ("--appendfsync", "always")
        with Cluster(*synced, count=NODES) if NODES > 1 else Redis(*synced) as store:
            servers = store.nodes if NODES > 1 else [store]
            chaos = Chaos(chance, servers, servers[0].url)
            try:
                chaos.go()
            finally:
                chaos.end()
                journal = chaos.journal
                wrong = journal.judge()
                leases = sum(map(len, journal.leases.values()))
                print(f"{len(journal.acknowledged)} jobs, {leases} leases, {leases - len(journal.leases)} of them again; " +
                      ", ".join(f"{n} {name}" for name, n in sorted(chaos.counts.items())))
                print(*wrong[:20], sep="\n")
        assert journal.acknowledged, "nothing was put"
        assert not wrong, f"{len(wrong)} times it went wrong"


main()
