"""Aggregation trees: stars, relays, limits, several jobs; worked examples of Clos fabrics."""

import math
import random
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from fared.extensions.ina.plan.bounds import (
    aggregation_seconds,
    least_cut,
    least_cut_to,
    ring_bytes,
    ring_rate,
    ring_seconds,
    server_bytes,
    sharded_seconds,
)
from fared.extensions.ina.plan.flow import max_flow
from fared.extensions.ina.plan.given import TreeError, check_given, given_tree, parse_tree
from fared.extensions.ina.plan.model import (
    Capacities,
    SummingJob,
    TreePlan,
    members,
)
from fared.extensions.ina.plan.planner import plan_job, plan_jobs
from fared.extensions.ina.plan.stars import star_rates, widths_of
from fared.extensions.ina.plan.stripes import one_round, rounds, stripe_weights
from fared.extensions.ina.slots.setup import setup_of, tree_roles
from fared.extensions.offline.ina.columns import best_of_several, best_stars_and_relays
from fared.extensions.offline.ina.exact import best_trees
from tests.ina.fabrics import FIGURE_1, both, clos, damaged, figure_1, leaf, workers
from tests.work import counting_calls

DAMAGE = {
    "none": ({}, (1, 1, 1, 1), 4, 4, 4, 0.25, 0.4375),
    "S1-L2 at 1/4": (both(1, 2, 0.25), (0.25, 1, 1, 1), 3.25, 3.25, 1, 0.3077, 0.5385),
    "S1 > L2 at 1/4": ({(1, leaf(2)): 0.25}, (0.25, 1, 1, 1), 3.25, 3.25, 1, 0.3077, 0.5385),
    "S3-L5 dead": (both(3, 5, 0), (1, 1, 0, 1), 3, 3, 3, 0.3333, 0.5833),
    "L2 weak twice": (
        both(1, 2, 0.25) | both(2, 2, 0.25), (0.25, 0.25, 1, 1), 2.5, 2.5, 1, 0.4, 0.7,
    ),
    "S1-L2, S1-L3": (
        both(1, 2, 0.25) | both(1, 3, 0.5), (0.25, 1, 1, 1), 3.25, 3.25, 1, 0.3077, 0.5385,
    ),
    "S1-L2, S2-L3": (
        both(1, 2, 0.25) | both(2, 3, 0.25), (0.25, 0.25, 1, 1), 2.5, 3.25, 1, 0.4, 0.7,
    ),
}  # fmt: skip


def is_sound(network: Capacities, plan: TreePlan) -> bool:
    """Every tree sums every worker once, and no link has more than it can carry."""
    for rated in plan.trees:
        tree, strings = rated.tree, rated.tree.bit_strings()
        assert strings[tree.root] == plan.job.bits
        for node, children in tree.children().items():
            below = [1 << (-c - 1) if c < 0 else strings[c] for c in children]
            assert sum(below) == strings[node]
            assert all(a & b == 0 for at, a in enumerate(below) for b in below[:at])
        for child, route in tree.routes.items():
            assert (route[0], route[-1]) == (child, tree.parents[child])
        reached = {tree.root}
        for _ in tree.results:
            reached |= {head for tail, head in tree.results if tail in reached}
        assert {-bfr_id for bfr_id in plan.job.workers} <= reached
    whole = plan.job.attached(network)
    return all(load <= whole.links[link] * (1 + 1e-6) for link, load in plan.loads().items())


@pytest.mark.parametrize("damage", DAMAGE)
def test_rates_of_a_damaged_fabric_e2(damage):
    changes, stars, star_rate, best, equal, seconds, ring = DAMAGE[damage]
    network, job = clos(changes=changes), workers()
    widths = widths_of(network, job).widths
    assert star_rates(widths).tolist() == list(stars)
    live = star_rates(widths)[star_rates(widths) > 0]
    assert len(live) * live.min() == equal
    plan = plan_job(network, job, relays=False)
    assert plan.rate == pytest.approx(star_rate)
    assert plan.seconds(1) == pytest.approx(seconds, abs=5e-5)
    assert plan_job(network, job).rate == pytest.approx(best)
    assert best_stars_and_relays(network, job).rate == pytest.approx(best)
    assert least_cut(network, job) == pytest.approx(best)
    assert ring_seconds(8, 1, ring_rate(network, job)) == pytest.approx(ring, abs=5e-5)
    assert is_sound(network, plan_job(network, job))


