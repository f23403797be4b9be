#!/usr/bin/env python3
"""A disk that gets full, and a limit of the folder: new jobs are refused, others end, and it goes on when there is room."""
# tier: long, waits
import os
import re
import signal
import subprocess
import time
import unittest

from harness import Case, Fsck, Server, equal, main, matches, until

MEBI = 1 << 20
BODY = b"b" * 20000


def fill(client):
    """Put jobs until all are refused for a while, also when the index has done its work. Return the ids of the others."""
    ids, refused = [], 0
    while refused < 3:
        for _ in range(20):
            client.send(b"put 5 0 60 %d\r\n%s\r\n" % (len(BODY), BODY))
        answers = [client.line() for _ in range(20)]
        more = [int(answer.split()[1]) for answer in answers if answer.startswith("INSERTED ")]
        assert set(answers) - {"INSERTED %d" % job for job in more} <= {"OUT_OF_MEMORY"}, answers
        ids += more
        assert len(ids) < 100000
        refused = 0 if more else refused + 1
        if not more:
            time.sleep(0.25)
    return ids


def refuses(server, client, ids, why):
    """What may be done with a full store."""
    equal(client.put(BODY), "OUT_OF_MEMORY")
    equal(client.ask("put 5 0 60 1\r\nx"), "OUT_OF_MEMORY")
    status, text = server.get("/healthz")
    equal(status, 503)
    matches(why, text)
    assert "weekwheeld_store_writable 0" in server.metrics()
    # A worker ends its job, and another job is cancelled.
    answer = client.ask("reserve")
    job = int(answer.split()[1])
    equal(job, ids[0])
    equal(client.ask("delete %d" % job), "DELETED")
    equal(client.ask("delete %d" % ids[1]), "DELETED")
    equal(client.ask("delete %d" % ids[1]), "NOT_FOUND")
    return ids[2:]


def goes_on(server, client):
    until(lambda: client.ask("put 9 3600 60 1\r\nx").startswith("INSERTED "), "there is room", 0.05)
    equal(server.get("/healthz"), (200, "ok\n"))


def said_once(server, why):
    """One line when it begins and one when it ends, and not one for each refused job."""
    begun = re.findall(why + ": no jobs are accepted until there is room", server.said)
    ended = re.findall("there is room again: jobs are accepted", server.said)
    equal(len(begun), len(ended), server.said)
    assert 1 <= len(begun) <= 6, server.said


def same(client, ids):
    equal(sorted(job["id"] for job in client.all_jobs() if job["priority"] == 5), ids)


def size_of(folder):
    return sum(entry.stat().st_size for entry in os.scandir(folder))


class Room(Case):
    def small_disk(self, size):
        os.mkdir("disk")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size, "none", "disk"], capture_output=True,
                                 check=False)
        if mounted.returncode:
            raise unittest.SkipTest("no small disk can be mounted: " + mounted.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", "-l", os.path.abspath("disk")], check=False)

    def test_a_small_disk(self):
        self.small_disk(32 * MEBI)
        why = "the disk of disk/jobs is full"
        for sync in ("interval",):
            with Server("--data", "disk/jobs", "--sync", sync, "--http", "127.0.0.1:0") as server, server.client() as client:
                ids = fill(client)
                assert len(ids) * len(BODY) > 2 * MEBI, len(ids)
                ids = refuses(server, client, ids, why)
                same(client, ids)
                # A kill while it is full loses nothing, and it can be started.
                server.stop(signal.SIGKILL)
            with Server("--data", "disk/jobs", "--sync", sync, "--http", "127.0.0.1:0") as server, server.client() as client:
                same(client, ids)
                ids = refuses(server, client, ids + fill(client), why)
                # Others make room.
                subprocess.run(["mount", "-o", "remount,size=%d" % (64 * MEBI), "disk"], check=True)
                goes_on(server, client)
                more = int(client.put(BODY, priority=5).split()[1])
                same(client, ids + [more])
                server.stop()
            said_once(server, why)
            Fsck().check("disk/jobs")
            subprocess.run("rm -r disk/jobs", shell=True, check=True)
            subprocess.run(["mount", "-o", "remount,size=%d" % (32 * MEBI), "disk"], check=True)

    def test_a_limit(self):
        why = "jobs takes the 67108864 bytes that it may take"
        with Server("--data", "jobs", "--sync", "interval", "--max-disk", str(64 * MEBI),
                    "--http", "127.0.0.1:0") as server, server.client() as client:
            ids = fill(client)
            assert len(ids) * len(BODY) > 20 * MEBI, len(ids)
            assert size_of("jobs") < 72 * MEBI, size_of("jobs")
            ids = refuses(server, client, ids, why)
            # What ends makes room, be it a part or nearly all, and as much fits as at first.
            for left in (ids[200:], ids[-10:]):
                for job in ids[:len(ids) - len(left)]:
                    equal(client.ask("delete %d" % job), "DELETED")
                goes_on(server, client)
                ids = left
                same(client, ids)
            again = fill(client)
            assert len(again) * len(BODY) > 20 * MEBI, len(again)
            for job in again:
                equal(client.ask("delete %d" % job), "DELETED")
            goes_on(server, client)
            server.stop()
        said_once(server, why)
        Fsck().check("jobs")


main()
