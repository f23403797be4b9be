"""What guards functions of the application that run on frames of the C library: an encoder, a decoder."""
from __future__ import annotations

import contextlib
import importlib
import signal
import sys
from types import FrameType
from typing import Any, Callable, Iterable, Iterator

from .errors import EBUSY, WheelError


Handler = Callable[[int, "FrameType | None"], Any]

_NUMBERS = tuple(int(number) for number in signal.valid_signals())
# signal.getsignal makes an enumeration's member of each answer, which takes longer than most calls of the library.
_getsignal: Callable[[int], Any] = importlib.import_module("_signal").getsignal
# Handlers of event loops: they do nothing, and their signals restart system calls, which signal.signal would undo.
_LOOPS = ("asyncio.unix_events", "uvloop.loop")

# One state for all: calls of greenlets overlap, and end in any order.
_handlers: dict[int, Handler] = {}  # those in whose place _note stands
_came: list[tuple[int, FrameType | None]] = []


def _note(number: int, frame: FrameType | None) -> None:
    _came.append((number, frame))


class Signals:
    """Holds back signals. The interpreter handles one where a function begins, and nothing catches there what a handler
    raises when the library has called the function: it would be lost, and the function would not have run."""

    _holding = 0

    def __init__(self) -> None:
        self._holds = False

    def __enter__(self) -> Signals:
        try:
            self._holds = _hold()
            Signals._holding += self._holds
        except BaseException:
            if not Signals._holding:
                _give_back()
            raise
        return self

    def handle(self) -> None:
        """Handle those that have come. Call this where an exception is caught."""
        if self._holds:
            _handle()

    def __exit__(self, *_: object) -> None:
        if self._holds:
            self._holds = False
            Signals._holding -= 1
            do_all([_handle] if Signals._holding else [_give_back, _handle])


def _hold() -> bool:
    """Let _note take all signals that functions of Python handle. Return False in a thread other than the main one, which
    handles none. signal.signal knows that thread; threading does not under gevent, where each greenlet is one."""
    found = [(number, handler) for number in _NUMBERS if callable(handler := _getsignal(number))
             and getattr(handler, "__module__", None) not in _LOOPS]
    try:
        for number, handler in found:
            signal.signal(number, _note)
            if handler is not _note:
                _handlers[number] = handler
    except ValueError as error:
        if "main thread" in str(error):
            return False
        raise
    return bool(found)


def _give_back() -> None:
    """Set the handlers that were there, though one of those in force may raise meanwhile."""
    escaped = list[BaseException]()
    while any(_getsignal(number) is _note for number in _handlers):
        try:
            for number, handler in _handlers.items():
                if _getsignal(number) is _note:  # otherwise the application has set another
                    signal.signal(number, handler)
        except BaseException as error:
            escaped.append(error)
    if escaped:
        raise escaped[0]


def _handle() -> None:
    escaped = list[BaseException]()
    while _came:
        try:
            number, frame = _came.pop(0)
            _handlers[number](number, frame)
        except BaseException as error:
            escaped.append(error)
    if escaped:
        raise escaped[0]


def do_all(functions: Iterable[Callable[[], object]]) -> None:
    """Call all, then raise the first of what they raise."""
    escaped = list[BaseException]()
    for function in functions:
        try:
            function()
        except BaseException as error:
            escaped.append(error)
    if escaped:
        raise escaped[0]


def _refuse() -> None:
    raise WheelError.of(EBUSY, "an encoder or decoder runs on the C library's stack, and cannot wait for other greenlets")


@contextlib.contextmanager
def staying() -> Iterator[None]:
    """Let gevent refuse to go to another greenlet: it would overwrite the frames of the library."""
    greenlet = sys.modules.get("greenlet")
    if greenlet is None:
        yield
        return
    current = greenlet.getcurrent()
    before = current.__dict__.get("switch_out")
    current.switch_out = _refuse
    try:
        yield
    finally:
        if before is None:
            del current.switch_out
        else:
            current.switch_out = before
