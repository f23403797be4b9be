"""What all tests in Python share: where the programs are, servers, clients, Redis, and the main that runs the tests.

Each test is a method of a Case. What it needs and this build or machine lacks skips it. A script takes the arguments of
unittest, such as the name of a test. Started by hand, it needs PYTHONPATH=tests/support, which scripts/run-tests sets. The
environment names what to test:

B is the build folder; WEEKWHEEL, WEEKWHEELD and BEANSTALKD are programs to take instead of those found. WW_SEED is the
seed of random tests, and each prints the seed that it takes.
"""
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("B") or "build")
WEEKWHEEL = os.path.abspath(os.environ.get("WEEKWHEEL") or os.path.join(BUILD, "bin", "weekwheel"))
WEEKWHEELD = os.path.abspath(os.environ.get("WEEKWHEELD") or os.path.join(BUILD, "bin", "weekwheeld"))
# The server whose store has small limits: much happens in it after few jobs.
SMALL = os.path.join(BUILD, "tests", "weekwheeld_small")
BEANSTALKD = os.environ.get("BEANSTALKD") or shutil.which("beanstalkd") or "/usr/bin/beanstalkd"
ACTOR = os.path.join(BUILD, "tests", "test_redis_worker")
# Nothing takes nearly as long, in seconds. What hangs is ended.
PATIENCE = 120
WEEK = 604800


# ---- Running tests ----------------------------------------------------------------------------------------------

class Case(unittest.TestCase):
    """Each test runs in a folder of its own."""
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, ROOT)
        self.folder = os.path.realpath(folder.name)
        os.chdir(self.folder)

    def enter(self, what):
        """Enter a context that the end of the test leaves."""
        entered = what.__enter__()
        self.addCleanup(what.__exit__, None, None, None)
        return entered


