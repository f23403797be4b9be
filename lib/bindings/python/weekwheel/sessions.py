"""Sessions: a map whose entries expire, with an idle time and a lifetime for each.

The C library keeps numbers, never pointers to objects of Python, and `_values` has the object of each number. So a
lookup that is overtaken by a deletion in another thread finds no object any more, and looks again.
"""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import enum
import itertools
import json
import os
import threading
import weakref
from ctypes import byref, c_size_t, c_uint64, c_void_p
from types import TracebackType
from typing import IO, Any, Callable, Generic, Iterator, TypeVar

from ._calling import Signals, staying
from ._handle import Handle
from ._library import (DECODE_FN, ENCODE_FN, GONE_FN, NO_END, READ_FN, WALK_FN, WRITE_FN, Held, SessionConfig,
                       SessionFound, SessionLoaded, SessionOrder, SessionReader, SessionStats, SessionWriter, Telling, call,
                       check, library)
from ._loads import Load, Loads
from ._replacing import Replacer
from ._time import Seconds, nanoseconds, whole
from .errors import Closed, Damaged, LoadFailed, Stale, WheelError
from .timers import Driver, VirtualClock, end_child, logger

Value = TypeVar("Value")
Default = TypeVar("Default")

RENEW, LIFETIMES, ADMIT = 1, 2, 4
KEEP_END, REPLACE, PINNED = 1, 2, 4
ABSENT = NO_END
"""Instead of a version: the key has no entry."""
# What functions of Python answer to the C library when they have raised. No WW_E* is as small.
RAISED = -1000


class Gone(enum.IntEnum):
    """Why a value has left the map."""
    EXPIRED = 0
    EVICTED = 1
    REPLACED = 2
    DELETED = 3
    CLEARED = 4


