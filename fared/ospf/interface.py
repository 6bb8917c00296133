"""The interface data structure and its state machine (RFC 2328 §9)."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from fared.core.fsm import Row, TransitionTable
from fared.core.ids import length_mask
from fared.core.links import InterfaceAddress, Link
from fared.core.timers import Timer
from fared.ospf.authenticate import InterfaceAuthentication
from fared.ospf.lsdb import LsaEntry, Lsdb, Scope
from fared.ospf.packet.lsa import LsaHeader, LsaKey
from fared.ospf.packet.packets import PacketBody
from fared.ospf.settings import InterfaceSettings, NetworkType
from fared.te.announce import Announced, Bandwidth

if TYPE_CHECKING:
    from fared.ospf.neighbor import Neighbor

_HOST_LOOPBACK = 127


class InterfaceState(enum.Enum):
    """Interface states (RFC 2328 §9.1); values are display labels."""

    DOWN = "Down"
    LOOPBACK = "Loopback"
    WAITING = "Waiting"
    POINT_TO_POINT = "Point-to-point"
    DR_OTHER = "DR Other"
    BACKUP = "Backup"
    DR = "DR"


class InterfaceEvent(enum.Enum):
    """What happens to interfaces (RFC 2328 §9.2), by the RFC's names."""

    INTERFACE_UP = "InterfaceUp"
    WAIT_TIMER = "WaitTimer"
    BACKUP_SEEN = "BackupSeen"
    NEIGHBOR_CHANGE = "NeighborChange"
    LOOP_IND = "LoopInd"
    UNLOOP_IND = "UnloopInd"
    INTERFACE_DOWN = "InterfaceDown"


class InterfaceAction(enum.Enum):
    """What the rows of the table ask for."""

    START = enum.auto()
    ELECT = enum.auto()
    RESET = enum.auto()


_S, _E, _A = InterfaceState, InterfaceEvent, InterfaceAction

INTERFACE_TABLE: TransitionTable[InterfaceState, InterfaceEvent, InterfaceAction] = TransitionTable(
    [
        Row((_S.DOWN,), _E.INTERFACE_UP, _A.START, None),
        Row((_S.WAITING,), _E.WAIT_TIMER, _A.ELECT, None),
        Row((_S.WAITING,), _E.BACKUP_SEEN, _A.ELECT, None),
        Row((_S.DR_OTHER, _S.BACKUP, _S.DR), _E.NEIGHBOR_CHANGE, _A.ELECT, None),
        Row(tuple(_S), _E.INTERFACE_DOWN, _A.RESET, _S.DOWN),
        Row(tuple(s for s in _S if s is not _S.LOOPBACK), _E.LOOP_IND, _A.RESET, _S.LOOPBACK),
        Row((_S.LOOPBACK,), _E.UNLOOP_IND, None, _S.DOWN),
    ]
)


class Interface:
    """One interface on which OSPF runs (RFC 2328 §9).

    Neighbors are keyed by what identifies them (§10, ``key``). ``queue`` (destination and body),
    ``updates`` and ``acks`` collect what the next drain sends out of here.
    ``designated_router`` and ``backup_designated_router`` are interface addresses, 0: nobody.
    """

    def __init__(self, link: Link, settings: InterfaceSettings) -> None:
        self.link = link
        self.settings = settings
        self.state = InterfaceState.DOWN
        self.neighbors: dict[int, Neighbor] = {}
        self.lsdb = Lsdb(Scope.LINK, area=settings.area, ifindex=link.ifindex)
        self.lent: tuple[int, ...] = ()
        """Addresses of loopbacks, the preferred one first: what an unnumbered link borrows."""
        self.hello_timer: Timer | None = None
        self.hello_due = False
        self.wait_timer: Timer | None = None
        self.designated_router = 0
        self.backup_designated_router = 0
        self.queue: list[tuple[int, PacketBody]] = []
        self.updates: dict[LsaKey, LsaEntry] = {}
        self.acks: dict[LsaKey, LsaHeader] = {}
        self.acks_ripe = False
        """Whether acks have waited long enough for company (Transmitter)."""
        self.paced_until = float("-inf")
        """Until then floods wait for company (Transmitter)."""
        self.pacing_timer: Timer | None = None
        self.utilized: float | None = 0.0
        self.announced: Announced | None = None
        self.announce_timer: Timer | None = None
        self.flaps: dict[int, int] = {}
        self.authentication = InterfaceAuthentication()

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
        """Whether it is announced as host routes only."""
        return self.link.loopback or self.settings.network_type is NetworkType.LOOPBACK

    @property
    def broadcast(self) -> bool:
        """Whether it may have many neighbors, with a designated router among them."""
        return self.settings.network_type is NetworkType.BROADCAST and not self.loopback

    def key(self, router_id: int, address: int) -> int:
        """What identifies a neighbor here (§10): its address on broadcast networks, else its id."""
        return address if self.broadcast else router_id

    @property
    def speaks(self) -> bool:
        """Whether packets are sent and received here."""
        return self.state not in (_S.DOWN, _S.LOOPBACK) and not self.settings.passive

    @property
    def addresses(self) -> tuple[InterfaceAddress, ...]:
        """IPv4 addresses worth announcing: all but 127.0.0.0/8."""
        return tuple(a for a in self.link.ipv4() if a.address >> 24 != _HOST_LOOPBACK)

    @property
    def unnumbered(self) -> bool:
        """Whether it is a point-to-point link without an address of its own: borrowed, or none."""
        if self.loopback or self.broadcast or not self.lent:
            return False
        return all(address.address in self.lent for address in self.addresses)

    @property
    def address(self) -> int:
        """The address packets are sent from: the primary one, or one lent; 0 if there is none."""
        addresses = self.addresses
        if addresses:
            return addresses[0].address
        return self.lent[0] if self.unnumbered else 0

    @property
    def link_data(self) -> int:
        """What the router LSA calls this end of a link (§12.4.1.1): address, or interface index."""
        return self.ifindex if self.unnumbered else self.address

    @property
    def network_mask(self) -> int:
        """The mask of the primary address; 0 if there is none, or it is borrowed (§9.5)."""
        addresses = () if self.unnumbered else self.addresses
        return length_mask(addresses[0].prefix_length) if addresses else 0

    @property
    def bandwidth(self) -> Bandwidth:
        """Capacity (configured, else the link's own) and load, bytes/s."""
        capacity = self.settings.capacity
        if capacity is None:
            capacity = self.link.capacity
        return Bandwidth(capacity, self.utilized)
