"""Times of Python as whole nanoseconds, and numbers as C takes them."""
from __future__ import annotations

import datetime
import math
import operator
from typing import Union

Seconds = Union[int, float, datetime.timedelta]
"""A span of time, or a time: seconds as a number, or a timedelta. An int is exact; a float is so to a microsecond or
better."""


def whole(what: str, number: int, least: int, most: int) -> int:
    """A number in its range. C would take one that is too large for another, such as 2**64 for 0."""
    if not least <= operator.index(number) <= most:
        raise ValueError(f"{what}: {number} is out of range: {least} to {most}")
    return operator.index(number)


def nanoseconds(time: Seconds) -> int:
    """Seconds as nanoseconds, rounded up: nothing is early."""
    if isinstance(time, datetime.timedelta):
        ns = (time // datetime.timedelta(microseconds=1)) * 1000
    elif isinstance(time, int):
        ns = time * 10**9
    elif not isinstance(time, float):
        raise TypeError(f"{time!r} is not a time: seconds are a number, or a timedelta")
    else:
        if not math.isfinite(time):
            raise ValueError(f"{time} is not a time: seconds are a finite number")
        # 0.1 is a little more than a tenth: what a float cannot represent does not count.
        ns = math.ceil(round(time * 1e9, 3))
    if not 0 <= ns < 2**63:
        raise ValueError(f"{time} is out of range: seconds are 0 to 2**62 ns, 146 years")
    return ns
