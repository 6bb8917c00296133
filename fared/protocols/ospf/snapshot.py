"""An immutable snapshot of the engine, for ``show`` documents and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from fared.core.ids import AreaId
from fared.protocols.igp.dynamic_flooding import TopologyView
from fared.protocols.igp.keys import KeyringView, keyring_view
from fared.protocols.igp.reduction import ReductionSettings
from fared.protocols.igp.refusals import NeighborProblem
from fared.protocols.igp.restart import RestartEnded
from fared.protocols.ospf.adjacency.helper import HelpEnded
from fared.protocols.ospf.adjacency.problems import mtu_mismatch, problem_of
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, Neighbor
from fared.protocols.ospf.lsdb import LsaEntry, Lsdb, Scope
from fared.protocols.ospf.origination.contents import next_hop_neighbors
from fared.protocols.ospf.packet.lsa import Lsa
from fared.protocols.ospf.processing.authenticate import sending_key
from fared.protocols.ospf.restarter import Restarter, Restarting


class NeighborView(msgspec.Struct, frozen=True):
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
    """Whether it can be a next hop: Full, or 2-Way on a transit network."""
    waits_for: int | None
    """How many adjacencies that form now keep it in 2-Way, waiting for its turn; None: it does not
    wait (RFC 4222 §2 (5))."""
    mtu_mismatch: tuple[int, int] | None
    """Its MTU and ours, if they differ: the exchange does not complete (RFC 2328 §10.6)."""
    problem: NeighborProblem | None
    bfd: str | None


class HelpedView(msgspec.Struct, frozen=True):
    """A neighbor that restarts gracefully; times in seconds."""

    router_id: int
    interface: str
    reason: int
    since: float
    remaining: float


class InterfaceView(msgspec.Struct, frozen=True):
    """One interface on which OSPF runs; bandwidths in bytes/s.

    ``designated_router`` and ``backup_designated_router`` are addresses, 0: none.
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
    prefix_suppression: bool
    priority: int
    designated_router: int
    backup_designated_router: int
    hello_interval: int
    router_dead_interval: int
    rxmt_interval: float
    ttl_security: str
    capacity: float | None
    utilized: float | None
    advertised_capacity: float | None
    advertised_available: float | None
    hello_in: float | None
    authentication: KeyringView | None
    neighbors: tuple[NeighborView, ...]


class LsaView(msgspec.Struct, frozen=True):
    """One stored LSA and its age now."""

    lsa: Lsa
    age: int


class DatabaseView:
    """One database: ``scope`` is link, area or as; ``checksum`` the sum of LSA checksums.

    ``entries`` refer to the LSAs that are there, of which there may be a hundred thousand: what is
    shown of them is made where it is read. ``kinds`` counts them by ``lsdb.kind_of``.
    """

    def __init__(self, lsdb: Lsdb, now: float, *, stub: bool = False) -> None:
        self.scope = lsdb.scope.value
        self.area = lsdb.area
        self.ifindex = lsdb.ifindex
        self.stub = stub
        self.entries = tuple(lsdb)
        self.kinds = lsdb.kinds.copy()
        self.checksum = lsdb.checksum
        self.now = now

    def __repr__(self) -> str:
        return (
            f"DatabaseView(scope={self.scope!r}, area={self.area!r}, ifindex={self.ifindex!r},"
            f" stub={self.stub!r}, lsas={self.lsas!r}, checksum={self.checksum!r})"
        )

    @property
    def lsas(self) -> tuple[LsaView, ...]:
        """All LSAs with their ages."""
        return tuple(map(self.view, self.entries))

    def view(self, entry: LsaEntry) -> LsaView:
        """Return one of the LSAs with its age."""
        return LsaView(entry.lsa, entry.age(self.now))


class OspfSnapshot(msgspec.Struct, frozen=True):
    """The state of the process, without counters, which are live in the engine."""

    router_id: int
    hostname: str | None
    stub_router: bool
    reduction: ReductionSettings
    topologies: tuple[TopologyView, ...]
    restarts: bool
    helper: bool
    helped: tuple[HelpedView, ...]
    help_ended: tuple[HelpEnded, ...]
    restarting: Restarting | None
    restarted: RestartEnded | None
    interfaces: tuple[InterfaceView, ...]
    databases: tuple[DatabaseView, ...]
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


