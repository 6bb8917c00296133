"""The session state machine of RFC 5880 §6.2 and §6.8.6, as a table."""

from __future__ import annotations

import enum

from fared.core.fsm import Row, TransitionTable
from fared.protocols.bfd.packet import Diagnostic, State


class Event(enum.Enum):
    """What changes the state of a session: the state in a received packet, time, the operator."""

    RECEIVED_ADMIN_DOWN = "received AdminDown"
    RECEIVED_DOWN = "received Down"
    RECEIVED_INIT = "received Init"
    RECEIVED_UP = "received Up"
    EXPIRED = "detection time expired"
    DISABLED = "disabled"
    ENABLED = "enabled"


RECEIVED = {
    State.ADMIN_DOWN: Event.RECEIVED_ADMIN_DOWN,
    State.DOWN: Event.RECEIVED_DOWN,
    State.INIT: Event.RECEIVED_INIT,
    State.UP: Event.RECEIVED_UP,
}
"""The event of a received packet, by its state."""

_S, _E, _D = State, Event, Diagnostic

SESSION_TABLE: TransitionTable[State, Event, Diagnostic] = TransitionTable(
    [
        # RFC 5880 §6.8.6; the action is the diagnostic to set, None leaves it as it is. In
        # AdminDown all packets are discarded. Received Up in Down has no effect.
        Row((_S.INIT, _S.UP), _E.RECEIVED_ADMIN_DOWN, _D.NEIGHBOR_SIGNALED_DOWN, _S.DOWN),
        Row((_S.DOWN,), _E.RECEIVED_DOWN, None, _S.INIT),
        Row((_S.DOWN,), _E.RECEIVED_INIT, None, _S.UP),
        Row((_S.INIT,), _E.RECEIVED_INIT, None, _S.UP),
        Row((_S.INIT,), _E.RECEIVED_UP, None, _S.UP),
        Row((_S.UP,), _E.RECEIVED_DOWN, _D.NEIGHBOR_SIGNALED_DOWN, _S.DOWN),
        # §6.8.4
        Row((_S.INIT, _S.UP), _E.EXPIRED, _D.CONTROL_DETECTION_TIME_EXPIRED, _S.DOWN),
        # §6.8.16
        Row((_S.DOWN, _S.INIT, _S.UP), _E.DISABLED, _D.ADMINISTRATIVELY_DOWN, _S.ADMIN_DOWN),
        Row((_S.ADMIN_DOWN,), _E.ENABLED, _D.NONE, _S.DOWN),
    ]
)
