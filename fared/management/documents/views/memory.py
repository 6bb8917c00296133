"""The view of the daemon's resources: memory, CPU, descriptors, sizes of tables."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

from fared.management.documents.context import ViewContext
from fared.management.documents.each import views_of
from fared.management.documents.memory import Memory, TableSize
from fared.management.documents.views.graph import areas_of
from fared.protocols.igp.database_limit import LimitView
from fared.runtime.descriptors import ceiling

_KIB = 1024


def memory(context: ViewContext) -> Memory:
    """``show memory``."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resident = _resident()
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Memory(
        cpu=round(used.ru_utime + used.ru_stime, 3),
        resident=resident,
        peak_resident=max(resident, used.ru_maxrss * _KIB),
        descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
        client_descriptors=ceiling(),
        descriptor_limit=None if limit == resource.RLIM_INFINITY else limit,
        event_loop_lag=round(context.runtime.event_loop_lag, 6),
        tables=[*_databases(context), *_graphs(context), *_rest(context)],
    )


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * resource.getpagesize()


def _size(
    table: str,
    entries: int,
    proto: str | None,
    area: str | None = None,
    limit: LimitView | None = None,
) -> TableSize:
    return TableSize(
        table=table,
        proto=proto,
        area=area,
        entries=entries,
        limit=None if limit is None else limit.limit,
        state=None if limit is None else limit.state.value,
        ignored=0 if limit is None else limit.ignored,
        times_full=0 if limit is None else limit.times,
    )


def _databases(context: ViewContext) -> Iterator[TableSize]:
    for instance, views in views_of(context):
        for area, entries in views.sizes(context):
            limit = instance.engine.limits.get(area)
            yield _size("lsdb", entries, instance.name, area, limit)


def _graphs(context: ViewContext) -> Iterator[TableSize]:
    """Count routers and networks in the TED, once where both families share them."""
    for instance in context.instances:
        for area in areas_of(instance):
            teds = [s.ted(area) for s in instance.solvers.values() if area in s.areas]
            nodes = max(len(ted.blocks) for ted in teds)
            yield _size("ted", nodes, instance.name, context.area_name(instance.name, area))


def _rest(context: ViewContext) -> Iterator[TableSize]:
    for instance in context.instances:
        prefixes = instance.engine.prefix_limit
        yield _size("prefixes", prefixes.entries, instance.name, None, prefixes)
        yield _size("rib", len(instance.routes), instance.name)
    if context.proto is None:
        installed = context.router.planner.installed
        yield _size("routes", len(installed.routes), None)
        yield _size("groups", len(installed.groups), None)
        yield _size("nexthops", len(installed.nexthops), None)
        yield _size("log", len(context.log), None)
