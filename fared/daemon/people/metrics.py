"""The Prometheus metrics, read from the live parts at each scrape. ``views`` calls ``families``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import get_args

from msgspec.structs import asdict
from prometheus_client.core import Metric

from fared.core.link_facts import KERNEL
from fared.daemon.loop.audit import REASONS
from fared.daemon.people.engine_metrics import of_engines
from fared.management.api.metrics import counter, gauge
from fared.management.documents.census import Census
from fared.management.documents.context import ViewContext
from fared.management.documents.each import views_of
from fared.management.documents.views.adaptation import announcements, programmed_shares
from fared.management.documents.views.bier import bier
from fared.management.documents.views.host_links import oversubscription
from fared.management.documents.views.routes import quantization_error
from fared.management.documents.views.status import routes_by_protocol, spraying, weighted_routes
from fared.paths.fib.model import FibOperation
from fared.paths.fib.settings import Granularity
from fared.paths.rib.model import NextHopSet
from fared.router.protocols import BGP

Labels = tuple[str, ...]
_SETS = 8
"""Sets of next hops, of 64 each, between two pauses: a millisecond or two."""


def families(context: ViewContext, operations: Mapping[str, int]) -> Iterator[Metric | None]:
    """Yield all families, None where it may pause; ``operations`` counts ``Operation/result``."""
    censuses = {at.name: views.census(context) for at, views in views_of(context)}
    yield from _start_up(context)
    yield from of_engines(context, censuses)
    if BGP in context.router.instances:
        from fared.daemon.people.bgp_metrics import of_bgp  # noqa: PLC0415 - it needs the engine

        yield from of_bgp(context)
    yield from _restarts(context)
    yield from _bfd(context)
    for plugged in context.plugged.values():
        yield from plugged.metrics()
    yield from _routing(context)
    yield from _kernel(context, operations)
    yield from _fpm(context)
    yield from _sprayed(context)
    yield from _bier(context)
    yield from _links(context, censuses)
    yield from _platform(context)
    yield from _announcements(context)
    yield from _process(context)


def _start_up(context: ViewContext) -> Iterator[Metric]:
    startup = context.router.startup
    yield gauge("ready", "1 once start-up is over and the kernel has the routes", startup.ready)
    reached = {(stage.label,): seconds for stage, seconds in startup.reached.items()}
    text = "Seconds from start to each start-up stage"
    yield gauge("init_stage_seconds", text, reached, ("stage",))


def _restarts(context: ViewContext) -> Iterator[Metric]:
    parts = [part for _, views in views_of(context) if (part := views.graceful_restart(context))]
    helping = {(part.proto,): len(part.helping) for part in parts}
    text = "Neighbors that restart gracefully, with the help of this router"
    yield gauge("restarting_neighbors", text, helping, ("proto",))


def _bfd(context: ViewContext) -> Iterator[Metric]:
    """BFD sessions, where BFD is used."""
    document = context.bfd()
    if document is None:
        return
    states: dict[Labels, int] = {}
    late: dict[Labels, int] = {}
    downs: dict[Labels, int] = {}
    for entry in document.sessions:
        labels: Labels = (entry.interface, entry.neighbor)
        states[labels] = int(entry.state == "Up")
        late[labels] = entry.late
        downs[labels] = entry.downs
    names: Labels = ("interface", "neighbor")
    yield gauge("bfd_session_up", "1 while a BFD session is up", states, names)
    yield counter("bfd_session_downs", "Times that a BFD session went down", downs, names)
    text = "Timers of a BFD session that fired late in this router"
    yield counter("bfd_late_timers", text, late, names)
    starts = 0 if document.process is None else document.process.starts
    yield counter("bfd_process_starts", "Starts of the process of BFD", {(): starts}, ())


def _routing(context: ViewContext) -> Iterator[Metric | None]:
    router = context.router
    runs = {
        (proto, reason): router.journal.runs[proto, reason]
        for proto in router.instances
        for reason in ("topology", "capacity")
    }
    yield counter("spf_runs", "Route computations", runs, ("proto", "reason"))
    routes = {(proto,): count for proto, count in routes_by_protocol(context).items()}
    yield gauge("routes", "Routes in the routing table", routes, ("proto",))
    martians = {(name,): instance.martians for name, instance in router.instances.items()}
    yield gauge(
        "martian_prefixes", "Prefixes advertised to us that are never routed", martians, ("proto",)
    )
    # By identity: thousands of routes share few sets, and hashing one hashes all its hops.
    sets = {id(r.nexthops): (prefix, r.nexthops) for prefix, r in context.routes.items()}
    worst = 0.0
    for number, (prefix, hops) in enumerate(sets.values()):
        if number % _SETS == 0:
            yield None
        # a prefix that has gone meanwhile has no source any more
        if hops is not None and hops.hops and prefix in context.routes:
            shares = programmed_shares(context, prefix, hops)
            worst = max(worst, quantization_error(context, hops, shares))
    text = "Largest throughput loss to integer weights"
    yield gauge("weight_quantization_error_ratio", text, worst)
    text = "Routes with next hops of unequal weights"
    yield gauge("weighted_routes", text, weighted_routes(context.routes))
    text = "Share of a next hop over its share under equal weights; all routes, the extremes"
    least, most = math.inf, 0.0
    for number, (_, hops) in enumerate(sets.values()):
        if number % _SETS == 0:
            yield None
        for ratio in _ratios(hops) if hops else ():
            least, most = min(least, ratio), max(most, ratio)
    extremes = {("smallest",): least if most else 1.0, ("largest",): most or 1.0}
    yield gauge("weight_share_ratio", text, extremes, ("extreme",))


def _ratios(nexthops: NextHopSet) -> Iterator[float]:
    """Yield how the share of each next hop compares with equal shares: 1 is equal."""
    hops = nexthops.hops
    together = sum(hop.weight for hop in hops)
    if together:
        yield from (len(hops) * hop.weight / together for hop in hops)


def _fpm(context: ViewContext) -> Iterator[Metric]:
    """The session of FPM, where there is one."""
    if context.fpm is None:
        return
    session = context.fpm.session
    yield gauge("fpm_up", "1 while the peer of FPM has been sent all routes", session.replayed)
    yield gauge("fpm_routes", "Routes announced by FPM", len(session.rows.announced))
    text = "Routes to be sent by FPM, or to be acknowledged"
    yield gauge("fpm_waiting_routes", text, session.waiting)
    text = "Routes not sent in full by FPM: next hops withheld, or too many"
    kept = {("withheld",): len(session.withheld), ("too-long",): len(session.too_long)}
    yield gauge("fpm_incomplete_routes", text, kept, ("reason",))
    sent = {(kind,): session.counts[kind] for kind in ("put", "delete")}
    yield counter("fpm_messages", "Messages sent by FPM", sent, ("kind",))
    acks = {(): session.counts["ack"]}
    yield counter("fpm_acknowledgements", "Acknowledgements received by FPM", acks, ())
    yield counter("fpm_connections", "Connections of FPM", {(): session.counts["connection"]}, ())
    silences = {(): session.counts["silence"]}
    yield counter(
        "fpm_silences", "Connections of FPM closed without acknowledgements", silences, ()
    )


def _kernel(context: ViewContext, operations: Mapping[str, int]) -> Iterator[Metric]:
    router, runtime = context.router, context.runtime
    done: dict[Labels, int] = {
        (kind.__name__, result): 0 for kind in get_args(FibOperation) for result in ("ok", "error")
    }
    for name, number in operations.items():
        operation, _, result = name.partition("/")
        done[operation, result] = number
    yield counter("fib_operations", "Operations on the kernel", done, ("op", "result"))
    text = "Objects that differed from the programmed state at the last check"
    yield gauge("fib_drift_routes", text, router.journal.counts["last-drift"])
    drift = {(): router.journal.counts["drift"]}
    yield counter("fib_drift", "Objects that other programs changed, and we repaired", drift, ())
    resyncs = {(reason,): runtime.resyncs[reason] for reason in REASONS}
    yield counter("fib_resyncs", "Full comparisons with the kernel", resyncs, ("reason",))
    rewritten: dict[Labels, int] = {("group-rewrite",): router.planner.counters["group-rewrite"]}
    yield counter("weight_changes", "Next-hop groups rewritten", rewritten, ("reason",))


def _sprayed(context: ViewContext) -> Iterator[Metric]:
    """Routes by granularity, and the packets that were not sent by flow."""
    status = spraying(context)
    counts = {(kind.value,): 0 for kind in Granularity}
    counts["flow",] = len(context.router.planner.installed.routes) - status.prefixes
    counts[status.granularity,] += status.prefixes
    text = "Routes in the kernel by what takes one path"
    yield gauge("granularity_routes", text, counts, ("granularity",))
    text = "1 if packets cannot be sprayed as configured"
    yield gauge("spray_problem", text, status.problem is not None)
    labels: Labels = ("interface", "address")
    hops = [((hop.interface, hop.address or ""), hop) for hop in status.nexthops]
    packets = {at: hop.packets for at, hop in hops}
    yield counter("sprayed_packets", "Sprayed packets by next hop", packets, labels)
    sizes = {at: hop.bytes for at, hop in hops}
    yield counter("sprayed_bytes", "Bytes of sprayed packets by next hop", sizes, labels)


def _bier(context: ViewContext) -> Iterator[Metric]:
    """Where BIER runs: what it reaches, and the kernel's counters."""
    if context.router.multicast.bier is None:
        return
    found = bier(context)
    reached = sum(not bfer.problem for bfer in found.bfers)
    states: dict[Labels, int] = {("reached",): reached}
    states["not-reached",] = len(found.bfers) - reached
    yield gauge("bier_bfers", "BFERs that are known", states, ("state",))
    yield gauge("bier_problem", "1 if no packets are forwarded", found.problem != "")
    masks = sum(len(table.masks) for table in found.bifts)
    yield gauge("bier_bift_entries", "Neighbors in all tables", masks)
    counts: dict[Labels, int] = {(what,): n for what, n in asdict(found.packets).items()}
    yield counter("bier_packets", "BIER packets by what became of them", counts, ("result",))
    labels: Labels = ("interface", "address")
    near = [((n.interface, n.address or ""), n) for n in found.neighbors]
    copies: dict[Labels, int] = {at: entry.packets for at, entry in near}
    yield counter("bier_copies", "Copies of BIER packets by neighbor", copies, labels)
    sizes: dict[Labels, int] = {at: entry.bytes for at, entry in near}
    yield counter("bier_copy_bytes", "Bytes of these copies", sizes, labels)


