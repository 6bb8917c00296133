"""Link state retransmission lists: what a neighbor has been sent and not acknowledged (§13.6)."""

from __future__ import annotations

from functools import partial

from fared.core.reduction import Turn
from fared.ospf.database import HURRIED, MIN_LS_ARRIVAL
from fared.ospf.firsthand import PATIENCE
from fared.ospf.instance import Instance
from fared.ospf.lsdb import LsaEntry
from fared.ospf.neighbor import Neighbor, NeighborState, Retransmission
from fared.ospf.packet.lsa import LsaKey

_BATCH = 512
_BATCH_GAP = 0.05
_SLACK = 0.1
_HURRIED_WAIT = MIN_LS_ARRIVAL * 1.1


class Retransmitter:
    """Keeps the lists of all neighbors, one timer each."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._turn = Turn()

    def enlist(self, neighbor: Neighbor, entry: LsaEntry) -> None:
        """Send ``entry`` to the neighbor again and again until it acknowledges.

        A neighbor with RFC 2328's MinLSArrival silently drops an instance that follows its
        predecessor within a second; such a one is repeated soon after that second.
        """
        self._list(neighbor, Retransmission(entry, self._first_repeat(neighbor, entry)))

    def defer(self, neighbor: Neighbor, entry: LsaEntry) -> None:
        """Send ``entry`` only when the neighbor has not shown by its turn that it has it.

        What waits without flooding reduction (``firsthand``) has one turn for all neighbors:
        a router wakes once for all of them.
        """
        instance = self._instance
        reduction = instance.settings.reduction
        if reduction.active:
            due = neighbor.turn.due(reduction, instance.now, instance.rng)
        else:
            due = self._turn.due(PATIENCE, instance.now, instance.rng)
        self._list(neighbor, Retransmission(entry, due, deferred=True))
        instance.counters.lsas["deferred"] += 1

    def delist(self, neighbor: Neighbor, key: LsaKey) -> Retransmission | None:
        """Stop repeating; return what was on the list."""
        listed = neighbor.retransmissions.pop(key, None)
        if listed is not None:
            listed.entry.retransmissions -= 1
            if not neighbor.retransmissions:
                self._instance.timers.cancel(neighbor.retransmission_timer)
                neighbor.retransmission_timer = None
        return listed

    def delist_everywhere(self, entry: LsaEntry) -> None:
        """RFC 2328 §13 (5)(c): an instance that is replaced is on no list any more."""
        if entry.retransmissions == 0:
            return
        for interface in self._instance.interfaces.values():
            for neighbor in interface.neighbors.values():
                listed = neighbor.retransmissions.get(entry.key)
                if listed is not None and listed.entry is entry:
                    self.delist(neighbor, entry.key)

    def clear(self, neighbor: Neighbor) -> None:
        """Empty the list of a neighbor that is lost."""
        for key in list(neighbor.retransmissions):
            self.delist(neighbor, key)

    def _list(self, neighbor: Neighbor, item: Retransmission) -> None:
        self.delist(neighbor, item.entry.key)
        neighbor.retransmissions[item.entry.key] = item
        item.entry.retransmissions += 1
        self._arm(neighbor, item.due)

    def _first_repeat(self, neighbor: Neighbor, entry: LsaEntry) -> float:
        wait = neighbor.interface.settings.rxmt_interval
        if entry.hurried or self._newly_full(neighbor):
            wait = min(wait, _HURRIED_WAIT)
        return self._instance.now + wait

    def _newly_full(self, neighbor: Neighbor) -> bool:
        """Whether the neighbor may have got the predecessor a moment ago, by asking for it."""
        return neighbor.state < NeighborState.FULL or self._instance.now - neighbor.since < HURRIED

    def _arm(self, neighbor: Neighbor, due: float) -> None:
        timer = neighbor.retransmission_timer
        if timer is not None and timer.active:
            if timer.deadline <= due:
                return
            self._instance.timers.cancel(timer)
        neighbor.retransmission_timer = self._instance.timers.arm(
            due, partial(self._fire, neighbor)
        )

    def _fire(self, neighbor: Neighbor) -> None:
        now = self._instance.now
        interval = neighbor.interface.settings.rxmt_interval
        horizon = now + interval * _SLACK
        ready = [
            item
            for item in neighbor.retransmissions.values()
            if item.due <= (now if item.deferred else horizon)
        ]
        counters = self._instance.counters.lsas
        for item in ready[:_BATCH]:
            if item.deferred:
                item.deferred = False
                item.due = self._first_repeat(neighbor, item.entry)
                counters["deferred-sent"] += 1
            else:
                item.due = now + interval
                counters["retransmitted"] += 1
            neighbor.direct[item.entry.key] = item.entry
        self._instance.unsent[neighbor.interface.ifindex] = neighbor.interface
        if len(ready) > _BATCH:
            self._arm(neighbor, now + _BATCH_GAP)
        elif neighbor.retransmissions:
            self._arm(neighbor, min(item.due for item in neighbor.retransmissions.values()))
