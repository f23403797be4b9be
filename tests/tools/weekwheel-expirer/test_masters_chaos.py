#!/usr/bin/env python3
"""weekwheel-expirer beside a cluster in which nodes fail, while keys are set.

Rounds: a master is killed, or a replica takes over by force, in turn. Each prints how long after the new master's first
answer the expirer was exact again. WW_ROUNDS is how many there are (2), and WW_OTHERS how many other keys the cluster
has (3000).

Chaos: two expirers, one of which is killed again and again. Nodes are killed and stopped, connections are cut, slots move,
replicas take over, and the clocks of nodes step. WW_CHAOS_SECONDS is how long it goes on (20).

In the end no key is left of which a replica had confirmed that it was set. None ends before its deadline, besides those
that moved with their slot: MIGRATE takes along how long a key has left by the clock of one node, and the other adds that to its own.
"""
# tier: long, waits, no-sanitizers
import os
import random
import signal
import threading
import time

from expirer import Expirer
from harness import Case, check, main, seed, until
from masters import AllEnds, LazyCluster, slot_of, start_lazy
from sessiond import Client

ROUNDS, OTHERS = int(os.environ.get("WW_ROUNDS") or 2), int(os.environ.get("WW_OTHERS") or 3000)
SECONDS = float(os.environ.get("WW_CHAOS_SECONDS") or 20)
STEP = 2_000_000  # us, of a clock at most