def _platform(context: ViewContext) -> Iterator[Metric]:
    """What is wrong with the platform, where one is read beside the kernel."""
    platform = context.platform
    if platform.name == KERNEL:
        return
    yield gauge("platform_up", "1 while the facts of links can be read", platform.error is None)
    lost: dict[Labels, int] = {(): platform.failures}
    yield counter(
        "platform_failures", "Times that facts of links could no longer be read", lost, ()
    )
    wrong: dict[Labels, int] = {(why,): count for why, count in platform.wrong_values().items()}
    text = "Values of the platform that were ignored"
    yield counter("platform_wrong_values", text, wrong, ("reason",))


def _links(context: ViewContext, censuses: Mapping[str, Census]) -> Iterator[Metric]:
    """Links with an unknown value are left out: there is no NaN among the metrics."""
    capacity: dict[Labels, float] = {}
    available: dict[Labels, float] = {}
    utilization: dict[Labels, float] = {}
    links = (link for census in censuses.values() for link in census.capacities)
    for ifindex, name, bandwidth in links:
        capacity[name,] = bandwidth
        used = context.runtime.utilized.get(ifindex)
        if used is not None:
            available[name,] = max(0.0, bandwidth - used)
            utilization[name,] = used / bandwidth
    labels = ("interface",)
    yield gauge("link_capacity_bytes_per_second", "Capacity of a link", capacity, labels)
    yield gauge(
        "link_available_bytes_per_second", "Available bandwidth of a link", available, labels
    )
    yield gauge("link_utilization_ratio", "Outbound load over capacity", utilization, labels)
    shares = {
        (name,): min((item.share for item in context.derated(name)), default=1.0)
        for (name,) in capacity
    }
    text = "Part of a link that may be used: less if it is drained or sick"
    yield gauge("link_share_ratio", text, shares, labels)
    health = {(name,): facts for (name,) in capacity if (facts := context.link_health(name))}
    errors = {at: facts.errors for at, facts in health.items()}
    yield gauge("link_errors", "Errors of a watched link in its window", errors, labels)
    suppressed = {at: facts.suppressed for at, facts in health.items()}
    yield gauge("link_suppressed", "Whether flaps of a watched link are damped", suppressed, labels)
    found = oversubscription(context, censuses.values())
    if found is not None:
        text = "Capacity of links to hosts over that of links to routers"
        yield gauge("oversubscription_ratio", text, found.ratio)
    samples = {(result,): context.runtime.load_samples[result] for result in ("ok", "failed")}
    yield counter("load_samples", "Measurements of the load of all links", samples, ("result",))


