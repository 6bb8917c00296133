"""The neighbor state machine of RFC 2328 §10.1 to §10.3, as a table."""

from __future__ import annotations

import enum

import msgspec

from fared.core.fsm import Row, TransitionTable


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
        """The name in ``show`` and in logs."""
        return _LABELS[self]


_LABELS = ("Down", "Attempt", "Init", "2-Way", "ExStart", "Exchange", "Loading", "Full")


class Helping(msgspec.Struct, frozen=True):
    """A graceful restart of a neighbor, during which this router is its helper (RFC 3623 §3).

    ``until``: the end of the grace period; ``reason`` is that of the grace LSA.
    """

    began: float
    until: float
    reason: int


class NeighborEvent(enum.Enum):
    """Neighbor events (RFC 2328 §10.2); values are the RFC's names."""

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
    BFD_DOWN = "BFD session down"
    """Not in the RFC: the BFD session with the neighbor failed (RFC 5882 §10.2)."""
    MTU_CHANGED = "MTU changed"
    """Not in the RFC: our MTU is smaller than the neighbor's from now on (§10.6)."""


class NeighborAction(enum.Enum):
    """Actions of the table's rows."""

    RESTART_INACTIVITY = enum.auto()
    DECIDE_ADJACENCY = enum.auto()
    REVIEW_ADJACENCY = enum.auto()
    DESCRIBE_DATABASE = enum.auto()
    FINISH_EXCHANGE = enum.auto()
    RENEGOTIATE = enum.auto()
    CLEAR_LISTS = enum.auto()
    FORGET = enum.auto()


_S, _E, _A = NeighborState, NeighborEvent, NeighborAction
_INIT_OR_MORE = tuple([s for s in _S if s >= _S.INIT])
_TWO_WAY_OR_MORE = tuple([s for s in _S if s >= _S.TWO_WAY])
_ADJACENT = tuple([s for s in _S if s >= _S.EXSTART])
_EXCHANGED = tuple([s for s in _S if s >= _S.EXCHANGE])

NEIGHBOR_TABLE: TransitionTable[NeighborState, NeighborEvent, NeighborAction] = TransitionTable(
    [
        # RFC 2328 §10.3. Not here: Start, for NBMA networks only; 2-WayReceived in 2-Way or greater
        # and 1-WayReceived in Init, which change nothing.
        # Every hello restarts the inactivity timer.
        Row((_S.DOWN, _S.ATTEMPT), _E.HELLO_RECEIVED, _A.RESTART_INACTIVITY, _S.INIT),
        *(Row((s,), _E.HELLO_RECEIVED, _A.RESTART_INACTIVITY, s) for s in _INIT_OR_MORE),
        # The neighbor lists this router: ExStart if an adjacency is due (§10.4), else 2-Way.
        Row((_S.INIT,), _E.TWO_WAY_RECEIVED, _A.DECIDE_ADJACENCY, None),
        # Database exchange (§10.6 to §10.9). ExchangeDone: Full if nothing is requested.
        Row((_S.EXSTART,), _E.NEGOTIATION_DONE, _A.DESCRIBE_DATABASE, _S.EXCHANGE),
        Row((_S.EXCHANGE,), _E.EXCHANGE_DONE, _A.FINISH_EXCHANGE, None),
        Row((_S.LOADING,), _E.LOADING_DONE, None, _S.FULL),
        # The DR or BDR changed (§9.4 (7)): form, keep or destroy the adjacency.
        Row((_S.TWO_WAY,), _E.ADJ_OK, _A.DECIDE_ADJACENCY, None),
        Row(_ADJACENT, _E.ADJ_OK, _A.REVIEW_ADJACENCY, None),
        # The exchange failed: tear the adjacency down and begin again.
        Row(_EXCHANGED, _E.SEQ_NUMBER_MISMATCH, _A.RENEGOTIATE, _S.EXSTART),
        Row(_EXCHANGED, _E.BAD_LS_REQ, _A.RENEGOTIATE, _S.EXSTART),
        Row(_EXCHANGED, _E.MTU_CHANGED, _A.RENEGOTIATE, _S.EXSTART),
        # The neighbor is lost.
        Row(tuple(_S), _E.KILL_NBR, _A.FORGET, _S.DOWN),
        Row(tuple(_S), _E.LL_DOWN, _A.FORGET, _S.DOWN),
        Row(tuple(_S), _E.INACTIVITY_TIMER, _A.FORGET, _S.DOWN),
        Row(tuple(_S), _E.BFD_DOWN, _A.FORGET, _S.DOWN),
        # The neighbor no longer lists this router.
        Row(_TWO_WAY_OR_MORE, _E.ONE_WAY_RECEIVED, _A.CLEAR_LISTS, _S.INIT),
    ]
)
