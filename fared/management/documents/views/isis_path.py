"""The advertisements that each IS-IS router uses, for ``path``: level-1-2 routers use fewer.

The prefixes that it leaks from one level into the other (RFC 5302) look, in its LSPs, like
prefixes of its own, and its own routes are computed without them.
"""

from __future__ import annotations

from typing import cast

from fared.core.ids import NodeId, Prefix
from fared.management.documents.context import ViewContext
from fared.management.documents.each import OwnPrefixes
from fared.paths.rib.selector import Advertisements
from fared.paths.rib.solver import RouteSolver
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.ted.fragment_prefixes import read_prefixes
from fared.router.protocols import ISIS


class Perspectives:
    """The advertisements of a prefix that each router uses."""

    def __init__(self, solver: RouteSolver, own: OwnPrefixes, prefix: Prefix) -> None:
        self._blocks = {area: solver.ted(area).blocks for area in solver.areas}
        self._advertised = dict(solver.advertisements(prefix))
        for level, advertised in own.items():
            self._advertised[level, solver.root] = advertised

    def of(self, node: NodeId) -> Advertisements:
        """Return all but those that a level-1-2 router leaks from one level into the other.

        Prefixes that another router advertises in the other level were learned there.
        """
        levels = [area for area, blocks in self._blocks.items() if node in blocks]
        known = [at for at, found in self._advertised.items() if found]
        learnt = [
            (area, node)
            for area in levels
            if any(far != node and level != area and level in levels for level, far in known)
        ]
        return {at: found for at, found in self._advertised.items() if at not in learnt}


def own_prefixes(context: ViewContext, prefix: Prefix) -> OwnPrefixes:
    """Return this router's own advertisements by level: its TED lacks those that it leaks."""
    settings = cast("IsisSettings", context.router.settings.protocols[ISIS])
    code = settings.path_capacity_code
    return {
        level: tuple(
            item
            for stored in lsdb.ordered()
            if stored.own and not stored.purged
            for entries in read_prefixes(stored.lsp, own=False, capacity_code=code).entries.values()
            if (item := entries.get(prefix)) is not None
        )
        for level, lsdb in context.isis.instance.databases.items()
    }
