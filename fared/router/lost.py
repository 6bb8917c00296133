"""The links that a database once had: what is missing after a failure, and since when.

A link that both ends listed, and no longer do, stays known for a day, over restarts too
(``daemon.people.lost_links`` keeps them on disk). Nothing depends on it but what people see.
A link over a network of two routers is one between these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from fared.core.ids import NodeId

KEPT: Final = 86400.0
"""Seconds for which a lost link stays known."""
MOST: Final = 4096
"""Pairs of routers; the first to be lost make room."""


class LostLink(msgspec.Struct, frozen=True):
    """The links that a pair of routers, ``a`` the lower id, had and lost.

    ``since``: of the last one, on the router's clock. ``names``: the last known hostnames of both,
    ``metrics`` those that each end advertised for the link.
    """

    protocol: str
    area: int
    a: NodeId
    b: NodeId
    links: int
    since: float
    names: tuple[str | None, str | None]
    metrics: tuple[int, int] = (0, 0)


_Pair = tuple[str, int, NodeId, NodeId]


class LostLinks:
    """The lost links of all databases, the earliest first."""

    def __init__(self) -> None:
        self._lost: dict[_Pair, LostLink] = {}
        self.version = 0
        """Grows with each change."""

    def __len__(self) -> int:
        return len(self._lost)

    def lose(self, link: LostLink, *, network: bool) -> None:
        """Some links of a pair are gone; ``network``: the network between, of which there is one.

        Of a pair that loses another link the number is the sum.
        """
        at = (link.protocol, link.area, link.a, link.b)
        before = self._lost.pop(at, None)
        if before is not None and not network:
            link = msgspec.structs.replace(link, links=link.links + before.links)
        self._lost[at] = link
        while len(self._lost) > MOST:
            del self._lost[next(iter(self._lost))]
        self.version += 1

    def find(self, protocol: str, area: int, a: NodeId, b: NodeId, links: int) -> bool:
        """Links of a pair are there (again); return whether any of them was lost."""
        at = (protocol, area, min(a, b), max(a, b))
        before = self._lost.get(at)
        if before is None:
            return False
        if before.links > links:
            self._lost[at] = msgspec.structs.replace(before, links=before.links - links)
        else:
            del self._lost[at]
        self.version += 1
        return True

    def present(self, now: float) -> list[LostLink]:
        """Forget those that were lost a day ago; return the others, the earliest first."""
        for at, link in list(self._lost.items()):
            if now - link.since <= KEPT:
                break
            del self._lost[at]
            self.version += 1
        return list(self._lost.values())

    def restore(self, links: Iterable[LostLink]) -> None:
        """Know the lost links of a former process, the earliest first; those lost since stay."""
        known = {(link.protocol, link.area, link.a, link.b): link for link in links}
        found = sorted({**known, **self._lost}.items(), key=lambda each: each[1].since)
        self._lost = dict(found[-MOST:])
        self.version += 1
