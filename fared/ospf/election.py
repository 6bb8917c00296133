"""Electing the designated router of a broadcast network (RFC 2328 §9.4): a calculation, no state.

Every router on the network calculates for itself from what all declare in their hellos, and all
come to the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Candidate:
    """A router on the network as it declares itself; addresses are those of its interface.

    ``designated_router`` and ``backup_designated_router`` are whom it takes for these, 0 nobody.
    """

    address: int
    router_id: int
    priority: int
    designated_router: int
    backup_designated_router: int

    @property
    def declares_dr(self) -> bool:
        """Whether it declares itself designated router."""
        return self.designated_router == self.address

    @property
    def declares_backup(self) -> bool:
        """Whether it declares itself backup and nothing more."""
        return self.backup_designated_router == self.address and not self.declares_dr


@dataclass(frozen=True, slots=True)
class Elected:
    """Addresses of the designated router and its backup, 0 where there is none."""

    designated_router: int = 0
    backup_designated_router: int = 0

    def role_of(self, address: int) -> tuple[bool, bool]:
        """Whether an address is that of the one, and of the other."""
        return (self.designated_router == address, self.backup_designated_router == address)


def elect(own: Candidate, others: Iterable[Candidate]) -> Elected:
    """Elect among this router and its bidirectional neighbors.

    Priority 0 is not eligible. Whoever is in office stays there, whatever newcomers bring.
    """
    neighbors = [other for other in others if other.priority > 0]
    before = Elected(own.designated_router, own.backup_designated_router)
    found = _round(own, neighbors)
    # RFC 2328 §9.4 (4): a router that gained or lost an office calculates once more with that.
    if found.role_of(own.address) != before.role_of(own.address):
        found = _round(
            replace(
                own,
                designated_router=found.designated_router,
                backup_designated_router=found.backup_designated_router,
            ),
            neighbors,
        )
    return found


def _round(own: Candidate, neighbors: list[Candidate]) -> Elected:
    """RFC 2328 §9.4 (2) and (3)."""
    eligible = [*neighbors, own] if own.priority > 0 else neighbors
    # (2)
    modest = [c for c in eligible if not c.declares_dr]
    backup = _highest([c for c in modest if c.declares_backup] or modest)
    # (3)
    designated = _highest([c for c in eligible if c.declares_dr]) or backup
    return Elected(designated, backup)


def _highest(candidates: list[Candidate]) -> int:
    """The address of the candidate of highest priority, then router id; 0 without candidates."""
    best = max(candidates, key=lambda c: (c.priority, c.router_id, c.address), default=None)
    return 0 if best is None else best.address
