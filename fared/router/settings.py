"""Settings of a whole router: those of its packages, gathered."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from fared.core.backoff import BackoffSettings
from fared.paths.fib.settings import FibSettings, SpraySettings
from fared.paths.rib.settings import SolverSettings
from fared.router.engine import EngineSettings

if TYPE_CHECKING:
    from fared.core.bier import BierSettings
    from fared.core.routes import RouteSource


class RouterSettings(msgspec.Struct, frozen=True):
    """Settings of one router: of at least one protocol."""

    protocols: Mapping[str, EngineSettings]
    """By protocol name."""
    solver: SolverSettings = SolverSettings()
    fib: FibSettings = FibSettings()
    spray: SpraySettings = SpraySettings()
    backoff: BackoffSettings = BackoffSettings()
    bier: BierSettings | None = None
    preferences: Mapping[str, int] = msgspec.field(default_factory=dict)
    """By protocol, if not the default: the lower preference wins."""
    start_deadline: float = 40.0
    """Seconds after which start-up stops waiting for neighbors."""

    @property
    def hostname(self) -> str | None:
        """The name that is flooded."""
        return next((part.hostname for part in self.protocols.values()), None)

    @property
    def drained(self) -> bool:
        """Whether this router is drained: others avoid it."""
        return any(part.drained for part in self.protocols.values())

    @property
    def redistributed(self) -> dict[str, Mapping[RouteSource, int]]:
        """What each protocol redistributes of the others, with the tag of each source."""
        return {name: part.redistributed for name, part in self.protocols.items()}

    @property
    def epoch(self) -> float:
        """Wall-clock time at ``now`` 0, seconds since 1970."""
        return next(part.epoch for part in self.protocols.values())

    def with_clock(self, epoch: float, boot_count: int = 0) -> RouterSettings:
        """Pass clock offset (``epoch``) and boot count to the engines."""
        parts = self.protocols.items()
        clocked = {name: part.with_clock(epoch, boot_count) for name, part in parts}
        return replace(self, protocols=clocked)

    def drain(self) -> RouterSettings:
        """Drain this router: stub router (RFC 6987), overload bit."""
        return replace(self, protocols={n: part.drain() for n, part in self.protocols.items()})

    def drain_some(self, names: Collection[str]) -> RouterSettings:
        """Drain this router in some protocols."""
        parts = self.protocols.items()
        return replace(self, protocols={n: p.drain() if n in names else p for n, p in parts})

    def with_protocol(self, name: str, **changes: Any) -> RouterSettings:  # noqa: ANN401
        """The same with changed settings of one protocol."""
        part: Any = self.protocols[name]
        return replace(self, protocols={**self.protocols, name: replace(part, **changes)})
