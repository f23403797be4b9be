"""Writing a file in the place of another, so that there is always a whole one."""
from __future__ import annotations

import contextlib
import itertools
import os
import stat
from typing import IO, Callable, Iterator

from ._library import NO_END, RLock

_numbers = itertools.count(1)


def _open(path: str, mode: int) -> IO[bytes]:
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


def _as_before(file: IO[bytes], before: os.stat_result) -> None:
    """Give the file the owner, if this process may, and the mode of the one that it replaces."""
    with contextlib.suppress(PermissionError):
        os.fchown(file.fileno(), before.st_uid, before.st_gid)
    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))


def _sync_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Replacer:
    """Writes files in the place of others. Of several at a time for one path, the one that began last stays."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._under_way: set[int] = set()
        self._last: dict[str, int] = {}  # of each path, while one that began earlier is under way
        self._lock = RLock()

    @contextlib.contextmanager
    def replacing(self, path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
        """A file to write into, which takes the place of the other at the end. If anything is raised, it is removed."""
        number = next(self._numbers)
        try:
            self._under_way.add(number)
            with _replacing(path, lambda new, final: self._replace(number, new, final)) as file:
                yield file
        finally:
            self._under_way.discard(number)

    def _replace(self, number: int, new: str, final: str) -> None:
        with self._lock:
            if self._last.get(final, 0) < number:
                os.replace(new, final)
                self._last[final] = number
            else:
                os.unlink(new)
            self._under_way.discard(number)
            oldest = min(self._under_way, default=NO_END)
            self._last = {path: last for path, last in self._last.items() if last > oldest}


@contextlib.contextmanager
def _replacing(path: str | os.PathLike[str], replace: Callable[[str, str], object]) -> Iterator[IO[bytes]]:
    """A file to write into. At the end it is synced, and replace(its name, that of the other) is to rename or to remove it.
    If anything is raised, it is removed. A link stays one, and what is no file is refused."""
    final = os.path.realpath(os.fsdecode(path))
    try:
        before = os.stat(final)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise ValueError(f"{os.fspath(path)} is there, and is no file: name a file to replace")
    new = f"{final}.{os.getpid()}-{next(_numbers)}-{os.urandom(4).hex()}.new"
    try:
        with _open(new, 0o666 if before is None else 0o600) as file:
            yield file
            file.flush()
            if before is not None:
                _as_before(file, before)
            os.fsync(file.fileno())
        replace(new, final)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        raise
    _sync_folder(final)
