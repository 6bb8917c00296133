"""AS boundary routers: which AS-external LSAs this router originates (RFC 2328 §12.4.4).

Routes of other origin come in with ``ExternalRoutes``; settings say which kinds are announced,
and how. What is a network of ours inside the AS anyway is not announced a second time. An LSA
that another router originates in just the same way, to the same forwarding address, is left to
whoever has the higher router id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from fared.core.ids import (
    FAMILY_IPV4,
    NodeId,
    Prefix,
    ipv4_prefix,
    length_mask,
    mask_length,
)
from fared.core.routes import LocalRoute, RouteKey, RouteSource, announceable
from fared.ospf.events import ExternalRoutes
from fared.ospf.instance import Instance
from fared.ospf.interface import Interface, InterfaceState
from fared.ospf.lsdb import LsaEntry
from fared.ospf.originate import Originator
from fared.ospf.packet.bodies import AsExternalLsa
from fared.ospf.packet.body import LsaBody, encode_as_external_lsa
from fared.ospf.packet.lsa import LsaKey, LsType
from fared.ospf.settings import Redistribution
from fared.ospf.summary_ids import SummaryIds

DEFAULT_ROUTE = Prefix(4, 0, 0)
DRAINED_METRIC = 0xFF0000
"""Metric of all externals of a stub router: below LSInfinity, above every other."""


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What the interfaces decide: on which OSPF runs, their prefixes, the broadcast networks."""

    ifindexes: frozenset[int]
    prefixes: frozenset[Prefix]
    networks: tuple[tuple[int, Prefix], ...]


