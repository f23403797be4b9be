#!/usr/bin/env python3
"""Nodes of a cluster that fail while clients put jobs.

Forced failovers while clients put jobs with --redis-replicas 1: what was acknowledged is there.

A replica is told to take its primary's place without asking it (CLUSTER FAILOVER FORCE), again and again.

WW_ROUNDS is how many rounds there are (1), WW_PUTS how many puts a round has (600), and WW_REPLICAS what the server gets
as --redis-replicas (1; with 0 jobs may be lost). "make failovers" makes long rounds.

A node that refuses or is silent: puts with keys go on at the others. What that costs is printed.
"""
# tier: long, waits
import base64
import os
import signal
import threading
import time

from harness import PATIENCE, Case, Cluster, main, until

ROUNDS, PUTS = int(os.environ.get("WW_ROUNDS") or 1), int(os.environ.get("WW_PUTS") or 600)
REPLICAS = os.environ.get("WW_REPLICAS") or "1"
CLIENTS = 6
SECONDS = 1.5  # before, and while a node fails
GAP = 0.05  # s between two failovers


def role(node):
    return dict(line.split(":", 1) for line in node.ask("INFO", "replication").splitlines() if ":" in line)


class Takeovers(threading.Thread):
    """Changes primary and replica of one pair after the other, until it is told to stop."""

    def __init__(self, pairs):
        super().__init__()
        self.pairs, self.over, self.count, self.wrong = pairs, threading.Event(), 0, None

    def run(self):
        try:
            while not self.over.wait(GAP):
                self.take_over(*self.pairs[self.count % len(self.pairs)])
        except BaseException as error:
            self.wrong = error

    def take_over(self, one, other):
        replica, primary = (one, other) if role(one)["role"] == "slave" else (other, one)

        def has_followed():
            state = role(primary)
            return role(replica)["role"] == "master" and state["role"] == "slave" and state["master_link_status"] == "up"

        # One that has just become a replica is not let in yet, and one that asks too soon gets no votes.
        until(lambda: self.over.is_set() or replica.ask("CLUSTER", "FAILOVER", "FORCE") == "+OK", "a replica takes over")
        late = time.monotonic() + 5
        while not has_followed() and time.monotonic() < late and not self.over.is_set():
            time.sleep(0.01)
        self.count += has_followed()


class Putter(threading.Thread):
    def __init__(self, server, name, count):
        super().__init__()
        self.server, self.bodies, self.stored, self.refused = server, ["%s-%d" % (name, i) for i in range(count)], [], 0

    def run(self):
        with self.server.client() as client:
            for body in self.bodies:
                answer = client.put(body.encode(), delay=100000)
                if answer.startswith("INSERTED "):
                    self.stored.append(body)
                else:
                    assert answer == "INTERNAL_ERROR", answer
                    self.refused += 1


