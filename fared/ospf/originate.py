"""Originating our own LSAs: when, with which sequence number, and taking them back.

An origin is one LSA we may have: it knows how to build its body and keeps its throttle. What
changes marks origins; ``settle`` originates the marked ones whose throttle allows it, with the
contents of that moment, so a burst of events gives one LSA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.ids import AreaId, dotted
from fared.core.throttle import ADJACENCY_SOON, Throttle
from fared.core.timers import Timer
from fared.ospf import contents
from fared.ospf.flooding import Flooding
from fared.ospf.instance import Area, Instance
from fared.ospf.interface import Interface
from fared.ospf.lsdb import LsaEntry, Lsdb
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
from fared.te.announce import announce_now

_OPAQUE_ID = 0xFFFFFF


class Origin:
    """One LSA of our own. ``build`` returns its body, or None while there should be none.

    ``vanishes`` says that None can happen: taking an LSA back does not wait for the throttle.
    A ``transient`` origin is forgotten once its LSA is gone and its throttle is quiet.
    """

    __slots__ = (
        "build",
        "forced",
        "held_until",
        "key",
        "last_sequence_number",
        "lsdb",
        "options",
        "requested_at",
        "throttle",
        "timer",
        "transient",
        "vanishes",
        "wrapping",
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
        self.wrapping = False
        self.vanishes = False
        self.transient = False


OriginKey = tuple[AreaId | None, LsaKey]


class Originator:
    """All origins of this router."""

    def __init__(self, instance: Instance, flooding: Flooding) -> None:
        self._instance = instance
        self._flooding = flooding
        self._origins: dict[OriginKey, Origin] = {}
        self._marked: dict[OriginKey, Origin] = {}
        self._networks: dict[int, OriginKey] = {}

    # What exists

    def add_area(self, area: Area) -> None:
        """Begin to originate what describes this router in an area."""
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
        """Begin to originate the TE LSA of a link; its instance is the ifindex."""
        area = self._instance.areas[interface.settings.area]
        build = partial(self._te_link, interface.ifindex)
        self._add(area, self._te_key(interface.ifindex), build).vanishes = True

    def add_network(self, interface: Interface) -> None:
        """Begin to originate the network LSA of a broadcast network, while we are its DR."""
        area = self._instance.areas[interface.settings.area]
        key = LsaKey(LsType.NETWORK, interface.address, self._instance.router_id)
        build = partial(contents.network_lsa, self._instance, interface)
        self._add(area, key, build).vanishes = True
        self._networks[interface.ifindex] = (area.area_id, key)

    def remove_network(self, interface: Interface) -> None:
        """Flush the network LSA of an interface that goes down, if there is one."""
        origin_key = self._networks.pop(interface.ifindex, None)
        if origin_key is not None:
            self._remove(origin_key)

    def remove_interface(self, interface: Interface) -> None:
        """Flush what described a link and forget it; call when the link is gone from us."""
        self._remove((interface.settings.area, self._te_key(interface.ifindex)))

    def _remove(self, origin_key: OriginKey) -> None:
        origin = self._origins.pop(origin_key, None)
        if origin is None:
            return
        self._marked.pop(origin_key, None)
        self._instance.timers.cancel(origin.timer)
        entry = origin.lsdb.get(origin.key)
        if entry is not None and not entry.maxed(self._instance.now):
            self._flooding.flush(entry)

    def offer(self, area: Area, key: LsaKey, build: Callable[[], bytes | None]) -> None:
        """Look at an LSA that comes and goes with the routes: it may read differently now."""
        origin = self._origins.get((area.area_id, key))
        if origin is None:
            origin = self._add(area, key, build)
            origin.vanishes = origin.transient = True
        self._revive(origin)

    def offer_external(self, key: LsaKey, build: Callable[[], bytes | None]) -> None:
        """Look at an AS-external LSA, which belongs to no area, in the same way."""
        origin = self._origins.get((None, key))
        if origin is None:
            origin = self._enter(self._instance.as_scope, int(Options.E), key, build)
            origin.vanishes = origin.transient = True
        self._revive(origin)

    def _revive(self, origin: Origin) -> None:
        self._instance.timers.cancel(origin.timer)  # it may have been about to be forgotten
        origin.timer = None
        self._mark(origin)

    def _te_key(self, instance_id: int) -> LsaKey:
        link_state_id = opaque_link_state_id(
            OpaqueType.TRAFFIC_ENGINEERING, instance_id & _OPAQUE_ID
        )
        return LsaKey(LsType.OPAQUE_AREA, link_state_id, self._instance.router_id)

    def _te_link(self, ifindex: int) -> bytes | None:
        interface = self._instance.interfaces.get(ifindex)
        return None if interface is None else contents.te_link(interface)

    def _add(self, area: Area, key: LsaKey, build: Callable[[], bytes | None]) -> Origin:
        return self._enter(area.lsdb, _options(area), key, build)

    def _enter(
        self, lsdb: Lsdb, options: int, key: LsaKey, build: Callable[[], bytes | None]
    ) -> Origin:
        throttle = Throttle(self._instance.settings.throttle)
        origin = Origin(lsdb, key, options, throttle, build)
        self._origins[lsdb.area, key] = origin
        self._mark(origin)
        return origin

    # What changed

    def router_changed(self, area: AreaId) -> None:
        """The router LSA of an area may read differently now."""
        rid = self._instance.router_id
        self._mark_key((area, LsaKey(LsType.ROUTER, rid, rid)))

    def link_changed(self, interface: Interface) -> None:
        """Router LSA and TE LSA of a link may read differently now."""
        self.router_changed(interface.settings.area)
        self._mark_key((interface.settings.area, self._te_key(interface.ifindex)))
        network = self._networks.get(interface.ifindex)
        if network is not None:
            self._mark_key(network)

    def link_came_up(self, interface: Interface) -> None:
        """Hold the router LSA back until the adjacency is full, or does not become so in time.

        Announcing the bare subnet first would be two LSAs in the place of one, of which the
        second, the one that matters, then waits for the throttle. Any other change ends it.
        """
        rid = self._instance.router_id
        key = (interface.settings.area, LsaKey(LsType.ROUTER, rid, rid))
        origin = self._origins.get(key)
        if origin is None or origin.lsdb.get(origin.key) is None:
            return
        if origin.requested_at is None:
            self._mark(origin)
            origin.held_until = self._instance.now + ADJACENCY_SOON

    def everything_changed(self) -> None:
        """Settings changed: look at all origins again."""
        for (area_id, _), origin in self._origins.items():
            if area_id is not None:
                origin.options = _options(self._instance.areas[area_id])
            origin.throttle.configure(self._instance.settings.throttle)
            self._mark(origin)

    def bandwidth_changed(self, interface: Interface) -> None:
        """Decide whether new capacity or load of a link is worth an LSA (te.announce)."""
        instance, again = self._instance, partial(self.bandwidth_changed, interface)
        if announce_now(
            interface, instance.settings.announce, instance.timers, instance.now, again
        ):
            self._mark_key((interface.settings.area, self._te_key(interface.ifindex)))

    def own_received(self, entry: LsaEntry) -> None:
        """RFC 2328 §13.4: somebody has a newer LSA of ours than we do; outdo it or flush it."""
        origin = self._origin_of(entry)
        if origin is not None:
            # An entry at MaxAge may be swept before the throttle lets us outdo it: remember it.
            received = entry.lsa.header.ls_sequence_number
            last = origin.last_sequence_number
            origin.last_sequence_number = received if last is None else max(last, received)
        if origin is not None and origin.build() is not None:
            self._mark(origin, force=True)
        elif not entry.maxed(self._instance.now):
            self._flooding.flush(entry)

    def refresh(self, entry: LsaEntry) -> None:
        """LSRefreshTime has come (§12.4): the same contents under the next sequence number."""
        origin = self._origin_of(entry)
        if origin is not None:
            self._mark(origin, force=True)

    def removed(self, entry: LsaEntry) -> None:
        """A flushed LSA is gone everywhere; after a wrap the sequence now begins anew (§12.1.6)."""
        origin = self._origin_of(entry)
        if origin is not None and origin.wrapping:
            origin.wrapping = False
            origin.last_sequence_number = None
            self._mark(origin, force=True)
        elif origin is not None:
            self._forget(origin)

    def flush_all(self) -> None:
        """Take all our LSAs back (§14.1)."""
        for origin in self._origins.values():
            self._instance.timers.cancel(origin.timer)
            entry = origin.lsdb.get(origin.key)
            if entry is not None and not entry.maxed(self._instance.now):
                self._flooding.flush(entry)
        self._origins.clear()
        self._marked.clear()

    # What goes out

    def settle(self) -> None:
        """Originate every marked LSA whose time has come; arm timers for the others."""
        now = self._instance.now
        for origin_key, origin in list(self._marked.items()):
            assert origin.requested_at is not None
            due = max(origin.throttle.due(origin.requested_at), origin.held_until)
            if due > now and not (origin.vanishes and origin.build() is None):
                if origin.timer is None or not origin.timer.active:
                    origin.timer = self._instance.timers.arm(due, _wake)
                continue
            del self._marked[origin_key]
            requested, origin.requested_at, origin.held_until = origin.requested_at, None, 0.0
            if self._originate(origin):
                origin.throttle.sent(requested, now)
            origin.forced = origin.forced and origin.wrapping

    def _originate(self, origin: Origin) -> bool:
        """Originate unless nothing changed; return whether an LSA went out."""
        entry = origin.lsdb.get(origin.key)
        body = origin.build()
        alive = entry is not None and not entry.maxed(self._instance.now)
        if body is None:
            if entry is not None and alive:
                self._flooding.flush(entry)
            elif entry is None:
                self._forget(origin)
            return False
        if entry is not None and alive and not origin.forced:
            same = entry.lsa.raw[LSA_HEADER_SIZE:] == body
            if same and entry.lsa.header.options == origin.options:
                return False
        sequence_number = self._next_sequence_number(origin, entry)
        if sequence_number is None:
            return False
        origin.last_sequence_number = sequence_number
        lsa = encode_lsa(
            ls_age=0,
            options=origin.options,
            ls_type=origin.key.ls_type,
            link_state_id=origin.key.link_state_id,
            advertising_router=origin.key.advertising_router,
            ls_sequence_number=sequence_number,
            body=body,
        )
        self._instance.counters.lsas["originated"] += 1
        self._flooding.install_and_flood(origin.lsdb, lsa)
        return True

    def _next_sequence_number(self, origin: Origin, entry: LsaEntry | None) -> int | None:
        """RFC 2328 §12.1.6; None while an LSA with the last number is being flushed."""
        if origin.wrapping:
            return None
        last = origin.last_sequence_number
        if entry is not None:
            last = entry.lsa.header.ls_sequence_number
            if last == MAX_SEQUENCE_NUMBER:
                origin.wrapping = True
                if not entry.maxed(self._instance.now):
                    self._flooding.flush(entry)
                self._instance.log("info", "ospf-sequence-wrap", lsa=_name(origin.key))
                return None
        return INITIAL_SEQUENCE_NUMBER if last in (None, MAX_SEQUENCE_NUMBER) else last + 1

    def _forget(self, origin: Origin) -> None:
        """Drop an origin that no LSA is to come from any more, unless one is wanted again."""
        if origin.transient and origin.build() is None:
            self._instance.timers.cancel(origin.timer)
            quiet_at = origin.throttle.quiet_at()
            if quiet_at > self._instance.now:  # what flaps must not begin anew each time
                origin.timer = self._instance.timers.arm(quiet_at, partial(self._forget, origin))
                return
            self._origins.pop((origin.lsdb.area, origin.key), None)
            self._marked.pop((origin.lsdb.area, origin.key), None)

    def _origin_of(self, entry: LsaEntry) -> Origin | None:
        return self._origins.get((entry.lsdb.area, entry.key))

    def _mark_key(self, origin_key: OriginKey) -> None:
        origin = self._origins.get(origin_key)
        if origin is not None:
            self._mark(origin)

    def _mark(self, origin: Origin, *, force: bool = False) -> None:
        origin.forced = origin.forced or force
        if origin.held_until:
            origin.held_until = 0.0
            self._instance.timers.cancel(origin.timer)
        if origin.requested_at is None:
            origin.requested_at = self._instance.now
        self._marked[origin.lsdb.area, origin.key] = origin


def _options(area: Area) -> int:
    """The E bit, off in stub areas (RFC 2328 §12.1.2)."""
    return 0 if area.settings.stub else int(Options.E)


def _wake() -> None:
    """Nothing to do but to wake the engine: ``settle`` looks at everything that is marked."""


def _name(key: LsaKey) -> str:
    return f"{key.ls_type} {dotted(key.link_state_id)} {dotted(key.advertising_router)}"