def take_snapshot(
    instance: Instance,
    now: float,
    topologies: tuple[TopologyView, ...],
    help_ended: Iterable[HelpEnded],
    restarter: Restarter,
) -> OspfSnapshot:
    """Copy the visible state of the live engine."""
    interfaces = [interface for _, interface in sorted(instance.interfaces.items())]
    listed = _listed(instance)
    return OspfSnapshot(
        router_id=instance.router_id,
        hostname=instance.settings.hostname,
        stub_router=instance.stub_router,
        reduction=instance.settings.reduction,
        topologies=topologies,
        restarts=instance.settings.graceful_restart.enabled,
        helper=instance.settings.graceful_restart.helper,
        help_ended=tuple(help_ended),
        restarting=restarter.current,
        restarted=restarter.last,
        helped=tuple(_helped(interfaces, now)),
        interfaces=tuple(_interface(instance, i, listed, now) for i in interfaces),
        databases=(
            *(
                DatabaseView(area.lsdb, now, stub=area.settings.stub)
                for _, area in sorted(instance.areas.items())
            ),
            DatabaseView(instance.as_scope, now),
            *(DatabaseView(i.lsdb, now) for i in interfaces if len(i.lsdb)),
        ),
        exchanging=len(instance.exchanging),
        timers=len(instance.process.timers),
    )


def _helped(interfaces: Iterable[Interface], now: float) -> Iterator[HelpedView]:
    for interface in interfaces:
        for _, neighbor in sorted(interface.neighbors.items()):
            helping = neighbor.helping
            if helping is not None:
                yield HelpedView(
                    neighbor.router_id,
                    interface.name,
                    helping.reason,
                    now - helping.began,
                    helping.until - now,
                )


def _listed(instance: Instance) -> Counter[int]:
    """How many LSAs each set of neighbors has not acknowledged."""
    databases = instance.databases()
    return Counter(entry.unacknowledged for lsdb in databases for entry in lsdb.listed.values())


def _interface(
    instance: Instance, interface: Interface, listed: Counter[int], now: float
) -> InterfaceView:
    settings = interface.settings
    advertised = interface.advertised.bandwidth if interface.advertised else None
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
        prefix_suppression=settings.prefix_suppression and not interface.loopback,
        priority=settings.router_priority,
        designated_router=interface.designated_router,
        backup_designated_router=interface.backup_designated_router,
        hello_interval=settings.hello_interval,
        router_dead_interval=settings.router_dead_interval,
        rxmt_interval=settings.rxmt_interval,
        ttl_security=settings.ttl_security.value,
        capacity=interface.bandwidth.capacity,
        utilized=interface.utilized,
        advertised_capacity=advertised.capacity if advertised else None,
        advertised_available=advertised.available if advertised else None,
        hello_in=timer.deadline - now if timer is not None and timer.active else None,
        authentication=_authentication(instance, interface, now),
        neighbors=tuple(
            _neighbor(
                n, listed, now, forming=instance.settings.adjacency_stagger, next_hop=n in hops
            )
            for _, n in sorted(interface.neighbors.items())
        ),
    )


def _authentication(instance: Instance, interface: Interface, now: float) -> KeyringView | None:
    chosen = sending_key(instance, interface, now)
    wall = instance.settings.epoch + now
    return keyring_view(interface.settings.authentication, chosen, wall)


def _neighbor(
    neighbor: Neighbor, listed: Counter[int], now: float, *, forming: int, next_hop: bool
) -> NeighborView:
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
        retransmissions=sum(n for bitmap, n in listed.items() if bitmap & neighbor.bit),
        requests=len(neighbor.requests),
        summaries=len(neighbor.summaries),
        flaps=interface.flaps.get(neighbor.router_id, 0),
        next_hop=next_hop,
        waits_for=forming if neighbor.waits else None,
        mtu_mismatch=mtu_mismatch(neighbor),
        problem=problem_of(neighbor, now),
        bfd=None if neighbor.bfd is None else neighbor.bfd.value,
    )
