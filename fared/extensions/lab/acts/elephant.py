"""One elephant: a TCP connection between two hosts, by flow, by flowlet and by packet.

One of the paths is slowed down to a fifth. What takes one path is reloaded at both leaves, and the
same bytes are sent again, beside the max-flow bound; the table shows what arrived early, and what
was sent again. Hosts are set as docs/hosts.md advises.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich import box
from rich.table import Table

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.extensions.lab.acts import panels
from fared.extensions.lab.acts.cast import Cast, choose, shape
from fared.extensions.lab.acts.changed import REORDERING_HOSTS, changed
from fared.extensions.lab.acts.panels import Panel
from fared.extensions.lab.acts.stage import DemoStage
from fared.extensions.lab.expected import expected_shares, known_capacities, path_capacities
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.reload import adapt
from fared.extensions.lab.sprayed import sprayed
from fared.extensions.lab.topology import LabTopology
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.report import JobReport
from fared.extensions.lab.workloads.run import run

FLOW, FLOWLET, PACKET = "flow", "flowlet", "packet"
_SLOWED_TO = 5
_SECONDS = 2.5
"""How long the bytes take over all paths."""
_GAIN = 0.78
"""Packets carry at least this part of what all paths carry beside the fastest alone."""
_NEAR = 0.01
_DEADLINE = 20.0
_BAR = 16


def prepared(source: LabTopology) -> LabTopology:
    """Return the topology with hosts that accept packets out of order."""
    return changed(source, hosts=REORDERING_HOSTS)


def play(stage: DemoStage) -> None:
    """Play the act. Raises LabError."""
    cast, fabric = choose(stage.fabric), stage.fabric
    stage.build()
    stage.headline(f"{cast.link} drops to a fifth")
    shape(stage, cast, cast.rate / _SLOWED_TO)
    capacities = path_capacities(fabric.plan, fabric.rate, cast.source.name, cast.target.name)
    whole, fastest = sum(capacities.values()), max(capacities.values())
    size = round(whole * _SECONDS)
    stage.headline(
        f"One TCP connection, {cast.source_host} to {cast.target_host}: {size / 1e6:.0f} MB"
    )
    hosts = cast.source_host, cast.target_host
    found = {}
    for granularity in (FLOW, FLOWLET, PACKET):
        by_granularity(stage, cast, granularity)
        with stage.console.status(granularity):
            job = Job("broadcast", hosts, size, elephants=1, iterations=1)
            found[granularity] = run(fabric, [job]).jobs[0]
    rates = [report.moved / report.median for report in found.values()]
    drawn = Panel(stage.title, [*found, "bound"], {"bit/s": [*rates, whole]}, panels.rate)
    stage.show(_table(found, whole), drawn)
    gain = found[FLOW].median / found[PACKET].median
    least = _GAIN * whole / fastest
    stage.claim(
        f"packets take {gain:.1f} times the rate of a flow; {least:.1f} were asked for",
        holds=gain >= least,
    )
    stage.finish()


def by_granularity(stage: DemoStage, cast: Cast, granularity: str) -> None:
    """Change what takes one path at both leaves, and wait until nftables has it.

    Raises LabError.
    """
    fabric = stage.fabric
    begun = time.monotonic()
    ends = (cast.source, cast.target)
    adapt(fabric, (leaf.name for leaf in ends), {"granularity": granularity})
    plan = fabric.plan
    wanted = sorted(
        expected_shares(
            known_capacities(plan, fabric.rate, cast.source.name, cast.target.name)
        ).values()
    )

    def accepts(_name: str, view: KernelView) -> bool:
        parts = sprayed(view.netns, cast.prefixes[0])
        if granularity == FLOW:
            return not parts
        pairs = zip(parts, wanted, strict=False)
        return len(parts) == len(wanted) and all(abs(a - b) < _NEAR for a, b in pairs)

    done = stage.wait([cast.source], accepts, _DEADLINE, f"leaves route by {granularity}")
    stage.done(f"granularity: {granularity}, reloaded at {cast.source.name}", begun, done)


def _table(found: Mapping[str, JobReport], whole: BytesPerSecond) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("granularity", no_wrap=True)
    for heading in ("time", "bit/s", "bound", "early", "resent"):
        table.add_column(heading, justify="right")
    table.add_column("", no_wrap=True)
    for name, report in found.items():
        rate = report.moved / report.median
        cells = [name, f"{report.median:.2f} s", format_bandwidth(rate), f"{rate / whole:.0%}"]
        cells += [f"{report.order.ratio:.1%}", f"{report.order.retransmitted:,}"]
        table.add_row(*cells, "█" * round(rate / whole * _BAR))
    bound = next(iter(found.values())).moved / whole
    table.add_row("bound", f"{bound:.2f} s", format_bandwidth(whole), "", "", "", "░" * _BAR)
    return table
