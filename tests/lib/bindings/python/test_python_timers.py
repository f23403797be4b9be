#!/usr/bin/env python3
"""The timers of the Python package: in threads, on an event loop, over forks, and at the end of the interpreter."""
# tier: check
import asyncio
import contextvars
import datetime
import gc
import os
import signal
import subprocess
import sys
import threading
import unittest
import warnings
import weakref

import binding
from harness import PATIENCE, Case, check, equal, main, until

import weekwheel
from weekwheel import timers


class OnVirtualTime(Case):
    """Each test has a driver on a clock that stands still."""

    def setUp(self):
        super().setUp()
        self.clock = weekwheel.VirtualClock(1)
        self.errors = []
        self.driver = weekwheel.Driver(clock=self.clock, on_error=lambda error, timer: self.errors.append((error, timer)))
        self.calls = []
        self.addCleanup(self.clock.close)
        self.addCleanup(self.driver.close)

    def move(self, by):
        """Move the clock. Return what was called."""
        self.clock.advance(by)
        self.driver.settle()
        calls, self.calls[:] = list(self.calls), []
        return calls


class Timers(OnVirtualTime):
    def test_a_timer_fires_at_its_deadline_and_not_before(self):
        self.driver.schedule(1.5, self.calls.append, "late")
        self.driver.schedule(datetime.timedelta(milliseconds=20), self.calls.append, "soon")
        self.driver.schedule_at(1.01, self.calls.append, "at")
        equal(self.move(0.009), [])
        equal(self.move(0.001), ["at"])
        equal(self.move(0.010), ["soon"])
        equal(self.move(1.479), [])
        equal(self.move(0.001), ["late"])
        equal(timers._timers, {}, "nothing is kept of what has fired")

    def test_a_week_takes_no_time(self):
        self.driver.schedule(7 * 86400, self.calls.append, "week")
        equal(self.driver.step(), 1 + 7 * 86400)
        equal(self.calls, ["week"])
        equal(self.driver.step(), None)

    def test_a_cancelled_timer_does_not_fire(self):
        timer = self.driver.schedule(1, self.calls.append, 1)
        equal(timer.time_left(), 1.0)
        check(timer.cancel(), "in time")
        check(not timer.cancel(), "a second time")
        equal(timer.time_left(), None)
        with self.assertRaises(weekwheel.Stale):
            timer.reschedule(1)
        equal(self.move(2), [])
        equal(timers._timers, {})

    def test_a_timer_is_moved(self):
        timer = self.driver.schedule(1, self.calls.append, 1)
        check(timer.reschedule(3), "in time")
        equal(self.move(2), [])
        equal(self.move(1), [1])
        with self.assertRaises(weekwheel.Stale):
            timer.reschedule(1)
        equal(timers._timers, {}, "a refused move keeps nothing")

    def test_a_callback_keeps_its_own_timer_alive(self):
        def again():
            self.calls.append(self.clock.now())
            if len(self.calls) < 3:
                check(not timer.reschedule(1), "it runs")

        timer = self.driver.schedule(1, again)
        for _ in range(3):
            self.clock.advance(1)
            self.driver.settle()
        equal(self.calls, [2, 3, 4])
        equal(self.errors, [])
        equal(timers._timers, {})

    def test_a_periodic_timer_has_no_drift_and_tells_what_it_missed(self):
        def tick():
            self.calls.append((timer.deadline, timer.missed))

        timer = self.driver.every(0.5, tick)
        equal(self.move(0), [])
        equal(self.move(0.5), [(1.5, 0)])
        equal(self.move(2), [(2.0, 0)])
        equal(self.move(0.5), [(4.0, 3)])
        check(timer.cancel(), "it is not running")
        equal(self.move(5), [])
        equal(timers._timers, {})

    def test_a_periodic_timer_may_begin_at_once(self):
        # It may fire before the call returns.
        timer = self.driver.every(0.5, self.calls.append, "now", delay=0)
        equal(self.move(0), ["now"])
        equal(self.move(0.499), [])
        equal(self.move(0.001), ["now"])
        timer.cancel()

    def test_a_callback_may_cancel_its_own_timer(self):
        def once():
            with self.assertRaises(weekwheel.Busy):
                timer.cancel(wait=True)
            self.calls.append(timer.cancel())

        timer = self.driver.every(1, once)
        equal(self.move(1), [False])
        equal(self.move(5), [])
        equal((self.errors, timers._timers), ([], {}))

    def test_what_a_callback_raises_goes_to_on_error_and_the_timer_goes_on(self):
        for error in (ZeroDivisionError("x"), SystemExit(3), KeyboardInterrupt()):
            def fail(error=error):
                raise error

            timer = self.driver.every(1, fail)
            self.move(2)
            self.move(1)
            equal(self.errors, [(error, timer), (error, timer)])
            self.errors.clear()
            timer.cancel()

    def test_without_a_handler_an_error_is_logged(self):
        with weekwheel.Driver(clock=self.clock) as driver, self.assertLogs("weekwheel", "ERROR") as log:
            driver.schedule(1, lambda: 1 / 0)
            self.clock.advance(1)
            driver.settle()
        check("ZeroDivisionError" in log.output[0], log.output)

    def test_a_callback_sees_the_context_of_its_scheduling(self):
        request = contextvars.ContextVar("request", default="none")

        def see():
            self.calls.append(request.get())
            request.set("changed")

        request.set("a")
        self.driver.schedule(1, see)
        timer = self.driver.every(1, see, overlap=True)
        request.set("b")
        self.driver.schedule(2, see)
        equal((self.move(1), sorted(self.move(1))), (["a", "a"], ["a", "b"]))
        timer.cancel()
        equal(request.get(), "b")

    def test_errors_are_exceptions_that_say_what_to_do(self):
        for call in (lambda: self.driver.schedule(-1, print), lambda: self.driver.schedule(float("nan"), print),
                     lambda: self.driver.schedule(2.0**62, print), lambda: self.driver.schedule(float("inf"), print)):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(TypeError):
            self.driver.schedule(1, None)
        with self.assertRaises(weekwheel.WheelError) as raised:
            self.driver.schedule(5 * 10**9, print)  # beyond the driver's last time
        equal(raised.exception.number, -4)
        with self.assertRaises(weekwheel.WheelError):
            self.driver.every(0, print)
        with self.assertRaises(weekwheel.Busy):
            self.clock.close()
        equal(timers._timers, {}, "a refused timer keeps nothing")
        timer = self.driver.schedule(1, print)
        self.driver.close()
        self.driver.close()
        for call in (lambda: self.driver.schedule(1, print), self.driver.now, self.driver.stats):
            with self.assertRaises(weekwheel.Closed):
                call()
        check(not timer.cancel(), "it was cancelled by the close")
        equal(timers._timers, {})

    def test_seconds_are_exact(self):
        from weekwheel._time import nanoseconds
        for time, ns in ((0.1, 10**8), (0.001, 10**6), (1.5, 15 * 10**8), (3, 3 * 10**9), (1e-9, 1), (0.7, 7 * 10**8),
                         (datetime.timedelta(days=7, microseconds=1), 604800 * 10**9 + 1000)):
            equal(nanoseconds(time), ns)

    def test_numbers_of_the_driver(self):
        self.driver.schedule(1, self.calls.append, 1)
        self.driver.schedule(9, self.calls.append, 1)
        self.move(1)
        stats = self.driver.stats()
        equal((stats["pending"], stats["scheduled"], stats["fired"]), (1, 2, 1))


