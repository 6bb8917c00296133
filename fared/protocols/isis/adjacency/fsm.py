"""Adjacencies: their state machine as a table, holding timers, and reports of changes.

On a point-to-point circuit the events are those of the three-way handshake (RFC 5303 §3.2): a hello
carries the state of the adjacency on the other side. On a LAN a hello lists the SNPAs that the
neighbor receives; if ours is among them, communication is two-way (ISO 10589 §8.4.2.5.1). A
point-to-point neighbor without the three-way TLV counts as two-way at once (ISO 10589 §8.2.5.2).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import partial
from typing import Protocol

from fared.core.fsm import Row, TransitionTable
from fared.core.ids import SystemId, format_system_id, isis_node
from fared.protocols.igp.events import AdjacencyChanged
from fared.protocols.isis.circuit import Adjacency, AdjacencyState, Circuit
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.instance import HelpEnded, Instance

_FLAPS_KEPT = 64


class AdjacencyWatcher(Protocol):
    """Advertises adjacencies, and floods over them."""

    def adjacency_changed(
        self, circuit: Circuit, adjacency: Adjacency, level: Level, reason: str
    ) -> None:
        """An adjacency came up or went down in a level, as its state and levels show.

        A level is up if the state is Up and ``levels`` contains it. An adjacency in state Down is
        no longer on the circuit.
        """

    def dis_changed(self, circuit: Circuit, level: Level, previous_lan_id: int) -> None:
        """The designated IS of a LAN changed, appeared or disappeared."""

    def neighbor_restarted(self, circuit: Circuit, level: Level) -> None:
        """A neighbor has restarted gracefully: its adjacency is up, its database is empty."""

    def circuit_changed(self, circuit: Circuit) -> None:
        """A property of a circuit that LSPs or next hops depend on changed.

        These are addresses, metric, levels, capacity or state of the circuit, or the addresses,
        protocols or link id of a neighbor on it. A removed circuit is down and no longer among
        ``instance.circuits``.
        """


class AdjacencyEvent(enum.Enum):
    """Adjacency events; values are the reasons shown to operators."""

    DOWN_RECEIVED = "neighbor in three-way state Down"
    INITIALIZING_RECEIVED = "neighbor in three-way state Initializing"
    UP_RECEIVED = "neighbor in three-way state Up"
    ONE_WAY_RECEIVED = "neighbor does not list us"
    TWO_WAY_RECEIVED = "two-way"
    HOLDING_TIME_EXPIRED = "holding time expired"
    KILLED = "killed"


class AdjacencyAction(enum.Enum):
    """Actions of the table's rows."""

    ANSWER = enum.auto()
    """Send a hello at once, so that the neighbor's state follows."""


_S, _E, _A = AdjacencyState, AdjacencyEvent, AdjacencyAction
_ALL = (_S.DOWN, _S.INITIALIZING, _S.UP)

ADJACENCY_TABLE: TransitionTable[AdjacencyState, AdjacencyEvent, AdjacencyAction] = TransitionTable(
    [
        # RFC 5303 §3.2, column Down: "Initialize"
        Row(_ALL, _E.DOWN_RECEIVED, _A.ANSWER, _S.INITIALIZING),
        # column Initializing: "Up", or "Accept" if it is Up already
        Row(_ALL, _E.INITIALIZING_RECEIVED, _A.ANSWER, _S.UP),
        # column Up, row Down: "Down", since the neighbor's adjacency is from before our restart.
        # The RFC deletes the adjacency; here it was not stored yet. The answer reports Down.
        Row((_S.DOWN,), _E.UP_RECEIVED, _A.ANSWER, _S.DOWN),
        # column Up, other rows: "Up" and "Accept"
        Row((_S.INITIALIZING, _S.UP), _E.UP_RECEIVED, None, _S.UP),
        # ISO 10589 §8.4.2.5.1 for a new adjacency, §8.4.2.5.3 for one that is Up
        Row(_ALL, _E.ONE_WAY_RECEIVED, _A.ANSWER, _S.INITIALIZING),
        # ISO 10589 §8.4.2.5.1; §8.2.5.2 for a neighbor without the three-way TLV
        Row((_S.DOWN, _S.INITIALIZING), _E.TWO_WAY_RECEIVED, _A.ANSWER, _S.UP),
        Row((_S.UP,), _E.TWO_WAY_RECEIVED, None, _S.UP),
        # the neighbor may still receive this router: the answer reports Down
        Row(_ALL, _E.HOLDING_TIME_EXPIRED, _A.ANSWER, _S.DOWN),
        Row(_ALL, _E.KILLED, _A.ANSWER, _S.DOWN),
    ]
)


