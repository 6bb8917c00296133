"""Weights that follow load, on the virtual clock: fluid traffic, real routers, real flooding."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3, clos5
from fared.extensions.sim.invariants import forwarding
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.load import OnOff, Traffic, all_to_all, ring
from fared.extensions.sim.watch import Watch
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.igp.events import LoadsMeasured
from fared.router import events

pytestmark = pytest.mark.slow

SLOW = DEFAULT_CAPACITY / 4
UNDAMPED = 0.0
SECONDS = 6


def settings(
    mode: WeightMode = WeightMode.AVAILABLE,
    time_constant: float = 20.0,
    *,
    equalise: bool = False,
):
    adaptation = AdaptationSettings(time_constant=time_constant, equalise=equalise)
    return SolverSettings(mode=mode, adaptation=adaptation)


def started(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


def on_spine(fabric: Fabric, spine: str, part: float) -> dict[tuple[str, str], float]:
    """Background on all links of a spine, both directions."""
    ends = [leaf for leaf, other in fabric.links if other == spine]
    load = part * DEFAULT_CAPACITY
    return {pair: load for leaf in ends for pair in ((leaf, spine), (spine, leaf))}


def busy(fabric: Fabric, load: float, pattern: OnOff | None = None) -> Traffic:
    """All-to-all at ``load`` of a leaf's uplinks, and half of spine S1 taken by others."""
    uplinks = sum(1 for leaf, _ in fabric.links if leaf == "L1") * DEFAULT_CAPACITY
    traffic = Traffic(
        fabric,
        all_to_all(fabric, load * uplinks),
        background=on_spine(fabric, "S1", 0.5),
        pattern=pattern,
    )
    traffic.start()
    return traffic


def worst(traffic: Traffic, samples: int = 30) -> float:
    """The highest utilisation of any link, averaged over the last samples."""
    return statistics.mean(sample.worst for sample in traffic.samples[-samples:])


FABRICS: dict[str, Callable[[SolverSettings], Fabric]] = {
    "ospf": lambda solver: clos3(4, 4, solver=solver),
    "isis": lambda solver: clos3_isis(4, 3, solver=solver),
}
SMALL: dict[str, Callable[[SolverSettings], Fabric]] = {
    "ospf": lambda solver: clos3(2, 2, solver=solver),
    "isis": lambda solver: clos3_isis(2, 2, solver=solver),
}


@pytest.mark.parametrize(
    ("protocol", "seconds"),
    [("ospf", 60), ("isis", 60), pytest.param("ospf", 300, marks=pytest.mark.soak)],
)
def test_background_load_is_avoided_and_nothing_oscillates(protocol: str, seconds: int):
    """Half of a spine is taken: a minute of following that, quietly, by either protocol."""
    by_capacity = busy(started(FABRICS[protocol](settings(WeightMode.CAPACITY))), 0.6)
    by_capacity.fabric.network.run_for(5)
    assert worst(by_capacity, 2) > 1.05

    traffic = busy(started(FABRICS[protocol](settings())), 0.6)
    traffic.fabric.network.run_for(60)
    seen = Watch(traffic).run(seconds)
    assert seen.highest < 0.87
    assert seen.overflow == 0
    assert seen.spread < 3
    assert seen.rewrites < 0.2
    assert seen.advertised < 0.05


@pytest.mark.parametrize("protocol", FABRICS)
def test_undamped_the_same_traffic_oscillates(protocol: str):
    """What the time constant is for: without one all leaves chase the same free spine."""
    traffic = busy(started(FABRICS[protocol](settings(time_constant=UNDAMPED))), 0.6)
    traffic.fabric.network.run_for(4)
    seen = Watch(traffic).run(10)
    assert seen.spread > 10
    assert seen.highest > 1.3
    assert seen.rewrites > 0.2


def test_weights_account_for_load_and_a_slow_link_together():
    """Eight spines, a ring at 60 %, one link at a quarter and a loaded spine: 0.83 against 1.06."""
    found = {}
    for mode in (WeightMode.CAPACITY, WeightMode.AVAILABLE):
        fabric = started(clos3(8, 3, solver=settings(mode)))
        fabric.network.set_capacity("S2", "L1", SLOW)
        uplinks = 8 * DEFAULT_CAPACITY
        traffic = Traffic(
            fabric, ring(fabric, 0.6 * uplinks), background=on_spine(fabric, "S1", 0.4)
        )
        traffic.start()
        fabric.network.run_for(5 if mode is WeightMode.CAPACITY else 80)
        found[mode] = worst(traffic, 3)
    assert found[WeightMode.CAPACITY] == pytest.approx(1.06, abs=0.03)
    assert found[WeightMode.AVAILABLE] < 0.86


