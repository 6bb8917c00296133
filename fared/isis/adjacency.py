"""Adjacencies: their state machine as a table, their holding timers, and who hears of changes.

On a point-to-point circuit the three-way handshake of RFC 5303 moves them: a hello says in which
state the neighbor holds us. On a LAN a hello lists the SNPAs that the neighbor hears, which is
two-way at once (ISO 10589 §8.4.2); so is a point-to-point neighbor that sends no three-way TLV.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import partial
from typing import Protocol

from fared.core.fsm import Row, TransitionTable
from fared.core.ids import SystemId
from fared.isis.circuit import Adjacency, AdjacencyState, Circuit
from fared.isis.events import AdjacencyChanged
from fared.isis.ids import Level, LevelSet
from fared.isis.instance import Instance

_FLAPS_KEPT = 64


class AdjacencyWatcher(Protocol):
    """Whoever announces adjacencies and floods over them."""

    def adjacency_changed(
        self, circuit: Circuit, adjacency: Adjacency, level: Level, reason: str
    ) -> None:
        """An adjacency came up in a level, or is up there no more: both facts are readable in it.

        A level is up if the state is Up and ``levels`` has it. One that went Down is no longer
        on the circuit.
        """

    def dis_changed(self, circuit: Circuit, level: Level, previous_lan_id: int) -> None:
        """The designated IS of a LAN differs, or there is one, or there is none any more."""

    def circuit_changed(self, circuit: Circuit) -> None:
        """Something that LSPs or next hops may be made of differs.

        That is addresses, metric, levels, capacity or state of the circuit, or the addresses,
        protocols or link id of a neighbor on it. After a circuit was removed it is down and no
        longer among ``instance.circuits``.
        """


class AdjacencyEvent(enum.Enum):
    """What happens to an adjacency; values are the reasons shown to operators."""

    DOWN_RECEIVED = "neighbor in three-way state Down"
    INITIALIZING_RECEIVED = "neighbor in three-way state Initializing"
    UP_RECEIVED = "neighbor in three-way state Up"
    ONE_WAY_RECEIVED = "neighbor does not list us"
    TWO_WAY_RECEIVED = "two-way"
    HOLDING_TIME_EXPIRED = "holding time expired"
    KILLED = "killed"


class AdjacencyAction(enum.Enum):
    """What the rows of the table ask for."""

    ANSWER = enum.auto()
    """Send a hello at once: the neighbor waits for it to come up."""


_S, _E, _A = AdjacencyState, AdjacencyEvent, AdjacencyAction
_ALL = (_S.DOWN, _S.INITIALIZING, _S.UP)

ADJACENCY_TABLE: TransitionTable[AdjacencyState, AdjacencyEvent, AdjacencyAction] = TransitionTable(
    [
        # RFC 5303 §3.2, the table of received against own state
        Row(_ALL, _E.DOWN_RECEIVED, _A.ANSWER, _S.INITIALIZING),
        Row(_ALL, _E.INITIALIZING_RECEIVED, _A.ANSWER, _S.UP),
        # it holds us for a neighbor of before our restart, and learns now that we are Down
        Row((_S.DOWN,), _E.UP_RECEIVED, _A.ANSWER, _S.DOWN),
        Row((_S.INITIALIZING, _S.UP), _E.UP_RECEIVED, None, _S.UP),
        # ISO 10589 §8.4.2.4, and §8.2.4.2 without the three-way TLV
        Row(_ALL, _E.ONE_WAY_RECEIVED, _A.ANSWER, _S.INITIALIZING),
        Row((_S.DOWN, _S.INITIALIZING), _E.TWO_WAY_RECEIVED, _A.ANSWER, _S.UP),
        Row((_S.UP,), _E.TWO_WAY_RECEIVED, None, _S.UP),
        # it may still hear us: let it know
        Row(_ALL, _E.HOLDING_TIME_EXPIRED, _A.ANSWER, _S.DOWN),
        Row(_ALL, _E.KILLED, _A.ANSWER, _S.DOWN),
    ]
)


class Adjacencies:
    """Creates, moves and forgets adjacencies.

    ``answer`` sends a hello out of a circuit (in a level, on a LAN); ``moved`` is told after an
    adjacency of a LAN came up or ceased to be: its designated IS may be another one.
    """

    def __init__(
        self,
        instance: Instance,
        watcher: AdjacencyWatcher,
        answer: Callable[[Circuit, Level | None], None],
        moved: Callable[[Circuit, Level], None],
    ) -> None:
        self._instance = instance
        self._watcher = watcher
        self._answer = answer
        self._moved = moved

    @staticmethod
    def create(circuit: Circuit, system_id: SystemId, snpa: int, levels: LevelSet) -> Adjacency:
        """Make the adjacency of a first hello: on the circuit once it leaves state Down."""
        adjacency = Adjacency(circuit, system_id, snpa, levels)
        adjacency.flaps = circuit.flaps.get(_flap_key(adjacency), 0)
        return adjacency

    def fire(self, adjacency: Adjacency, event: AdjacencyEvent, reason: str = "") -> None:
        """Apply the row of the table for this event."""
        transition = ADJACENCY_TABLE.find(adjacency.state, event)
        if transition is None:
            return
        previous, target = adjacency.state, transition.target
        changed = target is not None and target is not previous
        if target is not None and changed:
            self._place(adjacency, target, reason or event.value)
        # Before the watcher floods: what reaches the neighbor ahead of this hello, it drops.
        if transition.action is AdjacencyAction.ANSWER:
            self._answer(adjacency.circuit, _lan_level(adjacency))
        if changed and AdjacencyState.UP in (previous, target):
            for level in adjacency.levels.levels:
                self._up_changed(adjacency, level, reason or event.value)

    def kill_all(self, circuit: Circuit, reason: str) -> None:
        """End all adjacencies of a circuit."""
        for adjacency in all_adjacencies(circuit):
            self.fire(adjacency, AdjacencyEvent.KILLED, reason)

    def use(self, adjacency: Adjacency, levels: LevelSet, reason: str) -> None:
        """Use an adjacency for other levels; those that stay do not notice."""
        before, adjacency.levels = adjacency.levels, levels
        for level in (before ^ levels).levels:
            if adjacency.state is AdjacencyState.DOWN:
                continue
            gained = bool(levels & level)
            old, new = AdjacencyState.DOWN, adjacency.state
            self._tell(adjacency, level, (old, new) if gained else (new, old), reason)
            if adjacency.up:
                self._up_changed(adjacency, level, reason)

    def hold(self, adjacency: Adjacency, holding_time: int) -> None:
        """A hello came: the adjacency lives for so many seconds from now.

        The armed timer looks again when it fires instead of moving with each hello.
        """
        now = self._instance.now
        adjacency.heard = now
        adjacency.holding_time = holding_time
        adjacency.expires = now + holding_time
        timer = adjacency.hold_timer
        if timer is None or not timer.active or timer.deadline > adjacency.expires:
            self._instance.timers.cancel(timer)
            self._watch(adjacency)

    def _watch(self, adjacency: Adjacency) -> None:
        adjacency.hold_timer = self._instance.timers.arm(
            adjacency.expires, partial(self._expired, adjacency)
        )

    def _expired(self, adjacency: Adjacency) -> None:
        if self._instance.now < adjacency.expires:
            self._watch(adjacency)
        else:
            self.fire(adjacency, AdjacencyEvent.HOLDING_TIME_EXPIRED)

    def _place(self, adjacency: Adjacency, state: AdjacencyState, reason: str) -> None:
        """Set the state, keep or forget the adjacency accordingly, and tell operators."""
        circuit, previous = adjacency.circuit, adjacency.state
        adjacency.state = state
        adjacency.up_since = self._instance.now if adjacency.up else None
        if previous is AdjacencyState.UP:
            _count_flap(adjacency)
        gone = state is AdjacencyState.DOWN
        if gone:
            self._instance.timers.cancel(adjacency.hold_timer)
        level = _lan_level(adjacency)
        if level is None:
            circuit.adjacency = None if gone else adjacency
        elif gone:
            circuit.lan[level].adjacencies.pop(adjacency.snpa, None)
        else:
            circuit.lan[level].adjacencies[adjacency.snpa] = adjacency
        for used in adjacency.levels.levels:
            self._tell(adjacency, used, (previous, state), reason)

    def _tell(
        self,
        adjacency: Adjacency,
        level: Level,
        states: tuple[AdjacencyState, AdjacencyState],
        reason: str,
    ) -> None:
        circuit = adjacency.circuit
        before, after = states[0].value, states[1].value
        self._instance.counters.transitions[before, after] += 1
        self._instance.emit(
            AdjacencyChanged(
                circuit.ifindex,
                circuit.name,
                adjacency.system_id,
                int(level),
                before,
                after,
                reason,
            )
        )

    def _up_changed(self, adjacency: Adjacency, level: Level, reason: str) -> None:
        self._watcher.adjacency_changed(adjacency.circuit, adjacency, level, reason)
        if adjacency.circuit.broadcast:
            self._moved(adjacency.circuit, level)


def all_adjacencies(circuit: Circuit) -> list[Adjacency]:
    """The adjacencies of a circuit in whatever state, in a stable order."""
    if not circuit.broadcast:
        return [] if circuit.adjacency is None else [circuit.adjacency]
    return [
        lan.adjacencies[snpa]
        for _, lan in sorted(circuit.lan.items())
        for snpa in sorted(lan.adjacencies)
    ]


def _lan_level(adjacency: Adjacency) -> Level | None:
    """The one level of an adjacency on a LAN."""
    return Level(int(adjacency.levels)) if adjacency.circuit.broadcast else None


def _flap_key(adjacency: Adjacency) -> tuple[int, int]:
    return (adjacency.system_id, adjacency.snpa if adjacency.circuit.broadcast else 0)


def _count_flap(adjacency: Adjacency) -> None:
    adjacency.flaps += 1
    flaps = adjacency.circuit.flaps
    flaps.pop(_flap_key(adjacency), None)
    flaps[_flap_key(adjacency)] = adjacency.flaps
    if len(flaps) > _FLAPS_KEPT:
        del flaps[next(iter(flaps))]
