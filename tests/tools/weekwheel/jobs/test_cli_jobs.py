#!/usr/bin/env python3
"""The commands of weekwheel that talk to weekwheeld, as their users call them."""
# tier: check
import base64
import contextlib
import datetime
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

from harness import PATIENCE, WEEKWHEEL, Case, Server, check, equal, main, matches, objects, until

# Of Debian's package python3-pyte, also for another Python than Debian's.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import pyte
except ImportError:
    pyte = None


@contextlib.contextmanager
def serving(*options):
    """The program with a server of its own, whose clock is virtual unless the options say otherwise."""
    with Server(*(options or ("--clock", "virtual"))) as server:
        yield server.program


def listed(client, *options):
    jobs = objects(client.run(0, "list", "--all", "--json", *options).out)
    return [dict(job, id=int(job["id"])) for job in jobs]


def started(client, *options):
    """A worker whose command runs and waits for the pipe "in"."""
    os.mkfifo("in")
    os.mkfifo("out")
    worker = client.start("work", *options, "--", "sh", "-c", "echo x >out; read x <in")
    with open("out", "rb") as out:
        equal(out.read(2), b"x\n")
    return worker


def top_frame(text):
    """The last frame as a terminal shows it."""
    frame = text.rsplit("\033[H", 1)[-1]
    return re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", frame).replace("\r", "")


def wheel(frame, name):
    """The slots of a wheel, and the slot of its hand."""
    lines = frame.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(name.ljust(5)))
    return lines[at].split(" max ")[0][5:], lines[at + 1].index("^") - 5


class Top:
    """weekwheel top in a terminal. Each frame must fill it and no more; pyte, if it is there, draws it as a terminal does."""

    def __init__(self, client, rows=24, columns=80, **env):
        self.leader, follower = pty.openpty()
        self.rows, self.columns = rows, columns
        self.screen = pyte.Screen(columns, rows) if pyte else None
        self.stream = pyte.ByteStream(self.screen) if pyte else None
        self.drawn = 0
        self.set_size()
        self.before = termios.tcgetattr(self.leader)
        self.process = subprocess.Popen([WEEKWHEEL, "top"], stdin=follower, stdout=follower,
                                        stderr=follower, env=client.environment(**env))
        os.close(follower)
        self.seen = b""

    def set_size(self):
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))

    def resize(self, rows, columns):
        """Return the first frame that fits the new size."""
        self.seen = self.seen.rsplit(b"\033[H", 1)[0]
        self.drawn = min(self.drawn, len(self.seen))
        if pyte:
            self.screen.resize(rows, columns)
        self.rows, self.columns = rows, columns
        self.set_size()
        before = len(self.seen)
        self.process.send_signal(signal.SIGWINCH)
        frame = self.wait(lambda frame: True, fits=False)
        check(b"\033[2J\033[H" in self.seen[before:], "what the terminal made of the former lines is not cleared")
        return frame

    def fits(self, frame):
        lines = frame.split("\n")
        return len(lines) == self.rows and max(map(len, lines)) <= self.columns

    def wait(self, good, fits=True):
        """Read until a function accepts a whole frame, and return that frame. One of a former size may come first."""
        while True:
            frame = top_frame(self.seen.decode(errors="replace"))
            if self.seen.endswith(b"\033[J"):
                check(self.fits(frame) or not fits, frame)
                if self.fits(frame) and good(frame):
                    self.check_screen(frame)
                    return frame
            check(select.select([self.leader], [], [], PATIENCE)[0], f"the screen stays {frame}")
            self.seen += os.read(self.leader, 65536)

    def check_screen(self, frame):
        """A terminal shows this frame and nothing else."""
        if pyte:
            self.stream.feed(self.seen[self.drawn:])
            self.drawn = len(self.seen)
            equal([line.rstrip() for line in self.screen.display], [line.rstrip() for line in frame.split("\n")])

    def key(self, key):
        self.seen = b""
        self.drawn = 0
        os.write(self.leader, key)

    def end(self, number=None):
        """End it with a signal or with q, and return all that it wrote."""
        check(termios.tcgetattr(self.leader) != self.before, "keys are not read one by one")
        if number:
            self.process.send_signal(number)
        else:
            os.write(self.leader, b"q")
        try:
            while more := os.read(self.leader, 65536):
                self.seen += more
        except OSError:
            pass
        equal(self.process.wait(PATIENCE), 0)
        equal(termios.tcgetattr(self.leader), self.before, "the terminal's state")
        os.close(self.leader)
        return self.seen.decode()


def run_top(client, **env):
    top = Top(client, **env)
    top.wait(lambda frame: True)
    return top.end()


def slots(full):
    """A wheel of 60 with these slots."""
    return "".join(full.get(i, " ") for i in range(60))


