"""The C library as ctypes sees it: where it is, its functions with their types, and its errors as exceptions.

Structures end in spare room, so that a later library, whose structures may have more members, writes into nothing else.
"""
from __future__ import annotations

import _thread
import ctypes
import os
import sys
import threading
import weakref
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable

from ._calling import Signals
from ._handle import Handle
from .errors import ECLOSED, WheelError

NO_END = 2**64 - 1
NAME = "libweekwheel.so.1"
SPARE = 32


class Firing(ctypes.Structure):
    """struct ww_firing"""
    _fields_ = [("handle", c_uint64), ("deadline", c_uint64), ("missed", c_uint64)]


class DriverConfig(ctypes.Structure):
    """struct ww_driver_config"""
    _fields_ = [("clock", c_void_p), ("allocator", c_void_p), ("tick_ns", c_uint64), ("queue", c_size_t),
                ("workers", c_uint32), ("shards", c_uint32), ("flags", c_uint32), ("thread_begin", c_void_p),
                ("thread_end", c_void_p), ("thread_user", c_void_p), ("share", c_uint32), ("spare", c_uint64 * SPARE)]


class DriverStats(ctypes.Structure):
    """struct ww_driver_stats, without the levels"""
    _fields_ = [(name, c_uint64) for name in ("pending", "scheduled", "fired", "cancelled", "dropped", "queued",
                                              "oldest_ns", "running", "wakeups", "bytes")] + \
        [("spare", c_uint64 * SPARE)]


class SessionConfig(ctypes.Structure):
    """struct ww_session_config"""
    _fields_ = [("ttl", c_uint64), ("jitter_max", c_uint64), ("jitter", c_uint32), ("shards", c_uint32),
                ("limit", c_size_t), ("gone", c_void_p), ("user", c_void_p), ("lifetime", c_uint64),
                ("flags", c_uint32), ("weight_limit", c_uint64), ("share", c_uint32), ("spare", c_uint64 * SPARE)]


class SessionOrder(ctypes.Structure):
    """struct ww_session_order"""
    _fields_ = [("ttl", c_uint64), ("lifetime", c_uint64), ("end", c_uint64), ("deadline", c_uint64),
                ("version", c_uint64), ("flags", c_uint32), ("weight", c_uint64), ("spare", c_uint64 * SPARE)]


class SessionFound(ctypes.Structure):
    """struct ww_session_found"""
    _fields_ = [("value", c_void_p), ("version", c_uint64), ("ttl", c_uint64), ("left", c_uint64),
                ("deadline", c_uint64), ("end_left", c_uint64), ("weight", c_uint64), ("flags", c_uint32),
                ("spare", c_uint64 * SPARE)]


class SessionStats(ctypes.Structure):
    """struct ww_session_stats"""
    _fields_ = [(name, c_uint64) for name in (
        "entries", "hits", "misses", "expired", "evicted", "stale", "loads", "loads_failed", "loads_shared",
        "loads_ahead", "loads_outdated", "loads_late", "failures_kept", "load_time", "weight", "pinned",
        "not_admitted", "load_time_max", "bytes")] + [("spare", c_uint64 * SPARE)]


class SessionWriter(ctypes.Structure):
    """struct ww_session_writer"""
    _fields_ = [("write", c_void_p), ("encode", c_void_p), ("context", c_void_p), ("wall", c_void_p),
                ("spare", c_uint64 * SPARE)]


class SessionReader(ctypes.Structure):
    """struct ww_session_reader"""
    _fields_ = [("read", c_void_p), ("decode", c_void_p), ("lapsed", c_void_p), ("context", c_void_p),
                ("wall", c_void_p), ("spare", c_uint64 * SPARE)]


class SessionLoaded(ctypes.Structure):
    """struct ww_session_loaded"""
    _fields_ = [(name, c_uint64) for name in ("entries", "expired", "present", "left_out", "bytes", "downtime")] + \
        [("spare", c_uint64 * SPARE)]


# Bytes come as addresses: a key and a value may have zero bytes in them.
THREAD_FN = CFUNCTYPE(None, c_void_p, c_void_p)
DRIVER_FN = CFUNCTYPE(None, c_void_p, POINTER(Firing), c_void_p)
GONE_FN = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p, c_int, c_void_p)
WALK_FN = CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(SessionFound), c_void_p)
WRITE_FN = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)
ENCODE_FN = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_size_t), c_void_p)
READ_FN = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)
DECODE_FN = CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(c_void_p), c_void_p)

