"""Next-hop sets toward several nodes at once, in one area or in several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.rib.members import SetBuilder, join_members, pack
from fared.weights.path_capacity import Row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.rib.area import AreaSolver
    from fared.rib.model import NextHopSet
    from fared.rib.settings import SolverSettings


def area_row(solver: AreaSolver, ends: list[tuple[int, float]]) -> tuple[Row, float]:
    """The row toward these (node, announced capacity) of one area, and a limit only to show.

    What a single node announces lies behind all paths to it alike and must not even out their
    weights; with several nodes it is part of the row.
    """
    if len(ends) == 1:
        return solver.row(ends[0][0]), ends[0][1]
    nodes = tuple(node for node, _ in ends)
    return solver.contracted(nodes, tuple(capacity for _, capacity in ends)), np.inf


def join_areas(
    areas: Mapping[int, AreaSolver],
    ends: Mapping[int, list[tuple[int, float]]],
    settings: SolverSettings,
) -> NextHopSet | None:
    """One next-hop set over all areas that reach the destination equally well."""
    rows = {area: area_row(areas[area], ends[area]) for area in sorted(ends)}
    if len(rows) == 1:
        (area,) = rows
        return areas[area].build(*rows[area])
    parts = []
    for area, (row, limit) in rows.items():
        solution = areas[area].solution
        assert solution is not None
        parts.append(solution.members)
        # Toward different areas an announced capacity does tell the paths apart.
        row.bound[:] = np.minimum(row.bound, limit)
    joined = Row(
        np.concatenate([row.bound for row, _ in rows.values()]),
        np.concatenate([row.unknown for row, _ in rows.values()]),
        np.concatenate([row.present for row, _ in rows.values()]),
    )
    builder = SetBuilder(join_members(parts), settings)
    found: NextHopSet | None = builder.build(pack(joined))[0]
    return found
