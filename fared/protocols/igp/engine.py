"""Time, outputs and counters of an engine, the same for every protocol.

An engine does the work that serves several inputs at once (``_settle``) in its turn: a call of
``take_outputs``. What is to be sent is returned first, changes of the TED (``_publish``) by the
next turn: neighbors work meanwhile. After a tick of a quiet engine there is often nothing but
hellos to send: one turn does that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic

from fared.core.filters import Withheld
from fared.core.ids import NodeId, Prefix
from fared.core.routes import TagOf
from fared.protocols.igp.counters import ProtocolCounters
from fared.protocols.igp.events import LogRecord
from fared.protocols.igp.process import Output, Process
from fared.protocols.igp.refusals import RefusedHello


class ProcessEngine(ABC, Generic[Output]):
    """An engine around its process. Once it is ``_stopped`` inputs have no effect."""

    _ends_with_publishing = False
    """Whether nothing that ``_publish`` does gives ``_settle`` anything to do."""

    def __init__(self, process: Process[Output]) -> None:
        self._process = process
        self._stopped = False
        self.settled = False
        """Whether ``take_outputs`` has nothing to do."""
        self._sends_alone = False
        """Whether it has nothing to do but to send: hellos, or acknowledgments."""

    def tick(self, now: float) -> None:
        """Fire the timers that are due."""
        process = self._process
        process.now, process.routine = now, 0
        fired = process.timers.fire(now)
        if fired:
            self._sends_alone = self.settled and fired == process.routine
            self.settled = False

    def _unsettle(self) -> None:
        """An input has to be settled."""
        self.settled = self._sends_alone = False

    def next_deadline(self) -> float | None:
        """When to call ``tick`` at the latest."""
        return self._process.timers.next_deadline()

    def take_outputs(self) -> list[Output | LogRecord]:
        """Complete the work of ``handle`` and ``tick``; call until nothing is returned."""
        if self.settled:
            return []
        alone, self._sends_alone = self._sends_alone, False
        if alone and self._send_alone():
            self.settled = True
            return self._process.take_outputs()
        if not self._stopped:
            self._settle()
            if outputs := self._process.take_outputs():
                return outputs
            self._publish()
        outputs = self._process.take_outputs()
        self.settled = self._ends_with_publishing or not outputs
        return outputs

    @property
    def counters(self) -> ProtocolCounters:
        """Counters since the start, live."""
        return self._process.counters

    def refused(self, now: float) -> tuple[RefusedHello, ...]:
        """The hellos refused in the last minutes, by interface and source."""
        return self._process.refusals.kept(now)

    def tags(self) -> TagOf:
        """A function that returns the administrative tags of prefixes: without any, None."""
        return lambda _prefix, _area, _destinations: None

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """Yield the filters that keep a prefix out: without any, none."""
        del prefix
        return iter(())

    def preference(self, prefix: Prefix, usual: int) -> int:
        """The preference of the route to a prefix: that of the protocol."""
        del prefix
        return usual

    def externals(self) -> Iterator[tuple[NodeId, Prefix]]:
        """Prefixes of others that look like a router's own ones: without any, none."""
        return iter(())

    def contested(self, now: float) -> str | None:
        """An LSA or LSP of ours that another router originates, too: it has our id."""
        return self._process.foreign_copies.contested(now)

    def activity(self) -> int:
        """Events of the database so far: constant in a quiet network."""
        return sum(self._process.counters.lsdb.values())

    def _shutdown(self) -> None:
        self._leave()
        self._process.timers.clear()
        self._stopped = True

    def _send_alone(self) -> bool:
        """Send what is due, if nothing else waits; return whether that is so."""
        return False

    @abstractmethod
    def _settle(self) -> None:
        """Originate, flood and send."""

    @abstractmethod
    def _publish(self) -> None:
        """Emit the changes of the TED."""

    @abstractmethod
    def _leave(self) -> None:
        """Tell the neighbors that this router leaves."""