def _announcements(context: ViewContext) -> Iterator[Metric]:
    """The budgets of announced loads (``te.budget``)."""
    known = {(area.protocol, area.area): area for area in announcements(context)}
    labels: Labels = ("proto", "area")
    budgets = {at: area.budget for at, area in known.items()}
    text = "Announcements of load a second, of all routers together"
    yield gauge("announce_budget", text, budgets, labels)
    shares = {at: area.share for at, area in known.items()}
    yield gauge("announce_share", "Those of this router", shares, labels)
    thresholds = {at: area.threshold for at, area in known.items()}
    text = "Change of load to announce, as part of the capacity"
    yield gauge("announce_threshold_ratio", text, thresholds, labels)
    averaging = {at: area.averaging for at, area in known.items()}
    text = "Time over which loads are averaged"
    yield gauge("announce_averaging_seconds", text, averaging, labels)
    deferred = {at: area.deferred for at, area in known.items()}
    yield gauge("announce_deferred", "LSAs or LSPs that wait for the budget", deferred, labels)
    announced = {at: area.announced for at, area in known.items()}
    yield counter("announcements", "Announcements of bandwidth", announced, labels)


def _process(context: ViewContext) -> Iterator[Metric]:
    runtime = context.runtime
    text = "Longest delay of a timer in the event loop in the last 20 seconds"
    yield gauge("event_loop_lag_seconds", text, max(runtime.recent_lags, default=0.0))
    text = "0 after a reload that was refused"
    yield gauge("config_last_reload_success", text, runtime.last_reload_ok is not False)
    until = runtime.unconfirmed_until
    left = 0.0 if until is None else max(0.0, until - context.wall)
    text = "Time until the former configuration returns unless confirmed; 0: nothing waits"
    yield gauge("config_unconfirmed_seconds", text, left)
