"""An immutable picture of the engine, from which views for people and metrics are made."""

from __future__ import annotations

from dataclasses import dataclass

from fared.core.ids import AreaId
from fared.core.keys import accept_keys
from fared.core.reduction import ReductionSettings
from fared.ospf.authenticate import sending_key
from fared.ospf.contents import next_hop_neighbors
from fared.ospf.instance import Area, Instance
from fared.ospf.interface import Interface
from fared.ospf.lsdb import Lsdb, Scope
from fared.ospf.neighbor import Neighbor
from fared.ospf.packet.lsa import Lsa


@dataclass(frozen=True, slots=True)
class NeighborView:
    """One neighbor; times in seconds."""

    router_id: int
    address: int
    ifindex: int
    interface: str
    area: AreaId
    state: str
    uptime: float
    dead_in: float
    priority: int
    options: int
    master: bool
    retransmissions: int
    requests: int
    summaries: int
    flaps: int
    next_hop: bool
    """Whether packets may be sent to it: full, or heard both ways on a transit network."""


@dataclass(frozen=True, slots=True)
class AuthenticationView:
    """Which key signs and which ids are accepted; ``algorithm`` None: no key has begun yet.

    ``expired``: the key is the last one and its send lifetime is over.
    """

    algorithm: str | None
    key_id: int | None
    extended: bool
    expired: bool
    accepted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InterfaceView:
    """One interface on which OSPF runs; bandwidths in bytes/s.

    ``designated_router`` and ``backup_designated_router`` are addresses, 0: nobody.
    """

    ifindex: int
    name: str
    area: AreaId
    state: str
    network_type: str
    addresses: tuple[tuple[int, int], ...]
    unnumbered: bool
    mtu: int
    cost: int
    passive: bool
    priority: int
    designated_router: int
    backup_designated_router: int
    hello_interval: int
    router_dead_interval: int
    rxmt_interval: float
    capacity: float | None
    utilized: float | None
    announced_capacity: float | None
    announced_available: float | None
    hello_in: float | None
    authentication: AuthenticationView | None
    neighbors: tuple[NeighborView, ...]


@dataclass(frozen=True, slots=True)
class LsaView:
    """One stored LSA and its age now."""

    lsa: Lsa
    age: int


@dataclass(frozen=True, slots=True)
class DatabaseView:
    """One database: ``scope`` is link, area or as; ``checksum`` the sum of LSA checksums."""

    scope: str
    area: AreaId | None
    ifindex: int | None
    stub: bool
    lsas: tuple[LsaView, ...]
    checksum: int


@dataclass(frozen=True, slots=True)
class OspfSnapshot:
    """The whole process. Counters are (labels..., count) tuples in order of first occurrence.

    ``packets``: (direction, type); ``errors``: reason; ``transitions``: (from, to); ``lsas``:
    originated, flooded, retransmitted, duplicate, too-soon, deferred (not flooded at once since
    others may deliver it), deferred-sent (nobody did).
    """

    router_id: int
    hostname: str | None
    stub_router: bool
    reduction: ReductionSettings
    interfaces: tuple[InterfaceView, ...]
    databases: tuple[DatabaseView, ...]
    packets: tuple[tuple[str, str, int], ...]
    errors: tuple[tuple[str, int], ...]
    transitions: tuple[tuple[str, str, int], ...]
    lsas: tuple[tuple[str, int], ...]
    exchanging: int
    timers: int

    @property
    def neighbors(self) -> tuple[NeighborView, ...]:
        """The neighbors of all interfaces, by ifindex and router id."""
        return tuple(n for interface in self.interfaces for n in interface.neighbors)

    def area(self, area_id: AreaId) -> DatabaseView | None:
        """The database of one area."""
        for database in self.databases:
            if database.scope == Scope.AREA.value and database.area == area_id:
                return database
        return None


