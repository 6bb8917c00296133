"""Reads files that an operator names: only regular ones, up to a size, without blocking."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class NotRegularError(OSError):
    """Not a regular file, so reading may block or never end: ``strerror`` names its kind."""


def read_regular(path: Path, most: int) -> tuple[bytes, bool]:
    """Return up to ``most`` bytes of a regular file, and whether others may write it.

    Others are its group and everybody. Raises NotRegularError for a FIFO, a device and others, and
    OSError if the file cannot be opened.
    """
    # Without O_NONBLOCK opening a FIFO blocks until a writer opens it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "something else")
            raise NotRegularError(errno.EINVAL, kind)
        with os.fdopen(descriptor, "rb", closefd=False) as source:
            return source.read(most), bool(mode & _OTHERS_WRITE)
    finally:
        os.close(descriptor)
