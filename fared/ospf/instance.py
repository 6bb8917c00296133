"""What all parts of one OSPF process share: settings, clock reading, timers, outputs, counters.

The parts (hello, exchange, flooding, origination...) are small objects that each know this one
and the few others they call; the engine wires them and dispatches inputs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fared.core.complaints import Complaints, Worth
from fared.core.ids import dotted
from fared.core.timers import TimerQueue
from fared.ospf.authenticate import Sequences
from fared.ospf.events import LogRecord, Output
from fared.ospf.lsdb import LsaEntry, Lsdb, Scope

if TYPE_CHECKING:
    from fared.core.ids import AreaId
    from fared.core.rng import Rng
    from fared.ospf.interface import Interface
    from fared.ospf.settings import AreaSettings, OspfSettings


@dataclass(slots=True)
class Counters:
    """Running totals since the engine began."""

    packets: Counter[tuple[str, str]] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    transitions: Counter[tuple[str, str]] = field(default_factory=Counter)
    lsas: Counter[str] = field(default_factory=Counter)


class Area:
    """One area: its database and its interfaces (RFC 2328 §6)."""

    __slots__ = ("area_id", "lsdb", "settings")

    def __init__(self, settings: AreaSettings) -> None:
        self.area_id = settings.area
        self.settings = settings
        self.lsdb = Lsdb(Scope.AREA, area=settings.area)


class Instance:
    """The protocol data structure of one router (RFC 2328 §5)."""

    def __init__(self, settings: OspfSettings, rng: Rng) -> None:
        self.settings = settings
        self.rng = rng
        self.now = 0.0
        self.timers = TimerQueue()
        self.counters = Counters()
        self.sequences = Sequences(settings.auth_sequence)
        self.areas: dict[AreaId, Area] = {}
        self.interfaces: dict[int, Interface] = {}
        self.as_scope = Lsdb(Scope.AS)
        self.unsent: dict[int, Interface] = {}
        """Interfaces with something queued, by ifindex: what a drain has to look at."""
        self.exchanging = 0
        """Neighbors in state Exchange or Loading: while there are any, MaxAge LSAs stay (§14)."""
        self.dying: dict[LsaEntry, None] = {}
        """MaxAge LSAs waiting for their last acknowledgment."""
        self.border = False
        """Whether this is an area border router (RFC 3509): see ``border``."""
        self._by_area: dict[AreaId, list[Interface]] | None = None
        self._outputs: list[Output] = []
        self._complaints = Complaints()

    @property
    def router_id(self) -> int:
        """This router's id."""
        return self.settings.router_id

    @property
    def wall(self) -> float:
        """The wall clock's time, seconds since 1970."""
        return self.settings.epoch + self.now

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
        """Count something bad from a peer, and log it where that is worth a line."""
        self.counters.errors[reason] += 1
        worth = self._complaints.weigh(source, reason, self.now)
        if worth is Worth.NOTHING:
            return
        self.log("warning", "ospf-rejected", reason=reason, source=dotted(source), **fields)
        if worth is Worth.LAST_LINE:
            self.log("warning", "ospf-rejected-many", effect="for a minute only counted")

    def add_interface(self, interface: Interface) -> None:
        """Begin to run OSPF on an interface."""
        self.interfaces[interface.ifindex] = interface
        self._by_area = None

    def remove_interface(self, ifindex: int) -> None:
        """Forget an interface."""
        del self.interfaces[ifindex]
        self._by_area = None

    def area_interfaces(self, area: AreaId) -> list[Interface]:
        """The interfaces of an area, by ifindex."""
        if self._by_area is None:
            self._by_area = {}
            for _, interface in sorted(self.interfaces.items()):
                self._by_area.setdefault(interface.settings.area, []).append(interface)
        return self._by_area.get(area, [])
