"""Clocks, drivers and their timers.

A driver moves the wheels. Driver has threads of its own, which call callbacks; LoopDriver (aio.py) belongs to an event
loop of asyncio.

The C library gets no pointer to an object of Python. It gets a number, under which `_timers` has the timer as long as
it may fire.
"""
from __future__ import annotations

import atexit
import contextlib
import contextvars
import ctypes
import functools
import itertools
import logging
import os
import sys
import threading
import traceback
import warnings
import weakref
from ctypes import byref, c_uint64, c_void_p
from types import TracebackType
from typing import Any, Callable, Iterator, TypeVar

from ._calling import Signals, do_all
from ._handle import Handle
from ._library import DRIVER_FN, THREAD_FN, DriverConfig, DriverStats, Held, call, library, lock
from ._time import Seconds, nanoseconds, whole
from .errors import EBUSY, ECLOSED, ESTALE, Closed, Stale, WheelError

logger = logging.getLogger("weekwheel")

THREADLESS = 1
OVERLAP = 1

ErrorHandler = Callable[[BaseException, "Timer"], object]
"""Called with what a callback raised, and its timer."""
DriverType = TypeVar("DriverType", bound="Driver")


class Clock(Held):
    """A clock of the C library. Times are seconds on it; those of different clocks cannot be compared."""

    def __init__(self, address: int, what: str = "clock") -> None:
        super().__init__(what)
        self._address = address

    @classmethod
    def elapsed(cls) -> Clock:
        """The time since the machine started, its sleep included (CLOCK_BOOTTIME): what a driver takes by itself."""
        return cls(library.ww_clock_elapsed())

    @classmethod
    def awake(cls) -> Clock:
        """The same without the machine's sleep (CLOCK_MONOTONIC)."""
        return cls(library.ww_clock_awake())

    @classmethod
    def wall(cls) -> Clock:
        """The time since 1970, UTC, as time.time() has it. It may be set."""
        return cls(library.ww_clock_wall())

    def now(self) -> float:
        """The clock's time in seconds."""
        return self.now_ns() / 1e9

    def now_ns(self) -> int:
        """The clock's time in nanoseconds, exactly."""
        ns = c_uint64()
        self._call("ww_clock_now", byref(ns))
        return ns.value


class VirtualClock(Clock):
    """A clock that stands still until it is moved: a test of a week takes as long as its work.

    Close it after the drivers on it.
    """

    def __init__(self, start: Seconds = 0) -> None:
        address = c_void_p()
        call("ww_clock_virtual_create", byref(address), nanoseconds(start), None)
        assert address.value is not None
        super().__init__(address.value, "virtual clock")

    def advance(self, by: Seconds) -> None:
        """Step forward. Callbacks run in the driver's threads: Driver.settle waits for them."""
        self._call("ww_clock_virtual_advance", nanoseconds(by))

    def set(self, time: Seconds) -> None:
        """Step to a time, forward or backwards."""
        self._call("ww_clock_virtual_set", nanoseconds(time))

    def close(self) -> None:
        """Free the clock. Raises Busy while a driver uses it. A second call does nothing."""
        self._close(library.ww_clock_virtual_destroy)

    def __enter__(self) -> VirtualClock:
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_address", None) is not None and not sys.is_finalizing():
            library.ww_clock_virtual_destroy(self._address)