def test_equalising_comes_closer_to_the_least_possible_utilisation():
    """0.725 is the optimum, 0.83 where shares go by what is left: between them, and as quiet."""
    traffic = busy(started(clos3(4, 4, solver=settings(equalise=True))), 0.6)
    traffic.fabric.network.run_for(60)
    seen = Watch(traffic).run(60)
    assert 0.72 < seen.highest < 0.79
    assert seen.spread < 3
    assert seen.rewrites < 0.2


@pytest.mark.parametrize(
    "period",
    [
        pytest.param(0.5, marks=pytest.mark.soak),
        2.0,
        pytest.param(20.0, marks=pytest.mark.soak),
    ],
)
def test_bursts_of_load_do_not_make_weights_oscillate(period: float):
    """Computing and exchanging by turns, as training does: no aliasing with the measuring."""
    pattern = OnOff(period, 0.5)
    traffic = busy(started(clos3(3, 3, solver=settings())), 0.5, pattern)
    traffic.fabric.network.run_for(60)
    seen = Watch(traffic).run(40)
    assert seen.swing < 10
    assert seen.worst < 0.92
    assert seen.advertised <= 3
    assert seen.advertised_most <= 5


def test_weights_settle_in_five_stages_too():
    """A spine's uplink to one super-spine is busy: leaves and spines both follow, quietly."""
    fabric = started(clos5(2, 2, 2, 2, solver=settings()))
    busy_links = [("p1.S1", "SS1.1"), ("SS1.1", "p2.S1")]
    traffic = Traffic(
        fabric,
        {
            (source, fabric.leaf_prefixes[end]): 0.6 * DEFAULT_CAPACITY
            for source in ("p1.L1", "p1.L2")
            for end in ("p2.L1", "p2.L2")
        },
        background=dict.fromkeys(busy_links, 0.6 * DEFAULT_CAPACITY),
    )
    traffic.start()
    fabric.network.run_for(2)
    assert worst(traffic, 1) > 1.1
    fabric.network.run_for(98)
    seen = Watch(traffic).run(60)
    assert seen.worst < 0.95
    assert seen.spread < 3


def test_when_everything_is_full_weights_go_back_to_capacities():
    """More is sent than fits anywhere: no path is better than another, and shares are even."""
    traffic = busy(started(clos3(4, 4, solver=settings())), 1.6)
    fabric = traffic.fabric
    fabric.network.run_for(120)
    adapted = fabric.network.nodes["L1"].running.instances["ospf"].adapted[4]
    for leaf, prefix in fabric.leaf_prefixes.items():
        if leaf == "L1":
            continue
        _, state = adapted.state(prefix)
        assert state.fallback == "saturated"
        assert state.loop_gain > 40
        assert state.smoothed == pytest.approx([0.25] * 4, abs=0.02)


def test_slow_links_behind_full_fast_ones_do_not_look_free():
    """All uplinks are full, of the path over the slow downlink as well: it is not worth more."""
    fabric = started(clos3(4, 3, solver=settings()))
    fabric.network.set_capacity("S1", "L2", SLOW)
    traffic = Traffic(
        fabric,
        {
            ("L1", fabric.leaf_prefixes["L3"]): 6 * DEFAULT_CAPACITY,
            ("L1", fabric.leaf_prefixes["L2"]): 0.1 * DEFAULT_CAPACITY,
        },
    )
    traffic.start()
    fabric.network.run_for(60)
    adapted = fabric.network.nodes["L1"].running.instances["ospf"].adapted[4]
    _, state = adapted.state(fabric.leaf_prefixes["L2"])
    assert state.fallback == "saturated"
    assert sorted(state.smoothed) == pytest.approx([1 / 13, 4 / 13, 4 / 13, 4 / 13], abs=0.01)


def test_losses_of_links_and_capacity_bypass_the_damping():
    """What is a fact and not load takes effect within the flooding time."""
    fabric = busy(started(clos3(4, 4, solver=settings())), 0.3).fabric
    network, prefix = fabric.network, fabric.leaf_prefixes["L2"]
    network.run_for(20)
    before = forwarding(fabric, prefix)["L1"]
    network.set_capacity("S2", "L2", SLOW)
    network.run_for(0.1)
    slow = forwarding(fabric, prefix)["L1"]
    assert slow["S2"] / slow["S3"] == pytest.approx(before["S2"] / before["S3"] / 4, rel=0.05)
    network.set_link("S3", "L2", up=False)
    network.run_for(0.3)
    assert set(forwarding(fabric, prefix)["L1"]) == {"S1", "S2", "S4"}


def test_a_link_that_comes_back_under_load_is_not_overrun():
    """It is idle because it was away: not a reason to send it half of everything."""
    fabric = started(clos3(4, 2, solver=settings()))
    network = fabric.network
    network.set_link("L1", "S3", up=False)
    traffic = Traffic(fabric, all_to_all(fabric, 0.55 * 4 * DEFAULT_CAPACITY))
    traffic.start()
    network.run_for(8)
    assert worst(traffic, 1) > 0.7
    network.set_link("L1", "S3", up=True)
    network.run_for(15)
    assert max(sample.worst for sample in traffic.samples[-15:]) < 0.8
    assert worst(traffic, 1) < 0.6


