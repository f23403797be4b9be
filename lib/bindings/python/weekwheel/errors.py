"""What goes wrong, as exceptions. Each says what happened and what to do."""
from __future__ import annotations


class WeekwheelError(Exception):
    """The base of all that this package raises on its own behalf."""


# ---- Timers and sessions

EBUSY, ECLOSED, ESTALE, ETIMEOUT = -6, -8, -9, -19


class WheelError(WeekwheelError):
    """A call of the C library has failed. `number` is its WW_E*."""

    number = 0

    @staticmethod
    def of(number: int, text: str) -> WheelError:
        """Make the exception of a negative answer."""
        error = _OF_NUMBER.get(number, WheelError)(text)
        error.number = number
        return error


class Closed(WheelError):
    """The driver, the clock or the map was closed, or it belongs to the process that this one was forked from."""


class Stale(WheelError):
    """What is there has another version, or nothing is there."""


class Busy(WheelError):
    """The call is not allowed here: a callback would wait for itself, or something made on the object is left."""


class InUse(WheelError):
    """The key has an entry already."""


class Damaged(WheelError):
    """Bytes were written by something else, cut off, or damaged."""


class TooBig(WheelError):
    """An entry weighs more than the map allows."""


class LoadFailed(WeekwheelError):
    """Another thread's loader has failed, whose result this call waited for. `__cause__` is what it raised."""


_OF_NUMBER: dict[int, type[WheelError]] = {EBUSY: Busy, -7: Damaged, ECLOSED: Closed, ESTALE: Stale, -12: InUse, -17: TooBig}
