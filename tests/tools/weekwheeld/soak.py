#!/usr/bin/env python3
"""Everything at once on one machine: three servers share a Redis cluster, a fourth has a store on disk and pushes to hosts
that hang. Servers are killed and stopped, nodes of Redis are stopped, slots move to and fro. Clients put jobs and work on
them all the time, and tests/support/history.py judges what they did and heard.

At the end, of each store: jobs acknowledged, delivered, lost, early and delivered twice, and the longest time in which no
command was answered. WW_HOURS is how long it takes (1).
"""
import contextlib
import itertools
import os
import random
import signal
import socket
import subprocess
import threading
import time

from history import History
from harness import Case, Cluster, Server, equal, main, seed, until

SECONDS = float(os.environ.get("WW_HOURS") or 1) * 3600
SECOND = 10**9
RUN = 5             # s of a lease
LONGEST = 20        # s of a delay
PRODUCERS, WORKERS = 2, 3
PATIENCE = 120      # s until all that is left is delivered
BROKEN = (OSError, EOFError)


class Store:
    """Clients of one store, by way of any of its servers, and the history of what they did."""

    def __init__(self, name, servers):
        self.name, self.servers = name, servers
        self.history, self.lock, self.calls = History(), threading.Lock(), itertools.count(1)
        self.deliveries, self.errors = 0, 0
        # Names of jobs; `unsure`: the answer to their end was lost, and they have not come again.
        self.acknowledged, self.delivered, self.ended, self.unsure = set(), set(), set(), set()
        self.last, self.standstill = time.monotonic_ns(), 0
        self.is_ending = self.has_ended = False
        self.threads = [threading.Thread(target=self.client, args=(act, number), daemon=True)
                        for act, count in ((self.put, PRODUCERS), (self.work, WORKERS)) for number in range(count)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def note(self, event, **more):
        self.history.feed({"event": event, "t": time.monotonic_ns(), **more})

    def heard(self):
        """A command was answered well."""
        now = time.monotonic_ns()
        self.standstill = max(self.standstill, now - self.last)
        self.last = now

    def client(self, act, number):
        chance = random.Random(f"{self.name} {act.__name__} {number}")
        names = (f"{number}-{i}" for i in itertools.count())
        while not self.has_ended:
            with contextlib.suppress(*BROKEN), chance.choice(self.servers).client() as client:
                client.socket.settimeout(10)
                while not self.has_ended and not (self.is_ending and act == self.put):
                    act(client, chance, names)
            time.sleep(0.05)

    def ask(self, client, line, good, **call):
        """Send a command on a job. The answer, unless the connection breaks."""
        with self.lock:
            number = next(self.calls)
            self.note("call", call=number, **call)
        sent = time.monotonic_ns()
        answer = client.ask(line)
        with self.lock:
            if answer.startswith("INTERNAL_ERROR"):
                self.errors += 1
                return answer, sent, False
            is_done = answer.startswith(good)
            if is_done:
                self.heard()
            delay = call.get("due", [sent])[0] - sent
            self.note("answer", call=number, ok=is_done, due=[sent + delay, time.monotonic_ns() + delay])
        return answer, sent, is_done

    def put(self, client, chance, names):
        name, delay = next(names), chance.choice((0, 0, 1, chance.randrange(LONGEST)))
        due = time.monotonic_ns() + delay * SECOND
        line = b"put 0 %d %d %d\r\n%s\r\n" % (delay, RUN, len(name), name.encode())
        answer, _, is_done = self.ask(client, line, "INSERTED", job=name, to="waiting", due=[due, float("inf")])
        with self.lock:
            if is_done:
                self.acknowledged.add(name)
        time.sleep(0.01 if answer.startswith("INSERTED") else 0.1)

    def work(self, client, _chance, _names):
        with self.lock:
            number = next(self.calls)
            self.note("ask", call=number)
        answer = client.ask("reserve-with-timeout 1")
        if not answer.startswith("RESERVED"):
            with self.lock:
                self.note("answer", call=number, ok=False)
                self.errors += answer.startswith("INTERNAL_ERROR")
                if answer == "TIMED_OUT":
                    self.heard()
            time.sleep(0 if answer == "TIMED_OUT" else 0.1)
            return
        job, name = int(answer.split()[1]), answer.split("|")[1]
        with self.lock:
            self.deliveries += 1
            self.delivered.add(name)
            self.unsure.add(name)
            self.heard()
            self.note("deliver", call=number, job=name, id=job)
        answer, _, is_done = self.ask(client, f"delete {job}", "DELETED", job=name, to="gone")
        with self.lock:
            if is_done:
                self.ended.add(name)
            elif answer == "NOT_FOUND":
                self.unsure.discard(name)

    def is_done(self):
        """Refused ends come again when their lease has run out; of unanswered ones nobody knows."""
        with self.lock:
            return self.acknowledged <= self.ended | self.unsure

    def end(self):
        """Wait until all that was acknowledged is done, and tell the figures."""
        self.is_ending = True
        deadline = time.monotonic() + PATIENCE
        while not self.is_done() and time.monotonic() < deadline:
            time.sleep(0.1)
        # Those whose end was not answered come again, if they do.
        time.sleep(2 * RUN)
        self.has_ended = True
        for thread in self.threads:
            thread.join(30)
        self.note("end", all=True)
        wrong = self.history.wrong
        early = sum(text.endswith("early") for text in wrong)
        lost = sum("never delivered" in text for text in wrong)
        again = self.deliveries - len(self.delivered)
        print(f"{self.name}: {len(self.acknowledged)} acknowledged, {len(self.delivered)} delivered, {lost} lost, "
              f"{early} early, {again} delivered again, longest standstill {self.standstill / 1e9:.1f} s; "
              f"{self.errors} errors, {len(wrong)} times wrong", *wrong[:5], sep="\n  ", flush=True)
        return wrong


class Chaos:
    def __init__(self, chance, cluster, shared, local, restart):
        self.chance, self.cluster, self.shared, self.local, self.restart = chance, cluster, shared, local, restart
        self.counts, self.source = {}, 0

    def kill_server(self):
        servers = self.chance.choice((self.shared, self.shared, self.local))
        number = self.chance.randrange(len(servers))
        servers[number].stop(signal.SIGKILL)
        servers[number] = self.restart(servers)

    def stop_process(self, process, longest):
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(self.chance.random() * longest)
        finally:
            process.send_signal(signal.SIGCONT)

    def stop_server(self):
        self.stop_process(self.chance.choice(self.shared + self.local).process, 3)

    def stop_node(self):
        self.stop_process(self.chance.choice(self.cluster.nodes).process, 1.5)

    def cut_connections(self):
        with contextlib.suppress(OSError):
            self.chance.choice(self.cluster.nodes).ask("CLIENT", "KILL", "TYPE", "normal")

    def move_slots(self):
        nodes, self.source = self.cluster.nodes, 1 - self.source
        ids = [node.ask("CLUSTER", "MYID") for node in nodes[:2]]
        subprocess.run(["redis-cli", "--cluster", "reshard", f"127.0.0.1:{nodes[0].port}", "--cluster-from",
                        ids[self.source], "--cluster-to", ids[1 - self.source], "--cluster-slots", "200",
                        "--cluster-yes"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       stdin=subprocess.DEVNULL, timeout=120)

    def go(self):
        happenings = [self.kill_server] * 3 + [self.stop_server] * 2 + [self.stop_node] * 2 + \
            [self.cut_connections] + [self.move_slots]
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            happening = self.chance.choice(happenings)
            happening()
            self.counts[happening.__name__] = self.counts.get(happening.__name__, 0) + 1
            time.sleep(self.chance.random() * 3)


def hang(count):
    """Hosts that take connections and never answer."""
    hosts = [socket.create_server(("127.0.0.2", 0)) for _ in range(count)]
    return hosts, [f"http://127.0.0.2:{host.getsockname()[1]}/" for host in hosts]


class Soak(Case):
    def test_everything_at_once(self):
        chance = random.Random(seed())
        hosts, urls = hang(16)
        with Cluster("--appendfsync", "everysec") as cluster, contextlib.ExitStack() as ends:
            def restart(servers):
                if servers is shared:
                    return cluster.server("--redis-lease", "2")
                return Server("--data", "data", "--push", "push", "--push-networks", "loopback")

            shared, local = [], []
            shared += (restart(shared) for _ in range(3))
            local.append(restart(local))
            ends.callback(lambda: [server.stop() for server in shared + local])
            stores = [Store("Redis cluster", shared), Store("disk", local)]
            with local[0].client() as client:
                client.ask("use push")
                for number in range(1000):
                    client.put(b"POST %s\n\n" % urls[number % len(urls)].encode())
            for store in stores:
                store.start()
            chaos = Chaos(chance, cluster, shared, local, restart)
            chaos.go()
            print(f"{SECONDS / 60:.1f} minutes:", ", ".join(f"{name} {count}" for name, count in chaos.counts.items()),
                  flush=True)
            until(lambda: all("cluster_state:ok" in node.ask("CLUSTER", "INFO") for node in cluster.nodes), "a whole cluster")
            wrong = [text for store in stores for text in store.end()]
        for host in hosts:
            host.close()
        equal(wrong, [])


main()
