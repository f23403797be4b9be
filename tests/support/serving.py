"""What the tests of weekwheeld share: a server, a client, and the running of tests.

B names the build folder, WEEKWHEELD another program than the one in it.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

# pylint: disable=wrong-import-position
from weekwheeld import BUILD, PATIENCE, ROOT, WEEKWHEEL, WEEKWHEELD as PROGRAM, Process

WEEK = 604800


class Skip(Exception):
    """Why a test cannot be run here."""


class Server(Process):
    """A server in memory unless told otherwise; arguments are the caller's."""

    def __init__(self, *arguments, memory=True, before=None, environment=None):
        super().__init__(*(["--memory"] if memory else []), *arguments, preexec_fn=before,
                         env=dict(os.environ, **(environment or {})))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def client(self):
        return Client(socket.create_connection(("127.0.0.1", self.port), PATIENCE))

    def stop(self, number=signal.SIGTERM):
        return self.end(number)


class Client:
    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(PATIENCE)
        self.kept = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def more(self):
        got = self.socket.recv(65536)
        if not got:
            raise EOFError
        self.kept += got

    def line(self):
        while b"\r\n" not in self.kept:
            self.more()
        line, self.kept = self.kept.split(b"\r\n", 1)
        return line.decode()

    def block(self, size):
        while len(self.kept) < size + 2:
            self.more()
        block, end, self.kept = self.kept[:size], self.kept[size:size + 2], self.kept[size + 2:]
        assert end == b"\r\n", end
        return block

    def ask(self, line):
        """The answer to a command, and the block after it as a second part, if there is one."""
        self.send(line + "\r\n" if isinstance(line, str) else line)
        return self.answer()

    def answer(self, errors="backslashreplace"):
        line = self.line()
        if re.match(r"(OK|RESERVED|FOUND) ", line):
            return line + "|" + self.block(int(line.split()[-1])).decode(errors=errors)
        return line

    def put(self, body=b"x", priority=0, delay=0, ttr=60, tube=None):
        if tube:
            assert self.ask("use " + tube) == "USING " + tube
        self.send(b"put %d %d %d %d\r\n%s\r\n" % (priority, delay, ttr, len(body), body))
        return self.line()

    def numbers(self, line):
        """A block of YAML, as a dictionary."""
        answer = self.ask(line)
        assert answer.startswith("OK "), answer
        return dict(entry.split(": ", 1) for entry in answer.split("---\n", 1)[1].splitlines())

    def jobs(self, line):
        self.send(line + "\r\n")
        answer = self.answer("strict")  # JSON is UTF-8
        assert answer.startswith("OK "), answer
        return [json.loads(entry) for entry in answer.split("|", 1)[1].splitlines()]

    def all_jobs(self):
        """Every job in the store, as list-delayed tells of them."""
        jobs, after = [], 0
        while after is not None:
            page = self.jobs("list-delayed limit=1000 body=yes after=%d" % after)
            after = page.pop()["next"] if page and "next" in page[-1] else None
            jobs += page
        return jobs

    def is_closed(self):
        try:
            self.more()
        except (EOFError, ConnectionError):
            return True
        return False


def equal(got, expected):
    assert got == expected, "%r instead of %r" % (got, expected)


def conversation(client, *pairs):
    for line, expected in pairs:
        got = client.ask(line)
        assert got == expected, "%r: %r instead of %r" % (line, got, expected)


def compiled(folder, source, *more):
    """Compile a source of this folder with $CC, as the build was; return where the result is."""
    result = os.path.join(folder, os.path.splitext(source)[0])
    options = (os.environ.get("CC") or "cc").split() + os.environ.get("SANITIZE", "").split()
    subprocess.run([*options, "-I", os.path.join(ROOT, "include"), os.path.join(ROOT, "tests", "tools", "weekwheeld", source),
                    "-o", result, *more], check=True)
    return result


class Fsck:
    """Checks a store that no server has, or one that it leaves alone meanwhile."""

    def __init__(self, folder):
        libraries = os.path.join(os.path.abspath(BUILD), "lib")
        self.program = compiled(folder, "fsck.c", "-L", libraries, "-lweekwheel_jobs", "-lweekwheel",
                                "-Wl,-rpath," + libraries)

    def check(self, data):
        done = subprocess.run([self.program, data], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, "the store is damaged: %s%s" % (done.stdout, done.stderr)


def seed_of_run(name):
    """The seed of WW_SEED, or a new one; it is printed."""
    text = os.environ.get("WW_SEED")
    seed = int(text, 0) if text else time.time_ns() & 0xffffffff
    print("%s: seed %d" % (name, seed), flush=True)
    return seed


def run(tests):
    """Run what is named test_*, or those that the command line names; return the exit status."""
    if not os.access(PROGRAM, os.X_OK):
        print("skipped: there is no %s; it needs LMDB and libuv" % PROGRAM)
        return 77
    passed = failed = skipped = 0
    wanted = sys.argv[1:]
    for name, test in list(tests.items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        folder = tempfile.mkdtemp()
        try:
            test(folder) if test.__code__.co_argcount else test()
            passed += 1
        except Skip as reason:
            skipped += 1
            print("skipped: %s: %s" % (name, reason))
        except Exception as error:  # whatever it is, the other tests are run
            failed += 1
            lines = []
            trace = error.__traceback__
            while trace:
                lines.append(str(trace.tb_lineno))
                trace = trace.tb_next
            print("FAIL: %s: %s: %s (lines %s)" % (name, type(error).__name__, error, " ".join(lines)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 77 if skipped and not passed else 0
