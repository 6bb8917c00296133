"""Graceful restarts of a router of a laboratory, as its daemon tells them."""

from __future__ import annotations

import time
from typing import Any

from fared.extensions.lab.fabric import RunningNode
from fared.management.api.client import DaemonRefusedError, DaemonUnreachableError
from tests.peers.peers import fared
from tests.waiting import wait_for


def told(node: RunningNode) -> dict[str, Any]:
    """The graceful restarts of a router and of its neighbors, of its first protocol."""
    found: dict[str, Any] = fared(node).request("show", "graceful-restart")["protocols"][0]
    return found


class Restart:
    """A restart of a router that is about to begin.

    The process that ends answers for some time, and may have a restart of its own to tell.
    """

    def __init__(self, node: RunningNode) -> None:
        self._node = node
        self._began = time.monotonic()

    @property
    def result(self) -> str | None:
        """Its result, told by the process that it began, once that is ready."""
        try:
            elapsed = time.monotonic() - self._began
            status = fared(self._node).request("show", "status")
            last = told(self._node)["restarted"]
        except (DaemonUnreachableError, DaemonRefusedError):
            return None
        began_it = status["uptime"] < elapsed
        return str(last["result"]) if began_it and status["ready"] and last else None

    def wait(self, seconds: float = 40.0) -> float:
        """Wait until it is over; return the seconds since its beginning."""
        wait_for(lambda: self.result is not None, seconds, f"{self._node.plan.name} has restarted")
        return time.monotonic() - self._began
