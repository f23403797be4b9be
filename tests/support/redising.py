"""A Redis for a test, and servers that share it."""
import os
import shutil
import socket
import subprocess
import time

from serving import PATIENCE, Server, Skip


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, what):
    """Wait for something that comes, and that nobody tells of."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.01)
    raise AssertionError("it did not come to be: " + what)


class Redis:
    """A server with its data in a folder, so that it has them again after it was killed."""

    def __init__(self, folder, *arguments):
        program = shutil.which("redis-server")
        if not program:
            raise Skip("there is no redis-server")
        self.port = free_port()
        self.folder = os.path.join(folder, "redis")
        os.makedirs(self.folder, exist_ok=True)
        self.command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
                        "--appendonly", "yes", "--appendfsync", "no", "--daemonize", "no",
                        "--logfile", os.path.join(self.folder, "log"), *arguments]
        self.url = "redis://127.0.0.1:%d/" % self.port
        self.process = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            until(lambda: self.ask("PING").startswith(("+PONG", "-NOAUTH")), "that Redis answers")
        except AssertionError:
            self.kill()
            raise

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def ask(self, line):
        """The first line that it answers; "" if it does not."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(line.encode() + b"\r\n")
                return connection.recv(65536).decode(errors="replace")
        except OSError:
            return ""

    def answers(self, line, wanted):
        return wanted in self.ask(line)

    def server(self, *arguments, **more):
        try:
            return Server("--store", self.url, *arguments, memory=False, **more)
        except AssertionError as error:
            if "this build has no Redis" in str(error):
                raise Skip("this build has no Redis") from None
            raise


class Cluster:
    """Three masters that have a third of the slots each."""

    def __init__(self, folder):
        self.nodes = []
        try:
            self.make(folder)
        except AssertionError:
            self.__exit__()
            raise
        self.url = "redis://" + ",".join("127.0.0.1:%d" % node.port for node in self.nodes)

    def make(self, folder):
        for number in range(3):
            self.nodes.append(Redis(os.path.join(folder, str(number)), "--cluster-enabled", "yes", "--cluster-node-timeout",
                                    "2000", "--cluster-port", str(free_port())))
        for number, node in enumerate(self.nodes):
            node.ask("CLUSTER ADDSLOTSRANGE %d %d" % (number * 16384 // 3, (number + 1) * 16384 // 3 - 1))
            node.ask("CLUSTER MEET 127.0.0.1 %d %s" % (self.nodes[0].port, self.nodes[0].command[-1]))
        for node in self.nodes:
            until(lambda node=node: node.answers("CLUSTER INFO", "cluster_state:ok") and
                  node.answers("CLUSTER INFO", "cluster_known_nodes:3"), "that the cluster is one")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()

    server = Redis.server
