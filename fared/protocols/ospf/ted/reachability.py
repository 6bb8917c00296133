"""Prefixes beyond an area, as its LSAs advertise them: summaries, externals, path capacities.

In the TED these are prefixes of routers: that of a summary LSA belongs to the border router that
originated it; that of an AS-external LSA to the AS boundary router or, if this is in another area,
to each border router that advertises it (RFC 2328 §16.2, §16.4). Path capacities of extended prefix
LSAs (RFC 7684) are attached to the summary, or AS-external LSA, of the same router and prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from fared.core.ids import AreaId, NodeId, Prefix, ipv4_prefix, mask_length
from fared.core.wire import DecodeError
from fared.paths.ted.model import PathType, PrefixReachability
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.packet.bodies import AsExternalLsa, SummaryLsa
from fared.protocols.ospf.packet.body import LsaBody, decode_body, opaque_type
from fared.protocols.ospf.packet.extended_prefix import RouteType
from fared.protocols.ospf.packet.lsa import LS_INFINITY, LsaKey, LsType
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.ted.external_capacities import (
    EXTERNAL,
    EXTERNAL_OF_AS,
    INTER_AREA,
    ExternalCapacities,
    capacities_of,
    external_keys,
)

_K = TypeVar("_K")
_V = TypeVar("_V")
_W = TypeVar("_W")
RouterKey = tuple[AreaId, int]
Source = LsaKey | tuple[LsaKey, LsaKey]
"""The LSA that advertises a prefix; with the type 4 summary of an ASBR of another area."""
Cause = Callable[[], str]
"""Describes the LSA that changed something, for people; most descriptions are not wanted."""
_NETWORK_MASK = slice(20, 24)
"""Of an AS-external LSA."""


class _AdvertisedBeyond(msgspec.Struct):
    """Prefixes and ASBRs beyond an area that one router advertises into it."""

    summaries: dict[LsaKey, PrefixReachability] = msgspec.field(default_factory=dict)
    of_prefix: dict[Prefix, dict[LsaKey, None]] = msgspec.field(default_factory=dict)
    asbrs: dict[LsaKey, tuple[NodeId, int]] = msgspec.field(default_factory=dict)
    capacities: dict[LsaKey, dict[Prefix, float]] = msgspec.field(default_factory=dict)
    advertised: dict[Prefix, dict[LsaKey, float]] = msgspec.field(default_factory=dict)
    """``capacities`` by prefix."""

    def __bool__(self) -> bool:
        return bool(self.summaries or self.asbrs or self.capacities)

    def summary(self, key: LsaKey) -> PrefixReachability:
        """A summary with the capacity advertised for its prefix."""
        item = self.summaries[key]
        known = self.advertised.get(item.prefix)
        return replace(item, capacity=known[max(known)]) if known else item


class PrefixChanges(msgspec.Struct):
    """Prefixes of one router that changed since the last ``take``, and the first cause."""

    cause: str
    since: float
    changes: dict[Hashable, PrefixReachability | None] = msgspec.field(default_factory=dict)


class Reachability:
    """Prefixes beyond an area, by advertising router, kept up to date with the LSDB."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._process = instance.process
        self._borders: dict[RouterKey, _AdvertisedBeyond] = {}
        self._asbr_areas: dict[int, dict[AreaId, None]] = {}
        """Areas in which a router sets the E-bit: it is an AS boundary router (§12.4.1)."""
        self._asbr_summaries: dict[int, dict[tuple[RouterKey, LsaKey], None]] = {}
        """By AS boundary router: the border routers that advertise it, by type 4 summary."""
        self._changed: dict[RouterKey, PrefixChanges] = {}
        self._external_capacities = ExternalCapacities()

    @staticmethod
    def concerns(key: LsaKey) -> bool:
        """Whether an LSA advertises anything beyond an area."""
        if key.ls_type in (LsType.OPAQUE_AREA, LsType.OPAQUE_AS):
            return opaque_type(key.link_state_id) == OpaqueType.EXTENDED_PREFIX
        return key.ls_type in (LsType.SUMMARY_NETWORK, LsType.SUMMARY_ASBR, LsType.AS_EXTERNAL)

    def take(self) -> dict[RouterKey, PrefixChanges]:
        """The changes since the last call."""
        changed, self._changed = self._changed, {}
        return changed

    def lsa_changed(self, entry: LsaEntry, body: LsaBody | None, cause: Cause) -> bool:
        """Process a changed LSA (``body`` None: flushed); return whether ``asbr_routes`` changed.

        Self-originated summaries are ignored (RFC 2328 §16.2 (2)). Self-originated externals are
        not, unlike in §16.4 (2): they are routes of the kernel, which a route over another AS
        boundary router must not replace.
        """
        key, area = entry.key, entry.lsdb.area
        if key.ls_type == LsType.AS_EXTERNAL:
            prefix = None if body is None else _external_prefix(entry)
            self.externals_changed((key,), self._external(key, prefix, body), cause)
            return False
        if key.ls_type == LsType.OPAQUE_AS:
            self._external_capacity((None, key), body, EXTERNAL_OF_AS, cause)
            return False
        # §16.2 (2): originated by the calculating router
        if area is None or key.advertising_router == self._instance.router_id:
            return False
        at = area, key.advertising_router
        border = self._borders.setdefault(at, _AdvertisedBeyond())
        asbr_changed = False
        match key.ls_type:
            case LsType.SUMMARY_NETWORK:
                self._summary(at, border, key, _summary(key, body), cause)
            case LsType.SUMMARY_ASBR:
                asbr_changed = self._asbr(at, border, key, _asbr(key, body), cause)
            case _:
                listed = capacities_of(body, self._code_point, INTER_AREA)
                self._capacity(at, border, key, listed, cause)
                self._external_capacity((area, key), body, EXTERNAL, cause)
        if not border:
            del self._borders[at]
        return asbr_changed

    def set_asbr(self, area: AreaId, router: int, cause: Cause, *, is_asbr: bool) -> None:
        """Set whether a router is an AS boundary router in an area (RFC 2328 §16.4 (3))."""
        known = self._asbr_areas.get(router, {})
        if is_asbr == (area in known):
            return
        if is_asbr:
            self._asbr_areas.setdefault(router, {})[area] = None
        else:
            del known[area]
            if not known:
                del self._asbr_areas[router]
        if not is_asbr:
            self._change((area, router), self._external_keys(router), None, cause)
            return
        for key, external in self._externals(router):
            self._change((area, router), (key,), external if self._floods(area) else None, cause)

    def _external_keys(self, router: int) -> Iterator[LsaKey]:
        """The externals of an AS boundary router; one at MaxAge may not be withdrawn yet."""
        for key in self._instance.as_scope.entries:
            if key.advertising_router == router and key.ls_type == LsType.AS_EXTERNAL:
                yield key

    def _externals(self, router: int) -> Iterator[tuple[LsaKey, PrefixReachability]]:
        """The externals of an AS boundary router, as seen from there: decoded again, not kept.

        Their prefixes are: all of them are made before the first item. Python frees memory in large
        pieces, and none in which prefixes and items alternate, a hundred thousand of each.
        """
        now, entries = self._process.now, self._instance.as_scope.entries
        keys = [key for key in self._external_keys(router) if not entries[key].is_maxage(now)]
        prefixes = [_external_prefix(entries[key]) for key in keys]
        for key, prefix in zip(keys, prefixes, strict=True):
            item = self._external(key, prefix, _body(entries[key]))
            if item is not None:
                yield key, item

    def _external(
        self, key: LsaKey, prefix: Prefix | None, body: LsaBody | None
    ) -> PrefixReachability | None:
        """What an AS-external LSA advertises, with its path capacity."""
        item = _read_external(prefix, body)
        if item is None:
            return None
        capacity = self._external_capacities.of(key.advertising_router, item.prefix)
        return item if capacity is None else replace(item, capacity=capacity)

    def _external_capacity(
        self,
        at: tuple[AreaId | None, LsaKey],
        body: LsaBody | None,
        route_types: tuple[RouteType, ...],
        cause: Cause,
    ) -> None:
        """Attach capacities to the AS-external LSAs of their prefixes, as far as these are used."""
        listed = capacities_of(body, self._code_point, route_types)
        for prefix in self._external_capacities.take(at, listed):
            for known in external_keys(at[1].advertising_router, prefix):
                entry = self._instance.as_scope.get(known)
                if entry is None or not entry.used or entry.is_maxage(self._process.now):
                    continue
                if _external_prefix(entry) == prefix:
                    item = self._external(known, prefix, _body(entry))
                    self.externals_changed((known,), item, cause)

    @property
    def _code_point(self) -> int | None:
        return self._instance.settings.path_capacity_code

    def _change(
        self,
        at: RouterKey,
        sources: Iterable[Source],
        item: PrefixReachability | None,
        cause: Cause,
    ) -> None:
        """Report that some LSAs, if any, now advertise a prefix, or none."""
        changes: dict[Hashable, PrefixReachability | None] = dict.fromkeys(sources, item)
        if not changes:
            return
        if at not in self._changed:
            self._changed[at] = PrefixChanges(cause(), self._process.now)
        self._changed[at].changes.update(changes)

    def _summary(
        self,
        at: RouterKey,
        border: _AdvertisedBeyond,
        key: LsaKey,
        item: PrefixReachability | None,
        cause: Cause,
    ) -> None:
        """Note or remove a summary of a border router, and report the change."""
        before = border.summaries.pop(key, None)
        if before is not None:
            _discard(border.of_prefix, before.prefix, key)
        if item is not None:
            border.summaries[key] = item
            border.of_prefix.setdefault(item.prefix, {})[key] = None
        if item != before:
            self._change(at, (key,), None if item is None else border.summary(key), cause)

    def _capacity(
        self,
        at: RouterKey,
        border: _AdvertisedBeyond,
        key: LsaKey,
        advertised: dict[Prefix, float],
        cause: Cause,
    ) -> None:
        """Attach advertised capacities to the summaries of their prefixes."""
        before = border.capacities.pop(key, {})
        if advertised:
            border.capacities[key] = advertised
        for prefix in before.keys() | advertised.keys():
            if before.get(prefix) == advertised.get(prefix):
                continue
            if prefix in before:
                _discard(border.advertised, prefix, key)
            if prefix in advertised:
                border.advertised.setdefault(prefix, {})[key] = advertised[prefix]
            for summary in border.of_prefix.get(prefix, ()):
                self._change(at, (summary,), border.summary(summary), cause)

    def _asbr(
        self,
        at: RouterKey,
        border: _AdvertisedBeyond,
        key: LsaKey,
        route: tuple[NodeId, int] | None,
        cause: Cause,
    ) -> bool:
        """Process a type 4 summary: its border router is a path to the ASBR (§16.4 (3))."""
        before = border.asbrs.pop(key, None)
        if route is not None:
            border.asbrs[key] = route
        if before == route:
            return False
        if before is not None:
            _discard(self._asbr_summaries, before[0], (at, key))
            externals = self._external_keys(before[0])
            self._change(at, [(external, key) for external in externals], None, cause)
        if route is not None:
            self._asbr_summaries.setdefault(route[0], {})[at, key] = None
            for external, item in self._externals(route[0]):
                self._via_border(at, key, (external,), item, cause)
        return True

    def externals_changed(
        self, keys: Sequence[LsaKey], item: PrefixReachability | None, cause: Cause
    ) -> None:
        """Process AS-external LSAs of one router that advertise the same prefix, or None."""
        router = keys[0].advertising_router
        # RFC 2328 §16.4 (3): attach them to all paths to their ASBR
        for area in self._asbr_areas.get(router, ()):
            reachable = item if self._floods(area) else None
            self._change((area, router), keys, reachable, cause)
        for at, summary in self._asbr_summaries.get(router, ()):
            self._via_border(at, summary, keys, item, cause)

    def _via_border(
        self,
        at: RouterKey,
        summary: LsaKey,
        keys: Sequence[LsaKey],
        item: PrefixReachability | None,
        cause: Cause,
    ) -> None:
        reachable = None
        if item is not None and self._floods(at[0]):
            asbr, cost = self._borders[at].asbrs[summary]
            reachable = _seen_from(item, asbr, cost)
        self._change(at, [(key, summary) for key in keys], reachable, cause)

    def _floods(self, area: AreaId) -> bool:
        """Whether AS-external-LSAs are flooded into an area (RFC 2328 §3.6)."""
        known = self._instance.areas.get(area)
        return known is not None and not known.settings.stub

    def asbr_routes(self, area: AreaId, router: int) -> tuple[tuple[NodeId, int], ...]:
        """The AS boundary routers of other areas that a border router advertises, with costs."""
        border = self._borders.get((area, router))
        return () if border is None else tuple(sorted(border.asbrs.values()))