class External:
    """Decides what this router, being an AS boundary router, announces of other routes."""

    def __init__(self, instance: Instance, originator: Originator) -> None:
        self._instance = instance
        self._originator = originator
        self._routes: dict[RouteKey, LocalRoute] = {}
        self._told: dict[Prefix, AsExternalLsa] = {}
        self._ids = SummaryIds()
        self._claims: dict[Prefix, dict[LsaKey, AsExternalLsa]] = {}
        self._claimed: dict[LsaKey, Prefix] = {}
        self._reached: frozenset[NodeId] = frozenset()
        self._surroundings = _Surroundings(frozenset(), frozenset(), ())
        self._dirty: dict[Prefix, None] = {DEFAULT_ROUTE: None}
        self.stale = False
        """Whether interfaces changed since the last ``settle``."""

    @property
    def known(self) -> ExternalRoutes:
        """All routes that came in."""
        return ExternalRoutes(dict(self._routes))

    @property
    def minds_others(self) -> bool:
        """Whether it matters which AS boundary routers are reached (``RoutesComputed``)."""
        return bool(self._claims) and bool(self._instance.settings.redistribute)

    # What changed

    def routes_changed(self, event: ExternalRoutes) -> None:
        """Take the changes of routes that may be redistributed."""
        for key, route in event.changes.items():
            if key[1].family != FAMILY_IPV4:
                continue
            if route is None:
                self._routes.pop(key, None)
            else:
                self._routes[key] = route
            self._dirty[key[1]] = None

    def everything_changed(self) -> None:
        """Look at all routes again."""
        self._dirty.update((prefix, None) for _, prefix in self._routes)
        self._dirty.update(dict.fromkeys(self._told))
        self._dirty[DEFAULT_ROUTE] = None

    def reached(self, asbrs: Iterable[NodeId]) -> None:
        """Take the AS boundary routers that are reached now."""
        before, self._reached = self._reached, frozenset(asbrs)
        different = before ^ self._reached
        self._dirty.update(
            (prefix, None)
            for key, prefix in self._claimed.items()
            if key.advertising_router in different
        )

    def lsa_changed(self, entry: LsaEntry, body: LsaBody | None) -> None:
        """Take note of an AS-external LSA of another router, ``body`` None if it is gone."""
        key = entry.key
        if key.advertising_router == self._instance.router_id:
            return
        old = self._claimed.pop(key, None)
        if old is not None:
            del self._claims[old][key]
            if not self._claims[old]:
                del self._claims[old]
            self._dirty[old] = None
        if not isinstance(body, AsExternalLsa) or not body.forwarding_address:
            return
        length = mask_length(body.network_mask)
        if length is not None:
            prefix = ipv4_prefix(key.link_state_id, length)
            self._claimed[key] = prefix
            self._claims.setdefault(prefix, {})[key] = body
            self._dirty[prefix] = None

    def settle(self) -> None:
        """Originate, change or take back what reads differently now."""
        if self.stale:
            self.stale = False
            found = self._look_around()
            if found != self._surroundings:
                self._surroundings = found
                self.everything_changed()
        dirty, self._dirty = self._dirty, {}
        for prefix in sorted(dirty):
            self._put(prefix, self._wanted(prefix))

    def _look_around(self) -> _Surroundings:
        running = [
            interface
            for _, interface in sorted(self._instance.interfaces.items())
            if interface.state is not InterfaceState.DOWN
        ]
        networks = [
            (interface.ifindex, ipv4_prefix(address.address, address.prefix_length))
            for interface in running
            if interface.broadcast and interface.speaks
            for address in interface.addresses
        ]
        return _Surroundings(
            frozenset(self._instance.interfaces),
            frozenset(prefix for interface in running for prefix in _announced(interface)),
            tuple(networks),
        )

    # What is announced

    def _wanted(self, prefix: Prefix) -> AsExternalLsa | None:
        """The AS-external LSA of a prefix; None if there should be none."""
        instance = self._instance
        if all(area.settings.stub for area in instance.areas.values()):
            return None  # §3.6: there is nobody to tell
        chosen = self._choose(prefix)
        if chosen is None or prefix in self._surroundings.prefixes:
            return None
        settings, route = chosen
        lsa = AsExternalLsa(
            network_mask=length_mask(prefix.length),
            type_2=settings.type_2,
            metric=DRAINED_METRIC if instance.settings.stub_router else settings.metric,
            forwarding_address=self._forwarding_address(route),
            external_route_tag=settings.tag,
        )
        return None if self._left_to_others(prefix, lsa) else lsa

    def _choose(self, prefix: Prefix) -> tuple[Redistribution, LocalRoute] | None:
        """The route to announce, of those to the prefix, and how."""
        wanted = self._instance.settings.redistribute
        if prefix == DEFAULT_ROUTE:
            route = self._routes.get((RouteSource.STATIC, prefix))
            if route is None and wanted.default_always:
                route = LocalRoute()
            return None if wanted.default is None or route is None else (wanted.default, route)
        for source in RouteSource:
            settings = wanted.of(source)
            route = self._routes.get((source, prefix))
            if settings is None or route is None or not announceable(prefix, settings.prefixes):
                continue
            if source is RouteSource.CONNECTED and any(
                ifindex in self._surroundings.ifindexes for ifindex, _ in route.hops
            ):
                return None  # announced, or kept back, as OSPF on the interface says
            return settings, route
        return None

    def _forwarding_address(self, route: LocalRoute) -> int:
        """Others on a broadcast network may send to the next hop directly (§12.4.4.1)."""
        if len(route.hops) != 1:
            return 0
        ((ifindex, gateway),) = route.hops
        direct = any(
            at == ifindex and network.contains(gateway)
            for at, network in self._surroundings.networks
        )
        return gateway if direct else 0

    def _left_to_others(self, prefix: Prefix, lsa: AsExternalLsa) -> bool:
        """Whether a router of higher id, and reached, originates just the same (§12.4.4)."""
        if not lsa.forwarding_address:
            return False
        return any(
            key.advertising_router > self._instance.router_id
            and key.advertising_router in self._reached
            and (other.type_2, other.metric, other.forwarding_address)
            == (lsa.type_2, lsa.metric, lsa.forwarding_address)
            for key, other in self._claims.get(prefix, {}).items()
        )

    def _put(self, prefix: Prefix, lsa: AsExternalLsa | None) -> None:
        if lsa == self._told.get(prefix):
            return
        if lsa is None:
            del self._told[prefix]
            changed, _ = self._ids.release(prefix)
        else:
            self._told[prefix] = lsa
            changed, _ = self._ids.assign(prefix)
        for link_state_id in changed:
            key = LsaKey(LsType.AS_EXTERNAL, link_state_id, self._instance.router_id)
            self._originator.offer_external(key, partial(self._body, link_state_id))

    def _body(self, link_state_id: int) -> bytes | None:
        prefix = self._ids.prefix_of_id(link_state_id)
        lsa = None if prefix is None else self._told.get(prefix)
        return None if lsa is None else encode_as_external_lsa(lsa)


def _announced(interface: Interface) -> Iterable[Prefix]:
    """What the router LSA says of an interface's own networks (§12.4.1)."""
    return (
        ipv4_prefix(a.address, 32 if interface.loopback else a.prefix_length)
        for a in interface.addresses
    )
