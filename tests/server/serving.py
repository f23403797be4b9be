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

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("WEEKWHEELD") or os.path.join(
    os.path.join(ROOT, os.environ.get("B", "build")), "bin", "weekwheeld")
WEEK = 604800
PATIENCE = 60


class Server:
    """A server on a free port; arguments beside those are the caller's."""

    def __init__(self, *arguments, memory=True, before=None):
        self.process = subprocess.Popen(
            [PROGRAM, "--listen", "127.0.0.1:0", *(["--memory"] if memory else []), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=before)
        self.said = ""
        while True:
            line = self.process.stderr.readline()
            self.said += line
            found = re.search(r"^weekwheeld: listening on 127\.0\.0\.1:(\d+)$", line, re.M)
            if found or not line:
                break
        if not found:
            raise AssertionError("it did not start: " + self.said)
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def client(self):
        return Client(socket.create_connection(("127.0.0.1", self.port), PATIENCE))

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.said += self.process.stderr.read()
        self.process.stderr.close()
        return self.process.wait(PATIENCE)


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

    def answer(self):
        line = self.line()
        if re.match(r"(OK|RESERVED|FOUND) ", line):
            return line + "|" + self.block(int(line.split()[-1])).decode()
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
        answer = self.ask(line)
        assert answer.startswith("OK "), answer
        return [json.loads(entry) for entry in answer.split("|", 1)[1].splitlines()]

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


def run(tests):
    """Run what is named test_*, or those that the command line names; return the exit status."""
    if not os.access(PROGRAM, os.X_OK):
        print("skipped: there is no %s; it needs LMDB and libuv" % PROGRAM)
        return 77
    passed = failed = 0
    wanted = sys.argv[1:]
    for name, test in list(tests.items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        folder = tempfile.mkdtemp()
        try:
            test(folder) if test.__code__.co_argcount else test()
            passed += 1
        except Exception as error:  # whatever it is, the other tests are run
            failed += 1
            lines = []
            trace = error.__traceback__
            while trace:
                lines.append(str(trace.tb_lineno))
                trace = trace.tb_next
            print("FAIL: %s: %s: %s (lines %s)" % (name, type(error).__name__, error, " ".join(lines)))
        finally:
            shutil.rmtree(folder)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0
