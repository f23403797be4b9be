#!/usr/bin/env python3
"""How objects of the Python package end: closed twice, in use, in each kind of callback, and by the interpreter's end."""
# tier: check
import copy
import functools
import gc
import itertools
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
import unittest.mock
import weakref
from ctypes import byref

import binding
from harness import PATIENCE, Case, Server, check, equal, main, seed, until

import weekwheel
from weekwheel import jobs, timers
from weekwheel._library import SessionFound, Telling


class InCallbacks(Case):
    """Each cell of the table in the package's README: the object is closed in a callback."""

    def setUp(self):
        super().setUp()
        self.clock = weekwheel.VirtualClock()
        self.driver = weekwheel.Driver(clock=self.clock)
        self.map = weekwheel.Sessions(self.driver, ttl=1)
        self.addCleanup(self.clock.close)
        self.addCleanup(self.driver.close)
        self.raised = []

    def closing(self, thing):
        """A function that closes it, and keeps what that raises."""
        def close(*_):
            try:
                thing.close()
                self.raised.append(None)
            except weekwheel.WheelError as error:
                self.raised.append(type(error))
            return b""
        return close

    def settle(self):
        """Let what is due happen, and a stopped driver say so."""
        self.clock.advance(1)
        try:
            self.driver.settle()
        except weekwheel.Closed:
            until(lambda: self.raised, "the callback has ended")

    def is_over(self):
        with self.assertRaises(weekwheel.Closed):
            self.map["x"] = 1

    def test_a_map_in_a_timer(self):
        self.driver.schedule(1, self.closing(self.map))
        self.settle()
        equal(self.raised, [None])
        self.is_over()

    def test_a_driver_in_a_timer_is_stopped(self):
        self.driver.schedule(1, self.closing(self.driver))
        self.settle()
        equal(self.raised, [weekwheel.Busy])
        self.is_over()
        self.driver.close()

    def test_a_clock_in_use_goes_on(self):
        self.driver.schedule(1, self.closing(self.clock))
        self.settle()
        equal((self.raised, self.clock.now()), ([weekwheel.Busy], 1.0))

    def test_a_map_in_on_gone_of_a_thread(self):
        self.map.on_gone = self.closing(self.map)
        self.map["a"] = 1
        self.settle()
        equal(self.raised, [None])
        self.is_over()

    def test_a_map_in_on_gone_while_other_threads_come_there(self):
        held, gone, is_over = [], [], threading.Event()

        def close(_key, value, _why):
            gone.append(value)
            if held:
                held.pop().close()

        def collect():
            while not is_over.is_set():
                gc.collect()

        gc.freeze()  # what is there already, so that the collector is fast
        self.addCleanup(gc.unfreeze)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-5)
        collecting = [threading.Thread(target=collect) for _ in range(2)]
        for thread in collecting:
            thread.start()
        with weekwheel.Driver(clock=self.clock, workers=8) as driver:
            for _ in range(60):
                gone.clear()
                map = weekwheel.Sessions(driver, ttl=1, on_gone=close)
                for i in range(40):
                    map[str(i)] = i
                held.append(map)
                seen = weakref.ref(map)
                del map
                self.clock.advance(1)
                until(lambda: len(gone) == 40 and seen() is None, "all are told, and the map is gone")
                equal((sorted(gone), driver._users), (list(range(40)), set()))
            is_over.set()
        for thread in collecting:
            thread.join(PATIENCE)

    def test_a_driver_in_on_gone_of_a_thread_is_stopped(self):
        self.map.on_gone = self.closing(self.driver)
        self.map["a"] = 1
        self.settle()
        equal(self.raised, [weekwheel.Busy])
        self.is_over()

    def test_either_in_on_gone_of_a_call(self):
        for thing in self.map, self.driver:
            map = self.map if thing is self.map else weekwheel.Sessions(self.driver)
            map["a"], map["b"] = 1, 2
            self.raised.clear()
            map.on_gone = self.closing(map if thing is self.map else thing)
            check(map.delete("a"), "the call goes on")
            equal(self.raised, [None, None])  # of a, and in that of b, which is cleared
            self.is_over()

    def test_either_in_an_encoder(self):
        self.map["a"] = 1
        self.map.save("file", encode=self.closing(self.map))
        equal((self.raised.pop(), self.map["a"]), (weekwheel.Busy, 1))
        self.map.save("file", encode=self.closing(self.driver))
        equal(self.raised, [weekwheel.Busy])
        self.is_over()

    def test_either_in_a_decoder(self):
        self.map["a"] = 1
        self.map.save("file")
        self.map.delete("a")
        equal(self.map.load("file", decode=self.closing(self.map)).entries, 1)
        equal((self.raised.pop(), self.map["a"]), (weekwheel.Busy, b""))
        self.map.delete("a")
        with self.assertRaises(weekwheel.Closed):
            self.map.load("file", decode=self.closing(self.driver))
        equal(self.raised, [weekwheel.Busy])
        self.is_over()

    def test_either_in_a_loader(self):
        for thing in self.map, self.driver:
            self.raised.clear()
            map = weekwheel.Sessions(self.driver)
            with self.assertRaises(weekwheel.Closed):
                map.take("a", self.closing(map if thing is self.map else thing))
            equal(self.raised, [None])

    def test_a_map_in_a_walk(self):
        for i in range(1000):  # more than a call of the library visits
            self.map[str(i)] = i
        with self.assertRaises(weekwheel.Closed):
            for _ in self.map:
                self.map.close()
        self.is_over()

    def test_what_is_made_on_something_closed_says_so(self):
        self.driver.close()
        self.clock.close()
        for call in (lambda: weekwheel.Sessions(self.driver), lambda: weekwheel.Driver(clock=self.clock), self.clock.now,
                     lambda: self.clock.advance(1), lambda: self.map.take("a", str), lambda: self.map.save("file"),
                     lambda: list(self.map), self.map.clear, lambda: len(self.map), self.driver.settle):
            with self.assertRaises(weekwheel.Closed):
                call()
        for thing in self.map, self.driver, self.clock:
            thing.close()


