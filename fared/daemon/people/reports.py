"""Reports of events: to systemd, the log, and ``show neighbors``."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fared.core.ids import NodeId
from fared.core.lost_neighbors import LostNeighbor
from fared.daemon.loop.notify import Notifier
from fared.daemon.loop.runtime import Runtime
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.stages import Stage
from fared.runtime.startup import set_aside

SET_ASIDE_AFTER = 2.0
"""Seconds after start-up until the objects learned so far are exempt from garbage collection."""
REASONS_KEPT = 4096
"""Neighbors of which the last reason is known: on a LAN, each hello may come from a new one."""


class Reports:
    """Observes all outputs of the router."""

    def __init__(self, notifier: Notifier, runtime: Runtime, log: Any) -> None:  # noqa: ANN401 - structlog's filtering logger has no public type
        self._notifier = notifier
        self._runtime = runtime
        self._log = log

    def observe(self, output: events.Output) -> None:
        """Report an output if it is an event for them."""
        match output:
            case events.StageReached(stage):
                self._stage_reached(stage)
            case events.From(proto, igp.AdjacencyChanged() as change):
                self._remember(change.ifindex, change.neighbor, change.reason)
                if change.gained_or_lost:
                    self._lost(proto, change)
            case events.Converged(record):
                self._log.info(
                    "converged",
                    causes=list(record.causes),
                    spf=record.spf_ran,
                    routes=record.routes,
                    operations=record.operations,
                    milliseconds=round(record.total * 1e3, 2),
                )

    def _remember(self, ifindex: int, neighbor: NodeId, reason: str) -> None:
        """Store the last reason of a neighbor; of too many, the oldest is forgotten."""
        reasons = self._runtime.neighbor_reasons
        reasons.pop((ifindex, neighbor), None)
        reasons[ifindex, neighbor] = reason
        if len(reasons) > REASONS_KEPT:
            del reasons[next(iter(reasons))]

    def _lost(self, proto: str, change: igp.AdjacencyChanged) -> None:
        """Remember a neighbor whose adjacency has ended, until it has formed again."""
        lost, place = self._runtime.lost_neighbors, (proto, change.interface)
        if change.state in igp.ADJACENT:
            lost.discard(place, change.neighbor)
        else:
            lost.add(place, LostNeighbor(change.neighbor, time.time(), change.reason))

    def _stage_reached(self, stage: str) -> None:
        self._notifier.status(f"start-up: {stage}")
        if stage == Stage.READY.label:
            self._notifier.status("routing")
            self._notifier.ready()
            asyncio.get_running_loop().call_later(SET_ASIDE_AFTER, set_aside)
