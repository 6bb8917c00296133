"""The routes of this router to the routers that advertise prefixes, by the present plans."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.core.ids import BACKBONE
from fared.paths.spf.search import UNREACHABLE
from fared.paths.ted.graph import anywhere

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fared.paths.rib.area import AreaSolver
    from fared.paths.rib.prefixes import PrefixTable
    from fared.paths.spf.plan import SpfPlan

NO_ROUTE = UNREACHABLE


class AdvertiserDistances(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The routes to the advertisers, by advertiser number (A,).

    ``distance`` is NO_ROUTE for an unreachable one; ``own`` marks this router itself, ``direct``
    this router and the transit networks it is on: their prefixes are connected. ``index`` is the
    index in the area's graph, -1 for a node that is not in it. ``beyond`` is False where the
    prefixes that a node advertises of other areas are ignored: an area border router that is
    connected to the backbone takes inter-area paths from the backbone only (RFC 2328 §16.2, RFC
    3509). ``transit`` marks those in transit areas, whose summaries may improve routes through the
    backbone (§16.3), ``backbone`` those in the backbone.
    """

    distance: NDArray[np.int64]
    own: NDArray[np.bool_]
    direct: NDArray[np.bool_]
    index: NDArray[np.int64]
    beyond: NDArray[np.bool_]
    transit: NDArray[np.bool_]
    backbone: NDArray[np.bool_]

    @cached_property
    def crosses(self) -> bool:
        """Whether there are transit areas."""
        return anywhere(self.transit)


def locate(table: PrefixTable, areas: Mapping[int, AreaSolver]) -> AdvertiserDistances:
    """Locate all advertisers in the present plans."""
    of_area, nodes = table.advertiser_arrays()
    size = len(nodes)
    found = AdvertiserDistances(
        distance=np.full(size, NO_ROUTE),
        own=np.zeros(size, bool),
        direct=np.zeros(size, bool),
        index=np.full(size, -1, np.int64),
        beyond=np.ones(size, bool),
        transit=np.zeros(size, bool),
        backbone=of_area == BACKBONE,
    )
    # RFC 2328 §16.2: attached to several areas, examine backbone summaries only; RFC 3509: only
    # while this router reaches others in the backbone
    backbone = areas.get(BACKBONE)
    if backbone is not None and backbone.reached() > 0:
        found.beyond[:] = found.backbone
        for area, solver in areas.items():
            if area != BACKBONE and solver.carries_transit():
                found.transit[of_area == area] = True
    for area, solver in areas.items():
        if solver.solution is not None:
            _locate_in(solver.solution.plan, nodes, (of_area == area).nonzero()[0], found)
    return found


def _locate_in(
    plan: SpfPlan, nodes: NDArray[np.int64], at: NDArray[np.int64], found: AdvertiserDistances
) -> None:
    """Locate the advertisers of one area, whose numbers are ``at``."""
    index = plan.graph.indexes(nodes[at])
    if (index < 0).any():
        at, index = at[index >= 0], index[index >= 0]
    found.index[at] = index
    found.distance[at] = plan.distance[index]
    found.own[at] = found.direct[at] = index == plan.root
    # RFC 2328 §16.1.1: the root connects to these networks directly
    if plan.graph.network.any():
        around = slice(*plan.graph.indptr[plan.root : plan.root + 2].tolist())
        attached = np.zeros(len(plan.distance), bool)
        attached[plan.graph.dst[around]] = True
        found.direct[at] |= (attached & plan.graph.network)[index]