_KEY = [c_void_p, c_char_p, c_size_t]
_OUT = POINTER(c_uint64)
_VALUE = POINTER(c_void_p)
_COUNT = POINTER(c_size_t)
_FUNCTIONS = {
    "ww_clock_now": [c_void_p, _OUT],
    "ww_clock_virtual_create": [_VALUE, c_uint64, c_void_p],
    "ww_clock_virtual_destroy": [c_void_p],
    "ww_clock_virtual_advance": [c_void_p, c_uint64],
    "ww_clock_virtual_set": [c_void_p, c_uint64],
    "ww_driver_config_default": [POINTER(DriverConfig)],
    "ww_driver_create": [_VALUE, POINTER(DriverConfig)],
    "ww_driver_destroy": [c_void_p],
    "ww_driver_stop": [c_void_p, c_void_p, c_void_p, _COUNT],
    "ww_driver_schedule": [c_void_p, c_uint64, c_void_p, c_void_p, _OUT],
    "ww_driver_schedule_at": [c_void_p, c_uint64, c_void_p, c_void_p, _OUT],
    "ww_driver_schedule_every": [c_void_p, c_uint64, c_uint64, c_uint32, c_void_p, c_void_p, _OUT],
    "ww_driver_reschedule": [c_void_p, c_uint64, c_uint64],
    "ww_driver_cancel": [c_void_p, c_uint64],
    "ww_driver_cancel_wait": [c_void_p, c_uint64],
    "ww_driver_time_left": [c_void_p, c_uint64, _OUT],
    "ww_driver_fd": [c_void_p],
    "ww_driver_dispatch": [c_void_p, c_uint32],
    "ww_driver_now": [c_void_p, _OUT],
    "ww_driver_settle": [c_void_p],
    "ww_driver_step": [c_void_p, c_uint64, _OUT],
    "ww_driver_stats": [c_void_p, POINTER(DriverStats)],
    "ww_session_config_default": [POINTER(SessionConfig)],
    "ww_session_create": [_VALUE, c_void_p, POINTER(SessionConfig)],
    "ww_session_destroy": [c_void_p],
    "ww_session_put": [*_KEY, c_void_p, POINTER(SessionOrder), POINTER(SessionFound), _VALUE],
    "ww_session_get": [*_KEY, _VALUE],
    "ww_session_find": [*_KEY, POINTER(SessionFound)],
    "ww_session_refresh": [*_KEY, c_uint64, _VALUE],
    "ww_session_delete_if": [*_KEY, c_uint64, _VALUE],
    "ww_session_rename": [*_KEY, c_char_p, c_size_t, POINTER(SessionOrder), POINTER(SessionFound), _VALUE],
    "ww_session_clear": [c_void_p, _COUNT],
    "ww_session_time_left": [*_KEY, _OUT],
    "ww_session_scan": [c_void_p, _OUT, c_void_p, c_void_p],
    "ww_session_save": [c_void_p, POINTER(SessionWriter), _COUNT],
    "ww_session_load": [c_void_p, POINTER(SessionReader), POINTER(SessionLoaded)],
    "ww_session_stats": [c_void_p, POINTER(SessionStats)],
}


def _open() -> Any:
    """Load the library and give its functions their types."""
    main, here = ctypes.pythonapi.PyInterpreterState_Main, ctypes.pythonapi.PyInterpreterState_Get
    main.restype = here.restype = c_void_p
    if main() != here():
        raise ImportError("timers and sessions work in the main interpreter only: the library's threads would call back there")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError("timers and sessions need the interpreter's lock: this Python runs without it")
    path = os.environ.get("WEEKWHEEL_LIBRARY") or NAME
    try:
        opened = ctypes.CDLL(path, use_errno=False)
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}. Install weekwheel's library, or name its file in the "
                          "environment variable WEEKWHEEL_LIBRARY") from None
    for name, arguments in _FUNCTIONS.items():
        try:
            function = getattr(opened, name)
        except AttributeError:
            raise ImportError(f"{path} is too old: it has no {name}. Install the library of this package's version, "
                              "or a later one") from None
        function.argtypes, function.restype = arguments, c_int
    for name in ("ww_clock_elapsed", "ww_clock_awake", "ww_clock_wall"):
        getattr(opened, name).argtypes, getattr(opened, name).restype = [], c_void_p
    for name, arguments in (("ww_strerror", [c_int]), ("ww_version", [])):
        getattr(opened, name).argtypes, getattr(opened, name).restype = arguments, c_char_p
    return opened


