"""Who hears of a lost link from one of its own ends, and need not be told at once by us.

Both ends of a lost link flood that it is gone, each to all its neighbors. A neighbor of ours that
is adjacent to the router whose word we pass on, or to the other end, hears of it from there: our
copy waits a moment on its retransmission list, as with ``core.reduction``, and mostly is never
sent, for a copy or an acknowledgment of the neighbor comes first. What it saves comes when it
counts most: while every router of the fabric is busy repairing its routes, in a dense Clos nine
of ten copies are such.

Only the pure loss of point-to-point links waits, never news of another kind, and never for long:
where the other end has not noticed, or cannot speak, our copy is late by ``PATIENCE.delay``.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Final

from fared.core.reduction import ReductionSettings
from fared.ospf.packet.bodies import RouterLink, RouterLinkType, RouterLsa
from fared.ospf.packet.body import opaque_type
from fared.ospf.packet.lsa import MAX_AGE, LsaKey, LsType
from fared.ospf.packet.opaque import OpaqueType

if TYPE_CHECKING:
    from fared.ospf.lsdb import LsaEntry, Lsdb

PATIENCE: Final = ReductionSettings(delay=0.1)
"""How long a copy for somebody who hears first hand waits for a sign of that."""

_NOBODY: Final[frozenset[int]] = frozenset()
_P2P: Final = RouterLinkType.POINT_TO_POINT


class _Everybody:
    """Contains all router ids."""

    def __contains__(self, _: object) -> bool:
        return True


_EVERYBODY: Final = _Everybody()


def told_first_hand(lsdb: Lsdb, old: LsaEntry | None, new: LsaEntry) -> Container[int]:
    """The ids of routers that hear what is new in ``new`` from others first, as a rule.

    ``old`` is the instance it replaces. A TE LSA that is taken back may reach anybody later:
    that its link is gone is the router LSA's to say.
    """
    key = new.key
    if key.ls_type == LsType.ROUTER:
        return _of_loss(lsdb, key, old, new)
    if key.ls_type == LsType.OPAQUE_AREA and new.lsa.header.ls_age >= MAX_AGE:
        return _EVERYBODY if _is_te(key) else _NOBODY
    return _NOBODY


def _is_te(key: LsaKey) -> bool:
    return opaque_type(key.link_state_id) == OpaqueType.TRAFFIC_ENGINEERING


def _of_loss(
    lsdb: Lsdb, key: LsaKey, old: LsaEntry | None, new: LsaEntry
) -> set[int] | frozenset[int]:
    before = None if old is None else old.body
    after = new.body
    if not isinstance(before, RouterLsa) or not isinstance(after, RouterLsa):
        return _NOBODY
    lost = _lost_neighbors(before, after)
    if not lost:
        return _NOBODY
    told = _adjacent(after)
    far = [_body_of(lsdb, key, router_id) for router_id in lost]
    if all(body is not None for body in far):
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


def _body_of(lsdb: Lsdb, key: LsaKey, router_id: int) -> RouterLsa | None:
    entry = lsdb.get(LsaKey(key.ls_type, router_id, router_id))
    body = None if entry is None or entry.base_age >= MAX_AGE else entry.body
    return body if isinstance(body, RouterLsa) else None
