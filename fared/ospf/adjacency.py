"""Running the neighbor state machine: what its actions do, and who hears of its transitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.ospf.broadcast import adjacency_due
from fared.ospf.events import NeighborChanged
from fared.ospf.exchange import Exchange
from fared.ospf.instance import Instance
from fared.ospf.interface import Interface
from fared.ospf.neighbor import (
    NEIGHBOR_TABLE,
    Neighbor,
    NeighborAction,
    NeighborEvent,
    NeighborState,
)

_FLAPS_KEPT = 64


class Adjacency:
    """Creates, moves and forgets neighbors.

    ``full_changed`` is told when a neighbor enters or leaves Full, ``heard_changed`` when
    bidirectional communication with one begins or ends.
    """

    def __init__(
        self,
        instance: Instance,
        exchange: Exchange,
        full_changed: Callable[[Interface, str], None],
        heard_changed: Callable[[Interface], None],
    ) -> None:
        self._instance = instance
        self._exchange = exchange
        self._full_changed = full_changed
        self._heard_changed = heard_changed
        self._actions: dict[NeighborAction, Callable[[Neighbor], NeighborState | None]] = {
            NeighborAction.RESTART_INACTIVITY: self._restart_inactivity,
            NeighborAction.DECIDE_ADJACENCY: self._decide,
            NeighborAction.REVIEW_ADJACENCY: self._review,
            NeighborAction.DESCRIBE_DATABASE: self._describe,
            NeighborAction.FINISH_EXCHANGE: exchange.finish,
            NeighborAction.RENEGOTIATE: self._renegotiate,
            NeighborAction.CLEAR_LISTS: self._clear,
            NeighborAction.FORGET: self._forget,
        }

    def create(self, interface: Interface, router_id: int, address: int) -> Neighbor:
        """Make the neighbor of a first hello; its state is Down until that is processed."""
        neighbor = Neighbor(interface, router_id, address, self.fire)
        neighbor.since = self._instance.now
        interface.neighbors[neighbor.key] = neighbor
        return neighbor

    def fire(self, neighbor: Neighbor, event: NeighborEvent) -> None:
        """Apply the row of the table for this event, if there is one."""
        transition = NEIGHBOR_TABLE.find(neighbor.state, event)
        if transition is None:
            return
        decided = None
        if transition.action is not None:
            decided = self._actions[transition.action](neighbor)
        target = transition.target if transition.target is not None else decided
        if target is not None and target is not neighbor.state:
            self._enter(neighbor, target, event.value)

    def readdressed(self, neighbor: Neighbor) -> None:
        """The neighbor speaks from another address: next hops through it must follow."""
        if neighbor.state is NeighborState.FULL:
            self._full_changed(neighbor.interface, "address changed")

    def kill_all(self, interface: Interface, event: NeighborEvent) -> None:
        """Fire one event at every neighbor of an interface."""
        for neighbor in list(interface.neighbors.values()):
            neighbor.fire(event)

    def _enter(self, neighbor: Neighbor, state: NeighborState, reason: str) -> None:
        instance = self._instance
        interface = neighbor.interface
        previous = neighbor.state
        instance.exchanging -= neighbor.exchanging
        neighbor.state = state
        neighbor.since = instance.now
        instance.exchanging += neighbor.exchanging
        instance.counters.transitions[previous.label, state.label] += 1
        if state is NeighborState.DOWN:
            del interface.neighbors[neighbor.key]
        instance.emit(
            NeighborChanged(
                interface.ifindex,
                interface.name,
                neighbor.router_id,
                previous.label,
                state.label,
                reason,
            )
        )
        if NeighborState.FULL in (previous, state):
            if previous is NeighborState.FULL:
                _count_flap(interface, neighbor.router_id)
            self._full_changed(interface, reason)
        two_way = NeighborState.TWO_WAY
        # RFC 2328 §9.2 NeighborChange; not while the whole interface goes down
        if (previous < two_way) != (state < two_way) and reason != NeighborEvent.LL_DOWN.value:
            self._heard_changed(interface)

    def _restart_inactivity(self, neighbor: Neighbor) -> None:
        """Push the dead time out; the armed timer looks again instead of moving each hello."""
        now = self._instance.now
        neighbor.dead_at = now + neighbor.interface.settings.router_dead_interval
        if neighbor.inactivity is None or not neighbor.inactivity.active:
            self._watch(neighbor)

    def _watch(self, neighbor: Neighbor) -> None:
        neighbor.inactivity = self._instance.timers.arm(
            neighbor.dead_at, partial(self._inactive, neighbor)
        )

    def _inactive(self, neighbor: Neighbor) -> None:
        if self._instance.now < neighbor.dead_at:
            self._watch(neighbor)
        else:
            neighbor.fire(NeighborEvent.INACTIVITY_TIMER)

    def _decide(self, neighbor: Neighbor) -> NeighborState:
        if not adjacency_due(neighbor):
            return NeighborState.TWO_WAY
        self._exchange.negotiate(neighbor)
        return NeighborState.EXSTART

    def _review(self, neighbor: Neighbor) -> NeighborState:
        if adjacency_due(neighbor):
            return neighbor.state
        self._exchange.clear(neighbor)
        return NeighborState.TWO_WAY

    def _describe(self, neighbor: Neighbor) -> None:
        self._exchange.describe(neighbor)

    def _renegotiate(self, neighbor: Neighbor) -> None:
        self._exchange.negotiate(neighbor)

    def _clear(self, neighbor: Neighbor) -> None:
        self._exchange.clear(neighbor)

    def _forget(self, neighbor: Neighbor) -> None:
        self._exchange.clear(neighbor)
        self._instance.timers.cancel(neighbor.inactivity)


def _count_flap(interface: Interface, router_id: int) -> None:
    """Remember how often an adjacency was lost, for a bounded number of router ids."""
    flaps = interface.flaps
    if router_id not in flaps and len(flaps) >= _FLAPS_KEPT:
        del flaps[next(iter(flaps))]
    flaps[router_id] = flaps.get(router_id, 0) + 1
