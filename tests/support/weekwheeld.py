"""What all tests that start the programs share: where these are, and a server on a free port.

B names the build folder, WEEKWHEEL and WEEKWHEELD other programs than those in it.
"""
import os
import re
import signal
import subprocess
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
WEEKWHEEL = os.path.abspath(os.environ.get("WEEKWHEEL") or os.path.join(BUILD, "bin", "weekwheel"))
WEEKWHEELD = os.path.abspath(os.environ.get("WEEKWHEELD") or os.path.join(BUILD, "bin", "weekwheeld"))
# Nothing takes near as long; what hangs is ended.
PATIENCE = 60


class Process:
    """A server that listens, at `address` and by its `port`; what it said until then is `said`."""

    def __init__(self, *arguments, **more):
        self.process = subprocess.Popen([WEEKWHEELD, "--listen", "127.0.0.1:0", *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)
        # It says each address that it listens on.
        lines = [self.process.stderr.readline() for _ in range(1 + arguments.count("--unix"))]
        while lines[-1] and "listening on 127.0.0.1:" not in "".join(lines):
            lines.append(self.process.stderr.readline())
        self.said = "".join(lines)
        found = re.search(r"^weekwheeld: listening on (127\.0\.0\.1:(\d+))$", self.said, re.M)
        if not found:
            self.end(signal.SIGKILL)
            raise AssertionError("it did not start: " + self.said)
        self.address, self.port = found.group(1), int(found.group(2))

    def end(self, number):
        """Send a signal, take what is still said, and return the exit status; one that does not end is killed."""
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        self.process.send_signal(number)
        self.said += self.process.stderr.read()
        self.process.stderr.close()
        status = self.process.wait()
        late.cancel()
        return status