class Timer(Handle):
    """A timer of a driver, as Driver.schedule and its like return it."""

    def __init__(self, driver: Driver, callback: Callable[..., object], arguments: tuple[Any, ...], periodic: bool) -> None:
        self.driver = driver
        self.callback = callback
        self.arguments = arguments
        self.missed = 0
        """In a callback: the periods that have passed without a call since the last one."""
        self.deadline = 0.0
        """In a callback: when it was due, in seconds of the driver's clock."""
        self._context = contextvars.copy_context()
        self._periodic = periodic
        self._handle = 0
        self._number = next(_numbers)
        self._is_over = False
        self._moving = 0  # moves under way
        self._again = 0  # moves that came while the callback was running, each of which makes it run once more
        self._begun = 0  # calls, and those that have not ended
        self._running = 0

    def cancel(self, wait: bool = False) -> bool:
        """Cancel the timer. Return True if that was in time: the callback has not run and never will, or, of a periodic
        timer, is not running and will not run again. Return False if it is running, has run, or was cancelled before. A
        periodic timer that has just become due may then not be called any more.

        With `wait`, the callback is not running any more when the call returns. In that callback itself this raises
        Busy.
        """
        name = "ww_driver_cancel_wait" if wait else "ww_driver_cancel"
        try:
            in_time = self.driver._call(name, self._handle) == 1
        except (Stale, Closed):
            in_time = False
        with lock:
            self._is_over = True
            if in_time or wait or self._periodic:
                _timers.pop(self._number, None)
            else:
                self._forget_if_called()
        return in_time

    def _forget_if_called(self) -> None:
        """Forget the timer if it will not be called again. A call that has begun in the C library may still wait for the
        interpreter, and comes. Where that cannot be told, the timer is kept until the driver is closed."""
        if not self._periodic and not self._running and not self._moving and self._begun > self._again:
            _timers.pop(self._number, None)

    def reschedule(self, delay: Seconds) -> bool:
        """Move the deadline to `delay` from now. Return True if that was in time: the former one will not fire. Return
        False if the callback is running: it runs again after that. Raises Stale if the timer has fired or was
        cancelled."""
        ns = nanoseconds(delay)
        with lock:
            if self._is_over:
                raise WheelError.of(ESTALE, "the timer was cancelled: schedule another")
            self._moving += 1
            _timers[self._number] = self  # its last call may just have ended here, but not yet in the C library
        in_time = True
        try:
            in_time = self.driver._call("ww_driver_reschedule", self._handle, ns) == 1
        finally:
            with lock:
                self._moving -= 1
                self._again += not in_time
                self._forget_if_called()
        return in_time

    def time_left(self) -> float | None:
        """Seconds until the deadline, or None if the timer will not fire any more."""
        ns = c_uint64()
        try:
            pending = self.driver._call("ww_driver_time_left", self._handle, byref(ns))
        except (Stale, Closed):
            return None
        return ns.value / 1e9 if pending else None

    def _fire(self, handle: int, deadline: int, missed: int) -> None:
        """Run the callback. It may have begun before the call that made the timer has returned."""
        self._handle, self.deadline, self.missed = handle, deadline / 1e9, missed
        with lock:
            self._begun += 1
            self._running += 1
        process = os.getpid()
        try:
            with self.driver._calling():
                self.driver._run(self)
        except BaseException as error:  # nothing may get back into the C library
            if os.getpid() != process:
                end_child(error)
            self.driver._failed(error, self)
        if os.getpid() != process:
            end_child(None)
        with lock:
            self._running -= 1
            if self._is_over and not self._running:
                _timers.pop(self._number, None)
            else:
                self._forget_if_called()


_numbers = itertools.count(1)
_timers: dict[int, Timer] = {}
_drivers: weakref.WeakSet[Driver] = weakref.WeakSet()


def end_child(error: BaseException | None) -> None:
    """A child that was forked in a callback may not go back into it: there the driver's threads are missing."""
    status = 0
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    elif error is not None:
        traceback.print_exception(error)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


def _called(_driver: int, firing: Any, number: int) -> None:
    timer = _timers.get(number)
    if timer is not None:
        timer._fire(firing.contents.handle, firing.contents.deadline, firing.contents.missed)


# A thread of a driver keeps its state of the interpreter from its begin to its end. Otherwise each call would make one
# and delete it, and in Python 3.11 a fork meanwhile may leave the child waiting for ever.
def _attach(_thread: int, _user: int) -> None:
    ctypes.pythonapi.PyGILState_Ensure()


def _detach(_thread: int, _user: int) -> None:
    ctypes.pythonapi.PyGILState_Release(0)


