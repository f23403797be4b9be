"""What the tests of the jobs' commands share: running the program, counting, servers."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

# pylint: disable=wrong-import-position
from weekwheeld import PATIENCE, WEEKWHEEL, WEEKWHEELD, Process

passed = failed = 0


class Failure(Exception):
    pass


class Result:
    """What a run of the program said, and its exit status."""

    def __init__(self, arguments, status, out, err):
        self.what = "weekwheel " + " ".join(arguments)
        self.status, self.raw, self.err = status, out, err
        self.out = out.decode(errors="replace")

    def __str__(self):
        return f"{self.what}: exit status {self.status}\n      out: {self.out}\n      err: {self.err}"


def check(good, what):
    """Count a check; the first that fails ends its test."""
    global passed
    if not good:
        raise Failure(str(what))
    passed += 1


def equal(got, expected, what=""):
    check(got == expected, f"{what}: {got!r}, not {expected!r}")


def matches(pattern, text, what=""):
    check(re.search(pattern, text, re.M), f"{what}: nothing like {pattern!r} in {text!r}")


def environment(address, **more):
    env = dict(os.environ, WEEKWHEEL_SERVER=address, TZ="UTC", TERM="xterm")
    env.update(more)
    return {name: value for name, value in env.items() if value is not None}


class Client:
    """Runs the program against a server."""

    def __init__(self, address):
        self.address = address

    def run(self, status, *arguments, stdin=b"", **env):
        """Run it, and expect that exit status."""
        ended = subprocess.run([WEEKWHEEL, *arguments], input=stdin, capture_output=True, timeout=PATIENCE,
                               env=environment(self.address, **env), check=False)
        result = Result(arguments, ended.returncode, ended.stdout, ended.stderr.decode(errors="replace"))
        check(result.status == status, f"expected exit status {status} of {result}")
        return result

    def start(self, *arguments, **more):
        return subprocess.Popen([WEEKWHEEL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, env=environment(self.address), text=True, **more)


class Server:
    """weekwheeld in memory, with a virtual clock unless told otherwise."""

    def __init__(self, *options):
        self.server = Process("--memory", *(options or ("--clock", "virtual")))
        self.process = self.server.process
        self.client = Client(self.server.address)

    def __enter__(self):
        return self.client

    def __exit__(self, *_):
        self.server.end(signal.SIGTERM)


def main(tests):
    """Run the tests, or those that are named on the command line, each in a folder of its own."""
    global failed
    if not os.access(WEEKWHEEL, os.X_OK):
        sys.exit(f"there is no program {WEEKWHEEL}; 'make' builds it")
    for test in tests:
        if len(sys.argv) > 1 and test.__name__ not in sys.argv[1:]:
            continue
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        try:
            test()
        except Failure as failure:
            failed += 1
            where = traceback.extract_tb(failure.__traceback__)
            line = next(frame.lineno for frame in reversed(where) if frame.filename != __file__)
            print(f"FAIL: {test.__name__}, line {line}: {failure}")
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"FAIL: {test.__name__}:")
            traceback.print_exc(file=sys.stdout)
        finally:
            os.chdir("/")
            shutil.rmtree(folder)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)
