"""The restarting router (RFC 8706 §3.3, §3.4.1, which obsoletes RFC 5306).

After a restart, hellos ask the neighbors to keep their adjacencies (``adjacency.reacquirer``, T1),
and to send their databases. Until those of a level are complete, T2 at most, this router generates
no LSPs and keeps those of its own that it receives; its routes stay as they are. T3 is the time for
all of it. A planned restart is announced before (PR).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from fared.core.timers import Timer
from fared.protocols.igp.events import GracefulRestartBegun
from fared.protocols.igp.restart import COMPLETED, RestartEnded, end_restart
from fared.protocols.isis.adjacency.checks import levels_on
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.adjacency.hello import HelloProtocol
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level, lsp_id
from fared.protocols.isis.instance import Instance, Restarting
from fared.protocols.isis.origination.originate import Originator
from fared.protocols.isis.pdu.tlvs import IsReachability, of_type
from fared.protocols.isis.reacquisition import Progress, Reacquisition
from fared.protocols.isis.update.flooding import Flooding

T2 = 60.0
"""Seconds in which the database of a level is to be complete (§3.1)."""
_ROUTES_WITHIN = 2.0
"""Seconds in which routes of the other level are computed, which our LSPs advertise."""
_STALE_AFTER = 5.0
"""Seconds from the end of a restart until LSPs of former pseudonodes are purged."""


class Restarter:
    """Announces restarts, and decides when this router has restarted."""

    def __init__(
        self, instance: Instance, hello: HelloProtocol, flooding: Flooding, originator: Originator
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._hello = hello
        self._flooding = flooding
        self._originator = originator
        self._t2: dict[Level, Timer] = {}
        """T2 of each level whose database is not complete yet."""
        self._t3: Timer | None = None
        self._routes: Timer | None = None
        self._result = COMPLETED
        self.last: RestartEnded | None = None

    # Before a planned restart

    def announce(self, period: float) -> None:
        """Announce a restart in hellos, and change nothing any more (§3.2.3)."""
        self._instance.leaves_until = self._process.now + period
        self._instance.keeps_lsps = True
        self._hello.announce_restart()

    @property
    def announced(self) -> bool:
        """Whether all neighbors that help have acknowledged it."""
        known = (a for c in self._instance.circuits.values() for a in all_adjacencies(c))
        return all(a.waits for a in known if a.up and a.helps)

    # After a restart

    def begin(self, event: GracefulRestartBegun) -> None:
        """This router has restarted; its routes are still in the kernel."""
        instance, now = self._instance, self._process.now
        remaining = min(event.remaining, instance.settings.restart_period)
        instance.restart = Restarting(now, now + remaining, event.planned)
        instance.starting = False
        instance.keeps_lsps = True
        self._originator.restarted(synchronized=True)
        timers = self._process.timers
        for level in instance.databases:
            self._t2[level] = timers.arm(now + T2, partial(self._t2_expired, level))
        self._watch_t3()
        self._process.log(
            "info", "graceful-restart", planned=event.planned, seconds=round(remaining)
        )

    def settle(self) -> None:
        """End the restart once the databases are complete (§3.4.1)."""
        for level in list(self._t2):
            result = self._judge(level)
            if result is not None:
                self._synchronized(level, result)

    def routes_computed(self) -> None:
        """The routes of the other level are known, which our LSPs advertise (§3.4.1)."""
        if self._routes is not None:
            self._process.timers.cancel(self._routes)
            self._resume()

    def _watch_t3(self) -> None:
        """Arm T3; it may have become shorter when it fires, or not due yet."""
        restart = self._instance.restart
        if restart is None:
            return
        if self._process.now < restart.until:
            due = min(restart.until, self._process.now + 1.0)
            self._t3 = self._process.timers.arm(due, self._watch_t3)
            return
        # §3.4.1: our LSPs have the overload bit until the databases are complete
        self._end("grace-period-expired")
        self._originator.restarted(synchronized=False)

    def _t2_expired(self, level: Level) -> None:
        self._synchronized(level, "not-synchronized")

    def _synchronized(self, level: Level, result: str) -> None:
        """The database of a level is complete, or its time is over."""
        self._process.timers.cancel(self._t2.pop(level))
        if self._result == COMPLETED:
            self._result = result
        if self._t2:
            return
        if self._instance.restart is None:
            self._originator.restarted(synchronized=True)
        else:
            self._end(self._result)

    def _end(self, result: str) -> None:
        instance, now = self._instance, self._process.now
        restart = instance.restart
        assert restart is not None
        instance.restart = None
        self._process.timers.cancel(self._t3)
        self.last = end_restart(self._process, restart.began, result, planned=restart.planned)
        self._hello.reacquirer.refuse_all()
        # §3.4.1: with two levels, first the routes of each, which are advertised in the other
        if len(instance.databases) > 1:
            self._routes = self._process.timers.arm(now + _ROUTES_WITHIN, self._resume)
        else:
            self._resume()

    def _resume(self) -> None:
        """Generate our LSPs; purge those from before the restart that are none any more."""
        self._routes = None
        self._instance.keeps_lsps = False
        self._originator.resume()
        due = self._process.now + _STALE_AFTER
        self._process.timers.arm(due, self._originator.purge_former_networks)

    # Decisions

    def _judge(self, level: Level) -> str | None:
        """The result of the restart in a level; None: it is not over."""
        active = [c for c in self._instance.circuits.values() if c.is_active]
        circuits = [c for c in active if levels_on(self._instance, c) & level]
        if not circuits:
            return COMPLETED if active else None
        # §3.3.2: all LSPs that neighbors have described have been received
        return None if self._flooding.awaited(level) else self._judge_complete(circuits, level)

    def _judge_complete(self, circuits: list[Circuit], level: Level) -> str | None:
        """The same, once no LSP that neighbors have described is missing."""
        restored = self._restored(circuits, level)
        expected = self._expected(level)
        states = [state for circuit in circuits for state in _states(circuit, level)]
        refused = any(state.progress is Progress.FAILED for state in states)
        if expected is not None and (restored or refused) and self._contradicted(expected, level):
            return "inconsistent-lsp"
        if expected is not None and expected <= restored:
            return COMPLETED
        if any(state.requesting for state in states):
            return None
        if not restored:
            known = any(circuit.adjacencies(level) for circuit in circuits)
            return "no-helper" if known else "no-neighbors"
        return "no-lsp" if expected is None else "neighbor-lost"

    def _restored(self, circuits: list[Circuit], level: Level) -> Counter[int]:
        """The neighbors and pseudonodes whose adjacencies and databases are complete again."""
        found: Counter[int] = Counter()
        for circuit in circuits:
            if all(state.progress is Progress.RESTORED for state in _states(circuit, level)):
                if circuit.broadcast:
                    found[circuit.lan[level].dis] += 1
                else:
                    found.update(a.system_id << 8 for a in circuit.adjacencies(level))
        return found

    def _expected(self, level: Level) -> Counter[int] | None:
        """The neighbors in our LSPs from before the restart; None: not received yet."""
        if not self._alive(level, self._instance.system_id << 8):
            return None
        return self._listed(level, self._instance.system_id << 8)

    def _contradicted(self, expected: Counter[int], level: Level) -> bool:
        """Whether the LSPs of such a neighbor do not list this router any more.

        Not in RFC 8706, where routes stay as they were while the topology changes: as RFC 3623
        §2.2 (2).
        """
        mine = self._instance.system_id
        for neighbor in expected:
            if neighbor >> 8 != mine and self._alive(level, neighbor):
                listed = self._listed(level, neighbor)
                # over a LAN a router lists the pseudonode
                if not any(other >> 8 == mine or other & 0xFF for other in listed):
                    return True
        return False

    def _alive(self, level: Level, node: int) -> bool:
        entry = self._instance.databases[level].get(lsp_id(node >> 8, node & 0xFF))
        return entry is not None and not entry.purged

    def _listed(self, level: Level, node: int) -> Counter[int]:
        """The neighbors in the LSPs of a router or pseudonode, parallel links counted."""
        by_topology: dict[int | None, Counter[int]] = {}
        system, pseudonode = node >> 8, node & 0xFF
        database = self._instance.databases[level]
        for entry in database.between(lsp_id(system, pseudonode), lsp_id(system, pseudonode, 0xFF)):
            for tlv in of_type(entry.lsp.tlvs, IsReachability):
                known = by_topology.setdefault(tlv.topology, Counter())
                known.update(neighbor.neighbor for neighbor in tlv.neighbors)
        merged: Counter[int] = Counter()
        for known in by_topology.values():
            merged |= known
        return merged


def _states(circuit: Circuit, level: Level) -> Iterator[Reacquisition]:
    """The restart on a circuit in a level."""
    holder = circuit.lan.get(level) if circuit.broadcast else circuit
    if holder is not None and holder.reacquiring is not None:
        yield holder.reacquiring
