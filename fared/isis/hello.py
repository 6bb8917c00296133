"""The hello protocol: finding neighbors on point-to-point circuits and on LANs.

ISO 10589 §8.2 and §8.4, RFC 1195, three-way handshake of RFC 5303, point-to-point over LAN of
RFC 5309. Hellos come decoded and authenticated.
"""

from __future__ import annotations

from fared.core.ids import SystemId
from fared.isis.adjacency import Adjacencies, AdjacencyEvent, AdjacencyWatcher, all_adjacencies
from fared.isis.checks import (
    accept_offer,
    judge_lan,
    judge_p2p,
    levels_on,
    offer_in_force,
    offer_of,
)
from fared.isis.circuit import Adjacency, AdjacencyState, Circuit, LanLevel
from fared.isis.designation import Designation
from fared.isis.greeter import Greeter, voices
from fared.isis.ids import Level, LevelSet
from fared.isis.instance import Instance
from fared.isis.pdu.model import (
    IsNeighbors,
    LanHello,
    P2pHello,
    ThreeWay,
    ThreeWayState,
    of_type,
)
from fared.isis.transmit import Transmitter

MAX_LAN_ADJACENCIES = 200
"""What a hello on an Ethernet can list: about as many SNPAs fit into 1500 bytes."""
_ALIVE_SHARE = 3
"""A neighbor heard within this part of its holding time is there: nobody takes its place."""
_RECEIVED = {
    ThreeWayState.DOWN: AdjacencyEvent.DOWN_RECEIVED,
    ThreeWayState.INITIALIZING: AdjacencyEvent.INITIALIZING_RECEIVED,
    ThreeWayState.UP: AdjacencyEvent.UP_RECEIVED,
}