@dataclasses.dataclass(frozen=True)
class Entry(Generic[Value]):
    """All that a map has for a key, at one moment. Times are in seconds."""
    value: Value
    version: int
    """Each set, put, load and rename gives another; a refresh keeps it."""
    ttl: float
    """What a refresh starts anew."""
    left: float
    """Until the entry expires."""
    end_left: float | None
    """Until its lifetime ends; None: it has no end."""
    weight: int
    pinned: bool


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What Sessions.load has done."""
    entries: int
    expired: int
    """Between save and load."""
    present: int
    """Whose key was in the map, and stayed."""
    left_out: int
    downtime: float
    """Seconds between save and load, by the wall clock."""


class Sessions(Handle, Generic[Value]):
    """A map from strings to values of any kind, which removes what has not been used for its time to live (TTL).

    ttl: of an entry, unless it gets its own. lifetime: the end that nothing prolongs: 30 minutes idle, 12 hours in all.
    lifetimes: entries may get lifetimes of their own though the map has none. renew: each lookup starts the TTL anew.
    limit, weight_limit: the most entries, and the most that they weigh; what was used least lately goes. admit: a full
    map keeps what is used often. jitter: a part of the TTL, 0 to 1, of which at random up to jitter_max is added.

    on_gone(key, value, why) hears of each value that has left the map, but not of those that `pop` returns. It runs in a
    thread of the driver when an entry expires, and otherwise in the call that caused it, at its end. What it raises is logged,
    but KeyboardInterrupt and the like leave that call.

    Keys are up to 65,535 bytes of UTF-8. Any thread may call every method. In a child of the process every call raises
    Closed.
    """

    def __init__(self, driver: Driver, *, ttl: Seconds = 604800, lifetime: Seconds | None = None,
                 lifetimes: bool = False, limit: int = 0, weight_limit: int = 0, renew: bool = False,
                 admit: bool = False, jitter: float = 0.0, jitter_max: Seconds = 60, shards: int = 0,
                 on_gone: Callable[[str, Value, Gone], object] | None = None) -> None:
        self._held = Held("map of sessions")
        self.driver = driver
        self.on_gone = on_gone
        self._values: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._loads = Loads[Value]()
        self._files = Replacer()
        self._number = next(_map_numbers)
        config = SessionConfig()
        call("ww_session_config_default", byref(config))
        if not 0 <= jitter <= 1:
            raise ValueError(f"jitter: {jitter} is out of range: 0 to 1")
        config.ttl, config.jitter, config.jitter_max = nanoseconds(ttl), round(jitter * 1000), nanoseconds(jitter_max)
        config.lifetime = 0 if lifetime is None else nanoseconds(lifetime)
        config.limit, config.weight_limit = whole("limit", limit, 0, NO_END), whole("weight_limit", weight_limit, 0, NO_END)
        config.shards = whole("shards", shards, 0, 2**32 - 1)
        config.flags = RENEW * renew | LIFETIMES * lifetimes | ADMIT * admit
        config.gone, config.user = _GONE, self._number
        address = c_void_p()
        with Signals():
            on = driver._enter()
            try:
                call("ww_session_create", byref(address), on, byref(config))
                self._held._address = address.value
                driver._users.add(self)
                _maps[self._number] = self
            finally:
                driver._exit()

    # ---- One entry

    def set(self, key: str, value: Value, ttl: Seconds | None = None) -> None:
        """Map the key to the value for `ttl` (None: the map's own). What was there is replaced."""
        self.put(key, value, ttl=ttl)

    def put(self, key: str, value: Value, *, ttl: Seconds | None = None, lifetime: Seconds | None = None,
            version: int | None = None, keep_end: bool = False, pinned: bool = False, weight: int = 0) -> int:
        """Set with all options. Return the entry's version.

        version: what must be there, an entry's or ABSENT, or the call raises Stale. keep_end: the lifetime of what is
        replaced goes on. pinned: the entry is never evicted. weight: in a map with a weight_limit.
        """
        order = SessionOrder()
        order.ttl, order.lifetime = _time(ttl), _time(lifetime)
        order.version, order.weight = _version(version), whole("weight", weight, 0, NO_END)
        order.flags = KEEP_END * keep_end | PINNED * pinned
        with Telling():
            return self._put(key, _bytes(key), value, order)

    def _put(self, key: str, encoded: bytes, value: Value, order: SessionOrder) -> int:
        found, former = SessionFound(), c_void_p()
        number = next(self._numbers)
        self._values[number] = value
        try:
            self._held._call("ww_session_put", encoded, len(encoded), number, byref(order), byref(found), byref(former))
        finally:
            # Whatever a handler of a signal raised, also after the put. Not in _left, at whose begin it may raise, too.
            if found.value != number:  # refused
                del self._values[number]
            before = self._values.pop(former.value or 0, None)
            self._left(key, former, before, Gone.REPLACED)
        return int(found.version)

    def get(self, key: str, default: Default | None = None) -> Value | Default | None:
        """The value of the key, or `default`."""
        found = self._look("ww_session_get", _bytes(key))
        return default if found is None else found[0]

    def entry(self, key: str) -> Entry[Value] | None:
        """All that the map has for the key, or None."""
        encoded, found = _bytes(key), SessionFound()
        while self._held._call("ww_session_find", encoded, len(encoded), byref(found)):
            entry = self._entry(found)
            if entry is not None:
                return entry
        return None

    def refresh(self, key: str, ttl: Seconds | None = None) -> bool:
        """Start the entry's TTL anew, with another if it is given. Return whether there is an entry."""
        encoded = _bytes(key)
        return self._held._call("ww_session_refresh", encoded, len(encoded), _time(ttl), None) == 1

    def delete(self, key: str, version: int | None = None) -> bool:
        """Take the entry out, if it has the version that is given; otherwise raise Stale. Return whether there was one.
        on_gone hears of its value."""
        number = c_void_p()
        with Telling():
            try:
                self._take_out(key, _version(version), number)
            finally:
                value = self._values.pop(number.value or 0, None)
                self._left(key, number, value, Gone.DELETED)
        return number.value is not None

    def pop(self, key: str, default: Default | None = None) -> Value | Default | None:
        """Take the entry out and return its value, or `default`. on_gone is not called."""
        number = c_void_p()
        try:
            self._take_out(key, 0, number)
        finally:
            value: Value | Default | None = default if number.value is None else self._values.pop(number.value)
        return value

    def _take_out(self, key: str, version: int, number: c_void_p) -> None:
        """Take the entry out, and give its number, which stays NULL if there is none."""
        encoded = _bytes(key)
        self._loads.outdate(encoded, Gone.DELETED)
        self._held._call("ww_session_delete_if", encoded, len(encoded), version, byref(number))

    def rename(self, key: str, to: str, *, ttl: Seconds | None = None, version: int | None = None,
               replace: bool = False) -> int:
        """Give the entry another key, as a site does at login. Return its new version. Raises Stale if there is no such
        entry, and InUse if the new key has one and `replace` is not set."""
        encoded, new, order, found = _bytes(key), _bytes(to), SessionOrder(), SessionFound()
        order.ttl, order.version, order.flags = _time(ttl), _version(version), REPLACE * replace
        self._loads.outdate(encoded, Gone.DELETED)
        former = c_void_p()
        with Telling():
            try:
                self._held._call("ww_session_rename", encoded, len(encoded), new, len(new), byref(order), byref(found),
                                 byref(former))
            finally:
                value = self._values.pop(former.value or 0, None)
                self._left(to, former, value, Gone.REPLACED)
        return int(found.version)

    def take(self, key: str, loader: Callable[[str], Value], *, ttl: Seconds | None = None,
             wait: Seconds | None = None) -> Value:
        """The value of the key, which `loader(key)` makes if there is none. However many threads ask for a key at a time,
        one of them loads.

        What the loader raises is raised here; calls of other threads that waited for it raise LoadFailed. `wait` is the
        longest time to wait for another thread's loader; then the call raises WheelError.
        """
        encoded, own, order = _bytes(key), Load[Value](b""), SessionOrder()
        order.ttl, order.version = _time(ttl), ABSENT
        try:
            while True:
                found = self._look("ww_session_get", encoded)
                if found is not None:
                    return found[0]
                own = Load[Value](encoded)
                other = self._loads.begin(own)
                if other is not None:
                    found = self._share(key, *other, wait)
                # Another load may have ended between the two. To look for the time is no use of the entry.
                elif not self._held._call("ww_session_time_left", encoded, len(encoded), byref(c_uint64())):
                    return self._load(key, own, loader, order)
                if found is not None:
                    return found[0]
                self._loads.end(own)
        finally:
            self._loads.end(own)

    def _load(self, key: str, own: Load[Value], loader: Callable[[str], Value], order: SessionOrder) -> Value:
        self._loads.counts["loads"] += 1
        began, gone = self.driver.now_ns(), None
        try:
            loaded = loader(key)
            own.is_loaded = True
            result, gone = self._keep(key, own, loaded, order)
            own.result = (result,)
        except BaseException as error:
            own.error = error
            raise
        finally:
            took = 0
            with contextlib.suppress(Closed):
                took = max(0, self.driver.now_ns() - began)
            self._loads.count(took, own)
            self._loads.end(own)
        if gone is not None:
            self._tell(key, loaded, gone)
        return result

    def _keep(self, key: str, own: Load[Value], loaded: Value, order: SessionOrder) -> tuple[Value, Gone | None]:
        """Put what was loaded into the map, unless it is outdated, or something else is there. Return what all get, and
        why what was loaded is not in the map."""
        while True:
            with contextlib.suppress(Stale), Telling(), self._loads.lock:
                if own.outdated is None:
                    self._put(key, own.key, loaded, order)
                    return loaded, None
            found = self._look("ww_session_get", own.key)
            if found is not None:
                return found[0], Gone.REPLACED
            if own.outdated is not None:
                return loaded, Gone(own.outdated)

    def _share(self, key: str, load: Load[Value], waiter: threading.Event, wait: Seconds | None) -> tuple[Value] | None:
        """Wait for the load of another thread. Return its value, or None if it has not called its loader after all."""
        self._loads.counts["loads_shared"] += 1
        if wait is None or not isinstance(self.driver.clock, VirtualClock):
            waiter.wait(None if wait is None else nanoseconds(wait) / 1e9)
        else:
            timer = self.driver.schedule(wait, waiter.set)
            try:
                waiter.wait()
            finally:
                timer.cancel()
        if load.result is not None:
            return load.result
        # What somebody has set meanwhile is a better answer than an error.
        found = self._look("ww_session_get", load.key)
        if found is not None or (load.is_done and load.error is None):
            return found
        if not load.is_done:
            raise self._loads.late()
        if load.is_loaded and isinstance(load.error, WheelError):  # the map has refused it
            raise WheelError.of(load.error.number, str(load.error))
        raise LoadFailed(f"the loader of {key!r} in another thread has failed") from load.error

    # ---- All entries

    def items(self) -> Iterator[tuple[str, Entry[Value]]]:
        """Each key and its entry, of those that have not expired. What is in the map throughout comes exactly once; what
        is set or removed meanwhile may or may not."""
        found: list[tuple[bytes, SessionFound]] = []

        def visit(key: int, length: int, entry: Any, _context: int) -> int:
            copy = SessionFound()
            # Without the spare room, which the library's own structure lacks.
            ctypes.memmove(byref(copy), entry, SessionFound.spare.offset)
            found.append((ctypes.string_at(key, length) if length else b"", copy))
            return 0

        function, cursor = WALK_FN(visit), c_uint64()
        address = ctypes.cast(function, c_void_p).value
        while True:
            with Signals():
                self._held._call("ww_session_scan", byref(cursor), address, None)
            for key, copy in found:
                entry = self._entry(copy)
                if entry is not None:
                    yield _text(key), entry
            found.clear()
            if cursor.value == 0:
                return

    def clear(self) -> int:
        """Take all entries out. Return how many there were."""
        count = c_size_t()
        self._loads.outdate(None, Gone.CLEARED)
        with Telling(), Signals():  # on_gone gets signals again
            self._held._call("ww_session_clear", byref(count))
        return count.value

    def stats(self) -> dict[str, int]:
        """What the map counts: entries, hits, misses, expired, evicted and more; see struct ww_session_stats."""
        stats = SessionStats()
        self._held._call_and_tell("ww_session_stats", byref(stats))
        return {name: getattr(stats, name) for name, _ in SessionStats._fields_[:-1]} | self._loads.counts

    def __len__(self) -> int:
        """How many entries there are; one that has expired counts until the driver's next tick."""
        return self.stats()["entries"]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._look("ww_session_get", _bytes(key)) is not None

    def __getitem__(self, key: str) -> Value:
        found = self._look("ww_session_get", _bytes(key))
        if found is None:
            raise KeyError(key)
        return found[0]

    def __setitem__(self, key: str, value: Value) -> None:
        self.put(key, value)

    def __delitem__(self, key: str) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    # ---- Over a restart

    def save(self, path: str | os.PathLike[str], encode: Callable[[Value], bytes] | None = None) -> int:
        """Write all entries that have not expired into a file, with the times that they have left. Return how many.

        The file is written under a name of its own, synced and renamed, so that `path` is always whole, also if several
        threads save: the save that began last stays. The file keeps the mode and, if this process may set it, the owner of
        the one that it replaces. `encode` makes bytes of a value, as JSON by default. It runs under a lock of the map: it
        has to be short, and may not wait for other greenlets. A call of a map in it raises Busy.
        """
        encode = encode or _json
        count, raised, signals = c_size_t(), list[BaseException](), Signals()
        with self._files.replacing(path) as file:
            writer, functions = self._writer(file, encode, raised, signals)
            with signals, staying(), self._loads.refusing():
                result = self._held._answer("ww_session_save", byref(writer), byref(count))
            del functions
            if raised:
                raise raised[0]
            check(result)
        return count.value

    def load(self, path: str | os.PathLike[str], decode: Callable[[bytes], Value] | None = None) -> Loaded:
        """Make the entries that were saved, less the time that has passed since, by the wall clock. Load before others
        use the map: an entry that is there already is newer and stays.

        Raises Damaged if the file is cut off or broken; what stood before the damage is then in the map. Load only what
        this program has written. `decode` makes a value of bytes, and may not wait for other greenlets.
        """
        decode = decode or json.loads
        raised, loaded, signals = list[BaseException](), SessionLoaded(), Signals()
        with open(path, "rb") as file:
            reader, functions = self._reader(file, decode, raised, signals)
            with Telling(), signals, staying():
                result = self._held._answer("ww_session_load", byref(reader), byref(loaded))
            del functions
        if raised:
            raise raised[0]
        try:
            check(result)
        except Damaged as error:
            raise Damaged(f"{os.fspath(path)} is damaged behind its byte {loaded.bytes}: {loaded.entries} entries before "
                          f"it were loaded. {error}") from None
        return Loaded(loaded.entries, loaded.expired, loaded.present, loaded.left_out, loaded.downtime / 1e9)

    def _writer(self, file: IO[bytes], encode: Callable[[Value], bytes],
                raised: list[BaseException], signals: Signals) -> tuple[SessionWriter, list[Any]]:
        last: list[Any] = [0, b""]

        def write(data: int, size: int, _context: int) -> int:
            try:
                signals.handle()
                file.write(ctypes.string_at(data, size))
                return 0
            except BaseException as error:
                raised.append(error)
                return RAISED

        def store(number: int, data: int, size: Any, _context: int) -> int:
            try:
                signals.handle()
                # It is called again for the same value where there was no room.
                if last[0] != number:
                    encoded = encode(self._values[number])
                    if not isinstance(encoded, (bytes, bytearray, memoryview)):
                        raise TypeError(f"an encoder makes bytes, not {type(encoded).__name__}")
                    last[:] = [number, bytes(encoded)]
                room, size[0] = size[0], len(last[1])
                if size[0] <= room:
                    ctypes.memmove(data, last[1], size[0])
                    last[0] = 0
                return 0
            except BaseException as error:
                raised.append(error)
                return RAISED

        functions = [WRITE_FN(write), ENCODE_FN(store)]
        writer = SessionWriter()
        writer.write, writer.encode = (ctypes.cast(function, c_void_p).value for function in functions)
        return writer, functions

    def _reader(self, file: IO[bytes], decode: Callable[[bytes], Value],
                raised: list[BaseException], signals: Signals) -> tuple[SessionReader, list[Any]]:
        def read(data: int, size: int, _context: int) -> int:
            try:
                signals.handle()
                piece = file.read(min(size, 1 << 20))
                ctypes.memmove(data, piece, len(piece))
                return len(piece)
            except BaseException as error:
                raised.append(error)
                return RAISED

        def make(data: int, size: int, value: Any, _context: int) -> int:
            try:
                signals.handle()
                made = decode(ctypes.string_at(data, size) if size else b"")
                number = next(self._numbers)
                self._values[number] = made
                value[0] = number
                return 0
            except BaseException as error:
                raised.append(error)
                return RAISED

        functions = [READ_FN(read), DECODE_FN(make)]
        reader = SessionReader()
        reader.read, reader.decode = (ctypes.cast(function, c_void_p).value for function in functions)
        return reader, functions

    # ---- The end

    def close(self) -> None:
        """Take all entries out, as CLEARED, wait for calls of on_gone that run, and free the map. A second call does
        nothing. Driver.close does this, too."""
        thread, calls = threading.get_ident(), self.driver._calls
        try:
            calls.append(thread)  # the driver waits for this, too
            _maps[self._number] = self  # anew: the collector, which may end the driver, clears weak references first
            with Telling():
                self._held._close(library.ww_session_destroy)
        finally:
            calls.remove(thread)
            if os.getpid() != self._held._process:
                self._values.clear()  # in a child nothing is reported
            self._forget_if_over(thread not in self.driver._callers)

    def _forget_if_over(self, is_last: bool = False) -> None:
        """Forget a map that is closed when it will not be called again. A close in a callback does not wait for others,
        which may wait for the interpreter with a value each."""
        if self._held._address is None and (is_last or not self._values):
            self.driver._users.discard(self)

    def __enter__(self) -> Sessions[Value]:
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        self.close()

    # ---- What the C library has as numbers

    def _look(self, name: str, key: bytes) -> tuple[Value] | None:
        number = c_void_p()
        while self._held._call(name, key, len(key), byref(number)):
            try:
                return (self._values[number.value or 0],)
            except KeyError:  # deleted since: look what is there now
                pass
        return None

    def _entry(self, found: SessionFound) -> Entry[Value] | None:
        try:
            value = self._values[found.value or 0]
        except KeyError:
            return None
        return Entry(value, found.version, found.ttl / 1e9, found.left / 1e9,
                     None if found.end_left == NO_END else found.end_left / 1e9, found.weight,
                     bool(found.flags & PINNED))

    def _left(self, key: str, number: c_void_p, value: Any, why: Gone) -> None:
        """A call has taken a value out, unless its number is NULL: report it when that has ended."""
        if number.value is not None and self.on_gone is not None:
            Telling.later(lambda: self._tell(key, value, why))

    def _leave(self, key: int, length: int, number: int, why: int) -> None:
        """A value has left the map. Nothing may be raised into the C library."""
        value = self._values.pop(number)
        self._forget_if_over()
        if self.on_gone is None:
            return
        name = _text(ctypes.string_at(key, length) if length else b"")
        if Telling.later(lambda: self._tell(name, value, Gone(why))):
            return
        process = os.getpid()
        with self.driver._calling():
            try:
                self._tell(name, value, Gone(why))
            except BaseException as error:
                if os.getpid() != process:
                    end_child(error)
                log_gone(error)
        if os.getpid() != process:
            end_child(None)

    def _tell(self, key: str, value: Value, why: Gone) -> None:
        try:
            if self.on_gone is not None:
                self.on_gone(key, value, why)
        except Exception as error:
            log_gone(error)


_map_numbers = itertools.count(1)
_maps: weakref.WeakValueDictionary[int, Sessions[Any]] = weakref.WeakValueDictionary()


def _gone(_map: int, key: int, length: int, number: int, why: int, map_number: int) -> None:
    map = _maps.get(map_number)
    if map is not None:
        map._leave(key, length, number, why)


# Kept for ever: a map that is closed in its on_gone may be gone when threads of the driver come back from there.
_gone_function = GONE_FN(_gone)
_GONE = ctypes.cast(_gone_function, c_void_p).value


def log_gone(error: BaseException) -> None:
    """What becomes of an exception of on_gone: the logger "weekwheel" gets it."""
    logger.error("on_gone of a map of sessions has failed", exc_info=error)


def _bytes(key: str) -> bytes:
    if not isinstance(key, str):
        raise TypeError(f"a key is text, not {type(key).__name__}")
    return key.encode("utf-8", "surrogateescape")


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _time(time: Seconds | None) -> int:
    """0 stands for the map's own."""
    return 0 if time is None else max(1, nanoseconds(time))


def _version(version: int | None) -> int:
    """0 stands for any."""
    return 0 if version is None else whole("version", version, 0, ABSENT)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
