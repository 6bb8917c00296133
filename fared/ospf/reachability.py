"""Prefixes beyond an area, as its LSAs tell of them: summaries, externals, announced capacities.

For the TED these are attachments like any other: a summary LSA is a prefix of the border router
that originated it, an AS-external LSA is one of the AS boundary router, or, where that is in
another area, of each border router that leads to it (RFC 2328 §16.2, §16.4). Path capacities
of extended prefix LSAs (RFC 7684) are joined to the summary of the same router and prefix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from fared.core.ids import AreaId, NodeId, Prefix, ipv4_prefix, mask_length
from fared.core.units import sane_capacity
from fared.ospf.instance import Instance
from fared.ospf.lsdb import LsaEntry
from fared.ospf.packet.bodies import AsExternalLsa, SummaryLsa
from fared.ospf.packet.body import LsaBody, opaque_type
from fared.ospf.packet.extended_prefix import ExtendedPrefixLsa, RouteType
from fared.ospf.packet.lsa import LS_INFINITY, LsaKey, LsType
from fared.ospf.packet.opaque import OpaqueType
from fared.ted.model import PathType, PrefixAttachment

_T = TypeVar("_T")
RouterKey = tuple[AreaId, int]
_INTER_AREA = (RouteType.INTER_AREA, RouteType.UNSPECIFIED)


@dataclass(slots=True)
class _Border:
    """What one router says in one area of what lies beyond."""

    summaries: dict[LsaKey, PrefixAttachment] = field(default_factory=dict)
    asbrs: dict[LsaKey, tuple[NodeId, int]] = field(default_factory=dict)
    capacities: dict[LsaKey, dict[Prefix, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _External:
    """One AS-external LSA."""

    prefix: Prefix
    metric: int
    path_type: PathType
    forwarding_address: int


class Reachability:
    """Follows the databases and says what is attached to a router of an area."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._borders: dict[RouterKey, _Border] = {}
        self._externals: dict[int, dict[LsaKey, _External]] = {}

    @staticmethod
    def concerns(key: LsaKey) -> bool:
        """Whether an LSA speaks of anything that is kept here."""
        if key.ls_type in (LsType.OPAQUE_AREA, LsType.OPAQUE_AS):
            return opaque_type(key.link_state_id) == OpaqueType.EXTENDED_PREFIX
        return key.ls_type in (LsType.SUMMARY_NETWORK, LsType.SUMMARY_ASBR, LsType.AS_EXTERNAL)

    def lsa_changed(self, entry: LsaEntry, body: LsaBody | None) -> list[RouterKey]:
        """Take note of an LSA, ``body`` None if it is gone; return who has other attachments.

        Summaries of our own are for others (§16.2 (2)). Externals of our own stand for routes of
        the kernel: no route to the same prefix over another AS boundary router may replace them.
        """
        key, area = entry.key, entry.lsdb.area
        if key.ls_type == LsType.AS_EXTERNAL:
            return self._external(key, body)
        if area is None or key.advertising_router == self._instance.router_id:
            return []
        at = area, key.advertising_router
        border = self._borders.get(at)
        if border is None:
            border = self._borders[at] = _Border()
        match key.ls_type:
            case LsType.SUMMARY_NETWORK:
                changed = _put(border.summaries, key, _summary(key, body))
            case LsType.SUMMARY_ASBR:
                changed = _put(border.asbrs, key, _asbr(key, body))
            case _:
                changed = _put(border.capacities, key, self._capacities(body))
        if not (border.summaries or border.asbrs or border.capacities):
            del self._borders[at]
        return [at] if changed else []

    def _external(self, key: LsaKey, body: LsaBody | None) -> list[RouterKey]:
        router = key.advertising_router
        known = self._externals.setdefault(router, {})
        if not _put(known, key, _read_external(key, body)):
            return []
        if not known:
            del self._externals[router]
        beyond = [
            at
            for at, border in self._borders.items()
            if any(asbr == router for asbr, _ in border.asbrs.values())
        ]
        return [*((area, router) for area in self._instance.areas), *beyond]

    def _capacities(self, body: LsaBody | None) -> dict[Prefix, float] | None:
        code_point = self._instance.settings.path_capacity_code
        if not isinstance(body, ExtendedPrefixLsa) or code_point is None:
            return None
        told = {
            facts.prefix: capacity
            for facts in body.prefixes
            if facts.route_type in _INTER_AREA
            and (capacity := sane_capacity(facts.capacity(code_point))) is not None
        }
        if not told:
            return None
        # A single holds seven digits; the rest is noise that would make equal capacities differ.
        return {prefix: float(f"{8.0 * value:.7g}") / 8.0 for prefix, value in told.items()}

    def attachments(
        self, area: AreaId, router: int, *, boundary: bool
    ) -> tuple[PrefixAttachment, ...]:
        """All that is attached to a router beyond its own links, in order of LSA.

        ``boundary``: whether it calls itself an AS boundary router (§16.4 (3)).
        """
        border = self._borders.get((area, router))
        found: list[PrefixAttachment] = []
        if border is not None:
            told: dict[Prefix, float] = {}
            for _, capacities in sorted(border.capacities.items()):
                told.update(capacities)
            found += (
                _with_capacity(item, told.get(item.prefix))
                for _, item in sorted(border.summaries.items())
            )
        known = self._instance.areas.get(area)
        if known is None or known.settings.stub:
            return tuple(found)
        if boundary:
            found += self._behind(router, None, 0)
        for _, (asbr, cost) in sorted(border.asbrs.items()) if border is not None else ():
            found += self._behind(asbr, asbr, cost)
        return tuple(found)

    def _behind(self, router: int, asbr: NodeId | None, cost: int) -> Iterator[PrefixAttachment]:
        """The externals of an AS boundary router, ``cost`` away (§16.4 (5))."""
        for _, item in sorted(self._externals.get(router, {}).items()):
            if item.forwarding_address:
                yield PrefixAttachment(
                    item.prefix,
                    item.metric,
                    item.path_type,
                    asbr=asbr,
                    forward=item.forwarding_address,
                )
                continue
            first = item.path_type is PathType.EXTERNAL_1
            yield PrefixAttachment(
                item.prefix,
                item.metric + cost if first else item.metric,
                item.path_type,
                asbr=asbr,
                distance=0 if first else cost,
            )

    def leads_to(self, area: AreaId, router: int) -> tuple[tuple[NodeId, int], ...]:
        """The AS boundary routers of other areas that a border router tells of, and costs."""
        border = self._borders.get((area, router))
        return () if border is None else tuple(sorted(border.asbrs.values()))