class InUse(Case):
    def test_other_threads_use_what_is_closed(self):
        for round in range(10):
            clock = weekwheel.VirtualClock()
            driver = weekwheel.Driver(clock=clock)
            maps = [weekwheel.Sessions(driver, ttl=1, limit=100, on_gone=lambda *_: None) for _ in range(2)]
            failed = []

            def work(number):
                closed = 0
                calls = (lambda map: map.set("a", 1), lambda map: map.take("b", str.upper), lambda map: map.pop("a"),
                         lambda map: list(map.items()), lambda map: map.clear(), lambda map: clock.advance(0.3),
                         lambda map: driver.schedule(0.001, len, "").cancel(wait=True), lambda map: driver.stats())
                while closed < 30 and not failed:
                    number += 1
                    try:
                        calls[number % len(calls)](maps[number % 3 % 2])
                    except (weekwheel.Closed, weekwheel.LoadFailed):
                        closed += 1
                    except Exception as error:
                        failed.append(error)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            if round % 2:
                maps[0].close()
            closing = [threading.Thread(target=driver.close) for _ in range(2)]
            for thread in closing:
                thread.start()
            for thread in closing + threads:
                thread.join(PATIENCE)
                check(not thread.is_alive(), "it ends")
            driver.close()
            clock.close()
            equal(failed, [])

    def test_a_close_lets_those_that_wait_go(self):
        clock = weekwheel.VirtualClock()
        driver = weekwheel.Driver(clock=clock)
        begun, go, raised = threading.Event(), threading.Event(), []
        driver.schedule(0, lambda: (begun.set(), go.wait(PATIENCE)))
        begun.wait(PATIENCE)

        def settle():
            try:
                driver.settle()
            except weekwheel.Closed as error:
                raised.append(error)

        waiting = threading.Thread(target=settle)
        waiting.start()
        until(lambda: driver._calls, "it is in the library")
        closing = threading.Thread(target=driver.close)
        closing.start()
        waiting.join(PATIENCE)
        equal(len(raised), 1)
        check(closing.is_alive(), "the callback is waited for")
        go.set()
        closing.join(PATIENCE)
        clock.close()


