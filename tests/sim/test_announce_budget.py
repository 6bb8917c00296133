"""A fabric in which jobs switch on and off: announcements stay in the budget, weights stay good.

Each router decides alone; what is compared is what all of them flood, and where the traffic goes.
"""

from collections import Counter

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.load import OnOff, Traffic, all_to_all
from fared.extensions.sim.watch import Watch, Watched, originations
from fared.paths.rib.settings import SolverSettings
from fared.paths.te.budget import LEAST_REFILL, LONGEST_AVERAGE, RELAX, WINDOW
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.router import events

pytestmark = pytest.mark.slow
UNBOUNDED = 1e6
JOB = 16
"""Leaves that exchange data; in a large fabric all others only route."""
POINTS = 2.0
DAMPING = round(AdaptationSettings().tau * AdaptationSettings().slowed(LONGEST_AVERAGE))
"""The longest time constant of weights while announcements are deferred, seconds."""
RELAXED = LONGEST_AVERAGE / RELAX
"""Seconds until the averaging time, and with it the threshold, is at its least again."""


def follow_load(fabric: Fabric, budget: float) -> None:
    """Let weights follow load, with this budget, as a reload does."""
    for name, node in fabric.network.nodes.items():
        settings = node.running.settings
        protocols = {
            proto: replace(engine, advertise=replace(engine.advertise, budget=budget))
            for proto, engine in settings.protocols.items()
        }
        solver = SolverSettings(mode=WeightMode.AVAILABLE)
        changed = replace(settings, protocols=protocols, solver=solver)
        fabric.network.input(name, events.RouterSettingsApplied(changed))


class Run:
    """Jobs on a fabric whose first spine carries other traffic, too: half of its capacity."""

    def __init__(self, fabric: Fabric, spines: int, period: float) -> None:
        self.fabric = fabric
        self.times: list[float] = []
        load = DEFAULT_CAPACITY / 2
        taken = [(a, b) for a, b in fabric.links if "S1" in (a, b)]
        self.traffic = Traffic(
            fabric,
            all_to_all(fabric, 0.5 * spines * DEFAULT_CAPACITY, list(fabric.leaf_prefixes)[:JOB]),
            background={way: load for a, b in taken for way in ((a, b), (b, a))},
            pattern=OnOff(period, 0.5),
        )

    def start(self, budget: float) -> None:
        """Send from now on."""
        follow_load(self.fabric, budget)
        self.fabric.network.run_for(WINDOW + 2)
        self.traffic.start()

    def settle(self, seconds: int) -> None:
        """Run, and record when LSAs and LSPs with bandwidths were originated."""
        network = self.fabric.network
        first = next(iter(network.nodes.values()))
        before = originations(first)
        for _ in range(seconds):
            network.run_for(1.0)
            now = originations(first)
            number = sum(count - before.get(key, count) for key, count in now.items())
            self.times += [network.now] * number
            before = now

    def watched(self, seconds: int) -> Watched:
        """Run, and record where the traffic goes."""
        return Watch(self.traffic).run(seconds)

    def most(self, since: float = 0.0) -> float:
        """The most announcements a second, of any ten seconds."""
        counts = Counter(int(at) for at in self.times if at >= since)
        seconds = range(min(counts, default=0), max(counts, default=0) + 1)
        width = int(WINDOW)
        return max((sum(counts[n + k] for k in range(width)) / width for n in seconds), default=0)


def databases(fabric: Fabric) -> set[object]:
    """The distinct databases among all routers."""
    return {frozenset(originations(node).items()) for node in fabric.network.nodes.values()}


def announced(fabric: Fabric, budget: float) -> None:
    """Run until all links have announced what they carry now: then all databases must be equal.

    Each end that waits for the budget gets its part of the least refill; others follow while the
    threshold falls.
    """
    longest = 2 * len(fabric.links) / (budget * LEAST_REFILL) + RELAXED + WINDOW
    fabric.network.run_until_quiet(longest, quiet=WINDOW)
    assert len(databases(fabric)) == 1


def started(build, spines: int, leaves: int) -> Fabric:
    fabric = build(spines, leaves)
    fabric.network.start_all()
    fabric.network.run_until_quiet(120)
    return fabric


def quality(fabric, spines, budget, *, halved=False, settling=60, seconds=20) -> tuple:
    """Judge the weights once they have settled: in a large fabric, and after a smaller budget, this
    takes the time constant.
    """
    run = Run(fabric, spines, 2.0)
    run.start(budget)
    run.settle(settling)
    if halved:
        follow_load(fabric, budget / 2)
        at = fabric.network.now
        run.settle(DAMPING)
        assert 0 < run.most(at + 1) <= budget / 2
    elif budget < UNBOUNDED:
        assert 0 < run.most() <= budget
    seen = run.watched(seconds)
    run.traffic.stop()
    announced(fabric, budget / 2 if halved else budget)
    return seen, run


def same_quality(ours: Watched, unbounded: Watched) -> None:
    assert 100 * ours.worst <= 100 * unbounded.worst + POINTS
    assert ours.swing <= unbounded.swing + POINTS


SPINES, LEAVES = 3, 6
QUARTER = SPINES * LEAVES / 2
"""Of an announcement a second of each link end."""


@pytest.fixture(scope="module")
def unbounded():
    return quality(started(clos3, SPINES, LEAVES), SPINES, UNBOUNDED)


@pytest.mark.parametrize("halved", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_weights_follow_load_with_a_quarter_of_the_announcements(unbounded, halved):
    """Unbounded, an announcement a second of each link end."""
    freely, run = unbounded
    assert run.most() > 2.5 * QUARTER
    ours, _ = quality(started(clos3, SPINES, LEAVES), SPINES, QUARTER, halved=halved)
    same_quality(ours, freely)


def test_in_isis_a_whole_lsp_counts_as_one():
    freely, run = quality(started(clos3_isis, SPINES, LEAVES), SPINES, UNBOUNDED)
    ours, budgeted = quality(started(clos3_isis, SPINES, LEAVES), SPINES, SPINES)
    assert len(budgeted.times) < len(run.times) / 2
    same_quality(ours, freely)


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_weights_of_a_large_fabric_need_a_fifth_of_the_announcements():
    """A fifth of what they announce unbounded; halved during the run, a tenth."""
    fabric = started(clos3, 16, 64)  # takes minutes, and so is started once
    freely, run = quality(fabric, 16, UNBOUNDED, settling=40, seconds=10)
    assert run.most() > 300
    for halved in (False, True):
        ours, _ = quality(fabric, 16, 100.0, halved=halved, settling=DAMPING, seconds=10)
        same_quality(ours, freely)
