"""Originating, refreshing and flushing self-originated LSAs (RFC 2328 §12.4, §14.1).

A ``SelfLsa`` is one LSA that this router may originate: it builds the body and has a throttle.
Events mark it; ``settle`` originates the marked LSAs whose throttle allows it, with their present
contents. So a burst of events results in one LSA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.ids import AreaId
from fared.core.throttle import ADJACENCY_SOON, Throttle
from fared.core.timers import Timer
from fared.ospf.flooding.procedure import Flooding
from fared.ospf.instance import Area, Instance
from fared.ospf.interface import Interface
from fared.ospf.lsdb import LsaEntry, Lsdb
from fared.ospf.origination import contents
from fared.ospf.origination.wrap import SequenceWraps
from fared.ospf.packet.body import opaque_link_state_id
from fared.ospf.packet.lsa import (
    INITIAL_SEQUENCE_NUMBER,
    LSA_HEADER_SIZE,
    MAX_SEQUENCE_NUMBER,
    LsaKey,
    LsType,
    encode_lsa,
)
from fared.ospf.packet.opaque import OpaqueType
from fared.ospf.packet.packets import Options
from fared.te.announcer import Announcer, Carrier

_OPAQUE_ID = 0xFFFFFF


class SelfLsa:
    """One self-originated LSA. ``build`` returns its body, or None if it is not to exist.

    ``may_be_absent``: ``build`` may return None; the LSA is then flushed regardless of the
    throttle. An ``ephemeral`` one is removed once its LSA is flushed and its throttle is quiet.
    """

    __slots__ = (
        "build",
        "ephemeral",
        "forced",
        "held_until",
        "key",
        "last_sequence_number",
        "lsdb",
        "may_be_absent",
        "options",
        "requested_at",
        "throttle",
        "timer",
    )

    def __init__(
        self,
        lsdb: Lsdb,
        key: LsaKey,
        options: int,
        throttle: Throttle,
        build: Callable[[], bytes | None],
    ) -> None:
        self.lsdb = lsdb
        self.key = key
        self.options = options
        self.throttle = throttle
        self.build = build
        self.forced = False
        self.held_until = 0.0
        self.requested_at: float | None = None
        self.timer: Timer | None = None
        self.last_sequence_number: int | None = None
        self.may_be_absent = False
        self.ephemeral = False


SelfLsaKey = tuple[AreaId | None, LsaKey]


class Originator:
    """All LSAs that this router originates."""

    def __init__(self, instance: Instance, flooding: Flooding) -> None:
        self._instance = instance
        self._process = instance.process
        self._flooding = flooding
        self._wraps = SequenceWraps(instance, flooding)
        self._self_lsas: dict[SelfLsaKey, SelfLsa] = {}
        self._marked: dict[SelfLsaKey, SelfLsa] = {}
        self._networks: dict[int, SelfLsaKey] = {}
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
            self._remove(key_in_area)

    def remove_interface(self, interface: Interface) -> None:
        """Flush and remove the TE LSA of a removed interface."""
        self._announcer.forget(interface)
        self._remove((interface.settings.area, self._te_key(interface.ifindex)))

    def _remove(self, key_in_area: SelfLsaKey) -> None:
        own = self._self_lsas.pop(key_in_area, None)
        if own is None:
            return
        self._marked.pop(key_in_area, None)
        self._process.timers.cancel(own.timer)
        entry = own.lsdb.get(own.key)
        if entry is not None and not entry.is_maxage(self._process.now):
            self._flooding.flush(entry)

    def request(self, area: Area, key: LsaKey, build: Callable[[], bytes | None]) -> None:
        """Reconsider an LSA that depends on routes (§12.4 (5) to (7); (8): virtual links)."""
        own = self._self_lsas.get((area.area_id, key))
        if own is None:
            own = self._add(area, key, build)
            own.may_be_absent = own.ephemeral = True
        self._reconsider(own)

    def request_external(self, key: LsaKey, build: Callable[[], bytes | None]) -> None:
        """Reconsider an AS-external LSA, which belongs to no area (§12.4 (9), (10))."""
        own = self._self_lsas.get((None, key))
        if own is None:
            own = self._enter(self._instance.as_scope, int(Options.E), key, build)
            own.may_be_absent = own.ephemeral = True
        self._reconsider(own)

    def _reconsider(self, own: SelfLsa) -> None:
        self._process.timers.cancel(own.timer)  # ``_forget`` may be pending
        own.timer = None
        self._mark(own)

    def _te_key(self, instance_id: int) -> LsaKey:
        link_state_id = opaque_link_state_id(
            OpaqueType.TRAFFIC_ENGINEERING, instance_id & _OPAQUE_ID
        )
        return LsaKey(LsType.OPAQUE_AREA, link_state_id, self._instance.router_id)

    def _te_link(self, ifindex: int) -> bytes | None:
        interface = self._instance.interfaces.get(ifindex)
        return None if interface is None else contents.te_link(interface)

    def _add(self, area: Area, key: LsaKey, build: Callable[[], bytes | None]) -> SelfLsa:
        return self._enter(area.lsdb, _options(area), key, build)

    def _enter(
        self, lsdb: Lsdb, options: int, key: LsaKey, build: Callable[[], bytes | None]
    ) -> SelfLsa:
        throttle = Throttle(self._instance.settings.throttle)
        own = SelfLsa(lsdb, key, options, throttle, build)
        self._self_lsas[lsdb.area, key] = own
        self._mark(own)
        return own

    # Events

    def router_changed(self, area: AreaId) -> None:
        """The router LSA of an area may have changed."""
        rid = self._instance.router_id
        self._mark_key((area, LsaKey(LsType.ROUTER, rid, rid)))

    def link_changed(self, interface: Interface) -> None:
        """Router LSA, TE LSA and network LSA of a link may have changed (§12.4 (2) to (4))."""
        self.router_changed(interface.settings.area)
        self._mark_key((interface.settings.area, self._te_key(interface.ifindex)))
        network = self._networks.get(interface.ifindex)
        if network is not None:
            self._mark_key(network)

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
            self._mark(own)
            own.held_until = self._process.now + ADJACENCY_SOON

    def everything_changed(self) -> None:
        """Settings changed: reconsider all LSAs."""
        for (area_id, _), own in self._self_lsas.items():
            if area_id is not None:
                own.options = _options(self._instance.areas[area_id])
            own.throttle.configure(self._instance.settings.throttle)
            self._mark(own)

    def bandwidth_changed(self, interface: Interface) -> bool:
        """Advertise a changed capacity or load of a link if due; return whether to ``settle``."""
        return self._announcer.offer(interface, self._process.now)

    def load_measured(self, interface: Interface, utilized: float | None) -> bool:
        """Store the load of a link, bytes/s; None: unknown. Return whether to ``settle``."""
        now = self._process.now
        interface.measured(utilized, self._announcer.averaging(interface, now), now)
        return self.bandwidth_changed(interface)

    def lsa_changed(self, entry: LsaEntry) -> None:
        """Count the link ends that are advertised in an area, for its budget."""
        key, area = entry.key, entry.lsdb.area
        if area is None or not _is_te_link(key):
            return
        process, instance = self._process, self._instance
        ends = 0 if entry.is_maxage(process.now) else 1
        self._announcer.budget(area).ends.put(
            key, ends, process.now, own=key.advertising_router == instance.router_id
        )

    def _announced_in(self, interface: Interface) -> list[Carrier[AreaId]]:
        """The area and the TE LSA in which the bandwidth of a link is advertised, if it is."""
        area, key = interface.settings.area, self._te_key(interface.ifindex)
        entry = self._instance.areas[area].lsdb.get(key)
        alive = entry is not None and not entry.is_maxage(self._process.now)
        return [Carrier(area, key)] if alive else []

    def _announce(self) -> None:
        for interface in self._announcer.settle(self._process.now):
            self._mark_key((interface.settings.area, self._te_key(interface.ifindex)))

    def self_originated_received(self, entry: LsaEntry) -> None:
        """Process a self-originated LSA newer than the last one originated (RFC 2328 §13.4)."""
        own = self._self_lsa_of(entry)
        if own is not None:
            # A MaxAge entry may be removed before the throttle expires: keep its sequence number.
            received = entry.sequence_number
            last = own.last_sequence_number
            own.last_sequence_number = received if last is None else max(last, received)
        # §13.4: originate an instance with a higher sequence number
        if own is not None and own.build() is not None:
            self._mark(own, force=True)
        # §13.4: flush an LSA that this router no longer originates
        elif not entry.is_maxage(self._process.now):
            self._flooding.flush(entry)

    def refresh(self, entry: LsaEntry) -> None:
        """LSRefreshTime (§12.4 (1)): originate with the next sequence number, even if unchanged."""
        own = self._self_lsa_of(entry)
        if own is not None:
            self._mark(own, force=True)

    def removed(self, entry: LsaEntry) -> None:
        """A flushed LSA was removed; after a wrap, originate from the first number (§12.1.6)."""
        own = self._self_lsa_of(entry)
        wrapped = self._wraps.ended(entry)
        if own is not None and wrapped:
            own.last_sequence_number = None
            self._mark(own, force=True)
        elif own is not None:
            self._forget(own)

    def flush_all(self) -> None:
        """Flush all self-originated LSAs (§14.1)."""
        for own in self._self_lsas.values():
            self._process.timers.cancel(own.timer)
            entry = own.lsdb.get(own.key)
            if entry is not None and not entry.is_maxage(self._process.now):
                self._flooding.flush(entry)
        self._self_lsas.clear()
        self._marked.clear()

    # Origination

    def settle(self) -> None:
        """Originate every marked LSA whose throttle allows it; arm timers for the others."""
        self._announce()
        now = self._process.now
        for key_in_area, own in list(self._marked.items()):
            assert own.requested_at is not None
            # The throttle is in place of MinLSInterval (§12.4); a flush does not wait for it.
            due = max(own.throttle.due(own.requested_at), own.held_until)
            if due > now and not (own.may_be_absent and own.build() is None):
                if own.timer is None or not own.timer.active:
                    own.timer = self._process.timers.arm(due, _wake)
                continue
            del self._marked[key_in_area]
            requested, own.requested_at, own.held_until = own.requested_at, None, 0.0
            if self._originate(own):
                own.throttle.sent(requested, now)
            own.forced = own.forced and key_in_area in self._wraps

    def _originate(self, own: SelfLsa) -> bool:
        """Originate an LSA if its contents differ (§12.4); return whether one was flooded."""
        entry = own.lsdb.get(own.key)
        body = own.build()
        alive = entry is not None and not entry.is_maxage(self._process.now)
        # §14.1: flush an LSA that is no longer to exist
        if body is None:
            if entry is not None and alive:
                self._flooding.flush(entry)
            elif entry is None:
                self._forget(own)
            return False
        # §12.4: a new instance only if options or body differ, or if forced, by (1) or §13.4
        if entry is not None and alive and not own.forced:
            same = entry.raw[LSA_HEADER_SIZE:] == body
            if same and entry.lsa.header.options == own.options:
                return False
        # §12.1.6: the next sequence number; None while it wraps
        sequence_number = self._next_sequence_number(own, entry)
        if sequence_number is None:
            return False
        own.last_sequence_number = sequence_number
        lsa = encode_lsa(
            ls_age=0,
            options=own.options,
            ls_type=own.key.ls_type,
            link_state_id=own.key.link_state_id,
            advertising_router=own.key.advertising_router,
            ls_sequence_number=sequence_number,
            body=body,
        )
        self._process.counters.lsdb["originated"] += 1
        self._flooding.install_and_flood(own.lsdb, own.key, lsa.raw)
        return True

    def _next_sequence_number(self, own: SelfLsa, entry: LsaEntry | None) -> int | None:
        """The next sequence number (§12.1.6); None while MaxSequenceNumber is being flushed."""
        last = own.last_sequence_number
        if entry is not None:
            last = entry.sequence_number
            if last == MAX_SEQUENCE_NUMBER:
                self._wraps.hold(entry)
                return None
        return INITIAL_SEQUENCE_NUMBER if last in (None, MAX_SEQUENCE_NUMBER) else last + 1

    def _forget(self, own: SelfLsa) -> None:
        """Remove an ephemeral LSA that is not to exist, once its throttle is quiet."""
        if own.ephemeral and own.build() is None:
            self._process.timers.cancel(own.timer)
            quiet_at = own.throttle.quiet_at()
            if quiet_at > self._process.now:  # a flapping one keeps its throttle
                own.timer = self._process.timers.arm(quiet_at, partial(self._forget, own))
                return
            self._self_lsas.pop((own.lsdb.area, own.key), None)
            self._marked.pop((own.lsdb.area, own.key), None)

    def _self_lsa_of(self, entry: LsaEntry) -> SelfLsa | None:
        return self._self_lsas.get((entry.lsdb.area, entry.key))

    def _mark_key(self, key_in_area: SelfLsaKey) -> None:
        own = self._self_lsas.get(key_in_area)
        if own is not None:
            self._mark(own)

    def _mark(self, own: SelfLsa, *, force: bool = False) -> None:
        own.forced = own.forced or force
        if own.held_until:
            own.held_until = 0.0
            self._process.timers.cancel(own.timer)
        if own.requested_at is None:
            own.requested_at = self._process.now
        self._marked[own.lsdb.area, own.key] = own


def _options(area: Area) -> int:
    """The E bit, off in stub areas (RFC 2328 §12.1.2)."""
    return 0 if area.settings.stub else int(Options.E)


def _is_te_link(key: LsaKey) -> bool:
    """Whether an LSA describes a link: a TE LSA other than that of the router address."""
    kind, instance_id = divmod(key.link_state_id, _OPAQUE_ID + 1)
    return (
        key.ls_type == LsType.OPAQUE_AREA
        and kind == OpaqueType.TRAFFIC_ENGINEERING
        and instance_id != 0
    )


def _wake() -> None:
    """Wake the engine: ``settle`` considers all marked LSAs."""