def _body(entry: LsaEntry) -> LsaBody | None:
    """The decoded body; None if it cannot be decoded."""
    if entry.body is not None:
        return entry.body
    try:
        return decode_body(entry.lsa)
    except DecodeError:
        return None


def _discard(index: dict[_K, dict[_V, _W]], at: _K, key: _V) -> None:
    """Remove a key from an index of sets, and the set with its last key."""
    del index[at][key]
    if not index[at]:
        del index[at]


def _seen_from(item: PrefixReachability, asbr: NodeId, cost: int) -> PrefixReachability:
    """An external prefix as seen from a border router at distance ``cost`` from its ASBR."""
    # RFC 2328 §16.4 (3), (4): with a forwarding address, X is the distance to that
    if item.forward:
        return replace(item, asbr=asbr)
    # §16.4 (4), (5): type 1: the distance to the ASBR is added; type 2: it is compared second
    if item.path_type is PathType.EXTERNAL_1:
        return replace(item, metric=item.metric + cost, asbr=asbr)
    return replace(item, asbr=asbr, distance=cost)


def _summary(key: LsaKey, body: LsaBody | None) -> PrefixReachability | None:
    """The prefix of a type 3 summary; None: LSInfinity or MaxAge (RFC 2328 §16.2 (1))."""
    if not isinstance(body, SummaryLsa) or body.metric >= LS_INFINITY:
        return None
    length = mask_length(body.network_mask)
    if length is None:
        return None
    # §16.2 (4): the link state id masked with the network mask
    prefix = ipv4_prefix(key.link_state_id, length)
    return PrefixReachability(prefix, body.metric, PathType.INTER_AREA)


