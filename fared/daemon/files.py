"""Small files that survive this process: read with limits, replaced as a whole."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def read_small(file: Path, most: int) -> bytes:
    """Read at most so many bytes of a regular file; a FIFO does not block.

    Raises OSError, or ValueError for other kinds of files.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as source:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        return source.read(most)


def replace_file(file: Path, content: bytes) -> None:
    """Replace a file so that a crash leaves the old or the new one. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        file.parent.mkdir(mode=0o750)
    fresh = file.with_name(f"{file.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(fresh, flags, 0o640), "wb") as sink:
        sink.write(content)
        sink.flush()
        os.fsync(sink.fileno())
    fresh.replace(file)
    directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
