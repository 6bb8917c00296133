"""The send queue for LSAs on point-to-point links: one for all, with a bitmap for each LSA."""

from __future__ import annotations

from collections.abc import Sequence

from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.participants import Participants


class Outbox:
    """The LSAs for neighbors on point-to-point links, each with a bitmap of ``participants``.

    ``floods`` are paced, and ``bandwidths`` more so: new instances that only tell what links have
    left. ``due``: retransmissions and other LSAs for one neighbor, sent in the next turn.
    """

    __slots__ = ("_participants", "bandwidths", "due", "floods")

    def __init__(self, participants: Participants) -> None:
        self._participants = participants
        self.floods: dict[LsaEntry, int] = {}
        self.bandwidths: dict[LsaEntry, int] = {}
        self.due: dict[LsaEntry, int] = {}

    def __bool__(self) -> bool:
        return bool(self.floods or self.bandwidths or self.due)

    def flood(self, entries: Sequence[LsaEntry], neighbors: int, *, bandwidth: bool) -> None:
        """Flood LSAs to neighbors on point-to-point links."""
        queue = self.bandwidths if bandwidth else self.floods
        for entry in entries:
            queue[entry] = queue.get(entry, 0) | neighbors

    def direct(self, entry: LsaEntry, neighbors: int) -> None:
        """Send an LSA to neighbors in the next turn, on any network."""
        on_lans = neighbors & self._participants.on_lans
        for neighbor in self._participants.of(on_lans):
            neighbor.tx.update(entry)
        if neighbors != on_lans:
            self.due[entry] = self.due.get(entry, 0) | neighbors & ~on_lans

    def take_back(self, entry: LsaEntry, neighbors: int) -> int:
        """Take back what was flooded to neighbors; return those for which it was still here."""
        taken = 0
        for queue in (self.floods, self.bandwidths):
            found = queue.get(entry, 0) & neighbors
            if found:
                queue[entry] &= ~found
                neighbors &= ~found
                taken |= found
        return taken

    def forget(self, neighbor: int) -> None:
        """Discard everything for one neighbor."""
        for queue in (self.floods, self.bandwidths, self.due):
            for entry in queue:
                queue[entry] &= ~neighbor
