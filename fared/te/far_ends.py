"""Links whose far end is derated: both directions are to carry less.

A receiver notices errors, but it only advertises what it sends. So a router whose neighbor derates
their link derates its own direction too. The neighbor's residual bandwidth, as a part of its
maximum, is the share (RFC 7471 §4.5, RFC 8570 §4.5). A router that only follows lowers its maximum
as well: so two routers never follow each other. Derated links are few; others are not stored.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

import msgspec


class FarEnd(msgspec.Struct, frozen=True):
    """A derated link as its other end advertises it: that end's addresses and link identifier."""

    share: float
    addresses: tuple[int, ...] = ()
    local_id: int = 0


class FarEnds:
    """The derated links of neighbors toward this router, by router and by LSA or LSP."""

    def __init__(self) -> None:
        self._known: dict[int, dict[Hashable, tuple[FarEnd, ...]]] = {}

    def put(self, router: int, carrier: Hashable, ends: tuple[FarEnd, ...]) -> bool:
        """Store the derated links in one LSA or LSP of a router; return whether they changed."""
        known = self._known.get(router, {})
        if known.get(carrier, ()) == ends:
            return False
        if ends:
            self._known.setdefault(router, {})[carrier] = ends
        else:
            del known[carrier]
            if not known:
                del self._known[router]
        return True

    def share(
        self, router: int, addresses: Collection[int], local_id: int, *, alone: bool
    ) -> float:
        """Return the share of a link to ``router``; 1: its far end is not derated.

        ``addresses`` and ``local_id`` (0 unknown) are the neighbor's on this link. ``alone``: it is
        the only link to this neighbor, and needs neither.
        """
        ends = [end for ends in self._known.get(router, {}).values() for end in ends]
        if not ends:
            return 1.0
        mine = [
            end.share
            for end in ends
            if alone
            or not set(end.addresses).isdisjoint(addresses)
            or (local_id and end.local_id == local_id)
        ]
        return min(mine, default=1.0)
