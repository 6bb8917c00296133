"""Settings of a whole router: those of its rooms, gathered."""

from __future__ import annotations

from dataclasses import dataclass, field

from fared.core.backoff import BackoffSettings
from fared.fib.settings import FibSettings
from fared.ospf.settings import OspfSettings
from fared.rib.settings import SolverSettings


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """What one router needs to know before its first link event."""

    ospf: OspfSettings
    solver: SolverSettings = field(default_factory=SolverSettings)
    fib: FibSettings = field(default_factory=FibSettings)
    backoff: BackoffSettings = field(default_factory=BackoffSettings)
    start_deadline: float = 40.0
    """Seconds after which start-up stops waiting for neighbors that never come."""