class Failover(Case):
    def missing(self, client, bodies):
        there = {base64.b64decode(job["body"]).decode() for job in client.all_jobs()}
        return [body for body in bodies if body not in there]

    def one_round(self, pairs, server, number):
        takeovers, began = Takeovers(pairs), time.monotonic()
        putters = [Putter(server, "%d-%d" % (number, i), PUTS // CLIENTS) for i in range(CLIENTS)]
        for thread in (takeovers, *putters):
            thread.start()
        for thread in putters:
            thread.join()
        # A short round has one, too.
        until(lambda: takeovers.count or takeovers.wrong, "a failover")
        took = time.monotonic() - began
        takeovers.over.set()
        takeovers.join()
        if takeovers.wrong:
            raise takeovers.wrong
        # By their bodies: a lost id is given again.
        stored = [body for putter in putters for body in putter.stored]
        refused = sum(putter.refused for putter in putters)
        with server.client() as client:
            until(lambda: client.ask("list-tubes").startswith("OK"), "the cluster answers")
            lost = self.missing(client, stored)
            if lost:
                # A list that a failover interrupts goes on at another place of the other node.
                print("listing again: %d are missing" % len(lost), flush=True)
                time.sleep(3)
                lost = self.missing(client, lost)
        print("round %d: %d puts in %.1f s, %d failovers, %d acknowledged, %d refused, %d lost" %
              (number, len(stored) + refused, took, takeovers.count, len(stored), refused, len(lost)), flush=True)
        return len(stored), lost

    def test_a_forced_failover_loses_no_job_that_a_replica_has(self):
        with Cluster("--repl-diskless-sync-delay", "0", replicas=1) as cluster:
            pairs = list(zip(cluster.nodes[:3], cluster.nodes[3:]))
            with cluster.server("--redis-replicas", REPLICAS, "--redis-timeout", str(PATIENCE // 12)) as server:
                results = [self.one_round(pairs, server, number) for number in range(ROUNDS)]
        assert sum(stored for stored, _ in results) > 0, "no put was acknowledged"
        lost = [body for _, some in results for body in some]
        assert not lost, "%d lost: %s" % (len(lost), lost[:10])


# ---- A node that refuses, or is silent

class KeyPutter(threading.Thread):
    """Puts jobs with keys, one after the other, and notes when each was answered and how long that took."""

    def __init__(self, server, keys, over):
        super().__init__()
        self.server, self.keys, self.over, self.calls = server, keys, over, []

    def run(self):
        with self.server.client() as client:
            while not self.over.is_set():
                for key in self.keys:
                    began = time.monotonic()
                    answer = client.ask("put-key 0 100000 60 1 %s\r\nx" % key)
                    self.calls.append((time.monotonic(), time.monotonic() - began, answer.startswith("REPLACED ")))


class Others(Case):
    """What the shards of the other nodes notice of the first one's failure."""

    def keys(self, cluster, server):
        """Keys of jobs, and those of them that lie at other nodes than the first."""
        tags = (cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{weekwheel:%d}" % shard) for shard in range(16))
        on_first = {shard for shard, slot in enumerate(tags) if slot < 16384 // len(cluster.nodes)}
        keys, others = ["k%d" % i for i in range(60)], []
        with server.client() as client:
            for key in keys:
                number = int(client.ask("put-key 0 100000 60 1 %s\r\nx" % key).split()[1])
                others += [] if number % 16 in on_first else [key]
        assert 0 < len(others) < len(keys), others
        return keys, others

    def measure(self, what, cluster, server, fail, mend):
        over, (all_keys, other_keys) = threading.Event(), self.keys(cluster, server)
        putters = [KeyPutter(server, keys, over) for keys in CLIENTS // 2 * [all_keys, other_keys]]
        for thread in putters:
            thread.start()
        time.sleep(SECONDS)
        failed = time.monotonic()
        fail()
        time.sleep(SECONDS)
        mended = time.monotonic()
        mend()
        over.set()
        for thread in putters:
            thread.join()
        calls = sorted(call for putter in putters[1::2] for call in putter.calls)
        before, during = ([call for call in calls if begin <= call[0] < end] for begin, end in ((0, failed), (failed, mended)))
        assert all(call[2] for call in calls), "%s: a put at another node failed" % what
        assert during, "%s: the other nodes' shards stand still" % what
        ends = [failed, *(call[0] for call in during), mended]
        print("%s: puts with keys at the other nodes, %.0f a second before and %.0f during it; longest standstill of all "
              "%.3f s, longest put %.3f s" %
              (what, len(before) / SECONDS, len(during) / SECONDS, max(b - a for a, b in zip(ends, ends[1:])),
               max(call[1] for call in during)), flush=True)

    def test_puts_with_keys_go_on_beside_a_node_that_refuses(self):
        with Cluster() as cluster, cluster.server() as server:
            def refuse(replicas):
                cluster.nodes[0].ask("CONFIG", "SET", "min-replicas-to-write", replicas)
            self.measure("NOREPLICAS at one of three", cluster, server, lambda: refuse(1), lambda: refuse(0))

    def test_puts_with_keys_go_on_beside_a_node_that_is_silent(self):
        with Cluster() as cluster, cluster.server() as server:
            process = cluster.nodes[0].process
            self.measure("SIGSTOP of one of three", cluster, server, lambda: process.send_signal(signal.SIGSTOP),
                         lambda: process.send_signal(signal.SIGCONT))


if __name__ == "__main__":
    main()