def _asbr(key: LsaKey, body: LsaBody | None) -> tuple[NodeId, int] | None:
    """The ASBR of a type 4 summary and its metric; None: LSInfinity or MaxAge (§16.2 (1))."""
    if not isinstance(body, SummaryLsa) or body.metric >= LS_INFINITY:
        return None
    return NodeId(key.link_state_id), body.metric


def _external_prefix(entry: LsaEntry) -> Prefix | None:
    """The prefix of an AS-external LSA (RFC 2328 §A.4.5); None if its mask is none."""
    length = mask_length(int.from_bytes(entry.raw[_NETWORK_MASK], "big"))
    # §16.4 (3): the link state id masked with the network mask
    return None if length is None else ipv4_prefix(entry.key.link_state_id, length)


def _read_external(prefix: Prefix | None, body: LsaBody | None) -> PrefixReachability | None:
    """What an AS-external LSA advertises; None: LSInfinity or MaxAge (RFC 2328 §16.4 (1))."""
    if prefix is None or not isinstance(body, AsExternalLsa) or body.metric >= LS_INFINITY:
        return None
    kind = PathType.EXTERNAL_2 if body.type_2 else PathType.EXTERNAL_1
    return PrefixReachability(
        prefix,
        body.metric,
        kind,
        forward=body.forwarding_address,
        tag=body.external_route_tag,
    )