class HelloProtocol:
    """Sends and receives hellos on all circuits and keeps their adjacencies."""

    def __init__(
        self, instance: Instance, transmitter: Transmitter, watcher: AdjacencyWatcher
    ) -> None:
        self._instance = instance
        self._watcher = watcher
        self._greeter = Greeter(instance, transmitter)
        self._designation = Designation(instance, watcher, self._greeter.hurry)
        self._adjacencies = Adjacencies(
            instance, watcher, self._greeter.hurry, self._designation.elect
        )
        self._stopped = False

    # Circuits

    def circuit_up(self, circuit: Circuit) -> None:
        """Begin to speak on a circuit that is up and has settings that let it."""
        if self._stopped:
            return
        if circuit.broadcast:
            for level in levels_on(self._instance, circuit).levels:
                self._start_level(circuit, level)
        else:
            self._greeter.start(circuit, None)

    def circuit_down(self, circuit: Circuit, reason: str) -> None:
        """Say goodbye where the link still carries frames, and drop all neighbors."""
        if circuit.broadcast:
            for level in sorted(circuit.lan):
                self._stop_level(circuit, level, reason)
        else:
            self._greeter.stop(circuit, None)
            self._adjacencies.kill_all(circuit, reason)

    def circuit_changed(self, circuit: Circuit) -> None:
        """Link or settings of a circuit that goes on differ: what they mean to its neighbors.

        Adjacencies stay unless they are no longer allowed.
        """
        wanted = levels_on(self._instance, circuit)
        if circuit.broadcast:
            for level in Level:
                if level in circuit.lan and not wanted & level:
                    self._stop_level(circuit, level, "level switched off")
                elif wanted & level and level not in circuit.lan and not self._stopped:
                    self._start_level(circuit, level)
        for adjacency in all_adjacencies(circuit):
            self._judge_again(adjacency)
        self._greeter.hurry_all(circuit)
        for level in sorted(circuit.lan):
            self._designation.elect(circuit, level)

    def settings_changed(self) -> None:
        """The engine's settings differ: areas, protocols, topologies, size of LSPs.

        Another system id is another router: begin with another one of these.
        """
        for circuit in self._instance.ordered_circuits():
            if circuit.speaks:
                self.circuit_changed(circuit)

    def shutdown(self) -> None:
        """Say goodbye on all circuits and fall silent; adjacencies stay as they are."""
        self._stopped = True
        for circuit in self._instance.ordered_circuits():
            if circuit.speaks:
                for level in voices(circuit):
                    self._greeter.stop(circuit, level)

    def _start_level(self, circuit: Circuit, level: Level) -> None:
        circuit.lan[level] = LanLevel(level)
        self._greeter.start(circuit, level)
        self._designation.wait(circuit, level)

    def _stop_level(self, circuit: Circuit, level: Level, reason: str) -> None:
        lan = circuit.lan[level]
        self._greeter.stop(circuit, level)
        for snpa in sorted(lan.adjacencies):
            self._adjacencies.fire(lan.adjacencies[snpa], AdjacencyEvent.KILLED, reason)
        self._designation.leave(circuit, level)
        del circuit.lan[level]

    def _judge_again(self, adjacency: Adjacency) -> None:
        """Our own levels, areas or protocols differ."""
        offer = offer_in_force(adjacency)
        circuit = adjacency.circuit
        if circuit.broadcast:
            level = Level(int(adjacency.levels))
            levels, reason = judge_lan(self._instance, circuit, level, offer)
        else:
            levels, reason = judge_p2p(self._instance, circuit, offer)
        if not levels:
            self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)
        elif levels != adjacency.levels:
            self._adjacencies.use(adjacency, levels, "settings changed")

    # Receiving

    def receive_p2p(self, circuit: Circuit, source: int, hello: P2pHello) -> None:
        """Process a point-to-point hello (ISO 10589 §8.2.4, RFC 5303 §3.2)."""
        if self._unwanted(circuit, source, hello, of_lan=False):
            return
        three_way = next(iter(of_type(hello.tlvs, ThreeWay)), None)
        if three_way is not None and self._meant_for_others(circuit, source, three_way):
            return
        offer = offer_of(hello)
        levels, reason = judge_p2p(self._instance, circuit, offer)
        adjacency = self._p2p_neighbor(circuit, source, hello, levels, reason)
        if adjacency is None:
            return
        before = (adjacency.state, _said(adjacency))
        accept_offer(adjacency, offer)
        adjacency.snpa = source
        event = AdjacencyEvent.TWO_WAY_RECEIVED
        adjacency.extended_circuit_id = None
        if three_way is not None:
            adjacency.extended_circuit_id = three_way.extended_local_circuit_id
            event = _RECEIVED[ThreeWayState(three_way.state)]
        if levels != adjacency.levels:
            self._adjacencies.use(adjacency, levels, "neighbor changed its levels or areas")
        self._heard(adjacency, hello.holding_time, event, before)

    def _p2p_neighbor(
        self, circuit: Circuit, source: int, hello: P2pHello, levels: LevelSet, reason: str
    ) -> Adjacency | None:
        """Find the adjacency that a hello belongs to, or make it; None: it is turned away.

        Another router takes the place of a neighbor only once that has fallen silent.
        """
        adjacency = circuit.adjacency
        known = adjacency is not None and adjacency.system_id == hello.source_id
        if levels and known:
            return adjacency
        if levels and adjacency is not None and self._lives(adjacency):
            levels, reason = LevelSet.NONE, "second-neighbor"
        if not levels:
            self._reject(circuit, source, hello, reason)
        if adjacency is not None and (known or levels):
            reason = reason or "another neighbor came"
            self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)
        if not levels:
            return None
        return self._adjacencies.create(circuit, SystemId(hello.source_id), source, levels)

    def receive_lan(self, circuit: Circuit, source: int, hello: LanHello) -> None:
        """Process a LAN hello of one level (ISO 10589 §8.4.2)."""
        if self._unwanted(circuit, source, hello, of_lan=True):
            return
        level = Level(hello.level)
        lan = circuit.lan.get(level)
        offer = offer_of(hello)
        levels, reason = judge_lan(self._instance, circuit, level, offer)
        adjacency = None if lan is None else lan.adjacencies.get(source)
        if adjacency is not None and adjacency.system_id != hello.source_id:
            self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, "neighbor changed its id")
            adjacency = None
        if lan is None or not levels:
            self._reject(circuit, source, hello, reason)
            if adjacency is not None:
                self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)
            return
        if adjacency is None:
            if not self._room(lan):
                self._reject(circuit, source, hello, "too-many-neighbors")
                return
            adjacency = self._adjacencies.create(circuit, SystemId(hello.source_id), source, levels)
        before = (adjacency.state, _said(adjacency))
        standing = (adjacency.priority, adjacency.lan_id)
        accept_offer(adjacency, offer)
        adjacency.priority, adjacency.lan_id = hello.priority, hello.lan_id
        listed = any(
            circuit.link.hardware_address in tlv.snpas for tlv in of_type(hello.tlvs, IsNeighbors)
        )
        event = AdjacencyEvent.TWO_WAY_RECEIVED if listed else AdjacencyEvent.ONE_WAY_RECEIVED
        self._heard(adjacency, hello.holding_time, event, before)
        if standing != (adjacency.priority, adjacency.lan_id):
            self._designation.elect(circuit, level)

    def _heard(
        self,
        adjacency: Adjacency,
        holding_time: int,
        event: AdjacencyEvent,
        before: tuple[AdjacencyState, tuple[object, ...]],
    ) -> None:
        """Run the state machine, and tell if a neighbor that stays up says something else."""
        self._adjacencies.fire(adjacency, event)
        if adjacency.state is AdjacencyState.DOWN:
            return
        self._adjacencies.hold(adjacency, holding_time)
        state, said = before
        if adjacency.up and state is AdjacencyState.UP and said != _said(adjacency):
            self._watcher.circuit_changed(adjacency.circuit)

    def _unwanted(
        self, circuit: Circuit, source: int, hello: LanHello | P2pHello, *, of_lan: bool
    ) -> bool:
        """What no hello may be."""
        if self._stopped or not circuit.speaks:
            return True
        if circuit.broadcast != of_lan:
            reason = "network-type-mismatch"
        elif hello.source_id == self._instance.system_id:
            reason = "duplicate-system-id"
        elif hello.holding_time == 0 and not self._goodbye(circuit, source, hello):
            reason = "holding-time"
        else:
            return hello.holding_time == 0
        self._reject(circuit, source, hello, reason)
        return True

    def _goodbye(self, circuit: Circuit, source: int, hello: LanHello | P2pHello) -> bool:
        """A neighbor that wants to be held for no time is gone; False: it is none of ours."""
        adjacency = circuit.adjacency
        if isinstance(hello, LanHello):
            lan = circuit.lan.get(Level(hello.level))
            adjacency = None if lan is None else lan.adjacencies.get(source)
        if adjacency is None or adjacency.system_id != hello.source_id:
            return False
        self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, "neighbor said goodbye")
        return True

    def _meant_for_others(self, circuit: Circuit, source: int, three_way: ThreeWay) -> bool:
        """RFC 5303 §3.2: a hello that names another neighbor, or another circuit, is not for us.

        A neighbor that knows us by a former circuit id is told the present one at once.
        """
        neighbor = three_way.neighbor_system_id
        far_id = three_way.neighbor_extended_local_circuit_id
        if three_way.state not in _RECEIVED:
            self._instance.reject("three-way-state", source, interface=circuit.name)
            return True
        if neighbor is None or neighbor == self._instance.system_id:
            if far_id in (None, circuit.ifindex):
                return False
            self._greeter.hurry(circuit, None)
        self._instance.reject("three-way-mismatch", source, interface=circuit.name)
        return True

    def _lives(self, adjacency: Adjacency) -> bool:
        """Whether a stray hello of somebody else must not end it."""
        silence = self._instance.now - adjacency.heard
        return adjacency.up and silence * _ALIVE_SHARE < adjacency.holding_time

    def _room(self, lan: LanLevel) -> bool:
        """Whether one more neighbor has room; those that never heard us must make it.

        Source addresses are easily forged, and what a hello lists must fit into a frame.
        """
        if len(lan.adjacencies) < MAX_LAN_ADJACENCIES:
            return True
        idle = [adjacency for adjacency in lan.adjacencies.values() if not adjacency.up]
        if not idle:
            return False
        oldest = min(idle, key=lambda adjacency: (adjacency.heard, adjacency.snpa))
        self._adjacencies.fire(oldest, AdjacencyEvent.KILLED, "too many neighbors")
        return True

    def _reject(
        self, circuit: Circuit, source: int, hello: LanHello | P2pHello, reason: str
    ) -> None:
        self._instance.reject(reason, source, interface=circuit.name, system_id=hello.source_id)


def _said(adjacency: Adjacency) -> tuple[object, ...]:
    """What LSPs and next hops may be made of."""
    return (offer_in_force(adjacency), adjacency.snpa, adjacency.extended_circuit_id)