def tag_of(shard):
    """A hash tag of a slot in that third of the slots."""
    return next(tag for tag in (f"{{{i}}}" for i in range(100)) if slot_of(tag) * 3 // 16384 == shard)


class Traffic(threading.Thread):
    """Sets keys of one slot until it is told to stop. `until` has the deadlines of those that a replica has, in ms."""

    def __init__(self, cluster, shard, random_):
        super().__init__()
        self.cluster, self.tag, self.random = cluster, tag_of(shard), random_
        self.over, self.until, self.wrong = threading.Event(), {}, None

    def run(self):
        try:
            for i in range(1_000_000):
                if self.over.wait(0.01):
                    return
                key, at = f"{self.tag}{i}", int(time.time() * 1000) + self.random.randrange(300, 4000)
                _, copies = self.cluster.ask(self.tag, ("SET", key, "v", "PXAT", at), ("WAIT", 1, 300))
                if copies == ":1" and time.time() * 1000 < at:
                    self.until[key] = at
        except BaseException as error:
            self.wrong = error


class Masters(Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(seed())

    def begin(self, cluster):
        traffic = [Traffic(cluster, shard, random.Random(self.random.random())) for shard in range(3)]
        for thread in traffic:
            thread.start()
        return traffic

    def end(self, traffic):
        for thread in traffic:
            thread.over.set()
        for thread in traffic:
            thread.join()
            if thread.wrong:
                raise thread.wrong
        deadlines = {key: at for thread in traffic for key, at in thread.until.items()}
        check(deadlines, "keys were set")
        return deadlines

    # ---- Rounds

    @staticmethod
    def answers(node, tag):
        try:
            with Client(node.port) as client:
                client.send(b"EXISTS %s\r\n" % tag.encode())
                return client.line().startswith(b":")
        except OSError:
            return False

    def one_round(self, cluster, expirer, number):
        """Returns how long after the new master's first answer the expirer is exact, in s, and when the outage was, in ms."""
        shard = number % 3
        pair = cluster.nodes[shard], cluster.nodes[3 + shard]
        master, replica = pair if pair[0].ask("ROLE")[0] == "master" else pair[::-1]
        exact, begins = f"Exact from now on at 127.0.0.1:{replica.port}:", time.time() * 1000
        seen = expirer.said.count(exact)
        if number % 2:
            master.kill()
        else:
            threading.Thread(target=cluster.take_over, args=(replica, "FORCE")).start()
        until(lambda: self.answers(replica, tag_of(shard)), "the new master answers", 0.002)
        began = time.monotonic()
        until(lambda: expirer.said.count(exact) > seen, "it is exact again", 0.002)
        took, outage = time.monotonic() - began, (begins, time.time() * 1000)
        if number % 2:
            start_lazy(master)
        until(lambda: master.ask("ROLE")[0] == "slave" and master.ask("ROLE")[3] == "connected", "the old master follows")
        until(lambda: expirer.get("/readyz")[0] == 200, "all are exact")
        return took, outage

    def test_it_is_exact_again_after_each_failover(self):
        with LazyCluster(replicas=1) as cluster, AllEnds(cluster.nodes) as ends, Expirer(cluster.url) as expirer:
            for shard in range(3):
                for i in range(0, OTHERS // 3, 500):
                    cluster.ask(tag_of(shard), *(("SET", f"{tag_of(shard)}other{i + n}", "v", "EX", 10000) for n in range(500)))
            expirer.exact(3)
            traffic, times, outages = self.begin(cluster), [], []
            for number in range(ROUNDS):
                took, outage = self.one_round(cluster, expirer, number)
                times.append(took)
                outages.append(outage)
                print("round %d, %s: exact %.2f s after the new master's first answer" %
                      (number, "killed" if number % 2 else "forced", times[-1]), flush=True)
            deadlines = self.end(traffic)
            self.judge(cluster, expirer, deadlines)
            late = ends.late(deadlines)
            print("exact again: median %.2f s, worst %.2f s; %d keys, %d ends heard" %
                  (sorted(times)[len(times) // 2], max(times), len(deadlines), len(late)), flush=True)
            calm = {key: at for key, at in deadlines.items() if not any(one <= at <= last for one, last in outages)}
            for name, some in (("all", late), ("outside of outages", ends.late(calm))):
                print("%s: late by ms: median %.1f, 90 %% %.1f, 99 %% %.1f, worst %.0f" %
                      (name, *(some[len(some) * part // 1000] for part in (500, 900, 990)), some[-1]), flush=True)
            check(late[0] >= -1, f"none ends early: {late[:5]}")

    def judge(self, cluster, expirer, deadlines):
        """All of these are asked for: none is left."""
        def left():
            return [key for slot in map(slot_of, map(tag_of, range(3))) for key in self.keys(cluster.owner(slot), slot) if key in deadlines]

        try:
            until(lambda: not left(), "none is left", 0.2)
        except AssertionError as error:
            raise AssertionError(f"left: {left()[:10]}: {expirer.said[-3000:]}") from error

    @staticmethod
    def keys(node, slot):
        """The keys of a slot, those that have expired included: this looks at none."""
        return node.ask("CLUSTER", "GETKEYSINSLOT", slot, 1_000_000)

    # ---- Chaos

    def test_none_is_missing_and_none_early_whatever_happens(self):
        happenings = [self.kill, self.stop, self.cut, self.move, self.take_over, self.step, self.kill_expirer]
        with LazyCluster(replicas=1, clocks=True) as cluster, AllEnds(cluster.nodes) as ends:
            self.moved, self.cluster, self.expirers = set(), cluster, [Expirer(cluster.url).__enter__() for _ in range(2)]
            try:
                for expirer in self.expirers:
                    expirer.exact(3)
                traffic, end, done = self.begin(cluster), time.monotonic() + SECONDS, []
                while time.monotonic() < end:
                    happening = self.random.choice(happenings)
                    happening()
                    done.append(happening.__name__)
                    time.sleep(self.random.random())
                for number in range(len(cluster.nodes)):
                    cluster.step(number, 0)
                deadlines = self.end(traffic)
                for expirer in self.expirers:
                    try:
                        until(lambda expirer=expirer: expirer.get("/readyz")[0] == 200, "it is exact in the end")
                    except AssertionError as error:
                        raise AssertionError(f"{expirer.get('/readyz')}: {expirer.said[-3000:]}") from error
                self.judge(cluster, self.expirers[0], deadlines)
            finally:
                for expirer in self.expirers:
                    expirer.__exit__(True)
        early = {key: at - ends.at[key] for key, at in deadlines.items() if key in ends.at and ends.at[key] + STEP / 1000 < at - 1}
        wrong = {key: ms for key, ms in early.items() if key not in self.moved}
        print("%d keys, %d ends heard, %d moved, of these %d early; %s" %
              (len(deadlines), len(ends.at), len(self.moved), len(early) - len(wrong), " ".join(done)), flush=True)
        check(not wrong, f"none ends early, by ms: {wrong}")

    def pair(self):
        """A master with a replica that follows, and that replica. Waits until all have one."""
        shard = self.random.randrange(3)
        one, other = self.cluster.nodes[shard], self.cluster.nodes[3 + shard]

        def are_both():
            roles = [node.ask("ROLE") for node in (one, other)]
            return sorted(role[0] for role in roles) == ["master", "slave"] and \
                next(role for role in roles if role[0] == "slave")[3] == "connected"

        until(are_both, "a master and a replica", 0.05)
        return (one, other) if one.ask("ROLE")[0] == "master" else (other, one)

    def kill(self):
        master, replica = self.pair()
        master.kill()
        if self.random.random() < 0.5:
            until(lambda: replica.ask("ROLE")[0] == "master", "the replica takes over")
        start_lazy(master)

    def stop(self):
        master, _ = self.pair()
        master.process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.random() * 4)
        master.process.send_signal(signal.SIGCONT)

    def cut(self):
        self.pair()[0].ask("CLIENT", "KILL", "TYPE", self.random.choice(("normal", "pubsub")))

    def move(self):
        source = self.pair()[0]
        target = self.random.choice([node for node in self.cluster.masters() if node is not source])
        slot = slot_of(tag_of(self.random.randrange(3)))
        if self.cluster.owner(slot) is source:
            self.cluster.move(slot, source, target, lambda: self.moved.update(self.keys(source, slot)))

    def take_over(self):
        self.cluster.take_over(self.pair()[1], *self.random.choice(((), ("FORCE",))))

    def step(self):
        self.cluster.step(self.random.randrange(6), self.random.randrange(-STEP, STEP))

    def kill_expirer(self):
        number = self.random.randrange(2)
        self.expirers[number].process.kill()
        self.expirers[number].__exit__(True)
        self.expirers[number] = Expirer(self.cluster.url).__enter__()


main()
