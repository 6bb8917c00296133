"""The hello protocol: finding neighbors on point-to-point circuits and on LANs.

ISO 10589 §8.2 and §8.4, RFC 1195, three-way handshake of RFC 5303, point-to-point over LAN of RFC
5309. Received hellos go to ``p2p`` and ``lan``, decoded and authenticated: of the acceptance tests
(§8.2.5.1, §8.4.2.1) those of the header are in ``pdu.header``, authentication in ``pdu.auth``.
"""

from __future__ import annotations

from fared.core.ids import FAMILY_IPV4, isis_node
from fared.protocols.isis.addresses import router_addresses
from fared.protocols.isis.adjacency.checks import (
    judge_lan,
    judge_p2p,
    levels_on,
    stored_hello,
)
from fared.protocols.isis.adjacency.detection import FailureDetection
from fared.protocols.isis.adjacency.dis_election import DisElection
from fared.protocols.isis.adjacency.fsm import (
    Adjacencies,
    AdjacencyEvent,
    AdjacencyWatcher,
    all_adjacencies,
)
from fared.protocols.isis.adjacency.hello_timer import HelloTimer, hello_levels
from fared.protocols.isis.adjacency.lan import LanHellos
from fared.protocols.isis.adjacency.p2p import P2pHellos
from fared.protocols.isis.adjacency.processing import HelloParts, HelloProcessing
from fared.protocols.isis.adjacency.reacquirer import Reacquirer
from fared.protocols.isis.adjacency.repetitions import Repetitions
from fared.protocols.isis.adjacency.restart import RestartHelper
from fared.protocols.isis.circuit import Adjacency, Circuit, LanLevel
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.transmit import Transmitter


class HelloProtocol:
    """Sends and receives hellos on all circuits and keeps their adjacencies.

    ``receive_p2p`` and ``receive_lan`` process a hello; ``repeated`` comes before them, and returns
    False for a PDU that needs them.
    """

    def __init__(
        self, instance: Instance, transmitter: Transmitter, watcher: AdjacencyWatcher
    ) -> None:
        self._instance = instance
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
        repetitions = Repetitions(instance, self._adjacencies)
        self.repeated = repetitions.repeated
        self._processing = HelloProcessing(
            instance, watcher, self._adjacencies, self.detection, repetitions
        )
        parts = HelloParts(
            instance, self._processing, self._adjacencies, self.helper, self.reacquirer
        )
        self.receive_p2p = P2pHellos(parts, self._hello_timer.send_now).receive
        self.receive_lan = LanHellos(parts, self._dis_election.elect).receive
        self._borrowed: tuple[int, ...] = ()
        """The address in hellos on interfaces without an IPv4 address."""

    # Circuits

    def circuit_up(self, circuit: Circuit) -> None:
        """Start hellos on a circuit that is up and enabled."""
        if self._processing.stopped:
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
                elif wanted & level and level not in circuit.lan and not self._processing.stopped:
                    self._start_level(circuit, level)
        for adjacency in all_adjacencies(circuit):
            self._reexamine(adjacency)
            self.detection.follow(adjacency)
        self._hello_timer.send_now_all(circuit)
        for level in sorted(circuit.lan):
            self._dis_election.elect(circuit, level)

    def clear(self, ifindex: int, node: int) -> None:
        """End the adjacencies with a router on a circuit; hellos at once tell it."""
        circuit = self._instance.circuits.get(ifindex)
        for adjacency in [] if circuit is None else all_adjacencies(circuit):
            if isis_node(adjacency.system_id) == node:
                self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, "cleared")

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
        self._processing.stopped = True
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

    def _bfd_failed(self, adjacency: Adjacency, reason: str) -> None:
        self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)

    def _bfd_up(self, adjacency: Adjacency) -> None:
        """Process the hello that the adjacency could not follow before its sessions were up."""
        event, adjacency.awaited = adjacency.awaited, None
        if isinstance(event, AdjacencyEvent):
            self._adjacencies.fire(adjacency, event)
