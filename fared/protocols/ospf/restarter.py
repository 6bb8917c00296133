"""The restarting router (RFC 3623 §2).

Before a planned restart, and before the first hello after any restart, this router announces the
restart in a grace LSA on each link; its neighbors go on advertising it as adjacent. Until all
adjacencies of its router LSA from before the restart are full again, it originates no other LSAs
and keeps those that it finds in the databases of its neighbors, so nothing changes for the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from fared.core.ids import AreaId
from fared.core.timers import Timer
from fared.core.wire import DecodeError
from fared.protocols.igp.events import GracefulRestartBegun
from fared.protocols.igp.restart import COMPLETED, RestartEnded, end_restart
from fared.protocols.ospf.flooding.procedure import Flooding
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.interface import Interface, InterfaceState
from fared.protocols.ospf.lsdb import LsaEntry, Scope
from fared.protocols.ospf.neighbor import NeighborState
from fared.protocols.ospf.origination.originate import Originator, area_options
from fared.protocols.ospf.origination.self_lsas import SelfLsas
from fared.protocols.ospf.packet.bodies import NetworkLsa, RouterLink, RouterLinkType, RouterLsa
from fared.protocols.ospf.packet.body import decode_body, encode_body, opaque_link_state_id
from fared.protocols.ospf.packet.grace import GraceLsa, RestartReason
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, LsaKey, LsType, encode_lsa
from fared.protocols.ospf.packet.opaque import OpaqueType

_SEQUENCE_EPOCH = 1_700_000_000
"""Grace LSAs of later restarts have higher sequence numbers: seconds since this time are added."""
_COPIES, _PLANNED_COPIES, _COPY_GAP = 3, 4, 0.6
"""How often a grace LSA is sent before the first hello, and the seconds between.