class Adjacencies:
    """Creates adjacencies, runs their state machine and removes them.

    ``answer`` sends a hello on a circuit (in a level, on a LAN); ``moved`` is called when an
    adjacency of a LAN came up or went down: the DIS may change; ``state_changed`` after any change.
    """

    def __init__(
        self,
        instance: Instance,
        watcher: AdjacencyWatcher,
        answer: Callable[[Circuit, Level | None], None],
        moved: Callable[[Circuit, Level], None],
        state_changed: Callable[[Adjacency], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._watcher = watcher
        self._answer = answer
        self._moved = moved
        self._state_changed = state_changed

    @staticmethod
    def create(circuit: Circuit, system_id: SystemId, snpa: int, levels: LevelSet) -> Adjacency:
        """Create the adjacency of a first hello: on the circuit once it leaves state Down."""
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
            self._set_state(adjacency, target, reason or event.value)
        # The hello leaves before any LSP: while its adjacency is not Up, the neighbor drops LSPs
        # (ISO 10589 §7.3.15.1 a) 6)).
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
        """Change the levels of an adjacency; levels that remain are not affected.

        ISO 10589 §8.2.5.2, tables 5 to 8, takes the whole adjacency down ("wrong system"), and the
        next hello brings it up with the new usage. Here the other level keeps forwarding.
        """
        before, adjacency.levels = adjacency.levels, levels
        for level in (before ^ levels).levels:
            if adjacency.state is AdjacencyState.DOWN:
                continue
            gained = bool(levels & level)
            old, new = AdjacencyState.DOWN, adjacency.state
            self._emit_transition(adjacency, level, (old, new) if gained else (new, old), reason)
            if adjacency.up:
                self._up_changed(adjacency, level, reason)

    def hold(self, adjacency: Adjacency, holding_time: int) -> None:
        """A hello was received: restart the holding time, in seconds.

        ISO 10589 §8.2.5.2 e), §8.4.2.5.2. The timer is not armed anew with each hello: when it
        fires, it checks whether the holding time has expired.
        """
        now = self._process.now
        adjacency.last_hello = now
        adjacency.holding_time = holding_time
        adjacency.expires = now + holding_time
        timer = adjacency.hold_timer
        if timer is None or not timer.active or timer.deadline > adjacency.expires:
            self._process.timers.cancel(timer)
            self._watch(adjacency)

    def _watch(self, adjacency: Adjacency) -> None:
        """Arm the timer; our hellos may fire it earlier, which saves a wake-up of its own."""
        now, expires = self._process.now, adjacency.expires
        adjacency.hold_timer = self._process.timers.arm(
            expires, partial(self._expired, adjacency), now + (expires - now) / 2
        )

    def _expired(self, adjacency: Adjacency) -> None:
        if self._process.now < adjacency.expires:
            self._watch(adjacency)
        else:
            self.fire(adjacency, AdjacencyEvent.HOLDING_TIME_EXPIRED)

    def _set_state(self, adjacency: Adjacency, state: AdjacencyState, reason: str) -> None:
        """Set the state, store or remove the adjacency accordingly, and report it."""
        circuit, previous = adjacency.circuit, adjacency.state
        adjacency.state, adjacency.since = state, self._process.now
        adjacency.up_since = self._process.now if adjacency.up else None
        if previous is AdjacencyState.UP:
            _count_flap(adjacency)
        gone = state is AdjacencyState.DOWN
        if previous is AdjacencyState.UP:
            end_help(self._instance, adjacency, reason)
        if gone:
            self._process.timers.cancel(adjacency.hold_timer)
        level = _lan_level(adjacency)
        if level is None:
            circuit.adjacency = None if gone else adjacency
        elif gone:
            circuit.lan[level].adjacencies.pop(adjacency.snpa, None)
        else:
            circuit.lan[level].adjacencies[adjacency.snpa] = adjacency
        for used in adjacency.levels.levels:
            self._emit_transition(adjacency, used, (previous, state), reason)
        self._state_changed(adjacency)

    def _emit_transition(
        self,
        adjacency: Adjacency,
        level: Level,
        states: tuple[AdjacencyState, AdjacencyState],
        reason: str,
    ) -> None:
        circuit = adjacency.circuit
        before, after = states[0].value, states[1].value
        self._process.counters.transitions[before, after] += 1
        self._process.emit(
            AdjacencyChanged(
                circuit.ifindex,
                circuit.name,
                isis_node(adjacency.system_id),
                before,
                after,
                reason,
                gained_or_lost=AdjacencyState.UP in states,
                level=int(level),
            )
        )

    def _up_changed(self, adjacency: Adjacency, level: Level, reason: str) -> None:
        self._watcher.adjacency_changed(adjacency.circuit, adjacency, level, reason)
        if adjacency.circuit.broadcast:
            self._moved(adjacency.circuit, level)


def all_adjacencies(circuit: Circuit) -> list[Adjacency]:
    """The adjacencies of a circuit in any state, in a stable order."""
    if not circuit.broadcast:
        return [] if circuit.adjacency is None else [circuit.adjacency]
    return [
        lan.adjacencies[snpa]
        for _, lan in sorted(circuit.lan.items())
        for snpa in sorted(lan.adjacencies)
    ]


def end_help(instance: Instance, adjacency: Adjacency, result: str) -> None:
    """Note the end of a neighbor's graceful restart, if there was one in progress."""
    if not (adjacency.restarting or adjacency.prepared):
        return
    adjacency.restarting = adjacency.prepared = False
    adjacency.helped_until = None
    instance.helped.discard(adjacency)
    name = adjacency.circuit.name
    instance.help_ended.append(HelpEnded(name, adjacency.system_id, instance.process.now, result))
    system = format_system_id(adjacency.system_id)
    event = "graceful-restart-helper-ended"
    instance.process.log("info", event, interface=name, neighbor=system, result=result)


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
