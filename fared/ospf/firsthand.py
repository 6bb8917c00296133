"""Who hears of something new from others first, or has no use for it, and can wait for our copy.

What a router floods about itself it sends to all its neighbors; both ends of a lost link flood
that it is gone. A neighbor of ours that is adjacent to one who speaks hears it from there: our
copy waits a moment on its retransmission list, as with ``core.reduction``, and mostly is never
sent, for a copy or an acknowledgment of the neighbor comes first. What it saves comes when it
counts most: while every router of the fabric is busy repairing its routes, in a dense Clos nine
of ten copies are such. A border router computes nothing from what others announce into an area
that is not the backbone (RFC 2328 §16.2): its copy of that has time as well.

It never waits for long: where somebody has not noticed, or cannot speak, our copy is late by
``PATIENCE.delay``.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Final

from fared.core.ids import BACKBONE
from fared.core.reduction import ReductionSettings
from fared.ospf.lsdb import Scope
from fared.ospf.packet.bodies import B_BIT, RouterLink, RouterLinkType, RouterLsa
from fared.ospf.packet.body import opaque_type
from fared.ospf.packet.lsa import MAX_AGE, LsaKey, LsType
from fared.ospf.packet.opaque import OpaqueType

if TYPE_CHECKING:
    from fared.ospf.lsdb import LsaEntry, Lsdb

PATIENCE: Final = ReductionSettings(delay=0.1)
"""How long a copy for somebody who hears first hand waits for a sign of that."""

_NOBODY: Final[frozenset[int]] = frozenset()
_P2P: Final = RouterLinkType.POINT_TO_POINT
_SUMMARIES: Final = (LsType.SUMMARY_NETWORK, LsType.SUMMARY_ASBR)


class _Everybody:
    """Contains all router ids."""

    def __contains__(self, _: object) -> bool:
        return True


_EVERYBODY: Final = _Everybody()


class FirstHand:
    """Tells for each new instance whose copies may wait."""

    def __init__(self) -> None:
        self._speaker: RouterLsa | None = None
        self._next_to_it: frozenset[int] = _NOBODY

    def told(self, area: Lsdb, old: LsaEntry | None, new: LsaEntry) -> Container[int]:
        """The ids of routers that need no copy of ``new`` at once, as a rule.

        ``area`` is the database of the area it came from, ``old`` the instance it replaces. A TE
        LSA that is taken back may reach anybody later: that its link is gone is the router LSA's
        to say.
        """
        if new.lsdb.scope is Scope.LINK:
            return _NOBODY
        key = new.key
        if key.ls_type == LsType.ROUTER:
            return _of_router(area, old, new)
        opaque = opaque_type(key.link_state_id) if key.ls_type == LsType.OPAQUE_AREA else None
        if opaque == OpaqueType.TRAFFIC_ENGINEERING and new.lsa.header.ls_age >= MAX_AGE:
            return _EVERYBODY
        speaker = _router_lsa(area, key.advertising_router)
        if speaker is None:
            return _NOBODY
        summary = key.ls_type in _SUMMARIES or opaque == OpaqueType.EXTENDED_PREFIX
        if summary and speaker.flags & B_BIT and area.area != BACKBONE:
            return _NextToOrBorder(self._next_to(speaker), area)
        return self._next_to(speaker)

    def _next_to(self, speaker: RouterLsa) -> frozenset[int]:
        """Who is adjacent to a router; it mostly is the one that was asked for before."""
        if speaker is not self._speaker:
            self._speaker, self._next_to_it = speaker, frozenset(_adjacent(speaker))
        return self._next_to_it


class _NextToOrBorder:
    """Contains the neighbors of a border router, and the other border routers of its area."""

    def __init__(self, next_to_it: frozenset[int], area: Lsdb) -> None:
        self._next_to_it = next_to_it
        self._area = area

    def __contains__(self, router_id: object) -> bool:
        if router_id in self._next_to_it:
            return True
        body = _router_lsa(self._area, router_id) if isinstance(router_id, int) else None
        return body is not None and bool(body.flags & B_BIT)


def _of_router(area: Lsdb, old: LsaEntry | None, new: LsaEntry) -> Container[int]:
    before = None if old is None else old.body
    after = new.body
    if not isinstance(after, RouterLsa):
        return _NOBODY
    told = _adjacent(after)
    lost = _lost_neighbors(before, after) if isinstance(before, RouterLsa) else set()
    far = [_router_lsa(area, router_id) for router_id in lost]
    if far and all(body is not None for body in far):
        sides = [_adjacent(body) for body in far if body is not None]
        told |= sides[0].intersection(*sides[1:])
    return told


def _lost_neighbors(before: RouterLsa, after: RouterLsa) -> set[int]:
    """Neighbors of which a link is gone, if nothing else changed; empty otherwise."""
    if before.flags != after.flags or len(after.links) >= len(before.links):
        return set()
    kept = set(after.links)
    gone = [link for link in before.links if link not in kept]
    if len(gone) != len(before.links) - len(after.links):
        return set()
    links = [link for link in gone if link.link_type == _P2P]
    if not all(link in links or _subnet_of_one(link, links) for link in gone):
        return set()
    return {link.link_id for link in links}


def _subnet_of_one(stub: RouterLink, links: list[RouterLink]) -> bool:
    """Whether a lost stub is the network of a lost link (RFC 2328 §12.4.1.1, option 2)."""
    return stub.link_type == RouterLinkType.STUB and any(
        link.link_data & stub.link_data == stub.link_id for link in links
    )


def _adjacent(body: RouterLsa) -> set[int]:
    return {link.link_id for link in body.links if link.link_type == _P2P}


def _router_lsa(area: Lsdb, router_id: int) -> RouterLsa | None:
    entry = area.get(LsaKey(LsType.ROUTER, router_id, router_id))
    body = None if entry is None or entry.base_age >= MAX_AGE else entry.body
    return body if isinstance(body, RouterLsa) else None
