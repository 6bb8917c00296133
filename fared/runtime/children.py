"""Child processes of the daemon: how they start, and that none of them outlives it.

A child reads code from where fared is installed and from nowhere else: by default ``python -m``
looks into the working directory first, where a daemon that was started by hand may find files of
others. Children end when their end of a socket or pipe closes; while one is stopped (SIGSTOP) it
would not notice, and stand until somebody continues it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import Final

DIRECTORY: Final = "/"
"""The working directory of children."""
_PR_SET_PDEATHSIG: Final = 1


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module in this interpreter, with no directory added (-P)."""
    return (sys.executable, "-P", "-m", module, *arguments)


def end_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel kill this process when its parent ends, even if this one is stopped.

    With SIGCONT it is continued only: one that has something left to do then ends by itself.
    More precisely when the thread ends that has started it (prctl(2)): a child is started from a
    thread that lasts. A parent that executes another program in its place has not ended.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(by))


def set_name(name: str) -> None:
    """Set the name of this process that ps and top show."""
    with contextlib.suppress(OSError):
        comm = os.open("/proc/self/comm", os.O_WRONLY)  # pathlib would delay the start
        os.write(comm, name.encode())
        os.close(comm)
