"""Views that all protocols share: interfaces, neighbors, the database, pending timers.

A document lists the entries of each running protocol, distinguished by ``proto`` (``ospf``,
``isis``); argument ``proto`` narrows it to one. ``area`` is an OSPF area, or the levels of IS-IS:
``level-1``, ``level-2``, ``level-1-2``.
"""

from __future__ import annotations

from typing import Any

from fared.management.documents.context import ViewContext
from fared.management.documents.database import DatabaseDocument
from fared.management.documents.each import views_of
from fared.management.documents.errors import CommandError, not_found
from fared.management.documents.graceful_restart import Restarts
from fared.management.documents.interfaces import Interfaces
from fared.management.documents.lsdb import LsdbFile
from fared.management.documents.neighbors import Neighbors
from fared.management.documents.sliced import Sliced, Work
from fared.management.documents.timers import PendingTimer, Timers
from fared.management.documents.views.interface_detail import interface_detail
from fared.management.documents.views.link import refused_hellos
from fared.management.documents.views.missing import link_counts


def interfaces(context: ViewContext, name: str | None = None) -> Interfaces:
    """``show interfaces [NAME]``. Raises CommandError if nothing there has that name."""
    known = [row for _, views in views_of(context) for row in views.interfaces(context)]
    missing = link_counts(context, known).missing
    if name is None:
        return Interfaces(context.root, known, missing)
    there = [(i, row) for i, views in views_of(context) for row in views.neighbors(context)]
    wanted = {name} | {row.interface for _, row in there if row.is_called(name)}
    found = [row for row in known if row.interface in wanted]
    missing = [each for each in missing if each.interface in wanted]
    if not found and not missing:
        raise not_found("interface", name, (row.interface for row in known))
    types = {i.name: views.COUNTABLE.types for i, views in views_of(context)}
    detail = [interface_detail(context, row, there, types[row.proto]) for row in found]
    return Interfaces(context.root, found, missing, detail)


def neighbors(context: ViewContext, name: str | None = None) -> Neighbors:
    """``show neighbors [NAME]``. Raises CommandError if nothing there has that name."""
    known = [row for _, views in views_of(context) for row in views.neighbors(context)]
    refused, missing = refused_hellos(context), link_counts(context).missing
    if name is None:
        return Neighbors(context.root, known, refused=refused, missing=missing)
    found = [row for row in known if row.is_called(name)]
    refused = [each for each in refused if name in (each.interface, each.source, each.router_id)]
    missing = [each for each in missing if name in (each.interface, each.neighbor, each.hostname)]
    if not (found or refused or missing):
        raise not_found("neighbor", name, (row.name for row in known))
    return Neighbors(context.root, found, refused=refused, missing=missing, detail=True)


def graceful_restart(context: ViewContext) -> Restarts:
    """``show graceful-restart``."""
    parts = [views.graceful_restart(context) for _, views in views_of(context)]
    return Restarts(protocols=[part for part in parts if part])


@Sliced
def database(
    context: ViewContext, kind: str | None = None, entry_id: str | None = None
) -> Work[DatabaseDocument]:
    """``show database [TYPE] [ID]``. Raises CommandError if nothing matches."""
    found: dict[str, Any] = {"areas": [], "as_scope": [], "levels": []}
    for _, views in views_of(context):
        found |= yield from views.database(context, kind, entry_id)
    wanted = " ".join(filter(None, (kind, entry_id)))
    if wanted and not any(found.values()):
        what = " and no ".join(instance.protocol.entry for instance in context.instances)
        raise CommandError("not-found", f"no {what} matches {wanted}")
    return DatabaseDocument(router_id=context.root, **found)


@Sliced
def lsdb(context: ViewContext) -> Work[LsdbFile]:
    """``show lsdb``: of the requested protocol, else of OSPF if it runs.

    Raises CommandError if the protocol's database has no file format.
    """
    for _, views in views_of(context):
        document: LsdbFile = yield from views.lsdb(context)
        return document
    raise CommandError("unsupported", "the database of this protocol has no file format")


def timers(context: ViewContext) -> Timers:
    """``show timers``: the pending timers, the next one first."""
    rows: list[PendingTimer] = []

    def add(proto: str | None, timer: str, subject: str, due_in: float | None) -> None:
        if due_in is not None:
            due_in = round(due_in, 3)
            rows.append(PendingTimer(timer=timer, proto=proto, subject=subject, due_in=due_in))

    def at(deadline: float | None) -> float | None:
        return None if deadline is None else deadline - context.now

    for instance, views in views_of(context):
        for row in views.timers(context):
            add(instance.name, *row)
    for instance in context.instances:
        add(
            instance.name,
            instance.name,
            "the next of all its timers",
            at(instance.engine.next_deadline()),
        )
    if context.proto is None:
        router = context.router
        add(None, "spf", "the next computation", at(router.schedule.backoff.next_deadline()))
        add(
            None,
            "fib-housekeeping",
            "retries, and objects that no route uses",
            at(router.planner.next_deadline()),
        )
    rows.sort(key=lambda row: row.due_in)
    return Timers(timers=rows)
