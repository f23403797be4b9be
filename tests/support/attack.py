"""Clients that take what they can of a server, and one beside them that asks for little.

An Attack is a number of clients that send the same bytes as fast as the server takes them, and read nothing. Beside it a
Probe asks for something small every few milliseconds. One thread does both, so it sees the probe's answer at once. What it
measures is the server's memory at most, and the processor time that the server takes between a question and its answer:
neither is more on a machine that does other work, too.
"""
import contextlib
import glob
import os
import re
import selectors
import socket
import time

from harness import PATIENCE, check, stopped, until

PAUSE = 0.002       # between an answer to the probe and its next question, in seconds
REST = 0.25         # a server that does little for so long has come to rest


class Process:
    """What a server's process takes of the machine."""

    def __init__(self, server):
        self.pid = server.process.pid

    def memory(self, of):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return int(re.search(of + r":\s+(\d+)", file.read()).group(1)) << 10

    def forget_peak(self):
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def works(self):
        """Whether one of its threads runs, or would if it had a processor."""
        for name in glob.glob(f"/proc/{self.pid}/task/*/stat"):
            with contextlib.suppress(OSError), open(name, encoding="ascii") as file:
                if file.read().rpartition(") ")[2][0] == "R":
                    return True
        return False

    def processor(self):
        """Seconds of all its threads, by the clock that clock_getcpuclockid names."""
        return time.clock_gettime((~self.pid << 3) | 2)


class Probe:
    """Asks the same question again and again. `longest` is the most processor time that passed until an answer."""

    def __init__(self, server, question, first=b""):
        self.process, self.question = Process(server), question
        self.socket = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        if first:
            self.socket.sendall(first)
            self.socket.recv(4096)
        self.socket.setblocking(False)
        self.got, self.asked, self.idle_since = b"", None, 0
        self.longest, self.answered = 0, 0

    def ask(self):
        self.asked, self.got = self.process.processor(), b""
        self.socket.send(self.question)

    def look(self):
        if self.asked is None:
            if time.monotonic() >= self.idle_since + PAUSE:
                self.ask()
            return
        with contextlib.suppress(BlockingIOError):
            got = self.socket.recv(65536)
            check(got, "the probe was closed")
            self.got += got
        if self.got.endswith(b"\r\n"):
            self.note()
            self.asked, self.idle_since = None, time.monotonic()
            self.answered += 1

    def note(self):
        """How long it waits, or has waited."""
        self.longest = max(self.longest, self.process.processor() - self.asked)


class Attack:
    """So many clients. Each has sent `first`; `run` lets it send `rest`, the beginning of which all send at once."""

    def __init__(self, server, port, count, rest, first=b""):
        self.server, self.process, self.rest = server, Process(server), memoryview(rest)
        self.sockets = []
        for _ in range(count):
            one = socket.socket()
            self.sockets.append(one)
            # What the system keeps unread is not the server's.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(PATIENCE)
            one.connect(("127.0.0.1", port))
            one.sendall(first)
            one.setblocking(False)
        self.sent = dict.fromkeys(self.sockets, 0)
        self.closed, self.before, self.cost, self.probe = 0, 0, 0, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.sockets:
            one.close()
        if self.probe:
            self.probe.socket.close()

    def send_some(self, one):
        """Returns whether it has more to send."""
        with contextlib.suppress(BlockingIOError):
            try:
                self.sent[one] += one.send(self.rest[self.sent[one]:self.sent[one] + (1 << 18)])
            except ConnectionError:
                self.closed += 1
                return False
        return self.sent[one] < len(self.rest)

    def rests(self, used, since):
        """Whether the server has done little, and nobody waits for it."""
        return (self.process.processor() - used < (time.monotonic() - since) / 10 and self.probe.asked is None and
                not self.process.works())

    def go_on(self, left, seconds):
        since, used = time.monotonic(), self.process.processor()
        end, last = used + seconds, since + PATIENCE
        with selectors.DefaultSelector() as selector:
            for one in left:
                selector.register(one, selectors.EVENT_WRITE)
            while self.process.processor() < end and time.monotonic() < last:
                for key, _ in selector.select(PAUSE / 2):
                    if not self.send_some(key.fileobj):
                        selector.unregister(key.fileobj)
                    self.probe.look()
                self.probe.look()
                if time.monotonic() - since >= REST:
                    if self.rests(used, since):
                        return
                    since, used = time.monotonic(), self.process.processor()

    def run(self, probe, seconds):
        """Until the server has come to rest, or has had so many seconds of a processor."""
        self.probe = probe
        until(lambda: (probe.look(), probe.answered >= 3 and probe.asked is None)[1], "the probe is answered", 0)
        probe.longest = 0
        self.process.forget_peak()
        self.before, begun = self.process.memory("VmRSS"), self.process.processor()
        with stopped(self.server):
            left = [one for one in self.sockets if self.send_some(one)]
            probe.ask()
        self.go_on(left, seconds)
        if probe.asked is not None:
            probe.note()
        self.cost = self.process.processor() - begun

    def held(self, bound, least, part):
        """The server has kept its bound of memory, and the probe has waited for a part of the attack's cost alone, or little."""
        taken = self.process.memory("VmHWM") - self.before
        text = (f"{len(self.sockets)} clients, {self.closed} closed: at most {taken} of {bound} bytes, the longest of "
                f"{self.probe.answered} answers {self.probe.longest:.3f} s of {self.cost:.3f}")
        print(text, flush=True)
        # A sanitizer keeps what is freed.
        check(taken <= bound * 1.3 or os.environ.get("SANITIZE"), text)
        check(self.probe.longest <= max(self.cost / part, least), text)
