"""Next-hop sets toward several nodes at once, in one area or in several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.paths.rib.by_delay import chosen
from fared.paths.rib.members import join_members
from fared.paths.rib.set_builder import SetBuilder, pack
from fared.paths.weights.path_capacity import CapacityRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.paths.rib.area import AreaSolver
    from fared.paths.rib.model import NextHopSet
    from fared.paths.rib.settings import SolverSettings


def area_row(solver: AreaSolver, egress: list[tuple[int, float]]) -> tuple[CapacityRow, float]:
    """Return the row toward these (node, advertised capacity) of one area, and a limit to display.

    The advertised capacity of a single node limits all paths to it alike and must not even out
    their weights, so it is only the limit; with several nodes it is part of the row.
    """
    if len(egress) == 1:
        return solver.row(egress[0][0]), egress[0][1]
    nodes = tuple(node for node, _ in egress)
    return solver.contracted(nodes, tuple(capacity for _, capacity in egress)), np.inf


def join_areas(
    areas: Mapping[int, AreaSolver],
    egress: Mapping[int, list[tuple[int, float]]],
    settings: SolverSettings,
) -> NextHopSet | None:
    """Return one next-hop set over all areas with a path of equal cost."""
    rows = {area: area_row(areas[area], egress[area]) for area in sorted(egress)}
    if len(rows) == 1:  # the area's own builder: equal rows share its set objects
        (area,) = rows
        return areas[area].build(*rows[area])
    parts, delays = [], []
    for area, (row, limit) in rows.items():
        solution = areas[area].solution
        assert solution is not None
        parts.append(solution.members)
        if settings.delay_rule:
            delays.append(areas[area].delays_of(tuple(node for node, _ in egress[area])))
        # Toward different areas an advertised capacity distinguishes the paths.
        row.bound[:] = np.minimum(row.bound, limit)
    joined = CapacityRow(
        np.concatenate([row.bound for row, _ in rows.values()]),
        np.concatenate([row.unknown for row, _ in rows.values()]),
        np.concatenate([row.present for row, _ in rows.values()]),
    )
    if delays:
        joined = chosen(joined, np.concatenate(delays), settings.delay_rule)
    builder = SetBuilder(join_members(parts), settings)
    found: NextHopSet | None = builder.build(pack(joined))[0]
    return found