class InterruptedClose(Case):
    def test_a_close_leaves_nothing_open(self):
        told = []

        def interrupt(key, *_):
            told.append(key)
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            with weekwheel.VirtualClock() as clock, weekwheel.Driver(clock=clock) as driver:
                maps = [weekwheel.Sessions(driver, on_gone=interrupt) for _ in range(2)]
                for number, map in enumerate(maps):
                    map[str(number)] = 1
                driver.schedule(1, print)
        equal(sorted(told), ["0", "1"])
        equal([thing._address for thing in (clock, driver, maps[0]._held, maps[1]._held)], [None] * 4)
        equal(timers._timers, {})
        driver.close()


class Interrupted(Case):
    """A handler of a signal raises in each place where the interpreter handles one in short calls."""

    def setUp(self):
        super().setUp()
        self.driver = self.enterContext(weekwheel.Driver())
        self.random = random.Random(seed())

        def interrupt(*_):
            raise KeyboardInterrupt

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        # The interpreter itself takes what is raised in a function that the library or the collector calls.
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        self.taken = []
        sys.unraisablehook = self.taken.append

    def interrupts(self, what, count=3000):
        for _ in range(count):
            try:
                self.taken.clear()
                signal.setitimer(signal.ITIMER_REAL, self.random.uniform(2e-5, 2e-4))
                while not self.taken:
                    what()
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def test_a_put_stays_whole(self):
        map = weekwheel.Sessions(self.driver)
        keys = itertools.cycle("abcde")
        self.interrupts(lambda: map.set(next(keys), 1))
        # A lookup that found an entry without a value would look for ever.
        for key in "abcde":
            found = SessionFound()
            map._held._call("ww_session_find", key.encode(), 1, byref(found))
            check(found.value in map._values, "it has a value")
        equal(len(map._values), 5, "no value is left over")

    def test_what_is_told_is_told_to_the_end(self):
        def tell():
            told, telling = [], Telling()
            try:
                with telling:
                    for i in range(50):
                        Telling.later(functools.partial(told.append, i))
            finally:
                seen.append((len(told), len(getattr(telling, "_told", []))))

        seen = []
        self.interrupts(tell)
        # 0: the handler raised before the end began.
        equal([one for one in seen if one[0] not in (0, one[1])], [])
        check(not Telling.later(print), "none is left that nobody ends")

    def test_a_call_is_over(self):
        map = weekwheel.Sessions(self.driver)
        map["a"] = 1
        self.interrupts(lambda: map.get("a"))
        equal(map._held._calls, [])
        closing = threading.Thread(target=map.close)
        closing.start()
        closing.join(PATIENCE)
        check(not closing.is_alive(), "it waits for no call")


class Copies(Case):
    def test_nothing_is_copied(self):
        with weekwheel.VirtualClock() as clock, weekwheel.Driver(clock=clock) as driver:
            for thing in (clock, driver, driver.schedule(1, print), weekwheel.Sessions(driver), jobs.Client("127.0.0.1:1"),
                          jobs.AsyncClient("127.0.0.1:1"), jobs.Job(jobs.Client("127.0.0.1:1"), 1, b"", {})):
                for make in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, f"{type(thing).__name__} cannot be copied or pickled"):
                        make(thing)


