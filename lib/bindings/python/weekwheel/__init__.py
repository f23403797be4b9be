"""weekwheel: timers and sessions of the C library libweekwheel, and a client of the job server weekwheeld.

The client of jobs is in weekwheel.jobs, and needs no library. The rest is here.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import Busy, Closed, Damaged, InUse, LoadFailed, Stale, TooBig, WeekwheelError, WheelError

if TYPE_CHECKING:
    from .aio import LoopDriver
    from .sessions import ABSENT, Entry, Gone, Loaded, Sessions
    from .timers import Clock, Driver, Timer, VirtualClock

__version__ = "0.2.0"
__all__ = ["ABSENT", "Busy", "Clock", "Closed", "Damaged", "Driver", "Entry", "Gone", "InUse", "LoadFailed", "Loaded",
           "LoopDriver", "Sessions", "Stale", "Timer", "TooBig", "VirtualClock", "WeekwheelError", "WheelError"]

_HOMES = {"LoopDriver": "aio", **dict.fromkeys(("ABSENT", "Entry", "Gone", "Loaded", "Sessions"), "sessions"),
          **dict.fromkeys(("Clock", "Driver", "Timer", "VirtualClock"), "timers")}


def __getattr__(name: str) -> Any:
    """Load the C library when something of it is first asked for."""
    import importlib
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("." + _HOMES[name], __name__), name)
