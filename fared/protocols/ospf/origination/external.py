"""AS boundary routers: which AS-external LSAs this router originates (RFC 2328 §12.4.4).

``ExternalRoutes`` brings the routes of other sources; the settings select those to redistribute and
their metrics. A network that the router LSA advertises is not redistributed. If a reachable router
with a higher router id originates a functionally equivalent LSA, this router originates none
(§12.4.4.1). With a path capacity comes an extended prefix LSA (RFC 7684 §2) of AS scope, or one in
each area, since FRR 8.4 with ``mpls-te on`` crashes on those of AS scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fared.core.filters import Withheld, denying
from fared.core.ids import NodeId, Prefix, ipv4_prefix, length_mask, mask_length
from fared.core.routes import LocalRoute
from fared.paths.te.redistributed import RedistributedCapacities
from fared.protocols.igp.redistribution import ExternalRouteTable, LocalInterfaces, tag_of
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.interface import Interface, InterfaceState
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.origination.originate import Originator
from fared.protocols.ospf.origination.summary_ids import SummaryIds
from fared.protocols.ospf.packet.bodies import AsExternalLsa
from fared.protocols.ospf.packet.body import (
    LsaBody,
    encode_as_external_lsa,
    opaque_link_state_id,
)
from fared.protocols.ospf.packet.extended_prefix import (
    ExtendedPrefixLsa,
    PrefixFacts,
    RouteType,
    capacity_sub_tlv,
    encode_extended_prefix,
)
from fared.protocols.ospf.packet.lsa import LsaKey, LsType
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.settings import Redistribution

DEFAULT_ROUTE = Prefix(4, 0, 0)
_NONE = None, None
_OF_EXTERNALS = 1 << 23
"""Bit of the opaque ids of extended prefix LSAs: those of summaries do not have it."""
DRAINED_METRIC = 0xFF0000
"""Metric of all externals of a stub router: below LSInfinity, above usual ones."""


class _OspfInterfaces(LocalInterfaces, frozen=True):
    """``networks``: broadcast networks, by ifindex, whose next hops may be forwarding addresses."""

    networks: tuple[tuple[int, Prefix], ...] = ()


class External:
    """Originates and flushes the AS-external LSAs of this router."""

    def __init__(self, instance: Instance, originator: Originator) -> None:
        self._instance = instance
        self._originator = originator
        self.routes = ExternalRouteTable[Redistribution, _OspfInterfaces](
            (DEFAULT_ROUTE,), _OspfInterfaces()
        )
        self._advertised: dict[Prefix, AsExternalLsa] = {}
        self._capacity: dict[Prefix, float] = {}
        """Those that are advertised, bytes/s."""
        self._announced = RedistributedCapacities(
            instance.process.timers,
            lambda: instance.process.now,
            instance.budgets.values,
            carrier=lambda prefix: prefix,
            again=self.routes.examine,
        )
        self._ids = SummaryIds()
        self._claims: dict[Prefix, dict[LsaKey, AsExternalLsa]] = {}
        self._claimed: dict[LsaKey, Prefix] = {}
        self._reached: frozenset[NodeId] = frozenset()

    @property
    def tracks_asbrs(self) -> bool:
        """Whether reachable AS boundary routers matter (``RoutesComputed``, §12.4.4.1)."""
        return bool(self._claims) and bool(self._instance.settings.redistribute)

    # Events

    def everything_changed(self) -> None:
        """Examine all routes again."""
        self.routes.examine_all(self._advertised)
        for prefix in self._capacity:  # there may be other areas, or another scope
            _, number = self._ids.assign(prefix)
            self._request_capacity(number)

    def reached(self, asbrs: Iterable[NodeId]) -> None:
        """Process a changed set of reachable AS boundary routers."""
        before, self._reached = self._reached, frozenset(asbrs)
        different = before ^ self._reached
        self.routes.examine(
            prefix for key, prefix in self._claimed.items() if key.advertising_router in different
        )

    def lsa_changed(self, entry: LsaEntry, body: LsaBody | None) -> None:
        """Process an AS-external LSA of another router; ``body`` None: it was flushed."""
        key = entry.key
        if key.advertising_router == self._instance.router_id:
            return
        old = self._claimed.pop(key, None)
        if old is not None:
            del self._claims[old][key]
            if not self._claims[old]:
                del self._claims[old]
            self.routes.examine((old,))
        # §12.4.4.1: only LSAs with a forwarding address can be functionally equivalent
        if not isinstance(body, AsExternalLsa) or not body.forwarding_address:
            return
        length = mask_length(body.network_mask)
        if length is not None:
            prefix = ipv4_prefix(key.link_state_id, length)
            self._claimed[key] = prefix
            self._claims.setdefault(prefix, {})[key] = body
            self.routes.examine((prefix,))

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """Yield the filters that keep a prefix out of what is redistributed."""
        return self.routes.withheld(prefix, self._instance.settings.redistribute)

    def settle(self) -> None:
        """Originate or flush the LSAs of changed prefixes (§12.4 (9), (10))."""
        if not self._instance.settings.redistribute and not self._advertised:
            self.routes.forget_changed()  # nor are interfaces read; other settings examine all
            return
        for prefix in self.routes.take_changed(self._read_interfaces, self._advertised):
            self._put(prefix, *self._wanted(prefix))

    def _read_interfaces(self) -> _OspfInterfaces:
        running = [
            interface
            for _, interface in sorted(self._instance.interfaces.items())
            if interface.state is not InterfaceState.DOWN
        ]
        networks = [
            (interface.ifindex, network)
            for interface in running
            if interface.broadcast
            and interface.is_active
            and not interface.settings.prefix_suppression  # RFC 6860: others have no route to it
            for network in _advertised(interface)
            if not self._hidden(interface, network)
        ]
        return _OspfInterfaces(
            frozenset(self._instance.interfaces),
            frozenset(prefix for interface in running for prefix in _advertised(interface)),
            tuple(networks),
        )

    def _hidden(self, interface: Interface, network: Prefix) -> bool:
        """Whether a range (§3.5) or filter hides a network from other areas with externals."""
        areas = {each.area_id: each.settings for each in self._instance.areas.values()}
        own = areas.pop(interface.settings.area)
        if any(not item.advertise and item.prefix.covers(network) for item in own.ranges):
            return True
        filters = [own.filter_out, *(each.filter_in for each in areas.values() if not each.stub)]
        return denying(tuple(each for each in filters if each is not None), network) is not None

    # AS-external LSAs

    def _wanted(self, prefix: Prefix) -> tuple[AsExternalLsa | None, float | None]:
        """The AS-external LSA of a prefix (None: none is to exist), and its path capacity."""
        instance = self._instance
        if all(area.settings.stub for area in instance.areas.values()):
            return _NONE  # §3.6: not flooded into stub areas
        chosen = self.routes.choose(prefix, instance.settings.redistribute)
        if chosen is None:
            return _NONE
        source, settings, route = chosen
        lsa = AsExternalLsa(
            network_mask=length_mask(prefix.length),
            type_2=settings.type_2,
            metric=max(settings.metric, DRAINED_METRIC if instance.stub_router else 0),
            forwarding_address=self._forwarding_address(route),
            external_route_tag=tag_of(source, route, settings),
        )
        if self._left_to_others(prefix, lsa):
            return _NONE
        return lsa, None if instance.settings.path_capacity_code is None else route.capacity

    def _forwarding_address(self, route: LocalRoute) -> int:
        """The next hop, if it is on a broadcast network of OSPF (§12.4.4.1); else 0."""
        # 0: packets are forwarded to this router, as it must be with several next hops
        if len(route.hops) != 1:
            return 0
        ((ifindex, gateway),) = route.hops
        direct = any(
            at == ifindex and network.contains(gateway)
            for at, network in self.routes.local_interfaces.networks
        )
        return gateway if direct else 0

    def _left_to_others(self, prefix: Prefix, lsa: AsExternalLsa) -> bool:
        """Whether a reachable router with a higher id originates an equivalent LSA (§12.4.4.1)."""
        if not lsa.forwarding_address:
            return False
        # RFC 2328 §12.4.4.1: same destination, cost and non-zero forwarding address; that of the
        # highest router id is used
        return any(
            key.advertising_router > self._instance.router_id
            and key.advertising_router in self._reached
            and (other.type_2, other.metric, other.forwarding_address)
            == (lsa.type_2, lsa.metric, lsa.forwarding_address)
            for key, other in self._claims.get(prefix, {}).items()
        )

    def _put(self, prefix: Prefix, lsa: AsExternalLsa | None, capacity: float | None) -> None:
        old, former = self._advertised.get(prefix), self._capacity.pop(prefix, None)
        if lsa is None:
            if old is None:
                return
            del self._advertised[prefix]
            self._announced.withdraw(prefix)
            changed, number = self._ids.release(prefix)
        else:
            rules = self._instance.settings.advertise
            capacity = self._announced.advertise(prefix, former, capacity, rules)
            if capacity is not None:
                self._capacity[prefix] = capacity
            if (lsa, capacity) == (old, former):
                return
            self._advertised[prefix] = lsa
            changed, number = self._ids.assign(prefix)
        own = self._instance.router_id
        for link_state_id in changed if lsa != old else ():
            key = LsaKey(LsType.AS_EXTERNAL, link_state_id, own)
            self._originator.request_external(key, partial(self._body, link_state_id))
        if self._capacity.get(prefix) != former:
            self._request_capacity(number)

    def _body(self, link_state_id: int) -> bytes | None:
        prefix = self._ids.prefix_of_id(link_state_id)
        lsa = None if prefix is None else self._advertised.get(prefix)
        return None if lsa is None else encode_as_external_lsa(lsa)

    def _request_capacity(self, number: int) -> None:
        """Reconsider the extended prefix LSAs of a prefix; other settings mark all that exist."""
        instance = self._instance
        opaque = opaque_link_state_id(OpaqueType.EXTENDED_PREFIX, number | _OF_EXTERNALS)
        if instance.settings.external_capacity_scope == "as":
            key = LsaKey(LsType.OPAQUE_AS, opaque, instance.router_id)
            self._originator.request_external(key, partial(self._capacity_body, number, None))
            return
        key = LsaKey(LsType.OPAQUE_AREA, opaque, instance.router_id)
        for area in instance.areas.values():
            body = partial(self._capacity_body, number, area)
            self._originator.request(area, key, body)

    def _capacity_body(self, number: int, area: Area | None) -> bytes | None:
        """The path capacity of a prefix, for one area or (None) for the AS; None: no LSA."""
        settings, prefix = self._instance.settings, self._ids.prefix_of_number(number)
        capacity = None if prefix is None else self._capacity.get(prefix)
        code_point = settings.path_capacity_code
        if prefix is None or capacity is None or code_point is None:
            return None
        if (area is None) is not (settings.external_capacity_scope == "as"):
            return None
        if area is not None and area.settings.stub:
            return None
        sub_tlvs = (capacity_sub_tlv(capacity, code_point),)
        facts = PrefixFacts(RouteType.AS_EXTERNAL, prefix, 0, sub_tlvs)
        return encode_extended_prefix(ExtendedPrefixLsa((facts,)))


def _advertised(interface: Interface) -> Iterable[Prefix]:
    """The networks of an interface in the router LSA (§12.4.1)."""
    return (
        ipv4_prefix(a.address, 32 if interface.loopback else a.prefix_length)
        for a in interface.addresses
    )