class Clients(Case):
    def setUp(self):
        super().setUp()
        server = self.enterContext(Server())
        self.client = self.enterContext(jobs.Client(server.address))

    def waits(self):
        with self.assertRaises(jobs.ConnectionLost):
            self.client.reserve()

    def test_a_close_ends_the_wait_of_another_thread(self):
        thread = threading.Thread(target=self.waits)
        thread.start()
        until(lambda: self.client._is_busy and self.client._file, "it waits")
        self.client.close()
        thread.join(PATIENCE)
        check(not thread.is_alive(), "it ends")
        equal(self.client.put("x").outcome, "inserted")

    def test_a_close_ends_a_command_that_connects(self):
        connects, may_connect = threading.Event(), threading.Event()
        connect, interrupt = socket.create_connection, self.client._interrupt

        def slow(*arguments):
            connects.set()
            may_connect.wait(PATIENCE)
            return connect(*arguments)

        self.client._interrupt = lambda: (interrupt(), may_connect.set())
        with unittest.mock.patch("socket.create_connection", slow):
            thread = threading.Thread(target=self.waits, daemon=True)
            thread.start()
            connects.wait(PATIENCE)
            closing = threading.Thread(target=self.client.close, daemon=True)
            closing.start()
            closing.join(PATIENCE)
        check(not closing.is_alive(), "it has closed")
        thread.join(PATIENCE)
        check(not thread.is_alive(), "it ends")

    def test_a_close_in_a_handler_of_a_signal_ends_the_wait_below(self):
        self.client.stats()
        before = signal.signal(signal.SIGALRM, lambda *_: self.client.close())
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        thread = threading.Thread(target=lambda: (
            until(lambda: self.client._is_busy, "it waits"), signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)))
        thread.start()
        self.waits()
        thread.join(PATIENCE)
        self.client.close()
        self.client.close()

    def test_a_handler_of_a_job_closes_or_is_interrupted(self):
        self.client.put("x", ttr=60)
        with self.assertLogs("weekwheel.jobs", "WARNING"):
            worker = jobs.Worker(self.client, lambda job: (worker.stop(), job.client.close()))
            equal(worker.run(), 0)

        def interrupt(job):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            jobs.Worker(self.client, interrupt).run(drain=True)
        with self.client.reserve(timeout=5) as job:
            equal(job.stats()["releases"], 2)  # by the connection, and by the worker


def script(text):
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", text], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


@binding.need_plain
class Exits(Case):
    def test_daemon_threads_use_all_at_the_end(self):
        for _ in range(5):
            equal(script("""
import threading, weekwheel
driver = weekwheel.Driver()
maps = [weekwheel.Sessions(driver, ttl=0.001, limit=100, on_gone=lambda *a: None) for _ in range(2)]
def work(number):
    while True:
        number += 1
        map = maps[number % 2]
        try:
            map[str(number % 60)] = 1
            map.take(str(number % 50), str.upper)
            map.pop(str(number % 40))
            list(map.items())
            driver.schedule(0.001, len, "").cancel(wait=True)
            if number % 100 == 0:
                driver.settle()
        except weekwheel.Closed:
            pass
for number in range(6):
    threading.Thread(target=work, args=(number,), daemon=True).start()
while maps[0].stats()["loads"] < 100:
    pass
print("end")
"""), (0, "end\n", ""))

    def test_no_driver_begins_at_the_end(self):
        status, out, err = script("""
import atexit
@atexit.register
def late():
    try:
        weekwheel.Driver()
    except weekwheel.Closed as error:
        print(error)
import weekwheel
weekwheel.Driver
""")
        equal((status, err), (0, ""))
        check("the interpreter ends" in out, out)

    def test_all_is_left_open_in_each_order(self):
        for names in ("clock", "clock driver", "clock driver map", "clock driver map timer"):
            equal(script(f"""
import weekwheel
clock = weekwheel.VirtualClock()
driver = weekwheel.Driver(clock=clock)
map = weekwheel.Sessions(driver, on_gone=print)
map["a"] = 1
timer = driver.schedule(1, print)
import sys
sys.kept = [{names.replace(" ", ", ")}]
"""), (0, "a 1 4\n", ""))

    def test_an_interrupt_at_the_end_leaves_no_driver_open(self):
        _, out, err = script("""
import weekwheel
def on_gone(*_):
    print("gone")
    raise KeyboardInterrupt
import sys
sys.kept = maps = [weekwheel.Sessions(weekwheel.Driver(), on_gone=on_gone) for _ in range(2)]
for map in maps:
    map["a"] = 1
""")
        equal(out, "gone\ngone\n")
        check("KeyboardInterrupt" in err, err)

    def test_a_subinterpreter_is_refused(self):
        status, out, err = script("""
import _xxsubinterpreters as interpreters
made = interpreters.create()
interpreters.run_string(made, '''
try:
    import weekwheel.timers
except ImportError as error:
    print(error)
''')
""")
        equal(status, 0, err)
        check("in the main interpreter only" in out, out)


if __name__ == "__main__":
    main()
