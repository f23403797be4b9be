#!/usr/bin/env python3
"""weekwheel backup: copies of a store while a server writes to it, and one that stalls."""
# tier: long, waits
import json
import os
import re
import signal
import threading
import time

from harness import PATIENCE, Case, Server, alone, equal, main, matches, objects, until

MEBI = 1 << 20


def size_of(folder):
    """The bytes that the folder takes on the disk. Its files come and go."""
    total = 0
    for entry in os.scandir(folder):
        try:
            total += entry.stat().st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def flip(name, at):
    with open(name, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        # More than the one bit that a sum can correct.
        file.write(bytes([byte ^ 0x5a]))


class Load(threading.Thread):
    """A client that puts jobs, and deletes those that are not far, until it is told to end."""

    def __init__(self, server, body=b"x" * 3000):
        super().__init__()
        self.client, self.body = server.client(), body
        self.put, self.ended, self.is_over, self.error = [], set(), False, None

    def run(self):
        try:
            while not self.is_over:
                self.round()
        except BaseException as error:
            self.error = error

    def round(self):
        # Every fourth job stays.
        for delay in (86400, 0, 0, 0):
            self.client.send(b"put 5 %d 60 %d\r\n%s\r\n" % (delay, len(self.body), self.body))
        ids = [int(self.client.line().split()[1]) for _ in range(4)]
        self.put.append(ids[0])
        for job in ids[1:]:
            self.client.send("delete %d\r\n" % job)
        for job in ids[1:]:
            equal(self.client.line(), "DELETED")
            self.ended.add(job)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.join(PATIENCE)
        self.client.close()
        if self.error:
            raise self.error


def ids_in(folder):
    return {int(job["id"]) for job in objects(alone.run(0, "export", folder).out)}


class Backup(Case):
    def test_a_copy_while_the_server_writes(self):
        with Server("--data", "jobs", "--sync", "interval") as server, Load(server) as one, Load(server) as other:
            for number in range(3):
                target = "copy%d" % number
                until(lambda: len(one.put) > 300 * (number + 1), "jobs are put")
                before = set(one.put) | set(other.put)
                ended = set(one.ended) | set(other.ended)
                result = alone.run(0, "backup", "jobs", target)
                matches(r"^\d+ jobs copied to copy%d, \d+ bytes$" % number, result.err)
                found = ids_in(target)
                assert before <= found, "missing: %s" % sorted(before - found)[:10]
                assert not ended & found, "ended: %s" % sorted(ended & found)[:10]
                matches("^sound$", alone.run(0, "fsck", target).out)
        # A server goes on with it.
        with Server("--data", target) as server, server.client() as client:
            equal({job["id"] for job in client.all_jobs()}, found)
            assert client.put().startswith("INSERTED ")

    def test_a_copy_without_a_server(self):
        with Server("--data", "jobs") as server, server.client() as client:
            ids = [int(client.put(delay=60).split()[1]) for _ in range(20)]
        alone.run(0, "backup", "jobs", "closed")
        with Server("--data", "jobs") as server, server.client() as client:
            ids += [int(client.put(delay=60).split()[1]) for _ in range(20)]
            server.stop(signal.SIGKILL)
        alone.run(0, "backup", "jobs", "killed")
        equal(sorted(ids_in("closed")), ids[:20])
        equal(sorted(ids_in("killed")), ids)
        os.mkdir("empty")
        alone.run(0, "backup", "jobs", "empty")
        for folder in ("closed", "killed", "empty"):
            matches("^sound$", alone.run(0, "fsck", folder).out)

    def test_what_is_refused(self):
        with Server("--data", "jobs"):
            pass
        os.mkdir("full")
        with open("full/letter", "w", encoding="ascii") as file:
            file.write("x")
        matches("full: is not empty", alone.run(1, "backup", "jobs", "full").err)
        equal(os.listdir("full"), ["letter"])
        matches("nowhere: there is no such directory", alone.run(1, "backup", "nowhere", "copy").err)
        matches("full: has no jobs in it", alone.run(1, "backup", "full", "copy").err)
        assert not os.path.exists("copy")
        for inside in ("jobs/sub", "jobs/../jobs/sub"):
            matches("%s: lies in jobs; name a directory elsewhere" % inside, alone.run(1, "backup", "jobs", inside).err)
            assert not os.path.exists("jobs/sub")
        matches("one for the copy", alone.run(2, "backup", "jobs").err)
        matches("'c': the directory of a store and another one", alone.run(2, "backup", "a", "b", "c").err)

    def test_of_a_damaged_store_no_copy_is_kept(self):
        with Server("--data", "jobs") as server, server.client() as client:
            for _ in range(200):
                client.put(delay=86400, body=b"x" * 3000)
        # In the middle of the pages that have the bodies.
        flip("jobs/index.db", os.path.getsize("jobs/index.db") // 2)
        error = alone.run(1, "backup", "jobs", "copy").err
        matches("jobs: is damaged, and its copy would be, too: none was kept; 'weekwheel fsck jobs' shows", error)
        assert not os.path.exists("copy")

    def test_what_is_readable_is_exported_whatever_its_ids(self):
        """After a recovery ids are greater than the number of jobs."""
        with Server("--data", "old") as server, server.client() as client:
            client.put(delay=86400)
            server.stop(signal.SIGKILL)
        os.unlink("old/index.db-wal")
        result = alone.run(1, "fsck", "old")
        equal(result.out.splitlines(), ["old/index.db-wal is missing: it had what was not in index.db yet", "1 problem"])
        alone.run(1, "recover", "old", "jobs")
        with Server("--data", "jobs") as server, server.client() as client:
            ids = [int(client.put(delay=86400, body=b"x" * 3000).split()[1]) for _ in range(200)]
        assert ids[0] > 1000000, ids
        flip("jobs/index.db", os.path.getsize("jobs/index.db") // 2)
        found = [int(json.loads(line)["id"]) for line in alone.run(1, "export", "jobs").out.splitlines()]
        assert ids[0] in found and ids[-1] in found and 190 <= len(found) < 200, (len(found), found[-1:])

    def test_one_that_stalls_lets_nothing_grow(self):
        """It is stopped in the middle of the index, while the server writes many times of what it may put off."""
        with Server("--data", "jobs", "--sync", "system") as server, server.client() as client:
            body = b"y" * 60000
            for _ in range(20):
                for _ in range(50):
                    client.send(b"put 5 86400 60 %d\r\n%s\r\n" % (len(body), body))
                for _ in range(50):
                    assert client.line().startswith("INSERTED ")
            backup = alone.start("backup", "jobs", "copy")
            while not os.path.exists("copy/index.db") or os.path.getsize("copy/index.db") < 8 * MEBI:
                assert backup.poll() is None
            backup.send_signal(signal.SIGSTOP)
            assert backup.poll() is None
            before = size_of("jobs")
            most, written = 0, 0
            late = time.monotonic() + 20
            with Load(server, body) as load:
                # A busy machine gets as long as it needs: less than 100 MiB would prove nothing. A load that stalls ends.
                while load.is_alive() and written < (250 if time.monotonic() < late else 100) * MEBI:
                    time.sleep(0.02)
                    # What stays makes the store larger, too.
                    written = len(load.ended) // 3 * 4 * len(body)
                    most = max(most, size_of("jobs") - before - len(load.put) * (len(body) + 8000))
            print("%d MiB written, %d MiB larger at most, and %d now" % (
                written / MEBI, most / MEBI, (size_of("jobs") - before) / MEBI))
            assert written >= 100 * MEBI, written
            assert most < 180 * MEBI, most
            backup.send_signal(signal.SIGCONT)
            said = backup.communicate(timeout=PATIENCE)[1]
            assert backup.returncode == 0, said
            assert re.search("^[0-9]+ jobs copied to copy", said, re.M), said
            matches("^sound$", alone.run(0, "fsck", "copy").out)


main()
