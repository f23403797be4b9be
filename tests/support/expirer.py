"""What tests of weekwheel-expirer share: the program, a Redis that expires nothing by itself, and what that publishes."""
import json
import os
import re
import signal
import subprocess
import threading
import unittest

from harness import BUILD, PATIENCE, Redis, environment, equal, get_from, matches, until
from sessiond import Client

EXPIRER = os.path.abspath(os.environ.get("EXPIRER") or os.path.join(BUILD, "bin", "weekwheel-expirer"))


class Expirer:
    """weekwheel-expirer beside a Redis. `said` is what it has said so far."""

    def __init__(self, url, *arguments, **env):
        if not os.access(EXPIRER, os.X_OK):
            raise unittest.SkipTest("this build has no weekwheel-expirer: configure says what it lacks")
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen([EXPIRER, "--http", "127.0.0.1:0", *arguments, url], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env=environment(**env))
        self.said, self.is_killed = "", False
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.said += line

    def __enter__(self):
        self.hear("serving http://")
        return self

    def __exit__(self, fault, *_):
        status = self.stop()
        assert fault or self.is_killed or status == 0, self.said

    def hear(self, pattern, times=1):
        """Wait until it has said so, so many times."""
        until(lambda: len(re.findall(pattern, self.said)) >= times or self.process.poll() is not None, pattern)
        assert len(re.findall(pattern, self.said)) >= times, "it said: " + self.said

    def exact(self, times=1):
        self.hear("Exact from now on", times)
        return self

    def get(self, path):
        return get_from(self, path)

    def metric(self, name):
        """Its value, or the sum of all nodes."""
        found = re.findall(rf"^weekwheel_expirer_{name}(?:{{node=\"[^\"]*\"}})? (\S+)$", self.get("/metrics")[1], re.M)
        assert found, name
        return sum(map(float, found))

    def kill(self):
        self.is_killed = True
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        status = self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        late.cancel()
        return status


def told(jobs, count):
    """So many jobs of ends out of the tube "ended", and no more: what they say, by key."""
    jobs.ask("watch ended")
    bodies = []
    while len(bodies) < count:
        answer = jobs.ask("reserve-with-timeout %d" % PATIENCE)
        matches("^RESERVED ", answer)
        bodies.append(json.loads(answer.split("|", 1)[1]))
        equal(jobs.ask("delete " + answer.split()[1]), "DELETED")
    equal(jobs.ask("reserve-with-timeout 0"), "TIMED_OUT")
    return {body.get("key", body.get("key_base64")): body for body in bodies}


class Lazy(Redis):
    """A Redis that expires a key only when somebody looks at it, and publishes that."""

    def __init__(self, *arguments):
        super().__init__("--enable-debug-command", "yes", "--notify-keyspace-events", "Ex", *arguments)
        self.be_lazy()

    def be_lazy(self):
        assert self.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0") == "+OK"


class Ends:
    """The keys that a Redis publishes as expired, from now on."""

    def __init__(self, redis, database=0):
        self.client = Client(redis.port)
        self.heard = []
        self.client.send(b"SUBSCRIBE __keyevent@%d__:expired\r\n" % database)
        self.client.take(len(b"*3\r\n$9\r\nsubscribe\r\n$22\r\n__keyevent@0__:expired\r\n:1\r\n"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.socket.close()

    def wait(self, *keys):
        """Wait until these have ended. Return all that have."""
        while not set(keys) <= set(self.heard):
            for _ in range(6):
                self.client.line()
            self.heard.append(self.client.line()[:-2].decode())
        return self.heard
