"""How a graceful restart of this router ended, the same for OSPF and IS-IS."""

from __future__ import annotations

import msgspec


class RestartEnded(msgspec.Struct, frozen=True):
    """The last restart of this router: ``completed``, or why it ended early."""

    at: float
    duration: float
    planned: bool
    result: str
