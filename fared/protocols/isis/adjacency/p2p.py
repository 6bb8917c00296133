"""Hellos on point-to-point circuits: ISO 10589 §8.2.5.2, three-way handshake of RFC 5303."""

from __future__ import annotations

from collections.abc import Callable

from fared.core.ids import SystemId
from fared.protocols.igp.events import PacketReceived
from fared.protocols.isis.adjacency.checks import (
    advertised_facts,
    is_alive,
    judge_p2p,
    read_hello,
    store_hello,
)
from fared.protocols.isis.adjacency.fsm import AdjacencyEvent
from fared.protocols.isis.adjacency.processing import HelloParts
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.model import P2pHello
from fared.protocols.isis.pdu.tlvs import ThreeWay, ThreeWayState, of_type

_RECEIVED = {
    ThreeWayState.DOWN: AdjacencyEvent.DOWN_RECEIVED,
    ThreeWayState.INITIALIZING: AdjacencyEvent.INITIALIZING_RECEIVED,
    ThreeWayState.UP: AdjacencyEvent.UP_RECEIVED,
}


class P2pHellos:
    """Processes the hellos of point-to-point neighbors. ``send_now`` sends one at once."""

    def __init__(
        self, parts: HelloParts, send_now: Callable[[Circuit, Level | None], None]
    ) -> None:
        self._instance, self._processing, self._adjacencies, self._helper, self._reacquirer = parts
        self._process = parts.instance.process
        self._send_now = send_now

    def receive(self, circuit: Circuit, received: PacketReceived, hello: P2pHello) -> None:
        """Process a point-to-point hello (ISO 10589 §8.2.5.2, RFC 5303 §3.2)."""
        source = received.source
        if self._processing.is_ignored(circuit, source, hello, of_lan=False):
            return
        # RFC 5303 §3.2: with the three-way TLV, is the hello for this router and circuit?
        three_way = next(iter(of_type(hello.tlvs, ThreeWay)), None)
        if three_way is not None and self._names_another(circuit, source, hello, three_way):
            return
        # ISO 10589 §8.2.5.2 a), b): the adjacency usage; without one the action is Reject or Down
        facts = read_hello(hello)
        levels, reason = judge_p2p(self._instance, circuit, facts)
        adjacency = self._p2p_neighbor(circuit, source, hello, levels, reason)
        if adjacency is None:
            return
        before = (adjacency.state, advertised_facts(adjacency))
        # §8.2.5.2 e): area addresses and holding time; with them the TLVs of RFC 1195, 5308, 5120
        store_hello(adjacency, facts)
        adjacency.flooding = next(iter(of_type(hello.tlvs, FloodingParameters)), None)
        adjacency.snpa = source
        self._processing.accept(adjacency, received, hello)
        # Up or Accept: RFC 5303 §3.2 decides by the neighbor's state; without the TLV the
        # adjacency is two-way, as in ISO 10589
        event = AdjacencyEvent.TWO_WAY_RECEIVED
        adjacency.extended_circuit_id = None
        if three_way is not None:
            adjacency.extended_circuit_id = three_way.extended_local_circuit_id
            event = _RECEIVED[ThreeWayState(three_way.state)]
        # RFC 8706 §3.2.1: the adjacency of a neighbor that restarts stays as it is
        if self._helper.receive(adjacency, hello):
            self._processing.keep(adjacency, before)
            return
        # §3.3.1: and while this router restarts
        followed = self._reacquirer.follow(adjacency, hello, event)
        if followed is None:
            return
        event = followed
        # another usage: ``Adjacencies.use`` says how this deviates from the tables
        if levels != adjacency.levels:
            self._adjacencies.use(adjacency, levels, "neighbor changed its levels or areas")
        self._processing.run_state_machine(adjacency, hello.holding_time, event, before)
        self._processing.settle(adjacency, event, received)

    def _names_another(
        self, circuit: Circuit, source: int, hello: P2pHello, three_way: ThreeWay
    ) -> bool:
        """RFC 5303 §3.2: discard a hello that names another neighbor, or another circuit."""
        neighbor = three_way.neighbor_system_id
        far_id = three_way.neighbor_extended_local_circuit_id
        # §3.2: an invalid Adjacency Three-Way State
        if three_way.state not in _RECEIVED:
            self._processing.reject(circuit, source, hello, "three-way-state")
            return True
        # §3.2: neighbor ids are examined if present; the sender has none before it receives us
        if neighbor is None or neighbor == self._instance.system_id:
            if far_id in (None, circuit.ifindex):
                return False
            # It has a circuit id from before our restart: send it the present one.
            self._send_now(circuit, None)
        self._processing.reject(circuit, source, hello, "three-way-mismatch")
        return True

    def _p2p_neighbor(
        self, circuit: Circuit, source: int, hello: P2pHello, levels: LevelSet, reason: str
    ) -> Adjacency | None:
        """Find or create the adjacency of a hello; None: the hello is rejected."""
        adjacency = circuit.adjacency
        known = adjacency is not None and adjacency.system_id == hello.source_id
        # ISO 10589 §8.2.5.2: Accept
        if levels and known:
            return adjacency
        # §8.2.5.2 d), RFC 3719 §9: another system id takes the adjacency down. Deviation: only once
        # the present neighbor is silent, so that a stray or forged hello cannot do it.
        if levels and adjacency is not None and is_alive(adjacency, self._process.now):
            levels, reason = LevelSet.NONE, "second-neighbor"
        if not levels:
            self._processing.reject(circuit, source, hello, reason)
        # Down: no usage is left for this neighbor, or another system takes its place
        if adjacency is not None and (known or levels):
            reason = reason or "another neighbor came"
            self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)
        if not levels:
            return None
        # Up: RFC 5303 §3.2 creates the adjacency in three-way state Down
        return self._adjacencies.create(circuit, SystemId(hello.source_id), source, levels)
