"""Election of the designated IS of a LAN (ISO 10589 §8.4.5), without state.

The highest priority wins, then the highest SNPA; a better router preempts the DIS.

One deviation: the best neighbor is elected only once the LAN id in its hellos is its own. A new
router waits two hello intervals before it elects itself (§8.4.1 d)). If the present DIS resigned
before that, no router would originate a pseudonode LSP, and the LAN would be partitioned.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Candidate(msgspec.Struct, frozen=True):
    """One IS on the LAN; ``lan_id`` in its hellos is system id << 8 | pseudonode number."""

    system_id: int
    snpa: int
    priority: int
    lan_id: int

    @property
    def rank(self) -> tuple[int, int]:
        """The key that the election compares (§8.4.5)."""
        return (self.priority, self.snpa)

    @property
    def declares_itself(self) -> bool:
        """Whether the LAN id in its hellos is its own: it has elected itself."""
        return self.lan_id >> 8 == self.system_id and self.lan_id & 0xFF != 0


def elect(own: Candidate, neighbors: Iterable[Candidate], *, current: int, eligible: bool) -> int:
    """Elect among this router and its two-way neighbors; return a LAN id, 0 for none.

    ``own.lan_id`` is the LAN id that this router would assign, ``current`` the present one (0:
    none). ``eligible``: this router may elect itself, since its waiting time is over.
    """
    ranked = sorted(neighbors, key=lambda candidate: candidate.rank, reverse=True)
    # without a neighbor there is no pseudonode to originate
    if not ranked:
        return 0
    # §8.4.5: the highest priority, then the highest SNPA; §8.4.1 d): not before the waiting time
    if eligible and own.rank > ranked[0].rank:
        return own.lan_id
    if ranked[0].declares_itself:
        return ranked[0].lan_id
    # deviation: until the best has elected itself, the present DIS stays, else the best that has
    declared = [candidate.lan_id for candidate in ranked if candidate.declares_itself]
    if current and current in (*declared, own.lan_id):
        return current
    return declared[0] if declared else 0
