#!/usr/bin/env python3
"""The four programs in odd surroundings: closed descriptors, readers that left, blocked signals, limits, as the first process."""
# tier: check
import contextlib
import functools
import os
import pty
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from sessiond import SESSIOND
from harness import BUILD, PATIENCE, WEEKWHEEL, WEEKWHEELD, Case, Server, equal, free_port, lack, main, matches, until

BENCH = os.path.join(BUILD, "bin", "weekwheel-bench")
ALL = set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP}


def closed(*descriptors):
    def before():
        for descriptor in descriptors:
            os.close(descriptor)
    return {"preexec_fn": before}


def limited(which, limit):
    return {"preexec_fn": lambda: resource.setrlimit(which, (limit, limit))}


def no_folder():
    os.chdir(tempfile.mkdtemp())
    os.rmdir(os.getcwd())


def terminal_that_is_gone():
    outer, inner = pty.openpty()
    os.close(outer)
    return {"stdin": inner, "stdout": inner, "stderr": inner}


def no_reader(*which):
    reading, writing = os.pipe()
    os.close(reading)
    return dict.fromkeys(which, writing)


def opened(path, flags, *which):
    return dict.fromkeys(which, os.open(path, flags))


# Each makes what a process is started with. Where a command's output is lost, it says so by its status.
SURROUNDINGS = {
    "ordinary": dict,
    "no standard input": lambda: closed(0),
    "no standard output": lambda: closed(1),
    "no standard error": lambda: closed(2),
    "neither input nor error": lambda: closed(0, 2),
    "no descriptors": lambda: closed(0, 1, 2),
    "a folder as input": lambda: opened("/", os.O_RDONLY, "stdin"),
    "input that cannot be read": lambda: opened("/dev/null", os.O_WRONLY, "stdin"),
    "a full disk": lambda: opened("/dev/full", os.O_WRONLY, "stdout", "stderr"),
    "a reader of output that left": lambda: no_reader("stdout"),
    "a reader of errors that left": lambda: no_reader("stderr"),
    "a terminal that is gone": terminal_that_is_gone,
    "a session of its own": lambda: {"start_new_session": True},
    "blocked signals": lambda: {"preexec_fn": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ALL)},
    "children that nobody waits for": lambda: {"preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)},
    "SIGPIPE that ends": lambda: {"restore_signals": True},
    "SIGHUP that is ignored": lambda: {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)},
    "files of no size": lambda: limited(resource.RLIMIT_FSIZE, 0),
    "few descriptors": lambda: limited(resource.RLIMIT_NOFILE, 40),
    "no environment": lambda: {"env": {}},
    "a folder that is gone": lambda: {"preexec_fn": no_folder},
    "no name": lambda: {"args": [""]},
    "the first process": lambda: {"first": True},
}
LOSES_OUTPUT = {"no standard output", "no descriptors", "a full disk"}


@functools.cache
def can_be_first():
    return bool(shutil.which("unshare")) and subprocess.run(["unshare", "-pf", "--mount-proc", "true"], check=False,
                                                           capture_output=True).returncode == 0


def start(what, program, *arguments):
    """Start a program in these surroundings, and return the process."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "restore_signals": False,
               **SURROUNDINGS[what]()}
    command = [*options.pop("args", [program]), *arguments]
    handed = [options[name] for name in ("stdin", "stdout", "stderr") if options[name] >= 0]
    if options.pop("first", False):
        command, program = ["unshare", "-pf", "--kill-child", "--mount-proc", program, *arguments], shutil.which("unshare")
    # pylint: disable=consider-using-with
    process = subprocess.Popen(command, executable=program, **options)
    for descriptor in set(handed):
        os.close(descriptor)
    return process


def surroundings():
    for what in SURROUNDINGS:
        if what != "the first process" or can_be_first():
            yield what
        else:
            print(lack("unshare"), "or it may not be used: no program is run as a first process")


def child_of(process):
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="utf-8") as file:
        return int(file.read() or 0)


def status_of(what, process):
    """That with which it ends by itself."""
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "it does not end: " + what


def end(what, process):
    """The program's status after SIGTERM."""
    os.kill(until(lambda: child_of(process), "the first process") if what == "the first process" else process.pid, signal.SIGTERM)
    return status_of(what, process)


def connected(port, process, what):
    def connect():
        equal((what, process.poll()), (what, None))
        with contextlib.suppress(ConnectionError):
            return socket.create_connection(("127.0.0.1", port), PATIENCE)
        return None
    return until(connect, "the server listens: " + what)


