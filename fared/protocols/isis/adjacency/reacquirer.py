"""Adjacencies while this router restarts gracefully (RFC 8706 §3.3.1); see ``reacquisition``."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from fared.protocols.isis.adjacency.fsm import AdjacencyEvent
from fared.protocols.isis.adjacency.hello_timer import hello_holder, hello_levels
from fared.protocols.isis.adjacency.restart import answers_us
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.model import Csnp, LanHello, P2pHello
from fared.protocols.isis.pdu.tlvs import RestartFlag
from fared.protocols.isis.reacquisition import Reacquisition

_BEGINS_ANEW = (AdjacencyEvent.DOWN_RECEIVED, AdjacencyEvent.INITIALIZING_RECEIVED)


class Reacquirer:
    """Follows the restart on each circuit. ``send_now`` sends a hello at once."""

    def __init__(
        self, instance: Instance, send_now: Callable[[Circuit, Level | None], None]
    ) -> None:
        self._instance = instance
        self._send_now = send_now

    def begin(self, circuit: Circuit, level: Level | None) -> None:
        """Hellos begin on a circuit; those of a restart request that adjacencies are kept."""
        restarts = self._instance.restart is not None
        hello_holder(circuit, level).reacquiring = Reacquisition() if restarts else None

    def follow(
        self, adjacency: Adjacency, hello: P2pHello | LanHello, event: AdjacencyEvent
    ) -> AdjacencyEvent | None:
        """A hello was received: return the event that it is; None: none yet."""
        circuit = adjacency.circuit
        level = Level(int(adjacency.levels)) if circuit.broadcast else None
        holder = hello_holder(circuit, level)
        state = holder.reacquiring
        if state is None or not state.requesting:
            return event
        answer = answers_us(self._instance, hello, RestartFlag.RA)
        # RA counts only if the adjacency is up at the neighbor (§3.3.1)
        if answer is not None and event not in _BEGINS_ANEW:
            self._remaining(answer.remaining_time)
            self._becomes(circuit, level, state.acknowledged(adjacency.levels))
            return AdjacencyEvent.INITIALIZING_RECEIVED if level is None else event
        if level is not None:
            return event
        # a hello from before it received our request: RFC 5303 would begin the adjacency anew
        if event not in _BEGINS_ANEW:
            return None
        holder.reacquiring = state.refused()
        return event

    def described(self, circuit: Circuit, csnp: Csnp) -> None:
        """A CSNP of a neighbor was received."""
        level = Level(csnp.level)
        where = level if circuit.broadcast else None
        if where is not None and where not in circuit.lan:
            return
        state = hello_holder(circuit, where).reacquiring
        if state is not None and state.requesting and circuit.adjacencies(level):
            self._becomes(circuit, where, state.described(level, csnp.start, csnp.end))

    def refuse_all(self) -> None:
        """The restart has ended: normal hellos on all circuits, at once."""
        for circuit in self._instance.ordered_circuits():
            for level in hello_levels(circuit):
                state = hello_holder(circuit, level).reacquiring
                if state is not None:
                    self._becomes(circuit, level, state.refused())

    def _becomes(self, circuit: Circuit, level: Level | None, state: Reacquisition) -> None:
        holder = hello_holder(circuit, level)
        before, holder.reacquiring = holder.reacquiring, state
        if before is not None and before.requesting and not state.requesting:
            self._send_now(circuit, level)

    def _remaining(self, seconds: int | None) -> None:
        """§3.3.1: T3 ends with the first adjacency that a neighbor would give up."""
        restart = self._instance.restart
        if restart is None or seconds is None:
            return
        until = min(restart.until, self._instance.process.now + seconds)
        self._instance.restart = replace(restart, until=until)
