"""Dynamic flooding (RFC 9667): LSAs and LSPs cross few links, and reach every router all the same.

CSNPs compare the ends of new links in IS-IS, acknowledgments in OSPF.
"""

import random

import pytest
from msgspec.structs import replace

from fared.protocols.igp.dynamic_flooding import CALM
from fared.protocols.igp.events import SettingsApplied
from fared.protocols.igp.reduction import ReductionSettings
from tests.igp.protocols import Protocol
from tests.igp.sparse_flooding import DYNAMIC, SparseFlooding, most

pytestmark = [pytest.mark.slow, pytest.mark.rfc("RFC 9667")]


@pytest.fixture(scope="module")
def fabric(protocol: Protocol) -> SparseFlooding:
    return SparseFlooding(protocol, 4, 6)


def test_no_router_is_sent_an_instance_more_than_three_times(fabric: SparseFlooding):
    for number in (1, 2, 3, 4, 101, 102, 105, 106):
        found = fabric.flooded(number)
        assert most(found) <= 3
        assert sum(found.values()) < 2 * fabric.protocol.advertisements * len(fabric.net.nodes)


def test_nor_after_any_single_failure_and_databases_are_equal_at_once(fabric: SparseFlooding):
    """One link, or one router: the rest of the topology still reaches every router."""
    for cables in fabric.single_failures():
        assert most(fabric.failed(cables, 0.15)) <= 3
        assert most(fabric.flooded(fabric.any_connected())) <= 3
        fabric.healed(cables)


@pytest.mark.soak
def test_after_double_failures_all_databases_are_equal_within_half_a_second(
    fabric: SparseFlooding,
):
    """Also where they part the topology: the new one compares what both parts have."""
    for cables in fabric.double_failures(12, 103, 105, 106):
        fabric.failed(cables, 0.5)
        assert most(fabric.flooded(fabric.any_connected())) <= 3
        fabric.healed(cables)


def test_what_only_dead_routers_have_told_others_is_sent_over_the_new_topology(
    protocol: Protocol,
):
    """Both parents of all leaves hang with an instance of a leaf that no other router has."""
    sparse = SparseFlooding(protocol, 4, 6)
    net = sparse.net
    for cable in sparse.cables_of(1) + sparse.cables_of(2):
        cable.loss = 1.0
    sparse.change(104)
    net.run(20)
    assert all(net.database(n) == net.database(3) for n in net.nodes if n > 2)
    parents = set(protocol.dynamic(net, 104).view(0).parents)
    assert parents == {protocol.identity(3), protocol.identity(4)}


@pytest.mark.parametrize("liars", [(1,), (1, 2), (101, 102), (1, 101), (2, 4)])
def test_routers_that_acknowledge_and_pass_nothing_on_hide_no_change(
    fabric: SparseFlooding, liars: tuple[int, ...]
):
    """Spines 1 and 2 are the parents of all leaves, leaves 101 and 102 those of all spines."""
    fabric.lied_to(*liars)


def test_neighbors_that_do_not_take_part_are_sent_everything(protocol: Protocol):
    """Half of the leaves: the rest of the fabric is sparse."""
    without = (104, 105, 106)
    sparse = SparseFlooding(protocol, 3, 6, without=without)
    net = sparse.net
    for number in (1, 3, 101, 104):
        before = len(net.trace)
        sparse.change(number)
        net.run(3)
        assert net.in_sync()
        found = sparse.copies(before)
        assert found
        assert all(found[key] <= 3 for key in found if key[0] == 101)
    for number in without:
        assert protocol.dynamic(net, number) is None
    places = protocol.dynamic(net, 1).topology.places
    assert not set(map(protocol.identity, without)) & set(places)


def test_without_others_that_take_part_nothing_changes(protocol: Protocol):
    totals = []
    for without in ((1, 2), (1, 2, 101, 102, 103)):
        sparse = SparseFlooding(protocol, 2, 3, without=without)
        before = len(sparse.net.trace)
        sparse.change(101)
        sparse.net.run(3)
        totals.append(sum(sparse.copies(before).values()))
    assert totals[0] == totals[1] > 0


def test_it_begins_after_a_refresh_of_what_routers_have_originated(protocol: Protocol):
    """An instance that is refreshed with the same contents tells the same links."""
    net = SparseFlooding(protocol, 2, 2, without=(1, 2, 101, 102)).net
    for number in net.nodes:
        protocol.refresh(net, number)
    net.run(3)
    for number, node in net.nodes.items():
        net.input(number, SettingsApplied(replace(node.settings, reduction=DYNAMIC)))
    net.run(CALM + 3)
    assert set(protocol.dynamic(net, 1).topology.places) == set(map(protocol.identity, net.nodes))


def test_a_reload_begins_and_ends_it(fabric: SparseFlooding):
    net, protocol = fabric.net, fabric.protocol
    settings = net.nodes[106].settings
    for reduction in (ReductionSettings(), DYNAMIC):
        net.input(106, SettingsApplied(replace(settings, reduction=reduction)))
        net.run(CALM + 3)
        assert net.in_sync()
        takes_part = protocol.identity(106) in protocol.dynamic(net, 1).topology.places
        assert takes_part == (reduction is DYNAMIC)
        assert (protocol.dynamic(net, 106) is not None) == takes_part
        assert most(fabric.flooded(101)) <= 4


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.soak) for s in range(2, 30))]
)
def test_after_random_failures_on_lossy_links_all_databases_are_equal(
    protocol: Protocol, seed: int
):
    rng = random.Random(seed)
    without = rng.sample([1, 2, 3, 101, 102, 103, 104], rng.randrange(3))
    sparse = SparseFlooding(protocol, 3, 4, seed, without=without)
    sparse.storm(rng, patience=30)
    assert sparse.net.in_sync()
