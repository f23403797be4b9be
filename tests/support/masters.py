"""What tests of clusters and Sentinels with weekwheel-expirer share: servers that expire nothing by themselves, and ends."""
import binascii
import os
import select
import struct
import subprocess
import threading
import time

from expirer import Ends
from harness import PATIENCE, Cluster, Redis, compiled, until
from sessiond import Client, encoded

LAZY = ("--enable-debug-command", "yes", "--notify-keyspace-events", "Ex", "--repl-diskless-sync-delay", "0")


def be_lazy(redis):
    assert redis.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0") == "+OK"


def start_lazy(redis):
    redis.start()
    be_lazy(redis)


def slot_of(key):
    tag = key[key.index("{") + 1:key.index("}")] if "{" in key else key
    return binascii.crc_hqx(tag.encode(), 0) % 16384


class LazyCluster(Cluster):
    """A cluster of which no node expires keys by itself. With `clocks`, step sets the clock of a node."""

    def __init__(self, *arguments, clocks=False, **counts):
        self.library = compiled("support/redis/shifted_clock.c", "-shared", "-fPIC") if clocks else None
        super().__init__(*LAZY, *arguments, **counts)
        for node in self.nodes:
            be_lazy(node)

    def variables(self, number):
        if not self.library:
            return {}
        self.step(number, 0)
        return {"LD_PRELOAD": self.library, "SHIFT": os.path.abspath(f"shift-{number}")}

    @staticmethod
    def step(number, microseconds):
        with open(f"shift-{number}", "r+b" if os.path.exists(f"shift-{number}") else "wb") as file:
            file.write(struct.pack("=q", microseconds))

    def ask(self, key, *commands):
        """The answers to commands with this key, from the node that has its slot. Any node knows which one that is."""
        port, late, asking = self.nodes[slot_of(key) * 3 // 16384].port, time.monotonic() + PATIENCE, False
        while True:
            try:
                with Client(port) as client:
                    client.socket.settimeout(1)
                    client.send((encoded("ASKING") if asking else b"") + b"".join(encoded(*command) for command in commands))
                    if asking:
                        client.line()
                    answers = [client.answer().decode().strip() for _ in commands]
            except OSError:
                answers = ["-GONE"]
            wrong = next((answer for answer in answers if answer.startswith("-")), "")
            if not wrong:
                return answers
            assert time.monotonic() < late, wrong
            asking = wrong.startswith("-ASK ")
            if wrong.startswith(("-MOVED ", "-ASK ")):
                port = int(wrong.rsplit(":", 1)[1])
            else:
                time.sleep(0.02)
                port = self.nodes[int(time.monotonic() * 50) % len(self.nodes)].port

    @staticmethod
    def take_over(replica, *how):
        """Let a replica take its master's place. One that asks too soon, or while all are busy, gets no votes."""
        def is_master():
            if replica.ask("ROLE")[0] != "master":
                replica.ask("CLUSTER", "FAILOVER", *how)
            return replica.ask("ROLE")[0] == "master"

        until(is_master, "the replica is the master", 0.5)

    def alive(self):
        return [node for node in self.nodes if node.process.poll() is None]

    def masters(self):
        return [node for node in self.alive() if node.ask("ROLE")[0] == "master"]

    def owner(self, slot):
        """The node that has it, as it says itself."""
        for node in self.masters():
            for first, last, place, *_ in node.ask("CLUSTER", "SLOTS"):
                if first <= slot <= last and place[1] == node.port:
                    return node
        return None

    def count(self):
        """How many keys the masters have, those that have expired included."""
        return sum(node.ask("DBSIZE") for node in self.masters())

    def add(self, *arguments):
        """Add a node without slots. Returns it."""
        self.nodes.append(Redis("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", *LAZY, *arguments,
                                folder=f"redis-{len(self.nodes)}"))
        be_lazy(self.nodes[-1])
        return self.nodes[-1]

    def move(self, slot, source, target, meanwhile=lambda: None):
        """Move a slot with its keys. `meanwhile` is called while it moves. A node that is no master any more ends it."""
        names = [node.ask("CLUSTER", "MYID") for node in (source, target)]
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[0])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[1])
        meanwhile()
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
            if source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys) not in ("+OK", "+NOKEY"):
                for node in (target, source):
                    node.ask("CLUSTER", "SETSLOT", slot, "STABLE")
                return
        for node in (target, source, *self.masters()):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", names[1])


class Sentinel(Redis):
    """A Sentinel that watches a master by the name "m"."""

    def __init__(self, master, folder="sentinel"):
        os.makedirs(folder, exist_ok=True)
        self.file = os.path.abspath(os.path.join(folder, "sentinel.conf"))
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(f"sentinel monitor m 127.0.0.1 {master.port} 1\n"
                       "sentinel down-after-milliseconds m 1000\nsentinel failover-timeout m 4000\n")
        super().__init__(folder=folder)
        self.url = f"redis+sentinel://127.0.0.1:{self.port}/m"

    def started(self):
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(["redis-server", self.file, "--sentinel", "--port", str(self.port), "--bind", "127.0.0.1",
                                         "--dir", self.folder, "--logfile", os.path.join(self.folder, "log")],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self.environment)
        until(lambda: self.process.poll() is not None or self.answers(), "the Sentinel answers")
        return self.process.poll() is None


class AllEnds:
    """When each key was first published as expired, by any of these nodes, in ms since 1970. Nodes may come and go."""

    def __init__(self, nodes):
        self.at, self.over = {}, threading.Event()
        self.ready = [threading.Event() for _ in nodes]
        self.threads = [threading.Thread(target=self.listen, args=pair) for pair in zip(nodes, self.ready)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        for ready in self.ready:
            assert ready.wait(PATIENCE)
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def listen(self, node, ready):
        while not self.over.is_set():
            try:
                with Ends(node) as ends:
                    ready.set()
                    while not self.over.is_set():
                        self.hear(ends.client)
            except OSError:
                self.over.wait(0.02)

    def hear(self, client):
        if client.unread or select.select([client.socket], [], [], 0.2)[0]:
            message = client.answer()
            self.at.setdefault(message.split(b"\r\n")[6].decode(), time.time() * 1000)

    def wait(self, keys):
        keys = set(keys)
        try:
            until(lambda: keys <= set(self.at), "all have ended")
        except AssertionError as error:
            raise AssertionError(f"missing: {sorted(keys - set(self.at))[:10]}") from error

    def late(self, deadlines):
        """By how many ms keys ended after their deadlines, sorted."""
        return sorted(self.at[key] - until for key, until in deadlines.items() if key in self.at)
