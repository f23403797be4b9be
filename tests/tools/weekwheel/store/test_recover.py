#!/usr/bin/env python3
"""weekwheel recover and backup: what is missing or damaged is told, and nothing is left of what failed."""
# tier: check
import glob
import json
import os
import signal
import subprocess

from harness import Case, Server, alone, check, equal, main, matches


def put(client, count):
    """The ids of so many new jobs."""
    return [int(client.put(delay=3600).split()[1]) for _ in range(count)]


def killed(folder):
    """A store whose server was killed: 10 jobs in the index, and 500 in the journal. Returns the last id."""
    with Server("--data", folder, "--sync", "always") as server, server.client() as client:
        put(client, 10)
    with Server("--data", folder, "--sync", "always") as server, server.client() as client:
        last = put(client, 500)[-1]
        server.stop(signal.SIGKILL)
    return last


class Recover(Case):
    def test_a_missing_journal_is_told_and_no_id_is_given_again(self):
        last = killed("jobs")
        for name in glob.glob("jobs/journal.*"):
            os.unlink(name)
        result = alone.run(1, "recover", "jobs", "new")
        matches("^jobs: its journal is missing, so what was acknowledged last may be lost$", result.out)
        with Server("--data", "new") as server, server.client() as client:
            check(put(client, 1)[0] > max(last, 1000000), "an id is given again")
        result = alone.run(1, "recover", "--json", "jobs", "newer")
        said = json.loads(result.out)
        equal((result.err, said["saved"]), ("", 10))
        matches("^jobs: its journal is missing", said["problems"][0])

    def test_ids_go_on_where_nothing_is_missing(self):
        last = killed("jobs")
        matches("^510 jobs saved in new$", alone.run(0, "recover", "jobs", "new").err)
        equal(json.loads(alone.run(0, "recover", "-j", "jobs", "newer").out), {"problems": [], "saved": 510})
        with Server("--data", "new") as server, server.client() as client:
            check(last < put(client, 1)[0] < 100000, "too far")

    def test_where_no_store_is_nothing_is_made(self):
        for folder, file in (("empty", None), ("foreign", "letter"), ("former", "data.mdb")):
            os.mkdir(folder)
            if file:
                with open(os.path.join(folder, file), "wb") as made:
                    made.write(b"x" * 8192)
        for folder, said in (("nowhere", "nowhere: No such file or directory"), ("empty", "empty: has no jobs in it"),
                             ("foreign", "foreign: is not empty, and has no store of jobs"),
                             ("former", "former/data.mdb: is a store of a former weekwheel")):
            matches(said, alone.run(1, "recover", folder, "new").err)
            check(not os.path.exists("new"), folder)


class Backup(Case):
    def test_a_store_on_a_read_only_file_system_is_copied(self):
        os.mkdir("disk")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "none", "disk"], capture_output=True, check=False)
        if mounted.returncode:
            self.skipTest("nothing can be mounted: " + mounted.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", "-l", os.path.abspath("disk")], check=False)
        with Server("--data", "disk/jobs") as server, server.client() as client:
            put(client, 1)
            equal(server.stop(), 0)
        subprocess.run(["mount", "-o", "remount,ro", "disk"], check=True)
        matches("disk/jobs: its file system is mounted read-only; copy it with 'weekwheel backup', and use the copy",
                alone.run(1, "fsck", "disk/jobs").err)
        alone.run(0, "backup", "disk/jobs", "copy")
        matches("sound", alone.run(0, "fsck", "copy").out)

    def test_a_copy_that_cannot_be_opened_is_removed(self):
        killed("jobs")
        with open("jobs/index.db", "r+b") as file:
            file.write(b"noise" * 800)
        os.unlink("jobs/index.db-wal")
        result = alone.run(1, "backup", "jobs", "copy")
        matches("weekwheel: jobs: is damaged, and its copy would be, too: none was kept; 'weekwheel fsck jobs' shows", result.err)
        check(not os.path.exists("copy"), "the copy is left")
        os.mkdir("copy")
        alone.run(1, "backup", "jobs", "copy")
        equal(os.listdir("copy"), [])


main()
