"""The few Linux calls Python 3.11 does not wrap: namespaces, mounts, death signals.

Each raises OSError as the ``os`` module would.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SHARED = 0x100000
MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move the calling thread into new namespaces (unshare(2))."""
    _check(_libc().unshare(flags), "unshare")


def setns(descriptor: int, flags: int) -> None:
    """Move the calling thread into existing namespaces (setns(2)).

    ``descriptor`` is a namespace file, or a pidfd, whose namespaces ``flags`` selects.
    """
    _check(_libc().setns(descriptor, flags), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system, bind a path, or change propagation (mount(2))."""
    arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags))
    _check(_libc().mount(*arguments, options.encode()), f"mount {kind or source} on {target}")


def unmount(target: str) -> None:
    """Detach a mount now and free it when its last user is gone (umount2(2))."""
    _check(_libc().umount2(target.encode(), MNT_DETACH), f"umount {target}")


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that forked it ends (prctl(2))."""
    _check(_libc().prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl")
