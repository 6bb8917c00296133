"""An immutable copy of the engine's state, for views and metrics."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fared.protocols.igp.dynamic_flooding import TopologyView
from fared.protocols.igp.keys import Keyring, KeyringView, keyring_view, send_key
from fared.protocols.igp.reduction import ReductionSettings
from fared.protocols.igp.refusals import NeighborProblem
from fared.protocols.igp.restart import RestartEnded
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.adjacency.problems import problem_of
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.ids import Level, LevelSet, LspId
from fared.protocols.isis.instance import HelpEnded, Instance, Restarting
from fared.protocols.isis.lsdb import Lsdb, StoredLsp
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.settings import CircuitKind, IsisSettings


class AdjacencyView(msgspec.Struct, frozen=True):
    """One neighbor; times in seconds. ``topologies`` are MT ids (RFC 5120)."""

    system_id: int
    hostname: str | None
    snpa: int
    ifindex: int
    interface: str
    levels: LevelSet
    state: str
    uptime: float | None
    holding_time: int
    expires_in: float
    areas: tuple[bytes, ...]
    ipv4: tuple[int, ...]
    ipv6: tuple[int, ...]
    nlpids: tuple[int, ...]
    topologies: tuple[int, ...]
    priority: int
    extended_circuit_id: int | None
    bfd: dict[str, str]
    flaps: int
    restarting: bool
    prepared: bool
    problem: NeighborProblem | None = None
    flooding: FloodingParameters | None = None


class LanView(msgspec.Struct, frozen=True):
    """One level of a broadcast circuit: its designated IS as LAN id, 0 while there is none."""

    level: int
    dis: int
    is_dis: bool


class CircuitView(msgspec.Struct, frozen=True):
    """One interface on which IS-IS runs; bandwidths in bytes/s.

    ``kind`` and ``levels`` are those in effect. ``pending`` LSPs are still to be sent or
    acknowledged. ``hello_in``: seconds to the next hello of any level. ``addresses`` are (family,
    address, prefix length).
    """

    ifindex: int
    name: str
    up: bool
    kind: str
    levels: LevelSet
    circuit_id: int
    addresses: tuple[tuple[int, int, int], ...]
    mtu: int
    metric: int
    passive: bool
    prefix_suppression: bool
    priority: int
    hello_interval: float
    hello_multiplier: int
    hello_in: float | None
    capacity: float | None
    utilized: float | None
    advertised_capacity: float | None
    advertised_available: float | None
    lans: tuple[LanView, ...]
    pending: int
    authentication: KeyringView | None
    adjacencies: tuple[AdjacencyView, ...]


class LspView(msgspec.Struct, frozen=True):
    """One stored LSP and its remaining lifetime now, seconds; ``raw`` as it was received."""

    lsp: Lsp
    remaining_lifetime: int
    raw: bytes
    own: bool
    purged: bool
    age: float


class DatabaseView:
    """One level; ``checksum`` is the sum of the checksums of live LSPs.

    ``hostnames`` maps system ids to the names in their LSPs (RFC 5301). ``entries`` refer to the
    LSPs that are there: what is shown of them is made where it is read. ``live`` counts those that
    are not purged, pseudonodes' apart.
    """

    def __init__(
        self,
        lsdb: Lsdb,
        now: float,
        hostnames: Mapping[int, str],
        authentication: KeyringView | None,
    ) -> None:
        self.level = int(lsdb.level)
        self.entries = lsdb.ordered()
        self.checksum = lsdb.checksum
        self.live = lsdb.live.copy()
        self.hostnames = dict(hostnames)
        self.authentication = authentication
        self.now = now

    def __repr__(self) -> str:
        return (
            f"DatabaseView(level={self.level!r}, lsps={self.lsps!r}, checksum={self.checksum!r},"
            f" hostnames={self.hostnames!r}, authentication={self.authentication!r})"
        )

    @property
    def lsps(self) -> tuple[LspView, ...]:
        """All LSPs with their lifetimes, by id."""
        return tuple(map(self.view, self.entries))

    def lsp(self, lsp_id: LspId) -> LspView | None:
        """One LSP by id."""
        return next((self.view(e) for e in self.entries if e.lsp_id == lsp_id), None)

    def view(self, entry: StoredLsp) -> LspView:
        """Return one of the LSPs with its lifetime."""
        return LspView(
            lsp=entry.lsp,
            remaining_lifetime=entry.remaining_lifetime(self.now),
            raw=entry.raw,
            own=entry.own,
            purged=entry.purged,
            age=self.now - entry.since,
        )


class IsisSnapshot(msgspec.Struct, frozen=True):
    """The whole process except its counters, which are live in the engine.

    ``overloaded`` and ``attached`` are the bits our LSPs carry.
    """

    system_id: int
    areas: tuple[bytes, ...]
    hostname: str | None
    levels: LevelSet
    restarts: bool
    restarting: Restarting | None
    restarted: RestartEnded | None
    helper: bool
    help_ended: tuple[HelpEnded, ...]
    families: tuple[int, ...]
    multi_topology: bool
    reduction: ReductionSettings
    topologies: tuple[TopologyView, ...]
    overloaded: bool
    attached: bool
    circuits: tuple[CircuitView, ...]
    databases: tuple[DatabaseView, ...]
    timers: int

    @property
    def adjacencies(self) -> tuple[AdjacencyView, ...]:
        """The adjacencies of all circuits, by ifindex."""
        return tuple(a for circuit in self.circuits for a in circuit.adjacencies)

    def level(self, level: int) -> DatabaseView | None:
        """The database of one level."""
        return next((view for view in self.databases if view.level == level), None)


def take_snapshot(
    instance: Instance,
    now: float,
    *,
    overloaded: bool,
    attached: bool,
    hostnames: Mapping[Level, Mapping[int, str]],
    waiting: Mapping[int, int],
    restarted: RestartEnded | None = None,
    topologies: tuple[TopologyView, ...] = (),
) -> IsisSnapshot:
    """Copy the visible state of the live engine. ``hostnames``: by level and system id.

    ``waiting``: LSPs still to be sent or acknowledged, by ifindex.
    """
    settings = instance.settings
    names = {
        system: name for _, known in sorted(hostnames.items()) for system, name in known.items()
    }
    return IsisSnapshot(
        system_id=instance.system_id,
        restarts=instance.settings.restarts,
        restarting=instance.restart,
        restarted=restarted,
        helper=instance.settings.restart_helper,
        help_ended=tuple(instance.help_ended),
        areas=settings.areas,
        hostname=settings.hostname,
        levels=settings.levels,
        families=settings.families,
        multi_topology=settings.multi_topology,
        reduction=settings.reduction,
        topologies=topologies,
        overloaded=overloaded,
        attached=attached,
        circuits=tuple(
            _circuit(instance, circuit, now, names, waiting.get(circuit.ifindex, 0))
            for circuit in instance.ordered_circuits()
        ),
        databases=tuple(
            _database(instance, lsdb, now, hostnames.get(level, {}))
            for level, lsdb in sorted(instance.databases.items())
        ),
        timers=len(instance.process.timers),
    )


def _circuit(
    instance: Instance,
    circuit: Circuit,
    now: float,
    hostnames: Mapping[int, str],
    pending: int,
) -> CircuitView:
    settings = circuit.settings
    advertised = circuit.advertised.bandwidth if circuit.advertised else None
    kind = CircuitKind.LOOPBACK if circuit.loopback else settings.kind
    return CircuitView(
        ifindex=circuit.ifindex,
        name=circuit.name,
        up=circuit.up,
        kind=kind.value,
        levels=LevelSet(settings.levels & instance.settings.levels),
        circuit_id=circuit.circuit_id,
        addresses=tuple((a.family, a.address, a.prefix_length) for a in circuit.link.addresses),
        mtu=circuit.link.mtu,
        metric=settings.metric,
        passive=settings.passive,
        prefix_suppression=settings.prefix_suppression and not circuit.loopback,
        priority=settings.priority,
        hello_interval=settings.hello_interval,
        hello_multiplier=settings.hello_multiplier,
        hello_in=_hello_in(circuit, now),
        capacity=circuit.bandwidth.capacity,
        utilized=circuit.utilized,
        advertised_capacity=advertised.capacity if advertised else None,
        advertised_available=advertised.available if advertised else None,
        lans=tuple(
            LanView(int(level), lan.dis, lan.is_dis) for level, lan in sorted(circuit.lan.items())
        ),
        pending=pending,
        authentication=_authentication(settings.authentication, instance.settings.epoch + now),
        adjacencies=tuple(
            _adjacency(instance.settings, a, now, hostnames) for a in all_adjacencies(circuit)
        ),
    )


def _hello_in(circuit: Circuit, now: float) -> float | None:
    timers = [circuit.hello_timer, *(lan.hello_timer for lan in circuit.lan.values())]
    return min((t.deadline - now for t in timers if t is not None and t.active), default=None)


def _adjacency(
    settings: IsisSettings, adjacency: Adjacency, now: float, hostnames: Mapping[int, str]
) -> AdjacencyView:
    circuit, since = adjacency.circuit, adjacency.up_since
    return AdjacencyView(
        system_id=adjacency.system_id,
        hostname=hostnames.get(adjacency.system_id),
        snpa=adjacency.snpa,
        ifindex=circuit.ifindex,
        interface=circuit.name,
        levels=adjacency.levels,
        state=adjacency.state.value,
        uptime=None if since is None else now - since,
        holding_time=adjacency.holding_time,
        expires_in=adjacency.expires - now,
        areas=adjacency.areas,
        ipv4=adjacency.ipv4,
        ipv6=adjacency.ipv6,
        nlpids=adjacency.nlpids,
        topologies=adjacency.topologies,
        priority=adjacency.priority,
        extended_circuit_id=adjacency.extended_circuit_id,
        bfd={
            "ipv4" if len(remote) == 4 else "ipv6": status.value
            for remote, status in adjacency.bfd.items()
        },
        flaps=adjacency.flaps,
        flooding=adjacency.flooding,
        restarting=adjacency.restarting,
        prepared=adjacency.prepared,
        problem=problem_of(settings, adjacency, now),
    )


def _authentication(keyring: Keyring, wall: float) -> KeyringView | None:
    return keyring_view(keyring, send_key(keyring, wall), wall)


def _database(
    instance: Instance, lsdb: Lsdb, now: float, hostnames: Mapping[int, str]
) -> DatabaseView:
    keys = instance.settings.lsp_keys(int(lsdb.level))
    shown = _authentication(keys, instance.settings.epoch + now)
    return DatabaseView(lsdb, now, hostnames, shown)