Nobody acknowledges it to a router that is not known yet, and a lost one ends the adjacency. A
helper holds the adjacency from the first copy on, whatever its dead interval. BIRD 2.0 computes its
routes up to a second (its ``tick``) after it; if a hello has made the neighbor 1-Way by then, it
finds no next hop. After a planned restart the first copy may come within MinLSArrival of the
announcement by the process before; then the second one is installed, and its second counts."""
_FLUSH_WITHIN = 3.0
"""Seconds from the end of a restart until the grace LSAs are flushed at the latest."""
_STALE_AFTER = 5.0
"""Seconds from the end of a restart until LSAs that are not originated any more are flushed: routes
that summaries depend on are computed meanwhile."""


class Restarting(msgspec.Struct, frozen=True):
    """A restart in progress, until ``until``; ``reason`` is that of our grace LSAs."""

    began: float
    until: float
    reason: RestartReason

    @property
    def planned(self) -> bool:
        """Whether the process before this one had announced it."""
        return self.reason.planned


class Restarter:
    """Announces restarts, and decides when this router has restarted."""

    def __init__(
        self, instance: Instance, flooding: Flooding, originator: Originator, self_lsas: SelfLsas
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._flooding = flooding
        self._originator = originator
        self._self_lsas = self_lsas
        self._timer: Timer | None = None
        self._current: Restarting | None = None
        self._flush_by: float | None = None
        """When to flush the grace LSAs at the latest; None: they have been flushed."""
        self.last: RestartEnded | None = None

    @property
    def current(self) -> Restarting | None:
        """The restart in progress."""
        return self._current

    @property
    def waits(self) -> bool:
        """Whether acknowledgments and adjacencies decide what it does next."""
        return self._current is not None or self._flush_by is not None

    # Before a planned restart

    def announce(self, period: float) -> None:
        """Originate grace LSAs on all links with an adjacency (RFC 3623 §2.1)."""
        self._instance.restarting = True
        reason = RestartReason.SOFTWARE_RESTART
        for interface in self._instance.interfaces.values():
            if any(n.state is NeighborState.FULL for n in interface.neighbors.values()):
                key, raw = self._grace_lsa(interface, round(period), reason)
                self._flooding.install_and_flood(interface.lsdb, key, raw)

    @property
    def announced(self) -> bool:
        """Whether all neighbors have acknowledged the grace LSAs."""
        return not any(entry.unacknowledged for entry in self._grace_lsas())

    # After a restart

    def begin(self, event: GracefulRestartBegun) -> None:
        """This router has restarted; its routes are still in the kernel."""
        now = self._process.now
        planned = event.planned
        reason = RestartReason.SOFTWARE_RESTART if planned else RestartReason.UNKNOWN
        self._current = Restarting(now, now + event.remaining, reason)
        self._instance.restarting = True
        # RFC 3623 §2.2 (3): the grace period expires
        due = now + event.remaining
        self._timer = self._process.timers.arm(due, lambda: self._end("grace-period-expired"))
        self._process.log(
            "info", "graceful-restart", planned=planned, seconds=round(event.remaining)
        )

    def link_up(self, interface: Interface) -> None:
        """Send a grace LSA before the first hello (§2.1, §4); there is no neighbor to list yet."""
        current = self._current
        if current is None:
            return
        period = max(1, round(current.until - self._process.now))
        key, raw = self._grace_lsa(interface, period, current.reason)
        entry, _ = self._flooding.install_and_flood(interface.lsdb, key, raw)
        self._send(interface, entry, _PLANNED_COPIES if current.planned else _COPIES)
        self._watch(interface)

    def _send(self, interface: Interface, entry: LsaEntry, copies: int) -> None:
        """Send a grace LSA so many times, and only then anything else."""
        interface.tx.first.append(entry)
        interface.tx.held = copies > 1
        interface.tx.wake()
        if copies > 1:
            due = self._process.now + _COPY_GAP
            self._process.timers.arm(due, partial(self._send, interface, entry, copies - 1))

    def lsa_changed(self, entry: LsaEntry) -> None:
        """§2.2 (2): an LSA contradicts our router LSA from before the restart."""
        if self._current is None or entry.lsdb.scope is not Scope.AREA:
            return
        if entry.key.ls_type not in (LsType.ROUTER, LsType.NETWORK):
            return
        area = self._instance.areas[entry.lsdb.area or AreaId(0)]
        if any(self._contradicts(area, link) for link in self._expected(area) or ()):
            self._end("inconsistent-lsa")

    def settle(self) -> None:
        """End the restart once all adjacencies are full (§2.2 (1))."""
        if self._current is None:
            return
        if self._complete():
            self._end(COMPLETED)
        elif self._forgotten():
            self._end("no-router-lsa")

    def flush(self) -> None:
        """Flush the grace LSAs, after our other LSAs are originated (§2.3 (6)).

        We may be Full before the neighbor is: it then acts by a state below Full if it ceases to
        help now (§3.2). What it acknowledges it received after the end of the exchange.
        """
        if self._flush_by is None:
            return
        if self._process.now < self._flush_by and self._unacknowledged():
            return
        self._flush_by = None
        for entry in list(self._grace_lsas()):
            if not entry.is_maxage(self._process.now):
                self._flooding.flush(entry)

    def _watch(self, interface: Interface) -> None:
        due = self._process.now + interface.settings.router_dead_interval
        self._process.timers.arm(due, partial(self._check_silence, interface))

    def _check_silence(self, interface: Interface) -> None:
        """End the restart if nobody knows of it, or an expected neighbor is silent.

        Not in §2.2, where the links of a neighbor that died meanwhile stay advertised until the
        grace period expires.
        """
        if self._current is None or not interface.is_active:
            return
        others = self._instance.interfaces.values()
        expected = self._expected(self._instance.areas[interface.settings.area]) or ()
        if not any(other.neighbors for other in others):
            self._end("no-neighbors")
        elif not interface.neighbors and any(
            link.link_data == interface.link_data for link in expected
        ):
            self._end("neighbor-lost")
        else:
            self._watch(interface)

    def _forgotten(self) -> bool:
        """Whether a neighbor is full, and had no router LSA of this router."""
        instance = self._instance
        return not instance.exchanging and any(
            neighbor.state is NeighborState.FULL
            and self._expected(instance.areas[interface.settings.area]) is None
            for interface in instance.interfaces.values()
            for neighbor in interface.neighbors.values()
        )

    def _end(self, result: str) -> None:
        current = self._current
        if current is None:
            return
        now = self._process.now
        self._current = None
        # a restart that failed has no helper whose state matters
        self._flush_by = now + (_FLUSH_WITHIN if result == COMPLETED else 0.0)
        self._process.timers.arm(self._flush_by, _wake)
        self._instance.restarting = False
        self._process.timers.cancel(self._timer)
        self.last = end_restart(self._process, current.began, result, planned=current.planned)
        # §2.3 (1), (2): router LSAs and network LSAs; the others of this router as well
        self._originator.everything_changed(force=True)
        self._process.timers.arm(now + _STALE_AFTER, self._self_lsas.flush_stale)

    def _unacknowledged(self) -> bool:
        """Whether a neighbor has not acknowledged all of our LSAs."""
        rid = self._instance.router_id
        return any(
            entry.unacknowledged and entry.key.advertising_router == rid
            for lsdb in self._instance.databases()
            for entry in lsdb.listed.values()
        )

    def _complete(self) -> bool:
        """Whether the adjacencies of our router LSAs from before the restart are full."""
        active = [i for i in self._instance.interfaces.values() if i.is_active]
        areas = {interface.settings.area for interface in active}
        if not areas:
            return False
        for area_id in areas:
            area = self._instance.areas[area_id]
            links = self._expected(area)
            if links is None or not all(self._restored(area, link) for link in links):
                return False
        return not self._instance.exchanging

    def _expected(self, area: Area) -> list[RouterLink] | None:
        """The adjacencies of our router LSA from before the restart; None: not received yet."""
        rid = self._instance.router_id
        entry = area.lsdb.get(LsaKey(LsType.ROUTER, rid, rid))
        body = None if entry is None else _body(entry)
        if not isinstance(body, RouterLsa):
            return None
        kinds = (RouterLinkType.POINT_TO_POINT, RouterLinkType.TRANSIT)
        return [link for link in body.links if link.link_type in kinds]

    def _restored(self, area: Area, link: RouterLink) -> bool:
        """Whether the adjacencies of a link are full again."""
        for interface in self._instance.area_interfaces(area.area_id):
            if interface.link_data != link.link_data:
                continue
            full = {n.router_id for n in interface.neighbors.values() if _full(n.state)}
            if link.link_type == RouterLinkType.POINT_TO_POINT:
                return link.link_id in full
            if interface.state is InterfaceState.DR:
                return self._attached(area, interface) <= full
            return any(
                _full(n.state) and n.address == interface.designated_router
                for n in interface.neighbors.values()
            )
        return False

    def _attached(self, area: Area, interface: Interface) -> set[int]:
        """The other routers of our network LSA from before the restart."""
        rid = self._instance.router_id
        entry = area.lsdb.get(LsaKey(LsType.NETWORK, interface.address, rid))
        body = None if entry is None else _body(entry)
        return set(body.attached_routers) - {rid} if isinstance(body, NetworkLsa) else set()

    def _contradicts(self, area: Area, link: RouterLink) -> bool:
        """Whether the LSA at the other end of a link does not list this router any more."""
        rid = self._instance.router_id
        if link.link_type == RouterLinkType.POINT_TO_POINT:
            entry = area.lsdb.get(LsaKey(LsType.ROUTER, link.link_id, link.link_id))
            body = None if entry is None else _body(entry)
            return isinstance(body, RouterLsa) and not any(
                far.link_type == RouterLinkType.POINT_TO_POINT and far.link_id == rid
                for far in body.links
            )
        networks = (
            entry
            for entry in area.lsdb
            if entry.key.ls_type == LsType.NETWORK and entry.key.link_state_id == link.link_id
        )
        bodies = [_body(entry) for entry in networks]
        return any(isinstance(b, NetworkLsa) and rid not in b.attached_routers for b in bodies)

    # Grace LSAs

    def _grace_lsas(self) -> Iterator[LsaEntry]:
        key = self._grace_key
        for interface in self._instance.interfaces.values():
            entry = interface.lsdb.get(key)
            if entry is not None:
                yield entry

    @property
    def _grace_key(self) -> LsaKey:
        link_state_id = opaque_link_state_id(OpaqueType.GRACE, 0)
        return LsaKey(LsType.OPAQUE_LINK, link_state_id, self._instance.router_id)

    def _grace_lsa(
        self, interface: Interface, period: int, reason: RestartReason
    ) -> tuple[LsaKey, bytes]:
        """Our grace LSA for an interface, newer than those of earlier restarts."""
        key = self._grace_key
        present = interface.lsdb.get(key)
        number = INITIAL_SEQUENCE_NUMBER + max(0, int(self._process.wall - _SEQUENCE_EPOCH))
        if present is not None:
            number = max(number, present.sequence_number + 1)
        # Appendix A: the address on broadcast networks; it does no harm elsewhere, but FRR and BIRD
        # do not send it there
        address = interface.address if interface.broadcast else None
        lsa = encode_lsa(
            ls_age=0,
            options=area_options(self._instance.areas[interface.settings.area]),
            ls_type=key.ls_type,
            link_state_id=key.link_state_id,
            advertising_router=key.advertising_router,
            ls_sequence_number=number,
            body=encode_body(GraceLsa(period, int(reason), address)),
        )
        return key, lsa.raw


def _wake() -> None:
    """Wake the engine: ``flush`` acts by the time."""


def _full(state: NeighborState) -> bool:
    return state is NeighborState.FULL


def _body(entry: LsaEntry) -> object:
    try:
        return entry.body if entry.body is not None else decode_body(entry.lsa)
    except DecodeError:
        return None
