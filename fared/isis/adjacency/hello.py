"""The hello protocol: finding neighbors on point-to-point circuits and on LANs.

ISO 10589 §8.2 and §8.4, RFC 1195, three-way handshake of RFC 5303, point-to-point over LAN of RFC
5309. Hellos arrive here decoded and authenticated: of the acceptance tests (§8.2.5.1, §8.4.2.1)
those of the header are in ``pdu.header``, authentication in ``pdu.auth``.
"""

from __future__ import annotations

from fared.core.ids import FAMILY_IPV4, SystemId, format_system_id
from fared.core.igp import PacketReceived
from fared.isis.addresses import router_addresses
from fared.isis.adjacency.checks import (
    advertised_facts,
    is_alive,
    judge_lan,
    judge_p2p,
    levels_on,
    read_hello,
    store_hello,
    stored_hello,
)
from fared.isis.adjacency.detection import FailureDetection
from fared.isis.adjacency.dis_election import DisElection
from fared.isis.adjacency.fsm import Adjacencies, AdjacencyEvent, AdjacencyWatcher, all_adjacencies
from fared.isis.adjacency.hello_timer import HelloTimer, hello_levels
from fared.isis.adjacency.reacquirer import Reacquirer
from fared.isis.adjacency.restart import RestartHelper
from fared.isis.circuit import Adjacency, AdjacencyState, Circuit, LanLevel
from fared.isis.ids import Level, LevelSet
from fared.isis.instance import Instance
from fared.isis.pdu.codec import peek_type
from fared.isis.pdu.flooding_parameters import FloodingParameters
from fared.isis.pdu.model import LanHello, P2pHello, PduType
from fared.isis.pdu.tlvs import IsNeighbors, ThreeWay, ThreeWayState, of_type
from fared.isis.transmit import Transmitter

MAX_LAN_ADJACENCIES = 200
"""Neighbors on a LAN at most: about as many SNPAs fit into a hello of 1500 bytes."""
_RECEIVED = {
    ThreeWayState.DOWN: AdjacencyEvent.DOWN_RECEIVED,
    ThreeWayState.INITIALIZING: AdjacencyEvent.INITIALIZING_RECEIVED,
    ThreeWayState.UP: AdjacencyEvent.UP_RECEIVED,
}
_STEADY = frozenset((AdjacencyEvent.UP_RECEIVED, AdjacencyEvent.TWO_WAY_RECEIVED))
"""Events without an action in state Up."""
_LAN_HELLOS = (PduType.L1_LAN_HELLO, PduType.L2_LAN_HELLO)


