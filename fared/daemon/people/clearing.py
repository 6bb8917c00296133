"""``clear`` and ``log level``: adjacencies that form again, counters and levels for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fared.core.ids import isis_node, parse_dotted, parse_system_id
from fared.management.documents.errors import CommandError, not_found
from fared.management.documents.neighbor import BgpNeighborEntry, NeighborEntry
from fared.management.documents.operation import (
    ClearedCounters,
    ClearedNeighbor,
    ClearedNeighbors,
    LogLevel,
)
from fared.management.documents.views.protocol import neighbors
from fared.protocols.igp.events import NeighborCleared
from fared.router.protocols import BGP, ISIS

if TYPE_CHECKING:
    from fared.daemon.change.operation import Operation
    from fared.daemon.people.logs import DaemonLog
    from fared.daemon.people.views import ViewSource
    from fared.management.api.requests import ClearNeighborRequest


_ESTABLISHED = "Established"


def clear_neighbor(
    views: ViewSource, operation: Operation, asked: ClearNeighborRequest
) -> ClearedNeighbors:
    """End the adjacencies with a neighbor, or have its routes told again.

    Raises CommandError if there is none, or none that can.
    """
    context = views.context().narrowed(asked.proto)
    found = neighbors(context, asked.neighbor).neighbors
    if not found:
        known = (row.name for row in neighbors(context).neighbors)
        raise not_found("neighbor", asked.neighbor, known)
    found = [row for row in found if row.proto == BGP or not asked.soft]
    if not found:
        raise CommandError("unsupported", "soft: only neighbors of BGP tell their routes again")
    found = [
        row
        for row in found
        if row.proto != BGP or row.state == _ESTABLISHED or (_held(row) and not asked.soft)
    ]
    if not found:
        raise CommandError("busy", f"the session with {asked.neighbor} is not established")
    links = {link.name: link.ifindex for link in context.links.values()}
    for row in found:
        isis = row.proto == ISIS
        node = isis_node(parse_system_id(row.router_id)) if isis else parse_dotted(row.router_id)
        cleared = NeighborCleared(links[row.interface], node, asked.soft, _held(row))
        operation.clear_neighbor(row.proto, row.interface, cleared)
    return ClearedNeighbors([ClearedNeighbor.of(row) for row in found], asked.soft)


def _held(row: NeighborEntry) -> str:
    """The name of a neighbor that waits, since it announced too many prefixes; else nothing."""
    return row.peer if isinstance(row, BgpNeighborEntry) and row.held is not None else ""


def clear_counters(views: ViewSource) -> ClearedCounters:
    """Let ``show`` count from 0; metrics, whose readers expect no jump, go on."""
    context = views.context()
    for instance in context.router.instances.values():
        instance.engine.counters.clear_interfaces()
    counts = {
        proto: {group: dict(found) for group, found in groups.items()}
        for proto, groups in context.counters().items()
    }
    views.runtime.cleared = time.time(), counts
    return ClearedCounters(cleared=True)


def set_log_level(logs: DaemonLog, level: str, configured: str) -> LogLevel:
    """Change the level of the log until the next reload or restart."""
    logs.set_level(level)
    return LogLevel(level=level, configured=configured)