def test_a_leaf_that_is_weak_at_one_spine_relays_over_another_e2():
    network = clos(changes=both(1, 2, 0.25) | both(2, 3, 0.25))
    (relay,) = (rated for rated in plan_job(network, workers()).trees if rated.kind == "relay")
    assert relay.rate == pytest.approx(0.75)
    tree = relay.tree
    helper = tree.parents[-2]
    assert tree.root == 1
    assert helper == leaf(1)
    assert tree.routes[-2] == (-2, leaf(2), 2, helper)
    assert tree.routes[helper] == (helper, 1)
    assert members(tree.bit_strings()[helper]) == [1, 2]


def test_the_exact_planner_finds_no_better_trees():
    network = clos(changes=both(1, 2, 0.25) | both(2, 3, 0.25))
    plan = best_trees(network, workers())
    assert plan.rate == pytest.approx(3.25)
    assert is_sound(network, plan)


def test_stars_that_meet_the_cut_are_optimal_where_one_leaf_is_the_weakest():
    rng = random.Random(5)
    for _ in range(10):
        changes = {}
        for spine in range(1, 5):
            changes[spine, leaf(3)] = rng.choice((0.0, 0.1, 0.5, 1.0))
            changes |= both(spine, 5, 1.0)
        network = clos(changes=changes)
        rate = plan_job(network, workers(), relays=False).rate
        assert rate == pytest.approx(least_cut(network, workers()))


def test_a_reduce_is_bound_by_the_cuts_towards_its_receiver_only():
    """S1 > L2 at a quarter: what goes to another leaf does not need it."""
    network = clos(changes={(1, leaf(2)): 0.25})
    found = [least_cut_to(network, workers(), receiver) for receiver in (1, 2, 3)]
    assert found == [pytest.approx(rate) for rate in (4, 3.25, 4)]
    assert least_cut(network, workers()) == pytest.approx(3.25)
    away = clos(changes={(leaf(2), 1): 0.25})
    assert [least_cut_to(away, workers(), at) for at in (1, 2)] == [pytest.approx(3.25), 4]
    assert least_cut_to(network, workers(1, each=2), 1) == workers(1).nic


def test_stars_are_useless_if_each_spine_misses_another_leaf_and_relays_are_not():
    changes = {k: v for n in range(1, 5) for k, v in both(n, n, 0.0).items()}
    network = clos(changes=changes)
    assert star_rates(widths_of(network, workers()).widths).tolist() == [0, 0, 0, 0]
    assert least_cut(network, workers()) == pytest.approx(3)
    assert best_stars_and_relays(network, workers()).rate == pytest.approx(3)
    assert plan_job(network, workers()).rate >= 2


