"""What a child process of the daemon does first: none outlives the daemon, or takes its CPU time.

Children end when their end of a socket or pipe closes; while one is stopped (SIGSTOP) it would not
notice, and stand until somebody continues it. ``fared.runtime.children`` starts them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def serve_daemon(name: str, *, ends_by: signal.Signals = signal.SIGKILL) -> socket.socket:
    """Begin a process that serves the daemon until its socket closes; return that socket.

    Its descriptor is the only argument. Signals that a service manager sends to all processes are
    ignored: the daemon still needs this one when it says goodbye.
    """
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(f"{name}: the fared daemon starts this program")
    end_with_parent(ends_by)
    sock = socket.socket(fileno=int(sys.argv[1]))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    set_name(name)
    return sock


def end_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel kill this process when its parent ends, even if this one is stopped.

    With SIGCONT it is continued only: one that has something left to do then ends by itself.
    More precisely when the thread ends that has started it (prctl(2)): a child is started from a
    thread that lasts. A parent that executes another program in its place has not ended.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(by))


def give_way(by: int = 5) -> None:
    """Leave CPU time to the daemon, by a higher nice value; the unit of systemd forbids it."""
    with contextlib.suppress(OSError):
        os.nice(by)


def set_name(name: str) -> None:
    """Set the name of this process that ps and top show."""
    with contextlib.suppress(OSError):
        comm = os.open("/proc/self/comm", os.O_WRONLY)  # pathlib would delay the start
        os.write(comm, name.encode())
        os.close(comm)
