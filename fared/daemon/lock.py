"""One daemon for each run directory: a lock file beside the control socket, held while we run.

Two daemons with one configuration would use one router id on the same links: the second one's first
hello ends adjacencies of the first. A socket file does not prevent this, since anyone may remove
it. So the lock is taken before the first packet, socket or sysctl. The kernel releases ``flock(2)``
when the holder ends for any reason: a remaining file blocks no daemon. Who may open the file may
lock it, and so keep the daemon from starting: it is for the daemon's user alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE = 0o600
_PID_SIZE = 32
_ATTEMPTS = 16  # the holder removes the file when it ends: an open one may be another by then


class LockError(Exception):
    """The lock cannot be taken; the message is for the operator."""


class InstanceLock:
    """The lock of the daemon that listens on a control socket, in the file ``SOCKET.lock``."""

    def __init__(self, control_socket: str) -> None:
        self.path = Path(f"{control_socket}.lock")
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock and write our pid into its file. Raises LockError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = self._locked()
            os.fchmod(descriptor, _MODE)  # one that a former version left
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            reason = error.strerror or str(error)
            raise LockError(
                f"cannot lock {self.path}: {reason} (api: socket: in the file)"
            ) from error
        self._descriptor = descriptor

    def release(self) -> None:
        """Remove the file and release the lock, if it is held."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            if _same(self._descriptor, self.path):
                self.path.unlink()
        os.close(self._descriptor)
        self._descriptor = None

    def _locked(self) -> int:
        """Return a descriptor of the file that holds the lock. Raises LockError, OSError."""
        for _ in range(_ATTEMPTS):
            descriptor = os.open(self.path, _FLAGS, _MODE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _same(descriptor, self.path):
                    return descriptor
            except BlockingIOError:
                holder = os.pread(descriptor, _PID_SIZE, 0).decode("ascii", "replace").strip()
                os.close(descriptor)
                raise LockError(self._held_by(holder)) from None
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)
        raise OSError(errno.EAGAIN, "other processes replace the file repeatedly")

    def _held_by(self, holder: str) -> str:
        if holder.isdecimal() and not _runs(int(holder)):
            return (
                f"pid {holder}, which took {self.path}, has ended, but another process holds the"
                " lock: its child, or one that may read the file (fuser names it)"
            )
        who = f"pid {holder}" if holder.isdecimal() else "a process that has not written its pid"
        return f"another daemon is running: {who} holds {self.path} (api: socket: in the file)"


def _runs(pid: int) -> bool:
    """Whether a process has this id, whoever owns it."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _same(descriptor: int, path: Path) -> bool:
    """Whether the open file still is the one at ``path``."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)