@pytest.mark.parametrize(
    ("mean", "stars", "greedy", "optimum"),
    [(1.4, 0.93, 0.98, 0.999), (2.8, 0.73, 0.957, 0.998), (7.1, 0.39, 0.906, 0.99)],
)
def test_relays_bring_back_what_stars_lose_in_random_fabrics(mean, stars, greedy, optimum):
    """Means over fabrics with damaged links, as parts of the cut that none can beat."""
    rng, job = random.Random(22), workers()
    found = []
    for at in range(40):
        network = damaged(rng, mean)
        bound = least_cut(network, job)
        if bound <= 0:
            continue
        plan = plan_job(network, job)
        assert is_sound(network, plan)
        best = best_stars_and_relays(network, job).rate / bound if at < 12 else math.nan
        closed = float(star_rates(widths_of(network, job).widths).sum())
        found.append((closed / bound, plan.rate / bound, best))
        assert plan.rate <= bound * (1 + 1e-6)
        assert not best > 1 + 1e-6
    means = np.nanmean(found, axis=0)
    assert means[0] == pytest.approx(stars, abs=0.1)
    assert means[1] >= greedy
    assert means[2] >= optimum


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.5, 12))
def test_plans_are_sound_and_never_above_the_cut(seed, mean):
    network, job = damaged(random.Random(seed), mean), workers()
    plan = plan_job(network, job)
    assert is_sound(network, plan)
    assert plan.rate <= least_cut(network, job) * (1 + 1e-6)
    stars = plan_job(network, job, relays=False)
    closed = float(star_rates(widths_of(network, job).widths).sum())
    assert closed <= stars.rate + 1e-6 or closed == pytest.approx(stars.rate)


def test_results_by_unicast_take_room_for_each_worker_and_by_bier_once_a_link():
    """Figure 1: two workers at s1 and s2; a relay gets one copy, and serves its own workers."""
    network, job = figure_1("s1 s2 s5")
    copies = replace(job, unicast="as asked")
    assert plan_job(network, job).rate == pytest.approx(1)
    by_unicast = plan_job(network, copies)
    assert by_unicast.rate == pytest.approx(1 / 2)
    assert by_unicast.trees[0].tree.loads()[5, 1] == 2
    weak = clos(changes=both(1, 2, 0.25) | both(2, 3, 0.25))
    plan = plan_job(weak, replace(workers(), unicast="as asked"))
    assert plan.rate == pytest.approx(3.25), "one worker a leaf: no more than by BIER"


def test_the_tree_of_the_draft_carries_three_copies_over_one_link_e1():
    """draft-song-ina-00, Figure 1: A-BMs at s1, s7 and the root s6."""
    network, job = figure_1("s1 s6 s7")
    given = parse_tree("s1,s7,s6", FIGURE_1.__getitem__)
    ((tree, rate, kind),) = map(astuple, plan_job(network, replace(job, given=given)).trees)
    assert tree.bit_strings() == {1: 0b0011, 7: 0b1100, 6: 0b1111}
    loads = tree.loads()
    assert (loads[5, 7], loads[7, 6], loads[2, 5]) == (3, 2, 2)
    assert (rate, kind) == (pytest.approx(1 / 3), "given")
    by_unicast = plan_job(network, replace(job, given=given, unicast="as asked"))
    assert by_unicast.trees[0].tree.loads()[6, 7] == 4


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s1,s1,s6", "s1 is there twice"),
        ("s1:s9,s6", "s1 sends to s9, which is none of s1, s6"),
        ("s1:s7,s7:s1,s6", "s1 does not reach the root: s1 > s7 > s1"),
        ("s6:s1", "does not end with the root"),
        ("s1,s5,s6", "s5 does not sum, or has no place"),
        ("s3,s6", "s3 would sum nothing: no worker's way to the root s6 leads there first"),
    ],
)
def test_a_given_tree_that_cannot_be_is_told(text, why):
    network, job = figure_1("s1 s3 s6 s7")
    with pytest.raises(TreeError, match=why):
        check_given(network, job, parse_tree(text, FIGURE_1.__getitem__), lambda at: f"s{at}")


def test_a_given_tree_needs_a_way_from_each_worker():
    network, job = figure_1("s1 s6 s7")
    cut = replace(network, links=dict(network.links) | {(2, 5): 0.0})
    given = parse_tree("s1,s7,s6", FIGURE_1.__getitem__)
    with pytest.raises(TreeError, match="the worker of rank 2 at 2 does not reach the root 6"):
        given_tree(cut, job, given)


