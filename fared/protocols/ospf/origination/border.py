"""Area border routers: the summaries originated into each area (RFC 2328 §12.4.3, RFC 3509).

``RoutesComputed`` brings the prefixes whose routes changed, and only their summaries are
reconsidered. A path capacity is advertised again when it changes by the threshold
(``te.advertise``). While routers repair their routes, what can wait does: the networks of links
have no hosts, and when a link fails, every border router of its area has a change of one; those
that keep their shortest paths have a part of the capacity less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from fared.core.filters import Filter, Withheld, denying
from fared.core.ids import BACKBONE, AreaId, NodeId, Prefix, dotted
from fared.paths.ted.events import AdvertisedRoute, RoutesComputed
from fared.paths.ted.model import HIGHEST_OSPF_METRIC, PathType
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.interface import InterfaceState
from fared.protocols.ospf.origination.originate import Originator
from fared.protocols.ospf.origination.summaries import AreaSummaries, Summary
from fared.protocols.ospf.packet.bodies import V_BIT, RouterLsa
from fared.protocols.ospf.packet.body import LsaBody, opaque_link_state_id
from fared.protocols.ospf.packet.lsa import LS_INFINITY, LsaKey, LsType
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.settings import RangeSettings

if TYPE_CHECKING:
    from fared.protocols.ospf.origination.summaries import AdvertisedBier

DEFAULT_ROUTE = Prefix(4, 0, 0)
LINK_PREFIX_LENGTH = 31
"""The length of a prefix with the two ends of a link only (RFC 3021)."""
LINK_PREFIX_DELAY = 0.2
"""Seconds for which the change of such a prefix is deferred."""
CAPACITY_DELAY = 0.05
"""Seconds for which a capacity is held that changes alone, and is not halved."""


RangeKey = tuple[AreaId, RangeSettings]


class Border:
    """Originates and flushes the summaries of this router, if it is an area border router."""

    def __init__(self, instance: Instance, originator: Originator) -> None:
        self._instance = instance
        self._process = instance.process
        self._originator = originator
        self._routes: dict[Prefix, AdvertisedRoute] = {}
        self._asbrs: dict[NodeId, AdvertisedRoute] = {}
        self._components: dict[RangeKey, dict[Prefix, AdvertisedRoute]] = {}
        self._advertised: dict[AreaId, AreaSummaries] = {}
        self._connected = False
        self._attached: frozenset[AreaId] = frozenset()
        self._deferred: dict[Prefix, None] = {}
        self._virtual_ends: dict[AreaId, frozenset[int]] = {}
        """The ends of virtual links through each area, by bit V of their router LSAs."""
        self.bier_of: Callable[[Iterable[int], Prefix], AdvertisedBier | None] | None = None
        """The BIER sub-TLVs of a prefix in some areas, where BIER runs."""
        self.stale = False
        """Whether interfaces, neighbors or settings changed since the last ``settle``."""

    # Events

    def routes_computed(self, event: RoutesComputed) -> None:
        """Process changes of the routing table (§12.4 (5), (6); §16.7)."""
        ranges: dict[RangeKey, None] = {}
        for prefix, route in event.changes.items():
            ranges.update(dict.fromkeys(self._record(prefix, route)))
        for key in ranges:
            self._advertise_range(key)
        for prefix in event.changes:
            if prefix.length == LINK_PREFIX_LENGTH and self._is_advertised(prefix):
                self._advertise_later(prefix)
            else:
                self._advertise(prefix)
        gone = self._asbrs.keys() - event.asbrs.keys()
        self._asbrs = dict(event.asbrs)
        for node in sorted(gone | self._asbrs.keys()):
            self._advertise_asbr(node)

    def router_changed(self, area: AreaId, router: int, body: LsaBody | None) -> None:
        """Process a router LSA; ``body`` None: it was flushed. Bit V makes a transit area."""
        before = self._virtual_ends.get(area, frozenset())
        is_end = isinstance(body, RouterLsa) and bool(body.flags & V_BIT)
        if is_end == (router in before):
            return
        self._virtual_ends[area] = before ^ {router}
        if bool(before) != bool(self._virtual_ends[area]):
            self.everything_changed()

    def settle(self) -> None:
        """Determine whether this router is an area border router, and act on a change."""
        if not self.stale:
            return
        self.stale = False
        instance = self._instance
        # RFC 3509: actively attached areas have an interface that is not Down
        attached = frozenset(
            interface.settings.area
            for interface in instance.interfaces.values()
            if interface.state is not InterfaceState.DOWN
        )
        # RFC 3509: an active backbone connection needs a fully adjacent neighbor in area 0
        connected = any(
            neighbor.adjacent
            for interface in instance.area_interfaces(BACKBONE)
            for neighbor in interface.neighbors.values()
        )
        # RFC 3509: attached to several areas, one of them the backbone
        border = len(attached) > 1 and BACKBONE in attached
        if border != instance.border:
            instance.border = border
            for area in instance.areas:
                self._originator.router_changed(area)
        if (attached, connected) != (self._attached, self._connected):
            # §12.4 (7): newly attached to an area
            self._attached, self._connected = attached, connected
            self.everything_changed()

    def everything_changed(self) -> None:
        """Reconsider all areas, ranges and routes."""
        known, self._routes, self._components = self._routes, {}, {}
        self._deferred.clear()
        for prefix, route in known.items():
            self._record(prefix, route)
        ranges = [
            (area.area_id, item)
            for area in self._instance.areas.values()
            for item in area.settings.ranges
        ]
        for key in ranges:
            self._advertise_range(key)
        advertised = {prefix for area in self._advertised.values() for prefix in area.prefixes}
        for prefix in [*self._routes, *sorted(advertised - self._routes.keys()), DEFAULT_ROUTE]:
            self._advertise(prefix)
        for node in sorted(self._asbrs):
            self._advertise_asbr(node)

    def _record(self, prefix: Prefix, route: AdvertisedRoute | None) -> Iterable[RangeKey]:
        """Store a route under its range; return the ranges whose components changed."""
        old = self._routes.pop(prefix, None)
        if route is not None:
            self._routes[prefix] = route
        touched: dict[RangeKey, None] = {}
        before = self._range_of(prefix, old)
        if before is not None:
            self._components.get(before, {}).pop(prefix, None)
            touched[before] = None
        after = self._range_of(prefix, route)
        if after is not None and route is not None:
            self._components.setdefault(after, {})[prefix] = route
            touched[after] = None
        return touched

    def _range_of(self, prefix: Prefix, route: AdvertisedRoute | None) -> RangeKey | None:
        """The longest range that contains an intra-area route (§3.5, §12.4.3)."""
        if route is None or route.path_type is not PathType.INTRA_AREA:
            return None
        best: RangeKey | None = None
        for area_id in map(AreaId, route.areas):
            area = self._instance.areas.get(area_id)
            for item in () if area is None else area.settings.ranges:
                longer = best is None or item.prefix.length > best[1].prefix.length
                if longer and item.prefix.covers(prefix):
                    best = area_id, item
        return best

    def bier_changed(self, prefixes: Iterable[Prefix]) -> None:
        """Copy changed BIER sub-TLVs of prefixes that are advertised into areas."""
        for prefix in prefixes:
            if self._is_advertised(prefix):
                self._advertise(prefix)

    # Summaries of each area

    def _advertise(self, prefix: Prefix) -> None:
        """Advertise a prefix into each area, or withdraw it."""
        route = self._routes.get(prefix)
        if self._active_range(prefix) is not None:
            return  # §12.4.3: the range is advertised in its place
        for area in self._instance.areas.values():
            self._set_summary(area, prefix, self._summary_for(area, prefix, route))

    def _is_advertised(self, prefix: Prefix) -> bool:
        return any(prefix in advertised.prefixes for advertised in self._advertised.values())

    def _advertise_later(self, prefix: Prefix) -> None:
        """Advertise the change of a prefix after ``LINK_PREFIX_DELAY``."""
        if not self._deferred:
            self._process.timers.arm(
                self._process.now + LINK_PREFIX_DELAY, self._advertise_deferred
            )
        self._deferred[prefix] = None

    def _advertise_deferred(self) -> None:
        prefixes, self._deferred = self._deferred, {}
        for prefix in prefixes:
            self._advertise(prefix)

    def _summary_for(
        self, area: Area, prefix: Prefix, route: AdvertisedRoute | None
    ) -> Summary | None:
        """The summary of a route to advertise into ``area`` (§12.4.3); None: none."""
        settings = area.settings
        # RFC 2328 §12.4.3.1: a default summary into stub areas; here only with an active backbone
        # connection, since the traffic that it attracts would be dropped without one.
        if settings.stub and prefix == DEFAULT_ROUTE:
            own = self._instance.border and self._connected and area.area_id in self._attached
            return Summary(self._configured(settings.default_cost), None) if own else None
        if route is None or not self._may_advertise(area, route):
            return None
        # §12.4.3.1: other summaries are optional; §12.4.3: not the components of a range
        if settings.stub and not settings.summary:
            return None
        item = self._range_of(prefix, route)
        if item is not None and not self._ignores(area, item):
            return None
        if self._denying(area, prefix, route) is not None:
            return None
        bier = None if self.bier_of is None else self.bier_of(route.areas, prefix)
        return Summary(route.metric, route.capacity, bier)

    def _denying(self, area: Area, prefix: Prefix, route: AdvertisedRoute) -> Filter | None:
        """The filter that keeps a route out of an area; None: it is permitted.

        As in FRR: the area's own applies to all routes, that of the area of a route to intra-area
        ones. A prefix of several areas, at equal cost, must be permitted out of each.
        """
        filters = [area.settings.filter_in]
        if route.path_type is PathType.INTRA_AREA:
            homes = (self._instance.areas.get(AreaId(each)) for each in route.areas)
            filters += [home.settings.filter_out for home in homes if home is not None]
        return denying(tuple(each for each in filters if each is not None), prefix)

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """Yield the filters that keep a prefix out of areas that it would be advertised into."""
        route = self._routes.get(prefix)
        for area in self._instance.areas.values():
            stub = area.settings.stub and (not area.settings.summary or prefix == DEFAULT_ROUTE)
            if route is not None and not stub and self._may_advertise(area, route):
                denied = self._denying(area, prefix, route)
                if denied is not None:
                    yield Withheld(f"summaries of area {dotted(area.area_id)}", denied.told(prefix))

    def _may_advertise(self, area: Area, route: AdvertisedRoute) -> bool:
        """Whether a route may be advertised into an area (§12.4.3).

        Inter-area routes are advertised only if they were learned from the backbone. Since border
        routers examine backbone summaries only (§16.2), routing between areas is loop-free.
        """
        if not self._instance.border or area.area_id not in self._attached:
            return False
        # §12.4.3: not into the area of its paths, nor with LSInfinity or more
        if area.area_id in route.areas or route.metric >= LS_INFINITY:
            return False
        # §12.4.3: intra-area routes into all other areas; inter-area routes into all but the
        # backbone; external routes never
        if route.path_type is PathType.INTRA_AREA:
            return True
        return route.path_type is PathType.INTER_AREA and BACKBONE in route.areas

    def _ignores(self, area: Area, key: RangeKey) -> bool:
        """Whether a range is ignored in an area: those of the backbone in transit areas (§12.4.3).

        Inside, packets of virtual links must find the same border router as at their ends.
        """
        return key[0] == BACKBONE and bool(self._virtual_ends.get(area.area_id))

    def _active_range(self, prefix: Prefix) -> RangeKey | None:
        """The active range that equals this prefix: it has components (§3.5)."""
        for key, components in self._components.items():
            if components and key[1].prefix == prefix:
                return key
        return None

    def _advertise_range(self, key: RangeKey) -> None:
        """Advertise a range: highest cost (§12.4.3) and lowest capacity of its components."""
        home, item = key
        components = self._components.get(key, {})
        # §12.4.3: one summary for a range with status Advertise; with DoNotAdvertise, none
        for area in self._instance.areas.values():
            summary = None
            if self._ignores(area, key):
                summary = self._summary_for(area, item.prefix, self._routes.get(item.prefix))
            elif components and item.advertise and area.area_id != home:
                summary = self._range_summary(area, item, components)
            self._set_summary(area, item.prefix, summary)
        if not components:
            self._advertise(item.prefix)

    def _range_summary(
        self, area: Area, item: RangeSettings, components: Mapping[Prefix, AdvertisedRoute]
    ) -> Summary | None:
        """The summary of a range, of the components that filters permit, as in FRR."""
        eligible = [
            route
            for prefix, route in components.items()
            if self._may_advertise(area, route) and self._denying(area, prefix, route) is None
        ]
        if not eligible or (area.settings.stub and not area.settings.summary):
            return None
        capacities = [route.capacity for route in eligible if route.capacity is not None]
        highest = max(route.metric for route in eligible)
        cost = highest if item.cost is None else self._configured(item.cost)
        return Summary(cost, min(capacities, default=None))

    def _configured(self, cost: int) -> int:
        """A configured cost as it is advertised: a stub router adds that of its links.

        The costs of other summaries contain them. RFC 6987 leaves summaries open; LSInfinity would
        withdraw them, and with them the last resort.
        """
        more = HIGHEST_OSPF_METRIC if self._instance.stub_router else 0
        return min(cost + more, LS_INFINITY - 1)

    def _advertise_asbr(self, node: NodeId) -> None:
        """Advertise an AS boundary router: a type 4 summary, not into stub areas (§12.4.3)."""
        route = self._asbrs.get(node)
        for area in self._instance.areas.values():
            advertised = self._advertised.setdefault(area.area_id, AreaSummaries())
            metric = None
            if route is not None and not area.settings.stub and self._may_advertise(area, route):
                metric = route.metric
            if advertised.asbrs.get(node) == metric:
                continue
            if metric is None:
                del advertised.asbrs[node]
            else:
                advertised.asbrs[node] = metric
            key = LsaKey(LsType.SUMMARY_ASBR, node, self._instance.router_id)
            self._originator.request(area, key, partial(advertised.asbr_body, node))

    def _set_summary(self, area: Area, prefix: Prefix, summary: Summary | None) -> None:
        """Advertise a changed summary of a prefix into an area, or withdraw it (None)."""
        advertised = self._advertised.setdefault(area.area_id, AreaSummaries())
        old = advertised.prefixes.get(prefix)
        if summary is not None and old is not None:
            capacity = advertised.capacities.advertise(
                prefix, old.capacity, summary.capacity, self._instance.settings.advertise
            )
            summary = msgspec.structs.replace(summary, capacity=capacity)
        if summary == old:
            return
        if summary is None:
            del advertised.prefixes[prefix]
            advertised.capacities.withdraw(prefix)
            changed, number = advertised.ids.release(prefix)
        else:
            advertised.prefixes[prefix] = summary
            changed, number = advertised.ids.assign(prefix)
        own = self._instance.router_id
        if summary is not None and old is not None and summary.metric == old.metric:
            changed = []
        for link_state_id in changed:
            key = LsaKey(LsType.SUMMARY_NETWORK, link_state_id, own)
            body = partial(advertised.summary_body, link_state_id)
            self._originator.request(area, key, body)
        opaque = opaque_link_state_id(OpaqueType.EXTENDED_PREFIX, number)
        if (old and (old.capacity, old.bier)) != (summary and (summary.capacity, summary.bier)):
            key = LsaKey(LsType.OPAQUE_AREA, opaque, own)
            body = partial(advertised.attributes_body, number, self._code_point)
            hold = self._hold(prefix, old, summary)
            self._originator.request(area, key, body, hold)

    def _code_point(self) -> int | None:
        return self._instance.settings.path_capacity_code

    def _hold(self, prefix: Prefix, old: Summary | None, new: Summary | None) -> float:
        """Seconds for which the attributes of a prefix are held: none but for a minor change.

        The first border router holds it; those that learn it from the backbone do not.
        """
        if old is None or new is None or (old.metric, old.bier) != (new.metric, new.bier):
            return 0.0
        if old.capacity is None or new.capacity is None or new.capacity < old.capacity / 2:
            return 0.0
        route = self._routes.get(prefix)
        passed_on = route is not None and route.path_type is PathType.INTER_AREA
        return 0.0 if passed_on else CAPACITY_DELAY
