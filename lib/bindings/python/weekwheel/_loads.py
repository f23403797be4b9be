"""Loads of missing values under way in a map: one for each key, whose value all get that ask meanwhile.

The library has the same (ww_session_take), but its calls wait on the C stack while a loader runs. Greenlets swap parts of
that stack, and one that waits there keeps the others of its thread from running. Here a loader runs on no frame of the
library, and who waits does so as Python waits.
"""
from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import Any, Generic, Iterator, TypeVar

from ._library import RLock, library
from .errors import EBUSY, ETIMEOUT, WheelError

Value = TypeVar("Value")


class Load(Generic[Value]):
    """A load, which others may share."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.thread = threading.get_ident()
        self.outdated: int | None = None
        """Why what is loaded is not kept: a ww_gone."""
        self.result: tuple[Value] | None = None
        self.error: BaseException | None = None
        self.is_loaded = False
        self.is_done = False
        self._waiters: list[threading.Event] = []


class Loads(Generic[Value]):
    """The loads of a map."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.counts = dict.fromkeys(("loads", "loads_failed", "loads_shared", "loads_outdated", "loads_late", "load_time",
                                     "load_time_max"), 0)
        self._of_key: dict[bytes, list[Load[Value]]] = {}
        self._refused: set[int] = set()
        _all.add(self)

    def begin(self, own: Load[Value]) -> tuple[Load[Value], threading.Event] | None:
        """Begin the load, or return the one to share, and what signals its end. Raises Busy in a loader of this key."""
        with self.lock:
            for load in self._of_key.get(own.key, ()):
                if load.thread == own.thread:
                    raise WheelError.of(EBUSY, "this thread is in a loader of the same key, and would wait for itself")
                if load.outdated is None:
                    load._waiters.append(waiter := threading.Event())
                    return load, waiter
            self._of_key.setdefault(own.key, []).append(own)
            return None

    def outdate(self, key: bytes | None, why: int) -> None:
        """What is being loaded for the key, or for any, is not to be kept. Call this before the map's own deletion."""
        if not self._of_key:
            return
        if threading.get_ident() in self._refused:
            raise WheelError.of(EBUSY, "called in an encoder, which runs under a lock of the map")
        with self.lock:
            for loads in list(self._of_key.values()) if key is None else [self._of_key.get(key, [])]:
                for load in loads:
                    load.outdated = why if load.outdated is None else load.outdated

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """This thread will take a lock of the map, for which the keeper of a load may wait while it has the lock of the loads."""
        self._refused.add(threading.get_ident())
        try:
            yield
        finally:
            self._refused.discard(threading.get_ident())

    def end(self, own: Load[Value]) -> None:
        """End a load, if it has begun."""
        with self.lock:
            loads = self._of_key.get(own.key, [])
            if own not in loads:
                return
            loads.remove(own)
            if not loads:
                del self._of_key[own.key]
            own.is_done = True
        for waiter in own._waiters:
            waiter.set()

    def count(self, took: int, own: Load[Value]) -> None:
        """Count a load that has ended."""
        self.counts["load_time"] += took
        self.counts["load_time_max"] = max(took, self.counts["load_time_max"])
        self.counts["loads_failed"] += own.error is not None
        self.counts["loads_outdated"] += own.outdated is not None

    def late(self) -> WheelError:
        """The error of a call that has waited for as long as it would."""
        self.counts["loads_late"] += 1
        return WheelError.of(ETIMEOUT, library.ww_strerror(ETIMEOUT).decode())


_all: weakref.WeakSet[Loads[Any]] = weakref.WeakSet()


def _unlock() -> None:
    """In a child: who had the lock, as while a load is kept, may be a thread that is not there."""
    for loads in _all:
        loads.lock = RLock()


os.register_at_fork(after_in_child=_unlock)
