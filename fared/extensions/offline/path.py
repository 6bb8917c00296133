"""Paths through a saved database, by the walk of the daemon's ``path``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from fared.core.ids import NodeId, format_node
from fared.extensions.offline.solve import solve
from fared.extensions.offline.world import World
from fared.management.documents.each import perspective
from fared.management.documents.errors import CommandError
from fared.management.documents.path import PathDocument
from fared.management.documents.sliced import finished
from fared.management.documents.views.path import find_ends
from fared.management.documents.views.walk import Walker, between
from fared.paths.rib.settings import SolverSettings


class PathQuestion(NamedTuple):
    """The arguments of ``path``; ``family``: that of the prefix of a named router."""

    source: str
    destination: str
    family: int | None


def path_document(
    worlds: Iterable[World], own: NodeId, settings: SolverSettings, asked: PathQuestion
) -> PathDocument:
    """``fared-path/1``, in the first of the families, each a world, that has both ends.

    It is that of router ``own``, on which the database was saved; of the source, if ``own`` is not
    there, as in a database of FRR, or not in all areas of a capture. Raises CommandError.
    """
    reason: CommandError | None = None
    for world in worlds:
        for router in _asked(world, own, asked.source):
            context = solve(world, router, settings)
            try:
                ends, solver = find_ends(context, *asked)
            except CommandError as error:
                reason = reason or error
                continue
            advertised = partial(world.advertised_by, router)
            view = perspective(ends.protocol, solver, ends.prefix, advertised)
            return finished(between(Walker(solver, view), ends, context.hostnames))
    raise reason or CommandError("not-found", f"no router {asked.source!r} in the database")


def _asked(world: World, own: NodeId, source: str) -> list[NodeId]:
    """The router whose database this is, or those of the name of the source."""
    routers, hostnames = world.routers, world.hostnames
    if own in routers and all(own in blocks for blocks in world.blocks.values()):
        return [own]
    return [node for node in routers if source in (format_node(node), hostnames.get(node))]
