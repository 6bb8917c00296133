"""Who may use the room beyond the limit of a database: each neighbor that leads somewhere, a share.

A neighbor can invent routers that hang on itself, and tell both ends of their links, so that all
are on a path from here. What this router accepts beyond the limit is therefore divided by the
neighbors through which their originators are reached: routers behind one of them find room,
whatever another one invents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

Listed = Callable[[int], set[int]]
"""Returns the neighbors that a router lists."""


class Paths:
    """The routers that are on a path from here, or that one of these lists, and the first hops.

    Only a link that both ends list leads on (RFC 2328 §16.1 (2)(b), ISO 10589 §7.2.8.2). First hops
    are those of the paths with the fewest links: a neighbor cannot claim what is nearer through
    another one. Of a router that others only list, maybe as its LSA is not here yet, they are those
    of all that list it.
    """

    def __init__(self) -> None:
        self._bits: dict[int, int] = {}
        """A bit for each first hop."""
        self._of: dict[int, int] = {}
        """The bits of the first hops, by router."""

    def __contains__(self, router: object) -> bool:
        """Whether a router is on a path, or listed by one that is."""
        return router in self._of

    @property
    def branches(self) -> int:
        """The number of first hops."""
        return len(self._bits)

    def first_hops(self, router: int) -> Iterator[int]:
        """The bits of the first hops toward a router."""
        rest = self._of.get(router, 0)
        while rest:
            yield rest & -rest
            rest &= rest - 1

    def add(self, root: int, listed: Listed) -> None:
        """Add the paths from ``root`` in one area or level."""
        reached, layer = {root: 0}, [root]
        merely_listed: dict[int, int] = {}
        while layer:
            following: dict[int, int] = {}
            for near in layer:
                for far in listed(near):
                    hops = self._bit(far) if near == root else reached[near]
                    if far in reached:
                        continue
                    if near in listed(far):
                        following[far] = following.get(far, 0) | hops
                    else:
                        merely_listed[far] = merely_listed.get(far, 0) | hops
            reached |= following
            layer = list(following)
        for found in (reached, merely_listed):
            for router, hops in found.items():
                if found is reached or router not in reached:
                    self.lead(router, hops)

    def lead(self, router: int, hops: int) -> None:
        """These first hops lead to a router, too."""
        self._of[router] = self._of.get(router, 0) | hops

    def follow(self, router: int, through: int) -> None:
        """A router is reached through another one that is on a path."""
        self.lead(router, self._of[through])

    def _bit(self, first_hop: int) -> int:
        return self._bits.setdefault(first_hop, 1 << len(self._bits))


class _Charge(msgspec.Struct):
    """What an originator was granted, through which first hop, and its entries before."""

    first_hop: int
    before: int
    granted: int


class Shares:
    """Grants of room beyond the limit, by first hop."""

    def __init__(self) -> None:
        self._charges: dict[int, _Charge] = {}
        self._used: Counter[int] = Counter()

    def refresh(self, entries: Callable[[int], int]) -> None:
        """Forget grants that were not used, or whose entries have gone.

        ``entries`` returns how many an originator has in the database.
        """
        self._charges = {
            originator: charge
            for originator, charge in self._charges.items()
            if entries(originator) > charge.before
        }
        self._used.clear()
        for charge in self._charges.values():
            self._used[charge.first_hop] += charge.granted

    def grant(self, originator: int, paths: Paths, wanted: int, room: int, entries: int) -> int:
        """How many of ``wanted`` entries an originator may have of ``room`` for all branches.

        ``entries``: what it has already. Several first hops: the one that has used least counts.
        """
        charge = self._charges.get(originator)
        hops = [charge.first_hop] if charge else list(paths.first_hops(originator))
        if not hops:
            return 0
        first_hop = min(hops, key=self._used.__getitem__)
        share = max(1, room // max(1, paths.branches))
        granted = max(0, min(wanted, share - self._used[first_hop]))
        if granted:
            charge = self._charges.setdefault(originator, _Charge(first_hop, entries, 0))
            charge.granted += granted
            self._used[first_hop] += granted
        return granted
