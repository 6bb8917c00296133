"""How a graceful restart of this router ended, the same for OSPF and IS-IS."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fared.protocols.igp.process import Process

COMPLETED: Final = "completed"
OSPF_GRACE_PERIOD: Final = 120
ISIS_GRACE_PERIOD: Final = 60
"""Seconds that a restart takes at most, unless configured: of this router, and of a neighbor."""


class RestartEnded(msgspec.Struct, frozen=True):
    """The last restart of this router: ``completed``, or why it ended early."""

    at: float
    duration: float
    planned: bool
    result: str


def end_restart(process: Process[Any], began: float, result: str, *, planned: bool) -> RestartEnded:
    """Log that the restart of this router has ended, and return it."""
    seconds = process.now - began
    process.log(
        "info" if result == COMPLETED else "warning",
        "graceful-restart-ended",
        result=result,
        seconds=round(seconds, 3),
    )
    return RestartEnded(process.now, seconds, planned, result)
