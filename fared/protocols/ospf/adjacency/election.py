"""Election of the designated router of a broadcast network (RFC 2328 §9.4): a pure function.

All routers on the network calculate from the same hellos, so they elect the same DR.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace


class Candidate(msgspec.Struct, frozen=True):
    """A router on the network, as its last hello describes it; ``address`` is its interface's.

    ``designated_router`` and ``backup_designated_router`` are 0 if its hello lists none.
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
        """Whether it declares itself BDR, and not DR."""
        return self.backup_designated_router == self.address and not self.declares_dr


class Elected(msgspec.Struct, frozen=True):
    """Addresses of the designated router and its backup, 0 where there is none."""

    designated_router: int = 0
    backup_designated_router: int = 0

    def role_of(self, address: int) -> tuple[bool, bool]:
        """Whether an address is that of the DR, and whether it is that of the BDR."""
        return (self.designated_router == address, self.backup_designated_router == address)


def elect(own: Candidate, others: Iterable[Candidate]) -> Elected:
    """Elect among this router and its bidirectional neighbors.

    A DR remains DR when a router with a higher priority appears.
    """
    # RFC 2328 §9.4: routers of priority 0 are not eligible
    neighbors = [other for other in others if other.priority > 0]
    # §9.4 (1): note the current DR and BDR
    before = Elected(own.designated_router, own.backup_designated_router)
    found = _elect_once(own, neighbors)
    # §9.4 (4): if this router became, or ceased to be, DR or BDR, repeat (2) and (3)
    if found.role_of(own.address) != before.role_of(own.address):
        found = _elect_once(
            replace(
                own,
                designated_router=found.designated_router,
                backup_designated_router=found.backup_designated_router,
            ),
            neighbors,
        )
    return found


def _elect_once(own: Candidate, neighbors: list[Candidate]) -> Elected:
    """Calculate BDR and DR once (RFC 2328 §9.4 (2) and (3))."""
    eligible = [*neighbors, own] if own.priority > 0 else neighbors
    # RFC 2328 §9.4 (2): the BDR, of those not declaring themselves DR; declared BDRs come first
    not_dr = [c for c in eligible if not c.declares_dr]
    backup = _highest([c for c in not_dr if c.declares_backup] or not_dr)
    # §9.4 (3): the DR, of those declaring themselves DR; without any, the new BDR
    designated = _highest([c for c in eligible if c.declares_dr]) or backup
    return Elected(designated, backup)


def _highest(candidates: list[Candidate]) -> int:
    """The address of the highest priority, then of the highest router id; 0 without candidates."""
    best = max(candidates, key=lambda c: (c.priority, c.router_id, c.address), default=None)
    return 0 if best is None else best.address
