#!/usr/bin/env python3
"""weekwheel fsck, export and import, as their users call them."""
# tier: check
import base64
import contextlib
import fcntl
import gzip
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

from harness import PATIENCE, WEEKWHEEL, Case, Server, alone, check, equal, main, matches, need_server, run, seed
from harness import exact_objects as objects

# What an import keeps of a job.
KEPT = ("tube", "key", "key_base64", "group", "group_base64", "state", "clock", "due", "every", "missed", "skip", "priority", "run",
        "attempts", "backoff", "backoff_max", "unique", "keep", "expire", "expired", "expires", "code", "headers", "then", "error", "body",
        "body_base64")
SOON = 4102444800  # 2100


@contextlib.contextmanager
def serving(folder, *options):
    """The program with a server that has its jobs in a folder."""
    with Server("--data", folder, *options) as server:
        yield server.program


def kept(jobs):
    return [{name: job.get(name) for name in KEPT} for job in jobs]


def encoded(data):
    return base64.b64encode(data).decode()


def lines_of(jobs):
    return "".join(json.dumps(job) + "\n" for job in jobs).encode()


def put(folder, *jobs, options=(), status=0):
    return alone.run(status, "import", *options, folder, stdin=lines_of(jobs))


def exported(folder):
    return objects(alone.run(0, "export", folder).out)


def variety():
    """Jobs that differ in every field."""
    yield {"body": ""}
    yield {"body": encoded(bytes(range(256)) * 40), "key": encoded(b"\0\xff\n\"k"), "tube": "t",
           "group": encoded(b"\0\xffg")}
    yield {"body": "eA==", "tube": "t", "clock": "wall", "due": SOON + 0.5, "priority": 0}
    yield {"body": "eA==", "tube": "t" * 200, "key": encoded(b"k" * 200), "due": SOON, "run": 1, "attempts": 4294967295}
    yield {"body": "eA==", "period": 0.001, "missed": "all", "due": SOON, "priority": 4294967295}
    yield {"body": "eA==", "period": 86400, "missed": "skip", "skip": 7.000000001, "backoff": 2, "backoff_max": 9,
           "due": SOON}
    yield {"body": "eA==", "state": "buried", "error": "\u00e4 \"quote\"\n", "key": encoded(b"b"), "attempts": 3}
    yield {"body": "eA==", "state": "buried", "clock": "wall", "tube": "t"}
    yield {"body": "eA==", "key": encoded(b"u"), "unique": 86400.5, "keep": 604800.25, "due": SOON}
    yield {"body": "x", "id": "1", "headers": {"tenant": "a\"b\\c", "empty": ""}, "due": "2100-01-01T00:00:00Z"}
    yield {"body": "x", "id": "1", "then": {"tube": "t", "body": "y", "delay": 5}, "due": "2100-01-01T00:00:00Z"}
    yield {"body": "eA==", "clock": "wall", "expire": 60.5, "expired": "bury", "due": SOON}
    yield {"body": "x", "id": "1", "expire": 60, "expires": "2100-01-01T00:00:07.000000000Z", "due": "2100-01-01T00:00:00Z"}
    yield {"body": "x", "id": "1", "code": 2147483647, "due": "2100-01-01T00:00:00Z"}


def bytes_of(folder):
    with open(os.path.join(folder, "index.db"), "rb") as file:
        return bytearray(file.read())


def size_of(folder):
    """Without the journal, which a reader does not count, and what is memory."""
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)
               if not name.startswith("journal") and not name.endswith("-shm"))


