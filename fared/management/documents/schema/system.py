"""Documents of the daemon itself: status, convergence, counters, log, configuration, operation."""

from __future__ import annotations

from typing import Any, TypedDict

from fared.management.documents.schema.common import JsonDocument, Seconds, UnixTime


class AreaStatus(TypedDict):
    """Summary of an area. ``checksum``: sum of the LS checksums (RFC 4750), 0x and 8 digits."""

    area: str
    type: str
    interfaces: int
    neighbors: int
    full: int
    lsas: int
    checksum: str


class FloodingTopologyStatus(TypedDict):
    """Dynamic flooding in an area or level. ``leader``: the area leader.

    ``routers``: how many it connects, 0: there is none, and LSAs or LSPs are flooded to all
    neighbors. Of the neighbors that take part, those in ``others`` are sent none.
    """

    scope: str
    leader: str | None
    routers: int
    parents: list[str]
    children: list[str]
    others: list[str]


class FloodingStatus(TypedDict):
    """Flooding reduction. ``reduction`` is none, leaf or dynamic; ``delay``: seconds at most.

    ``topologies``: with dynamic, one for each area or level.
    """

    reduction: str
    delay: Seconds
    topologies: list[FloodingTopologyStatus]


class OspfStatus(TypedDict):
    """Summary of OSPF. ``unauthenticated``: interfaces that accept neighbors without a key."""

    stub_router: bool
    unauthenticated: int
    flooding: FloodingStatus
    areas: list[AreaStatus]


class LevelStatus(TypedDict):
    """One level of IS-IS. ``checksum``: sum of the checksums of live LSPs, 0x and 8 digits."""

    level: str
    interfaces: int
    neighbors: int
    up: int
    lsps: int
    checksum: str


class IsisStatus(TypedDict):
    """Summary of IS-IS: area addresses (``49.0001``), families, the bits of our LSPs.

    ``unauthenticated``: interfaces that accept neighbors without a key.
    """

    system_id: str
    areas: list[str]
    families: list[str]
    overloaded: bool
    attached: bool
    unauthenticated: int
    flooding: FloodingStatus
    levels: list[LevelStatus]


class SpfStatus(TypedDict):
    """``backoff`` is quiet, short-wait or long-wait (RFC 8405); durations are of the last run."""

    runs: int
    backoff: str
    last_at: UnixTime | None
    last_duration: Seconds | None


class RouteCounts(TypedDict):
    """``redistributed``: local ones that OSPF advertises as external.

    ``weighted``: routes whose next hops have different weights. ``martians``: advertisements
    (0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/3, ::, ::1, fe80::/10, ff00::/8) that are no routes.
    ``protocols`` and ``families`` count routes by source and by address family.
    """

    total: int
    connected: int
    redistributed: int
    weighted: int
    martians: int
    protocols: dict[str, int]
    families: dict[str, int]


class ForeignRoute(TypedDict):
    """A route of another program, ``protocol`` by its number (None: not looked up yet)."""

    prefix: str
    protocol: int | None


class FibCounts(TypedDict):
    """Our objects in the kernel. ``drift``: repairs of foreign changes since start.

    ``foreign``: routes of others in the places of ours, at most 100 of ``foreign_total``.
    """

    routes: int
    groups: int
    nexthops: int
    drift: int
    resyncs: int
    foreign: list[ForeignRoute]
    foreign_total: int


class SprayedHop(TypedDict):
    """Sprayed packets that left through a next hop, since its mark was written (30 s old)."""

    interface: str
    address: str | None
    packets: int
    bytes: int


class SprayStatus(TypedDict):
    """What takes one path: ``granularity`` as configured (flow, flowlet or packet).

    ``groups`` are sprayed, over packets to ``prefixes`` routes. ``problem``: why packets follow
    their flow, or the last refusal. ``drift``: repairs of foreign changes since start.
    """

    granularity: str
    groups: int
    prefixes: int
    drift: int
    problem: str | None
    nexthops: list[SprayedHop]


class ConfigStatus(TypedDict):
    """``last_reload_ok`` and ``last_reload_error`` are None before the first reload.

    ``unconfirmed_until``: the former configuration returns then; None: nothing is unconfirmed.
    """

    file: str
    loaded_at: UnixTime
    last_reload_ok: bool | None
    last_reload_error: str | None
    unconfirmed_until: UnixTime | None


class Status(JsonDocument):
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
    stages: list[Any]
    drained: bool
    drained_by: str | None
    drained_reason: str | None
    weights: str
    """none, capacity, available or equalise."""
    config: ConfigStatus
    ospf: OspfStatus | None
    isis: IsisStatus | None
    spf: SpfStatus
    routes: RouteCounts
    fib: FibCounts
    spraying: SprayStatus
    sysctls: list[dict[str, Any]]
    """Kernel settings that weights depend on: ``name, wanted, found, action, ok, why``."""
    event_loop_lag: Seconds


class Counter(TypedDict):
    """``group`` is the kind of events counted (packets, errors, lsas, spf, fib...).

    ``proto`` None: of no protocol.
    """

    proto: str | None
    group: str
    name: str
    value: int


class Counters(JsonDocument):
    """``show counters``, since start; argument ``proto`` optional."""

    counters: list[Counter]


class LogLine(TypedDict):
    """One log record."""

    time: UnixTime
    level: str
    event: str
    fields: dict[str, Any]


class LogDocument(JsonDocument):
    """``show log``: the last records; argument ``lines`` (a number) limits them."""

    lines: list[LogLine]


class SelfCheck(TypedDict):
    """One self-check: the comparison (``name``), and its result (``detail``)."""

    name: str
    ok: bool
    detail: str


class Validate(JsonDocument):
    """``validate``: database, graph, routes and kernel agree."""

    ok: bool
    checks: list[SelfCheck]


class RecordDocument(JsonDocument):
    """``record start``, ``stop`` and ``status``: the recording that runs, or the last one.

    ``since``: seconds since 1970; ``size`` and ``limit``: bytes; ``failure``: why it ended.
    """

    recording: bool
    directory: str | None
    since: float | None
    segments: int
    calls: int
    size: int
    limit: int | None
    failure: str | None


class DrainDocument(JsonDocument):
    """``drain`` and ``undrain``: the resulting state.

    ``not_kept``: why a restart undoes it; None: it does not.
    """

    drained: bool
    interface: str | None
    share: float | None
    reason: str
    not_kept: str | None