@pytest.mark.parametrize(
    ("adders", "rate", "roots"),
    [("s1 s2 s5", 1.0, {5}), ("s1 s6 s7", 0.5, {1, 7}), ("s1 s2 s3 s4 s5 s6 s7", 1.0, {5})],
)
def test_better_trees_for_the_figure_of_the_draft_e1(adders, rate, roots):
    network, job = figure_1(adders)
    plan = best_trees(network, job)
    assert plan.rate == pytest.approx(rate)
    assert {rated.tree.root for rated in plan.trees} <= roots
    assert least_cut(network, job) == 1
    assert plan_job(network, job).rate == pytest.approx(rate)


def test_chunks_are_divided_by_smooth_weighted_round_robin_e3():
    assert stripe_weights([0.25e9, 1e9, 1e9, 1e9]) == (1, 4, 4, 4)
    assert one_round((1, 4, 4, 4)) == (1, 2, 3, 0, 1, 2, 3, 1, 2, 3, 1, 2, 3)
    assert list(islice(rounds((0, 0)), 3)) == []


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(sum))
def test_every_part_of_the_array_is_divided_by_weight(weights):
    order = list(islice(rounds(weights), 2 * sum(weights)))
    assert [order.count(tree) for tree in range(len(weights))] == [2 * w for w in weights]
    for tree, weight in enumerate(weights):
        places = [at for at, chosen in enumerate(order) if chosen == tree]
        for near, far in pairwise(places):
            assert far - near <= 2 * sum(weights) / weight


def test_who_can_sum_decides_the_rate_e4():
    """Two workers a leaf: with sums in spines alone each stream goes up by itself."""
    job = workers(8, each=2)
    everywhere = clos()
    spines = Capacities(everywhere.links, frozenset(range(1, 5)))
    assert plan_job(everywhere, job).rate == pytest.approx(4)
    assert plan_job(spines, job).rate == pytest.approx(4 / 2)
    small = clos(2, 3)
    leaves = Capacities(small.links, frozenset(map(leaf, (1, 2, 3))))
    # Without sums in spines it is an algorithm of hosts among leaves: two uplinks / (4 / 3).
    assert best_trees(leaves, workers(3)).rate == pytest.approx(1.5)


def test_summing_rate_and_memory_limit_the_trees_e5():
    network = clos()
    slow = Capacities(network.links, network.adders, summing={1: 4.0})
    assert plan_job(slow, workers()).rate == pytest.approx(3 + 4.0 / 8)
    short = Capacities(network.links, network.adders, memory={2: 0.5, 3: 0.0}, slot_seconds=1.0)
    assert plan_job(short, workers()).rate == pytest.approx(2 + 0.25)
    # A leaf that sums for others takes streams off the spine, which the optimum uses.
    assert 3.5 < best_stars_and_relays(slow, workers()).rate < 4


def test_jobs_on_the_same_leaves_share_fairly_and_use_different_spines_e6():
    jobs = [workers(), workers()]
    jobs[1] = SummingJob("other", {i + 8: at for i, at in jobs[1].workers.items()})
    plans = plan_jobs(clos(), jobs)
    assert [plan.rate for plan in plans] == pytest.approx([2, 2])
    roots = [{rated.tree.root for rated in plan.trees} for plan in plans]
    assert not roots[0] & roots[1]
    assert [plan.rate for plan in best_of_several(clos(), jobs)] == pytest.approx([2, 2])
    three = plan_jobs(clos(spines=3), jobs)
    assert [plan.rate for plan in three] == pytest.approx([1.5, 1.5], rel=0.03)


def test_a_job_of_twice_the_weight_gets_twice_the_rate():
    jobs = [
        SummingJob("a", dict(workers().workers), weight=2.0),
        SummingJob("b", {i + 8: at for i, at in workers().workers.items()}),
    ]
    plans = plan_jobs(clos(), jobs)
    assert [plan.rate for plan in plans] == pytest.approx([8 / 3, 4 / 3], rel=0.05)
    assert [p.rate for p in best_of_several(clos(), jobs)] == pytest.approx([4 * 2 / 3, 4 / 3])