def damage(folder, data):
    """Make a copy of the folder one with another index."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree("one", folder)
    with open(os.path.join(folder, "index.db"), "wb") as file:
        file.write(data)


def looked_into(folder):
    """What fsck prints about a damaged directory, and the ids that export saves."""
    found, saved = alone.run(1, "fsck", folder), alone.run(1, "export", folder)
    matches(r"^\d+ problems?$", found.out)
    return found.out, [job["id"] for job in objects(saved.out)]


class StoreCase(Case):
    def setUp(self):
        need_server()
        super().setUp()


class Stores(StoreCase):
    def test_what_is_exported_is_imported(self):
        put("one", *variety())
        first = alone.run(0, "export", "one")
        result = alone.run(0, "import", "two", stdin=first.raw)
        equal(result.out, "14 jobs put, with new ids from 1 to 14\n")
        equal(result.err, "", "standard error of no terminal")
        one, two = objects(first.out), exported("two")
        equal(kept(two), kept(one))
        equal([job["error"] for job in two][6], "\u00e4 \"quote\"\n")
        for folder in ("one", "two"):
            said = objects(alone.run(0, "fsck", "--json", folder).out)[0]
            equal(said, {"sound": True, "problems": [], "jobs": 14, "delayed": 10, "ready": 2, "buried": 2, "tubes": 3,
                         "accepted": 14, "ended": 0, "disk": size_of(folder)})

    def test_limits_are_exported_and_imported(self):
        limits = (("mail", "running=5"), ("mail", "starts=100 per=60 burst=20 each=yes"), ("mail", "running=1 group=%00b"), ("mail", "group=heavy weight=3"), ("other", "starts=7 per=0.5"))
        with Server("--data", "one") as server, server.client() as client:
            for tube, numbers in limits:
                equal(client.ask("limit-tube %s %s" % (tube, numbers)), "LIMITED")
        with Server("--data", "one") as server, server.client() as client:
            before = client.jobs("list-limits")
        equal([(limit["group"], limit["weight"]) for limit in before], [(None, 1), (None, 1), ("%00b", 1), ("heavy", 3), (None, 1)])
        text = alone.run(0, "export", "one").raw
        job = b'{"body": "", "state": "buried"}\n'
        equal(alone.run(0, "import", "two", stdin=text + job).out, "1 job put, with new ids from 1 to 1; 5 limits set\n")
        equal(objects(alone.run(0, "import", "--json", "two", stdin=text).out), [{"put": 0, "replaced": 0, "left_out": 0, "limits": 5}])
        with Server("--data", "two") as server, server.client() as client:
            equal([{name: value for name, value in limit.items() if name != "left"} for limit in client.jobs("list-limits")],
                  [{name: value for name, value in limit.items() if name != "left"} for limit in before])
        for line, said in ((b'{"limit": "all", "tube": "a"}', "expected .tube., .each. or .group."),
                           (b'{"limit": "tube", "tube": "a", "weight": 2}', "'weight' in the limit of a group"),
                           (b'{"limit": "group", "tube": "a", "group": "Yg==", "weight": 1001}', "'weight' is '1001'"),
                           (b'{"limit": "tube", "running": 1}', "the name of a tube"),
                           (b'{"limit": "group", "tube": "a", "running": 1}', "as 'group' of a limit"),
                           (b'{"limit": "tube", "tube": "a", "running": -1}', "'running' is '-1'; expected a whole number"),
                           (b'{"limit": "tube", "tube": "a", "starts": 1, "per": "x"}', "'per' is 'x'; expected seconds"),
                           (b'{"limit": "tube", "tube": "a", "starts": 9, "per": 0.0001}', "at most a million")):
            matches("standard input:1: .*" + said, alone.run(1, "import", "two", stdin=line).err)

    def test_a_due_time_of_null_is_none(self):
        for line in (b'{"id": "1", "body": "", "due": null}', b'{"body": "", "due": null}'):
            alone.run(0, "import", "one", stdin=line)
        equal([job["state"] for job in exported("one")], ["ready", "ready"])

    def test_a_limit_says_whose_it_is(self):
        for whose, left in (("tube", (False, None)), ("each", (True, None)), ("group", (False, "g"))):
            line = '{"limit": "%s", "tube": "%s", "group_base64": "Zw==", "each": true, "running": 1}' % (whose, whose)
            alone.run(0, "import", whose, stdin=line.encode())
            limit, = exported(whose)
            equal((limit["limit"], limit["each"], limit.get("group")), (whose, *left))

    def test_a_body_is_as_long_as_its_bytes(self):
        """Whatever the line says before or after it."""
        for line in (b'{"id": "1", "body": "abc", "length": 3000}', b'{"id": "1", "length": 3000, "body": "abc"}',
                     b'{"body": "YWJj", "length": 3000}', b'{"length": 0, "body_base64": "YWJj"}'):
            alone.run(0, "import", "one", stdin=line)
        equal([(job["body"], job["length"]) for job in exported("one")], 4 * [("abc", 3)])

    def test_texts_are_any_characters(self):
        """Escaped or not, as surrogate pairs or not, an error comes back unchanged. One that is too long is cut off."""
        texts = ["\U0001f600", "\u20ac\u00e4\U0010ffff", "\\/\b\f\t\x7f", "x" * 254 + "\u00e4", "\ufffd" * 255]
        jobs = [{"body": "", "state": "buried", "error": text, "tube": "\U0001f600"} for text in texts]
        for escaped in (True, False):
            lines = "".join(json.dumps(job, ensure_ascii=escaped) + "\n" for job in jobs)
            alone.run(0, "import", "one", stdin=lines.encode())
        expected = texts[:3] + ["x" * 254, "\ufffd" * 85]
        equal([job["error"] for job in exported("one")], expected * 2)
        equal({job["tube"] for job in exported("one")}, {"\U0001f600"})

    def test_due_times_are_kept_to_the_nanosecond(self):
        put("one", {"body": "", "due": 0})
        line = b'{"body": "", "clock": "%s", "due": 4102444800.123456789}\n'
        alone.run(0, "import", "one", stdin=line % b"wall" + line % b"elapsed")
        equal([job["due"] for job in exported("one")][1:], ["2100-01-01T00:00:00.123456789Z"] * 2)

    def test_many_jobs_are_imported_in_batches(self):
        jobs = [{"body": encoded(b"body %d" % i), "due": SOON + i, "key": encoded(b"%d" % i)} for i in range(5001)]
        matches("^5001 jobs put, with new ids from 1 to 5001$", put("one", *jobs).out)
        alone.run(0, "export", "one", "--output", "file")
        with open("file", "rb") as file:
            text = file.read()
        equal(len(text.splitlines()), 5001)
        equal(os.path.exists("file.part"), False)
        with gzip.open("file.gz", "wb") as out:
            out.write(text)
        equal(objects(alone.run(0, "import", "--json", "two", "file.gz").out),
              [{"put": 5001, "replaced": 0, "left_out": 0, "first": 1, "last": 5001}])
        equal(kept(exported("two")), kept(objects(text.decode())))
        matches("^5001 jobs in 1 tube: 5001 delayed, 0 ready, 0 buried$", alone.run(0, "fsck", "two").out)

    def test_jobs_with_a_key_that_exists_are_left_out(self):
        put("one", {"body": encoded(b"old"), "key": "aw==", "due": SOON}, {"body": "", "key": "Yg==", "state": "buried"})
        new = [{"body": encoded(b"new"), "key": "aw=="}, {"body": "", "key": "bmV3"}, {"body": "", "key": "Yg=="}]
        result = put("one", *new, status=1)
        equal(result.out, "1 job put, with new ids from 3 to 3, 2 left out\n")
        matches(r"^standard input:1: job 1 of tube default has the key 'k' already; .*--replace$", result.err)
        matches(r"^standard input:3: job 2 of tube default has the key 'b' already", result.err)
        equal(exported("one")[0]["body"], "old")
        equal(put("one", *new, options=["--replace"]).out, "3 jobs put, 3 in place of others\n")
        equal([(job["id"], job["body"], job["state"]) for job in exported("one")],
              [(str(i), body, "ready") for i, body in enumerate(("new", "", ""), 1)])
        put("one", dict(new[0], state="buried"), options=["--replace"])
        equal(exported("one")[0]["state"], "buried")
        alone.run(0, "fsck", "one")

    def test_keys_of_jobs_that_have_ended_stay_taken(self):
        ended = {"body": "", "key": "aw==", "state": "ended", "unique": 3600, "due": time.time() - 600}
        job = {"body": "", "key": "aw=="}
        equal(put("one", ended, dict(ended, key="Yg==", due=time.time() - 3600)).out, "1 job put, with new ids from 1 to 1\n")
        equal([(line["state"], 2900 < float(line["left"]) <= 3000, line["key"]) for line in exported("one")], [("ended", True, "k")])
        matches("^0 jobs in 0 tubes", alone.run(0, "fsck", "one").out)
        alone.run(0, "import", "two", stdin=alone.run(0, "export", "one").raw)
        result = put("two", job, status=1)
        matches("job 1 has the same key, which is not free yet, although it has ended; expected another, or --replace", result.err)
        equal(put("two", job, options=["--replace"]).out, "1 job put, 1 in place of others\n")
        equal([line["state"] for line in exported("two")], ["ready"])
        put("two", dict(job, unique=60), options=["--replace"])
        equal([float(line["unique"]) for line in exported("two")], [60])
        alone.run(0, "fsck", "two")

    def test_wrong_lines_are_named_and_left_out(self):
        wrong = {
            '{"body": "", "unique": 5}': "expected a 'key' and no 'every' beside 'unique'",
            '{"body": "", "key": "aw==", "state": "ended"}': "expected seconds as 'unique'",
            "nonsense": "at byte 1: expected an object", "{}": "expected a 'body'", '{"body": ""': "at byte 12: expected",
            '{"body": ""} x': "at byte 12: expected", '[{"body": ""}]': "at byte 1: expected",
            '{"body": "x"}': "'body' is 'x'; expected", '{"body": "x==="}': "'body'", '{"body": 1}': "'body'",
            '{"body": "eA==", "due": "1"}': "'due' is '1'; expected a time", '{"body": "", "due": -1}': "'due'",
            '{"body": "", "due": 1e9}': "'due'", '{"body": "", "due": 99999999999}': "'due'",
            '{"body": "", "due": 9200000000}': "due in more than 146 years",
            '{"body": "", "left": 4611686019}': "'left'", '{"body": "", "run": 0.5}': "'run'",
            '{"body": "", "period": 0.0001}': "'period'", '{"body": "", "priority": 4294967296}': "'priority'",
            '{"body": "", "priority": 18446744073709551617}': "'priority'", '{"body": "", "attempts": 1.5}': "'attempts'",
            '{"body": "", "tube": ""}': "'tube'", '{"body": "", "tube": "%s"}' % ("t" * 201): "'tube'",
            '{"body": "", "tube": "%s"}' % ("t" * 9000): "'tube'", '{"body": "", "key": "%s"}' % ("A" * 272): "'key'",
            '{"body": "", "key": 1}': "'key'", '{"body": "", "state": "odd"}': "'state' is 'odd'; expected",
            '{"body": "", "clock": "sun"}': "'clock'", '{"body": "", "missed": "none"}': "'missed'",
            '{"body": "", "body": ""}': "'body' is there twice", '{"body": "", "bdoy": ""}': "'bdoy' is nothing",
            '{"body": "", "error": {}}': "'error'", "\0": "at byte 1",
            # Of the form that export writes, which its id, its due time or other members show.
            '{"id": "1", "body": "", "key": 1}': "'key' is '1'; expected a text of 1 to 200 bytes",
            '{"id": "1", "body": "", "due": 4102444800}': "'due' is '4102444800'; expected a time",
            '{"every": 0, "body": "", "id": 1}': "'id' is '1'; expected a whole number as a string",
            '{"body_base64": "x"}': "'body_base64' is 'x'; expected base64",
            '{"body_base64": "", "body": ""}': "'body' is there twice",
            '{"body_base64": "", "state": "waiting"}': "'state' is 'waiting'; expected",
            '{"body_base64": "", "period": 1}': "'period' is nothing",
            r'{"body": "", "error": "\ud83d"}': "'error'", r'{"body": "", "error": "\ude00\ud83d"}': "'error'",
            r'{"body": "", "error": "a\u0000b"}': "'error'", r'{"body": "", "tube": "a\u0000b"}': "'tube'",
            r'{"body": "", "error": "\q"}': "'error'", r'{"body": "", "error": "\u12g4"}': "'error'",
            '{"body": "", "error": "\udce0\udc80\udc80"}': "'error'", '{"body": "", "tube": "\udcc0\udcaf"}': "'tube'",
            '{"body": "", "tube": "\udced\udca0\udc80"}': "'tube'", '{"body": "", "error": "\t"}': "'error'",
        }
        for line, expected in wrong.items():
            result = alone.run(1, "import", "one", stdin=b'{"body": ""}\n' + line.encode(errors="surrogateescape") + b'\n\n{"body": ""}\n')
            matches(r"^2 jobs put, .*, 1 left out$", result.out)
            matches("^standard input:2: .*" + re.escape(expected), result.err, line)
        with open("file", "wb") as out:
            out.write(b"x\n" * 50)
        result = alone.run(1, "import", "one", "file")
        equal(result.err.count("file:"), 21)
        matches("^file: 30 more lines were left out$", result.err)
        alone.run(0, "fsck", "one")

    def test_a_line_has_a_maximum_length(self):
        with open("file", "wb") as out:
            out.write(b'{"body": "' + b"A" * (66 << 20) + b'"}\n{"body": ""}\n')
        result = alone.run(1, "import", "one", "file")
        equal(result.out, "1 job put, with new ids from 1 to 1, 1 left out\n")
        matches("^file:1: the line is too long; expected 67108864 bytes at most$", result.err)
        with open("file", "wb") as out:
            out.write(lines_of([{"body": encoded(os.urandom(20 << 20))}] * 3))
        alone.run(0, "import", "two", "file")
        equal(len(exported("two")), 3)

    def test_random_lines_do_no_harm(self):
        rng = random.Random(seed())
        good = [json.dumps(job).encode() for job in variety()]
        bad = []
        for _ in range(2000):
            line = bytearray(rng.choice(good))
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(line))
                line[at:at + rng.randrange(3)] = bytes([rng.randrange(256)]) if rng.randrange(2) else b""
            bad.append(bytes(line).replace(b"\n", b" "))
        result = alone.run(1, "import", "--json", "--replace", "one", stdin=b"\n".join(bad))
        said = objects(result.out)[0]
        check(said["put"] + said["left_out"] <= 2000, said)
        alone.run(0, "fsck", "one")

    def test_a_store_that_cannot_be_opened_is_explained(self):
        os.mkdir("empty")
        os.mkdir("former")
        with open("former/data.mdb", "w"):
            pass
        with open("file", "wb") as out:
            out.write(b"x")
        for command in ("fsck", "export"):
            matches("former: was written by another version.*'weekwheel export'.*'weekwheel import'",
                    alone.run(1, command, "former").err)
            matches("missing: there is no such directory", alone.run(1, command, "missing").err)
            matches("empty: has no jobs in it", alone.run(1, command, "empty").err)
            matches("file: is not a directory", alone.run(1, command, "file").err)
            matches("expected a directory", alone.run(2, command).err)
            matches("'b': one directory is expected", alone.run(2, command, "a", "b").err)
            matches("did you mean '--help'", alone.run(2, command, "--hlep").err)
            matches(r"\n  weekwheel " + command, alone.run(0, command, "--help").out)
        matches("missing.json: No such file", alone.run(1, "import", "one", "missing.json").err)
        # The file of a crontab, too, is no reason to make one.
        matches("'crontb': there is no such directory; did you mean 'import crontab file'", alone.run(2, "import", "crontb", "file").err)
        matches("^0 jobs put, 1 left out$", alone.run(1, "import", "one", "file").out)
        equal([name for name in ("one", "crontb") if os.path.exists(name)], [], "a directory made for nothing")
        equal(alone.run(0, "import", "./crontb", "/dev/null").out, "0 jobs put\n")
        matches("^0 jobs in 0 tubes", alone.run(0, "fsck", "crontb").out)
        matches("'c': a directory and one file", alone.run(2, "import", "a", "b", "c").err)
        matches("a/b: ", alone.run(1, "import", "a/b").err)
        put("one", {"body": ""})
        matches("nowhere/file: No such file", alone.run(1, "export", "one", "-o", "nowhere/file").err)

    def test_a_full_disk_leaves_no_file(self):
        put("one", *[{"body": encoded(b"x" * 1000)}] * 100)
        matches("standard output: No space", run(None, "sh", "-c", '"$0" export one >/dev/full', WEEKWHEEL).err)
        with open("file", "wb") as out:
            out.write(b"before")
        limited = run(1, "sh", "-c", 'trap "" XFSZ; ulimit -f 100; "$0" export one -o file', WEEKWHEEL)
        matches("^weekwheel: file: File too large$", limited.err)
        with open("file", "rb") as file:
            equal(file.read(), b"before")
        equal(os.path.exists("file.part"), False)


# ---- Next to a server

class NextToAServer(StoreCase):
    def test_a_running_server_is_left_alone(self):
        with serving("one") as client:
            for i in range(20):
                client.run(0, "put", "--key", f"k{i}", "--in", "1d", f"body {i}")
            client.run(0, "put", "--tube", "ready", "now")
            result = alone.run(1, "import", "one", stdin=b'{"body": ""}\n')
            matches("one: a server has it open; end that one first", result.err)
            matches("^21 jobs in 2 tubes: 20 delayed, 1 ready, 0 buried$", alone.run(0, "fsck", "one").out)
            equal(len(exported("one")), 21)
            equal(client.run(0, "peek", "21", "--body").out, "now")
        put("one", {"body": ""})
        with serving("one") as client:
            matches("^state +ready$", client.run(0, "peek", "22").out)

    def test_a_busy_server_is_no_damage(self):
        over = threading.Event()
        with serving("one", "--sync", "system") as client:
            host, port = client.address.split(":")

            def be_busy():
                with socket.create_connection((host, int(port)), PATIENCE) as connection:
                    answers = connection.makefile("rb")
                    i = 0
                    while not over.is_set():
                        i += 1
                        # Each job is deleted again, so that the store stays small.
                        connection.sendall(b"use t%d\r\nput 0 86400 60 1\r\nx\r\n" % (i % 3))
                        answers.readline()
                        connection.sendall(b"delete " + answers.readline().split()[-1] + b"\r\n")
                        answers.readline()
            busy = threading.Thread(target=be_busy)
            busy.start()
            try:
                for _ in range(20):
                    matches("^sound$", alone.run(0, "fsck", "one").out)
            finally:
                over.set()
                busy.join()
            matches("^sound$", alone.run(0, "fsck", "one").out)

    def test_a_killed_server_has_lost_nothing(self):
        with Server("--data", "one") as server:
            for i in range(10):
                server.program.run(0, "put", "--in", "1d", "x")
            server.stop(signal.SIGKILL)
        matches("^10 jobs in 1 tube", alone.run(0, "fsck", "one").out)
        equal(len(exported("one")), 10)

    def test_jobs_come_back_from_a_backup(self):
        with serving("one") as client:
            client.run(0, "put", "--tube", "t", "--key", "k", "--in", "3d", "--every", "1d", "--attempts", "5", "later")
            client.run(0, "put", "--tube", "t", "--attempts", "1", "fails")
            client.run(0, "work", "--tube", "t", "--drain", "--", "sh", "-c", "echo why >&2; exit 3")
        alone.run(0, "export", "one", "-o", "file")
        alone.run(0, "import", "two", "file")
        with serving("two") as client:
            jobs = {int(job["id"]): job for job in objects(client.run(0, "list", "--json").out)}
            equal((jobs[1]["state"], jobs[1]["every"], jobs[1]["attempts"]), ("delayed", 86400, 5))
            equal(jobs[2]["state"], "buried")
            matches("why", jobs[2]["error"])
            client.run(0, "kick", "--tube", "t", "--most", "1")
            equal(client.run(0, "work", "--tube", "t", "--drain", "--", "cat").out, "fails")


# ---- Damage

class Damage(StoreCase):
    def test_a_flipped_bit_in_a_record_is_found(self):
        """The page that has it cannot be read. All other jobs can."""
        put("one", *[{"body": encoded(b"needle %d " % i + b"x" * 900), "due": SOON, "key": encoded(b"%d" % i)}
                     for i in range(100)])
        data = bytes_of("one")
        equal(data.count(b"needle 7 "), 1)
        data[data.find(b"needle 7 ")] ^= 1
        damage("two", data)
        result = alone.run(1, "fsck", "two")
        matches("^100 jobs were accepted and 0 have ended: 100 should be there", result.out)
        matches(r"^\d+ problems?$", result.out)
        matches("weekwheel recover two NEW", result.err)
        said = objects(alone.run(1, "fsck", "--json", "two").out)[0]
        equal(said["sound"], False)
        lost = 100 - said["jobs"]
        check(1 <= lost <= 5, f"{lost} jobs are lost")
        result = alone.run(1, "export", "two", "-o", "file")
        matches(f"two: {lost} of 100 jobs cannot be read and were left out", result.err)
        matches(f"^{100 - lost} jobs put", alone.run(0, "import", "three", "file").out)

    def test_a_file_that_was_cut_off_is_damaged(self):
        put("one", *[{"body": encoded(b"x" * 3000), "due": SOON} for _ in range(300)])
        data = bytes_of("one")
        for size in (0, 1, 4096, 4097, 8192, len(data) // 2, len(data) - 4096):
            damage("two", data[:size])
            matches(r"damaged|cut short|missing", alone.run(1, "fsck", "two").out, size)
            alone.run(1, "export", "two")

    def test_what_can_be_read_is_recovered(self):
        put("one", *[{"body": encoded(b"needle %d " % i + b"x" * 900), "due": SOON, "tube": f"t{i % 3}"}
                     for i in range(100)])
        def jobs(folder):
            return [(job["id"], job["tube"], job["body"], job["due"][:19]) for job in exported(folder)]

        before = jobs("one")
        result = alone.run(0, "recover", "one", "whole")
        matches("^100 jobs saved in whole$", result.err)
        equal(jobs("whole"), before)
        # A flipped bit is corrected. The first page has what SQLite begins with.
        data = bytes_of("one")
        data[100] ^= 1
        damage("two", data)
        matches("two is damaged|page 1 ", alone.run(1, "fsck", "two").out)
        result = alone.run(1, "recover", "two", "three")
        matches("^two/index.db: page 1 has a flipped bit$", result.out)
        equal(jobs("three"), before)
        # A page of noise is lost, with its jobs.
        page = data.find(b"needle 7 ") // 4096 * 4096
        data[page:page + 4096] = random.Random(1).randbytes(4096)
        damage("two", data)
        result = alone.run(1, "recover", "two", "four")
        matches(r"^two/index.db: page \d+ is damaged$", result.out)
        matches(r"^100 jobs were accepted and had not ended, and 9\d are saved$", result.out)
        check(90 < len(exported("four")) < 100, result)
        alone.run(0, "fsck", "four")
        # Nothing is overwritten, and what a server uses is left alone.
        matches("has jobs already", alone.run(1, "recover", "two", "four").err)
        with serving("one"):
            matches("a server has it open", alone.run(1, "recover", "one", "five").err)

    def test_any_damage_is_survived(self):
        """Whatever is in the file, the program ends by itself and not by a signal."""
        rng = random.Random(seed())
        put("one", *[{"body": encoded(b"x" * rng.randrange(6000)), "due": SOON + i, "key": encoded(b"%d" % i),
                      "tube": f"t{i % 5}"} for i in range(200)])
        whole = bytes_of("one")
        found = 0
        for i in range(60):
            data = bytearray(whole)
            page = rng.randrange(len(data) // 4096) * 4096
            if i % 3 == 0:  # a page of noise
                data[page:page + 4096] = rng.randbytes(4096)
            elif i % 3 == 1:  # the head of a page
                data[page + rng.randrange(24)] ^= 1 << rng.randrange(8)
            else:  # bits here and there
                for _ in range(200):
                    data[rng.randrange(4096, len(data))] ^= 1 << rng.randrange(8)
            damage("two", data)
            for command in ("fsck", "export"):
                ended = alone.run(None, command, "two")
                check(ended.status in (0, 1), f"round {i}: {ended}")
                if command == "fsck":
                    found += ended.status
                    last = ended.out.splitlines()[-1:]
                    check(ended.status == 0 or ended.err or (last and "problem" in last[0]), f"round {i}: {ended}")
        check(found > 20, f"damage was found in {found} of 60")


main()
