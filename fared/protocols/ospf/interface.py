"""The interface and neighbor data structures (RFC 2328 §9, §10), which refer to each other.

The interface state machine is here too; that of neighbors is in ``neighbor``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import partial

from fared.core.bfd import BfdStatus
from fared.core.fsm import Row, TransitionTable
from fared.core.ids import length_mask
from fared.core.links import InterfaceAddress, Link
from fared.core.timers import Timer
from fared.paths.te.advertise import AdvertisedLink
from fared.protocols.igp.counters import PacketCounters
from fared.protocols.igp.events import Unicasts
from fared.protocols.igp.reduction import FloodDelay
from fared.protocols.ospf.auth.memory import InterfaceAuthentication
from fared.protocols.ospf.database_summary import SummaryList
from fared.protocols.ospf.lsdb import Lsdb, Scope
from fared.protocols.ospf.neighbor import Helping, NeighborEvent, NeighborState
from fared.protocols.ospf.outgoing import InterfaceTx, SendQueue
from fared.protocols.ospf.packet.lsa import LsaKey
from fared.protocols.ospf.packet.packets import DatabaseDescription, Options
from fared.protocols.ospf.settings import InterfaceSettings, NetworkType

_HOST_LOOPBACK = 127
SMALL_PACKET = 576
"""Bytes of the largest IP packet that every host accepts (RFC 791 §3.1)."""
_O_BIT = int(Options.O)


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
    """Interface events (RFC 2328 §9.2); values are the RFC's names."""

    INTERFACE_UP = "InterfaceUp"
    WAIT_TIMER = "WaitTimer"
    BACKUP_SEEN = "BackupSeen"
    NEIGHBOR_CHANGE = "NeighborChange"
    LOOP_IND = "LoopInd"
    UNLOOP_IND = "UnloopInd"
    INTERFACE_DOWN = "InterfaceDown"


class InterfaceAction(enum.Enum):
    """Actions of the table's rows."""

    START = enum.auto()
    ELECT = enum.auto()
    RESET = enum.auto()


_S, _E, _A = InterfaceState, InterfaceEvent, InterfaceAction

INTERFACE_TABLE: TransitionTable[InterfaceState, InterfaceEvent, InterfaceAction] = TransitionTable(
    [
        # RFC 2328 §9.3. Point-to-point, or on broadcast networks Waiting or DR Other.
        Row((_S.DOWN,), _E.INTERFACE_UP, _A.START, None),
        # DR, Backup or DR Other, by the election of §9.4.
        Row((_S.WAITING,), _E.WAIT_TIMER, _A.ELECT, None),
        Row((_S.WAITING,), _E.BACKUP_SEEN, _A.ELECT, None),
        Row((_S.DR_OTHER, _S.BACKUP, _S.DR), _E.NEIGHBOR_CHANGE, _A.ELECT, None),
        # Timers, neighbors and variables are reset.
        Row(tuple(_S), _E.INTERFACE_DOWN, _A.RESET, _S.DOWN),
        Row(tuple([s for s in _S if s is not _S.LOOPBACK]), _E.LOOP_IND, _A.RESET, _S.LOOPBACK),
        Row((_S.LOOPBACK,), _E.UNLOOP_IND, None, _S.DOWN),
    ]
)


