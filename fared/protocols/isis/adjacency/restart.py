"""The helper of neighbors that restart gracefully (RFC 8706, which obsoletes RFC 5306).

A restarted neighbor sends hellos with RR set. The adjacency stays up whatever else they say, the
answer has RA set, and the database is sent to it again. The holding time begins anew only once, so
that a neighbor that restarts again and again is lost in the end. A neighbor that is about to
restart sets PR. Each hello with it is a sign of life, and no more: whoever can send one, in the
name of the neighbor, could else switch the detection of its failure off.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from fared.core.ids import SystemId, format_system_id
from fared.protocols.igp.restart import ISIS_GRACE_PERIOD
from fared.protocols.isis.adjacency.fsm import (
    Adjacencies,
    AdjacencyEvent,
    AdjacencyWatcher,
    end_help,
)
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.model import LanHello, P2pHello
from fared.protocols.isis.pdu.tlvs import Restart, RestartFlag, of_type


class RestartHelper:
    """Keeps adjacencies up while neighbors restart. ``answer`` sends a hello at once."""

    def __init__(
        self,
        instance: Instance,
        watcher: AdjacencyWatcher,
        adjacencies: Adjacencies,
        answer: Callable[[Circuit, Level | None], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._watcher = watcher
        self._adjacencies = adjacencies
        self._answer = answer

    def receive(self, adjacency: Adjacency, hello: LanHello | P2pHello) -> bool:
        """Process the restart TLV of a hello; return whether the rest of it is ignored."""
        restart = next(iter(of_type(hello.tlvs, Restart)), None)
        flags = 0 if restart is None else restart.flags
        adjacency.helps = restart is not None
        adjacency.waits = answers_us(self._instance, hello, RestartFlag.PA) is not None
        self._suppress(adjacency, suppressed=bool(flags & RestartFlag.SA))
        helps = (
            self._instance.settings.restart_helper and adjacency.up and not self._over(adjacency)
        )
        # RFC 8706 §3.2.3: a planned restart is announced
        if helps and flags & RestartFlag.PR:
            self._prepare(adjacency, hello.holding_time)
            return True
        # §3.2.1: restart request
        if helps and flags & RestartFlag.RR:
            self._restarted(adjacency, hello.holding_time)
            return True
        # §3.2.1 a): RR clear ends the restart mode, and the holding time begins anew
        if adjacency.restarting or adjacency.prepared:
            over = self._over(adjacency)
            end_help(self._instance, adjacency, "grace-period-expired" if over else "completed")
        return False

    def topology_changed(self, changed: set[tuple[Level, SystemId]]) -> None:
        """LSPs of these systems have other contents: neighbors that restart do not know of it.

        Their own LSPs tell of no change that they do not know. Not in RFC 8706: as RFC 3623
        §3.2 (3), since routes through such a neighbor may lead in a loop.
        """
        for adjacency in list(self._instance.helped):
            if any(
                adjacency.levels & level and system != adjacency.system_id
                for level, system in changed
            ):
                self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, "topology-change")

    def _over(self, adjacency: Adjacency) -> bool:
        """Whether the neighbor has been helped for as long as a restart may take."""
        until = adjacency.helped_until
        return until is not None and self._process.now >= until

    def _begin(self, adjacency: Adjacency, *, planned: bool) -> None:
        self._log("graceful-restart-helper", adjacency, planned=planned)
        self._instance.helped.add(adjacency)
        if adjacency.helped_until is None:
            adjacency.helped_until = self._process.now + ISIS_GRACE_PERIOD

    def _prepare(self, adjacency: Adjacency, holding_time: int) -> None:
        if not adjacency.prepared:
            self._begin(adjacency, planned=True)
        adjacency.prepared = True
        # Not the remaining time, which §3.2.3 recommends: the neighbor may be dead by then. The
        # holding time of a designated IS is a third, which is short for a restart.
        settings = adjacency.circuit.settings
        usual = math.ceil(settings.hello_interval * settings.hello_multiplier)
        self._adjacencies.hold(adjacency, min(max(holding_time, usual), ISIS_GRACE_PERIOD))
        self._reply(adjacency)

    def _restarted(self, adjacency: Adjacency, holding_time: int) -> None:
        # §3.2.1 a): the holding time begins anew with the first request only
        if not adjacency.restarting:
            self._begin(adjacency, planned=False)
            self._adjacencies.hold(adjacency, min(holding_time, ISIS_GRACE_PERIOD))
        adjacency.restarting, adjacency.prepared = True, False
        # b): answer at once, c): then send the database
        self._reply(adjacency)
        if self._synchronizes(adjacency):
            for level in adjacency.levels.levels:
                self._watcher.neighbor_restarted(adjacency.circuit, level)

    def _reply(self, adjacency: Adjacency) -> None:
        circuit = adjacency.circuit
        level = Level(int(adjacency.levels)) if circuit.broadcast else None
        self._answer(circuit, level)

    def _synchronizes(self, adjacency: Adjacency) -> bool:
        """Whether this router sends the database: on a LAN only one of the helpers (§3.2.1 c))."""
        circuit = adjacency.circuit
        if not circuit.broadcast:
            return True
        others = circuit.lan[Level(int(adjacency.levels))].adjacencies.values()
        ranks = [(o.priority, o.snpa) for o in others if o.up and o.helps and not o.restarting]
        own = (circuit.settings.priority, circuit.link.hardware_address or 0)
        return own > max(ranks, default=(-1, 0))

    def _suppress(self, adjacency: Adjacency, *, suppressed: bool) -> None:
        """§3.2.2: a starting neighbor wants its adjacency not to be advertised yet."""
        if suppressed != adjacency.suppressed:
            adjacency.suppressed = suppressed
            if adjacency.up:
                self._watcher.circuit_changed(adjacency.circuit)

    def _log(self, event: str, adjacency: Adjacency, **fields: object) -> None:
        name, system = adjacency.circuit.name, format_system_id(adjacency.system_id)
        self._instance.process.log("info", event, interface=name, neighbor=system, **fields)


def answers_us(instance: Instance, hello: LanHello | P2pHello, flag: RestartFlag) -> Restart | None:
    """The answer to a restart of this router in a hello: RA or PA (§3.1), on a LAN with our id."""
    return next(
        (
            tlv
            for tlv in of_type(hello.tlvs, Restart)
            if tlv.flags & flag and tlv.system_id in (None, instance.system_id)
        ),
        None,
    )


def restart_tlvs(
    instance: Instance, circuit: Circuit, adjacencies: list[Adjacency], *, requesting: bool
) -> tuple[Restart, ...]:
    """The restart TLVs of a hello: one without flags, or an answer to each restart (§3.1).

    This router restarts itself: RR (``requesting``), or is about to (PR). Then it helps nobody. SA:
    it starts, and has no database yet.
    """
    start = int(RestartFlag.SA) if instance.starting else 0
    until = instance.leaves_until
    if requesting:
        return (Restart(int(RestartFlag.RR)),)
    if until is not None:
        left = max(0, min(0xFFFF, int(until - instance.process.now)))
        return (Restart(int(RestartFlag.PR), left),)
    if not instance.settings.restart_helper:
        return (Restart(start),) if start else ()
    answers = []
    for adjacency in adjacencies:
        if adjacency.restarting or adjacency.prepared:
            flag = RestartFlag.RA if adjacency.restarting else RestartFlag.PA
            remaining = max(0, min(0xFFFF, int(adjacency.expires - instance.process.now)))
            system = adjacency.system_id if circuit.broadcast else None
            answers.append(Restart(int(flag) | start, remaining, system))
    return tuple(answers) or (Restart(start),)