def test_jobs_on_different_leaves_do_not_meet():
    jobs = [
        SummingJob("a", {i: leaf(i) for i in range(1, 5)}),
        SummingJob("b", {i: leaf(i) for i in range(5, 9)}),
    ]
    assert [plan.rate for plan in plan_jobs(clos(), jobs)] == pytest.approx([4, 4])


def test_the_interface_of_a_worker_limits_the_number_of_trees():
    job = SummingJob("job", dict(workers().workers), nic=1.0)
    plan = plan_job(clos(), job)
    assert plan.rate == pytest.approx(1)
    assert len(plan.trees) == 1
    assert least_cut(clos(), job) == 1


def five_stages() -> tuple[Capacities, SummingJob]:
    """Two PoDs of two leaves, two planes of two super-spines, one plane damaged."""
    links = {}

    def link(a: int, b: int, capacity: float = 1.0) -> None:
        links[a, b] = links[b, a] = capacity

    for pod in (0, 1):
        for plane in (0, 1):
            spine = 10 + 2 * pod + plane
            for number in (1, 2):
                link(100 + 2 * pod + number, spine, 2.0)
            for upper in (0, 1):
                link(spine, 1 + 2 * plane + upper)
    link(101, 10, 1.5)  # a leaf of plane 0: its two super-spines could carry 2
    job = SummingJob("job", {i: 100 + i for i in range(1, 5)})
    adders = {1, 2, 3, 4, 10, 11, 12, 13, 101, 102, 103, 104}
    return Capacities(links, frozenset(adders)), job


def test_five_stages_have_a_star_for_each_super_spine_e7():
    """A plane carries min(weakest leaf, sum over its super-spines of the weakest PoD)."""
    network, job = five_stages()
    plan = plan_job(network, job)
    assert plan.rate == pytest.approx(1.5 + 2.0)
    assert {rated.tree.root for rated in plan.trees} == {1, 2, 3, 4}
    assert least_cut(network, job) == pytest.approx(3.5)
    assert best_trees(network, job).rate == pytest.approx(3.5)
    assert is_sound(network, plan)
    inside = plan_job(network, SummingJob("pod", {1: 103, 2: 104}))
    assert {rated.tree.root for rated in inside.trees} == {12, 13}


def damaged_five_stages(seed: int, mean: float) -> Capacities:
    """Each link is at a part of its rate, so many on average."""
    rng = random.Random(seed)
    network, _ = five_stages()
    links = dict(network.links)
    pairs = [(tail, head) for tail, head in links if tail < head]
    for tail, head in pairs:
        if rng.random() < mean / len(pairs):
            rate = rng.choice((0.0, 0.1, 0.25, 0.5)) * links[tail, head]
            links[tail, head] = links[head, tail] = rate
    return replace(network, links=links)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.5, 12), st.sampled_from(["", "no BIER"]), st.booleans())
def test_plans_of_five_stages_are_sound_and_never_above_the_cut(seed, mean, unicast, wide):
    """Relays are added to stars, in one area and across several."""
    network, (_, job) = damaged_five_stages(seed, mean), five_stages()
    job = replace(job, unicast=unicast, wide=wide)
    plan = plan_job(network, job)
    assert is_sound(network, plan)
    assert plan.rate <= least_cut(network, job) * (1 + 1e-6)
    assert plan.rate >= plan_job(network, job, relays=False).rate
    if plan.trees:
        setup = setup_of(plan, job_id=1, epoch=1, length=64, payload=1024, window=8)
        for tree in setup.trees:
            told = {bits for role in tree_roles(tree).values() for bits in [role.direct]}
            assert sum(told) == job.bits, "each worker gets a result from one router"


