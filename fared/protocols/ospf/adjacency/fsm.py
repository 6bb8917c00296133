"""Running the neighbor state machine (RFC 2328 §10.3): its actions and the effects of changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.ids import NodeId
from fared.protocols.igp.events import AdjacencyChanged
from fared.protocols.ospf.adjacency.admission import Admission
from fared.protocols.ospf.adjacency.broadcast import adjacency_due
from fared.protocols.ospf.adjacency.detection import FailureDetection
from fared.protocols.ospf.adjacency.exchange import Exchange
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, Neighbor
from fared.protocols.ospf.neighbor import (
    NEIGHBOR_TABLE,
    NeighborAction,
    NeighborEvent,
    NeighborState,
)
from fared.protocols.ospf.packet.packets import DatabaseDescription

_FLAPS_KEPT = 64


class Adjacencies:
    """Creates neighbors, runs their state machine and removes them.

    ``full_changed`` is called when a neighbor enters or leaves Full, ``two_way_changed`` when
    bidirectional communication with one begins or ends, ``lost`` when one is removed.
    """

    def __init__(
        self,
        instance: Instance,
        exchange: Exchange,
        detection: FailureDetection,
        full_changed: Callable[[Interface, str], None],
        two_way_changed: Callable[[Interface], None],
        *,
        lost: Callable[[Neighbor, str], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._exchange = exchange
        self._admission = Admission(instance, self._begin)
        self._detection = detection
        self._full_changed = full_changed
        self._two_way_changed = two_way_changed
        self._lost = lost
        self._actions: dict[NeighborAction, Callable[[Neighbor], NeighborState | None]] = {
            NeighborAction.RESTART_INACTIVITY: self.restart_inactivity,
            NeighborAction.DECIDE_ADJACENCY: self._decide,
            NeighborAction.REVIEW_ADJACENCY: self._review,
            NeighborAction.DESCRIBE_DATABASE: self._describe,
            NeighborAction.FINISH_EXCHANGE: exchange.finish,
            NeighborAction.RENEGOTIATE: self._renegotiate,
            NeighborAction.CLEAR_LISTS: self._clear,
            NeighborAction.FORGET: self._forget,
        }

    def create(self, interface: Interface, router_id: int, address: int) -> Neighbor:
        """Create the neighbor of a first hello, in state Down (§10.5)."""
        neighbor = Neighbor(interface, router_id, address, self.fire)
        neighbor.since = self._process.now
        interface.neighbors[neighbor.key] = neighbor
        return neighbor

    def fire(self, neighbor: Neighbor, event: NeighborEvent) -> None:
        """Run one event through ``NEIGHBOR_TABLE``; without a row it has no effect."""
        transition = NEIGHBOR_TABLE.find(neighbor.state, event)
        if transition is None:
            return
        decided = None
        if transition.action is not None:
            decided = self._actions[transition.action](neighbor)
        target = transition.target if transition.target is not None else decided
        if target is not None and target is not neighbor.state:
            self._enter(neighbor, target, event.value)

    def settle(self) -> None:
        """Let neighbors that waited form adjacencies, when it is their turn."""
        self._admission.settle()

    def mtu_changed(self, interface: Interface) -> None:
        """Check the adjacencies of an interface against its new MTU."""
        self._exchange.mtu_changes.own_changed(interface)

    def kill_all(self, interface: Interface, event: NeighborEvent) -> None:
        """Fire one event at every neighbor of an interface."""
        for neighbor in list(interface.neighbors.values()):
            neighbor.fire(event)

    def _enter(self, neighbor: Neighbor, state: NeighborState, reason: str) -> None:
        """Change the state of a neighbor, and tell all parts that depend on it."""
        instance = self._instance
        interface = neighbor.interface
        previous = neighbor.state
        adjacent, bidirectional = neighbor.adjacent, neighbor.bidirectional
        neighbor.state = state
        neighbor.since = instance.process.now
        exchanged = neighbor in instance.exchanging
        if neighbor.exchanging:
            instance.exchanging[neighbor] = None
        elif exchanged:
            del instance.exchanging[neighbor]
        instance.participants.changed()
        self._admission.entered(neighbor, state)
        if exchanged and not instance.exchanging:
            self._exchange.ended()
        instance.process.counters.transitions[previous.label, state.label] += 1
        if state is NeighborState.DOWN:
            del interface.neighbors[neighbor.key]
            self._lost(neighbor, reason)
        self._detection.follow(neighbor)
        instance.process.emit(
            AdjacencyChanged(
                interface.ifindex,
                interface.name,
                NodeId(neighbor.router_id),
                previous.label,
                state.label,
                reason,
                gained_or_lost=neighbor.adjacent != adjacent,
            )
        )
        # RFC 2328 §12.4 (4): a neighbor enters or leaves Full: router LSA, on LANs network LSA;
        # RFC 3623 §3.1: not while it restarts
        if neighbor.adjacent != adjacent:
            if adjacent:
                _count_flap(interface, neighbor.router_id)
            self._full_changed(interface, reason)
        # RFC 2328 §9.2, NeighborChange; not while the interface itself goes down
        if neighbor.bidirectional != bidirectional and reason != NeighborEvent.LL_DOWN.value:
            self._two_way_changed(interface)

    def restart_inactivity(self, neighbor: Neighbor) -> None:
        """HelloReceived (§10.3): move the time of death; an armed timer is left as it is.

        The timer compares when it fires, which is cheaper than a new timer for each hello.
        """
        now = self._process.now
        neighbor.dead_at = now + neighbor.interface.settings.router_dead_interval
        timer = neighbor.inactivity
        if timer is None or not timer.active or timer.deadline > neighbor.dead_at:
            self._process.timers.cancel(timer)
            self._watch(neighbor)

    def _watch(self, neighbor: Neighbor) -> None:
        """Arm the timer; our hellos may fire it earlier, which saves a wake-up of its own."""
        now, dead_at = self._process.now, neighbor.dead_at
        neighbor.inactivity = self._process.timers.arm(
            dead_at, partial(self._inactive, neighbor), now + (dead_at - now) / 2
        )

    def _inactive(self, neighbor: Neighbor) -> None:
        if self._process.now < neighbor.dead_at:
            self._process.routine += 1
            self._watch(neighbor)
        elif neighbor.helping is None:
            neighbor.fire(NeighborEvent.INACTIVITY_TIMER)

    def expire(self, neighbor: Neighbor) -> None:
        """Fire InactivityTimer if it was due while the neighbor restarted (RFC 3623 §3.2)."""
        if neighbor.state is not NeighborState.DOWN and self._process.now >= neighbor.dead_at:
            neighbor.fire(NeighborEvent.INACTIVITY_TIMER)

    def _decide(self, neighbor: Neighbor) -> NeighborState:
        """2-WayReceived in Init, AdjOK? in 2-Way (§10.3): form an adjacency if due (§10.4)."""
        if not adjacency_due(neighbor):
            return NeighborState.TWO_WAY
        # RFC 4222 §2 (5): no more than some adjacencies at once
        if not self._admission.admits(neighbor):
            return NeighborState.TWO_WAY
        self._admission.begins(neighbor)
        neighbor.progress_at = self._process.now
        self._exchange.negotiate(neighbor)
        return NeighborState.EXSTART

    def _begin(self, neighbor: Neighbor, kept: DatabaseDescription | None) -> None:
        """It is the turn of a neighbor: AdjOK?, then the description that it has sent meanwhile."""
        neighbor.fire(NeighborEvent.ADJ_OK)
        if kept is not None:
            self._exchange.receive_description(neighbor, kept)

    def _review(self, neighbor: Neighbor) -> NeighborState:
        """AdjOK? in ExStart or greater (§10.3): keep the adjacency, or destroy it (2-Way)."""
        if adjacency_due(neighbor):
            return neighbor.state
        self._exchange.clear(neighbor)
        return NeighborState.TWO_WAY

    def _describe(self, neighbor: Neighbor) -> None:
        """NegotiationDone (§10.3): fill the database summary list."""
        self._exchange.describe(neighbor)

    def _renegotiate(self, neighbor: Neighbor) -> None:
        """SeqNumberMismatch, BadLSReq (§10.3): tear the adjacency down and begin in ExStart."""
        self._admission.failed(neighbor)
        self._exchange.negotiate(neighbor)

    def _clear(self, neighbor: Neighbor) -> None:
        """1-WayReceived (§10.3): clear the lists."""
        self._exchange.clear(neighbor)

    def _forget(self, neighbor: Neighbor) -> None:
        """KillNbr, LLDown, InactivityTimer (§10.3): clear the lists, disable the timer."""
        self._exchange.clear(neighbor)
        self._process.timers.cancel(neighbor.inactivity)


def _count_flap(interface: Interface, router_id: int) -> None:
    """Count the lost adjacencies of a router id; of too many, the oldest count is dropped."""
    flaps = interface.flaps
    if router_id not in flaps and len(flaps) >= _FLAPS_KEPT:
        del flaps[next(iter(flaps))]
    flaps[router_id] = flaps.get(router_id, 0) + 1
