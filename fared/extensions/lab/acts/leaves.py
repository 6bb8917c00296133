"""Other leaves between the same spines, over BGP: the demonstration of ``clos3-frr-spines``.

The spines are of FRR, or BIRD, and pass on what leaves announce. At first the leaves run FRR as
well, and a link is slowed down to a fifth, in both directions, as a port that has lost lanes. A job
of many TCP connections is timed. Then fared takes the place of FRR in the leaves, while the spines
go on; leaves announce path bandwidth (RFC 10005) to each other through them, and the same job runs
by flow, and by packet. Each job is run twice, with the ports of two draws: those of all leaves are
the same. Each time stands beside the bound of the slow fabric.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich import box
from rich.table import Table
from rich.text import Text

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.extensions.lab.acts import panels
from fared.extensions.lab.acts.cast import Cast, choose, weighted
from fared.extensions.lab.acts.changed import REORDERING_HOSTS, changed
from fared.extensions.lab.acts.elephant import PACKET, by_granularity
from fared.extensions.lab.acts.panels import Panel
from fared.extensions.lab.acts.stage import SETTLED, DemoStage
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.expected import path_capacities
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.labels import BGP
from fared.extensions.lab.topology import LabTopology, with_kinds
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.report import JobReport
from fared.extensions.lab.workloads.run import run

OTHERS = "frr"
"""What runs in the leaves at first."""
CONNECTIONS, DRAWS = 384, 2
_SLOWED_TO = 5
_SIZE = 270_000
_FRR, _FARED, _BY_PACKET = "FRR", "fared", "fared, by packet"
_LEAST_GAIN = 3.0
"""Of two draws together. An even split takes about four times as long as the bound. Of 384 flows,
chance puts 15 to 33 on the path that should have 24."""
_DEADLINE = 40.0
_BAR = 12


def fits(source: LabTopology) -> bool:
    """Whether all leaves run fared, and other daemons all routers between them, over BGP."""
    plan = make_plan(source)
    leaves = {leaf.name for leaf in plan.leaves}
    others = [router for router in plan.routers if router.name not in leaves]
    return (
        len(leaves) > 1
        and bool(others)
        and all(router.node.protocol == BGP for router in plan.routers)
        and all(leaf.node.kind == "fared" for leaf in plan.leaves)
        and all(router.node.kind != "fared" for router in others)
        and all(port.peer in leaves for router in others for port in router.fabric_ports)
    )


def prepared(source: LabTopology) -> LabTopology:
    """Return the topology with other daemons in its leaves, and hosts that accept reordering."""
    leaves = {leaf.name: OTHERS for leaf in make_plan(source).leaves}
    return with_kinds(changed(source, hosts=REORDERING_HOSTS), leaves)


def play(stage: DemoStage, seed: int = 0) -> None:
    """Play the act; ``seed`` chooses the draws of ports. Raises LabError."""
    fabric = stage.fabric
    cast = _cast(fabric)
    stage.build()
    found: dict[str, list[JobReport]] = {}

    def job(name: str) -> None:
        found[name] = []
        for draw in range(DRAWS):
            begun = time.monotonic()
            with stage.console.status(name):
                found[name].append(_job(fabric, cast, seed * DRAWS + draw))
            told = f"{CONNECTIONS} TCP connections of {_SIZE / 1e6:g} MB from {cast.source_host}"
            stage.done(f"{told} to {cast.target_host}", begun)

    _slow_down(stage, cast)
    job(_FRR)
    cast = _take_over(stage, cast)
    job(_FARED)
    _explain(stage, cast)
    stage.headline("By packet instead of by flow")
    by_granularity(stage, cast, PACKET)
    job(_BY_PACKET)
    capacities = path_capacities(fabric.plan, fabric.rate, cast.source.name, cast.target.name)
    _tell(stage, found, sum(capacities.values()))
    stage.finish()


def _cast(fabric: Fabric) -> Cast:
    """Choose the ends as in other acts, and the link of the first spine to the target."""
    cast, plan = choose(fabric), fabric.plan
    spine = plan.node(plan.equal_cost_ports(cast.source.name, cast.target.name)[0].peer)
    watched = tuple(leaf for leaf in plan.leaves if leaf.name != cast.target.name)
    return replace(cast, tail=spine, head=cast.target, watched=watched)


def _job(fabric: Fabric, cast: Cast, seed: int) -> JobReport:
    hosts = cast.source_host, cast.target_host
    size = CONNECTIONS * _SIZE
    job = Job("broadcast", hosts, size, elephants=CONNECTIONS, iterations=1)
    return run(fabric, [job], seed=seed).jobs[0]


def _slow_down(stage: DemoStage, cast: Cast) -> None:
    fabric, slow = stage.fabric, cast.rate / _SLOWED_TO
    a, b = cast.tail.name, cast.head.name
    stage.headline(f"{a}-{b} drops to {format_bandwidth(slow)} bit/s, a fifth; leaves run FRR")
    fabric.shape(a, b, slow)
    fabric.shape(b, a, slow)
    ratio = _ratio(fabric.view(cast.source.name), cast)
    stage.note(f"{cast.source.name} holds {ratio}: no BGP of the fabric tells what a path carries")


def _take_over(stage: DemoStage, cast: Cast) -> Cast:
    """Start fared in place of FRR, and wait until its leaves weight their paths."""
    fabric = stage.fabric
    leaves = [leaf.name for leaf in fabric.plan.leaves]
    stage.headline("fared takes the place of FRR in the leaves; the spines are not touched")
    begun = time.monotonic()
    fabric.become(dict.fromkeys(leaves, "fared"))
    stage.done(f"{len(leaves)} daemons replaced", begun)
    started = time.monotonic()
    cast = replace(_cast(fabric), rate=cast.rate)
    accepts = weighted(fabric.plan, cast, fabric.rate)
    done = stage.wait(cast.watched, accepts, _DEADLINE, "leaves weight paths", quiet=SETTLED)
    ratio = _ratio(fabric.view(cast.source.name), cast)
    stage.done(f"{cast.held} {ratio}, by what {cast.target.name} announces", started, done)
    return cast


def _ratio(view: KernelView, cast: Cast) -> str:
    return ":".join(str(hop.weight) for hop in view.hops(cast.prefixes[0]))


def _explain(stage: DemoStage, cast: Cast) -> None:
    name, prefix = cast.source.name, cast.prefixes[0]
    stage.headline(f"{name}: fared-cli explain {prefix}")
    told = stage.fabric.node(name).cli("explain", prefix)
    stage.show(Text(told.partition("\nlast changed")[0].rstrip()))


def _tell(
    stage: DemoStage, found: Mapping[str, Sequence[JobReport]], whole: BytesPerSecond
) -> None:
    stage.headline(f"The same job, {DRAWS} draws of its ports")
    bound = next(iter(found.values()))[0].moved / whole
    times = {name: [one.median for one in reports] for name, reports in found.items()}
    drawn = [*(statistics.mean(each) for each in times.values()), bound]
    title = f"{CONNECTIONS} TCP connections of {_SIZE / 1e6:g} MB, a link at a fifth"
    stage.show(_table(found, bound), Panel(title, [*found, "bound"], {"s": drawn}, panels.seconds))
    for name in (_FARED, _BY_PACKET):
        gain = sum(times[_FRR]) / sum(times[name])
        told = f"{gain:.1f} times as fast with leaves of {name}; {_LEAST_GAIN:g} were asked for"
        stage.claim(told, holds=gain >= _LEAST_GAIN)


def _table(found: Mapping[str, Sequence[JobReport]], bound: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("leaves", no_wrap=True)
    for heading in ("first", "second", "of bound", "early", "resent"):
        table.add_column(heading, justify="right")
    table.add_column("", no_wrap=True)
    means = {name: statistics.mean(one.median for one in each) for name, each in found.items()}
    longest = max(means.values())
    for name, reports in found.items():
        early = statistics.mean(one.order.ratio for one in reports)
        resent = sum(one.order.retransmitted for one in reports)
        cells = [name, *(f"{one.median:.1f} s" for one in reports)]
        cells += [f"{bound / means[name]:.0%}", f"{early:.1%}", f"{resent:,}"]
        table.add_row(*cells, "█" * round(means[name] / longest * _BAR))
    bar = "░" * max(1, round(bound / longest * _BAR))
    table.add_row("bound", f"{bound:.1f} s", f"{bound:.1f} s", "", "", "", bar)
    return table
