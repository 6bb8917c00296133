"""The path delays of a route's next hops, those that are not used because of them too.

For people: ``explain`` and ``show weights``. What is used is decided in ``by_delay``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.weights.path_delay import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fared.core.ids import NodeId
    from fared.paths.rib.area import AreaSolver
    from fared.paths.rib.facts import Egress
    from fared.paths.ted.model import LocalLink


class HopDelay(msgspec.Struct, frozen=True):
    """A link to a first hop, and the delay of the longest shortest path that begins with it.

    ``above``: the lowest one of the route is less by this. Microseconds.
    """

    link: LocalLink
    delay: float
    above: float
    used: bool


def hop_delays(areas: Mapping[int, AreaSolver], egress: Egress) -> tuple[HopDelay, ...]:
    """Return the delays of all next hops at equal cost, by link; none where no link has a delay."""
    found: list[tuple[LocalLink, float, bool]] = []
    solvers = {area: areas[area] for area in dict.fromkeys(area for area, _, _ in egress)}
    if all(solver.ted.delays() is None for solver in solvers.values()):
        return ()
    for area, solver in solvers.items():
        found += _of_area(solver, [node for at, node, _ in egress if at == area])
    if not found:
        return ()
    lowest = min(delay for _, delay, _ in found)
    rule = next(s.rule for a in areas.values() if (s := a.solution) is not None)
    limit = float(rule.limit(np.array([lowest]))[0])
    return tuple(
        HopDelay(link, delay, delay - lowest, member and delay <= limit)
        for link, delay, member in found
    )


def _of_area(solver: AreaSolver, nodes: list[NodeId]) -> Iterator[tuple[LocalLink, float, bool]]:
    """Yield links, their path delays, and whether they are no parallel link that is slower."""
    solution = solver.solution
    if solution is None:
        return
    ends = solution.plan.graph.indexes(np.array(nodes, np.int64))
    delays = solver.delays_of(tuple(ends[ends >= 0].tolist())).tolist()
    members = solution.members
    for link, column in zip(members.links, members.column.tolist(), strict=True):
        if delays[column] > NOWHERE:
            yield link, delays[column], True
    for slower in members.slower:
        if delays[slower.column] > NOWHERE:
            assert members.delay is not None
            behind = delays[slower.column] - members.delay.item(slower.column)
            yield slower.link, behind + slower.delay, False
