"""Which LSAs this router originates, and which events change them (RFC 2328 §12.4).

Router, network and TE LSAs and router information are entered here, those that depend on routes by
``border`` and ``external``. Sequence numbers, throttles and flushes: ``self_lsas``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from fared.core.ids import AreaId
from fared.paths.te.announcer import Announcer, Carrier
from fared.protocols.igp.throttle import ADJACENCY_SOON
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.origination import contents
from fared.protocols.ospf.origination.self_lsas import SelfLsa, SelfLsaKey, SelfLsas
from fared.protocols.ospf.packet.body import opaque_link_state_id
from fared.protocols.ospf.packet.lsa import LsaKey, LsType
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.packet.packets import Options

_OPAQUE_ID = 0xFFFFFF


class Originator:
    """Enters the LSAs of a router in ``self_lsas``, and marks those that events may change."""

    def __init__(self, instance: Instance, self_lsas: SelfLsas) -> None:
        self._instance = instance
        self._process = instance.process
        self._self_lsas = self_lsas
        self._networks: dict[int, SelfLsaKey] = {}
        self._information: dict[int, bytes] = {}
        self._information_only: dict[int, dict[int, bytes]] = {}
        """Information for one area each."""
        self._announcer: Announcer[Interface, AreaId] = Announcer(
            instance.process.timers,
            lambda: instance.settings.advertise,
            self._announced_in,
        )
        instance.budgets = self._announcer.budgets

    # The LSAs

    def add_area(self, area: Area) -> None:
        """Originate router LSA, router information and TE router address in an area from now on."""
        instance = self._instance
        rid = instance.router_id
        router = LsaKey(LsType.ROUTER, rid, rid)
        self._add(area, router, partial(contents.router_lsa, instance, area.area_id))
        information = opaque_link_state_id(OpaqueType.ROUTER_INFORMATION, 0)
        self._add(
            area,
            LsaKey(LsType.OPAQUE_AREA, information, rid),
            partial(contents.router_information, instance),
        )
        self._add(area, self._te_key(0), partial(contents.te_router_address, instance))
        if instance.settings.bier is not None:
            from fared.protocols.ospf.origination.bier import bier_prefixes  # noqa: PLC0415 - where it runs

            build = partial(bier_prefixes, instance, area.area_id)
            self._add(area, self._bier_key(), build).may_be_absent = True
        for key in self._information_in(area.area_id):
            self._request_information(area, key)

    def offer(self, items: Mapping[int, bytes], only: Mapping[int, Mapping[int, bytes]]) -> None:
        """Originate an opaque LSA for each item of information, and flush those of former ones.

        ``items`` in all areas, those of ``only`` in one each.
        """
        if self._instance.settings.information_type is None:
            return
        areas = self._instance.areas.values()
        before = {area.area_id: self._information_in(area.area_id) for area in areas}
        self._information = dict(items)
        self._information_only = {area: dict(own) for area, own in only.items()}
        for area in areas:
            had, now = before[area.area_id], self._information_in(area.area_id)
            for key in {**now, **had}:
                if had.get(key) != now.get(key):
                    self._request_information(area, key)

    def _information_in(self, area: int) -> dict[int, bytes]:
        return self._information | self._information_only.get(area, {})

    def _request_information(self, area: Area, item: int) -> None:
        kind = self._instance.settings.information_type
        assert kind is not None
        link_state_id = opaque_link_state_id(kind, item)
        key = LsaKey(LsType.OPAQUE_AREA, link_state_id, self._instance.router_id)
        self.request(area, key, partial(self._information_of, area.area_id, item))

    def _information_of(self, area: int, item: int) -> bytes | None:
        only = self._information_only.get(area, {})
        return only.get(item, self._information.get(item))

    def add_interface(self, interface: Interface) -> None:
        """Originate the TE LSA of a link from now on; its instance is the ifindex."""
        area = self._instance.areas[interface.settings.area]
        build = partial(self._te_link, interface.ifindex)
        self._add(area, self._te_key(interface.ifindex), build).may_be_absent = True

    def add_network(self, interface: Interface) -> None:
        """Originate the network LSA of a broadcast network while this router is its DR."""
        area = self._instance.areas[interface.settings.area]
        key = LsaKey(LsType.NETWORK, interface.address, self._instance.router_id)
        build = partial(contents.network_lsa, self._instance, interface)
        self._add(area, key, build).may_be_absent = True
        self._networks[interface.ifindex] = (area.area_id, key)

    def remove_network(self, interface: Interface) -> None:
        """Flush the network LSA of an interface that goes down, if there is one (§12.4.2)."""
        key_in_area = self._networks.pop(interface.ifindex, None)
        if key_in_area is not None:
            self._self_lsas.remove(key_in_area)

    def remove_interface(self, interface: Interface) -> None:
        """Flush and remove the TE LSA of a removed interface."""
        self._announcer.forget(interface)
        self._self_lsas.remove((interface.settings.area, self._te_key(interface.ifindex)))

    def request(
        self, area: Area, key: LsaKey, build: Callable[[], bytes | None], hold: float = 0.0
    ) -> None:
        """Reconsider an LSA that depends on routes (§12.4 (5) to (7); (8): virtual links).

        A change that is not urgent is held for ``hold`` seconds, unless an urgent one waits.
        """
        own = self._self_lsas.get((area.area_id, key))
        if own is None:
            own = self._add(area, key, build)
            own.may_be_absent = own.ephemeral = True
        urgent, until = own.requested_at is not None and not own.held_until, own.held_until
        self._self_lsas.reconsider(own)
        if hold and not urgent:
            own.held_until = until or self._process.now + hold

    def request_external(self, key: LsaKey, build: Callable[[], bytes | None]) -> None:
        """Reconsider an AS-external LSA, or one with attributes of its prefix: of no area.

        §12.4 (9), (10)
        """
        own = self._self_lsas.get((None, key))
        if own is None:
            own = self._self_lsas.enter(self._instance.as_scope, int(Options.E), key, build)
            own.may_be_absent = own.ephemeral = True
        self._self_lsas.reconsider(own)

    def _te_key(self, instance_id: int) -> LsaKey:
        link_state_id = opaque_link_state_id(
            OpaqueType.TRAFFIC_ENGINEERING, instance_id & _OPAQUE_ID
        )
        return LsaKey(LsType.OPAQUE_AREA, link_state_id, self._instance.router_id)

    def _bier_key(self) -> LsaKey:
        link_state_id = opaque_link_state_id(OpaqueType.EXTENDED_PREFIX, 0)
        return LsaKey(LsType.OPAQUE_AREA, link_state_id, self._instance.router_id)

    def _te_link(self, ifindex: int) -> bytes | None:
        interface = self._instance.interfaces.get(ifindex)
        return None if interface is None else contents.te_link(interface)

    def _add(self, area: Area, key: LsaKey, build: Callable[[], bytes | None]) -> SelfLsa:
        return self._self_lsas.enter(area.lsdb, area_options(area), key, build)

    # Events

    def router_changed(self, area: AreaId) -> None:
        """The router LSA of an area may have changed."""
        rid = self._instance.router_id
        self._self_lsas.mark_key((area, LsaKey(LsType.ROUTER, rid, rid)))
        self._self_lsas.mark_key((area, self._bier_key()))

    def link_changed(self, interface: Interface) -> None:
        """Router LSA, TE LSA and network LSA of a link may have changed (§12.4 (2) to (4))."""
        self.router_changed(interface.settings.area)
        self._self_lsas.mark_key((interface.settings.area, self._te_key(interface.ifindex)))
        network = self._networks.get(interface.ifindex)
        if network is not None:
            self._self_lsas.mark_key(network)

    def link_came_up(self, interface: Interface) -> None:
        """Hold the router LSA until the adjacency is full, for ``ADJACENCY_SOON`` at most.

        Otherwise it would advertise the stub network first, and the adjacency only in a second
        LSA, after the throttle. Any other change ends the hold.
        """
        rid = self._instance.router_id
        key = (interface.settings.area, LsaKey(LsType.ROUTER, rid, rid))
        own = self._self_lsas.get(key)
        if own is None or own.lsdb.get(own.key) is None:
            return
        if own.requested_at is None:
            self._self_lsas.mark(own)
            own.held_until = self._process.now + ADJACENCY_SOON

    def everything_changed(self, *, force: bool = False) -> None:
        """Reconsider all LSAs; ``force``: originate them even if unchanged."""
        for own in self._self_lsas:
            if own.lsdb.area is not None:
                own.options = area_options(self._instance.areas[own.lsdb.area])
            own.throttle.configure(self._instance.settings.throttle)
            self._self_lsas.mark(own, force=force)

    def bandwidth_changed(self, interface: Interface) -> bool:
        """Advertise a changed capacity or load of a link if due; return whether to ``settle``."""
        return self._announcer.offer(interface, self._process.now)

    def loads_measured(self, loads: Mapping[int, float | None]) -> bool:
        """Store the loads of links, bytes/s; None: unknown. Return whether to ``settle``."""
        return self._announcer.measured(loads, self._instance.interfaces, self._process.now)

    def te_lsa_changed(self, entry: LsaEntry) -> None:
        """Count the link ends that are advertised in an area, for its budget."""
        key, area = entry.key, entry.lsdb.area
        if area is None or not key.link_state_id & _OPAQUE_ID:
            return  # that of the router address
        now, own = self._process.now, key.advertising_router == self._instance.router_id
        self._announcer.budget(area).ends.put(key, 0 if entry.is_maxage(now) else 1, now, own=own)

    def _announced_in(self, interface: Interface) -> list[Carrier[AreaId]]:
        """The area and the TE LSA in which the bandwidth of a link is advertised, if it is."""
        area, key = interface.settings.area, self._te_key(interface.ifindex)
        entry = self._instance.areas[area].lsdb.get(key)
        alive = entry is not None and not entry.is_maxage(self._process.now)
        return [Carrier(area, key)] if alive else []

    def settle(self) -> None:
        """Advertise due bandwidths, and originate every marked LSA whose throttle allows it."""
        # RFC 3623 §2: while this router restarts, it originates no LSAs
        if self._instance.restarting:
            return
        for interface in self._announcer.settle(self._process.now):
            self._self_lsas.mark_key((interface.settings.area, self._te_key(interface.ifindex)))
        self._self_lsas.settle()


def area_options(area: Area) -> int:
    """The E bit, off in stub areas (RFC 2328 §12.1.2)."""
    return 0 if area.settings.stub else int(Options.E)
