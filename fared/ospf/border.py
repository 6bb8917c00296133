"""Area border routers: what is announced into which area (RFC 2328 §12.4.3, RFC 3509).

The routing table comes in with ``RoutesComputed``, prefix by prefix; what each area is to be
told follows from it. Only what changed is looked at again, and a path capacity that moved by
less than the announce threshold stays as it was announced. What is new of the networks of links,
where no hosts are, is told last: when a link fails every border router of its area has such
news, while the whole fabric is busy repairing its routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from fared.core.ids import BACKBONE, AreaId, NodeId, Prefix, length_mask
from fared.ospf.events import RouteFacts, RoutesComputed
from fared.ospf.instance import Area, Instance
from fared.ospf.interface import InterfaceState
from fared.ospf.neighbor import NeighborState
from fared.ospf.originate import Originator
from fared.ospf.packet.bodies import SummaryLsa
from fared.ospf.packet.body import encode_summary_lsa, opaque_link_state_id
from fared.ospf.packet.extended_prefix import (
    ExtendedPrefixLsa,
    PrefixFacts,
    RouteType,
    capacity_sub_tlv,
    encode_extended_prefix,
)
from fared.ospf.packet.lsa import LS_INFINITY, LsaKey, LsType
from fared.ospf.packet.opaque import OpaqueType
from fared.ospf.settings import RangeSettings
from fared.ospf.summary_ids import SummaryIds
from fared.ted.model import PathType

DEFAULT_ROUTE = Prefix(4, 0, 0)
LINK_LENGTH = 31
"""Of prefixes that hold the two ends of a link and nothing else (RFC 3021)."""
LINKS_LAST = 0.2
"""Seconds by which news of such a prefix comes after other news."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What an area is told of a prefix: metric, and capacity in bytes/s (None: nothing told)."""

    metric: int
    capacity: float | None


@dataclass(slots=True)
class _Told:
    """What one area is told at present."""

    prefixes: dict[Prefix, Summary] = field(default_factory=dict)
    asbrs: dict[NodeId, int] = field(default_factory=dict)
    ids: SummaryIds = field(default_factory=SummaryIds)


RangeKey = tuple[AreaId, RangeSettings]


