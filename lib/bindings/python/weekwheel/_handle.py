"""What an object is that stands for something outside of the interpreter."""
from __future__ import annotations

from typing import NoReturn


class Handle:
    """An object that cannot be copied or pickled: a copy would stand for the same thing, and end it a second time."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be copied or pickled: make another")
