"""Signals that wait until somebody handles them, from the first instruction of a process on.

A signal without a handler ends a process, and systemd takes the end by SIGHUP for a clean one. What
is blocked waits, also across exec(2): the next process begins with the mask of this one.
"""

from __future__ import annotations

import signal
from typing import Final

HELD: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_IGNORED: Final = (signal.SIGUSR1, signal.SIGUSR2)
"""They mean nothing here, and would end the process."""


def hold() -> None:
    """Let signals wait until ``release``, in this thread and those that it starts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    for number in _IGNORED:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.SIG_IGN)


def release(*numbers: signal.Signals) -> None:
    """Let these signals come, by default all: those that wait come at once."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers or HELD)