class HelloProtocol:
    """Sends and receives hellos on all circuits and keeps their adjacencies."""

    def __init__(
        self, instance: Instance, transmitter: Transmitter, watcher: AdjacencyWatcher
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._watcher = watcher
        self._hello_timer = HelloTimer(instance, transmitter)
        self._dis_election = DisElection(instance, watcher, self._hello_timer.send_now)
        self.detection = FailureDetection(instance, self._bfd_failed, self._bfd_up)
        self._adjacencies = Adjacencies(
            instance,
            watcher,
            self._hello_timer.send_now,
            self._dis_election.elect,
            self.detection.follow,
        )
        self.helper = RestartHelper(
            instance, watcher, self._adjacencies, self._hello_timer.send_now
        )
        self.reacquirer = Reacquirer(instance, self._hello_timer.send_now)
        self._stopped = False
        self._borrowed: tuple[int, ...] = ()
        """The address in hellos on interfaces without an IPv4 address."""

    # Circuits

    def circuit_up(self, circuit: Circuit) -> None:
        """Start hellos on a circuit that is up and enabled."""
        if self._stopped:
            return
        # ISO 10589 §8.4.1 a) and d): hellos of each level of a LAN, and its election
        if circuit.broadcast:
            for level in levels_on(self._instance, circuit).levels:
                self._start_level(circuit, level)
        else:
            self.reacquirer.begin(circuit, None)
            self._hello_timer.start(circuit, None)

    def circuit_down(self, circuit: Circuit, reason: str) -> None:
        """Send final hellos where the link still carries frames, and remove all neighbors."""
        if circuit.broadcast:
            for level in sorted(circuit.lan):
                self._stop_level(circuit, level, reason)
        else:
            self._hello_timer.stop(circuit, None)
            self._adjacencies.kill_all(circuit, reason)

    def circuit_changed(self, circuit: Circuit) -> None:
        """Link or settings of an active circuit changed: apply them to its neighbors.

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
            self._reexamine(adjacency)
            self.detection.follow(adjacency)
        self._hello_timer.send_now_all(circuit)
        for level in sorted(circuit.lan):
            self._dis_election.elect(circuit, level)

    def loopback_changed(self) -> None:
        """Interfaces without an IPv4 address advertise that of a loopback; at once if changed."""
        borrowed = router_addresses(self._instance, FAMILY_IPV4)[:1]
        if borrowed == self._borrowed:
            return
        self._borrowed = borrowed
        for circuit in self._instance.ordered_circuits():
            if circuit.is_active and not circuit.addresses(FAMILY_IPV4):
                self._hello_timer.send_now_all(circuit)

    def settings_changed(self) -> None:
        """The engine's settings changed: areas, protocols, topologies, size of LSPs.

        A new system id requires a new ``HelloProtocol``.
        """
        for circuit in self._instance.ordered_circuits():
            if circuit.is_active:
                self.circuit_changed(circuit)

    def announce_restart(self) -> None:
        """Announce a restart of this router to all neighbors at once (RFC 8706 §3.2.3)."""
        for circuit in self._instance.ordered_circuits():
            if circuit.is_active:
                self._hello_timer.send_now_all(circuit)

    def shutdown(self) -> None:
        """Send final hellos on all circuits, and none after them; adjacencies stay as they are."""
        self._stopped = True
        for circuit in self._instance.ordered_circuits():
            if circuit.is_active:
                for level in hello_levels(circuit):
                    self._hello_timer.stop(circuit, level)

    def _start_level(self, circuit: Circuit, level: Level) -> None:
        circuit.lan[level] = LanLevel(level)
        self.reacquirer.begin(circuit, level)
        self._hello_timer.start(circuit, level)
        self._dis_election.wait(circuit, level)

    def _stop_level(self, circuit: Circuit, level: Level, reason: str) -> None:
        lan = circuit.lan[level]
        self._hello_timer.stop(circuit, level)
        for snpa in sorted(lan.adjacencies):
            self._adjacencies.fire(lan.adjacencies[snpa], AdjacencyEvent.KILLED, reason)
        self._dis_election.leave(circuit, level)
        del circuit.lan[level]

    def _reexamine(self, adjacency: Adjacency) -> None:
        """Check an adjacency against our changed levels, areas, protocols or topologies."""
        facts = stored_hello(adjacency)
        circuit = adjacency.circuit
        if circuit.broadcast:
            level = Level(int(adjacency.levels))
            levels, reason = judge_lan(self._instance, circuit, level, facts)
        else:
            levels, reason = judge_p2p(self._instance, circuit, facts)
        if not levels:
            self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)
        elif levels != adjacency.levels:
            self._adjacencies.use(adjacency, levels, "settings changed")

    # Receiving

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
        self._process.counters.packets["received", kind.label] += 1
        self._adjacencies.hold(adjacency, adjacency.holding_time)
        return True

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

    def receive_p2p(self, circuit: Circuit, received: PacketReceived, hello: P2pHello) -> None:
        """Process a point-to-point hello (ISO 10589 §8.2.5.2, RFC 5303 §3.2)."""
        source = received.source
        if self._is_ignored(circuit, source, hello, of_lan=False):
            return
        # RFC 5303 §3.2: with the three-way TLV, is the hello for this router and circuit?
        three_way = next(iter(of_type(hello.tlvs, ThreeWay)), None)
        if three_way is not None and self._names_another(circuit, source, three_way):
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
        # Up or Accept: RFC 5303 §3.2 decides by the neighbor's state; without the TLV the
        # adjacency is two-way, as in ISO 10589
        event = AdjacencyEvent.TWO_WAY_RECEIVED
        adjacency.extended_circuit_id = None
        if three_way is not None:
            adjacency.extended_circuit_id = three_way.extended_local_circuit_id
            event = _RECEIVED[ThreeWayState(three_way.state)]
        # RFC 8706 §3.2.1: the adjacency of a neighbor that restarts stays as it is
        if self.helper.receive(adjacency, hello):
            self._keep(adjacency, before)
            return
        # §3.3.1: and while this router restarts
        followed = self.reacquirer.follow(adjacency, hello, event)
        if followed is None:
            return
        event = followed
        # another usage: ``Adjacencies.use`` says how this deviates from the tables
        if levels != adjacency.levels:
            self._adjacencies.use(adjacency, levels, "neighbor changed its levels or areas")
        self._run_state_machine(adjacency, hello.holding_time, event, before)
        self._settle(adjacency, event, received)

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
            self._reject(circuit, source, hello, reason)
        # Down: no usage is left for this neighbor, or another system takes its place
        if adjacency is not None and (known or levels):
            reason = reason or "another neighbor came"
            self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)
        if not levels:
            return None
        # Up: RFC 5303 §3.2 creates the adjacency in three-way state Down
        return self._adjacencies.create(circuit, SystemId(hello.source_id), source, levels)

    def receive_lan(self, circuit: Circuit, received: PacketReceived, hello: LanHello) -> None:
        """Process a LAN hello of one level (ISO 10589 §8.4.2)."""
        source = received.source
        if self._is_ignored(circuit, source, hello, of_lan=True):
            return
        level = Level(hello.level)
        lan = circuit.lan.get(level)
        facts = read_hello(hello)
        levels, reason = judge_lan(self._instance, circuit, level, facts)
        adjacency = None if lan is None else lan.adjacencies.get(source)
        # §8.4.2.4: an existing adjacency has this SNPA, level and system id; another system id is
        # that of another system
        if adjacency is not None and adjacency.system_id != hello.source_id:
            self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, "neighbor changed its id")
            adjacency = None
        # §8.4.2.2, §8.4.2.3
        if lan is None or not levels:
            self._reject(circuit, source, hello, reason)
            if adjacency is not None:
                self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)
            return
        # §8.4.2.5: a new adjacency
        if adjacency is None:
            if not self._make_room(lan):
                self._reject(circuit, source, hello, "too-many-neighbors")
                return
            adjacency = self._adjacencies.create(circuit, SystemId(hello.source_id), source, levels)
        before = (adjacency.state, advertised_facts(adjacency))
        standing = (adjacency.priority, adjacency.lan_id)
        store_hello(adjacency, facts)
        adjacency.priority, adjacency.lan_id = hello.priority, hello.lan_id
        # §8.4.2.5.1: two-way once the neighbor lists our SNPA; §8.4.2.5.3: no longer
        listed = any(
            circuit.link.hardware_address in tlv.snpas for tlv in of_type(hello.tlvs, IsNeighbors)
        )
        event = AdjacencyEvent.TWO_WAY_RECEIVED if listed else AdjacencyEvent.ONE_WAY_RECEIVED
        # RFC 8706 §3.2.1: so does that of one on a LAN, and so does the election
        if self.helper.receive(adjacency, hello):
            adjacency.priority, adjacency.lan_id = standing
            self._keep(adjacency, before)
            return
        self.reacquirer.follow(adjacency, hello, event)
        self._run_state_machine(adjacency, hello.holding_time, event, before)
        # §8.4.5: the priority decides; the LAN id shows whether the neighbor has elected itself
        if standing != (adjacency.priority, adjacency.lan_id):
            self._dis_election.elect(circuit, level)
        self._settle(adjacency, event, received)

    def _keep(
        self, adjacency: Adjacency, before: tuple[AdjacencyState, tuple[object, ...]]
    ) -> None:
        """The neighbor restarts: report changed contents; no hello of it is a repetition."""
        adjacency.settled_by = None
        if before[1] != advertised_facts(adjacency):
            self._watcher.circuit_changed(adjacency.circuit)

    def _settle(
        self, adjacency: Adjacency, event: AdjacencyEvent, received: PacketReceived
    ) -> None:
        """Remember a hello that has no further effect if it is repeated."""
        steady = adjacency.up and event in _STEADY and not adjacency.circuit.settings.authentication
        adjacency.settled_by = self._circumstances(adjacency, received) if steady else None

    def _run_state_machine(
        self,
        adjacency: Adjacency,
        holding_time: int,
        event: AdjacencyEvent,
        before: tuple[AdjacencyState, tuple[object, ...]],
    ) -> None:
        """Fire the event, and report a neighbor that stays up with changed contents."""
        adjacency.awaited = event if self.detection.waits(adjacency) else None
        if adjacency.awaited is None:
            self._adjacencies.fire(adjacency, event)
        elif adjacency.state is AdjacencyState.DOWN:
            # RFC 6213 §3.2: Initializing, and no further until BFD is up
            lan = adjacency.circuit.broadcast
            self._adjacencies.fire(
                adjacency,
                AdjacencyEvent.ONE_WAY_RECEIVED if lan else AdjacencyEvent.DOWN_RECEIVED,
            )
        # RFC 5303 §3.2, action Down: there is no adjacency to hold
        if adjacency.state is AdjacencyState.DOWN:
            return
        self._adjacencies.hold(adjacency, holding_time)
        self.detection.follow(adjacency)
        state, facts = before
        if adjacency.up and state is AdjacencyState.UP and facts != advertised_facts(adjacency):
            self._watcher.circuit_changed(adjacency.circuit)

    def _bfd_failed(self, adjacency: Adjacency, reason: str) -> None:
        self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)

    def _bfd_up(self, adjacency: Adjacency) -> None:
        """Process the hello that the adjacency could not follow before its sessions were up."""
        event, adjacency.awaited = adjacency.awaited, None
        if isinstance(event, AdjacencyEvent):
            self._adjacencies.fire(adjacency, event)

    def _is_ignored(
        self, circuit: Circuit, source: int, hello: LanHello | P2pHello, *, of_lan: bool
    ) -> bool:
        """Whether a hello needs no further processing; rejects invalid ones."""
        if self._stopped or not circuit.is_active:
            return True
        # a LAN hello on a point-to-point circuit, or the reverse
        if circuit.broadcast != of_lan:
            reason = "network-type-mismatch"
        # a hello of ours that came back, or two systems with one system id
        elif hello.source_id == self._instance.system_id:
            reason = "duplicate-system-id"
        # A holding time of 0 expires at once: a final hello. Without an adjacency it is an error.
        elif hello.holding_time == 0 and not self._end_by_final_hello(circuit, source, hello):
            reason = "holding-time"
        else:
            return hello.holding_time == 0
        self._reject(circuit, source, hello, reason)
        return True

    def _end_by_final_hello(
        self, circuit: Circuit, source: int, hello: LanHello | P2pHello
    ) -> bool:
        """End the adjacency with a neighbor whose holding time is 0; False: there is none."""
        adjacency = circuit.adjacency
        if isinstance(hello, LanHello):
            lan = circuit.lan.get(Level(hello.level))
            adjacency = None if lan is None else lan.adjacencies.get(source)
        if adjacency is None or adjacency.system_id != hello.source_id:
            return False
        self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, "neighbor sent a final hello")
        return True

    def _names_another(self, circuit: Circuit, source: int, three_way: ThreeWay) -> bool:
        """RFC 5303 §3.2: discard a hello that names another neighbor, or another circuit."""
        neighbor = three_way.neighbor_system_id
        far_id = three_way.neighbor_extended_local_circuit_id
        # §3.2: an invalid Adjacency Three-Way State
        if three_way.state not in _RECEIVED:
            self._process.reject("three-way-state", source, interface=circuit.name)
            return True
        # §3.2: neighbor ids are examined if present; the sender has none before it receives us
        if neighbor is None or neighbor == self._instance.system_id:
            if far_id in (None, circuit.ifindex):
                return False
            # It has a circuit id from before our restart: send it the present one.
            self._hello_timer.send_now(circuit, None)
        self._process.reject("three-way-mismatch", source, interface=circuit.name)
        return True

    def _make_room(self, lan: LanLevel) -> bool:
        """Whether one more neighbor fits; the oldest that is not two-way is removed for it.

        Source addresses are easily forged, and TLV 6 must fit into a hello.
        """
        if len(lan.adjacencies) < MAX_LAN_ADJACENCIES:
            return True
        idle = [adjacency for adjacency in lan.adjacencies.values() if not adjacency.up]
        if not idle:
            return False
        oldest = min(idle, key=lambda adjacency: (adjacency.last_hello, adjacency.snpa))
        self._adjacencies.fire(oldest, AdjacencyEvent.KILLED, "too many neighbors")
        return True

    def _reject(
        self, circuit: Circuit, source: int, hello: LanHello | P2pHello, reason: str
    ) -> None:
        system_id = format_system_id(hello.source_id)
        self._process.reject(reason, source, interface=circuit.name, system_id=system_id)
