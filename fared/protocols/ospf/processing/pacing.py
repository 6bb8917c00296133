"""When the LSAs of the ``Outbox`` are sent: what changes the topology soon, bandwidths in groups.

The first LSA after a quiet time is sent at once, the ones that follow wait for each other, so that
a burst is sent in full packets. In a dense fabric every LSA arrives over many links within
milliseconds; one that a neighbor floods to us meanwhile is not sent to it. Areas share no
neighbors, so LSAs of one area do not wait for those of another: after a lost link, the summaries of
a border router leave as soon as they are computed, whatever it has just flooded in the area of the
link.

LSAs that only announce what a link has left (``flooding.bandwidth``) all wait for copies of the
neighbors, and where there are many longer (``bandwidth_rate``): in a fabric that adapts to load
they are nearly all of a router's work, and that is in proportion to the packets.
"""

from __future__ import annotations

import math

from fared.core.ids import AreaId
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.lsdb import LsaEntry


class _Gate:
    """Lets all that have come pass together, at most once in a while, and perhaps not at once."""

    __slots__ = ("_due", "_instance", "_passed")

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._passed = -math.inf
        self._due: float | None = None

    def passes(self, gap: float, wait: float = 0.0) -> bool:
        """Whether ``gap`` is over since the last ones, and the first one has waited; else a timer.

        Both count as they were when the first one came.
        """
        process = self._instance.process
        if self._due is None:
            self._due = max(process.now + wait, self._passed + gap)
            if process.now < self._due:
                process.timers.arm(self._due, _wake)
        if process.now < self._due:
            return False
        self._passed, self._due = process.now, None
        return True


class Pacing:
    """Empties the ``Outbox`` when its LSAs are due."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._floods: dict[AreaId | None, _Gate] = {}
        self._bandwidths = _Gate(instance)

    def take(self) -> dict[LsaEntry, int]:
        """The LSAs to send now, with their neighbors."""
        outbox, settings = self._instance.outbox, self._instance.settings
        ready, outbox.due = outbox.due, {}
        floods: list[dict[LsaEntry, int]] = []
        if outbox.floods:
            due, outbox.floods = self._of_open_gates(outbox.floods)
            floods.append(due)
        if outbox.bandwidths:
            gap = self._instance.bandwidth_rate.pacing(self._instance.process.now, settings)
            if self._bandwidths.passes(gap, wait=settings.flood_pacing):
                floods.append(outbox.bandwidths)
                outbox.bandwidths = {}
        for queue in floods:
            for entry, neighbors in queue.items():
                ready[entry] = ready.get(entry, 0) | neighbors
        return ready

    def _of_open_gates(
        self, waiting: dict[LsaEntry, int]
    ) -> tuple[dict[LsaEntry, int], dict[LsaEntry, int]]:
        """The LSAs that are due by the areas that they are flooded in, and those that are not."""
        passes: dict[AreaId | None, bool] = {}
        parts: tuple[dict[LsaEntry, int], dict[LsaEntry, int]] = {}, {}
        for entry, neighbors in waiting.items():
            area = entry.lsdb.area
            if area not in passes:
                gate = self._floods.get(area)
                if gate is None:
                    gate = self._floods[area] = _Gate(self._instance)
                passes[area] = gate.passes(self._instance.settings.flood_pacing)
            parts[not passes[area]][entry] = neighbors
        return parts

    def take_for(self, interface: Interface) -> dict[LsaEntry, int]:
        """All LSAs for the neighbors of an interface, regardless of their time."""
        outbox = self._instance.outbox
        ready: dict[LsaEntry, int] = {}
        for neighbor in interface.neighbors.values():
            for queue in (outbox.floods, outbox.bandwidths, outbox.due):
                for entry, neighbors in queue.items():
                    if neighbors & neighbor.bit:
                        ready[entry] = ready.get(entry, 0) | neighbor.bit
                        queue[entry] &= ~neighbor.bit
        return ready


def _wake() -> None:
    """Wake the engine: the next turn takes what is due."""
