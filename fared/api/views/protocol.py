"""Views that all protocols share: interfaces, neighbors, the database, pending timers.

The views of IS-IS bring its codec: they are imported only where it runs.
"""

from __future__ import annotations

from fared.api.control import CommandError
from fared.api.schema import isis as isis_schema
from fared.api.schema import ospf as ospf_schema
from fared.api.schema import protocol as schema
from fared.api.views import ospf
from fared.api.views.context import ViewContext
from fared.router.speaker import ISIS, OSPF


def interfaces(context: ViewContext) -> schema.Interfaces:
    """``show interfaces``."""
    found: list[ospf_schema.Interface | isis_schema.Interface] = []
    if context.speaks(OSPF):
        found += ospf.interfaces(context)
    if context.speaks(ISIS):
        from fared.api.views import isis  # noqa: PLC0415

        found += isis.interfaces(context)
    return {"format": "fared-interfaces/1", "router_id": context.root, "interfaces": found}


def neighbors(context: ViewContext) -> schema.Neighbors:
    """``show neighbors``."""
    found: list[ospf_schema.Neighbor | isis_schema.Neighbor] = []
    if context.speaks(OSPF):
        found += ospf.neighbors(context)
    if context.speaks(ISIS):
        from fared.api.views import isis  # noqa: PLC0415

        found += isis.neighbors(context)
    return {"format": "fared-neighbors/1", "router_id": context.root, "neighbors": found}


def database(
    context: ViewContext, kind: str | None = None, entry_id: str | None = None
) -> schema.Database:
    """``show database [TYPE] [ID]``. Raises CommandError where nothing matches."""
    areas: list[ospf_schema.DatabaseArea] = []
    as_scope: list[ospf_schema.DatabaseLsa] = []
    levels: list[isis_schema.DatabaseLevel] = []
    if context.speaks(OSPF):
        areas, as_scope = ospf.database(context, kind, entry_id)
    if context.speaks(ISIS):
        from fared.api.views import isis  # noqa: PLC0415

        levels = isis.database(context, kind, entry_id)
    wanted = " ".join(filter(None, (kind, entry_id)))
    if wanted:
        areas = [area for area in areas if area["lsas"]]
    if wanted and not (areas or as_scope or levels):
        what = " and no ".join(
            word for name, word in ((OSPF, "LSA"), (ISIS, "LSP")) if context.speaks(name)
        )
        raise CommandError("not-found", f"no {what} matches {wanted}")
    return {
        "format": "fared-database/1",
        "router_id": context.root,
        "areas": areas,
        "as_scope": as_scope,
        "levels": levels,
    }


def timers(context: ViewContext) -> schema.Timers:
    """``show timers``: what happens next if nothing else does."""
    rows: list[schema.Timer] = []

    def add(proto: str | None, timer: str, subject: str, due_in: float | None) -> None:
        if due_in is not None:
            row: schema.Timer = {
                "timer": timer,
                "proto": proto,
                "subject": subject,
                "due_in": round(due_in, 3),
            }
            rows.append(row)

    def at(deadline: float | None) -> float | None:
        return None if deadline is None else deadline - context.now

    if context.speaks(OSPF):
        for row in ospf.timers(context):
            add(OSPF, *row)
    if context.speaks(ISIS):
        from fared.api.views import isis  # noqa: PLC0415

        for row in isis.timers(context):
            add(ISIS, *row)
    for speaker in context.speakers:
        add(speaker.name, speaker.name, "", at(speaker.engine.next_deadline()))
    if context.proto is None:
        router = context.router
        add(None, "spf", "", at(router.schedule.backoff.next_deadline()))
        add(None, "fib-housekeeping", "", at(router.planner.next_deadline()))
    rows.sort(key=lambda row: row["due_in"])
    return {"format": "fared-timers/1", "timers": rows}
