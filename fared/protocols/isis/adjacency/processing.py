"""Steps that hellos of both kinds share: refusal, final hellos, and the state machine."""

from __future__ import annotations

from typing import NamedTuple

from fared.core.ids import format_system_id
from fared.protocols.igp.events import PacketReceived
from fared.protocols.isis.adjacency.checks import advertised_facts, differing
from fared.protocols.isis.adjacency.detection import FailureDetection
from fared.protocols.isis.adjacency.fsm import Adjacencies, AdjacencyEvent, AdjacencyWatcher
from fared.protocols.isis.adjacency.problems import problem_of
from fared.protocols.isis.adjacency.reacquirer import Reacquirer
from fared.protocols.isis.adjacency.repetitions import Repetitions
from fared.protocols.isis.adjacency.restart import RestartHelper
from fared.protocols.isis.circuit import Adjacency, AdjacencyState, Circuit
from fared.protocols.isis.ids import Level, format_snpa
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.codec import kind_of
from fared.protocols.isis.pdu.model import LanHello, P2pHello
from fared.protocols.isis.pdu.tlvs import Padding, of_type

Advertised = tuple[AdjacencyState, tuple[object, ...]]
"""State of an adjacency, and what of its hellos LSPs and next hops depend on."""


class HelloParts(NamedTuple):
    """What the processing of hellos of either kind needs."""

    instance: Instance
    processing: HelloProcessing
    adjacencies: Adjacencies
    helper: RestartHelper
    reacquirer: Reacquirer


class HelloProcessing:
    """What becomes of a hello before and after the steps of its kind.

    ``stopped``: final hellos were sent, and received ones have no effect.
    """

    def __init__(
        self,
        instance: Instance,
        watcher: AdjacencyWatcher,
        adjacencies: Adjacencies,
        detection: FailureDetection,
        repetitions: Repetitions,
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._watcher = watcher
        self._adjacencies = adjacencies
        self._detection = detection
        self.settle = repetitions.settle
        self.stopped = False

    def is_ignored(
        self, circuit: Circuit, source: int, hello: LanHello | P2pHello, *, of_lan: bool
    ) -> bool:
        """Whether a hello needs no further processing; rejects invalid ones."""
        if self.stopped or not circuit.is_active:
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
        self.reject(circuit, source, hello, reason)
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

    def reject(
        self, circuit: Circuit, source: int, hello: LanHello | P2pHello, reason: str
    ) -> None:
        """Count and log a hello that is discarded, and keep why; ``reason`` is a short code."""
        process, system_id = self._process, format_system_id(hello.source_id)
        differs = differing(self._instance.settings, hello, reason)
        process.refusals.add(circuit, source, (reason, differs), process.now, system_id)
        kind = kind_of(hello).label
        process.reject(
            reason, source, 0.0, differs, interface=circuit, kind=kind, system_id=system_id
        )

    def accept(
        self, adjacency: Adjacency, received: PacketReceived, hello: LanHello | P2pHello
    ) -> None:
        """Note a hello that is accepted, and log why its sender is not used all the same."""
        system_id = format_system_id(hello.source_id)
        self._process.refusals.accepted(adjacency.circuit.ifindex, received.source, system_id)
        if of_type(hello.tlvs, Padding):
            adjacency.padded_to = len(received.payload)
        problem = problem_of(self._instance.settings, adjacency, self._process.now)
        if problem is not None and self._process.may_log(received.source, problem.cause):
            self._process.log(
                "warning",
                "isis-neighbor-problem",
                reason=problem.cause,
                source=format_snpa(received.source),
                interface=adjacency.circuit.name,
                system_id=format_system_id(adjacency.system_id),
                what=problem.text,
            )

    def run_state_machine(
        self,
        adjacency: Adjacency,
        holding_time: int,
        event: AdjacencyEvent,
        before: Advertised,
    ) -> None:
        """Fire the event, and report a neighbor that stays up with changed contents."""
        adjacency.awaited = event if self._detection.waits(adjacency) else None
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
        self._detection.follow(adjacency)
        state, facts = before
        if adjacency.up and state is AdjacencyState.UP and facts != advertised_facts(adjacency):
            self._watcher.circuit_changed(adjacency.circuit)

    def keep(self, adjacency: Adjacency, before: Advertised) -> None:
        """The neighbor restarts: report changed contents; no hello of it is a repetition."""
        adjacency.settled_by = None
        if before[1] != advertised_facts(adjacency):
            self._watcher.circuit_changed(adjacency.circuit)