@pytest.mark.parametrize(("unicast", "wide"), [("", False), ("", True), ("no BIER", True)])
def test_a_leaf_that_is_weak_at_one_spine_relays_in_five_stages(unicast, wide):
    network, job = five_stages()
    leaves = job.leaves
    first, second = sorted(head for tail, head in network.links if tail == leaves[0])[:2]
    weak = [(leaves[0], first), (leaves[1], second)]
    links = dict(network.links)
    for tail, head in [*weak, *((b, a) for a, b in weak)]:
        links[tail, head] = links[tail, head] / 4
    network, job = replace(network, links=links), replace(job, unicast=unicast, wide=wide)
    cut = least_cut(network, job)
    assert plan_job(network, job, relays=False).rate < 0.9 * cut
    plan = plan_job(network, job)
    assert plan.rate == pytest.approx(cut)
    assert "relay" in {rated.kind for rated in plan.trees}


def test_times_of_rings_servers_and_aggregation_e8():
    alpha, rate, size = 1e-3, 100e6 / 8, 65536
    assert ring_seconds(8, size, rate, alpha) == pytest.approx(23.2e-3, abs=5e-5)
    assert aggregation_seconds(size, rate, alpha) == pytest.approx(7.2e-3, abs=5e-5)
    times = [sharded_seconds(8, servers, 1, 1) for servers in (0, 4, 8)]
    assert times == pytest.approx([1.75, 1.273, 1], abs=5e-4)


def test_bytes_on_the_uplinks_of_a_leaf_e9():
    size = 16e6
    plan = plan_job(clos(), workers())
    scale = size / plan.rate
    assert [plan.loads()[leaf(3), s] * scale for s in range(1, 5)] == pytest.approx([4e6] * 4)
    assert sum(v for k, v in plan.loads().items() if min(k) > 0) * scale == pytest.approx(256e6)
    assert 2 * 8 * ring_bytes(8, size) == pytest.approx(448e6)
    assert ring_bytes(8, size) == pytest.approx(28e6)
    assert server_bytes(8, size) == pytest.approx(112e6)
    weak = plan_job(clos(changes=both(1, 2, 0.25)), workers())
    carried = [weak.loads()[leaf(3), s] * size / weak.rate for s in range(1, 5)]
    assert carried == pytest.approx([1.231e6, 4.923e6, 4.923e6, 4.923e6], rel=1e-3)
    assert size / (weak.rate * 100e6 / 8) == pytest.approx(0.394, abs=5e-4)


def test_workers_of_one_leaf_sum_there():
    plan = plan_job(clos(), SummingJob("rack", {1: leaf(1), 2: leaf(1)}, nic=10.0))
    assert [rated.tree.root for rated in plan.trees] == [leaf(1)]
    assert plan.rate == pytest.approx(10.0)


def test_no_tree_reaches_a_leaf_without_links():
    changes = {k: v for n in range(1, 5) for k, v in both(n, 2, 0.0).items()}
    assert plan_job(clos(changes=changes), workers()).trees == ()
    assert best_stars_and_relays(clos(changes=changes), workers()).trees == ()
    assert least_cut(clos(changes=changes), workers()) == 0


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_the_flow_is_that_of_networkx(seed):
    import networkx as nx

    rng = random.Random(seed)
    links = {
        (a, b): rng.choice((0.0, 1.0, 2.5, 4.0))
        for a in range(6)
        for b in range(6)
        if a != b and rng.random() < 0.5
    }
    graph = nx.DiGraph()
    graph.add_nodes_from(range(6))
    graph.add_edges_from((a, b, {"capacity": c}) for (a, b), c in links.items())
    assert max_flow(links, 0, 5) == pytest.approx(nx.maximum_flow_value(graph, 0, 5))
    assert max_flow(links, 0, 5, enough=1.0) <= 1.0


def test_the_work_of_a_plan_grows_as_the_number_of_links():
    """8 times as many links; with each router as a possible root it was 30 times as much work."""

    def calls(spines: int, leaves: int) -> int:
        network, job = clos(spines, leaves), workers(leaves)
        with counting_calls() as counted:
            assert plan_job(network, job).rate == spines
        return counted.count

    assert calls(32, 256) < 12 * calls(16, 64)
