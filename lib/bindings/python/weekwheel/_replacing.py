"""Writing a file in the place of another, so that there is always a whole one."""
from __future__ import annotations

import contextlib
import itertools
import os
import stat
from typing import IO, Callable, Iterator

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


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], replace: Callable[[str, str], object]) -> Iterator[IO[bytes]]:
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
