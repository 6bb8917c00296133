"""The state machine of a session (RFC 4271 §8.2.2), as a table.

Not here: DelayOpen, and events of which a state takes no notice. An event that a state must not see
is an error of the neighbor: a message out of turn (RFC 6608).
"""

from __future__ import annotations

import enum

from fared.core.fsm import Row, TransitionTable


class BgpState(enum.IntEnum):
    """States in their order of progress."""

    IDLE = 0
    CONNECT = 1
    ACTIVE = 2
    OPEN_SENT = 3
    OPEN_CONFIRM = 4
    ESTABLISHED = 5

    @property
    def label(self) -> str:
        """The name in ``show`` and in logs."""
        return _LABELS[self]


_LABELS = ("Idle", "Connect", "Active", "OpenSent", "OpenConfirm", "Established")


class SessionEvent(enum.Enum):
    """Events (RFC 4271 §8.1); values are the RFC's names."""

    START = "ManualStart, AutomaticStart"
    PASSIVE_START = "ManualStart_with_PassiveTcpEstablishment"
    STOP = "ManualStop, AutomaticStop"
    CONNECT_RETRY = "ConnectRetryTimer_Expires"
    HOLD_EXPIRED = "HoldTimer_Expires"
    SEND_HOLD_EXPIRED = "SendHoldTimer_Expires"
    """RFC 9687: the neighbor has read nothing for too long."""
    KEEPALIVE_DUE = "KeepaliveTimer_Expires"
    STREAM_OPENED = "Tcp_CR_Acked, TcpConnectionConfirmed"
    STREAM_CLOSED = "TcpConnectionFails"
    OPEN = "BGPOpen"
    BAD_MESSAGE = "BGPHeaderErr, BGPOpenMsgErr, UpdateMsgErr"
    COLLISION = "OpenCollisionDump"
    NOTIFICATION = "NotifMsg, NotifMsgVerErr"
    KEEPALIVE = "KeepAliveMsg"
    UPDATE = "UpdateMsg"
    REFRESH = "ROUTE-REFRESH"
    """Not in the RFC: treated as UPDATE is."""


class SessionAction(enum.Enum):
    """Actions of the table's rows."""

    CONNECT = enum.auto()
    LISTEN = enum.auto()
    SEND_OPEN = enum.auto()
    CONFIRM = enum.auto()
    ESTABLISH = enum.auto()
    SEND_KEEPALIVE = enum.auto()
    HEARD = enum.auto()
    DELIVER = enum.auto()
    NOTIFY = enum.auto()
    """Send the NOTIFICATION of the event, and close."""
    OUT_OF_TURN = enum.auto()
    """Send Finite State Machine Error, and close."""
    CLOSE = enum.auto()


_S, _E, _A = BgpState, SessionEvent, SessionAction
_BEFORE = (_S.CONNECT, _S.ACTIVE)
_OPEN = (_S.OPEN_SENT, _S.OPEN_CONFIRM, _S.ESTABLISHED)
_CONFIRMED = (_S.OPEN_CONFIRM, _S.ESTABLISHED)

SESSION_TABLE: TransitionTable[BgpState, SessionEvent, SessionAction] = TransitionTable(
    [
        # RFC 4271 §8.2.2, Idle: connections and messages are refused
        Row((_S.IDLE,), _E.START, _A.CONNECT, _S.CONNECT),
        Row((_S.IDLE,), _E.PASSIVE_START, _A.LISTEN, _S.ACTIVE),
        # Connect, Active
        Row(_BEFORE, _E.STOP, _A.CLOSE, _S.IDLE),
        Row(_BEFORE, _E.CONNECT_RETRY, _A.CONNECT, _S.CONNECT),
        Row(_BEFORE, _E.STREAM_OPENED, _A.SEND_OPEN, _S.OPEN_SENT),
        # Active, as in RFC 1771 and FRR, not Idle: that would refuse the neighbor's connections
        Row((_S.CONNECT,), _E.STREAM_CLOSED, _A.LISTEN, _S.ACTIVE),
        # OpenSent
        Row((_S.OPEN_SENT,), _E.STREAM_CLOSED, _A.LISTEN, _S.ACTIVE),
        Row((_S.OPEN_SENT,), _E.OPEN, _A.CONFIRM, _S.OPEN_CONFIRM),
        Row((_S.OPEN_SENT,), _E.KEEPALIVE, _A.OUT_OF_TURN, _S.IDLE),
        # OpenConfirm
        Row((_S.OPEN_CONFIRM,), _E.KEEPALIVE, _A.ESTABLISH, _S.ESTABLISHED),
        # Established
        Row((_S.ESTABLISHED,), _E.KEEPALIVE, _A.HEARD, _S.ESTABLISHED),
        Row((_S.ESTABLISHED,), _E.UPDATE, _A.DELIVER, _S.ESTABLISHED),
        Row((_S.ESTABLISHED,), _E.REFRESH, _A.DELIVER, _S.ESTABLISHED),
        # what several of them have in common
        *(Row((state,), _E.KEEPALIVE_DUE, _A.SEND_KEEPALIVE, state) for state in _CONFIRMED),
        Row(_CONFIRMED, _E.STREAM_CLOSED, _A.CLOSE, _S.IDLE),
        Row(_CONFIRMED, _E.OPEN, _A.OUT_OF_TURN, _S.IDLE),
        Row((_S.OPEN_SENT, _S.OPEN_CONFIRM), _E.UPDATE, _A.OUT_OF_TURN, _S.IDLE),
        Row((_S.OPEN_SENT, _S.OPEN_CONFIRM), _E.REFRESH, _A.OUT_OF_TURN, _S.IDLE),
        Row(_OPEN, _E.STOP, _A.NOTIFY, _S.IDLE),
        Row(_OPEN, _E.HOLD_EXPIRED, _A.NOTIFY, _S.IDLE),
        Row(_OPEN, _E.SEND_HOLD_EXPIRED, _A.NOTIFY, _S.IDLE),
        Row(_OPEN, _E.BAD_MESSAGE, _A.NOTIFY, _S.IDLE),
        Row(_OPEN, _E.COLLISION, _A.NOTIFY, _S.IDLE),
        # no NOTIFICATION is answered with another one, in OpenSent neither
        Row(_OPEN, _E.NOTIFICATION, _A.CLOSE, _S.IDLE),
    ]
)
