"""Documents of the daemon itself: status, convergence, counters, log, configuration, operation."""

from __future__ import annotations

from typing import Any, TypedDict

from fared.api.schema.common import Document, Seconds, UnixTime


class StageReached(TypedDict):
    """A start-up stage and when it was reached, in seconds since start."""

    stage: str
    seconds: Seconds


class AreaStatus(TypedDict):
    """One OSPF area in short. ``checksum``: sum of the LS checksums (RFC 4750), 0x and 8 digits."""

    area: str
    type: str
    interfaces: int
    neighbors: int
    full: int
    lsas: int
    checksum: str


class FloodingStatus(TypedDict):
    """How floods are passed on. ``reduction`` is none or leaf; ``delay``: seconds at most."""

    reduction: str
    delay: Seconds


class OspfStatus(TypedDict):
    """OSPF in short."""

    stub_router: bool
    flooding: FloodingStatus
    areas: list[AreaStatus]


class LevelStatus(TypedDict):
    """One level of IS-IS in short. ``checksum``: sum of those of live LSPs, 0x and 8 digits."""

    level: str
    interfaces: int
    neighbors: int
    up: int
    lsps: int
    checksum: str


class IsisStatus(TypedDict):
    """IS-IS in short: its area addresses (``49.0001``), families, the bits our LSPs carry."""

    system_id: str
    areas: list[str]
    families: list[str]
    overloaded: bool
    attached: bool
    flooding: FloodingStatus
    levels: list[LevelStatus]


class SpfStatus(TypedDict):
    """``backoff`` is quiet, short-wait or long-wait (RFC 8405); durations are of the last run."""

    runs: int
    backoff: str
    last_at: UnixTime | None
    last_duration: Seconds | None


class RouteCounts(TypedDict):
    """``redistributed``: local ones that OSPF announces as external.

    ``weighted``: routes whose next hops have different weights. ``protocols`` and ``families``
    count them by where they come from and what they are.
    """

    total: int
    connected: int
    redistributed: int
    weighted: int
    protocols: dict[str, int]
    families: dict[str, int]


class FibCounts(TypedDict):
    """What is in the kernel of ours. ``drift``: repairs of foreign changes since start."""

    routes: int
    groups: int
    nexthops: int
    drift: int
    resyncs: int


class ConfigStatus(TypedDict):
    """``last_reload_ok`` and ``last_reload_error`` are None before the first reload."""

    file: str
    loaded_at: UnixTime
    last_reload_ok: bool | None
    last_reload_error: str | None


class Status(Document):
    """``show status``. ``stage`` is the label of the start-up stage (``ready`` at last).

    ``router_id`` is the system id where only IS-IS runs; ``ospf`` and ``isis`` are None where
    they do not.
    """

    version: str
    router_id: str
    hostname: str
    pid: int
    started_at: UnixTime
    uptime: Seconds
    ready: bool
    stage: str
    stages: list[StageReached]
    drained: bool
    weights: str
    """none, capacity, available or equalise."""
    config: ConfigStatus
    ospf: OspfStatus | None
    isis: IsisStatus | None
    spf: SpfStatus
    routes: RouteCounts
    fib: FibCounts
    sysctls: list[dict[str, Any]]
    """Kernel settings that weights depend on: ``name, wanted, found, action, ok, why``."""
    event_loop_lag: Seconds


class ConvergenceChange(TypedDict):
    """One change from its first sign to the kernel.

    ``detected`` is from the kernel's message or the packet to the engine, ``originated`` what
    the engine made of it (our LSAs or those to pass on), ``flooded`` sending them. ``waited``
    was added by the SPF back-off, ``computed`` is ``spf`` and ``weighed`` (weights and RIB),
    ``planned`` the FIB plan, ``programmed`` the kernel; ``total`` is from first sign to done.
    """

    at: UnixTime
    causes: list[str]
    spf_ran: bool
    routes: int
    operations: int
    detected: Seconds
    originated: Seconds
    flooded: Seconds
    waited: Seconds
    computed: Seconds
    spf: Seconds
    weighed: Seconds
    planned: Seconds
    programmed: Seconds
    total: Seconds


class Convergence(Document):
    """``show convergence``: start-up, then the last changes."""

    stages: list[StageReached]
    changes: list[ConvergenceChange]


class Counter(TypedDict):
    """``group`` says what is counted (packets, errors, lsas, spf, fib...).

    ``proto`` None: it is of no protocol.
    """

    proto: str | None
    group: str
    name: str
    value: int


class Counters(Document):
    """``show counters``, since start; argument ``proto`` optional."""

    counters: list[Counter]


class LogLine(TypedDict):
    """One log record."""

    time: UnixTime
    level: str
    event: str
    fields: dict[str, Any]


class Log(Document):
    """``show log``: the last records; argument ``lines`` (a number) limits them."""

    lines: list[LogLine]


class ConfigDocument(Document):
    """``show config``: the running configuration with all defaults, in the form of the file."""

    file: str
    loaded_at: UnixTime
    config: dict[str, Any]


class ConfigChange(TypedDict):
    """``action`` is update-in-place, bounce-adjacency or restart-required."""

    path: str
    old: Any
    new: Any
    action: str


class ConfigDiff(Document):
    """``config diff FILE`` (arguments ``text``, ``file``): the file against what is running."""

    changes: list[ConfigChange]


class Reload(Document):
    """``config reload``. ``errors`` are lines for people; with any, nothing was applied.

    ``changes`` lists all differences; those marked restart-required were not applied.
    """

    applied: bool
    changes: list[ConfigChange]
    errors: list[str]


class Check(TypedDict):
    """One self-check: what was compared (``name``), and what was found (``detail``)."""

    name: str
    ok: bool
    detail: str


class Validate(Document):
    """``validate``: database, graph, routes and kernel agree."""

    ok: bool
    checks: list[Check]


class Drain(Document):
    """``drain`` and ``undrain``: the state now."""

    drained: bool