def test_when_loads_are_no_longer_measured_weights_go_back_to_capacities():
    """Counters that stand still say nothing: old loads are not believed for longer than 10 s."""
    traffic = busy(started(clos3(4, 2, solver=settings())), 0.3)
    network = traffic.fabric.network
    network.run_for(50)
    prefix = traffic.fabric.leaf_prefixes["L2"]
    assert forwarding(traffic.fabric, prefix)["L1"]["S1"] < 0.2
    traffic.stop()
    network.run_for(80)
    assert forwarding(traffic.fabric, prefix)["L1"]["S1"] == pytest.approx(0.25, abs=0.015)


@pytest.mark.parametrize("protocol", FABRICS)
@pytest.mark.parametrize("every", [0.02, 0.1, 1.0])
def test_a_storm_of_loads_floods_a_bounded_number(protocol: str, every: float):
    """However load jumps: at most five LSAs or LSPs a link in any second, three on average."""
    fabric = started(SMALL[protocol](settings()))
    network, dice = fabric.network, random.Random(7)
    port = network.find_port("L1", "S1")
    sent: list[float] = []
    last = _versions(fabric, protocol)
    for _ in range(int(SECONDS / every)):
        network.input("L1", LoadsMeasured({port.ifindex: dice.random() * DEFAULT_CAPACITY}))
        network.run_for(every)
        now = _versions(fabric, protocol)
        sent += [network.now] * (now - last)
        last = now
    seconds = Counter(int(at) for at in sent)
    assert sent
    assert max(seconds.values()) <= 5
    assert len(sent) / SECONDS <= 3


def _versions(fabric: Fabric, protocol: str) -> int:
    """The sum of the sequence numbers of everything that L1 originates."""
    node = fabric.network.nodes["L1"]
    if protocol == "ospf":
        mine = fabric.router_ids["L1"]
        return sum(
            entry.sequence_number + 2**31
            for lsdb in node.running.instances["ospf"].engine.instance.databases()
            for entry in lsdb
            if entry.key.advertising_router == mine
        )
    mine = node.settings.protocols["isis"].system_id
    return sum(
        entry.sequence_number
        for lsdb in node.running.instances["isis"].engine.instance.databases.values()
        for entry in lsdb.ordered()
        if entry.lsp_id >> 16 == mine
    )


def test_following_load_can_be_switched_on_and_off_without_a_restart():
    """A reload to capacity and back: kernels follow, and nothing is left of the other mode."""
    fabric = busy(started(clos3(4, 2, solver=settings())), 0.3).fabric
    network, prefix = fabric.network, fabric.leaf_prefixes["L2"]
    network.run_for(40)
    assert forwarding(fabric, prefix)["L1"]["S1"] < 0.22
    for mode, least, most in ((WeightMode.CAPACITY, 0.25, 0.25), (WeightMode.AVAILABLE, 0.0, 0.22)):
        for name, node in network.nodes.items():
            changed = replace(node.running.settings, solver=settings(mode))
            network.input(name, events.RouterSettingsApplied(changed))
        network.run_for(40)
        assert least <= forwarding(fabric, prefix)["L1"]["S1"] <= most


def test_with_few_flows_weights_avoid_small_paths_in_every_mode():
    """Told by reloads, back and forth: 1/16 of the capacity gets 1/22 of 128 flows."""
    fabric = started(clos3(4, 2, solver=settings()))
    network, prefix = fabric.network, fabric.leaf_prefixes["L2"]
    network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 5)
    network.run_for(10)
    for mode in (WeightMode.AVAILABLE, WeightMode.CAPACITY):
        for flows, share in ((128, 1 / 22), (None, 1 / 16)):
            solver = replace(settings(mode), flows=flows)
            for name, node in network.nodes.items():
                changed = replace(node.running.settings, solver=solver)
                network.input(name, events.RouterSettingsApplied(changed))
            network.run_for(10)
            assert forwarding(fabric, prefix)["L1"]["S1"] == pytest.approx(share, abs=0.002)


def test_load_is_the_cause_of_a_weight_that_followed_it():
    """What ``explain`` gives as the last change; a damaged link changes the same weight after."""
    traffic = busy(started(SMALL["ospf"](settings(time_constant=UNDAMPED))), 0.6)
    fabric = traffic.fabric
    journal = fabric.network.nodes["L1"].running.journal
    far = fabric.leaf_prefixes["L2"]
    assert journal.last_change[far].causes != ("load",)
    fabric.network.run_for(5)
    assert journal.last_change[far].causes == ("load",)
    assert fabric.network.now - journal.last_change[far].at < 5
    traffic.stop()
    fabric.network.set_capacity("S1", "L2", SLOW)
    fabric.network.run_for(0.5)
    assert "te-link-lsa" in journal.last_change[far].causes[0]
