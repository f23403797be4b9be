#!/usr/bin/env python3
"""weekwheel-sessiond --data: sessions over a restart, a crash, and with a damaged file."""
# tier: check, threads
import contextlib
import errno
import glob
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import power
from faults import FOREVER, MEMORY, SIZE, SYNC, WRITE, Plan
from sessiond import SESSIOND, Sessiond
from harness import WEEKWHEELD, Case, Server, alone, check, compiled, equal, main, matches, until

OK = b"+OK\r\n"


def refused(*arguments):
    """What a server says that does not start."""
    done = subprocess.run([SESSIOND, "--listen", "127.0.0.1:0", *arguments], capture_output=True, timeout=60, text=True,
                          check=False)
    assert done.returncode != 0, done
    return done.stderr


def size_of(server, database=0):
    with server.client() as a:
        equal(a.ask("SELECT", database), OK)
        return int(a.ask("DBSIZE")[1:-2])


def limit_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def lift_limit(server):
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Keep(Case):
    def test_over_an_orderly_end(self):
        with Sessiond("--data", "data", "--lifetimes") as server, server.client() as a:
            for number in range(3000):
                equal(a.ask("SET", "sess:%d" % number, "v" * (number % 300), "EX", 1000 + number), OK)
            equal(a.ask("SET", "soon", "x", "PX", 1), OK)
            equal(a.ask("SET", "forever", b"\x00\xff"), OK)
            equal(a.ask("SET", "life", "y", "EX", 500, "LIFETIME", 700), OK)
            equal(a.ask("SET", "large", "z" * 300000, "EX", 100), OK)
            equal(a.ask("SELECT", 3), OK)
            equal(a.ask("SET", "other", "w", "EX", 100), OK)
            equal(a.ask("SET", "gone", "w", "EX", 100), OK)
            equal(a.ask("DEL", "gone"), b":1\r\n")
            equal(server.stop(), 0)
        with Sessiond("--data", "data", "--lifetimes") as server, server.client() as a:
            matches(r"3004 sessions are back from data; [01] have expired", server.said)
            for number in range(0, 3000, 100):
                equal(a.ask("GET", "sess:%d" % number), b"$%d\r\n%s\r\n" % (number % 300, b"v" * (number % 300)))
                left = int(a.ask("TTL", "sess:%d" % number)[1:-2])
                assert 900 + number <= left <= 1000 + number, (number, left)
            equal(a.ask("GET", "forever"), b"$2\r\n\x00\xff\r\n")
            equal(a.ask("TTL", "forever"), b":-1\r\n")
            equal(a.ask("EXPIRE", "life", 5000), b":1\r\n")
            assert 600 < int(a.ask("TTL", "life")[1:-2]) <= 700
            equal(len(a.ask("GET", "large")), 300000 + len("$300000\r\n\r\n"))
            equal(a.ask("EXISTS", "soon"), b":0\r\n")
            equal(size_of(server, 3), 1)

    def test_all_threads_give_back_what_they_noted_with(self):
        # LeakSanitizer sees it.
        with Sessiond("--data", "data", "--threads", "3") as server:
            for number in range(6):
                with server.client() as a:
                    equal(a.ask("SET", number, "x"), OK)

    def test_over_a_kill(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            before = int(a.ask("LASTSAVE")[1:-2])
            equal(a.ask("SET", "a", "1", "EX", 1000), OK)
            equal(a.ask("SET", "renamed", "x", "EX", 1000), OK)
            equal(a.ask("SAVE"), OK)
            assert int(a.ask("LASTSAVE")[1:-2]) >= before
            equal(a.ask("SET", "b", "2"), OK)
            equal(a.ask("DEL", "a"), b":1\r\n")
            equal(a.ask("RENAME", "renamed", "c"), OK)
            equal(a.ask("SELECT", 5), OK)
            equal(a.ask("SET", "d", "4"), OK)
            equal(a.ask("FLUSHDB"), OK)
            equal(a.ask("SET", "e", "5"), OK)
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server, server.client() as a:
            matches("3 sessions are back", server.said)
            equal((a.ask("GET", "a"), a.ask("GET", "b"), a.ask("GET", "c")), (b"$-1\r\n", b"$1\r\n2\r\n", b"$1\r\nx\r\n"))
            equal((size_of(server, 0), size_of(server, 5)), (2, 1))

    def test_what_has_ended_stays_ended(self):
        """Whatever ends the server, and wherever its disk has what it was: the journal, the image, both, or neither."""
        deaf = ["--expired-to", "beanstalk://127.0.0.1:1/ended"]
        options = ["--data", "data", "--clock", "virtual", "--lifetime", "60s", "--keep-lifetimes"]
        for tells in ([], deaf):
            for saves in "", "before", "after", "twice":
                for how in signal.SIGKILL, signal.SIGTERM:
                    with Sessiond(*options, *tells) as server, server.client() as a:
                        equal(a.ask("MSET", "none", "x", "deleted", "x"), OK)
                        for key in "ended", "deleted", "idle", "again":
                            equal(a.ask("SET", key, "x", "EX", 30 if key == "idle" else 100), OK)
                        equal(a.ask("SELECT", 2) + a.ask("SET", "ended", "x", "EX", 100) + a.ask("SELECT", 0), 3 * OK)
                        if saves in ("before", "twice"):
                            equal(a.ask("SAVE"), OK)
                        equal(a.ask("ADVANCE", 30000) + a.ask("EXPIRE", "ended", 100) + a.ask("ADVANCE", 29999), OK + b":1\r\n" + OK)
                        # 30 seconds after its end it goes on as it was.
                        equal(a.ask("SET", "idle", "x", "EX", 10) + a.ask("PTTL", "idle"), OK + b":1\r\n")
                        equal(a.ask("ADVANCE", 1), OK)
                        a.ask("DEL", "deleted")
                        equal(a.ask("SET", "again", "x", "LIFETIME", 1000), OK)
                        if saves in ("after", "twice"):
                            equal(a.ask("SAVE"), OK)
                        server.stop(how)
                    for waits in 0, 59, 2:
                        with Sessiond(*options[:3], f"virtual:{waits}", *options[4:], *tells) as server, server.client() as a:
                            for key in "ended", "deleted", "idle":
                                equal(a.ask("SET", key, "late"), OK)
                            a.ask("SELECT", 2)
                            equal(a.ask("SET", "ended", "late") + a.ask("SELECT", 0), OK + OK)
                            there = a.ask("EXISTS", "ended", "deleted", "idle")
                            equal((tells, saves, how, waits, there), (tells, saves, how, waits, b":3\r\n" if waits == 2 else b":0\r\n"))
                            equal(a.ask("EXISTS", "again", "none"), b":2\r\n")
                            # The disk learns of the time.
                            equal(a.ask("FLUSHALL") if waits == 2 else a.ask("SET", "other", "x"), OK)
                            server.stop(how)

    def test_what_has_ended_stays_ended_over_a_flush(self):
        options = ["--data", "data", "--clock", "virtual", "--lifetime", "60s", "--keep-lifetimes"]
        for saves in "", "before", "after":
            for how in signal.SIGKILL, signal.SIGTERM:
                with Sessiond(*options) as server, server.client() as a:
                    equal(a.ask("SET", "ended", "x", "EX", 100) + a.ask("SET", "gone", "x", "EX", 100, "LIFETIME", 70), OK + OK)
                    equal(a.ask("ADVANCE", 60000) + a.ask("SET", "there", "x", "EX", 100), OK + OK)
                    equal(a.ask("SAVE") if saves == "before" else OK, OK)
                    # Twice: the second one has nothing but what is recalled.
                    equal(a.ask("FLUSHALL") + a.ask("FLUSHALL") + a.ask("SET", "other", "x"), 3 * OK)
                    equal(a.ask("SAVE") if saves == "after" else OK, OK)
                    server.stop(how)
                for waits in 0, 59, 2:
                    with Sessiond(*options[:3], f"virtual:{waits}", *options[4:]) as server, server.client() as a:
                        for key in "ended", "gone", "there":
                            equal(a.ask("SET", key, "late"), OK)
                        there = a.ask("EXISTS", "ended") + a.ask("EXISTS", "gone", "there")
                        equal((saves, how, waits, there), (saves, how, waits, b":%d\r\n:2\r\n" % (waits == 2)))
                        # The disk learns of the time.
                        equal(a.ask("FLUSHALL") if waits == 2 else a.ask("DEL", "gone", "there"), OK if waits == 2 else b":2\r\n")
                        server.stop(how)

    def test_what_a_failed_sync_has_lost_is_written_again(self):
        """Memory has it, and the system takes it for clean. A server that starts on it must not trust a sync alone."""
        os.mkdir("data")
        for sync, key in (("system", "first"), ("always", "second")):
            with Sessiond("--data", "data", "--sync", sync, **power.recorded("data", key)) as server, server.client() as a:
                equal(a.ask("SET", key, "x", "EX", 1000), OK)
                equal(a.ask("EXISTS", "first"), b":1\r\n")
                server.stop(signal.SIGKILL)
        events = power.read("first", "second")
        disk = power.Disk(events, forgets=True)
        disk.replay(len(events))
        left, how = disk.left(power.Least)
        with Sessiond("--data", left) as server, server.client() as a:
            equal((a.ask("EXISTS", "first"), a.ask("EXISTS", "second"), how), (b":1\r\n", b":1\r\n", how))

    def test_a_touch_is_written_when_a_sixteenth_is_missing(self):
        with Sessiond("--data", "data", "--clock", "virtual", "--sync", "always") as server, server.client() as a:
            grown = lambda: int(re.search(rb"journal_since_image:(\d+)", a.ask("INFO", "persistence"))[1])
            equal(a.ask("SET", "a", "1", "EX", 16000), OK)
            size = grown()
            equal(a.ask("ADVANCE", 900000), OK)
            equal(a.ask("EXPIRE", "a", 16000), b":1\r\n")
            equal(grown(), size)
            equal(a.ask("ADVANCE", 200000), OK)
            equal(a.ask("EXPIRE", "a", 16000), b":1\r\n")
            assert grown() > size
            size = grown()
            equal(a.ask("EXPIRE", "a", 15000), b":1\r\n")
            assert grown() > size, "a deadline that is earlier is written"
            equal(a.ask("PERSIST", "a"), b":1\r\n")
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("TTL", "a"), b":-1\r\n")

    def test_a_touch_by_decades_is_written(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            for years in (10, 35, 70):
                equal(a.ask("SET", years, "1", "EX", 60), OK)
                equal(a.ask("EXPIRE", years, years * 31557600), b":1\r\n")
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server, server.client() as a:
            for years in (10, 35, 70):
                left = int(a.ask("TTL", years)[1:-2])
                assert left > years * 31557000, (years, left)

    def test_a_touch_of_a_ttl_beyond_the_longest_is_never_early(self):
        """A load adds a sixteenth of the longest TTL that a map has, of 8.9 years, and no more."""
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("SET", "long", "1", "EX", 20 * 31557600), OK)
            equal(a.ask("EXPIRE", "long", 21 * 31557600), b":1\r\n")
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server, server.client() as a:
            left = int(a.ask("TTL", "long")[1:-2])
            assert left > 21 * 31557000, left

    def test_what_has_only_a_lifetime_left_is_never_early(self):
        """It has lost its TTL, of which a load adds a part, shortly before the end of its lifetime."""
        with Sessiond("--data", "data", "--clock", "virtual", "--lifetimes") as server, server.client() as a:
            equal(a.ask("SET", "a", "1", "EX", 170, "LIFETIME", 180), OK)
            equal(a.ask("PERSIST", "a"), b":1\r\n")
            equal(a.ask("SAVE"), OK)
            server.stop(signal.SIGKILL)
        with open("data/sessions", "rb") as file:
            image = file.read()
        at = 40 + 16 + 40 + 16
        equal((image[40 + 16], image[40 + 16 + 40], image[at]), (8, 7, 1))
        ttl, deadline, end = (int.from_bytes(image[at + i:at + i + 8], "little") for i in (8, 16, 24))
        equal((ttl, deadline), (2**64 - 1, end))

    def test_after_a_crash_a_sixteenth_is_added_once(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("SET", "idle", "1", "EX", 1600), OK)
            server.stop(signal.SIGKILL)
        for end in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            with Sessiond("--data", "data") as server, server.client() as a:
                left = int(a.ask("TTL", "idle")[1:-2])
                assert 1690 <= left <= 1700, left
                server.stop(end)

    def test_what_was_deleted_after_it_had_expired_is_not_back(self):
        with Sessiond("--data", "data", "--clock", "virtual") as server, server.client() as a:
            for key in ("a", "b", "c"):
                equal(a.ask("SET", key, "1", "EX", 1600), OK)
            equal(a.ask("ADVANCE", 1601000) + a.ask("DEL", "a") + a.ask("GETDEL", "b"), OK + b":0\r\n$-1\r\n")
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data", "--clock", "virtual") as server, server.client() as a:
            equal(a.ask("EXISTS", "a", "b") + a.ask("EXISTS", "c"), b":0\r\n:1\r\n")

    def test_a_set_that_keeps_the_deadline_adds_nothing_after_a_crash(self):
        sets = (("INCR", "a"), ("APPEND", "a", "1"), ("SET", "a", "1", "KEEPTTL"))
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("SET", "a", "1", "EX", 1600), OK)
            server.stop(signal.SIGKILL)
        for words in sets:
            with Sessiond("--data", "data") as server, server.client() as a:
                a.ask(*words)
                left = int(a.ask("TTL", "a")[1:-2])
                assert 1690 <= left <= 1700, (words, left)
                server.stop(signal.SIGKILL)
        # Nor does it take away what the touch before has left out.
        for words in sets:
            with Sessiond("--data", "data") as server, server.client() as a:
                equal(a.ask("EXPIRE", "a", 1690), b":1\r\n")
                a.ask(*words)
                server.stop(signal.SIGKILL)
            with Sessiond("--data", "data") as server, server.client() as a:
                left = int(a.ask("TTL", "a")[1:-2])
                assert 1690 <= left <= 1690 * 17 / 16 + 1, (words, left)

    def test_expired_meanwhile(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("SET", "short", "1", "PX", 20), OK)
            equal(a.ask("SET", "long", "1", "PX", 20), OK)
            equal(a.ask("PEXPIRE", "long", 10**6), b":1\r\n")
            server.stop(signal.SIGKILL)
        until(lambda: time.time_ns() // 10**6 > int(os.stat("data").st_mtime * 1000) + 100, "it is over")
        with Sessiond("--data", "data") as server, server.client() as a:
            matches("1 sessions are back from data; 1 have expired", server.said)
            equal((a.ask("EXISTS", "short"), a.ask("EXISTS", "long")), (b":0\r\n", b":1\r\n"))

    def test_images_are_written_when_asked(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            for number in range(1, 4):
                equal(a.ask("SET", "a", number), OK)
                until(lambda: a.ask("BGSAVE") == b"+Background saving started\r\n", "an image is begun")
                until(lambda: b"in_progress:0" in a.ask("INFO", "persistence"), "it is complete")
                assert os.path.exists("data/sessions")
            equal(len([name for name in os.listdir("data") if name.startswith("journal.")]), 1)

    def test_what_cannot_be_read_is_refused_and_stays(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            for number in range(100):
                equal(a.ask("SET", "k%d" % number, "v", "EX", 100), OK)
            matches("another server has this folder", refused("--data", "data"))
        with open("data/sessions", "rb") as file:
            good = file.read()
        for bad in (good[:-1], good[:10], b"", good[:200] + b"\x01" + good[201:], good[:9] + b"\x07" + good[10:],
                    good[:24] + b"\xff" * 8 + good[32:], good[:40] + b"\xff" * 8 + good[48:]):
            with open("data/sessions", "wb") as file:
                file.write(bad)
            matches("data/sessions (is damaged at byte .*\n.*--recover|has another format)", refused("--data", "data"))
            with open("data/sessions", "rb") as file:
                equal(file.read(), bad)
        with open("data/sessions", "wb") as file:
            file.write(good)
        with Sessiond("--data", "data") as server:
            equal(size_of(server), 100)

    def test_a_missing_file_is_missed(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("SET", "a", 1), OK)
            equal(a.ask("SAVE"), OK)
            server.stop(signal.SIGKILL)
        os.rename("data/sessions", "kept")
        matches("data/sessions is missing", refused("--data", "data"))
        os.rename("kept", "data/sessions")
        journal, = (name for name in os.listdir("data") if name.startswith("journal."))
        os.rename("data/" + journal, "kept")
        matches("data/" + journal + " is missing", refused("--data", "data"))

    def test_a_journal_that_was_all_there_was_is_missed(self):
        """A new server has an image at once: without, the folder would be like a new one."""
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("SET", "a", 1), OK)
            server.stop(signal.SIGKILL)
        journal, = (name for name in os.listdir("data") if name.startswith("journal."))
        os.rename("data/" + journal, "kept")
        matches("data/" + journal + " is missing", refused("--data", "data"))
        os.rename("kept", "data/" + journal)
        os.remove("data/sessions")
        matches("data/sessions is missing", refused("--data", "data"))

    def test_the_newest_file_is_missed(self):
        """A killed server leaves a file that says nothing of another. The next server says there that its own follows."""
        for sync in "always", "system":
            for left in range(3):
                with Sessiond("--data", sync, "--sync", sync) as server, server.client() as a:
                    equal(a.ask("DBSIZE"), b":%d\r\n" % left)
                    equal(a.ask("SET", f"{left}", 1), OK)
                    server.stop(signal.SIGKILL)
            journals = sorted(name for name in os.listdir(sync) if name.startswith("journal."))
            equal(len(journals), 3)
            for journal in journals[1:]:
                os.rename(f"{sync}/{journal}", "kept")
                matches(f"{sync}/{journal} is missing", refused("--data", sync))
                os.rename("kept", f"{sync}/{journal}")

    def test_the_folder_of_weekwheeld_is_left_as_it_is(self):
        """What --recover would set aside is its journal, without which its jobs could not be read."""
        with Server("--data", "data") as server, server.client() as client:
            client.put(delay=3600)
            server.stop(signal.SIGKILL)
        there = sorted(os.listdir("data"))
        for lost in None, "index.db", "index.db-wal":
            if lost:
                os.rename("data/" + lost, lost)
            for options in (), ("--recover",):
                matches("--data data: weekwheeld keeps its jobs there.*another folder.*weekwheel recover data NEW",
                        refused("--data", "data", *options))
        for lost in "index.db", "index.db-wal":
            os.rename(lost, "data/" + lost)
        equal(sorted(os.listdir("data")), there)
        with Server("--data", "data") as server, server.client() as client:
            equal(client.put(delay=3600).split()[1], "2")

    def test_weekwheeld_leaves_its_folder_as_it_is(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("SET", "k", 1), OK)
            server.stop(signal.SIGKILL)
        there = sorted(os.listdir("data"))
        said = "data: weekwheel-sessiond keeps its sessions there, and nothing was changed; name another directory"
        for lost in None, "sessions":
            if lost:
                os.rename("data/" + lost, lost)
            done = subprocess.run([WEEKWHEELD, "--listen", "127.0.0.1:0", "--data", "data"], capture_output=True,
                                  timeout=60, text=True, check=False)
            matches(said, done.stderr)
            check("cannot be written" not in done.stderr, done.stderr)
            for command in ("recover", "data", "new"), ("export", "data"), ("backup", "data", "new"), ("restore", "data", "new"):
                matches(said, alone.run(1, *command).err)
        os.rename("sessions", "data/sessions")
        equal((sorted(os.listdir("data")), os.path.exists("new")), (there, False))
        with Sessiond("--data", "data") as server:
            equal(size_of(server), 1)

    def test_a_disk_that_cannot_be_written(self):
        """Nobody hears that what is not kept is; what is there can be read."""
        with Sessiond("--data", "data", preexec=lambda: limit_files(3 << 20)) as server, server.client() as a, \
                server.client() as b:
            equal(b.ask("MULTI") + b.ask("DEL", "k1"), OK + b"+QUEUED\r\n")
            kept = 0
            while (answer := a.ask("SET", "k%d" % kept, "v" * 10000)) == OK:
                kept += 1
            matches("MISCONF The disk has no room", answer.decode())
            assert kept > 100, kept
            equal(a.ask("EXISTS", "k0"), b":1\r\n")
            matches("MISCONF.* only DEL, UNLINK, GETDEL, FLUSHDB and FLUSHALL", a.ask("SET", "later", "x").decode())
            for command in ("EXPIRE", "RENAME"):
                matches("^-MISCONF The disk has no room", a.ask(command, "k0", "5").decode())
            equal(a.ask("MULTI") + a.ask("DEL", "k2"), OK + b"+QUEUED\r\n")
            matches("^-MISCONF", a.ask("SET", "k2", "x").decode())
            matches("^-EXECABORT", a.ask("EXEC").decode())
            equal(a.ask("EXISTS", "k1", "k2"), b":2\r\n")
            # What was deleted is not in the image that is written then, which makes room.
            equal(a.ask("DEL", "k0"), b":1\r\n")
            equal(b.ask("EXEC"), b"*1\r\n:1\r\n")
            until(lambda: a.ask("SET", "later", "x") == OK, "there is room")
            server.stop(signal.SIGKILL)
            matches("cannot grow: its disk is full; sessions are not changed until there is room", server.said)
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("EXISTS", "k0", "k1", "k2", "later"), b":2\r\n")
            equal(size_of(server), kept - 1)

    def test_what_is_deleted_makes_room_on_a_full_disk(self):
        """No file can grow, and no journal can be begun. The image goes without: it is read under all of the last file."""
        for end in (signal.SIGKILL, signal.SIGTERM):
            shutil.rmtree("data", ignore_errors=True)
            plan = Plan()
            with Sessiond("--data", "data", "--databases", "2", **plan.environment) as server, server.client() as a:
                for number in range(3000):
                    a.ask("SET", "k%d" % number, "v" * 1000)
                equal(a.ask("SAVE"), OK)
                image = os.path.getsize("data/sessions")
                equal(a.ask("SELECT", 1) + a.ask("SET", "other", "x") + a.ask("SELECT", 0), 3 * OK)
                plan.set(1, FOREVER, errno.ENOSPC, what=SIZE)
                while (answer := a.ask("SET", "more", "v" * 10000)) == OK:
                    pass
                matches("^-MISCONF The disk has no room", answer.decode())
                # Each for itself would need more room than there is.
                equal(a.ask("FLUSHDB"), OK)
                equal(a.ask("DBSIZE"), b":0\r\n")
                until(lambda: os.path.getsize("data/sessions") < image / 10, "the image is written")
                matches("^-MISCONF The disk has no room", a.ask("SET", "b", "2").decode())
                if end == signal.SIGTERM:
                    plan.set(0)
                    until(lambda a=a: a.ask("SET", "later", "2") == OK, "there is room")
                server.stop(end)
            with Sessiond("--data", "data", "--databases", "2") as server, server.client() as a:
                equal(a.ask("DBSIZE"), b":%d\r\n" % (end == signal.SIGTERM))
                equal(a.ask("SELECT", 1) + a.ask("GET", "other"), OK + b"$1\r\nx\r\n")

    def test_deletions_stop_before_the_last_room_is_gone(self):
        plan = Plan()
        with Sessiond("--data", "data", "--sync", "always", **plan.environment) as server, server.client() as a:
            for number in range(100):
                equal(a.ask("SET", "k%d" % number + "k" * 60000, "v"), OK)
            plan.set(1, FOREVER, errno.ENOSPC, what=SIZE)
            # No image can be written.
            os.mkdir("data/sessions.new")
            while a.ask("SET", "more", "v" * 10000) == OK:
                pass
            left = 100
            while (answer := a.ask("DEL", "k%d" % (left - 1) + "k" * 60000)) == b":1\r\n":
                left -= 1
            matches("^-MISCONF The disk has no room for the journal, not even for what is deleted", answer.decode())
            check(60 < left < 100, left)
            matches("^-MISCONF The disk has no room", a.ask("FLUSHALL").decode())
            more = int(a.ask("DBSIZE")[1:-2])
            server.stop(signal.SIGKILL)
        os.rmdir("data/sessions.new")
        with Sessiond("--data", "data") as server:
            equal(size_of(server), more)

    def test_a_start_on_a_full_disk_serves(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("SET", "a", "1", "EX", 1000), OK)
            server.stop(signal.SIGKILL)
        plan = Plan()
        for end in (signal.SIGKILL, signal.SIGTERM, None):
            plan.set(1, FOREVER, errno.ENOSPC, what=SIZE)
            with Sessiond("--data", "data", **plan.environment) as server, server.client() as a:
                matches("the journal in data cannot grow", server.said)
                equal(a.ask("GET", "a"), b"$1\r\n1\r\n")
                matches("^-MISCONF The disk has no room", a.ask("SET", "b", "2").decode())
                matches("^-MISCONF The disk has no room", a.ask("EXPIRE", "a", "2").decode())
                equal(a.ask("EXISTS", "a", "b"), b":1\r\n")
                if end:
                    equal(server.stop(end), 1 if end == signal.SIGTERM else -end)
                    equal("journal has all that was acknowledged" in server.said, end == signal.SIGTERM, server.said)
                    continue
                plan.set(0)
                until(lambda a=a: a.ask("SET", "b", "2") == OK, "there is room")
                server.stop(signal.SIGKILL)
                matches("there is room for the journal in data again", server.said)
        with Sessiond("--data", "data") as server:
            equal(size_of(server), 2)

    def test_what_is_deleted_makes_room_after_a_start_on_a_full_disk(self):
        """The server before had room in advance, and gave none of it back."""
        os.mkdir("disk")
        if not shutil.which("mount") or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32M", "none", "disk"], check=False,
                                                       capture_output=True).returncode:
            self.skipTest("no small disk can be mounted")
        self.addCleanup(subprocess.run, ["umount", "-l", os.path.abspath("disk")], check=False)
        for end in (signal.SIGKILL, signal.SIGTERM):
            shutil.rmtree("disk/data", ignore_errors=True)
            with Sessiond("--data", "disk/data") as server, server.client() as a:
                for number in range(3000):
                    a.ask("SET", "k%d" % number, "v" * 1000)
                equal(a.ask("SAVE"), OK)
                equal(a.ask("SET", "later", "x"), OK)
                with open("disk/other", "wb", 0) as other, contextlib.suppress(OSError):
                    while True:
                        other.write(bytes(1 << 16))
                server.stop(end)
            with open("disk/more", "wb", 0) as other, contextlib.suppress(OSError):
                while other.write(bytes(4096)):
                    pass
            with Sessiond("--data", "disk/data") as server, server.client() as a:
                matches("the journal in disk/data cannot grow", server.said)
                equal(a.ask("GET", "later"), b"$1\r\nx\r\n")
                matches("^-MISCONF The disk has no room", a.ask("SET", "b", "2").decode())
                equal(a.ask("DEL", "k1", "k2"), b":2\r\n")
                server.stop(signal.SIGKILL)
            with Sessiond("--data", "disk/data") as server, server.client() as a:
                equal(a.ask("DBSIZE"), b":2999\r\n")
                equal(a.ask("FLUSHALL"), OK)
                until(lambda a=a: a.ask("SET", "b", "2") == OK, "an image without them makes room")
                server.stop(signal.SIGKILL)
            os.unlink("disk/more")
            os.unlink("disk/other")
            with Sessiond("--data", "disk/data") as server:
                equal(size_of(server), 1)

    def test_many_kills_do_not_leave_a_file_each(self):
        journals = lambda: len([name for name in os.listdir("data") if name.startswith("journal.")])
        for number in range(17):
            with Sessiond("--data", "data") as server, server.client() as a:
                equal(a.ask("SET", number, "x"), OK)
                equal(journals(), number + 1)
                server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server:
            until(lambda: journals() == 1, "an image is complete")
            equal(size_of(server), 17)

    def test_what_there_is_no_memory_to_note_is_not_acknowledged(self):
        plan = Plan()
        for first in range(1, 50):
            folder = "data-%d" % first
            with Sessiond("--data", folder, "--threads", "1", **plan.environment) as server, server.client() as a:
                plan.set(first, what=MEMORY)
                try:
                    answer = a.ask("SET", "a", "v" * 3000000)
                except OSError:
                    answer = None
                failed = plan.failed()
                plan.set(0)
                server.stop(signal.SIGKILL)
            with Sessiond("--data", folder) as server:
                assert answer != OK or size_of(server) == 1, first
            if not failed:
                break
        equal(answer, OK)

    def test_a_start_without_memory_calls_nothing_damaged(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            for key in range(3):
                equal(a.ask("SET", key, key * 300000 * "v"), OK)
        plan = Plan()
        # The address is nobody's, so a start that gets so far ends there.
        start = [SESSIOND, "--data", "data", "--threads", "1", "--listen", "192.0.2.1:1", "--insecure"]
        for first in range(1, 5000):
            plan.set(first)
            done = subprocess.run(start, capture_output=True, timeout=60, text=True, check=False,
                                  env={**os.environ, **plan.environment})
            check("damaged" not in done.stderr, (first, done.stderr))
            if not plan.failed():
                break
        matches("192.0.2.1", done.stderr)

    def test_writes_that_are_cut_short_damage_nothing(self):
        """Nor do those cut short that are to zero what the first have left."""
        plan = Plan()
        for size in (1, 3, 10, 30, 100, 1000):
            folder = "data-%d" % size
            with Sessiond("--data", folder, **plan.environment) as server, server.client() as a:
                equal(a.ask("SET", "a", 1), OK)
                plan.set(1, FOREVER, 0, WRITE, file="journal.")
                with self.assertRaises(ConnectionError):
                    a.ask("SET", "b", "v" * size)
                assert plan.failed()
                server.stop(signal.SIGKILL)
                plan.set(0)
            with Sessiond("--data", folder) as server:
                equal(size_of(server), 1)

    def test_a_sync_that_fails_after_a_failed_write_is_reported(self):
        """The journal syncs what it zeroes. Nobody else may sync any more, and then find out."""
        plan = Plan()
        for sync in ("always", "interval", "system"):
            with Sessiond("--data", sync, "--sync", sync, **plan.environment) as server, server.client() as a:
                equal(a.ask("SET", "a", 1), OK)
                plan.set(1, FOREVER, 0, WRITE, file="journal.")
                with self.assertRaises(ConnectionError):
                    a.ask("SET", "b", 1)
                plan.set(1, FOREVER, errno.EIO, SYNC, file="journal.")
                until(plan.failed, "what was zeroed is synced")
                server.stop()
                plan.set(0)
                matches("cannot grow", server.said)
                matches("could not be synced: .*end the server", server.said)

    def test_an_image_of_which_nothing_is_written_any_more_fails(self):
        plan = Plan()
        with Sessiond("--data", "data", **plan.environment) as server, server.client() as a:
            equal(a.ask("SET", "a", 1), OK)
            plan.set(1, FOREVER, 0, WRITE, file="sessions.new")
            matches("^-ERR", a.ask("SAVE").decode())
            plan.set(0)
            equal(a.ask("SAVE"), OK)

    def test_images_that_fail_take_no_room(self):
        """Neither what was written of them stays, nor do they use up the files that a journal may have."""
        os.mkdir("data")
        with open("data/sessions.new", "wb") as file:
            file.write(b"left by a server that was killed")
        with Sessiond("--data", "data", preexec=lambda: limit_files(4 << 20)) as server, server.client() as a:
            assert not os.path.exists("data/sessions.new")
            for key in "ab":
                equal(a.ask("SET", key, key * (2 << 20)), OK)
                saved = a.ask("SAVE")
            for _ in range(130):
                matches("^-ERR", saved.decode())
                saved = a.ask("SAVE")
            assert not os.path.exists("data/sessions.new")
            assert len(os.listdir("data")) <= 4, os.listdir("data")
            lift_limit(server)
            equal(a.ask("SAVE"), OK)
            equal(a.ask("SET", "c", "c"), OK)
            equal(len(os.listdir("data")), 2)
            server.stop(signal.SIGKILL)
            matches("images of the sessions are written to data again", server.said)
        with Sessiond("--data", "data") as server, server.client() as a:
            equal((a.ask("STRLEN", "a"), a.ask("STRLEN", "b"), a.ask("GET", "c")), (b":2097152\r\n",) * 2 + (b"$1\r\nc\r\n",))

    def test_images_that_fail_are_tried_seldom(self):
        """The journal is long enough for an image, which fails, and every change would begin another one."""
        with Sessiond("--data", "data", "--sync-interval", "1ms") as server, server.client() as a:
            os.mkdir("data/sessions.new")
            for _ in range(9):
                equal(a.ask("SET", "a", "a" * (8 << 20)), OK)
            matches("^-ERR", a.ask("SAVE").decode())
            for number in range(1000):
                equal(a.ask("SET", "b", number), OK)
            os.rmdir("data/sessions.new")
            until(lambda: a.ask("SAVE") == OK, "an image is complete")
            equal(server.stop(), 0)
            times = re.search(r"images of the sessions are written to data again \(after .*, met (\d+) time", server.said)
            assert int(times[1]) < 5, server.said

    def test_syncs_do_not_wait_for_an_image(self):
        """Nobody reads the pipe that it is to be written to."""
        with Sessiond("--data", "data", "--sync-interval", "10ms") as server, server.client() as a:
            os.mkfifo("data/sessions.new")
            equal(a.ask("BGSAVE"), b"+Background saving started\r\n")
            for number in range(3):
                equal(a.ask("SET", "a", number), OK)
                until(lambda: b"journal_unsynced_changes:0\r\n" in a.ask("INFO", "persistence"), "the change is synced")
            matches("in_progress:1", a.ask("INFO", "persistence").decode())
            with open("data/sessions.new", "rb") as file:
                file.read()
            until(lambda: b"in_progress:0" in a.ask("INFO", "persistence"), "a pipe is no image")
            equal(a.ask("SAVE"), OK)

    def test_room_is_seen_soon_though_the_interval_is_long(self):
        with Sessiond("--data", "data", "--sync-interval", "1h",
                      preexec=lambda: limit_files(3 << 20)) as server, server.client() as a:
            while (answer := a.ask("SET", "a", "v" * 100000)) == OK:
                pass
            matches("MISCONF", answer.decode())
            lift_limit(server)
            until(lambda: a.ask("SET", "a", "v") == OK, "there is room again")

    def test_room_for_a_little_is_none_for_what_waits(self):
        """What could not be written goes first, so all other changes are refused until it has gone."""
        with Sessiond("--data", "data", preexec=lambda: limit_files(24 << 20)) as server:
            with server.client() as a:
                equal(a.ask("MULTI"), OK)
                for key in "abc":
                    equal(a.ask("SET", key, "v" * (9 << 20)), b"+QUEUED\r\n")
                with self.assertRaises(ConnectionError):
                    a.ask("EXEC")
            with server.client() as a:
                for _ in range(3):
                    matches("^-MISCONF The disk has no room", a.ask("SET", "later", "x").decode())
                    equal(a.ask("EXISTS", "later"), b":0\r\n")
                matches("journal_last_write_status:err", a.ask("INFO", "persistence").decode())
                lift_limit(server)
                until(lambda: a.ask("SET", "later", "x") == OK, "there is room again")
            server.stop(signal.SIGKILL)
            matches("cannot grow: (.*\n)*.*there is room for the journal in data again", server.said)
        with Sessiond("--data", "data") as server:
            equal(size_of(server), 4)

    def test_a_transaction_is_kept_as_a_whole(self):
        """More than is gathered in memory; the disk has room for the first two of the three, and not for all."""
        with Sessiond("--data", "data", preexec=lambda: limit_files(24 << 20)) as server, server.client() as a:
            equal(a.ask("SET", "before", 1), OK)
            equal(a.ask("MULTI"), OK)
            for key in "abc":
                equal(a.ask("SET", key, "v" * (9 << 20)), b"+QUEUED\r\n")
            with self.assertRaises(ConnectionError):
                a.ask("EXEC")
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server, server.client() as a:
            equal(a.ask("EXISTS", "before", "a", "b", "c"), b":1\r\n")

    def test_a_command_with_many_keys_is_kept_as_a_whole(self):
        for name in ("MSET", "MSETNX"):
            with Sessiond("--data", name, preexec=lambda: limit_files(24 << 20)) as server, server.client() as a:
                equal(a.ask("SET", "before", 1), OK)
                with self.assertRaises(ConnectionError):
                    a.ask(name, *(word for key in "abc" for word in (key, "v" * (9 << 20))))
                server.stop(signal.SIGKILL)
            with Sessiond("--data", name) as server, server.client() as a:
                equal(a.ask("EXISTS", "before", "a", "b", "c"), b":1\r\n")

    def fill(self, a, name, size, *more):
        """Set keys until the bound refuses some. Returns how many it took."""
        count = refused = 0
        while refused < 100:
            answer = a.ask("SET", "%s:%d" % (name, count + refused), "v" * size, *more)
            count += answer == OK
            refused += answer != OK
        return count

    def test_a_full_server_starts_again(self):
        """Keys fill other shards than before, and each of them was full."""
        bound = "--data", "data", "--maxmemory", "64M"
        with Sessiond(*bound) as server, server.client() as a:
            count = self.fill(a, "k", 30000)
            equal(server.stop(), 0)
        for end in (signal.SIGKILL, signal.SIGTERM):
            with Sessiond(*bound) as server, server.client() as a:
                equal(size_of(server), count)
                for number in range(count + 100):
                    there = a.ask("EXISTS", "k:%d" % number)
                    equal(a.ask("EXPIRE", "k:%d" % number, 1000), there)
                server.stop(end)

    def test_what_has_expired_takes_no_room_of_what_came_later(self):
        with Sessiond("--data", "data", "--maxmemory", "1M") as server, server.client() as a:
            self.fill(a, "first", 1000, "PX", 1000)
            until(lambda: a.ask("DBSIZE") == b":0\r\n", "they have expired")
            count = self.fill(a, "second", 1000)
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data", "--maxmemory", "1M") as server, server.client() as a:
            matches(r"^\*%d\r\n" % count, a.ask("KEYS", "second:*").decode())

    def test_what_has_expired_evicts_nothing_at_a_start(self):
        bound = "--data", "data", "--maxmemory", "1M", "--maxmemory-policy"
        for policy in ("allkeys-lru", "volatile-lru"):
            with Sessiond(*bound, policy) as server, server.client() as a:
                equal(a.ask("FLUSHALL"), OK)
                for number in range(100):
                    equal(a.ask("SET", "stays:%d" % number, "v", "EX", 1000), OK)
                for turn in range(4):
                    for number in range(600):
                        equal(a.ask("SET", "goes:%d:%d" % (turn, number), "v" * 1000, "PX", 300), OK)
                    until(lambda: a.ask("DBSIZE") == b":100\r\n", "they have expired")
                matches("evicted_keys:0", a.ask("INFO", "stats").decode())
                server.stop(signal.SIGKILL)
            with Sessiond(*bound, policy) as server, server.client() as a:
                equal(a.ask("EXISTS", *("stays:%d" % number for number in range(100))), b":100\r\n")
                matches("evicted_keys:0", a.ask("INFO", "stats").decode())

    def test_wrong_words(self):
        matches("is for --data", refused("--sync", "always"))
        matches("1 ms to 1 h", refused("--data", "data", "--sync-interval", "1us"))
        matches("is for --sync interval", refused("--data", "data", "--sync", "system", "--sync-interval", "1s"))
        matches("always, interval or system", refused("--data", "data", "--sync", "often"))
        matches("No such file", refused("--data", "nix/nix"))
        with Sessiond() as server, server.client() as a:
            matches("start the server with --data DIR", a.ask("SAVE").decode())


class Waiting(Case):
    """Reports that wait concern what had a key before, and no session that took it since."""

    def start(self, clock="virtual"):
        return Sessiond("--data", "data", "--clock", clock, "--expired-to", "beanstalk://127.0.0.1:1/nobody")

    def take_over(self, a, saves):
        """Give the key "b", of which a report waits, to a session that lives beyond its deadline on disk."""
        equal(a.ask("SET", "a", "live", "EX", 17000), OK)
        equal(a.ask("ADVANCE", 1000), OK)
        equal(a.ask("EXPIRE", "a", 17900), b":1\r\n")
        equal(a.ask("SET", "b", "old", "EX", 17050), OK)
        equal(a.ask("ADVANCE", 17100000), OK)
        equal(a.ask("EXISTS", "a", "b"), b":1\r\n")
        equal(a.ask("RENAME", "a", "b"), OK)
        if saves:
            equal(a.ask("SAVE"), OK)

    def test_a_report_ends_no_session_that_took_the_key(self):
        for saves, end in ((0, signal.SIGKILL), (1, signal.SIGKILL), (0, signal.SIGTERM)):
            with self.start() as server, server.client() as a:
                self.take_over(a, saves)
                server.stop(end)
            with self.start() as server, server.client() as a:
                equal((a.ask("GET", "b"), saves, end), (b"$4\r\nlive\r\n", saves, end))
                equal(a.ask("FLUSHALL"), OK)

    def test_what_expires_in_the_transaction_that_sets_it_is_reported_once(self):
        # Each FLUSHDB waits for a tick, of a millisecond.
        words = [("SET", "lives", "v", "PX", 4), ("SET", "lives", "w", "EX", 1000), ("SET", "k", "v", "PX", 4),
                 ("SELECT", 1), *[("FLUSHDB",)] * 10]
        with self.start("real") as server, server.client() as a:
            equal(a.ask("MULTI"), OK)
            for word in words:
                equal(a.ask(*word), b"+QUEUED\r\n")
            equal(a.ask("EXEC"), b"*%d\r\n" % len(words) + len(words) * OK)
            server.stop(signal.SIGKILL)
        with self.start() as server, server.client() as a:
            matches("1 sessions are back from data; 0 have expired meanwhile\n.*1 expiries wait", server.said)
            equal(a.ask("GET", "lives"), b"$1\r\nw\r\n")


class Lifetimes(Case):
    """The end that nothing moves outlasts the server."""

    def left(self, client, key):
        """How long a key can live at most."""
        equal(client.ask("EXPIRE", key, 99999), b":1\r\n")
        return int(client.ask("TTL", key)[1:-2])

    def test_an_end_that_is_near_stays(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            folder = "data-%d" % end
            with Sessiond("--data", folder, "--lifetime", "200s") as server, server.client() as a:
                equal(a.ask("SET", "a", "x", "EX", 1800), OK)
                equal(a.ask("SET", "b", "x", "EX", 100), OK)
                server.stop(end)
            with Sessiond("--data", folder, "--lifetime", "200s") as server, server.client() as a:
                for key in "ab":
                    left = self.left(a, key)
                    assert 0 < left <= 200, (end, key, left)

    def test_an_end_stays_whatever_the_lifetime_is_now(self):
        """A shorter or longer --lifetime is of what is set from now on."""
        for end in (signal.SIGTERM, signal.SIGKILL):
            for now in ("50s", "3h"):
                folder = "data-%d-%s" % (end, now)
                with Sessiond("--data", folder, "--lifetime", "1000s") as server, server.client() as a:
                    equal(a.ask("SET", "a", "x", "EX", 1800), OK)
                    server.stop(end)
                with Sessiond("--data", folder, "--lifetime", now) as server, server.client() as a:
                    equal(a.ask("RENAME", "a", "b"), OK)
                    left = self.left(a, "b")
                    assert 500 < left <= 1000, (end, now, left)

    def test_what_had_none_gets_one(self):
        """Of a site that turned --lifetime on, or had left it out once. It begins once, not with each start."""
        library = compiled("support/shifted_wall.c", "-shared", "-fPIC")
        for first in (), ("--lifetime", "2h"):
            for end in (signal.SIGTERM, signal.SIGKILL):
                folder = "data-%d-%d" % (len(first), end)

                def start(*arguments, wall=0, folder=folder):
                    return Sessiond("--data", folder, "--clock", "virtual", *arguments, LD_PRELOAD=library, SHIFT=str(wall))

                with start(*first) as server, server.client() as a:
                    for key in "ab":
                        equal(a.ask("SET", key, "x", "EX", 1800), OK)
                    equal(a.ask("SET", "long", "x", "EX", 99999), OK)
                    equal(a.ask("SET", "forever", "x"), OK)
                    equal(server.stop(), 0)
                with start(wall=100) as server, server.client() as a:
                    check(("had lifetimes" in server.said) == bool(first), server.said)
                    equal(a.ask("EXPIRE", "a", 9999), b":1\r\n")
                    equal(server.stop(), 0)
                with start("--lifetime", "1h", wall=200) as server, server.client() as a:
                    check("had lifetimes" not in server.said, server.said)
                    for key in ("a", "long"):
                        assert 3590 < self.left(a, key) <= 3600
                    equal(a.ask("EXPIRE", "forever", 99999), b":1\r\n")
                    until(lambda: b"in_progress:0" in a.ask("INFO", "persistence"), "the image is complete")
                    server.stop(end)
                with start("--lifetime", "1h", "--keep-lifetimes", wall=1200) as server, server.client() as a:
                    equal(a.ask("SET", "a", "y", "EX", 99999), OK)
                    for key in ("a", "b", "long", "forever"):
                        left = self.left(a, key)
                        assert 2590 < left <= 2600, (first, end, key, left)


if __name__ == "__main__":
    main()