def main():
    """Run the tests of the calling script. Its last line is the one that scripts/run-tests counts by."""
    # An interrupt leaves the "with" blocks of a test, and so ends the processes that the test started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    ends_early = "WW_FAIL_FAST" in os.environ
    runner = unittest.TextTestRunner(sys.stdout, descriptions=False, verbosity=2, failfast=ends_early)
    ran = unittest.main(testRunner=runner, exit=False).result
    failed, skipped = len(ran.failures) + len(ran.errors), len(ran.skipped)
    print(f"{ran.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed != 0)


_assertions = Case()
equal = _assertions.assertEqual


def check(good, what):
    assert good, what


def matches(pattern, text, what=None):
    """A pattern is found in the text; ^ and $ stand for the ends of a line."""
    _assertions.assertRegex(text, re.compile(pattern, re.M), what)


def until(condition, what, pause=0.005):
    """Wait for what no message announces. Return what the condition returns at last."""
    end = time.monotonic() + PATIENCE
    while not (got := condition()):
        assert time.monotonic() < end, f"this never came: {what}"
        time.sleep(pause)
    return got


def descriptors(wanted):
    """Raise the limit for this process and those that it starts. Return the limit reached."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for limit in (wanted, hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, max(limit, hard) if hard >= 0 else hard))
            break
        except (ValueError, OSError):
            pass
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def seed():
    """Return WW_SEED or a new seed, and print it."""
    number = int(os.environ.get("WW_SEED") or str(time.time_ns() & 0xffffffff), 0)
    print(f"seed {number}", flush=True)
    return number


def compiled(source, *more):
    """Compile a C file of tests/ with $CC into the working folder. Return where the result is."""
    result = os.path.abspath(os.path.splitext(os.path.basename(source))[0])
    run(0, *(os.environ.get("CC") or "cc").split(), "-D_GNU_SOURCE", "-I", ROOT, "-I", os.path.join(ROOT, "include"),
        os.path.join(ROOT, "tests", source), "-o", result, *more)
    return result


def system_with(policy, *more):
    """Compile tests/support/system with that policy into a library, which a program is given by LD_PRELOAD."""
    if os.environ.get("SANITIZE"):
        raise unittest.SkipTest("a sanitizer has to be the first that is loaded, and has its own calls and allocator")
    sources = (os.path.join(ROOT, "tests/support/system", source) for source in ("calls.c", *more))
    return compiled("support/system/" + policy, *sources, "-shared", "-fPIC", "-ldl")


def numbers_of(source, start):
    """The constants of a C file of tests/ whose names start so and that have a number: {the rest of the name: number}."""
    with open(os.path.join(ROOT, "tests", source), encoding="utf-8") as file:
        return {name: int(number) for name, number in re.findall(rf"\b{start}(\w+) = (\d+)", file.read())}


# Sockets that keep the ports of free_port for this program.
kept = []


def free_port():
    """Below the ports that connections get, and kept by a socket of UDP: else a test beside this one could take it before
    the server does."""
    while True:
        address = ("127.0.0.1", random.SystemRandom().randrange(10240, 32768))
        keeper = socket.socket(type=socket.SOCK_DGRAM)
        with socket.socket() as probe, contextlib.suppress(OSError):
            keeper.bind(address)
            probe.bind(address)
            kept.append(keeper)
            return address[1]
        keeper.close()


def close_listener(listener):
    """Close alone lets a thread in accept go on, by now perhaps for another listener with the same descriptor."""
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def exact_objects(text):
    """Numbers with a fraction stay text, with all their digits."""
    return [json.loads(line, parse_float=str) for line in text.splitlines()]


# ---- Programs that run until they end ---------------------------------------------------------------------------

class Ended:
    """What a program said, and its exit status."""

    def __init__(self, command, done):
        self.command, self.status, self.raw = command, done.returncode, done.stdout
        self.out, self.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def __str__(self):
        return f"{' '.join(self.command)}: exit status {self.status}\n      out: {self.out}\n      err: {self.err}"


def run(status, *command, stdin=b"", **env):
    """Run a program. It must end with this exit status, or with any if that is None; `env` adds to its environment."""
    ended = Ended(command, subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE, check=False,
                                          env=environment(**env)))
    assert status in (None, ended.status), f"expected exit status {status} of {ended}"
    return ended


def environment(**more):
    """The environment with more in it; None takes a name away."""
    return {name: value for name, value in dict(os.environ, **more).items() if value is not None}


class Program:
    """weekwheel, as users of a server call it."""

    def __init__(self, address):
        self.address = address

    def environment(self, **env):
        return environment(**{"WEEKWHEEL_SERVER": self.address, "TZ": "UTC", "TERM": "xterm", **env})

    def run(self, status, *arguments, stdin=b"", **env):
        return run(status, WEEKWHEEL, *arguments, stdin=stdin, **self.environment(**env))

    def start(self, *arguments, **more):
        return subprocess.Popen([WEEKWHEEL, *arguments], **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
                                stdin=subprocess.DEVNULL, env=self.environment(), text=True)


# For commands that need no server.
alone = Program("127.0.0.1:1")


# ---- Servers and their clients ----------------------------------------------------------------------------------

STORES = ("--memory", "--data", "--store", "--store-file", "--config")


def refused(*arguments, status=2, **env):
    """Start a server with arguments that it refuses. Return what it says, or None if this build has no Redis."""
    need_server()
    ended = run(None, WEEKWHEELD, "--listen", "127.0.0.1:0", *arguments, **env)
    if "this build has no Redis" in ended.err:
        return None
    assert ended.status == status and (status != 2 or "listening" not in ended.err), ended
    return ended.err


# Debian's packages of programs that are named otherwise.
PACKAGES = {"go": "golang-go", "node": "nodejs", "php": "php-cli", "redis-cli": "redis-tools", "systemd-analyze": "systemd"}


def lack(name):
    """What a test says that is skipped without the program."""
    return f"there is no {name}: Debian has it in the package {PACKAGES.get(name, name)}"


def need_program(name):
    if not shutil.which(name):
        raise unittest.SkipTest(lack(name))


def need_server():
    if not os.access(WEEKWHEELD, os.X_OK):
        raise unittest.SkipTest("this build has no weekwheeld: configure says what it lacks")


class Server:
    """weekwheeld on a free port, in memory unless the arguments or the environment name another store.

    `said` is what it said until it listened, and all of it after its end.
    """

    def __init__(self, *arguments, before=None, program=WEEKWHEELD, **env):
        need_server()
        named = any(argument in STORES for argument in arguments) or "WEEKWHEELD_STORE" in env
        self.process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", *([] if named else ["--memory"]), *arguments], env=environment(**env),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=before)
        # It names each address on which it listens.
        lines = [self.process.stderr.readline() for _ in range(1 + arguments.count("--unix"))]
        while lines[-1] and "listening on 127.0.0.1:" not in "".join(lines):
            lines.append(self.process.stderr.readline())
        self.said = "".join(lines)
        found = re.search(r'\blistening on (127\.0\.0\.1:(\d+))"?', self.said)
        if not found:
            self.stop(signal.SIGKILL)
            for lack in ("this build has no Redis", "this build has no libcurl"):
                if lack in self.said:
                    raise unittest.SkipTest(lack)
            raise AssertionError("the server did not start: " + self.said)
        self.address, self.port = found.group(1), int(found.group(2))
        self.program = Program(self.address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def client(self):
        return Client(socket.create_connection(("127.0.0.1", self.port), PATIENCE))

    def stop(self, number=signal.SIGTERM):
        """Send a signal, read what the server still says, and return its status. One that does not end is killed."""
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        self.process.send_signal(number)
        self.said += self.process.stderr.read()
        self.process.stderr.close()
        status = self.process.wait()
        late.cancel()
        return status

    def get(self, path, method="GET"):
        """The status and the text of an answer by HTTP."""
        return get_from(self, path, method)

    def metrics(self):
        """The lines of its metrics, in the format of Prometheus."""
        status, text = self.get("/metrics")
        equal(status, 200)
        for line in text.splitlines():
            assert re.match(r"# (HELP|TYPE) weekwheeld_\w+ .+$|"
                            r'weekwheeld_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.]+$', line), line
        return text.splitlines()


def get_from(server, path, method="GET"):
    """The status and the text of an answer by HTTP, of a server that has said where it serves."""
    url = re.search(r"serving (http://[0-9.:]+)/", server.said).group(1) + path
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@contextlib.contextmanager
def stopped(server):
    """What clients send meanwhile comes to the server at once, in the order in which it was sent."""
    server.process.send_signal(signal.SIGSTOP)

    def is_stopped():
        with open("/proc/%d/stat" % server.process.pid, encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"

    until(is_stopped, "the server is stopped")
    yield
    server.process.send_signal(signal.SIGCONT)


class Client:
    """A connection that speaks the protocol of beanstalkd."""

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
        """The answer to a command; a block that comes with it is behind a bar."""
        self.send(line + "\r\n" if isinstance(line, str) else line)
        return self.answer()

    def answer(self, errors="backslashreplace"):
        line = self.line()
        if re.match(r"(OK|RESERVED|FOUND) ", line):
            return line + "|" + self.block(int(line.split()[-1])).decode(errors=errors)
        return line

    def put(self, body=b"x", priority=0, delay=0, ttr=60, tube=None):
        if tube:
            equal(self.ask("use " + tube), "USING " + tube)
        self.send(b"put %d %d %d %d\r\n%s\r\n" % (priority, delay, ttr, len(body), body))
        return self.line()

    def numbers(self, line):
        """A block of YAML, as a dictionary."""
        answer = self.ask(line)
        assert answer.startswith("OK "), answer
        return dict(entry.split(": ", 1) for entry in answer.split("---\n", 1)[1].splitlines())

    def until_waiting(self, count=1):
        """Wait until that many clients wait for a job."""
        self.until_stats("current-waiting", count)

    def until_stats(self, name, value, of="stats"):
        """Wait until a number that the server counts has a value."""
        until(lambda: self.numbers(of)[name] == str(value), f"{name} is {value}", 0)

    def jobs(self, line):
        self.send(line + "\r\n")
        answer = self.answer("strict")  # JSON is UTF-8
        assert answer.startswith("OK "), answer
        return objects(answer.split("|", 1)[1])

    def all_jobs(self):
        """Every job in the store, as list-delayed shows them."""
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


class Beanstalkd:
    """The program on a free port. `first` is the connection that showed that it listens."""

    def __init__(self, *arguments):
        if not os.access(BEANSTALKD, os.X_OK):
            raise unittest.SkipTest(lack("beanstalkd"))
        for _ in range(10):
            self.port = free_port()
            self.process = subprocess.Popen([BEANSTALKD, "-l", "127.0.0.1", "-p", str(self.port), *arguments],
                                            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while self.process.poll() is None:
                try:
                    self.first = self.connect()
                    return
                except ConnectionRefusedError:
                    pass
        raise AssertionError("beanstalkd does not start")

    def connect(self):
        return Client(socket.create_connection(("127.0.0.1", self.port), PATIENCE))

    def client(self):
        client, self.first = self.first or self.connect(), None
        return client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.first:
            self.first.close()
        self.process.kill()
        self.process.wait()


class Relay:
    """Stands between a client and its server, and calls `before` ahead of the first data that begin with `word`.

    If it returns "stop", they and all that follows are not passed on. `change` is what becomes of answers.
    """

    def __init__(self, port, word, before, change=None, port_here=0):
        self.port, self.word, self.before, self.change = port, word, before, change
        self.listener = socket.create_server(("127.0.0.1", port_here))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        close_listener(self.listener)

    def serve(self):
        near, _ = self.listener.accept()
        far = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        threading.Thread(target=self.copy, args=(far, near, self.change), daemon=True).start()
        self.copy(near, far, self.look)

    def look(self, data):
        if self.word and data.startswith(self.word) and self.before:
            before, self.before = self.before, None
            return data if before() != "stop" else None
        return data

    def copy(self, source, to, change):
        try:
            while data := source.recv(1 << 20):
                data = change(data) if change else data
                if data is None:
                    break
                to.sendall(data)
            to.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def conversation(client, *pairs):
    """Commands, and the answer that each must get."""
    for line, expected in pairs:
        equal(client.ask(line), expected, repr(line))


class Fsck:
    """Checks a store that no server has open, or that its server leaves alone meanwhile."""

    def __init__(self):
        libraries = os.path.join(os.path.abspath(BUILD), "lib")
        self.program = compiled("tools/weekwheeld/fsck.c", "-L", libraries, "-lweekwheel_jobs", "-lweekwheel",
                                "-Wl,-rpath," + libraries, *os.environ.get("SANITIZE", "").split())

    def check(self, data):
        run(0, self.program, data)


# ---- Redis ------------------------------------------------------------------------------------------------------

def need_redis():
    if not os.path.exists(os.path.join(BUILD, "lib", "libweekwheel_redis.a")):
        raise unittest.SkipTest("this build has no jobs in Redis")
    need_program("redis-server")


class Redis:
    """redis-server on a free port. Its data is in a folder, where it finds them again after it was killed."""

    def __init__(self, *arguments, folder="redis", **env):
        need_redis()
        self.folder, self.environment = os.path.abspath(folder), environment(**env)
        os.makedirs(self.folder, exist_ok=True)
        self.arguments = ["--bind", "127.0.0.1", "--dir", self.folder, "--logfile", os.path.join(self.folder, "log"),
                          "--daemonize", "no", "--save", "", "--appendonly", "yes", "--appendfsync", "no", *arguments]
        self.process = None
        # Another program may take the port between the search and the start.
        for _ in range(5):
            self.port = free_port()
            if self.started():
                break
        else:
            with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
                raise AssertionError("redis-server ends at once: " + log.read())
        self.url = f"redis://127.0.0.1:{self.port}/"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        assert self.started(), "redis-server ends at once"

    def started(self):
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), *self.arguments],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self.environment)
        try:
            until(lambda: self.process.poll() is not None or self.answers(), "Redis answers")
        except BaseException:
            self.kill()
            raise
        return self.process.poll() is None

    def answers(self):
        """It has read its data and answers, and no other program has its port."""
        try:
            answer = self.ask("PING")
            return answer.startswith("-NOAUTH") or \
                answer == "+PONG" and f"process_id:{self.process.pid}\r\n" in self.ask("INFO", "server")
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, *words):
        """The answer to a command: a number, a string, a list, or a status or an error with its sign."""
        request = b"*%d\r\n" % len(words)
        for word in map(str.encode, map(str, words)):
            request += b"$%d\r\n%s\r\n" % (len(word), word)
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection, connection.makefile("rb") as file:
            connection.sendall(request)
            return self.reply(file)

    def reply(self, file):
        line = file.readline().decode().rstrip("\r\n")
        if not line:
            raise ConnectionResetError("Redis closed the connection")
        if line[0] == "$":
            return file.read(int(line[1:]) + 2)[:-2].decode(errors="replace") if line != "$-1" else None
        if line[0] == "*":
            return [self.reply(file) for _ in range(int(line[1:]))]
        return int(line[1:]) if line[0] == ":" else line

    def server(self, *arguments, **env):
        return Server("--store", self.url, *arguments, **env)


class Cluster:
    """Masters of Redis that share the slots, and then so many replicas of each in their order."""

    def __init__(self, *arguments, count=3, replicas=0):
        self.nodes = []
        try:
            self.make(count, replicas, arguments)
        except BaseException:
            self.__exit__()
            raise
        self.url = "redis://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def variables(self, _):
        """The environment of a node, beside that of the test."""
        return {}

    def make(self, count, replicas, arguments):
        buses = [free_port() for _ in range(count * (1 + replicas))]
        for number, bus in enumerate(buses):
            self.nodes.append(Redis("--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
                                    "--cluster-port", str(bus), *arguments, folder=f"redis-{number}",
                                    **self.variables(number)))
        for number, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < count:
                node.ask("CLUSTER", "ADDSLOTSRANGE", number * 16384 // count, (number + 1) * 16384 // count - 1)
            self.nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, buses[number])
        for node in self.nodes:
            for line in ("cluster_state:ok", f"cluster_known_nodes:{len(self.nodes)}"):
                until(lambda node=node, line=line: line in node.ask("CLUSTER", "INFO"), line)
        for number, node in enumerate(self.nodes[count:]):
            primary = self.nodes[number % count].ask("CLUSTER", "MYID")
            until(lambda node=node, primary=primary: node.ask("CLUSTER", "REPLICATE", primary) == "+OK", "a replica")
        for node in self.nodes[count:]:
            until(lambda node=node: "master_link_status:up" in node.ask("INFO", "replication"), "a replica follows")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()

    server = Redis.server


class Actor:
    """A process that uses the library's store in Redis and does what its input says; see actors in store_rig.h."""

    def __init__(self, url, **env):
        self.process = subprocess.Popen([ACTOR, "actor", url, "weekwheel", "1000"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment(**env))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
