"""Electing the designated IS of a LAN (ISO 10589 §8.4.5): a calculation, no state.

The highest priority wins, then the highest SNPA, and whoever is best takes the office from its
holder. One thing differs from the letter: the best neighbor follows only when its hellos say so
itself. A newcomer waits two hello intervals before it elects; until then nobody would announce
its pseudonode, and the LAN would be cut if we left the old one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """One IS on the LAN; ``lan_id`` (system id << 8 | pseudonode number) is whom it takes for DIS."""

    system_id: int
    snpa: int
    priority: int
    lan_id: int

    @property
    def rank(self) -> tuple[int, int]:
        """What the election compares."""
        return (self.priority, self.snpa)

    @property
    def declares_itself(self) -> bool:
        """Whether its hellos name a pseudonode of its own."""
        return self.lan_id >> 8 == self.system_id and self.lan_id & 0xFF != 0


def elect(own: Candidate, neighbors: Iterable[Candidate], *, office: int, eligible: bool) -> int:
    """Elect among this router and the neighbors it hears both ways; return a LAN id, 0 for none.

    ``own.lan_id`` is what this router would call the LAN, ``office`` the LAN id in force (0:
    none). ``eligible``: this router may elect itself, since its waiting time is over. Alone on
    a LAN there is no designated IS.
    """
    ranked = sorted(neighbors, key=lambda candidate: candidate.rank, reverse=True)
    if not ranked:
        return 0
    if eligible and own.rank > ranked[0].rank:
        return own.lan_id
    if ranked[0].declares_itself:
        return ranked[0].lan_id
    declared = [candidate.lan_id for candidate in ranked if candidate.declares_itself]
    if office and office in (*declared, own.lan_id):
        return office
    return declared[0] if declared else 0
