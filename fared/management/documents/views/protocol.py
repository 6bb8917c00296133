"""Views that all protocols share: interfaces, neighbors, the database, pending timers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fared.management.documents.context import ViewContext
from fared.management.documents.each import views_of
from fared.management.documents.errors import CommandError
from fared.management.documents.sliced import Sliced, Work
from fared.management.documents.views.link import refused_hellos

if TYPE_CHECKING:
    from fared.management.documents.schema import protocol as schema
    from fared.management.documents.schema.isis_lsdb import IsisLsdb
    from fared.management.documents.schema.lsdb import Lsdb
    from fared.management.documents.schema.restart import Restarts


def interfaces(context: ViewContext) -> schema.Interfaces:
    """``show interfaces``."""
    found = [row for _, views in views_of(context) for row in views.interfaces(context)]
    return {"format": "fared-interfaces/1", "router_id": context.root, "interfaces": found}


def neighbors(context: ViewContext) -> schema.Neighbors:
    """``show neighbors``."""
    found = [row for _, views in views_of(context) for row in views.neighbors(context)]
    return {
        "format": "fared-neighbors/1",
        "router_id": context.root,
        "neighbors": found,
        "refused": refused_hellos(context),
    }


def graceful_restart(context: ViewContext) -> Restarts:
    """``show graceful-restart``."""
    parts = [views.graceful_restart(context) for _, views in views_of(context)]
    return {"format": "fared-graceful-restart/1", "protocols": [part for part in parts if part]}


@Sliced
def database(
    context: ViewContext, kind: str | None = None, entry_id: str | None = None
) -> Work[schema.DatabaseDocument]:
    """``show database [TYPE] [ID]``. Raises CommandError if nothing matches."""
    found: dict[str, Any] = {"areas": [], "as_scope": [], "levels": []}
    for _, views in views_of(context):
        found |= yield from views.database(context, kind, entry_id)
    wanted = " ".join(filter(None, (kind, entry_id)))
    if wanted and not any(found.values()):
        what = " and no ".join(instance.protocol.entry for instance in context.instances)
        raise CommandError("not-found", f"no {what} matches {wanted}")
    return {
        "format": "fared-database/1",
        "router_id": context.root,
        "areas": found["areas"],
        "as_scope": found["as_scope"],
        "levels": found["levels"],
    }


@Sliced
def lsdb(context: ViewContext) -> Work[Lsdb | IsisLsdb]:
    """``show lsdb``: of the requested protocol, else of OSPF if it runs.

    Raises CommandError if the protocol's database has no file format.
    """
    for _, views in views_of(context):
        document: Lsdb | IsisLsdb = yield from views.lsdb(context)
        return document
    raise CommandError("unsupported", "the database of this protocol has no file format")


def timers(context: ViewContext) -> schema.Timers:
    """``show timers``: the pending timers, the next one first."""
    rows: list[schema.PendingTimer] = []

    def add(proto: str | None, timer: str, subject: str, due_in: float | None) -> None:
        if due_in is not None:
            row: schema.PendingTimer = {
                "timer": timer,
                "proto": proto,
                "subject": subject,
                "due_in": round(due_in, 3),
            }
            rows.append(row)

    def at(deadline: float | None) -> float | None:
        return None if deadline is None else deadline - context.now

    for instance, views in views_of(context):
        for row in views.timers(context):
            add(instance.name, *row)
    for instance in context.instances:
        add(instance.name, instance.name, "", at(instance.engine.next_deadline()))
    if context.proto is None:
        router = context.router
        add(None, "spf", "", at(router.schedule.backoff.next_deadline()))
        add(None, "fib-housekeeping", "", at(router.planner.next_deadline()))
    rows.sort(key=lambda row: row["due_in"])
    return {"format": "fared-timers/1", "timers": rows}
