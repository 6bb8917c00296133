"""``show status``: identity, start-up, and sums of the router and its protocols."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fared.core.sysctl import SysctlRow
from fared.management.documents import human
from fared.management.documents.cells import Cell, Fields, count, judged, red, yellow
from fared.management.documents.convergence import StageTime
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import Facts, Seconds, UnixTime
from fared.management.documents.missing import LinkCounts, summary
from fared.management.documents.protocol_status import BgpStatus, IsisStatus, OspfStatus

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class SpfStatus(Facts):
    """``backoff`` is quiet, short-wait or long-wait (RFC 8405); durations are of the last run."""

    runs: int
    backoff: str
    last_at: UnixTime | None
    last_duration: Seconds | None


class RouteCounts(Facts):
    """``redistributed``: of the kernel, or of another protocol, that a protocol advertises.

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


class ForeignRoute(Facts):
    """A route of another program, ``protocol`` by its number (None: not looked up yet)."""

    prefix: str
    protocol: int | None


class FibCounts(Facts):
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


class SprayedHop(Facts):
    """Sprayed packets that left through a next hop, since its mark was written (30 s old)."""

    interface: str
    address: str | None
    packets: int
    bytes: int


class SprayStatus(Facts):
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


class ConfigStatus(Facts):
    """``last_reload_ok`` and ``last_reload_error`` are None before the first reload.

    ``unconfirmed_until``: the former configuration returns then; None: nothing is unconfirmed.
    """

    file: str
    loaded_at: UnixTime
    last_reload_ok: bool | None
    last_reload_error: str | None
    unconfirmed_until: UnixTime | None


class Status(Answer, tag="fared-status/1"):
    """``show status``. ``stage`` is the label of the start-up stage (``ready`` at last).

    ``router_id`` is the system id where only IS-IS runs; ``ospf``, ``isis`` and ``bgp`` are
    None where they do not.
    """

    version: str
    router_id: str
    hostname: str
    pid: int
    started_at: UnixTime
    uptime: Seconds
    ready: bool
    stage: str
    stages: list[StageTime]
    drained: bool
    drained_by: str | None
    drained_reason: str | None
    weights: str
    """none, capacity, available or equalise."""
    links: LinkCounts
    config: ConfigStatus
    ospf: OspfStatus | None
    isis: IsisStatus | None
    bgp: BgpStatus | None
    spf: SpfStatus
    routes: RouteCounts
    fib: FibCounts
    spraying: SprayStatus
    sysctls: list[SysctlRow]
    """Kernel settings that weights depend on."""
    event_loop_lag: Seconds

    def show(self, paper: Paper) -> None:
        """Print identity, start-up and sums, then each protocol."""
        paper.pairs(_sums(self, paper.now))
        for protocol in (self.ospf, self.isis, self.bgp):
            if protocol is not None:
                paper.line()
                protocol.show(paper)


def _sums(status: Status, now: float) -> Iterator[tuple[str, Cell]]:
    text, config = Fields(status), status.config
    yield "Router", f"{status.hostname} ({_identity(status)})"
    state = judged("ready" if status.ready else status.stage, good=status.ready)
    yield "State", (state, yellow(_drained(status)))
    yield "Version", f"fared {status.version}, process {status.pid}"
    yield "Up", text["uptime"]
    yield "Start-up", _last_stage(status.stages)
    yield from _sysctls(status.sysctls)
    yield "Links", summary(status.links, now)
    yield "Weights", status.weights
    yield "Routes", _routes(status.routes)
    yield "Kernel", _held(status.fib)
    yield from _foreign(status.fib)
    yield from _spraying(status.spraying)
    yield "SPF", _last_run(status.spf, now)
    yield "Loop lag", text["event_loop_lag"]
    yield "Configuration", config.file
    if config.last_reload_ok is False:
        yield "Last reload", red(f"refused: {config.last_reload_error or 'no reason given'}")
    if config.unconfirmed_until is not None:
        left = human.duration(max(config.unconfirmed_until - now, 0))
        yield "Unconfirmed", yellow(f"the former one returns in {left}")


def _drained(status: Status) -> str:
    """``, drained by anna: optics``; without a user it is the configuration's or a restart's."""
    if not status.drained:
        return ""
    by, reason = status.drained_by, status.drained_reason
    return f", drained{f' by {by}' if by else ''}{f': {reason}' if reason else ''}"


def _identity(status: Status) -> str:
    """The router id, and the system id if it differs."""
    system_id = "" if status.isis is None else status.isis.system_id
    return ", ".join(dict.fromkeys(filter(None, (status.router_id, system_id))))


def _last_stage(stages: list[StageTime]) -> str:
    """Return the last stage reached; ``show convergence`` has all."""
    if not stages:
        return human.DASH
    return f"{stages[-1].stage} after {human.duration(stages[-1].seconds)}"


def _sysctls(rows: list[SysctlRow]) -> Iterator[tuple[str, Cell]]:
    """Yield the number of sysctls if all are correct, else each wrong one."""
    wrong = [row for row in rows if not row.ok]
    if rows and not wrong:
        changed = sum(row.action == "set" for row in rows)
        yield "Sysctls", f"{len(rows)} correct, {changed} of them set by fared"
    for row in wrong:
        found = "missing" if row.found is None else row.found
        failed = f" (setting it failed: {row.error})" if row.error else ""
        yield "Sysctl", red(f"{row.name} is {found}, not {row.wanted}: {row.why}{failed}")


def _routes(routes: RouteCounts) -> str:
    rare = ("redistributed", "martians")
    kinds = ("connected", "redistributed", "weighted", "martians")
    numbers = [(getattr(routes, kind), kind) for kind in kinds]
    shown = [f"{number} {kind}" for number, kind in numbers if number or kind not in rare]
    return ", ".join([str(routes.total), *shown])


def _held(fib: FibCounts) -> str:
    held = count(fib.routes, "route"), count(fib.groups, "group"), count(fib.nexthops, "next hop")
    return f"{', '.join(held)}; {count(fib.drift, 'repair')}"


def _foreign(fib: FibCounts) -> Iterator[tuple[str, Cell]]:
    """Yield routes of other programs in the place of ours."""
    for route in fib.foreign:
        protocol = "unknown" if route.protocol is None else route.protocol
        text = f"{route.prefix}: a route of protocol {protocol} is in the place of ours"
        yield "Foreign", red(text)
    more = fib.foreign_total - len(fib.foreign)
    if more > 0:
        yield "Foreign", red(f"and {more} more")


def _spraying(spraying: SprayStatus) -> Iterator[tuple[str, Cell]]:
    """Yield what is sprayed, unless packets are to follow their flow, and a problem with it."""
    if spraying.granularity != "flow":
        routes, groups = count(spraying.prefixes, "route"), count(spraying.groups, "group")
        yield "Granularity", f"{spraying.granularity}: {routes}, {groups}"
    for hop in spraying.nexthops:
        via = f" via {hop.address}" if hop.address else ""
        yield "", f"{count(hop.packets, 'packet')}: {hop.interface}{via}"
    if spraying.problem:
        yield "Granularity", red(f"not as configured: {spraying.problem}")


def _last_run(spf: SpfStatus, now: float) -> str:
    if spf.last_at is None:
        return "never ran"
    ago, took = human.duration(now - spf.last_at), human.duration(spf.last_duration)
    return f"{count(spf.runs, 'run')}, the last {ago} ago in {took}, {spf.backoff}"


DOCUMENT = Document(
    Status,
    "status:status",
    "Summary of the daemon: identity, start-up, neighbors, routes.",
)