# Calls release the interpreter's lock: they may wait, and may call back.
library: Any = _open()

# gevent has another in the place of threading.RLock, which lets others run.
RLock: Any = getattr(_thread, "RLock")
# Guards the books of timers and of calls, briefly. A finalizer may run in any line, and so come here a second time.
lock = RLock()
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def check(result: int) -> int:
    """Return the answer of a call, or raise its error."""
    if result < 0:
        raise WheelError.of(result, library.ww_strerror(result).decode())
    return result


def call(name: str, *arguments: Any) -> int:
    """Call a function of the library. Return its answer, or raise its error."""
    return check(getattr(library, name)(*arguments))


class Telling:
    """Calls of which the application is to hear: it is told when they have ended. Frames of the library do not lie on the
    stack then, so that greenlets may change, and exceptions pass."""

    # Weak: a handler of a signal that raises where __exit__ begins leaves one here that nobody ends.
    _of_thread: dict[int, weakref.ref[Telling]] = {}

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        self._outer = self._of_thread.get(self._thread)
        self._told: list[Callable[[], object]] = []
        self._of_thread[self._thread] = weakref.ref(self)

    def __exit__(self, *_: object) -> None:
        if self._outer is None:
            del self._of_thread[self._thread]
        else:
            self._of_thread[self._thread] = self._outer
        escaped: BaseException | None = None
        told, is_over = iter(self._told), False
        while not is_over:
            try:  # around the loop: a handler of a signal may raise between two calls
                for what in told:
                    what()
                is_over = True
            except BaseException as error:
                escaped = escaped or error
        if escaped is not None:
            raise escaped

    @classmethod
    def later(cls, what: Callable[[], object]) -> bool:
        """In a function that the library calls: call this when the calls have ended. Return False if nobody is to be told
        so, as in a thread of a driver."""
        here = cls._of_thread.get(threading.get_ident())
        telling = here() if here is not None else None
        if telling is not None:
            telling._told.append(what)
        return telling is not None


class Held(Handle):
    """An object of the library. Its calls are counted, so that it is freed when the last one has ended."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._address: int | None = None
        self._process = os.getpid()
        self._calls: list[int] = []  # the threads that are in a call, as often as they are
        self._idle: threading.Event | None = None  # what waits for them

    # Under the interpreter's lock these need no other: a call is in the list before it looks whether the object is there,
    # and is awaited or sees that it is not.

    def _enter(self) -> int:
        """Begin calls with the object's address. Each has to be ended with _exit."""
        self._calls.append(threading.get_ident())
        address = self._address
        if address is None:
            self._exit()
            raise self._closed()
        return address

    def _exit(self) -> None:
        self._calls.remove(threading.get_ident())
        if self._idle is not None:
            self._idle.set()

    def _closed(self) -> WheelError:
        return WheelError.of(ECLOSED, f"the {self._what} was closed")

    def _answer(self, name: str, *arguments: Any) -> int:
        """Call a function of the library on the object. Return its answer."""
        # Without _enter and _exit: a signal is handled where a function begins, and its handler may raise.
        thread, calls = threading.get_ident(), self._calls
        try:
            calls.append(thread)
            address = self._address
            if address is None:
                raise self._closed()
            return getattr(library, name)(address, *arguments)  # type: ignore[no-any-return]
        finally:
            calls.remove(thread)
            if self._idle is not None:
                self._idle.set()

    def _call(self, name: str, *arguments: Any) -> int:
        """The same, or raise the error that it answers."""
        return check(self._answer(name, *arguments))

    def _call_and_tell(self, name: str, *arguments: Any) -> int:
        """The same, and report the outcome to the application."""
        with Telling():
            return self._call(name, *arguments)

    def _close(self, free: Any) -> None:
        """Let no call begin any more, and free the object. If that fails, it goes on. A second call does nothing."""
        address, is_free = None, False
        try:
            with lock:  # once
                address, self._address = self._address, None
            if address is None:
                return
            self._before_free(address)
            with Signals():
                check(free(address))
                is_free = True
        finally:
            if address is not None and not is_free:
                self._address = address

    def _before_free(self, _address: int) -> None:
        self._wait_for_calls()

    def _wait_for_calls(self) -> None:
        """Wait until no other thread is in a call. A child has none of its parent's threads."""
        while os.getpid() == self._process:
            self._idle = threading.Event()
            if set(self._calls) <= {threading.get_ident()}:
                return
            self._idle.wait(0.1)  # then look again: what a handler of a signal raises may come before the set
