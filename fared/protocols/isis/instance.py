"""State shared by all parts of one IS-IS process: settings, databases, circuits.

The parts (hellos, flooding, origination...) are small objects that know this one and the few others
they call; the engine connects them and dispatches inputs.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from fared.core.links import OwnAddresses
from fared.protocols.igp.process import Process
from fared.protocols.isis.ids import Level, format_snpa
from fared.protocols.isis.lsdb import Lsdb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.ids import SystemId
    from fared.core.rng import Rng
    from fared.paths.te.budget import AnnounceBudget
    from fared.protocols.isis.circuit import Adjacency, Circuit
    from fared.protocols.isis.events import Output
    from fared.protocols.isis.settings import IsisSettings

_JITTER = 0.25
_KEPT = 16


class Restarting(msgspec.Struct, frozen=True):
    """A graceful restart of this router, until ``until`` at most (RFC 8706, T3)."""

    began: float
    until: float
    planned: bool


class HelpEnded(msgspec.Struct, frozen=True):
    """How this router ceased to help a neighbor: ``completed``, or why the adjacency ended."""

    interface: str
    system_id: int
    at: float
    result: str


class Instance:
    """The state of one intermediate system."""

    def __init__(self, settings: IsisSettings, rng: Rng) -> None:
        self.settings = settings
        self.process: Process[Output] = Process("isis", settings.epoch, rng, format_snpa)
        self.circuits: dict[int, Circuit] = {}
        """By ifindex."""
        self.own_addresses = OwnAddresses()
        self.borrowed: frozenset[int] = frozenset()
        """IPv4 addresses of loopbacks, which unnumbered links borrow."""
        self.budgets: Mapping[Level, AnnounceBudget] = {}
        """The budgets of announcements by level, of ``origination.originate``."""
        self.help_ended: deque[HelpEnded] = deque(maxlen=_KEPT)
        """The last graceful restarts of neighbors."""
        self.helped: set[Adjacency] = set()
        """The adjacencies of neighbors that restart, or are about to."""
        self.restart: Restarting | None = None
        """The graceful restart of this router that is in progress."""
        self.starting = False
        """Whether neighbors are asked not to advertise their adjacencies with this router (SA)."""
        self.keeps_lsps = False
        """Whether our LSPs from before a restart stay as they are: no new ones are generated."""
        self.leaves_until: float | None = None
        """This router is about to restart: the time until which neighbors are to wait for it."""
        self.databases: dict[Level, Lsdb] = {level: Lsdb(level) for level in settings.levels.levels}

    @property
    def system_id(self) -> SystemId:
        """This router's system id."""
        return self.settings.system_id

    def apply(self, settings: IsisSettings) -> None:
        """Take new settings (a reload)."""
        self.settings = settings
        self.process.epoch = settings.epoch

    def add_circuit(self, circuit: Circuit) -> None:
        """Run IS-IS on a circuit from now on."""
        self.circuits[circuit.ifindex] = circuit
        self.process.counters.interfaces[circuit.ifindex] = circuit.counters

    def remove_circuit(self, ifindex: int) -> None:
        """Remove a circuit."""
        del self.circuits[ifindex]
        self.process.forget(ifindex)

    def jitter(self, interval: float) -> float:
        """An interval shortened by up to a quarter (ISO 10589 §10.1)."""
        return interval * (1.0 - _JITTER * self.process.rng.random())

    def earliest(self, interval: float) -> float:
        """The shortest interval after jitter."""
        return interval * (1.0 - _JITTER)

    def ordered_circuits(self) -> list[Circuit]:
        """The circuits by ifindex."""
        return [self.circuits[key] for key in sorted(self.circuits)]
