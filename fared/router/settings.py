"""Settings of a whole router: those of its rooms, gathered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fared.core.backoff import BackoffSettings
from fared.fib.settings import FibSettings
from fared.isis.settings import IsisSettings
from fared.ospf.settings import OspfSettings
from fared.rib.settings import SolverSettings

PREFERENCES = {"ospf": 110, "isis": 115}
"""The usual ones, as FRR and others have them."""


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """What one router needs to know before its first link event: at least one protocol."""

    ospf: OspfSettings | None = None
    isis: IsisSettings | None = None
    solver: SolverSettings = field(default_factory=SolverSettings)
    fib: FibSettings = field(default_factory=FibSettings)
    backoff: BackoffSettings = field(default_factory=BackoffSettings)
    preferences: dict[str, int] = field(default_factory=lambda: dict(PREFERENCES))
    """Of each protocol, by its name: where several know a prefix, the lower one wins."""
    start_deadline: float = 40.0
    """Seconds after which start-up stops waiting for neighbors that never come."""

    @property
    def hostname(self) -> str | None:
        """The name that is flooded."""
        names = (part.hostname for part in (self.ospf, self.isis) if part is not None)
        return next(names, None)

    @property
    def drained(self) -> bool:
        """Whether others are asked not to pass through this router."""
        stub = self.ospf is not None and self.ospf.stub_router
        return stub or (self.isis is not None and self.isis.overload)

    @property
    def epoch(self) -> float:
        """Wall-clock time at ``now`` 0, seconds since 1970."""
        return next(part.epoch for part in (self.ospf, self.isis) if part is not None)

    def with_clock(self, epoch: float, auth_sequence: int) -> RouterSettings:
        """Tell the engines what the wall clock says (``epoch``), and where to count on from."""
        ospf = self.ospf and replace(self.ospf, epoch=epoch, auth_sequence=auth_sequence)
        return replace(self, ospf=ospf, isis=self.isis and replace(self.isis, epoch=epoch))

    def drain(self) -> RouterSettings:
        """Ask others not to pass through: stub router (RFC 6987), overload bit."""
        ospf = self.ospf and replace(self.ospf, stub_router=True)
        return replace(self, ospf=ospf, isis=self.isis and replace(self.isis, overload=True))
