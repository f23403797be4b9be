"""What tests of weekwheel-sessiond share: the server, Redis beside it, and clients that see each byte."""
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from harness import BUILD, PATIENCE, environment, free_port, get_from, need_program, until

SESSIOND = os.path.abspath(os.environ.get("SESSIOND") or os.path.join(BUILD, "bin", "weekwheel-sessiond"))


# ThreadSanitizer looks for deadlocks among 64 locks that a thread holds, and ends the program when there are more: all
# stripes, for FLUSHALL. They are taken in ascending order.
os.environ["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + ":detect_deadlocks=0"


class Sessiond:
    """weekwheel-sessiond on a free port, or on `port`. `said` is what it said until it listened, and all of it after its end."""

    def __init__(self, *arguments, port=0, preexec=None, **env):
        if not os.access(SESSIOND, os.X_OK):
            raise unittest.SkipTest("this build has no weekwheel-sessiond: configure says what it lacks")
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen([SESSIOND, "--listen", f"127.0.0.1:{port}", *arguments], env=environment(**env),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, preexec_fn=preexec)
        self.said = ""
        while not (found := re.search(r"listening on 127\.0\.0\.1:(\d+)", self.said)):
            line = self.process.stderr.readline()
            self.said += line
            assert line, "the server did not start: " + self.said
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        if self.process.poll() is None:
            status = self.stop()
            assert fault or status == 0, self.said

    def client(self):
        return Client(self.port)

    def get(self, path):
        """The status and the text of an answer by HTTP."""
        return get_from(self, path)

    def stop(self, number=signal.SIGTERM):
        """Send a signal, read what the server still says, and return its status. One that does not end is killed."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        self.said += self.process.stderr.read()
        self.process.stderr.close()
        status = self.process.wait()
        late.cancel()
        return status


class RedisServer:
    """redis-server on a free port, with nothing on disk."""

    def __init__(self, *arguments):
        need_program("redis-server")
        # pylint: disable=consider-using-with
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder.name,
             "--logfile", os.path.join(self.folder.name, "log"), *arguments], stdout=subprocess.DEVNULL)

        def answers():
            try:
                with Client(self.port) as client:
                    return client.ask("PING").startswith((b"+PONG", b"-NOAUTH"))
            except OSError:
                return False

        try:
            until(answers, "Redis answers")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def client(self):
        return Client(self.port)


def encoded(*words):
    """A command as clients send it."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Client:
    """A connection whose answers are bytes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection after " + repr(self.unread))
        self.unread += data

    def take(self, size):
        while len(self.unread) < size:
            self.more()
        data, self.unread = self.unread[:size], self.unread[size:]
        return data

    def line(self):
        while b"\r\n" not in self.unread:
            self.more()
        return self.take(self.unread.index(b"\r\n") + 2)

    def answer(self):
        """The bytes of one answer."""
        line = self.line()
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=" and rest != b"-1":
            return line + self.take(int(rest) + 2)
        if kind in b"*~>%" and rest != b"-1":
            return line + b"".join(self.answer() for _ in range(int(rest) * (2 if kind == b"%" else 1)))
        return line

    def ask(self, *words):
        self.send(encoded(*words))
        return self.answer()

    def rest(self):
        """What still comes until the server closes the connection."""
        data = self.unread
        while more := self.socket.recv(65536):
            data += more
        return data
