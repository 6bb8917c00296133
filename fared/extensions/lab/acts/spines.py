"""Only leaves are adaptive: FARE's sentence that this is sufficient, as figures.

All routers weight paths first. Then adaptive routing is switched off in all routers but the leaves,
which still advertise the capacities of their links, and the capacity of the link changes twice:
leaves follow as before, and weights and shares are the same.
"""

from __future__ import annotations

import time

from rich import box
from rich.table import Table

from fared.core.units import format_bandwidth
from fared.extensions.lab.acts.cast import SHARE_TOLERANCE, choose, measure, shape
from fared.extensions.lab.acts.changed import changed
from fared.extensions.lab.acts.panels import Panel, share
from fared.extensions.lab.acts.stage import DemoStage
from fared.extensions.lab.reload import adapt
from fared.extensions.lab.topology import LabTopology
from fared.extensions.lab.traffic import TrafficReport

_SLOWED_TO, _THEN_TO = 4, 2


def prepared(source: LabTopology) -> LabTopology:
    """Return the topology as it is: every router is adaptive at first."""
    return changed(source)


def play(stage: DemoStage) -> None:
    """Play the act. Raises LabError."""
    cast, fabric = choose(stage.fabric), stage.fabric
    leaves = {leaf.name for leaf in fabric.plan.leaves}
    others = [router.name for router in fabric.plan.routers if router.name not in leaves]
    stage.build()
    slow = cast.rate / _SLOWED_TO
    stage.headline(f"All routers are adaptive; {cast.link} drops to {format_bandwidth(slow)} bit/s")
    shape(stage, cast, slow)
    before = measure(stage, cast)
    stage.headline(f"{len(others)} spines: adaptive: enabled: false")
    begun = time.monotonic()
    adapt(fabric, others, {"enabled": False})
    stage.done("reloaded", begun)
    for rate in (cast.rate / _THEN_TO, slow):
        shape(stage, cast, rate)
    after = measure(stage, cast)
    measured = {
        name: [up.measured for up in report.uplinks]
        for name, report in (("all adaptive", before), ("only leaves", after))
    }
    rows = [up.interface for up in before.uplinks]
    stage.show(_table(before, after), Panel(f"{cast.link} at a quarter", rows, measured, share))
    weights = [[up.weight for up in report.uplinks] for report in (before, after)]
    stage.claim("weights are the same with adaptive leaves only", holds=weights[0] == weights[1])
    worst = max(before.worst_error, after.worst_error)
    stage.claim(
        f"shares are within {SHARE_TOLERANCE * 100:.0f} points of them: {worst * 100:.1f}",
        holds=worst <= SHARE_TOLERANCE,
    )
    stage.finish()


def _table(before: TrafficReport, after: TrafficReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("next hop", "weight", "all adaptive", "weight", "only leaves", "difference"):
        table.add_column(heading, justify="left" if heading == "next hop" else "right")
    for one, two in zip(before.uplinks, after.uplinks, strict=True):
        table.add_row(
            one.interface,
            str(one.weight),
            f"{one.measured:.1%}",
            str(two.weight),
            f"{two.measured:.1%}",
            f"{abs(two.measured - one.measured) * 100:.1f} points",
        )
    return table