class Surroundings(Case):
    def serves(self, program, question, answer, *arguments, only=None):
        """A server answers, also after it has had something to say, and ends in order."""
        if not os.access(program, os.X_OK):
            raise unittest.SkipTest("this build has no " + os.path.basename(program))
        for what in [only] if only else surroundings():
            port = free_port()
            process = start(what, program, "--listen", "127.0.0.1:%d" % port, *arguments)
            try:
                with connected(port, process, what) as client:
                    for _ in range(2):
                        client.sendall(question)
                        equal((what, client.recv(1000)), (what, answer))
                        # It rereads what it has, and says what is wrong.
                        if what != "the first process":
                            process.send_signal(signal.SIGHUP)
                    with socket.create_connection(("127.0.0.1", port), PATIENCE) as other:
                        other.sendall(question)
                        equal((what, other.recv(1000)), (what, answer))
                equal((what, end(what, process)), (what, 1 if only else 0))
            finally:
                process.kill()
                process.wait()

    def test_weekwheeld(self):
        self.serves(WEEKWHEELD, b"peek 7\r\n", b"NOT_FOUND\r\n", "--memory", "--verbose")

    def test_sessiond(self):
        self.serves(SESSIOND, b"GET a\r\n", b"$-1\r\n", "--verbose")

    def test_a_store_beyond_the_limit_of_files(self):
        """It is a full disk, on which sessions can be read."""
        if os.access(WEEKWHEELD, os.X_OK):
            process = start("files of no size", WEEKWHEELD, "--listen", "127.0.0.1:0", "--data", os.path.join(self.folder, "jobs"))
            equal(status_of("files of no size", process), 1)
        self.serves(SESSIOND, b"GET a\r\n", b"$-1\r\n", "--data", os.path.join(self.folder, "sessions"), only="files of no size")

    def test_fewer_descriptors_than_a_server_needs(self):
        """Where libuv lacks one, it aborts without a word."""
        for program, *arguments in (WEEKWHEELD, "--memory"), (SESSIOND,), (SESSIOND, "--data", "sessions"):
            if not os.access(program, os.X_OK):
                continue
            for count in range(5, 17):
                done = subprocess.run([program, "--listen", "127.0.0.1:0", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=PATIENCE, text=True, check=False, **limited(resource.RLIMIT_NOFILE, count))
                equal((program, count, done.returncode), (program, count, 1))
                matches('raise the limit of open files \\("ulimit -n"\\)', done.stderr)

    def test_weekwheel(self):
        """It has warnings for its user, which must not go to the server."""
        with open("crontab", "w", encoding="utf-8") as file:
            file.write("MAILTO=ops@example.org\n0 3 * * * nightly\n")
        for what in surroundings():
            with Server() as server:
                process = start(what, WEEKWHEEL, "import", "crontab", os.path.join(self.folder, "crontab"), "--server", server.address)
                equal((what, status_of(what, process)), (what, 1 if what in LOSES_OUTPUT else 0))
                with server.client() as client:
                    equal((what, len(client.jobs("list-schedules"))), (what, 1))
                    equal(client.numbers("stats")["cmd-put"], "0")

    def test_work(self):
        """A command has what it expects, whatever the worker lacks. It reads the body from a file."""
        for what in surroundings():
            if what == "files of no size":
                continue
            with Server() as server, server.client() as client:
                client.put(b"text\n")
                process = start(what, WEEKWHEEL, "work", "--drain", "--server", server.address, "--", "sh", "-c",
                                "read text && test $text = text && ! (kill -PIPE $$; true)")
                status = status_of(what, process)
                jobs = client.all_jobs()
                equal((what, status, len(jobs)), (what, 0, 1))
                matches("^signal 13 ", jobs[0]["error"], what)

    def test_bench(self):
        for what in surroundings():
            process = start(what, BENCH, "-n", "1000", "-w", "A", "-s", "weekwheel", "-r", "1")
            equal((what, status_of(what, process)), (what, 1 if what in LOSES_OUTPUT else 0))


class First(Case):
    def test_nobody_stays_a_zombie(self):
        if not can_be_first():
            self.skipTest("no program can be run as a first process")
        with Server() as server, server.client() as client:
            client.put(b"x")
            process = start("the first process", WEEKWHEEL, "work", "--server", server.address, "--", "sh", "-c",
                            "(sleep .2; touch '%s/ended') &" % self.folder)
            first = until(lambda: child_of(process), "the worker")
            until(lambda: os.path.exists("ended"), "what the command left behind has ended")

            def children():
                with open("/proc/%d/task/%d/children" % (first, first), encoding="utf-8") as file:
                    return file.read().split()
            until(lambda: not children(), "the worker has waited for it")
            equal(client.numbers("stats")["cmd-delete"], "1")
            os.kill(first, signal.SIGTERM)
            equal(process.wait(PATIENCE), 0)

    def test_it_ends_when_it_is_told_to(self):
        if not can_be_first():
            self.skipTest("no program can be run as a first process")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            process = start("the first process", WEEKWHEEL, "stats", "--timeout", "10m", "--server", "127.0.0.1:%d" % silent.getsockname()[1])
            with silent.accept()[0]:
                os.kill(child_of(process), signal.SIGTERM)
                equal(process.wait(PATIENCE), 128 + signal.SIGTERM)


main()
