"""How many adjacencies form at once, and which neighbors wait for their turn (RFC 4222 §2 (5)).

A router that starts in a fabric finds all its neighbors at once, and each describes the whole
database. Those that come after the first few describe what is known by then, so they cost little.
A neighbor that waits is in state 2-Way, and its first database description is kept: a neighbor that
becomes the master would repeat it only after RxmtInterval.

Only neighbors that make progress hold a place. One that does not answer, one with another MTU, or
one whose exchange has failed would otherwise keep all others waiting.
"""

from __future__ import annotations

from collections.abc import Callable

from fared.core.timers import Timer
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Neighbor
from fared.protocols.ospf.neighbor import NeighborState
from fared.protocols.ospf.packet.packets import DatabaseDescription

_NEGOTIATION = 1.0
"""Seconds for which a neighbor in ExStart holds its place, at most RxmtInterval. It may itself be
one that lets this router wait."""


_Begin = Callable[[Neighbor, DatabaseDescription | None], None]


class Admission:
    """Decides which neighbors may begin to form an adjacency.

    ``begin`` is called with a neighbor that has waited, when it is its turn, and with the first
    description that it has sent meanwhile.
    """

    def __init__(self, instance: Instance, begin: _Begin) -> None:
        self._instance = instance
        self._process = instance.process
        self._begin = begin
        self._forming: dict[Neighbor, None] = {}
        self._waiting: dict[Neighbor, None] = {}
        self._timer: Timer | None = None

    def admits(self, neighbor: Neighbor) -> bool:
        """Whether an adjacency may form now; otherwise the neighbor waits for its turn."""
        if self._full_at() is None:
            return True
        neighbor.waits = True
        self._waiting[neighbor] = None
        return False

    def entered(self, neighbor: Neighbor, state: NeighborState) -> None:
        """Take note of the new state of a neighbor."""
        if state is not NeighborState.TWO_WAY and neighbor.waits:
            self._dequeue(neighbor)
        if not NeighborState.EXSTART <= state < NeighborState.FULL:
            self._forming.pop(neighbor, None)

    def begins(self, neighbor: Neighbor) -> None:
        """Give a neighbor a place: it enters ExStart."""
        self._forming[neighbor] = None

    def failed(self, neighbor: Neighbor) -> None:
        """Take the place of a neighbor whose exchange begins again."""
        self._forming.pop(neighbor, None)

    def settle(self) -> None:
        """Let those begin whose turn it is, first come, first served."""
        while self._waiting:
            until = self._full_at()
            if until is not None:
                self._await(until)
                return
            neighbor = next(iter(self._waiting))
            kept = neighbor.initial_dd
            self._dequeue(neighbor)
            self._begin(neighbor, kept)

    def _dequeue(self, neighbor: Neighbor) -> None:
        del self._waiting[neighbor]
        neighbor.waits = False
        neighbor.initial_dd = None

    def _full_at(self) -> float | None:
        """Until when all places are held if nothing happens; None: there is a free one."""
        now, limit = self._process.now, self._instance.settings.adjacency_stagger
        held = [until for until in map(_holds_until, self._forming) if until > now]
        return None if len(held) < limit else min(held)

    def _await(self, until: float) -> None:
        if self._timer is None or not self._timer.active:
            self._timer = self._process.timers.arm(until, _wake)


def _holds_until(neighbor: Neighbor) -> float:
    """Until when a neighbor holds its place without further progress."""
    patience = neighbor.interface.settings.rxmt_interval
    if neighbor.state is NeighborState.EXSTART:
        patience = min(patience, _NEGOTIATION)
    return neighbor.progress_at + patience


def _wake() -> None:
    """Wake the engine: the next turn settles."""
