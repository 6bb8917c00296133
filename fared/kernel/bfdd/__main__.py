"""``python -m fared.kernel.bfdd FD``: ``FD`` is the socket to the daemon, which alone starts it."""

from __future__ import annotations

import gc
import os
import random
import signal
import time

from fared.kernel.bfdd.link import DaemonLink
from fared.kernel.bfdd.process import BfdProcess
from fared.runtime.child import serve_daemon

NAME = "fared-bfd"
REAL_TIME = 10
"""Above all other programs, below the kernel's own threads (50)."""
NICE = -15
"""Where a real-time priority is not permitted."""


def main() -> None:
    """Run until the daemon closes the socket."""
    # Sessions outlive the last packets of the protocols; when the socket has closed, neighbors are
    # told AdminDown.
    sock = serve_daemon(NAME, ends_by=signal.SIGCONT)
    gc.collect()
    gc.freeze()
    BfdProcess(DaemonLink(sock), random.Random(), time.monotonic, raise_priority()).run()


def raise_priority() -> str:
    """Raise the priority as far as permitted; return it in words."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REAL_TIME))
    except OSError as error:
        refused = error.strerror
    else:
        return f"real-time {REAL_TIME}"
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice > NICE:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
        except OSError:
            return f"nice {nice} (real-time: {refused})"
    return f"nice {os.getpriority(os.PRIO_PROCESS, 0)} (real-time: {refused})"


if __name__ == "__main__":
    main()