def _put(table: dict[LsaKey, _T], key: LsaKey, value: _T | None) -> bool:
    """Set, or remove with None; return whether that changed anything."""
    if table.get(key) == value:
        return False
    if value is None:
        del table[key]
    else:
        table[key] = value
    return True


def _with_capacity(item: PrefixAttachment, capacity: float | None) -> PrefixAttachment:
    if capacity is None:
        return item
    return PrefixAttachment(item.prefix, item.metric, item.path_type, capacity)


def _summary(key: LsaKey, body: LsaBody | None) -> PrefixAttachment | None:
    """RFC 2328 §16.2 (1)."""
    if not isinstance(body, SummaryLsa) or body.metric >= LS_INFINITY:
        return None
    length = mask_length(body.network_mask)
    if length is None:
        return None
    prefix = ipv4_prefix(key.link_state_id, length)
    return PrefixAttachment(prefix, body.metric, PathType.INTER_AREA)


def _asbr(key: LsaKey, body: LsaBody | None) -> tuple[NodeId, int] | None:
    if not isinstance(body, SummaryLsa) or body.metric >= LS_INFINITY:
        return None
    return NodeId(key.link_state_id), body.metric


def _read_external(key: LsaKey, body: LsaBody | None) -> _External | None:
    """RFC 2328 §16.4 (1)."""
    if not isinstance(body, AsExternalLsa) or body.metric >= LS_INFINITY:
        return None
    length = mask_length(body.network_mask)
    if length is None:
        return None
    kind = PathType.EXTERNAL_2 if body.type_2 else PathType.EXTERNAL_1
    prefix = ipv4_prefix(key.link_state_id, length)
    return _External(prefix, body.metric, kind, body.forwarding_address)