class Interface(AdvertisedLink[InterfaceSettings]):
    """One interface on which OSPF runs (RFC 2328 §9).

    ``key`` gives the key of a neighbor (§10). ``tx`` is the send queue; an interface with something
    queued is in ``unsent``. ``designated_router`` and ``backup_designated_router`` are interface
    addresses, 0: none.
    """

    def __init__(
        self, link: Link, settings: InterfaceSettings, unsent: dict[int, Interface]
    ) -> None:
        super().__init__(link, settings)
        self.state = InterfaceState.DOWN
        self.counters = PacketCounters()
        self.neighbors: dict[int, Neighbor] = {}
        self.lsdb = Lsdb(Scope.LINK, area=settings.area, ifindex=link.ifindex)
        self._addresses: tuple[Link | None, tuple[InterfaceAddress, ...]] = None, ()
        """``addresses`` of a link, which is another object whenever something of it changes."""
        self.chosen: InterfaceAddress | None = None
        """The address that faces its neighbors, where that is not the primary one (``subnets``)."""
        self.borrowable: tuple[int, ...] = ()
        """Addresses of loopbacks, preferred first, for an unnumbered link to borrow."""
        self.hello_timer: Timer | None = None
        self.wait_timer: Timer | None = None
        self.move_timer: Timer | None = None
        self.designated_router = 0
        self.backup_designated_router = 0
        self.tx = InterfaceTx(partial(unsent.__setitem__, link.ifindex, self))
        self.flaps: dict[int, int] = {}
        self.authentication = InterfaceAuthentication()
        self.unicasts: Unicasts | None = None
        """Those that its sockets receive; None while they are closed."""
        self.accepted: tuple[object, ...] | None = None
        """What the checks of the last accepted packet depended on (RFC 2328 §8.2)."""
        self.largest_packet = link.mtu
        """The largest IP packet that this end and all neighbors can take, bytes."""

    def review_largest_packet(self) -> None:
        """The MTU, or what a neighbor can take, has changed."""
        limits = [neighbor.largest_packet for neighbor in self.neighbors.values()]
        self.largest_packet = min([self.link.mtu, *filter(None, limits)])

    @property
    def loopback(self) -> bool:
        """Whether it is advertised as host routes only."""
        return self.link.loopback or self.settings.network_type is NetworkType.LOOPBACK

    @property
    def prefix_suppression(self) -> bool:
        """Whether its network is not advertised; that of a loopback is, whatever the settings."""
        return self.settings.prefix_suppression and not self.loopback

    @property
    def broadcast(self) -> bool:
        """Whether it may have many neighbors, with a designated router among them."""
        return self.settings.network_type is NetworkType.BROADCAST and not self.loopback

    def key(self, router_id: int, address: int) -> int:
        """The key of a neighbor (§10): its address on broadcast networks, else its router id."""
        return address if self.broadcast else router_id

    @property
    def is_active(self) -> bool:
        """Whether OSPF packets are sent and received on it."""
        return self.state not in (_S.DOWN, _S.LOOPBACK) and not self.settings.passive

    @property
    def addresses(self) -> tuple[InterfaceAddress, ...]:
        """The IPv4 addresses to advertise: all except 127.0.0.0/8."""
        link, addresses = self._addresses
        if link is not self.link:
            link = self.link
            addresses = _routable(link)
            self._addresses = link, addresses
        return addresses

    @property
    def own(self) -> InterfaceAddress | None:
        """The address in use: that in the subnet of the neighbors, else the primary one."""
        return self._pick(self.addresses)

    def keeps_own(self, link: Link) -> bool:
        """Whether the address in use remains the same on a changed link."""
        return self._pick(_routable(link)) == self.own

    def _pick(self, addresses: tuple[InterfaceAddress, ...]) -> InterfaceAddress | None:
        if self.chosen is not None and self.chosen in addresses:
            return self.chosen
        return addresses[0] if addresses else None

    def facing(self, far: int) -> InterfaceAddress | None:
        """The address whose network contains another address, the one in use first."""
        known = [address for address in self.addresses if address.contains(far)]
        return self.own if self.own in known else next(iter(known), None)

    @property
    def advertised_mtu(self) -> int:
        """The interface MTU in our database descriptions (RFC 2328 §A.3.3), 16 bits."""
        return min(self.link.mtu, 0xFFFF)

    @property
    def unnumbered(self) -> bool:
        """Whether it is a point-to-point link without an address of its own (§12.4.1.1)."""
        if not self.borrowable:
            return False
        for address in self.addresses:
            if address.address not in self.borrowable:
                return False
        return not self.loopback and not self.broadcast

    @property
    def address(self) -> int:
        """The source address of packets: the one in use, or a borrowed one; 0 if there is none."""
        own = self.own
        if own is not None:
            return own.address
        return self.borrowable[0] if self.unnumbered else 0

    @property
    def link_data(self) -> int:
        """Link Data of this end of a link (§12.4.1.1): address, or ifindex if unnumbered."""
        return self.ifindex if self.unnumbered else self.address

    @property
    def network_mask(self) -> int:
        """The mask of the address in use; 0 if there is none, or it is borrowed (§9.5)."""
        own = None if self.unnumbered else self.own
        return 0 if own is None else length_mask(own.prefix_length)

    @property
    def explicit_source(self) -> int:
        """The source address that packets must be given; 0: the kernel takes the same one."""
        return self.address if self.chosen is not None or self.unnumbered else 0


