"""Small files that survive this process: read with limits, replaced as a whole."""

from __future__ import annotations

import contextlib
import errno
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


def replace_file(file: Path, content: bytes, mode: int = 0o640) -> None:
    """Replace a file so that a crash leaves the old or the new one. Raises OSError.

    ``mode`` is that of the new file, less the umask.
    """
    with contextlib.suppress(FileExistsError):
        file.parent.mkdir(mode=0o750)
    fresh = file.with_name(f"{file.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(fresh, flags, mode), "wb") as sink:
        sink.write(content)
        sink.flush()
        os.fsync(sink.fileno())
    fresh.replace(file)
    directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def replace_text(path: Path, text: str) -> None:
    """Replace a file of an operator, or the one that a link leads to; its mode stays.

    Raises OSError.
    """
    file = path.resolve()
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o640
    replace_file(file, text.encode(), mode)
    file.chmod(mode)  # whatever the umask


def check_replaceable(path: Path) -> None:
    """Check that ``replace_text`` would be permitted. Raises OSError."""
    directory = path.resolve().parent
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"no permission to write into {directory}")
