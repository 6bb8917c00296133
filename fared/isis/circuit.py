"""Circuits and adjacencies: the state that hellos build up (ISO 10589 §8.2, §8.4, RFC 5303)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fared.core.ids import isis_node
from fared.isis.ids import Level, LevelSet
from fared.isis.settings import CircuitKind
from fared.te.announce import Bandwidth

if TYPE_CHECKING:
    from fared.core.ids import NodeId, SystemId
    from fared.core.links import InterfaceAddress, Link
    from fared.core.timers import Timer
    from fared.isis.settings import CircuitSettings
    from fared.te.announce import Announced

_HOST_LOOPBACK = 127


class AdjacencyState(enum.Enum):
    """Adjacency states; values are display labels."""

    DOWN = "Down"
    INITIALIZING = "Initializing"
    UP = "Up"


@dataclass(slots=True, eq=False)
class Adjacency:
    """One neighbor on a circuit: of one level on a LAN, of one or both on a point-to-point link.

    ``levels`` are those in use. ``ipv4`` and ``ipv6`` are the addresses of its hellos (IPv6:
    link-local ones), the next hops. ``extended_circuit_id`` is the neighbor's own (RFC 5303),
    None where it sends none. ``lan_id`` is what its LAN hellos name (system id << 8 | pn).
    ``circuit_type`` holds the levels it offers, ``heard`` is when its last hello came.
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
    expires: float = 0.0
    hold_timer: Timer | None = None
    flaps: int = 0
    circuit_type: LevelSet = LevelSet.NONE
    heard: float = 0.0

    @property
    def up(self) -> bool:
        """Whether it is in state Up."""
        return self.state is AdjacencyState.UP


@dataclass(slots=True)
class LanLevel:
    """What a broadcast circuit keeps for each level.

    ``dis`` is the LAN id (system id << 8 | pseudonode number) of the designated IS, 0 while
    none is elected; ``is_dis``: this router is it.
    """

    level: Level
    adjacencies: dict[int, Adjacency] = field(default_factory=dict)
    """By SNPA."""
    dis: int = 0
    is_dis: bool = False
    may_elect: bool = False
    """Whether two hello intervals have passed (§8.4.5): before, nobody is elected."""
    hello_timer: Timer | None = None
    hello_credit: float = 0.0
    """Engine time up to which hellos sent so far have used up the allowance for quick ones."""
    elect_timer: Timer | None = None
    csnp_timer: Timer | None = None


class Circuit:
    """One interface on which IS-IS runs.

    ``circuit_id`` is the local circuit id, one byte, and the pseudonode number where this
    router is DIS; the extended one of RFC 5303 is the ifindex.
    """

    def __init__(self, link: Link, settings: CircuitSettings, circuit_id: int) -> None:
        self.link = link
        self.settings = settings
        self.circuit_id = circuit_id
        self.up = False
        self.adjacency: Adjacency | None = None
        """The neighbor of a point-to-point circuit, whatever its state."""
        self.lan: dict[Level, LanLevel] = {}
        """By level, on a broadcast circuit."""
        self.hello_timer: Timer | None = None
        self.hello_credit = 0.0
        self.flaps: dict[tuple[int, int], int] = {}
        """How often adjacencies were lost, by (system id, SNPA; 0 on point-to-point circuits)."""
        self.utilized: float | None = 0.0
        self.announced: Announced | None = None
        self.announce_timer: Timer | None = None

    @property
    def ifindex(self) -> int:
        """The kernel's index."""
        return self.link.ifindex

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.link.name

    @property
    def loopback(self) -> bool:
        """Whether it is announced as prefixes only."""
        return self.link.loopback or self.settings.kind is CircuitKind.LOOPBACK

    @property
    def broadcast(self) -> bool:
        """Whether it may have many neighbors, with a designated IS among them."""
        return self.settings.kind is CircuitKind.BROADCAST and not self.loopback

    @property
    def speaks(self) -> bool:
        """Whether PDUs are sent and received here."""
        return self.up and not self.settings.passive and not self.loopback

    def addresses(self, family: int) -> tuple[InterfaceAddress, ...]:
        """Addresses worth announcing: no 127.0.0.0/8, no ::1, link-local IPv6 included."""
        return tuple(
            a
            for a in self.link.addresses
            if a.family == family
            and not (family == 4 and a.address >> 24 == _HOST_LOOPBACK)
            and not (family == 6 and a.address == 1)
        )

    @property
    def bandwidth(self) -> Bandwidth:
        """Capacity (configured, else the link's own) and load, bytes/s."""
        capacity = self.settings.capacity
        if capacity is None:
            capacity = self.link.capacity
        return Bandwidth(capacity, self.utilized)

    def adjacencies(self, level: Level) -> list[Adjacency]:
        """The adjacencies of a level that are up, in a stable order."""
        if self.broadcast:
            lan = self.lan.get(level)
            known = [] if lan is None else [lan.adjacencies[key] for key in sorted(lan.adjacencies)]
        else:
            known = [] if self.adjacency is None else [self.adjacency]
        return [adjacency for adjacency in known if adjacency.up and adjacency.levels & level]

    def far_node(self, level: Level, adjacency: Adjacency) -> NodeId:
        """The TED vertex our LSP names for this adjacency: the neighbor, or the LAN's pseudonode."""
        if self.broadcast:
            dis = self.lan[level].dis
            return isis_node(dis >> 8, dis & 0xFF)
        return isis_node(adjacency.system_id)
