"""The daemon as a process: it runs until a signal, and a restart puts the next one in its place."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from fared.config import Loaded
from fared.daemon.daemon import Daemon
from fared.daemon.lock import LockError
from fared.daemon.loop.errors import DaemonError, end_out_of_memory, handle_unraisable
from fared.kernel.errors import PrivilegeError
from fared.management.api.control import SocketInUse
from fared.runtime.signals import hold
from fared.runtime.startup import share_heap


def run(path: str, loaded: Loaded, record: str | None = None) -> None:
    """Run until SIGTERM or SIGINT; ``record``: where to, if at all. Raises DaemonError."""
    share_heap()
    sys.unraisablehook = handle_unraisable
    daemon = Daemon(path, loaded, record)
    sys.stderr = daemon.stderr.file  # for what Python itself, and libraries, have to say
    del loaded  # its text, when it is in the history
    # asyncio would handle it by cancelling, until the daemon does; and Python makes a text of a
    # handler that is replaced, for which inspect reads the whole task: 2 ms and 0.7 MB.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(_serve(daemon))
        if daemon.leaving:
            daemon.stderr.finish()
            daemon.notifier.alive()  # systemd counts on, from here to the next process's loop
            _execute_again()
    except (LockError, PrivilegeError) as error:
        raise DaemonError(str(error)) from None
    except SocketInUse as error:
        raise DaemonError(error.strerror or str(error)) from None
    except MemoryError:
        end_out_of_memory()


async def _serve(daemon: Daemon) -> None:
    """Serve; then let signals wait again, before the loop ends and with it their handlers."""
    try:
        await daemon.serve()
    finally:
        hold()


def _execute_again() -> None:
    """Start the next process in place of this one: its pid, its arguments, present code."""
    sys.stdout.flush()
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - ourselves
    except OSError as error:
        raise DaemonError(f"cannot restart {sys.executable}: {error.strerror}") from None