def _routable(link: Link) -> tuple[InterfaceAddress, ...]:
    return tuple([a for a in link.ipv4() if a.address >> 24 != _HOST_LOOPBACK])


class Neighbor:
    """The neighbor data structure (RFC 2328 §10).

    ``waits``: for its turn to form an adjacency (``admission``); ``initial_dd`` is the first
    description that it has sent meanwhile. ``progress_at``: when the exchange last made progress.
    ``master``: *this* router is the master of the exchange. ``last_dd``: flags, options and
    sequence number of the last description received; ``mtu``: its interface MTU, 0 before the
    first. ``agreed_mtus``: its and ours when the exchange was done. ``dd_kept_until``: until when
    the slave resends ``sent_dd`` (§10.8). ``requests``: link state request list, headers by
    ``name_of``; ``outstanding``: those in the last request (§10.9), or requested from another
    neighbor.
    ``bit``: its bit in bitmaps (``participants``), 0 below Exchange. ``sent_back``: when an LSA was
    last sent back (§13 (8)).
    """

    def __init__(
        self,
        interface: Interface,
        router_id: int,
        address: int,
        fire: Callable[[Neighbor, NeighborEvent], None],
    ) -> None:
        self.interface = interface
        self.router_id = router_id
        self.address = address
        self.state = NeighborState.DOWN
        self.since = 0.0
        self.priority = 0
        self.designated_router = 0
        self.backup_designated_router = 0
        self.options = 0
        self.dead_at = 0.0
        self.waits = False
        self.progress_at = 0.0
        self.initial_dd: DatabaseDescription | None = None
        self.last_hello: tuple[object, ...] | None = None
        self.inactivity: Timer | None = None
        self.helping: Helping | None = None
        self.master = False
        self.dd_sequence_number: int | None = None
        self.last_dd: tuple[int, int, int] | None = None
        self.sent_dd: DatabaseDescription | None = None
        self.dd_timer: Timer | None = None
        self.dd_kept_until = 0.0
        self.mtu = 0
        self.agreed_mtus: tuple[int, int] = 0, 0
        self.announces_mtu = False
        """Whether it repeats its last description when its MTU changes (``adjacency.mtu``)."""
        self.mtu_timer: Timer | None = None
        self.confined = False
        """Whether packets are small, since it does not acknowledge larger ones."""
        self.summaries = SummaryList()
        self.requests: dict[bytes, bytes] = {}
        self.outstanding: dict[bytes, bytes] = {}
        self.request_timer: Timer | None = None
        self.bit = 0
        self.bfd: BfdStatus | None = None
        """The status of its BFD session, None if it has none."""
        self.awaits_bfd = False
        """RFC 9355: it stays in Init, and is not listed in hellos, until its session is up."""
        self.bfd_since = 0.0
        """When its session came up, in strict mode."""
        self.lists_us = False
        """Whether its last hello lists this router."""
        self.flood_delay = FloodDelay()
        self.sent_back: dict[LsaKey, float] = {}
        self.tx = SendQueue(interface.tx.wake)
        self._fire = fire

    @property
    def key(self) -> int:
        """Its key among the neighbors of the interface."""
        return self.interface.key(self.router_id, self.address)

    @property
    def flaps(self) -> int:
        """How often it was lost."""
        return self.interface.flaps.get(self.router_id, 0)

    def fire(self, event: NeighborEvent) -> None:
        """Run an event through the state machine."""
        self._fire(self, event)

    @property
    def adjacent(self) -> bool:
        """Whether LSAs advertise it as fully adjacent: also while it restarts (RFC 3623 §3.1)."""
        return self.state is NeighborState.FULL or self.helping is not None

    @property
    def bidirectional(self) -> bool:
        """Whether it takes part in elections: 2-Way or greater, or it restarts."""
        return self.state >= NeighborState.TWO_WAY or self.helping is not None

    @property
    def opaque_capable(self) -> bool:
        """Whether its database descriptions have the O-bit set (RFC 5250 §3.1)."""
        return bool(int(self.options) & _O_BIT)  # as integers: flags would take five calls

    @property
    def largest_packet(self) -> int:
        """The largest IP packet to send to it, bytes; 0: it has not said."""
        return SMALL_PACKET if self.confined else self.mtu

    @property
    def exchanging(self) -> bool:
        """Whether it is in state Exchange or Loading."""
        return self.state in (NeighborState.EXCHANGE, NeighborState.LOADING)
