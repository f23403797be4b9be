#!/usr/bin/env python3
"""weekwheel restore: a backup takes the place of a store, with its owner and mode, and what was there is kept."""
# tier: check
import json
import os
import shutil
import signal
import stat
import subprocess

from harness import WEEKWHEEL, Case, Server, alone, environment, equal, main, matches, objects, run


def owned(path):
    status = os.stat(path)
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)


class Restore(Case):
    def setUp(self):
        super().setUp()
        with Server("--data", "jobs") as server, server.client() as client:
            client.put(b"old")
            equal(json.loads(alone.run(0, "backup", "-j", "jobs", "copy").out) | {"bytes": 0},
                  {"path": "copy", "jobs": 1, "bytes": 0})
            client.put(b"new")

    def bodies(self, path="jobs"):
        return sorted(job["body"] for job in objects(alone.run(0, "export", path).out) if "body" in job)

    def test_a_copy_takes_the_place_of_a_store(self):
        os.chmod("jobs", 0o750)
        if os.geteuid() == 0:
            os.chown("jobs", 4242, 4243)
        before = owned("jobs")
        ended = alone.run(0, "restore", "copy", "jobs")
        matches("^1 job restored in jobs$", ended.err)
        matches("^What was there before is in .*/jobs.before.1; remove it when", ended.err)
        equal(self.bodies(), ["old"])
        equal(self.bodies("copy"), ["old"])
        equal(self.bodies("jobs.before.1"), ["new", "old"])
        equal(owned("jobs"), before)
        for name in os.listdir("jobs"):
            equal(owned(os.path.join("jobs", name))[:2], before[:2])
        if os.geteuid() == 0:
            os.chown("jobs", 0, 0)
        with Server("--data", "jobs") as server, server.client() as client:
            equal(client.ask("reserve-with-timeout 0"), "RESERVED 1 3|old")
        # Again: nothing that is there is lost.
        ended = alone.run(0, "restore", "--json", "copy", "jobs/")
        done = json.loads(ended.out)
        equal((ended.err, done.pop("bytes") > 0), ("", True))
        equal(done, {"path": os.path.abspath("jobs"), "jobs": 1, "before": os.path.abspath("jobs.before.2")})
        equal(sorted(os.listdir(".")), ["copy", "jobs", "jobs.before.1", "jobs.before.2"])

    def test_a_store_that_is_missing_is_made(self):
        os.rename("jobs", "elsewhere")
        for path in ("jobs", os.path.abspath("deep"), "other/"):
            ended = alone.run(0, "restore", "copy", path)
            equal((ended.err.count("\n"), self.bodies(path)), (1, ["old"]))
            equal(owned(path), (*owned(".")[:2], 0o700))
        matches("none/jobs: No such file", alone.run(1, "restore", "copy", "none/jobs").err)
        # As of a variable that is not set.
        matches("^weekwheel: : No such file", alone.run(1, "restore", "copy", "").err)

    def test_a_link_stays_one(self):
        os.rename("jobs", "disk")
        os.symlink("disk", "jobs")
        alone.run(0, "restore", "copy", "jobs")
        equal((os.readlink("jobs"), self.bodies("disk"), self.bodies("disk.before.1")), ("disk", ["old"], ["new", "old"]))

    def test_what_is_refused_changes_nothing(self):
        with Server("--data", "jobs") as server:
            matches("jobs: a server has it open; end that one first", alone.run(1, "restore", "copy", "jobs").err)
            server.stop(signal.SIGKILL)
        for name in os.listdir("copy"):
            if name.startswith("journal"):
                with open(os.path.join("copy", name), "r+b") as file:
                    file.seek(0)
                    file.write(b"\x5a" * 64)
        matches("copy: is damaged", alone.run(1, "restore", "copy", "jobs").err)
        matches("nothing: there is no such directory", alone.run(1, "restore", "nothing", "jobs").err)
        os.mkdir("empty")
        matches("empty: has no jobs in it", alone.run(1, "restore", "empty", "jobs").err)
        matches("as in 'weekwheel restore jobs.copy jobs'", alone.run(2, "restore", "copy").err)
        # A mistaken name: all that is in it would move.
        for path in (".", os.path.abspath(".")):
            matches("has files in it, but no jobs; name the directory that weekwheeld has", alone.run(1, "restore", "empty", path).err)
        os.mkdir("session.data")
        for name in "sessions", "journal.1":
            with open("session.data/" + name, "w", encoding="utf-8"):
                pass
        matches("session.data: has files in it, but no jobs", alone.run(1, "restore", "copy", "session.data").err)
        shutil.rmtree("session.data")
        os.mkdir("jobs.restored")
        with open("jobs.restored/file", "w", encoding="utf-8"):
            pass
        matches("jobs.restored: is not empty; it is left of a restore that was cut short", alone.run(1, "restore", "jobs", "jobs").err)
        equal(self.bodies(), ["new", "old"])
        equal(sorted(os.listdir(".")), ["copy", "empty", "jobs", "jobs.restored"])

    def test_a_mounted_file_system(self):
        os.mkdir("mounted")
        if not shutil.which("mount") or subprocess.run(["mount", "-t", "tmpfs", "none", "mounted"], check=False, capture_output=True).returncode:
            self.skipTest("nothing may be mounted here")
        try:
            matches("mounted: a file system is mounted there", alone.run(1, "restore", "copy", "mounted").err)
            equal(sorted(os.listdir(".")), ["copy", "jobs", "mounted"])
            alone.run(0, "restore", "copy", "mounted/jobs")
            equal(self.bodies("mounted/jobs"), ["old"])
        finally:
            run(0, "umount", "mounted")

    def test_a_folder_that_is_mounted_elsewhere(self):
        os.mkdir("again")
        if not shutil.which("mount") or subprocess.run(["mount", "--bind", "again", "again"], check=False, capture_output=True).returncode:
            self.skipTest("nothing may be mounted here")
        try:
            matches("again: a file system is mounted there.*fill it by 'weekwheel backup", alone.run(1, "restore", "copy", "again").err)
            equal(sorted(os.listdir(".")), ["again", "copy", "jobs"])
        finally:
            run(0, "umount", "again")

    def test_what_stands_for_a_file(self):
        journal = next(name for name in os.listdir("copy") if name.startswith("journal"))
        for name in ("index.db", "index.db-wal", journal):
            for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
                shutil.rmtree("bad", ignore_errors=True)
                shutil.copytree("copy", "bad", ignore=shutil.ignore_patterns(name))
                make(os.path.join("bad", name))
                for words in (["backup", "bad", "new"], ["restore", "bad", "new"], ["recover", "bad", "new"], ["fsck", "bad"], ["export", "bad"]):
                    matches("^weekwheel: bad.*(no|itself).*plain file|^weekwheel: bad.*put the file itself", alone.run(1, *words).err)
                    equal(sorted(os.listdir(".")), ["bad", "copy", "jobs"], words)

    def test_where_no_copy_can_be(self):
        os.symlink("nowhere", "link")
        with open("file", "w", encoding="utf-8"):
            pass
        for target, why in (("none/x", "cannot be made, as the directory above is missing"), ("file", "is not a directory"),
                            ("/dev/null", "is not a directory"), ("link", "is a link that leads to no directory")):
            matches(f"^weekwheel: {target}: {why}", alone.run(1, "backup", "jobs", target).err)
        for command in ("backup", "restore"):
            matches("^weekwheel: .*copy/sub.*: lies in copy; name", alone.run(1, command, "copy", "copy/sub").err)
        for name in os.listdir("copy"):
            if name.startswith("journal"):
                os.unlink(os.path.join("copy", name))
        matches("^weekwheel: copy: is damaged, and its copy", alone.run(1, "backup", "copy", "new").err)
        matches("^weekwheel: copy: is damaged, and nothing was restored", alone.run(1, "restore", "copy", "new").err)
        equal(sorted(os.listdir(".")), ["copy", "file", "jobs", "link"])

    def test_one_who_may_not_give_it_away(self):
        if os.geteuid() != 0:
            self.skipTest("only root owns files of others")
        os.chmod(".", 0o777)
        os.chown("jobs", 4242, 4243)
        for path, _, names in os.walk("."):
            for name in names:
                os.chmod(os.path.join(path, name), 0o666)
            os.chmod(path, 0o777)
        try:
            ended = subprocess.run([WEEKWHEEL, "restore", "copy", "jobs"], env=environment(TZ="UTC"), stderr=subprocess.PIPE, check=False, text=True,
                                   user=4300, group=4300, extra_groups=[])
        except PermissionError:
            self.skipTest("the build is in a folder that others cannot enter")
        equal((ended.returncode, sorted(os.listdir("."))), (1, ["copy", "jobs"]))
        matches("cannot be given to the owner of .*restore as root", ended.stderr)


main()
