#!/usr/bin/env python3
"""weekwheel-sessiond --recover: what is whole and not stale is back from a damaged directory.

WW_STATES is how many directories are damaged at random (15).
"""
# tier: check
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess

from sessiond import SESSIOND, Sessiond
from harness import Case, Server, check, compiled, equal, main, matches, seed, until

OK = b"+OK\r\n"
STATES = int(os.environ.get("WW_STATES") or 15)


def refused(*arguments):
    done = subprocess.run([SESSIOND, "--listen", "127.0.0.1:0", *arguments], capture_output=True, timeout=60, text=True,
                          check=False)
    equal(done.returncode, 1)
    return done.stderr


def count(server):
    with server.client() as a:
        return int(a.ask("DBSIZE")[1:-2])


class History:
    """What each key has at last. Each value says which change it was."""

    def __init__(self, chance):
        self.chance, self.left, self.number = chance, {}, 0

    def change(self, client):
        self.number += 1
        key = f"key{self.chance.randrange(40)}"
        value = f"change-{self.number:06}-" + "x" * self.chance.randrange(200)
        drawn = self.chance.random()
        if drawn < 0.6:
            client.ask("SET", key, value, "EX", 1000)
            self.left[key] = value
        elif drawn < 0.75:
            client.ask("EXPIRE", key, 10000)
        elif drawn < 0.99:
            client.ask("DEL", key)
            self.left.pop(key, None)
        else:
            client.ask("FLUSHALL")
            self.left.clear()


def write(history):
    """A directory with several files of the journal, and perhaps an image in the middle."""
    for _ in range(history.chance.randrange(1, 4)):
        with Sessiond("--data", "data", "--sync", "always") as server, server.client() as a:
            for _ in range(history.chance.randrange(10, 80)):
                history.change(a)
            if history.chance.random() < 0.3:
                equal(a.ask("SAVE"), OK)
            for _ in range(history.chance.randrange(80)):
                history.change(a)
            server.stop(signal.SIGKILL)


def journals():
    return sorted(glob.glob("data/journal.*"), key=lambda path: int(path.rsplit(".", 1)[1]))


def damage(chance):
    """Damage one file of the journal in some places. Returns what was done, and where it ends: a file's index, and the byte."""
    files = journals()
    at = chance.randrange(len(files))
    with open(files[at], "r+b") as file:
        data = file.read()
        used = len(data.rstrip(b"\0"))
        how = chance.choice(["bytes", "bytes", "bytes", "cut", "head", "gone", "former" if at else "head"])
        end = used
        if how == "bytes":
            for _ in range(chance.choice([1, 2, 8])):
                place = chance.randrange(40, used) if used > 40 else 0
                file.seek(place)
                # More than lies between two records. No byte becomes the zero that would be a torn end.
                file.write(bytes(byte ^ 0x55 for byte in data[place:place + 8]))
                end = max(place, end if end < used else 0)
        elif how == "cut":
            file.truncate(chance.randrange(used + 1))
        elif how == "head":
            file.seek(0)
            file.write(b"damage")
            end = 0
    if how == "gone":
        os.remove(files[at])
    elif how == "former":
        shutil.copy(files[0], files[at])
    return how, at, end


def whole(files, at, end):
    """The values whose records are behind the damage for certain: a record behind that of the damage."""
    values = set()
    for index in range(at, len(files)):
        data = files[index]
        if index == at:
            data = data[end:].partition(b"change-")[2]
        values |= set(re.findall(rb"change-\d{6}-x*", data))
    return values


