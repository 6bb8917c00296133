"""How long each change took from its first sign to the kernel, and why it happened.

Every input that changes something carries the time of its first sign; the causes gathered
since the last computation ride along with it into the FIB and end as one record.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from fared.core.ids import Prefix

MAX_CAUSES = 8


@dataclass(frozen=True, slots=True)
class ConvergenceRecord:
    """One change. Times are on the router's clock, durations in seconds.

    ``detected``: from the kernel's message, or the packet, until the engine had it;
    ``originated``: what the engine took to understand it and to have our own LSAs, or those to
    be passed on, ready; ``flooded``: to send them; ``waited`` is what the SPF back-off added;
    ``computed`` is ``spf`` (shortest paths) and ``weighed`` (weights and RIB), ``planned`` the
    FIB plan, ``programmed`` the kernel; ``total`` from first sign to done.
    """

    at: float
    causes: tuple[str, ...]
    spf_ran: bool
    routes: int
    operations: int
    detected: float
    originated: float
    flooded: float
    waited: float
    computed: float
    spf: float
    weighed: float
    planned: float
    programmed: float
    total: float


@dataclass(frozen=True, slots=True)
class SpfRecord:
    """One run of the solver: an entry of ``show spf log``."""

    at: float
    causes: tuple[str, ...]
    spf_ran: bool
    nodes: int
    edges: int
    routes: int
    computed: float
    backoff: str
    spf: float = 0.0
    """Of ``computed``: shortest paths; the rest is weights and routes."""


@dataclass(frozen=True, slots=True)
class Lead:
    """What came before the computation of a change, seconds each: see ``ConvergenceRecord``."""

    detected: float = 0.0
    originated: float = 0.0
    flooded: float = 0.0


@dataclass(slots=True)
class PendingChange:
    """What has been seen since the last computation."""

    since: float | None = None
    detected: float = 0.0
    originated: float = 0.0
    flooded: float = 0.0
    causes: list[str] = field(default_factory=list)
    more: int = 0

    def add(self, cause: str, since: float) -> None:
        """Remember one more cause; the earliest sign counts."""
        self.since = since if self.since is None else min(self.since, since)
        if cause in self.causes:
            return
        if len(self.causes) < MAX_CAUSES:
            self.causes.append(cause)
        else:
            self.more += 1

    def lead(self) -> Lead:
        """What it took so far."""
        return Lead(self.detected, self.originated, self.flooded)

    def summary(self) -> tuple[str, ...]:
        """The causes for people."""
        return (*self.causes, f"and {self.more} more") if self.more else tuple(self.causes)


@dataclass(slots=True)
class Journal:
    """The last changes and SPF runs, and counts since start."""

    changes: deque[ConvergenceRecord] = field(default_factory=lambda: deque(maxlen=256))
    spf_runs: deque[SpfRecord] = field(default_factory=lambda: deque(maxlen=256))
    counts: Counter[str] = field(default_factory=Counter)
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Runs of the solvers of each protocol, by its name and why: topology or capacity."""
    last_change: dict[Prefix, SpfRecord] = field(default_factory=dict)
    """The run that last changed each route; a route that is gone keeps its entry."""
