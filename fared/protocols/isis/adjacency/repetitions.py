"""Repeated hellos: one that equals the last of its neighbor only restarts the holding time.

A fast path beside ``Reception.receive``: tests/igp/test_repeated_hellos.py proves them equal; row
``IS-IS: repeated hellos``.
"""

from __future__ import annotations

from fared.protocols.igp.events import PacketReceived
from fared.protocols.isis.adjacency.fsm import Adjacencies, AdjacencyEvent
from fared.protocols.isis.circuit import Adjacency
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.codec import peek_type
from fared.protocols.isis.pdu.model import PduType

_STEADY = frozenset((AdjacencyEvent.UP_RECEIVED, AdjacencyEvent.TWO_WAY_RECEIVED))
"""Events without an action in state Up."""
_LAN_HELLOS = (PduType.L1_LAN_HELLO, PduType.L2_LAN_HELLO)


class Repetitions:
    """Remembers for each adjacency the hello that has no further effect if it is repeated."""

    def __init__(self, instance: Instance, adjacencies: Adjacencies) -> None:
        self._instance = instance
        self._process = instance.process
        self._adjacencies = adjacencies

    def repeated(self, received: PacketReceived) -> bool:
        """Process a PDU that equals the last hello of its neighbor; False: it does not.

        While nothing else has changed, it passes all tests, and only restarts the holding time (ISO
        10589 §8.2.5.2 e), §8.4.2.5.2). Authenticated hellos are verified each time.
        """
        circuit = self._instance.circuits.get(received.ifindex)
        kind = peek_type(received.payload)
        if circuit is None or kind is None:
            return False
        adjacency = circuit.adjacency if kind is PduType.P2P_HELLO else None
        if kind in _LAN_HELLOS and (lan := circuit.lan.get(Level(kind.level))) is not None:
            adjacency = lan.adjacencies.get(received.source)
        if adjacency is None or adjacency.settled_by is None:
            return False
        if adjacency.settled_by != self._circumstances(adjacency, received):
            return False
        circuit.counters.received[kind.label] += 1
        self._adjacencies.hold(adjacency, adjacency.holding_time)
        return True

    def settle(self, adjacency: Adjacency, event: AdjacencyEvent, received: PacketReceived) -> None:
        """Remember a hello that has no further effect if it is repeated."""
        steady = adjacency.up and event in _STEADY and not adjacency.circuit.settings.authentication
        adjacency.settled_by = self._circumstances(adjacency, received) if steady else None

    def _circumstances(self, adjacency: Adjacency, received: PacketReceived) -> tuple[object, ...]:
        """The values that determine the effect of a hello from a known neighbor."""
        circuit, settings = adjacency.circuit, self._instance.settings
        return (
            received.source,
            received.payload,
            circuit.up,
            circuit.link,
            circuit.settings,
            settings,
            adjacency.state,
            adjacency.levels,
        )
