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
    """The derated links of neighbors toward this router, by LSA or LSP of a router in an area.

    What is in the database of another area or level than the link's does not count: there nobody
    flushes what others have forged in the name of a router.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, int], dict[Hashable, tuple[FarEnd, ...]]] = {}

    def put(self, area: Hashable, router: int, carrier: Hashable, ends: tuple[FarEnd, ...]) -> bool:
        """Store the derated links in one LSA or LSP of a router; return whether they changed.

        ``area``: its area or level.
        """
        if not ends and not self._known:
            return False  # as nearly always
        known = self._known.get((area, router), {})
        if known.get(carrier, ()) == ends:
            return False
        if ends:
            self._known.setdefault((area, router), {})[carrier] = ends
        else:
            del known[carrier]
            if not known:
                del self._known[area, router]
        return True

    def share(
        self,
        area: Hashable,
        router: int,
        addresses: Collection[int],
        local_id: int,
        *,
        alone: bool,
    ) -> float:
        """Return the share of a link to ``router`` in an area; 1: its far end is not derated.

        ``addresses`` and ``local_id`` (0 unknown) are the neighbor's on this link. ``alone``: it is
        the only link to this neighbor, and needs neither.
        """
        ends = [end for ends in self._known.get((area, router), {}).values() for end in ends]
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
