"""The priority of the process: real-time if permitted, else a nice value."""

from __future__ import annotations

import os

REAL_TIME = 10
"""Above all other programs, below the kernel's own threads (50)."""
NICE = -15


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
