"""Self-originated LSAs whose sequence number wraps (RFC 2328 §12.1.6, §14.1).

The instance with MaxSequenceNumber is flushed; once all neighbors have acknowledged it, the next
one has InitialSequenceNumber. A timer ends the wait for a neighbor that does not acknowledge.
"""

from __future__ import annotations

from functools import partial

from fared.core.ids import AreaId
from fared.core.timers import Timer
from fared.protocols.ospf.flooding.procedure import Flooding
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.packet.lsa import LsaKey

_RETRANSMISSIONS = 3
"""In RxmtIntervals: how long to wait for acknowledgments. §12.1.6 sets no limit."""


class SequenceWraps:
    """The LSAs whose wrap is in progress."""

    def __init__(self, instance: Instance, flooding: Flooding) -> None:
        self._instance = instance
        self._process = instance.process
        self._flooding = flooding
        self._timers: dict[tuple[AreaId | None, LsaKey], Timer] = {}

    def __contains__(self, key: tuple[AreaId | None, LsaKey]) -> bool:
        """Whether the wrap of an LSA is in progress, by the area of its database and its key."""
        return key in self._timers

    def hold(self, entry: LsaEntry) -> None:
        """Flush an LSA with MaxSequenceNumber; again if a neighbor floods it back."""
        instance = self._instance
        key = (entry.lsdb.area, entry.key)
        if not entry.is_maxage(instance.process.now):
            entry = self._flooding.flush(entry)
        if key in self._timers:
            return
        with_neighbors = [
            interface for interface in instance.interfaces.values() if interface.neighbors
        ]
        intervals = [interface.settings.rxmt_interval for interface in with_neighbors]
        due = instance.process.now + _RETRANSMISSIONS * max(intervals, default=0.0)
        self._timers[key] = instance.process.timers.arm(due, partial(self._give_up, entry))
        instance.process.log("info", "ospf-sequence-wrap", lsa=str(entry.key))

    def ended(self, entry: LsaEntry) -> bool:
        """End the wrap of an LSA removed from the database; return whether one was in progress."""
        timer = self._timers.pop((entry.lsdb.area, entry.key), None)
        self._process.timers.cancel(timer)
        return timer is not None

    def _give_up(self, entry: LsaEntry) -> None:
        """Remove an LSA that a neighbor has not acknowledged."""
        present = entry.lsdb.get(entry.key)
        if present is None:
            self._timers.pop((entry.lsdb.area, entry.key), None)
            return
        self._process.log("warning", "ospf-flush-not-acknowledged", lsa=str(entry.key))
        self._flooding.drop(present)