class JobCommands(Case):
    def test_put_says_the_id_and_when(self):
        with serving() as client:
            equal(client.run(0, "put", "hello").out, "1 due now\n")
            matches(r"^2 due \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, in 3 d 12 h$", client.run(0, "put", "--in", "3d12h", "x").out)
            equal(client.run(0, "put", "--at", "2099-01-01 09:00", "x").out[:26], "3 due 2099-01-01 09:00:00,")
            equal(client.run(0, "put", "--at", "2099-01-01T09:00+01:00", "x").out[:26], "4 due 2099-01-01 08:00:00,")
            ended = client.run(0, "put", "--at", "@1", "x")
            equal(ended.out, "5 due now\n")
            matches("warning: --at 1970-01-01 00:00:01.00:00 is in the past", ended.err)
            one = objects(client.run(0, "put", "--json", "--key", "k", "--in", "1.5", "x").out)[0]
            due = datetime.datetime.fromisoformat(one.pop("due"))
            equal(one, {"id": "6", "result": "new", "clock": "elapsed"})
            check(due.utcoffset() == datetime.timedelta(0), due)
            matches("^6 replaced, due ", client.run(0, "put", "--key", "k", "--in", "2", "y").out)
            equal([job["state"] for job in listed(client)], ["ready", "delayed", "delayed", "delayed", "ready", "delayed"])
            equal([job["clock"] for job in listed(client)], ["elapsed", "elapsed", "wall", "wall", "wall", "elapsed"])

    def test_put_says_what_happened_to_a_job_of_the_same_key(self):
        with serving() as client:
            put = lambda *words: client.run(0, "put", "--key", "k", *words, "x").out
            equal(put("--unique", "1h"), "1 due now\n")
            equal(put("--if-absent"), "1 is kept as it is; nothing was put\n")
            matches(r"^1 replaced, due [-0-9: ]+, in 1 h$", put("--debounce", "1h", "--in", "2h"))
            matches("is due at once", client.run(0, "put", "--key", "j", "--debounce", "1h", "x").err)
            client.run(0, "cancel", "--key", "j")
            equal(objects(put("--json", "--if-version", "0")), [{"id": "1", "result": "kept", "version": 2}])
            client.run(0, "cancel", "--key", "k")
            put("--unique", "1h")
            client.run(0, "work", "--drain", "true")
            equal(put("--unique", "1h"), "3 has ended, and its key is not free yet; nothing was put\n")
            equal(objects(put("--json"))[0]["result"], "ended")
            client.run(0, "cancel", "--key", "k")
            equal(put(), "4 due now\n")

    def test_a_spread_put_says_when(self):
        with serving() as client:
            put = lambda *words: client.run(0, "put", "--key", "k", "--in", "1h", "--spread", "10m", *words, "x").out
            left = lambda: listed(client)[0]["left"]
            matches(r"^1 due [-0-9: ]+, in 1 h", put())
            place = left()
            check(3600 < place < 4200, place)
            one = objects(put("--json"))[0]
            equal((one["result"], left()), ("replaced", place))
            due = datetime.datetime.fromisoformat(one["due"]).timestamp() - time.time()
            check(3600 < due <= place, (due, place))
            equal(put("--if-absent"), "1 is kept as it is; nothing was put\n")

    def test_put_sends_every_option(self):
        with serving() as client:
            client.run(0, "put", "--tube", "t", "--key", "ä b%", "--in", "1h", "--every", "6h", "--priority", "7", "--run",
                       "90s", "--attempts", "4", "--backoff", "10s", "--backoff-max", "1h", "--missed", "skip", "--skip",
                       "1h", "body")
            job = listed(client)[0]
            equal((job["tube"], job["key"], job["priority"], job["run"], job["every"], job["attempts"], job["length"]),
                  ("t", "ä b%", 7, 90, 21600, 4, 4))
            equal(client.run(0, "peek", "--tube", "t", "--key", "ä b%", "--body").out, "body")
            client.run(0, "put", "--tube", "t", "--key", "ä b%", "--if-version", "1", "x")
            matches("STALE", client.run(1, "put", "--tube", "t", "--key", "ä b%", "--if-version", "1", "x").err)

    def test_bodies_are_any_bytes(self):
        body = bytes(range(256)) + b"\r\nquit\r\n"
        with serving() as client:
            with open("body", "wb") as out:
                out.write(body)
            client.run(0, "put", "--file", "body")
            client.run(0, "put", "-", stdin=body)
            client.run(0, "put", "")
            equal(client.run(0, "peek", "1", "--body").raw, body)
            equal(client.run(0, "peek", "2", "--body").raw, body)
            equal(base64.b64decode(objects(client.run(0, "peek", "2", "--json").out)[0]["body_base64"]), body)
            equal(client.run(0, "peek", "3", "--body").raw, b"")
            matches("No such file", client.run(1, "put", "--file", "missing").err)
            matches("JOB_TOO_BIG", client.run(1, "put", "-", stdin=b"x" * 70000).err)
        # More than is read at once.
        large = bytes(number * number % 251 for number in range(200000))
        with serving("--max-job-size", "300000") as client:
            client.run(0, "put", "-", stdin=large)
            equal(client.run(0, "peek", "1", "--body").raw, large)

    def test_each_line_is_a_job(self):
        with serving() as client:
            matches("^3 jobs put, ids 1 to 3$", client.run(0, "put", "--lines", stdin=b"a\nb b\r\nlast").out)
            equal([client.run(0, "peek", str(i), "--body").out for i in (1, 2, 3)], ["a", "b b", "last"])
            many = b"".join(b"line %d\n" % i for i in range(50000))
            matches("^50000 jobs put, ids 4 to 50003$", client.run(0, "put", "--lines", "--tube", "many", stdin=many).out)
            equal(client.run(0, "peek", "50003", "--body").out, "line 49999")
            result = client.run(1, "put", "--lines", "--json", "--tube", "l", stdin=b"a\n" + b"x" * 70000 + b"\nc\n")
            equal([one["line"] for one in objects(result.out)], [1, 3])
            matches("standard input:2: .*JOB_TOO_BIG", result.err)
            equal(client.run(0, "put", "--lines", stdin=b"").out, "0 jobs put\n")

    def test_each_typed_line_is_put_at_once(self):
        with serving() as client:
            process = subprocess.Popen([WEEKWHEEL, "put", "--lines", "--json"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, env=client.environment())
            for i in (1, 2):
                process.stdin.write(b"one\n")
                process.stdin.flush()
                equal(json.loads(process.stdout.readline()), {"line": i, "id": str(i)})
            process.stdin.close()
            equal(process.wait(PATIENCE), 0)
            process.stdout.close()

    def test_jobs_are_moved_and_cancelled(self):
        with serving() as client:
            client.run(0, "put", "--in", "1h", "x")
            client.run(0, "put", "--tube", "t", "--key", "k", "--in", "1h", "x")
            matches("^1 moved, due .*, in 2 d$", client.run(0, "move", "1", "--in", "2d").out)
            matches("^k moved, due 2099-", client.run(0, "move", "--tube", "t", "--key", "k", "--at", "2099-01-01").out)
            equal([job["version"] for job in listed(client)], [2, 2])
            equal(round(listed(client)[0]["left"]), 2 * 86400)
            matches("is in the past", client.run(0, "move", "1", "--at", "2000-01-01").err)
            client.run(0, "move", "1", "--in", "2d")
            matches("STALE", client.run(1, "move", "1", "--in", "1", "--if-version", "1").err)
            matches("NOT_FOUND", client.run(1, "move", "--key", "k", "--in", "1").err)
            matches("STALE", client.run(1, "cancel", "--tube", "t", "--key", "k", "--if-version", "1").err)
            equal(client.run(0, "cancel", "--tube", "t", "--key", "k").out, "k cancelled\n")
            result = client.run(1, "cancel", "1", "9")
            equal(result.out, "1 cancelled\n")
            matches("job 9: .*NOT_FOUND", result.err)
            equal(listed(client), [])

    def test_lists_are_filtered_and_paged(self):
        with serving() as client:
            client.run(0, "put", "--lines", "--tube", "many", "--in", "1d", stdin=b"x\n" * 2500)
            client.run(0, "put", "--key", "user 1", "--in", "3d", "x")
            client.run(0, "put", "--key", "user 2", "ready")
            equal(len(listed(client)), 2502)
            equal([job["id"] for job in listed(client, "--tube", "default")], [2501, 2502])
            equal([job["id"] for job in listed(client, "--state", "ready,buried")], [2502])
            equal([job["id"] for job in listed(client, "--prefix", "user ")], [2501, 2502])
            equal([job["id"] for job in listed(client, "--from", "2d", "--to", "4d")], [2501])
            equal(len(listed(client, "--to", "2d")), 2501)
            result = client.run(0, "list", "--limit", "1500")
            equal(len(result.out.splitlines()), 1501)
            matches("There may be more", result.err)
            equal(len(objects(client.run(0, "list", "--json").out)), 100)
            table = client.run(0, "list", "--prefix", "user").out.splitlines()
            matches(r"^ *ID +STATE +TUBE +KEY +DUE +IN +EVERY +PRIORITY +ATTEMPTS +BYTES +ERROR$", table[0])
            matches(r"^2501 +delayed +default +user 1 +\d{4}-.*\+00:00 +3 d +- +1024 +0 +1 +-$", table[1])
            matches("no tube defalt: .*; did you mean 'default'", client.run(1, "list", "--tube", "defalt").err)
            # A tube of which only the keys of ended jobs are left.
            client.run(0, "put", "--tube", "pay", "--key", "order", "--unique", "1d", "x")
            client.run(0, "work", "--tube", "pay", "--drain", "--", "true")
            ended = client.run(0, "list", "--tube", "pay")
            equal(ended.out, "")
            matches("No job is in the tube pay, only ended ones", ended.err)
            equal(len(client.run(0, "list", "--tube", "pay", "--state", "ended").out.splitlines()), 2)
            # A worker may come before its tube, but not under a name near another's without a word.
            matches("^Nobody uses the tube mayn yet, and it has no job; did you mean 'many'[?]$",
                    client.run(0, "work", "--tube", "mayn", "--drain", "--", "true").err)
            equal(client.run(0, "work", "--tube", "other", "--drain", "--", "true").err, "")

    def test_lists_are_sorted(self):
        with serving() as client:
            for body, options in (("x", ("--in", "3d", "--key", "b", "--priority", "5")), ("xxx", ("--in", "1d", "--key", "ä")),
                                  ("xx", ("--at", "2099-01-01", "--key", "a", "-t", "u", "--every", "36h")), ("", ())):
                client.run(0, "put", *options, body)
            for by, ids in {"id": [1, 2, 3, 4], "due": [4, 2, 1, 3], "priority": [1, 2, 3, 4], "tube": [1, 2, 4, 3],
                            "key": [4, 3, 1, 2], "state": [1, 2, 3, 4], "bytes": [4, 1, 3, 2]}.items():
                equal([job["id"] for job in listed(client, "--sort", by)], ids, by)
            result = client.run(0, "list", "--sort", "due", "--limit", "2")
            equal([line.split()[0] for line in result.out.splitlines()[1:]], ["4", "2"])
            matches("There may be more", result.err)
            equal(objects(client.run(0, "list", "--json", "--sort", "bytes", "--limit", "1").out)[0]["id"], "4")
            lines = client.run(0, "list", TZ="Asia/Kathmandu", LC_ALL="C.UTF-8").out.splitlines()
            matches(r"^ 2  delayed +default  ä    \d", lines[2])
            matches(r"2099-01-01 05:45:00\+05:45 .* 1 d 12 h  ", lines[3])
            # A table stays one when a character takes two bytes.
            equal({line.index("delayed") for line in lines[1:4]} | {lines[2].index("20"), lines[1].index("20")},
                  {lines[0].index("STATE"), lines[0].index("DUE")})
            client.run(0, "put", "--key", "\u202ex\x9b\x1b", "x")
            matches(r" \?x\?\? ", client.run(0, "list").out)
            matches("expected id, due", client.run(2, "list", "--sort", "age").err)

    def test_a_group_is_shown_where_a_job_has_one(self):
        with serving() as client:
            client.run(0, "put", "--lines", "--in", "1h", stdin=b"x\n" * 1000)
            assert "GROUP" not in client.run(0, "list").out
            client.run(0, "put", "--group", "ada b", "--keep", "7d", "--key", "k", "--unique", "1d", "--backoff", "5s", "x")
            lines = client.run(0, "list", "--prefix", "k").out.splitlines()
            matches("^ *ID +STATE +TUBE +KEY +GROUP +DUE ", lines[0])
            matches("^1001 +ready +default +k +ada b +now ", lines[1])
            matches("^ *1 +delayed +default +- +- +[0-9]{4}", client.run(0, "list", "--sort", "due", "--all").out)
            # The first page of a long list has none: where one comes, the names of the columns come again.
            equal([line.split()[:5] for line in client.run(0, "list", "--all").out.splitlines() if "STATE" in line],
                  [["ID", "STATE", "TUBE", "KEY", "DUE"], ["ID", "STATE", "TUBE", "KEY", "GROUP"]])
            text = client.run(0, "peek", "1001").out
            for line in ("group +ada b", "keep +7 d", "unique +1 d", "backoff +5 s"):
                matches(f"^{line}$", text)
            one = objects(client.run(0, "peek", "1001", "--json").out)[0]
            equal((one["group"], one["keep"], one["unique"], one["backoff"]), ("ada b", 7 * 86400, 86400, 5))
            assert "group" not in client.run(0, "peek", "1").out

    def test_peek_shows_a_job(self):
        with serving() as client:
            client.run(0, "put", "--tube", "t", "--key", "k", "body")
            client.run(0, "put", "--tube", "t", "--in", "1h", "later")
            matches("^state +ready$", client.run(0, "peek", "1").out)
            matches(r"\n\nbody\n$", client.run(0, "peek", "--tube", "t", "--key", "k").out)
            equal(client.run(0, "peek", "--tube", "t", "--ready", "--body").out, "body")
            equal(client.run(0, "peek", "--tube", "t", "--delayed", "--body").out, "later")
            matches("NOT_FOUND", client.run(1, "peek", "--tube", "t", "--buried").err)
            matches("NOT_FOUND", client.run(1, "peek", "9").err)
            equal(objects(client.run(0, "peek", "2", "--json").out)[0]["state"], "delayed")
            client.run(0, "put", "--tube", "t", "--key", "ä b", "--at", "2099-01-01", "--every", "36h", "--attempts", "3", "x")
            text = client.run(0, "peek", "3").out
            for line in ("key +ä b", "version +1", "due +2099-01-01 00:00:00.00:00", "every +1 d 12 h", "attempts +0 of 3", "error +-"):
                matches(f"^{line}$", text)
            one = objects(client.run(0, "peek", "3", "--json").out)[0]
            equal((one["key"], one["version"], one["clock"], one["every"], one["attempts"], one["tries"], one["error"]),
                  ("ä b", 1, "wall", 129600, 3, 0, ""))

    def test_jobs_are_buried_and_kicked(self):
        with serving() as client:
            client.run(0, "put", "--priority", "7", "x")
            client.run(0, "put", "--in", "1h", "x")
            client.run(0, "put", "--in", "1h", "x")
            equal(client.run(0, "bury", "1", "2").out, "1 buried\n2 buried\n")
            equal([(job["state"], job["error"], job["priority"]) for job in listed(client, "--state", "buried")],
                  [("buried", "buried by hand", 7), ("buried", "buried by hand", 1024)])
            equal(client.run(0, "kick", "--all").out, "default: 2 kicked\n")
            # Nothing is buried, and what is delayed stays.
            equal(client.run(0, "kick", "--all", "--json").out, '{"kicked": 0}\n')
            equal([job["state"] for job in listed(client)], ["ready", "ready", "delayed"])
            equal(objects(client.run(0, "bury", "--json", "1", "--reason", "a wrong % address").out), [{"id": "1", "buried": True}])
            equal(listed(client)[0]["error"], "a wrong % address")
            # Another bury keeps that, unless it has a reason of its own.
            equal(client.run(0, "bury", "1").out, "1 is buried already\n")
            equal(listed(client)[0]["error"], "a wrong % address")
            client.run(0, "bury", "1", "--reason", "disk full")
            equal((listed(client)[0]["error"], listed(client)[0]["state"]), ("disk full", "buried"))
            matches("job 9: .*NOT_FOUND", client.run(1, "bury", "9").err)
            matches("no tube nope", client.run(1, "kick", "--all", "--tube", "nope").err)
            matches("no tube nope", client.run(1, "kick", "--tube", "nope", "--most", "1").err)

    def test_all_buried_jobs_are_those_of_all_tubes(self):
        with serving() as client:
            for tube in ("a", "b", "b", "c"):
                client.run(0, "put", "--tube", tube, "x")
            client.run(0, "put", "--tube", "a", "--in", "1h", "x")
            client.run(0, "bury", "1", "2", "3")
            equal(client.run(0, "kick", "--all", "--tube", "c").out, "0 kicked\n")
            equal(client.run(0, "kick", "--tube", "c", "--most", "1").out, "0 kicked\n")
            equal(client.run(0, "kick", "--all").out, "a: 1 kicked\nb: 2 kicked\n")
            equal(sorted(job["state"] for job in listed(client)), ["delayed"] + 4 * ["ready"])
            client.run(0, "bury", "2", "4")
            equal(objects(client.run(0, "kick", "--all", "--json").out), [{"tube": "b", "kicked": 1}, {"tube": "c", "kicked": 1}])
            equal(client.run(0, "kick", "--all").out, "0 kicked\n")

    def test_a_tube_is_paused(self):
        with serving() as client:
            client.run(0, "put", "--tube", "t", "x")
            matches("^t delivers no jobs for 1 min 31 s, until ", client.run(0, "pause", "t", "90.5").out)
            equal(client.run(0, "work", "--tube", "t", "--drain", "--", "cat").out, "")
            equal(client.run(0, "resume", "t").out, "t goes on\n")
            equal(client.run(0, "work", "--tube", "t", "--drain", "--", "cat").out, "x")
            matches("no tube nope", client.run(1, "pause", "nope", "1h").err)

    def test_a_job_that_was_put_again_is_not_purged(self):
        """The user agrees to delete what there was, and not what has come under the same id since."""
        with serving() as client:
            for key in ("old", "replaced"):
                client.run(0, "put", "--tube", "many", "--key", key, "--in", "1d", "former")
            ours, theirs = pty.openpty()
            with subprocess.Popen([WEEKWHEEL, "purge", "many"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=client.environment()) as purge:
                asked = b""
                while b"[y/N]" not in asked:
                    asked += os.read(purge.stderr.fileno(), 100)
                client.run(0, "put", "--tube", "many", "--key", "replaced", "--in", "1d", "latter")
                os.write(ours, b"y\n")
                out, error = purge.communicate(timeout=PATIENCE)
            os.close(ours)
            os.close(theirs)
            equal(out, b"1 cancelled\n")
            matches("1 were gone by then, or changed", error.decode())
            equal([job["key"] for job in listed(client)], ["replaced"])

    def test_many_jobs_are_cancelled(self):
        with serving() as client:
            client.run(0, "put", "--lines", "--tube", "many", "--in", "1d", stdin=b"x\n" * 2500)
            for key in ("cart 1", "cart 2", "user"):
                client.run(0, "put", "--key", key, "--in", "1h", "x")
            client.run(0, "put", "--key", "cart 3", "x")
            client.run(0, "bury", "2504")
            matches("^weekwheel: 3 jobs would be cancelled: --yes does it$", client.run(1, "cancel", "--prefix", "cart").err)
            equal(len(listed(client)), 2504)
            equal(client.run(0, "cancel", "--prefix", "cart", "--state", "delayed", "--yes").out, "2 cancelled\n")
            equal(client.run(0, "cancel", "--state", "buried", "-y", "--json").out, '{"cancelled": 1, "left": 0}\n')
            equal(client.run(0, "purge", "many", "--yes").out, "2500 cancelled\n")
            equal([job["key"] for job in listed(client)], ["user"])
            matches("no tube mnay", client.run(1, "purge", "mnay", "--yes").err)
            equal(client.run(0, "cancel", "--state", "buried").out, "0 cancelled\n")
            client.run(0, "put", "x")
            worker = started(client, "--drain")
            equal(client.run(0, "cancel", "--all", "--yes").out, "1 cancelled\n")
            with open("in", "wb") as go:
                go.write(b"go\n")
            worker.communicate(timeout=PATIENCE)

    def test_a_reason_of_any_bytes_is_listed(self):
        with serving() as client:
            client.run(0, "put", "x")
            peer = socket.create_connection(client.address.split(":"))
            for command in (b"reserve\r\n", b"release-job 1 1 0 %E0%80%80\r\n"):
                peer.sendall(command)
                check(peer.recv(1000)[:6] in (b"RESERV", b"RELEAS"), command)
            peer.close()
            equal(json.loads(client.run(0, "list", "--json").raw.decode("utf-8"))["error"], "\ufffd" * 3)

    def test_counts_and_forecasts(self):
        with serving() as client:
            client.run(0, "put", "x")
            client.run(0, "put", "--tube", "t", "--in", "30m", "x")
            client.run(0, "put", "--tube", "t", "--in", "3d", "x")
            table = client.run(0, "stats").out
            matches(r"^TUBE +READY +URGENT +DELAYED", table)
            matches(r"^t +0 +0 +2 +0 +0 +2 ", table)
            equal({one["name"] for one in objects(client.run(0, "stats", "--json").out)}, {"default", "t"})
            equal(objects(client.run(0, "stats", "--json", "--tube", "t").out)[0]["current-jobs-delayed"], 2)
            matches("^current-jobs-delayed +2$", client.run(0, "stats", "--all").out)
            for command in ("stats", "forecast", "list"):
                matches("no tube defualt: .*; did you mean 'default'.*NOT_FOUND", client.run(1, command, "--tube", "defualt").err)
                matches("no tube other: nobody uses or watches it, and it has no job .NOT_FOUND", client.run(1, command, "--tube", "other").err)
            forecasts = objects(client.run(0, "forecast", "--json").out)
            equal([(one["span"], len(one["counts"]), sum(one["counts"])) for one in forecasts],
                  [(60, 60, 2), (3600, 24, 2), (86400, 7, 3)])
            equal([sum(one["counts"]) for one in objects(client.run(0, "forecast", "--json", "--tube", "t").out)],
                  [1, 1, 2])
            text = client.run(0, "forecast").out
            matches(r"^The next 60 minutes: 2 jobs$", text)
            matches(r"^The next 7 days: 3 jobs$", text)
            matches(r"^  from \S+ +1  #{40}$", text)
            # A day begins at this minute, not at midnight.
            matches(r"^  from [A-Z][a-z]{2} \d\d:\d\d +2  #{40}$", text.split("7 days")[1])

    def test_a_virtual_clock_is_advanced(self):
        with serving() as client:
            client.run(0, "put", "--in", "3d12h", "x")
            matches(r"^now \d{4}-", client.run(0, "advance", "3d11h").out)
            equal(listed(client)[0]["state"], "delayed")
            check("now" in objects(client.run(0, "advance", "1h", "--json").out)[0], "now")
            equal(listed(client)[0]["state"], "ready")
        with serving("--clock", "real") as client:
            matches("clock is real", client.run(1, "advance", "1h").err)

    def test_a_command_is_run_for_each_job(self):
        with serving() as client:
            client.run(0, "put", "--tube", "t", "--key", "a key", "the body")
            client.run(0, "put", "--tube", "t", "other")
            script = 'echo "$WEEKWHEEL_JOB_ID,$WEEKWHEEL_JOB_KEY,$WEEKWHEEL_JOB_ATTEMPT,$WEEKWHEEL_TUBE,$(cat)"'
            result = client.run(0, "work", "--tube", "t", "--drain", "--", "sh", "-c", script)
            equal(result.out, "1,a key,1,t,the body\n2,,1,t,other\n")
            equal(result.err, "")
            equal(listed(client), [])
            client.run(0, "put", "x")
            matches("^weekwheel: job 3: done in ", client.run(0, "work", "--drain", "-v", "true").err)

    def test_a_job_that_fails_comes_back_and_is_buried_at_last(self):
        with serving() as client:
            client.run(0, "put", "x")
            fail = ("work", "--drain", "--attempts", "3", "--", "sh", "-c", "echo first >&2; echo ' the last ' >&2; exit 3")
            for attempt in (1, 2):
                result = client.run(0, *fail)
                matches(rf"^weekwheel: job 1, attempt {attempt}: 'exit status 3:  the last'; again in ", result.err)
                matches("^first$", result.err)
                job = listed(client)[0]
                equal((job["state"], job["error"], job["reserves"]), ("delayed", "exit status 3:  the last", attempt))
                most = 2 ** (attempt - 1)
                check(most * 0.75 - 0.5 <= job["left"] <= most, job)
                client.run(0, "advance", "5")
            matches("; buried$", client.run(0, *fail).err)
            equal(listed(client)[0]["state"], "buried")
            equal(client.run(0, "kick", "--id", "1").out, "1 kicked\n")
            client.run(0, "bury", "1")
            ended = client.run(0, "kick", "1")
            equal((ended.out, ended.err), ("1 kicked\n", "This kicks the job 1; what 0.1 did with this number, --most 1 does\n"))
            client.run(0, "work", "--drain", "--release-delay", "1.5h", "--attempts", "0", "--", "false")
            equal(round(listed(client)[0]["left"]), 5400)

    def test_a_job_has_a_backoff_of_its_own(self):
        with serving() as client:
            client.run(0, "put", "--backoff", "10m", "--attempts", "2", "x")
            matches("again after its backoff: 10 min, doubled with each failure", client.run(0, "work", "--drain", "--", "false").err)
            check(450 <= listed(client)[0]["left"] <= 600, listed(client))
            client.run(0, "advance", "10m")
            client.run(0, "work", "--drain", "--", "false")
            equal(listed(client)[0]["state"], "buried")

    def test_a_job_has_limits_of_its_own(self):
        with serving() as client:
            client.run(0, "put", "--attempts", "1", "x")
            client.run(0, "work", "--drain", "--", "false")
            equal((listed(client)[0]["state"], listed(client)[0]["error"]), ("buried", "exit status 1"))
            matches(r" 1/1 +1 +exit status 1$", client.run(0, "list").out)
            equal(client.run(0, "kick", "--most", "5").out, "1 kicked\n")
            # As many as the limit counts, which a kick starts anew. The reason of the last failure stays.
            matches(r" 0/1 +1 +exit status 1$", client.run(0, "list").out)
            client.run(0, "cancel", "1")
            client.run(0, "put", "x")
            result = client.run(0, "work", "--drain", "--attempts", "1", "--json", "--", "sh", "-c", "echo out; kill -9 $$")
            one = objects(result.out)[0]
            equal((one["id"], one["end"], one["error"]), ("2", "buried", "signal 9 (Killed)"))
            matches("^out$", result.err)

    def test_several_commands_run_at_a_time(self):
        self.several_run()

    def test_several_commands_run_beside_a_limit(self):
        self.several_run("--rate", "100/s")

    def several_run(self, *limit):
        with serving("--clock", "real") as client:
            if limit:
                client.run(0, "limit", "default", *limit)
            for i in range(3):
                client.run(0, "put", str(i))
            for name in ("in", "out"):
                os.mkfifo(name)
            # Each command writes that it runs, and ends only when all have written.
            worker = client.start("work", "--drain", "-n", "3", "--", "sh", "-c", "echo x >out; read x <in")
            seen = b""
            with open("out", "rb", buffering=0) as out:
                hold = os.open("out", os.O_WRONLY)
                while seen.count(b"x") < 3:
                    seen += out.read(100)
                os.close(hold)
            with open("in", "wb", buffering=0) as go:
                hold = os.open("in", os.O_RDONLY | os.O_NONBLOCK)
                go.write(b"1\n2\n3\n")
                out, err = worker.communicate(timeout=PATIENCE)
                os.close(hold)
            equal((worker.returncode, out, err), (0, "", ""))
            equal(listed(client), [])

    def test_a_signal_lets_commands_end(self):
        with serving() as client:
            client.run(0, "put", "x")
            client.run(0, "put", "y")
            worker = started(client)
            worker.send_signal(signal.SIGTERM)
            matches("stopping when 1 command has ended", worker.stderr.readline())
            with open("in", "wb") as go:
                go.write(b"go\n")
            worker.communicate(timeout=PATIENCE)
            equal(worker.returncode, 0)
            equal([(job["id"], job["state"], job["reserves"]) for job in listed(client)], [(2, "ready", 0)])

    def test_a_second_signal_gives_the_job_back(self):
        with serving() as client:
            client.run(0, "put", "x")
            worker = started(client)
            worker.send_signal(signal.SIGINT)
            matches("stopping", worker.stderr.readline())
            worker.send_signal(signal.SIGINT)
            matches("job 1: its command was killed", worker.communicate(timeout=PATIENCE)[1])
            equal(worker.returncode, 1)
            equal([(job["state"], job["error"]) for job in listed(client)], [("ready", "the worker was stopped")])

    def test_a_worker_keeps_no_file_of_what_has_ended(self):
        with serving() as client:
            client.run(0, "put", "--lines", stdin=b"x\n" * 40)
            command = ["sh", "-c", 'ulimit -n 24; exec "$0" "$@"', WEEKWHEEL, "work", "--drain", "--", "cat"]
            equal(subprocess.run(command, capture_output=True, env=client.environment(), check=True, timeout=PATIENCE).stdout, b"x" * 40)

    def test_a_worker_takes_jobs_of_several_tubes(self):
        with serving() as client:
            for tube in ("b", "a", "c", "default"):
                client.run(0, "put", "--lines", "--tube", tube, stdin=b"x\n" * 60)
            show = ("--drain", "--", "sh", "-c", "echo $WEEKWHEEL_TUBE")
            # Without weights in the order of the server, with weights mostly from the heavy one, and then the rest.
            equal(client.run(0, "work", "-t", "c", "-t", "default", *show).out, "c\n" * 60 + "default\n" * 60)
            seen = client.run(0, "work", "-t", "a=9", "-t", "b", *show).out.split()
            equal((seen.count("a"), seen.count("b")), (60, 60))
            check(seen[:50].count("b") <= 20, seen)

    def test_a_worker_with_weights_waits_for_all_its_tubes(self):
        with serving() as client:
            worker = client.start("work", "-t", "a=9", "-t", "b=2", "-t", "default", "--timeout", "1s", "--", "cat")
            until(lambda: objects(client.run(0, "stats", "--all", "--json").out)[0]["current-waiting"] == 1, "it waits")
            end = time.monotonic() + 1.5
            while time.monotonic() < end:  # it must not think that an answer is missing
                client.run(0, "stats")
            for number in range(30):
                client.run(0, "put", "-t", ("a", "b", "default")[number % 3], "x")
            until(lambda: not listed(client), "all are done")
            worker.terminate()
            equal((worker.communicate(timeout=PATIENCE), worker.returncode), (("x" * 30, ""), 0))

    def test_a_command_that_runs_too_long_is_ended(self):
        with serving() as client:
            client.run(0, "put", "x")
            ended = client.run(0, "work", "--drain", "--run-timeout", "50ms", "--", "sleep", "60")
            matches("job 1, attempt 1: 'it ran too long: signal 15 .Terminated.'; again in ", ended.err)
            client.run(0, "kick", "--id", "1")
            ended = client.run(0, "work", "--drain", "--run-timeout", "50ms", "--kill-after", "50ms", "--", "sh", "-c",
                               "trap '' TERM; while :; do sleep 1; done")
            matches("it ran too long: signal 9 .Killed.", ended.err)
            equal(listed(client)[0]["error"], "it ran too long: signal 9 (Killed)")

    def test_the_output_of_commands_goes_to_the_log(self):
        with serving() as client:
            client.run(0, "put", "x")
            ended = client.run(0, "work", "--drain", "--log", "--", "sh", "-c", "echo out; echo err >&2; printf tail")
            equal((ended.out, ended.err), ("", "job 1: out\njob 1: err\njob 1: tail\n"))

    def test_a_waiting_worker_ends_at_once(self):
        with serving() as client:
            worker = client.start("work", "-n", "4", "--", "true")
            until(lambda: objects(client.run(0, "stats", "--all", "--json").out)[0]["current-waiting"] == 4, "4 wait")
            worker.terminate()
            equal((worker.communicate(timeout=PATIENCE), worker.returncode), (("", ""), 0))

    def test_a_cancelled_job_is_not_reported_as_done(self):
        with serving() as client:
            client.run(0, "put", "--key", "k", "x")
            worker = started(client, "--drain", "--json")
            equal(client.run(0, "cancel", "--key", "k").out, "k cancelled; it is being run now, for the last time\n")
            with open("in", "wb") as go:
                go.write(b"go\n")
            matches('"id": "1"', worker.communicate(timeout=PATIENCE)[0])
            equal(worker.returncode, 0)
            equal(listed(client), [])

    def test_top_draws_frames(self):
        with serving() as client:
            client.run(0, "put", "--tube", "mail", "--in", "10m", "x")
            for i in range(12):
                client.run(0, "put", "--tube", f"tube{i:02}", "x")
            frame = client.run(0, "top", "--once").out
            lines = frame.splitlines()
            equal(len(lines), 23)
            check(max(map(len, lines)) < 80, frame)
            check("\033" not in frame, frame)
            matches(r"^mail +0 +1 +0 +0 ", frame)
            matches(r"^\.\.\. and 7 more$", frame)
            matches(r"^jobs: 12 ready, 1 delayed", frame)
            matches(r"^Overdue 12; due in 60 s: 0, 1 h: 1, 1 d: 1, 7 d: 1$", frame)
            matches(r"^nothing is overdue$", frame)
            client.run(0, "advance", "90")
            matches(r"^oldest overdue: 1 min 30 s$", client.run(0, "top", "--once").out)
            known = json.loads(client.run(0, "top", "--json").out)
            equal([known[name] for name in ("ready", "delayed", "overdue", "oldest", "workers")], [12, 1, 12, 90, 0])
            equal([(tube["name"], tube["ready"], tube["delayed"]) for tube in known["tubes"][1:3]],
                  [("mail", 0, 1), ("tube00", 1, 0)])
            equal([(len(wheel["slots"]), sum(wheel["slots"])) for wheel in known["wheels"].values()],
                  [(60, 0), (60, 1), (24, 1), (7, 1)])
            now = datetime.datetime.fromisoformat(known["time"]).astimezone()
            equal([known["wheels"][name]["hand"] for name in ("sec", "min", "hour", "day")],
                  [now.second, now.minute, now.hour, now.weekday()])
            text = run_top(client, NO_COLOR=None)
            matches(r"^mail +0 +1 +0 +0 ", top_frame(text))
            check("\033[1m" in text and text.endswith("\033[?25h\033[?1049l"), repr(text))
            check(not re.search("\033\\[[0-9;]*m", run_top(client, NO_COLOR="1")), "colour in spite of NO_COLOR")

    def test_top_turns_its_wheels(self):
        with serving() as client:
            now = objects(client.run(0, "advance", "0", "--json").out)[0]["now"]
            # To ten seconds before a full minute, and not in the last minutes of an hour.
            client.run(0, "advance", str(110 - now % 60 + (600 if now % 3600 > 3000 else 0)))
            now = objects(client.run(0, "advance", "0", "--json").out)[0]["now"]
            minute, hour, day = now // 60 % 60, now // 3600 % 24, (now // 86400 + 3) % 7
            for after in ("5", "5", "40", "5m", "2h"):
                client.run(0, "put", "--in", after, "x")
            top = Top(client, LC_ALL="C", NO_COLOR=None)
            frame = top.wait(lambda frame: True)
            equal(wheel(frame, "sec"), (slots({55: "@", 30: "+"}), 50))
            equal(wheel(frame, "min"), (slots({minute: "@", minute + 1: "+", minute + 5: "+"}), minute))
            equal(wheel(frame, "hour")[1], hour)
            equal(wheel(frame, "day")[1], day)
            matches(r"^Overdue 0; due in 60 s: 3, 1 h: 4, 1 d: 5, 7 d: 5$", frame)
            client.run(0, "advance", "3")
            frame = top.wait(lambda frame: wheel(frame, "sec")[1] == 53)
            equal(wheel(frame, "sec")[0], slots({55: "@", 30: "+"}))
            # What came in since the frame before.
            matches(r"^default .* 0\.0 +0\.0$", frame)
            client.run(0, "advance", "8")
            frame = top.wait(lambda frame: wheel(frame, "sec")[1] == 1 and "overdue: 6 s" in frame)
            equal(wheel(frame, "sec")[0], slots({30: "@"}))
            equal(wheel(frame, "min"), (slots({minute + 1: "@", minute + 5: "@"}), minute + 1))
            matches(r"^Overdue 2; due in 60 s: 1, 1 h: 2, ", frame)
            check("\033[7m" in top.end(), "the hand's slot is not marked")

    def test_top_fits_the_terminal(self):
        with serving() as client:
            client.run(0, "put", "--in", "5", "x")
            equal(wheel(client.run(0, "top", "--once", LC_ALL="C.UTF-8").out, "sec")[0].strip(), "\u2588")
            # A dumb terminal has no second screen and no cursor, so frames come one below the other.
            top = Top(client, TERM="dumb", LC_ALL="C.UTF-8")
            while not re.search(rb"\nday .*\n.*\n", top.seen):
                top.seen += os.read(top.leader, 65536)
            text = top.end()
            check("\033" not in text and "\u2588" not in text, repr(text))

    def test_top_in_any_size(self):
        with serving() as client:
            for i in range(12):
                client.run(0, "put", "--tube", f"tube{i:02}", "x")
            client.run(0, "put", "--tube", "a-long-name" * 12, "--in", "1d", "x")
            client.run(0, "limit", "mail", "--running", "2", "--rate", "100/1m")
            client.run(0, "schedule", "add", "t\u00e4glich", "0 3 * * *", "--tz", "Europe/Berlin", "--tube", "nightly",
                       "--start", "2099-01-01T00:00Z")
            client.run(0, "schedule", "add", "hourly", "@hourly", "--tz", "UTC")
            top = Top(client, 5, 20, LC_ALL="C.UTF-8")
            frame = top.wait(lambda frame: True)
            matches(r"^\d{4}-\d\d-\d\d [0-9:]{8}\n12 ready, 0 buried\na-long-name +0\n\.\.\. and 13 more\n\? helps, q ends$", frame)
            frame = top.resize(12, 40)
            matches(r"^TUBE +READY +DELAYED +BURIED$", frame)
            matches(r"^sec  .{30}$", frame)
            check("SCHEDULE" not in frame and "^" not in frame, frame)
            frame = top.resize(40, 100)
            matches(r"^mail +- +0 +2 +100 in 1 min +0$", frame)
            matches(r"^hourly  +20.*\nt\u00e4glich +20\d\d-\d\d-\d\d [0-9:]+\+00:00 +nightly +0 3 \* \* \* +Europe/Berlin$", frame)
            matches("^tube11 ", top.resize(100, 300))
            matches("^" + "a-long-name" * 12 + " ", top.resize(24, 300))
            for rows, columns in ((1, 1), (2, 10), (6, 20), (24, 79), (5, 300), (100, 20), (24, 80)):
                top.resize(rows, columns)
            top.end()

    def test_top_helps(self):
        with serving() as client:
            top = Top(client, 9, 20)
            top.wait(lambda frame: "ready" in frame)
            top.key(b"?")
            matches(r"^q or Ctrl-C ends. \?\nshows this help;\n", top.wait(lambda frame: "any key" in frame))
            # An arrow is several bytes and still one key.
            top.key(b"\033[B")
            pages = 2
            while "any key" in top.wait(lambda frame: "q or Ctrl-C" not in frame):
                page = top_frame(top.seen.decode())
                top.key(b" ")
                top.wait(lambda frame, page=page: frame != page)
                pages += 1
            check(3 < pages < 9, pages)
            top.resize(24, 80)
            top.key(b"h")
            matches(r"^BURIED jobs failed: 'weekwheel peek' shows why", top.wait(lambda frame: "any key" in frame))
            top.key(b"x")
            top.wait(lambda frame: "ready" in frame)
            top.end()

    def test_top_ends_with_a_signal(self):
        with serving() as client:
            top = Top(client)
            top.wait(lambda frame: True)
            check(top.end(signal.SIGTERM).endswith("\033[?25h\033[?1049l"), "the screen is not as it was")

    def test_a_wrong_command_line_is_explained(self):
        with serving() as client:
            for arguments, said in {
                ("put",): "a body is missing",
                ("put", "a", "b"): "one body is expected",
                ("put", "--in", "1", "-i", "2", "x"): "--in is given twice: leave one out",
                ("put", "-t", "a", "--tube=b", "x"): "--tube is given twice",
                ("list", "--server", "a:1", "-s", "b:1"): "--server is given twice",
                ("put", "--in", "1h30", "x"): "--in '1h30': at its end: expected a unit",
                ("put", "--in", "3d12x", "x"): "--in '3d12x': at 'x': expected a unit",
                ("put", "--at", "2026-02-30", "x"): "at '30': expected a day that this month has",
                ("put", "--in", "1", "--at", "@1", "x"): "leave one out",
                ("put", "--key", "", "x"): "expected 1 to 200 bytes",
                ("put", "--key", "k" * 201, "x"): "expected 1 to 200 bytes",
                ("put", "--tube", "a b", "x"): "--tube 'a b': expected a name",
                ("put", "--tube", "a\r\nquit", "x"): "--tube 'a\\?\\?quit': expected a name",
                ("put", "--missed", "skip", "--every", "1h", "x"): "go together",
                ("put", "--missed", "all", "x"): "--every is missing",
                ("put", "--run", "10ms", "x"): "from 1 s to",
                ("put", "--lines", "--key", "k"): "would replace",
                ("put", "--priority", "4294967296", "x"): "--priority '4294967296': expected a number from 0 to 4294967295",
                ("put", "--prioritty", "1", "x"): "did you mean '--priority'",
                ("put", "--delay", "1", "x"): "--in TIME puts it off",
                ("put", "--cron", "0 3 * * *", "x"): "'weekwheel schedule add NAME EXPRESSION BODY' puts a job at each time",
                ("put", "--tz", "UTC", "x"): "2026-12-01T09:00.02:00, or set TZ",
                ("work", "-t", "a", "--tube=a", "x"): "--tube 'a' is given twice",
                ("work", "-t", "a=0", "x"): "one with a weight from 1 on",
                ("work", "-t", "a:b", "x"): "expected a name",
                ("work", "--kill-after", "1", "x"): "--run-timeout, which is missing",
                ("pause", "mail"): "a time is missing",
                ("pause", "mail", "0"): "'0': expected a time such as",
                ("pause", "mail", "1h", "x"): "one tube, and one time, is expected",
                ("resume",): "a tube is missing",
                ("purge",): "a tube is missing",
                ("purge", "a", "b"): "one tube at a time",
                ("bury",): "give the ids",
                ("bury", "1", "--reason", ""): "1 to 255 bytes",
                ("cancel", "1", "--all"): "give the ids of jobs, or --key, or which",
                ("cancel", "--state", "reserved"): "is cancelled by its --key",
                ("kick", "1", "--all"): "give one of",
                ("kick", "--tube", "t", "7"): "an id needs no --tube; for up to 7 jobs of it give --most 7",
                ("kick", "1", "2"): "expected the id of one job",
                ("drain",): "'weekwheel work --drain' ends when no job is ready",
                ("move", "1"): "--in or --at",
                ("move", "--in", "1"): "the id of a job, or --key",
                ("cancel",): "the ids of jobs, or --key",
                ("cancel", "k"): "'k': expected the id of a job",
                ("list", "--state", "redy"): "expected delayed, ready",
                ("list", "x"): "no operand",
                ("peek",): "give one of",
                ("peek", "1", "--ready"): "give one of",
                ("kick",): "give one of",
                ("kick", "all"): "'all': expected the id",
                ("kick", "--most", "0"): "a whole number from 1 on",
                ("work", "--drain"): "a command is missing",
                ("work", "-n", "0", "x"): "from 1 to 256",
                ("advance",): "one duration",
                ("advance", "soon"): "at byte 1: expected a number",
                ("sttas",): "did you mean 'stats'",
            }.items():
                result = client.run(2, *arguments)
                matches(said, result.err, result)
                equal(result.out, "")
            equal(listed(client), [])
            matches("not a command that can be run", client.run(2, "work", "--", "nonesuch").err)

    def test_every_command_has_a_help_with_an_example(self):
        with serving() as client:
            for command in "put move cancel list peek bury kick purge pause resume stats forecast work top advance schedule cron".split():
                text = client.run(0, command, "--help").out
                matches(rf"^Examples?:\n  weekwheel {command}\b", text)
                equal(client.run(0, "help", command).out, text)
                check(max(map(len, text.splitlines())) <= 81, text)

    def test_a_server_on_a_unix_socket(self):
        with serving("--unix", os.path.abspath("socket")) as client:
            equal(client.run(0, "put", "--server", "unix:" + os.path.abspath("socket"), "x").out, "1 due now\n")
            equal(len(listed(client)), 1)


main()
