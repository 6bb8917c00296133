"""State of the process itself: written by the daemon and its health, read by views."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

import msgspec

from fared.config import Config
from fared.core.load_history import LoadHistory
from fared.core.lost_neighbors import LostNeighbors
from fared.core.sysctl import SysctlRow

LAGS = 20
"""One lag is measured in a second: more than Prometheus lets pass between two scrapes."""


class RunningConfig(msgspec.Struct):
    """What runs: a configuration, which a reload replaces, and the path of its file."""

    path: str
    config: Config


class Runtime(msgspec.Struct):
    """Facts of the process, outside the pure packages. Times are Unix time in seconds."""

    started_at: float
    pid: int
    config_file: str
    loaded_at: float
    last_reload_ok: bool | None = None
    last_reload_error: str | None = None
    unconfirmed_until: float | None = None
    """When the former configuration returns, unless the present one is confirmed."""
    event_loop_lag: float = 0.0
    recent_lags: deque[float] = msgspec.field(default_factory=lambda: deque(maxlen=LAGS))
    """The lags measured last."""
    resyncs: Counter[str] = msgspec.field(default_factory=Counter)
    sysctls: list[SysctlRow] = msgspec.field(default_factory=list)
    utilized: dict[int, float] = msgspec.field(default_factory=dict)
    """Outbound load by interface index, bytes/s."""
    load_history: LoadHistory = msgspec.field(default_factory=LoadHistory)
    load_samples: Counter[str] = msgspec.field(default_factory=Counter)
    """Measurements of load, by result: ok or failed."""
    cleared: tuple[float, Mapping[str, Mapping[str, Mapping[str, int]]]] | None = None
    """The time of the last ``clear counters``, and what it found."""
    neighbor_reasons: dict[tuple[int, int], str] = msgspec.field(default_factory=dict)
    """The reason of the last state change of each neighbor (ifindex, node id)."""
    lost_neighbors: LostNeighbors = msgspec.field(default_factory=LostNeighbors)
