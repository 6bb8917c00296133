"""Link state retransmission lists: LSAs flooded to a neighbor and not acknowledged (§13.6)."""

from __future__ import annotations

from functools import partial

from fared.core.reduction import FloodDelay
from fared.ospf.flooding.database import ARRIVAL_MARGIN, MIN_LS_ARRIVAL
from fared.ospf.flooding.suppression import SUPPRESSION
from fared.ospf.instance import Instance
from fared.ospf.interface import Neighbor, Retransmission
from fared.ospf.lsdb import LsaEntry
from fared.ospf.neighbor import NeighborState
from fared.ospf.packet.lsa import LsaKey

_BATCH = 512
_BATCH_GAP = 0.05
"""Seconds between batches."""
_SLACK = 0.1
"""Part of RxmtInterval by which a retransmission may be early, to share packets with others."""
_AFTER_MIN_LS_ARRIVAL = MIN_LS_ARRIVAL * 1.1


class Retransmitter:
    """Keeps the lists of all neighbors, one timer each."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._process = instance.process
        self._flood_delay = FloodDelay()

    def enlist(self, neighbor: Neighbor, entry: LsaEntry) -> None:
        """Put ``entry`` on the retransmission list: §13.3 (1)(d).

        A neighbor with MinLSArrival (§13 (5)(a)) discards an instance that follows its predecessor
        within a second. Such an instance is first retransmitted shortly after that second, if
        RxmtInterval is longer.
        """
        self._list(neighbor, Retransmission(entry, self._first_retransmission(neighbor, entry)))

    def defer(self, neighbor: Neighbor, entry: LsaEntry) -> None:
        """Put ``entry`` on the list and send it after the flood delay, unless it is off by then.

        Flood suppression draws one delay for all neighbors, so that one wakeup serves them all;
        flooding reduction draws one for each.
        """
        instance = self._instance
        reduction = instance.settings.reduction
        if reduction.active:
            due = neighbor.flood_delay.due(reduction, instance.process.now, instance.process.rng)
        else:
            due = self._flood_delay.due(SUPPRESSION, instance.process.now, instance.process.rng)
        self._list(neighbor, Retransmission(entry, due, deferred=True))
        instance.process.counters.lsdb["deferred"] += 1

    def delist(self, neighbor: Neighbor, key: LsaKey) -> Retransmission | None:
        """Take an LSA off the list (§13.7, §13 (7)(a)); return the item, if it was listed."""
        listed = neighbor.retransmissions.pop(key, None)
        if listed is not None:
            listed.entry.retransmissions -= 1
            if not neighbor.retransmissions:
                self._process.timers.cancel(neighbor.retransmission_timer)
                neighbor.retransmission_timer = None
        return listed

    def delist_everywhere(self, entry: LsaEntry) -> None:
        """Take a replaced instance off all lists: RFC 2328 §13 (5)(c)."""
        if entry.retransmissions == 0:
            return
        for interface in self._instance.interfaces.values():
            for neighbor in interface.neighbors.values():
                listed = neighbor.retransmissions.get(entry.key)
                if listed is not None and listed.entry is entry:
                    self.delist(neighbor, entry.key)

    def clear(self, neighbor: Neighbor) -> None:
        """Clear the list of a neighbor whose adjacency is destroyed (§10.3, §13.6)."""
        for key in list(neighbor.retransmissions):
            self.delist(neighbor, key)

    def _list(self, neighbor: Neighbor, item: Retransmission) -> None:
        self.delist(neighbor, item.entry.key)
        neighbor.retransmissions[item.entry.key] = item
        item.entry.retransmissions += 1
        self._arm(neighbor, item.due)

    def _first_retransmission(self, neighbor: Neighbor, entry: LsaEntry) -> float:
        wait = neighbor.interface.settings.rxmt_interval
        if entry.within_min_ls_arrival or self._newly_full(neighbor):
            wait = min(wait, _AFTER_MIN_LS_ARRIVAL)
        return self._process.now + wait

    def _newly_full(self, neighbor: Neighbor) -> bool:
        """Whether the neighbor may have received the predecessor just now, by requesting it."""
        return (
            neighbor.state < NeighborState.FULL
            or self._process.now - neighbor.since < ARRIVAL_MARGIN
        )

    def _arm(self, neighbor: Neighbor, due: float) -> None:
        timer = neighbor.retransmission_timer
        if timer is not None and timer.active:
            if timer.deadline <= due:
                return
            self._process.timers.cancel(timer)
        neighbor.retransmission_timer = self._process.timers.arm(due, partial(self._fire, neighbor))

    def _fire(self, neighbor: Neighbor) -> None:
        """Send the LSAs that are due, directly to the neighbor (§13.6).

        §13.6 sends one packet of them for each acknowledgment or RxmtInterval. Here up to
        ``_BATCH`` LSAs are sent, and the next batch follows ``_BATCH_GAP`` later: with tens of
        thousands of LSAs on the list, one packet in five seconds would take hours.
        """
        now = self._process.now
        interval = neighbor.interface.settings.rxmt_interval
        horizon = now + interval * _SLACK
        ready = [
            item
            for item in neighbor.retransmissions.values()
            if item.due <= (now if item.deferred else horizon)
        ]
        counters = self._process.counters.lsdb
        for item in ready[:_BATCH]:
            if item.deferred:
                item.deferred = False
                item.due = self._first_retransmission(neighbor, item.entry)
                counters["deferred-sent"] += 1
            else:
                item.due = now + interval
                counters["retransmitted"] += 1
            neighbor.tx.update(item.entry)
        if len(ready) > _BATCH:
            self._arm(neighbor, now + _BATCH_GAP)
        elif neighbor.retransmissions:
            self._arm(neighbor, min(item.due for item in neighbor.retransmissions.values()))