class Border:
    """Decides what this router, being in several areas, announces from one into the others."""

    def __init__(self, instance: Instance, originator: Originator) -> None:
        self._instance = instance
        self._originator = originator
        self._routes: dict[Prefix, RouteFacts] = {}
        self._asbrs: dict[NodeId, RouteFacts] = {}
        self._components: dict[RangeKey, dict[Prefix, RouteFacts]] = {}
        self._told: dict[AreaId, _Told] = {}
        self._connected = False
        self._attached: frozenset[AreaId] = frozenset()
        self._last: dict[Prefix, None] = {}
        self.stale = False
        """Whether interfaces, neighbors or settings changed since the last ``settle``."""

    # What changed

    def routes_computed(self, event: RoutesComputed) -> None:
        """Take the routing table's changes."""
        ranges: dict[RangeKey, None] = {}
        for prefix, facts in event.changes.items():
            ranges.update(dict.fromkeys(self._note(prefix, facts)))
        for key in ranges:
            self._tell_range(key)
        for prefix in event.changes:
            if prefix.length == LINK_LENGTH and self._is_told(prefix):
                self._tell_last(prefix)
            else:
                self._tell(prefix)
        gone = self._asbrs.keys() - event.asbrs.keys()
        self._asbrs = dict(event.asbrs)
        for node in sorted(gone | self._asbrs.keys()):
            self._tell_asbr(node)

    def settle(self) -> None:
        """Find out whether this router is a border router, and act if that is another answer."""
        if not self.stale:
            return
        self.stale = False
        instance = self._instance
        attached = frozenset(
            interface.settings.area
            for interface in instance.interfaces.values()
            if interface.state is not InterfaceState.DOWN
        )
        connected = any(
            neighbor.state is NeighborState.FULL
            for interface in instance.area_interfaces(BACKBONE)
            for neighbor in interface.neighbors.values()
        )
        border = len(attached) > 1 and BACKBONE in attached
        if border != instance.border:
            instance.border = border
            for area in instance.areas:
                self._originator.router_changed(area)
        if (attached, connected) != (self._attached, self._connected):
            self._attached, self._connected = attached, connected
            self.everything_changed()

    def everything_changed(self) -> None:
        """Look at all areas, ranges and routes again."""
        known, self._routes, self._components = self._routes, {}, {}
        self._last.clear()
        for prefix, facts in known.items():
            self._note(prefix, facts)
        ranges = [
            (area.area_id, item)
            for area in self._instance.areas.values()
            for item in area.settings.ranges
        ]
        for key in ranges:
            self._tell_range(key)
        told = {prefix for area in self._told.values() for prefix in area.prefixes}
        for prefix in [*self._routes, *sorted(told - self._routes.keys()), DEFAULT_ROUTE]:
            self._tell(prefix)
        for node in sorted(self._asbrs):
            self._tell_asbr(node)

    def _note(self, prefix: Prefix, facts: RouteFacts | None) -> Iterable[RangeKey]:
        """Keep a route and the ranges it is in; return the ranges it touches."""
        old = self._routes.pop(prefix, None)
        if facts is not None:
            self._routes[prefix] = facts
        touched: dict[RangeKey, None] = {}
        before = self._range_of(prefix, old)
        if before is not None:
            self._components.get(before, {}).pop(prefix, None)
            touched[before] = None
        after = self._range_of(prefix, facts)
        if after is not None and facts is not None:
            self._components.setdefault(after, {})[prefix] = facts
            touched[after] = None
        return touched

    def _range_of(self, prefix: Prefix, facts: RouteFacts | None) -> RangeKey | None:
        """The range an intra-area route is a component of, the longest there is."""
        if facts is None or facts.path_type is not PathType.INTRA_AREA:
            return None
        best: RangeKey | None = None
        for area_id in map(AreaId, facts.areas):
            area = self._instance.areas.get(area_id)
            for item in () if area is None else area.settings.ranges:
                longer = best is None or item.prefix.length > best[1].prefix.length
                if longer and item.prefix.covers(prefix):
                    best = area_id, item
        return best

    # What each area is told

    def _tell(self, prefix: Prefix) -> None:
        """Announce a prefix into each area, or take it back."""
        facts = self._routes.get(prefix)
        if self._active_range(prefix) is not None:
            return  # announced as a range
        for area in self._instance.areas.values():
            self._put(area, prefix, self._wanted(area, prefix, facts))

    def _is_told(self, prefix: Prefix) -> bool:
        return any(prefix in told.prefixes for told in self._told.values())

    def _tell_last(self, prefix: Prefix) -> None:
        """Tell of a prefix once other news is through."""
        if not self._last:
            self._instance.timers.arm(self._instance.now + LINKS_LAST, self._tell_rest)
        self._last[prefix] = None

    def _tell_rest(self) -> None:
        prefixes, self._last = self._last, {}
        for prefix in prefixes:
            self._tell(prefix)

    def _wanted(self, area: Area, prefix: Prefix, facts: RouteFacts | None) -> Summary | None:
        """RFC 2328 §12.4.3: what ``area`` is told of a route."""
        settings = area.settings
        if settings.stub and prefix == DEFAULT_ROUTE:
            # Without the backbone this router is no better a way out than any other.
            own = self._instance.border and self._connected and area.area_id in self._attached
            return Summary(settings.default_cost, None) if own else None
        if facts is None or not self._may_tell(area, facts):
            return None
        if settings.stub and not settings.summary:
            return None
        if facts.path_type is PathType.INTRA_AREA and self._range_of(prefix, facts) is not None:
            return None
        return Summary(facts.metric, facts.capacity)

    def _may_tell(self, area: Area, facts: RouteFacts) -> bool:
        """Whether a route is of a kind that this area hears of at all.

        An inter-area route is passed on only if it came out of the backbone: together with
        border routers that themselves believe nothing but the backbone (§16.2) this is what
        keeps routing between areas free of loops.
        """
        if not self._instance.border or area.area_id not in self._attached:
            return False
        if area.area_id in facts.areas or facts.metric >= LS_INFINITY:
            return False
        if facts.path_type is PathType.INTRA_AREA:
            return True
        return facts.path_type is PathType.INTER_AREA and facts.areas == (BACKBONE,)

    def _active_range(self, prefix: Prefix) -> RangeKey | None:
        """The configured range that is exactly this prefix, if it has components."""
        for key, components in self._components.items():
            if components and key[1].prefix == prefix:
                return key
        return None

    def _tell_range(self, key: RangeKey) -> None:
        """Announce a range: the worst of its components, as its cost already is (§12.4.3)."""
        home, item = key
        components = list(self._components.get(key, {}).values())
        for area in self._instance.areas.values():
            summary = None
            if components and item.advertise and area.area_id != home:
                summary = self._range_summary(area, item, components)
            self._put(area, item.prefix, summary)
        if not components:
            self._tell(item.prefix)

    def _range_summary(
        self, area: Area, item: RangeSettings, components: list[RouteFacts]
    ) -> Summary | None:
        shown = [facts for facts in components if self._may_tell(area, facts)]
        if not shown or (area.settings.stub and not area.settings.summary):
            return None
        capacities = [facts.capacity for facts in shown if facts.capacity is not None]
        cost = max(facts.metric for facts in shown) if item.cost is None else item.cost
        return Summary(cost, min(capacities, default=None))

    def _tell_asbr(self, node: NodeId) -> None:
        """Type 4 summaries (§12.4.3): where the AS boundary routers of other areas are."""
        facts = self._asbrs.get(node)
        for area in self._instance.areas.values():
            told = self._told.setdefault(area.area_id, _Told())
            metric = None
            if facts is not None and not area.settings.stub and self._may_tell(area, facts):
                metric = facts.metric
            if told.asbrs.get(node) == metric:
                continue
            if metric is None:
                del told.asbrs[node]
            else:
                told.asbrs[node] = metric
            key = LsaKey(LsType.SUMMARY_ASBR, node, self._instance.router_id)
            self._originator.offer(area, key, partial(self._asbr_body, area.area_id, node))

    def _put(self, area: Area, prefix: Prefix, summary: Summary | None) -> None:
        """Tell an area something else of a prefix than before, or nothing any more."""
        told = self._told.setdefault(area.area_id, _Told())
        old = told.prefixes.get(prefix)
        if summary is not None and old is not None:
            summary = Summary(summary.metric, self._damped(old.capacity, summary.capacity))
        if summary == old:
            return
        if summary is None:
            del told.prefixes[prefix]
            changed, number = told.ids.release(prefix)
        else:
            told.prefixes[prefix] = summary
            changed, number = told.ids.assign(prefix)
        own = self._instance.router_id
        for link_state_id in changed:
            key = LsaKey(LsType.SUMMARY_NETWORK, link_state_id, own)
            self._offer(area, key, self._summary_body, link_state_id)
        opaque = opaque_link_state_id(OpaqueType.EXTENDED_PREFIX, number)
        if (old and old.capacity) != (summary and summary.capacity):
            key = LsaKey(LsType.OPAQUE_AREA, opaque, own)
            self._offer(area, key, self._capacity_body, number)

    def _offer(
        self, area: Area, key: LsaKey, build: Callable[[AreaId, int], bytes | None], number: int
    ) -> None:
        self._originator.offer(area, key, partial(build, area.area_id, number))

    def _damped(self, announced: float | None, current: float | None) -> float | None:
        """Stay with what was announced unless the change exceeds the threshold."""
        if announced is None or current is None:
            return current
        threshold = self._instance.settings.announce.threshold
        return announced if abs(current - announced) <= threshold * announced else current

    # The bodies of the LSAs

    def _summary_body(self, area: AreaId, link_state_id: int) -> bytes | None:
        told = self._told[area]
        prefix = told.ids.prefix_of_id(link_state_id)
        summary = None if prefix is None else told.prefixes.get(prefix)
        if prefix is None or summary is None:
            return None
        return encode_summary_lsa(SummaryLsa(length_mask(prefix.length), summary.metric))

    def _asbr_body(self, area: AreaId, node: NodeId) -> bytes | None:
        metric = self._told[area].asbrs.get(node)
        return None if metric is None else encode_summary_lsa(SummaryLsa(0, metric))

    def _capacity_body(self, area: AreaId, number: int) -> bytes | None:
        code_point = self._instance.settings.path_capacity_code
        told = self._told[area]
        prefix = told.ids.prefix_of_number(number)
        summary = None if prefix is None else told.prefixes.get(prefix)
        if prefix is None or summary is None or summary.capacity is None or code_point is None:
            return None
        sub_tlv = capacity_sub_tlv(summary.capacity, code_point)
        facts = PrefixFacts(RouteType.INTER_AREA, prefix, sub_tlvs=(sub_tlv,))
        return encode_extended_prefix(ExtendedPrefixLsa((facts,)))