def take_snapshot(instance: Instance, now: float) -> OspfSnapshot:
    """Copy what is to be seen out of the live engine."""
    interfaces = [interface for _, interface in sorted(instance.interfaces.items())]
    counters = instance.counters
    return OspfSnapshot(
        router_id=instance.router_id,
        hostname=instance.settings.hostname,
        stub_router=instance.settings.stub_router,
        reduction=instance.settings.reduction,
        interfaces=tuple(_interface(instance, i, now) for i in interfaces),
        databases=(
            *(_area(area, now) for _, area in sorted(instance.areas.items())),
            _database(instance.as_scope, now),
            *(_database(i.lsdb, now) for i in interfaces if len(i.lsdb)),
        ),
        packets=tuple((d, t, n) for (d, t), n in counters.packets.items()),
        errors=tuple(counters.errors.items()),
        transitions=tuple((a, b, n) for (a, b), n in counters.transitions.items()),
        lsas=tuple(counters.lsas.items()),
        exchanging=instance.exchanging,
        timers=len(instance.timers),
    )


def _interface(instance: Instance, interface: Interface, now: float) -> InterfaceView:
    settings = interface.settings
    announced = interface.announced.bandwidth if interface.announced else None
    hops = next_hop_neighbors(interface)
    timer = interface.hello_timer
    return InterfaceView(
        ifindex=interface.ifindex,
        name=interface.name,
        area=settings.area,
        state=interface.state.value,
        network_type=settings.network_type.value,
        addresses=tuple((a.address, a.prefix_length) for a in interface.link.ipv4()),
        unnumbered=interface.unnumbered,
        mtu=interface.link.mtu,
        cost=settings.cost,
        passive=settings.passive,
        priority=settings.router_priority,
        designated_router=interface.designated_router,
        backup_designated_router=interface.backup_designated_router,
        hello_interval=settings.hello_interval,
        router_dead_interval=settings.router_dead_interval,
        rxmt_interval=settings.rxmt_interval,
        capacity=interface.bandwidth.capacity,
        utilized=interface.utilized,
        announced_capacity=announced.capacity if announced else None,
        announced_available=announced.available if announced else None,
        hello_in=timer.deadline - now if timer is not None and timer.active else None,
        authentication=_authentication(instance, interface, now),
        neighbors=tuple(
            _neighbor(n, now, next_hop=n in hops) for _, n in sorted(interface.neighbors.items())
        ),
    )


def _authentication(
    instance: Instance, interface: Interface, now: float
) -> AuthenticationView | None:
    keyring = interface.settings.authentication
    if not keyring:
        return None
    wall = instance.settings.epoch + now
    chosen = sending_key(instance, interface, now)
    return AuthenticationView(
        algorithm=None if chosen is None else chosen.key.algorithm.value,
        key_id=None if chosen is None else chosen.key.key_id,
        extended=chosen is not None and chosen.key.extended,
        expired=chosen is not None and not chosen.sends(wall),
        accepted=tuple(timed.key.key_id for timed in accept_keys(keyring, wall)),
    )


def _neighbor(neighbor: Neighbor, now: float, *, next_hop: bool) -> NeighborView:
    interface = neighbor.interface
    return NeighborView(
        router_id=neighbor.router_id,
        address=neighbor.address,
        ifindex=interface.ifindex,
        interface=interface.name,
        area=interface.settings.area,
        state=neighbor.state.label,
        uptime=now - neighbor.since,
        dead_in=neighbor.dead_at - now,
        priority=neighbor.priority,
        options=neighbor.options,
        master=neighbor.master,
        retransmissions=len(neighbor.retransmissions),
        requests=len(neighbor.requests),
        summaries=len(neighbor.summaries),
        flaps=interface.flaps.get(neighbor.router_id, 0),
        next_hop=next_hop,
    )


def _area(area: Area, now: float) -> DatabaseView:
    return _database(area.lsdb, now, stub=area.settings.stub)


def _database(lsdb: Lsdb, now: float, *, stub: bool = False) -> DatabaseView:
    return DatabaseView(
        scope=lsdb.scope.value,
        area=lsdb.area,
        ifindex=lsdb.ifindex,
        stub=stub,
        lsas=tuple(LsaView(entry.lsa, entry.age(now)) for entry in lsdb),
        checksum=sum(entry.lsa.header.ls_checksum for entry in lsdb),
    )
