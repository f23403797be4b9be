"""What guards functions of the application that run on frames of the C library: an encoder, a decoder."""
from __future__ import annotations

import contextlib
import signal
import sys
import threading
from types import FrameType
from typing import Any, Callable, Iterable, Iterator

from .errors import EBUSY, WheelError


class Signals:
    """Holds back signals. The interpreter handles one where a function begins, and nothing catches there what a handler
    raises when the library has called the function: it would be lost, and the function would not have run."""

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._came: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            found = ((number, signal.getsignal(number)) for number in signal.valid_signals())
            self._handlers = {number: handler for number, handler in found if callable(handler)}
            try:
                _set_handlers((number, self._note) for number in self._handlers)
            except BaseException:
                _set_handlers(self._handlers.items())
                raise
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))

    def handle(self) -> None:
        """Handle those that have come. Call this where an exception is caught."""
        while self._came:
            number, frame = self._came.pop(0)
            self._handlers[number](number, frame)

    def __exit__(self, *_: object) -> None:
        _set_handlers(self._handlers.items())
        self.handle()


def _set_handlers(handlers: Iterable[tuple[int, Callable[[int, FrameType | None], Any]]]) -> None:
    """Set all, though one of those in force may raise meanwhile."""
    left, escaped = list(handlers), list[BaseException]()
    while left:
        try:
            while left:
                signal.signal(*left[-1])
                left.pop()
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
