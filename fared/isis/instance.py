"""What all parts of one IS-IS process share: settings, clock reading, timers, outputs, counters.

The parts (hellos, flooding, origination...) are small objects that each know this one and the
few others they call; the engine wires them and dispatches inputs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fared.core.complaints import Complaints, Worth
from fared.core.timers import TimerQueue
from fared.isis.events import LogRecord, Output
from fared.isis.ids import Level, format_snpa
from fared.isis.lsdb import Lsdb

if TYPE_CHECKING:
    from fared.core.ids import SystemId
    from fared.core.rng import Rng
    from fared.isis.circuit import Circuit
    from fared.isis.settings import IsisSettings


@dataclass(slots=True)
class Counters:
    """Running totals since the engine began."""

    pdus: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By (received or sent, PduType.label)."""
    errors: Counter[str] = field(default_factory=Counter)
    transitions: Counter[tuple[str, str]] = field(default_factory=Counter)
    lsps: Counter[str] = field(default_factory=Counter)


class Instance:
    """The state of one intermediate system."""

    def __init__(self, settings: IsisSettings, rng: Rng) -> None:
        self.settings = settings
        self.rng = rng
        self.now = 0.0
        self.timers = TimerQueue()
        self.counters = Counters()
        self.circuits: dict[int, Circuit] = {}
        """By ifindex."""
        self.lent: frozenset[int] = frozenset()
        """IPv4 addresses of loopbacks, which unnumbered links borrow."""
        self.databases: dict[Level, Lsdb] = {level: Lsdb(level) for level in settings.levels.levels}
        self._outputs: list[Output] = []
        self._complaints = Complaints()

    @property
    def system_id(self) -> SystemId:
        """This router's system id."""
        return self.settings.system_id

    @property
    def wall(self) -> float:
        """The wall clock's time, seconds since 1970."""
        return self.settings.epoch + self.now

    def jitter(self, interval: float) -> float:
        """An interval shortened by up to a quarter (ISO 10589 §10.1)."""
        return interval * (1.0 - 0.25 * self.rng.random())

    def ordered_circuits(self) -> list[Circuit]:
        """The circuits by ifindex."""
        return [self.circuits[key] for key in sorted(self.circuits)]

    def emit(self, output: Output) -> None:
        """Append to what the next ``drain`` returns."""
        self._outputs.append(output)

    def take_outputs(self) -> list[Output]:
        """Hand out what was emitted since the last call."""
        taken, self._outputs = self._outputs, []
        return taken

    def log(self, level: str, event: str, **fields: object) -> None:
        """Emit a log record."""
        self.emit(LogRecord(level, event, fields))

    def reject(self, reason: str, source: int, **fields: object) -> None:
        """Count something bad from a peer (a MAC address); log it where that is worth a line."""
        self.counters.errors[reason] += 1
        worth = self._complaints.weigh(source, reason, self.now)
        if worth is Worth.NOTHING:
            return
        self.log("warning", "isis-rejected", reason=reason, source=format_snpa(source), **fields)
        if worth is Worth.LAST_LINE:
            self.log("warning", "isis-rejected-many", effect="for a minute only counted")
