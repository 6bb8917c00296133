"""The neighbor data structure and its state machine as RFC 2328 §10.1 to §10.3 tables it."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from fared.core.fsm import Row, TransitionTable
from fared.core.reduction import Turn
from fared.core.timers import Timer
from fared.ospf.interface import Interface
from fared.ospf.lsdb import LsaEntry
from fared.ospf.packet.lsa import LsaHeader, LsaKey
from fared.ospf.packet.packets import DatabaseDescription, Options


class NeighborState(enum.IntEnum):
    """Neighbor states in their order of progress (RFC 2328 §10.1)."""

    DOWN = 0
    ATTEMPT = 1
    INIT = 2
    TWO_WAY = 3
    EXSTART = 4
    EXCHANGE = 5
    LOADING = 6
    FULL = 7

    @property
    def label(self) -> str:
        """The name operators know."""
        return _LABELS[self]


_LABELS = ("Down", "Attempt", "Init", "2-Way", "ExStart", "Exchange", "Loading", "Full")


class NeighborEvent(enum.Enum):
    """What happens to neighbors (RFC 2328 §10.2), by the RFC's names."""

    HELLO_RECEIVED = "HelloReceived"
    TWO_WAY_RECEIVED = "2-WayReceived"
    NEGOTIATION_DONE = "NegotiationDone"
    EXCHANGE_DONE = "ExchangeDone"
    BAD_LS_REQ = "BadLSReq"
    LOADING_DONE = "LoadingDone"
    ADJ_OK = "AdjOK?"
    SEQ_NUMBER_MISMATCH = "SeqNumberMismatch"
    ONE_WAY_RECEIVED = "1-WayReceived"
    KILL_NBR = "KillNbr"
    INACTIVITY_TIMER = "InactivityTimer"
    LL_DOWN = "LLDown"


class NeighborAction(enum.Enum):
    """What the rows of the table ask for."""

    RESTART_INACTIVITY = enum.auto()
    DECIDE_ADJACENCY = enum.auto()
    REVIEW_ADJACENCY = enum.auto()
    DESCRIBE_DATABASE = enum.auto()
    FINISH_EXCHANGE = enum.auto()
    RENEGOTIATE = enum.auto()
    CLEAR_LISTS = enum.auto()
    FORGET = enum.auto()


_S, _E, _A = NeighborState, NeighborEvent, NeighborAction
_HEARD = tuple(s for s in _S if s >= _S.INIT)
_TWO_WAY_OR_MORE = tuple(s for s in _S if s >= _S.TWO_WAY)
_ADJACENT = tuple(s for s in _S if s >= _S.EXSTART)
_EXCHANGED = tuple(s for s in _S if s >= _S.EXCHANGE)

NEIGHBOR_TABLE: TransitionTable[NeighborState, NeighborEvent, NeighborAction] = TransitionTable(
    [
        Row((_S.DOWN, _S.ATTEMPT), _E.HELLO_RECEIVED, _A.RESTART_INACTIVITY, _S.INIT),
        *(Row((s,), _E.HELLO_RECEIVED, _A.RESTART_INACTIVITY, s) for s in _HEARD),
        Row((_S.INIT,), _E.TWO_WAY_RECEIVED, _A.DECIDE_ADJACENCY, None),
        Row((_S.EXSTART,), _E.NEGOTIATION_DONE, _A.DESCRIBE_DATABASE, _S.EXCHANGE),
        Row((_S.EXCHANGE,), _E.EXCHANGE_DONE, _A.FINISH_EXCHANGE, None),
        Row((_S.LOADING,), _E.LOADING_DONE, None, _S.FULL),
        Row((_S.TWO_WAY,), _E.ADJ_OK, _A.DECIDE_ADJACENCY, None),
        Row(_ADJACENT, _E.ADJ_OK, _A.REVIEW_ADJACENCY, None),
        Row(_EXCHANGED, _E.SEQ_NUMBER_MISMATCH, _A.RENEGOTIATE, _S.EXSTART),
        Row(_EXCHANGED, _E.BAD_LS_REQ, _A.RENEGOTIATE, _S.EXSTART),
        Row(tuple(_S), _E.KILL_NBR, _A.FORGET, _S.DOWN),
        Row(tuple(_S), _E.LL_DOWN, _A.FORGET, _S.DOWN),
        Row(tuple(_S), _E.INACTIVITY_TIMER, _A.FORGET, _S.DOWN),
        Row(_TWO_WAY_OR_MORE, _E.ONE_WAY_RECEIVED, _A.CLEAR_LISTS, _S.INIT),
    ]
)


@dataclass(slots=True)
class Retransmission:
    """One LSA a neighbor has not acknowledged, and when to send it again.

    ``deferred``: it has not been sent yet, since the neighbor may get it from somebody else.
    """

    entry: LsaEntry
    due: float
    deferred: bool = False


class Neighbor:
    """The neighbor data structure (RFC 2328 §10).

    ``master`` says that *this* router leads the exchange. ``last_dd`` identifies the last
    database description received: (flags, options, sequence number).
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
        self.inactivity: Timer | None = None
        self.master = False
        self.dd_sequence_number: int | None = None
        self.last_dd: tuple[int, int, int] | None = None
        self.sent_dd: DatabaseDescription | None = None
        self.dd_timer: Timer | None = None
        self.dd_kept_until = 0.0
        self.summaries: deque[LsaEntry] = deque()
        self.requests: dict[LsaKey, LsaHeader] = {}
        self.outstanding: dict[LsaKey, None] = {}
        self.request_timer: Timer | None = None
        self.retransmissions: dict[LsaKey, Retransmission] = {}
        self.retransmission_timer: Timer | None = None
        self.turn = Turn()
        self.answered: dict[LsaKey, float] = {}
        self.direct: dict[LsaKey, LsaEntry] = {}
        self.acks: dict[LsaKey, LsaHeader] = {}
        self._fire = fire

    @property
    def key(self) -> int:
        """What its interface knows it by."""
        return self.interface.key(self.router_id, self.address)

    def fire(self, event: NeighborEvent) -> None:
        """Run an event through the state machine."""
        self._fire(self, event)

    @property
    def opaque_capable(self) -> bool:
        """Whether its database description set the O bit (RFC 5250 §3)."""
        return bool(self.options & Options.O)

    @property
    def exchanging(self) -> bool:
        """Whether it is in state Exchange or Loading."""
        return self.state in (NeighborState.EXCHANGE, NeighborState.LOADING)