class Recover(Case):
    def test_what_is_whole_is_recovered(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            for number in range(3000):
                equal(a.ask("SET", "k%d" % number, "v" * 100, "EX", 1000), OK)
            equal(a.ask("SAVE"), OK)
            equal(a.ask("SET", "later", 1), OK)
            server.stop(signal.SIGKILL)
        with open("data/sessions", "r+b") as file:
            file.seek(1000)
            file.write(b"damage")
        matches("--recover", refused("--data", "data"))
        with Sessiond("--data", "data", "--recover") as server, server.client() as a:
            matches("damaged at byte", server.said)
            check("stale" not in server.said, "the journal is whole: " + server.said)
            left = count(server)
            assert 2000 < left < 3000, left
            equal(a.ask("EXISTS", "later"), b":1\r\n")
            equal(a.ask("SET", "new", 1), OK)
            server.stop(signal.SIGKILL)
        equal(sorted(os.listdir("data/damaged"))[-1], "sessions")
        with Sessiond("--data", "data") as server:
            equal(count(server), left + 1)
        matches("move it away", refused("--data", "data", "--recover"))

    def test_an_image_whose_head_is_damaged_is_read(self):
        """But it does not say where the journal goes on: what it has may be stale."""
        for lost in False, True:
            with Sessiond("--data", "data") as server, server.client() as a:
                for number in range(3000):
                    equal(a.ask("SET", "k%d" % number, "v" * 100, "EX", 1000), OK)
                equal(a.ask("SAVE"), OK)
                equal(a.ask("SET", "later", 1), OK)
                server.stop(signal.SIGKILL)
            with open("data/sessions", "r+b") as file:
                file.seek(16)
                file.write(b"damage")
            for path in journals() if lost else ():
                os.remove(path)
            shutil.copytree("data", "copy")
            with Sessiond("--data", "data", "--recover") as server:
                matches("sessions is damaged at byte 0", server.said)
                matches("3000 sessions are left out as stale", server.said)
                equal(count(server), 0 if lost else 1)
            with Sessiond("--data", "copy", "--recover-stale") as server:
                matches("3000 of them are stale", server.said)
                equal(count(server), 3000 if lost else 3001)
            for folder in "data", "copy":
                shutil.rmtree(folder)

    def test_what_may_be_stale_is_left_out(self):
        with Sessiond("--data", "data", "--sync", "always") as server, server.client() as a:
            for key, value in (("out", 1), ("changed", 1), ("touched", 1)):
                equal(a.ask("SET", key, value, "EX", 1000), OK)
            equal(a.ask("DEL", "out"), b":1\r\n")
            equal(a.ask("SET", "changed", 2, "EX", 1000), OK)
            equal(a.ask("EXPIRE", "touched", 10000), b":1\r\n")
            equal(a.ask("SET", "new", 1, "EX", 1000), OK)
            server.stop(signal.SIGKILL)
        path, = glob.glob("data/journal.*")
        with open(path, "r+b") as file:
            journal = file.read()
            # Each key is in its record: those of the changes are damaged.
            for key in b"out", b"changed":
                file.seek(journal.rindex(key))
                file.write(b"x")
        shutil.copytree("data", "copy")
        with Sessiond("--data", "data", "--recover") as server, server.client() as a:
            equal((a.ask("EXISTS", "out", "changed", "touched"), a.ask("GET", "new")), (b":0\r\n", b"$1\r\n1\r\n"))
            matches("1 sessions are back", server.said)
            matches("warning: 3 sessions are left out as stale: .* in data/damaged, and --recover-stale would", server.said)
        with Sessiond("--data", "data") as server:
            equal((count(server), "stale" in server.said), (1, False))
        with Sessiond("--data", "copy", "--recover-stale") as server, server.client() as a:
            equal((a.ask("GET", "out"), a.ask("GET", "changed"), a.ask("EXISTS", "touched", "new")),
                  (b"$1\r\n1\r\n", b"$1\r\n1\r\n", b":2\r\n"))
            matches("warning: 3 of them are stale: .*FLUSHALL", server.said)

    def test_a_stale_session_whose_time_is_over_is_not_reported(self):
        """It did not expire if its user logged out, or used it once more."""
        library = compiled("support/shifted_wall.c", "-shared", "-fPIC")
        with Server() as jobs:
            more = ("--clock", "virtual", "--sync", "always", "--http", "127.0.0.1:0", "--expired-to", f"beanstalk://127.0.0.1:{jobs.port}/ended")
            with Sessiond(*more, "--data", "data", LD_PRELOAD=library, SHIFT="0") as server, server.client() as a:
                equal((a.ask("SET", "out", 1, "EX", 3600), a.ask("DEL", "out"), a.ask("SET", "new", 1, "EX", 3600)), (OK, b":1\r\n", OK))
                server.stop(signal.SIGKILL)
            path, = glob.glob("data/journal.*")
            with open(path, "r+b") as file:
                file.seek(file.read().rindex(b"out"))
                file.write(b"x")
            shutil.copytree("data", "copy")
            for folder, how, told in (("data", "--recover", {"new"}), ("copy", "--recover-stale", {"new", "out"})):
                with Sessiond(*more, "--data", folder, how, LD_PRELOAD=library, SHIFT="720000") as server, jobs.client() as client:
                    matches("2 have expired meanwhile", server.said)
                    until(lambda server=server: "weekwheel_sessiond_expired_to_waiting 0" in server.get("/metrics")[1], "all are told")
                    client.ask("watch ended")
                    keys = set()
                    while (answer := client.ask("reserve-with-timeout 0")).startswith("RESERVED"):
                        keys.add(json.loads(answer.split("|", 1)[1])["key"])
                        client.ask("delete " + answer.split()[1])
                    equal(keys, told)

    def test_whatever_is_damaged_nothing_former_is_back(self):
        number = seed()
        for state in range(STATES):
            chance = random.Random(f"{number}.{state}")
            shutil.rmtree("data", ignore_errors=True)
            history = History(chance)
            write(history)
            files = [open(path, "rb").read() for path in journals()]
            how, at, end = damage(chance)
            try:
                refused("--data", "data")
                with Sessiond("--data", "data", "--recover") as server, server.client() as a:
                    for key in (f"key{index}" for index in range(40)):
                        answer = a.ask("GET", key)
                        value = None if answer == b"$-1\r\n" else answer.split(b"\r\n")[1].decode()
                        there = history.left.get(key)
                        check(value in (None, there), (key, value, there))
                        check(value or not there or there.encode() not in whole(files, at, end), (key, there))
                    server.stop(signal.SIGKILL)
                with Sessiond("--data", "data") as server:
                    check("damaged" not in server.said, server.said)
            except BaseException:
                print(f"WW_SEED={number}, state {state}: {how} in file {at} up to byte {end}")
                raise


if __name__ == "__main__":
    main()
