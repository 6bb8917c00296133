"""Circuits and adjacencies: the state formed by hellos (ISO 10589 §8.2, §8.4, RFC 5303)."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from fared.core.bfd import BfdStatus
from fared.paths.te.advertise import AdvertisedLink
from fared.protocols.igp.counters import PacketCounters
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.reacquisition import Reacquisition
from fared.protocols.isis.settings import CircuitKind, CircuitSettings

if TYPE_CHECKING:
    from fared.core.ids import SystemId
    from fared.core.links import InterfaceAddress, Link
    from fared.core.timers import Timer
    from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters

_HOST_LOOPBACK = 127


class AdjacencyState(enum.Enum):
    """Adjacency states; values are display labels."""

    DOWN = "Down"
    INITIALIZING = "Initializing"
    UP = "Up"


class Adjacency(msgspec.Struct, eq=False):
    """One neighbor on a circuit: of one level on a LAN, of one or both on a point-to-point link.

    ``levels`` are those in use. ``ipv4`` and ``ipv6`` are the addresses of its hellos (IPv6:
    link-local ones), the next hops. ``extended_circuit_id`` is the neighbor's own (RFC 5303), None
    if it sends none. ``lan_id`` is that of its LAN hellos (system id << 8 | pn). ``circuit_type``
    holds the levels in its hellos, ``last_hello`` the time of the last one. ``settled_by``: the
    last hello and what its effect depends on, if it would only restart the holding time again.
    ``flooding``: how fast it receives LSPs (RFC 9681), None if it sends no such TLV.
    """

    circuit: Circuit
    system_id: SystemId
    snpa: int
    levels: LevelSet
    state: AdjacencyState = AdjacencyState.DOWN
    areas: tuple[bytes, ...] = ()
    ipv4: tuple[int, ...] = ()
    ipv6: tuple[int, ...] = ()
    nlpids: tuple[int, ...] = ()
    topologies: tuple[int, ...] = (0,)
    holding_time: int = 0
    priority: int = 0
    lan_id: int = 0
    extended_circuit_id: int | None = None
    up_since: float | None = None
    since: float = 0.0
    """When it entered its state."""
    padded_to: int = 0
    """The size of its last hello with padding, 0: there was none."""
    expires: float = 0.0
    hold_timer: Timer | None = None
    flaps: int = 0
    circuit_type: LevelSet = LevelSet.NONE
    last_hello: float = 0.0
    settled_by: tuple[object, ...] | None = None
    flooding: FloodingParameters | None = None
    bfd: dict[bytes, BfdStatus] = msgspec.field(default_factory=dict)
    """Its BFD sessions, by the neighbor's address."""
    bfd_enabled: tuple[tuple[int, int], ...] = ()
    """Topologies and NLPIDs of its BFD-enabled TLV (RFC 6213)."""
    bfd_held: bool = False
    """Its sessions have been up for the hold time."""
    bfd_hold_until: float = 0.0
    awaited: object = None
    """The event of its last hello, while it waits for its sessions."""
    restarting: bool = False
    """Whether its hellos request a restart (RFC 8706, "restart mode")."""
    prepared: bool = False
    """Whether it has announced a restart."""
    helped_until: float | None = None
    """The end of the help for it, from its beginning on; None: it does not restart."""
    suppressed: bool = False
    """Whether it asks not to be advertised (RFC 8706, SA)."""
    helps: bool = False
    """Whether its hellos have the restart TLV."""
    waits: bool = False
    """Whether it has acknowledged that this router is about to restart (PA)."""

    @property
    def up(self) -> bool:
        """Whether it is in state Up."""
        return self.state is AdjacencyState.UP


class LanLevel(msgspec.Struct):
    """State of one level of a broadcast circuit.

    ``dis`` is the LAN id (system id << 8 | pseudonode number) of the designated IS, 0 while none is
    elected; ``is_dis``: this router is it.
    """

    level: Level
    adjacencies: dict[int, Adjacency] = msgspec.field(default_factory=dict)
    """By SNPA."""
    dis: int = 0
    is_dis: bool = False
    may_elect: bool = False
    """Whether two hello intervals have passed (§8.4.1 d)): before, it does not elect itself."""
    hello_timer: Timer | None = None
    reacquiring: Reacquisition | None = None
    """The restart of this router on this circuit, None if it began without one."""
    hello_credit: float = 0.0
    """Engine time that limits immediate hellos: each one sent moves it forward."""
    elect_timer: Timer | None = None


class Circuit(AdvertisedLink[CircuitSettings]):
    """One interface on which IS-IS runs.

    ``circuit_id`` is the local circuit id, one byte, and the pseudonode number where this
    router is DIS; the extended one of RFC 5303 is the ifindex.
    """

    def __init__(self, link: Link, settings: CircuitSettings, circuit_id: int) -> None:
        super().__init__(link, settings)
        self.circuit_id = circuit_id
        self.counters = PacketCounters()
        self.up = False
        self.adjacency: Adjacency | None = None
        """The neighbor of a point-to-point circuit, in any state."""
        self.lan: dict[Level, LanLevel] = {}
        """By level, on a broadcast circuit."""
        self.hello_timer: Timer | None = None
        self.hello_credit = 0.0
        self.reacquiring: Reacquisition | None = None
        """The restart of this router here, None on a LAN, or if it began without one."""
        self.flaps: dict[tuple[int, int], int] = {}
        """How often adjacencies were lost, by (system id, SNPA; 0 on point-to-point circuits)."""

    @property
    def kind(self) -> CircuitKind:
        """The kind in effect."""
        return CircuitKind.LOOPBACK if self.loopback else self.settings.kind

    @property
    def loopback(self) -> bool:
        """Whether it is advertised as prefixes only."""
        return self.link.loopback or self.settings.kind is CircuitKind.LOOPBACK

    @property
    def prefix_suppression(self) -> bool:
        """Whether its network is not advertised; that of a loopback is, whatever the settings."""
        return self.settings.prefix_suppression and not self.loopback

    @property
    def broadcast(self) -> bool:
        """Whether it may have many neighbors, with a designated IS among them."""
        return self.settings.kind is CircuitKind.BROADCAST and not self.loopback

    @property
    def is_active(self) -> bool:
        """Whether PDUs are sent and received here."""
        return self.up and not self.settings.passive and not self.loopback

    def addresses(self, family: int) -> tuple[InterfaceAddress, ...]:
        """Addresses to advertise: no 127.0.0.0/8, no ::1, link-local IPv6 included."""
        return tuple(
            [
                a
                for a in self.link.addresses
                if a.family == family
                and not (family == 4 and a.address >> 24 == _HOST_LOOPBACK)
                and not (family == 6 and a.address == 1)
            ]
        )

    def adjacencies(self, level: Level) -> list[Adjacency]:
        """The adjacencies of a level that are up, in a stable order."""
        if self.broadcast:
            lan = self.lan.get(level)
            known = [] if lan is None else [lan.adjacencies[key] for key in sorted(lan.adjacencies)]
        else:
            known = [] if self.adjacency is None else [self.adjacency]
        return [adjacency for adjacency in known if adjacency.up and adjacency.levels & level]