class Threads(Case):
    def test_callbacks_run_in_threads_on_real_clocks(self):
        for clock in (None, weekwheel.Clock.elapsed(), weekwheel.Clock.awake(), weekwheel.Clock.wall()):
            with weekwheel.Driver(clock=clock) as driver:
                done, where = threading.Event(), []
                driver.schedule(0.001, lambda: (where.append(threading.get_ident()), done.set()))
                check(done.wait(PATIENCE), "it fires")
                check(where != [threading.get_ident()], "in another thread")

    def test_a_cancel_waits_for_the_callback(self):
        with weekwheel.Driver() as driver:
            begun, go, ended = threading.Event(), threading.Event(), []

            def slow():
                begun.set()
                go.wait(PATIENCE)
                ended.append(1)

            timer = driver.schedule(0, slow)
            begun.wait(PATIENCE)
            check(not timer.cancel(), "it runs")
            threading.Timer(0.01, go.set).start()
            timer.cancel(wait=True)
            equal(ended, [1])

    def test_many_threads_schedule_move_and_cancel(self):
        with weekwheel.Driver() as driver:
            fired, cancelled, lock = [], [], threading.Lock()

            def work():
                for i in range(300):
                    timer = driver.schedule(0.001 * (i % 3), fired.append, 1)
                    if i % 2:
                        try:
                            timer.reschedule(0.002)
                        except weekwheel.Stale:
                            pass
                    if i % 5 == 0 and timer.cancel():
                        with lock:
                            cancelled.append(1)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            until(lambda: driver.stats()["pending"] + driver.stats()["running"] + driver.stats()["queued"] == 0, "all fired")
            check(len(fired) + len(cancelled) >= 1200, (len(fired), len(cancelled)))
            equal(driver.stats()["fired"], len(fired))
        equal(timers._timers, {}, "nothing is kept")

    def test_what_a_timer_holds_is_let_go(self):
        class Thing:
            def call(self):
                pass

        with weekwheel.Driver(clock=weekwheel.VirtualClock()) as driver:
            thing = Thing()
            seen = weakref.ref(thing)
            timer = driver.schedule(1, thing.call)
            del thing
            check(seen() is not None, "a pending timer holds what it calls")
            timer.cancel()
            gc.collect()
            check(seen() is not None, "the timer itself has it, for who keeps that")
            del timer
            gc.collect()
            check(seen() is None, "and lets it go")

    def test_a_driver_that_nobody_closed_is_closed_with_a_warning(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            driver = weekwheel.Driver()
            weekwheel.Sessions(driver).set("a", "b")
            del driver
            gc.collect()
        equal([one.category for one in caught], [ResourceWarning])


class Loops(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.clock = weekwheel.VirtualClock(1)
        self.driver = weekwheel.LoopDriver(clock=self.clock)
        self.calls = []

    async def asyncTearDown(self):
        self.driver.close()
        self.clock.close()

    async def until(self, count):
        for _ in range(10000):
            if len(self.calls) >= count:
                return
            await asyncio.sleep(0.001)
        self.fail(self.calls)

    async def test_callbacks_and_coroutines_run_in_the_loop(self):
        async def task(name):
            await asyncio.sleep(0)
            self.calls.append((name, threading.get_ident()))

        self.driver.schedule(1, lambda: self.calls.append(("function", threading.get_ident())))
        self.driver.schedule(1, task, "task")
        await asyncio.sleep(0.01)
        equal(self.calls, [])
        self.clock.advance(1)
        await self.until(2)
        here = threading.get_ident()
        equal(sorted(self.calls), [("function", here), ("task", here)])
        equal(timers._timers, {})

    async def test_real_time_wakes_the_loop(self):
        driver = weekwheel.LoopDriver()
        await asyncio.wait_for(driver.sleep(0.002), PATIENCE)
        driver.close()

    async def test_a_turn_takes_a_number_of_callbacks(self):
        for budget in -1, 2**32:
            with self.assertRaises(ValueError):
                self.driver.dispatch(budget)
        equal(self.driver.dispatch(1), 0)

    async def test_a_close_in_a_child_leaves_the_parents_driver_on_its_loop(self):
        child = os.fork()
        if child == 0:
            self.driver.close()
            os._exit(0)
        os.waitpid(child, 0)
        self.driver.schedule(1, self.calls.append, 1)
        self.clock.advance(1)
        await self.until(1)

    async def test_sleep_follows_the_virtual_clock_and_can_be_cancelled(self):
        week = asyncio.create_task(self.driver.sleep(7 * 86400))
        year = asyncio.create_task(self.driver.sleep(365 * 86400))
        await asyncio.sleep(0)
        self.clock.advance(7 * 86400)
        await asyncio.wait_for(week, PATIENCE)
        year.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await year
        equal((self.driver.stats()["pending"], timers._timers), (0, {}))

    async def test_a_close_ends_sleeps(self):
        sleeps = [asyncio.create_task(self.driver.sleep(9)) for _ in range(3)]
        await asyncio.sleep(0)
        sleeps[0].cancel()
        self.driver.close()
        for sleep, kind in zip(sleeps, (asyncio.CancelledError, weekwheel.Closed, weekwheel.Closed)):
            with self.assertRaises(kind):
                await asyncio.wait_for(sleep, PATIENCE)
        with self.assertRaises(weekwheel.Closed):
            await self.driver.sleep(1)

    async def test_callbacks_and_tasks_see_the_context_of_their_scheduling(self):
        request = contextvars.ContextVar("request")

        async def task():
            await asyncio.sleep(0)
            self.calls.append(request.get())

        request.set("a")
        self.driver.schedule(1, lambda: self.calls.append(request.get()))
        self.driver.schedule(1, task)
        request.set("b")
        self.clock.advance(1)
        await self.until(2)
        equal(self.calls, ["a", "a"])

    async def test_errors_go_to_the_loop(self):
        async def fail():
            raise ValueError("task")

        asyncio.get_running_loop().set_exception_handler(lambda _loop, what: self.calls.append(str(what["exception"])))
        self.driver.schedule(1, fail)
        self.driver.schedule(1, lambda: 1 / 0)
        self.clock.advance(1)
        await self.until(2)
        equal(sorted(self.calls), ["division by zero", "task"])

    async def test_a_callback_may_close_the_driver(self):
        driver = weekwheel.LoopDriver(clock=self.clock)
        driver.schedule(1, lambda: (driver.close(), self.calls.append(1)))
        driver.schedule(1, self.calls.append, 2)
        self.clock.advance(1)
        await self.until(1)
        await asyncio.sleep(0.01)
        check(len(self.calls) <= 2, self.calls)
        with self.assertRaises(weekwheel.Closed):
            driver.schedule(1, print)

    async def test_more_than_a_turn_takes_all_fire(self):
        for i in range(1000):
            self.driver.schedule(1, self.calls.append, i)
        self.clock.advance(1)
        await self.until(1000)
        equal(sorted(self.calls), list(range(1000)))


class Interrupts(Case):
    """What leaves a loop from its own callbacks leaves it from a driver's, too."""

    def leaves(self, kind, use):
        loop, told = asyncio.new_event_loop(), []
        loop.set_exception_handler(lambda _loop, what: told.append(what))

        async def go():
            with weekwheel.LoopDriver() as driver:
                use(driver)
                await asyncio.sleep(PATIENCE)

        with self.assertRaises(kind):
            loop.run_until_complete(go())
        equal(told, [])
        loop.close()
        gc.collect()

    def test_in_a_callback(self):
        def leave():
            raise SystemExit(3)

        for kind, callback in (KeyboardInterrupt, lambda: signal.raise_signal(signal.SIGINT)), (SystemExit, leave):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the loop is left with a task
                self.leaves(kind, lambda driver: driver.schedule(0, callback))
                self.leaves(kind, lambda driver: driver.every(1, callback, delay=0))

    def test_in_on_gone(self):
        def use(driver):
            map = weekwheel.Sessions(driver, ttl=0.001, on_gone=lambda *_: signal.raise_signal(signal.SIGINT))
            map["a"] = 1

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.leaves(KeyboardInterrupt, use)

    def test_in_a_task_once(self):
        async def task():
            await asyncio.sleep(0)
            signal.raise_signal(signal.SIGINT)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.leaves(KeyboardInterrupt, lambda driver: driver.schedule(0, task))


def script(text):
    """Run a program of Python. Return its exit status and what it said."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


@binding.need_plain
class Processes(Case):
    def test_a_child_is_told_that_the_driver_is_not_its_own(self):
        status, out, err = script("""
import os, weekwheel
driver = weekwheel.Driver()
map = weekwheel.Sessions(driver)
map["a"] = 1
timer = driver.schedule(1000, print)
if os.fork() == 0:
    for call in (lambda: driver.schedule(1, print), lambda: map["a"], lambda: timer.reschedule(1)):
        try:
            call()
        except weekwheel.Closed:
            print("closed", end=" ", flush=True)
    print(timer.cancel(), timer.time_left(), end=" ", flush=True)
    driver.close()
    with weekwheel.Driver(clock=weekwheel.VirtualClock()) as own:
        own.schedule(1, lambda: print("own", end=" ", flush=True))
        own.step()
    raise SystemExit(0)
print("child", os.waitstatus_to_exitcode(os.wait()[1]), map["a"], timer.cancel())
driver.close()
""")
        equal((status, out, err), (0, "closed closed closed False None own child 0 1 True\n", ""))

    def test_a_child_that_is_forked_while_a_load_is_kept(self):
        status, out, err = script("""
import os, signal, tempfile, threading, weekwheel
os.chdir(tempfile.mkdtemp())
driver = weekwheel.Driver()
map = weekwheel.Sessions(driver, shards=1)
map["a"] = 1
encodes, loads, go, goes_on = (threading.Event() for _ in range(4))
def load(key):
    loads.set()
    go.wait()
def encode(value):
    encodes.set()
    goes_on.wait()
    return b"0"
threads = [threading.Thread(target=lambda: map.take("k", load)), threading.Thread(target=lambda: map.save("file", encode))]
threads[0].start()
loads.wait()
threads[1].start()
encodes.wait()
go.set()  # the load is to be kept, and waits for the encoder's shard
while map._loads.lock.acquire(blocking=False):
    map._loads.lock.release()
if os.fork() == 0:
    signal.alarm(%d)
    for call in (lambda: map.delete("a"), lambda: map.pop("a"), map.clear, lambda: map.rename("a", "b"),
                 lambda: map.take("k", str), lambda: map.save("other")):
        try:
            call()
        except weekwheel.Closed:
            print("closed", end=" ", flush=True)
    os._exit(0)
status = os.wait()[1]
goes_on.set()
for thread in threads:
    thread.join()
driver.close()
print("child", os.waitstatus_to_exitcode(status))
""" % (PATIENCE // 3))
        equal((status, out, err), (0, "closed closed closed closed closed closed child 0\n", ""))

    def test_a_child_of_a_callback_does_not_go_back_into_it(self):
        for end, expected in (("pass", 0), ("raise SystemExit(7)", 7), ("raise ValueError('x')", 1)):
            status, out, _ = script(f"""
import os, weekwheel
def forks():
    if os.fork() == 0:
        {end}
    else:
        print(os.waitstatus_to_exitcode(os.wait()[1]))
with weekwheel.Driver(clock=weekwheel.VirtualClock()) as driver:
    driver.schedule(1, forks)
    driver.step()
""")
            equal((status, out), (0, f"{expected}\n"))

    def test_forks_while_callbacks_run(self):
        status, out, err = script("""
import os, weekwheel
driver = weekwheel.Driver()
timers = [driver.every(0.001, lambda: None, overlap=True) for _ in range(20)]
for _ in range(30):
    if os.fork() == 0:
        driver.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
driver.close()
""")
        equal((status, out, err), (0, "", ""))

    def test_the_interpreter_ends_while_timers_fire(self):
        status, out, err = script("""
import weekwheel
driver = weekwheel.Driver()
for _ in range(50):
    driver.every(0.001, lambda: sum(range(1000)), overlap=True)
map = weekwheel.Sessions(driver, ttl=0.001, on_gone=lambda *a: None)
for i in range(1000):
    map[str(i)] = i
print("end")
""")
        equal((status, out, err), (0, "end\n", ""))

    def test_a_missing_library_is_named(self):
        status, _, err = script("""
import os
os.environ["WEEKWHEEL_LIBRARY"] = "/nowhere/libweekwheel.so.1"
import weekwheel, weekwheel.errors
weekwheel.Driver()
""")
        equal(status, 1)
        check("/nowhere/libweekwheel.so.1 cannot be loaded" in err and "WEEKWHEEL_LIBRARY" in err, err)


if __name__ == "__main__":
    main()
