#!/usr/bin/env python3
"""The file of Sessions.save: whole at each moment, with the mode of the one before, whoever saves and interrupts."""
# tier: check
import asyncio
import os
import random
import signal
import stat
import sys
import threading

import binding
from harness import PATIENCE, Case, check, equal, main, seed, until

import weekwheel
from weekwheel._calling import Signals


class Saves(Case):
    def setUp(self):
        super().setUp()
        self.driver = self.enterContext(weekwheel.Driver())
        self.map = weekwheel.Sessions(self.driver)
        for i in range(300):
            self.map[str(i)] = "x" * (i % 50)

    def is_whole(self, count=300):
        with weekwheel.Sessions(self.driver) as other:
            equal((other.load("file").entries, other.get("49")), (count, "x" * 49))
        equal([name for name in os.listdir(".") if name.startswith("file")], ["file"])

    def test_two_at_once(self):
        self.map.save("file")
        ends, failed = threading.Event(), []

        def save():
            try:
                while not ends.is_set():
                    self.map.save("file")
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=save) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            with weekwheel.Sessions(self.driver) as other:
                equal(other.load("file").entries, 300)
        ends.set()
        for thread in threads:
            thread.join(PATIENCE)
        equal(failed, [])
        self.is_whole()

    def test_the_save_that_began_last_stays(self):
        begun, go = threading.Event(), threading.Event()

        def wait(value):
            begun.set()
            go.wait(PATIENCE)
            return b'"early"'

        early = weekwheel.Sessions(self.driver)
        early["a"] = 1
        thread = threading.Thread(target=lambda: early.save("file", encode=wait))
        # A periodic save is under way when the last one is made, which does not wait for it.
        slow, early.save = early.save, lambda *_, **how: slow("file", **how)
        thread.start()
        begun.wait(PATIENCE)
        check(not os.path.exists("file"), "it has not ended")
        last = weekwheel.Sessions(self.driver)
        last["a"] = 2
        # The encoder has the shard's lock: the map's own second save would wait. Its number is taken as one would.
        later = next(early._files._numbers)
        last.save("file")
        early._files._last[os.path.realpath("file")] = later
        go.set()
        thread.join(PATIENCE)
        with weekwheel.Sessions(self.driver) as other:
            other.load("file")
            equal(other["a"], 2)
        equal((os.listdir("."), early._files._last), (["file"], {}))

    def test_no_path_is_kept(self):
        for i in range(5):
            self.map.save(f"file{i}")
        with self.assertRaises(FileNotFoundError):
            self.map.save("nowhere/file")
        equal((self.map._files._last, self.map._files._under_way), ({}, set()))

    def test_modes_owners_and_links_stay(self):
        before = os.umask(0o027)
        self.addCleanup(os.umask, before)
        self.map.save("file")
        equal(stat.S_IMODE(os.stat("file").st_mode), 0o640, "a new file's is by the umask")
        os.mkdir("there")
        os.rename("file", "there/real")
        os.symlink("there/real", "file")
        os.chmod("there/real", 0o604)
        if os.geteuid() == 0:
            os.chown("there/real", 1, 2)
        owner = (os.stat("file").st_uid, os.stat("file").st_gid)
        self.map.save("file")
        check(os.path.islink("file"), "it is a link still")
        now = os.stat("there/real")
        equal((stat.S_IMODE(now.st_mode), (now.st_uid, now.st_gid), os.listdir("there")), (0o604, owner, ["real"]))

    def test_an_encoder_makes_bytes_and_a_path_is_one(self):
        with self.assertRaises(TypeError):
            self.map.save("file", encode=str)
        equal(os.listdir("."), [])
        equal((self.map.save(b"file", encode=lambda value: bytearray(b'"%s"' % value.encode())), os.listdir(".")), (300, ["file"]))
        self.is_whole()

    def test_what_is_no_file_stays(self):
        os.mkfifo("pipe")
        for name in "pipe", ".", "/dev/null":
            with self.assertRaises(ValueError):
                self.map.save(name)
        check(stat.S_ISFIFO(os.stat("pipe").st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode), "both are there")
        with self.assertRaises(FileNotFoundError):
            self.map.save("nowhere/file")
        equal(os.listdir("."), ["pipe"])

    def test_an_interruption_arrives_at_each_moment(self):
        self.map.save("file")
        random_, came, lost = random.Random(seed()), [], 0

        def interrupt(*_):
            came.append(1)
            raise KeyboardInterrupt

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))

        def load():
            with weekwheel.Sessions(self.driver) as other:
                other.load("file")

        # The interpreter itself takes what is raised in a finalizer.
        ignored = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda told: ignored.append(told.exc_type)
        uses = (lambda: self.map.save("file"), load, lambda: equal(len(list(self.map.items())), 300))
        for round in range(120):
            came.clear()
            try:
                signal.setitimer(signal.ITIMER_REAL, random_.uniform(1e-5, 3e-3))
                uses[round % 3]()
                until(lambda: came, "the signal comes")
                lost += 1
            except KeyboardInterrupt:
                pass
            equal(signal.getsignal(signal.SIGALRM), interrupt)
            self.is_whole()

        equal(lost, ignored.count(KeyboardInterrupt), "lost, where the interpreter did not say so")

    def test_a_handler_that_only_takes_note_ends_no_save(self):
        came = []
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, lambda *_: came.append(1)))

        def encode(value):
            if value == "x":
                signal.raise_signal(signal.SIGALRM)
            return b'"%s"' % value.encode()

        equal(self.map.save("file", encode), 300)
        check(came, "it came")
        self.is_whole()

    def test_an_interruption_in_an_encoder_ends_the_save(self):
        self.map.save("file")

        def encode(_value):
            signal.raise_signal(signal.SIGINT)
            return b"0"

        with self.assertRaises(KeyboardInterrupt):
            self.map.save("file", encode)
        self.is_whole()

    def encodes(self, use):
        """Save a map of one entry. The encoder does this."""
        with weekwheel.Sessions(self.driver) as map:
            map["a"] = 1
            map.save("file", lambda value: (use(), b"0")[1])

    def test_each_signal_that_came_is_handled_and_the_first_raises(self):
        came = []
        self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, lambda *_: came.append(1)))

        with self.assertRaises(KeyboardInterrupt):
            with Signals():
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGTERM)
        equal(came, [1])

    def test_a_handler_that_is_set_meanwhile_stays(self):
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, lambda *_: None))
        self.encodes(lambda: signal.signal(signal.SIGALRM, print))
        equal(signal.getsignal(signal.SIGALRM), print)

    def test_a_save_in_a_thread_holds_no_signals(self):
        seen, handler = [], signal.getsignal(signal.SIGINT)
        thread = threading.Thread(target=lambda: self.encodes(lambda: seen.append(signal.getsignal(signal.SIGINT))))
        thread.start()
        thread.join(PATIENCE)
        equal(seen, [handler])

    def test_a_signal_of_a_loop_goes_on_to_restart_calls_of_the_system(self):
        async def run():
            loop, seen = asyncio.get_running_loop(), []
            loop.add_signal_handler(signal.SIGUSR1, print)
            noop = signal.getsignal(signal.SIGUSR1)
            self.encodes(lambda: seen.append(signal.getsignal(signal.SIGUSR1)))
            loop.remove_signal_handler(signal.SIGUSR1)
            equal(seen, [noop])

        asyncio.run(run())


if __name__ == "__main__":
    main()