# Kept for ever: a driver may call them until it is destroyed.
_begin, _end = THREAD_FN(_attach), THREAD_FN(_detach)
_callback = DRIVER_FN(_called)
_CALLBACK = ctypes.cast(_callback, c_void_p).value


def log_error(error: BaseException, timer: Timer) -> None:
    """What becomes of an exception of a callback unless a driver has a handler: the logger "weekwheel" gets it."""
    logger.error("the callback %r of a timer has failed", timer.callback, exc_info=error)


class Driver(Held):
    """Timers that run by themselves: a thread of the C library moves the wheels, and workers call the callbacks.

    Callbacks run in threads that Python has not made, up to `workers` at a time, and need the interpreter's lock as all
    threads do. They see the context variables as they were when the timer was scheduled. What a callback raises goes to
    `on_error`, and the timer goes on.

    clock: None means the time since the machine started. tick: the precision. A deadline is rounded up to it; nothing
    is early. queue: how many expiries may wait for a worker. shards: 0 means by the number of processors.

    Close the driver, or use it in a `with` statement. At the interpreter's exit those left are closed; callbacks that
    run are waited for. Any thread may call every method.
    """

    _flags = 0

    def __init__(self, *, clock: Clock | None = None, tick: Seconds = 0.001, workers: int = 8, queue: int = 65536,
                 shards: int = 0, on_error: ErrorHandler = log_error) -> None:
        super().__init__("driver")
        if _exit.is_set():
            raise WheelError.of(ECLOSED, "the interpreter ends: no driver can begin any more")
        config = DriverConfig()
        call("ww_driver_config_default", byref(config))
        config.tick_ns = nanoseconds(tick)
        config.queue, config.workers = whole("queue", queue, 0, 2**64 - 1), whole("workers", workers, 0, 2**32 - 1)
        config.shards, config.flags = whole("shards", shards, 0, 2**32 - 1), self._flags
        config.thread_begin = ctypes.cast(_begin, c_void_p).value
        config.thread_end = ctypes.cast(_end, c_void_p).value
        self.clock = clock
        self.on_error = on_error
        self._users: set[Any] = set()  # maps on the driver, which must not be collected before it
        self._callers: list[int] = []  # the threads that are in a callback
        self._raised: list[BaseException] = []  # what escaped from on_gone of maps that were closed
        address = c_void_p()
        with Signals():
            config.clock = clock._enter() if clock else None
            try:
                call("ww_driver_create", byref(address), byref(config))
                self._address = address.value
            finally:
                if clock:
                    clock._exit()
        _drivers.add(self)

    # ---- Timers

    def schedule(self, delay: Seconds, callback: Callable[..., object], *arguments: Any) -> Timer:
        """Call callback(*arguments) once, `delay` from now."""
        return self._schedule("ww_driver_schedule", (nanoseconds(delay),), callback, arguments)

    def schedule_at(self, deadline: Seconds, callback: Callable[..., object], *arguments: Any) -> Timer:
        """Call callback(*arguments) once, at a time of the driver's clock. One that has passed fires at once."""
        return self._schedule("ww_driver_schedule_at", (nanoseconds(deadline),), callback, arguments)

    def every(self, period: Seconds, callback: Callable[..., object], *arguments: Any, delay: Seconds | None = None,
              overlap: bool = False) -> Timer:
        """Call callback(*arguments) every `period`, without drift, first after `delay` (None: a period). A call waits
        for the end of the one before, and periods that pass meanwhile are skipped and counted in Timer.missed. With
        `overlap` it does not wait."""
        ns = nanoseconds(period)
        first = ns if delay is None else nanoseconds(delay)
        return self._schedule("ww_driver_schedule_every", (first, ns, OVERLAP if overlap else 0), callback, arguments)

    def _schedule(self, name: str, times: tuple[int, ...], callback: Callable[..., object],
                  arguments: tuple[Any, ...]) -> Timer:
        if not callable(callback):
            raise TypeError(f"the callback {callback!r} cannot be called")
        timer = Timer(self, callback, arguments, len(times) > 1)
        handle = c_uint64()
        _timers[timer._number] = timer
        try:
            self._call(name, *times, _CALLBACK, timer._number, byref(handle))
        except WheelError:
            _timers.pop(timer._number, None)  # a close may have been faster
            raise
        timer._handle = handle.value
        return timer

    @contextlib.contextmanager
    def _calling(self) -> Iterator[None]:
        """This thread is in a callback: it cannot wait for its own end."""
        self._callers.append(threading.get_ident())
        try:
            yield
        finally:
            self._callers.remove(threading.get_ident())

    def _run(self, timer: Timer) -> None:
        timer._context.copy().run(timer.callback, *timer.arguments)  # a copy: calls may overlap

    def _failed(self, error: BaseException, timer: Timer) -> None:
        try:
            self.on_error(error, timer)
        except BaseException as second:  # as above
            log_error(second, timer)

    # ---- Time

    def now(self) -> float:
        """The time of the driver's clock in seconds, as deadlines count it."""
        return self.now_ns() / 1e9

    def now_ns(self) -> int:
        """The same in nanoseconds, exactly."""
        ns = c_uint64()
        self._call("ww_driver_now", byref(ns))
        return ns.value

    def settle(self) -> None:
        """Wait until every timer whose tick has come has fired and its callback has ended: the last line of a test that
        moves a virtual clock."""
        self._call_and_tell("ww_driver_settle")

    def step(self, until: Seconds | None = None) -> float | None:
        """Move the virtual clock to the next deadline, and settle. Return the clock's time, or None if nothing expires by
        `until` (None: ever)."""
        ns = c_uint64()
        if not self._call_and_tell("ww_driver_step", 2**64 - 1 if until is None else nanoseconds(until), byref(ns)):
            return None
        return ns.value / 1e9

    def stats(self) -> dict[str, int]:
        """What the driver counts: pending, scheduled, fired, cancelled, dropped, queued, oldest_ns, running, wakeups and
        bytes; see struct ww_driver_stats."""
        stats = DriverStats()
        self._call("ww_driver_stats", byref(stats))
        return {name: getattr(stats, name) for name, _ in DriverStats._fields_[:-1]}

    # ---- The end

    def close(self) -> None:
        """Cancel all timers, wait for callbacks that run and for calls in other threads, close the maps on the driver,
        and free it. In a callback of the driver this raises Busy, and the driver is stopped. A second call does
        nothing."""
        if not self._flags & THREADLESS and self._process == os.getpid() and threading.get_ident() in self._callers:
            self._answer("ww_driver_stop", None, None, None)
            raise WheelError.of(EBUSY, "a callback cannot wait for its own end: close the driver elsewhere. It is stopped")
        do_all((functools.partial(self._close, library.ww_driver_destroy), self._forget_timers, self._raise))

    def _before_free(self, address: int) -> None:
        # No callback begins any more, and no call waits for one that does not come.
        library.ww_driver_stop(address, None, None, None)
        try:
            do_all([user.close for user in list(self._users)])
        except BaseException as error:
            if self._users:
                raise
            self._raised.append(error)
        self._wait_for_calls()

    def _forget_timers(self) -> None:
        if self._address is None:
            with lock:
                for number in [number for number, timer in _timers.items() if timer.driver is self]:
                    del _timers[number]

    def _raise(self) -> None:
        raised, self._raised = self._raised, []
        if raised:
            raise raised[0]

    def __enter__(self: DriverType) -> DriverType:
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_address", None) is None:
            return
        if self._process == os.getpid():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
        self.close()


_exit = threading.Event()


@atexit.register
def _close_all() -> None:
    """No thread of a driver may call into an interpreter that is gone, nor a daemon thread come back from the library."""
    _exit.set()
    do_all([functools.partial(_close_or_log, driver) for driver in list(_drivers)])


def _close_or_log(driver: Driver) -> None:
    try:
        driver.close()
    except WheelError as error:
        logger.error("a driver could not be closed at the exit: %s", error)
