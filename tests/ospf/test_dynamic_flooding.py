"""Dynamic flooding (RFC 9667): LSAs cross few links, and reach every router all the same."""

import random
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from fared.protocols.igp.dynamic_flooding import CALM
from fared.protocols.igp.events import SettingsApplied
from fared.protocols.igp.reduction import ReductionSettings
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.lsa import LsaKey
from fared.protocols.ospf.packet.packets import LsUpdate
from tests.ospf.harness import BACKBONE, Network, router_id
from tests.sparse_flooding import DYNAMIC, SparseFlooding, most

pytestmark = pytest.mark.slow


class Sparse(SparseFlooding):
    """LSAs; another cost floods two of them."""

    floods = (4,)

    def ready(self) -> bool:
        return self.net.all_full() and self.net.in_sync()

    def change(self, number: int) -> None:
        link, settings = self.net.nodes[number].links[self.first_interface(number)]
        self.net.link(number, link, replace(settings, cost=settings.cost % 200 + 7))

    def instances(self, payload: bytes) -> Iterator[tuple]:
        body = decode_packet(payload).body
        for lsa in body.lsas if isinstance(body, LsUpdate) else ():
            yield lsa.header.key, lsa.header.ls_sequence_number


def clos(spines: int, leaves: int, seed: int = 1, *, without=()) -> Sparse:
    sparse = Sparse(Network(seed))
    sparse.build(spines, leaves, without)
    return sparse


def state(net: Network, number: int):
    return net.nodes[number].engine._flooding.dynamic.area(BACKBONE)


def router_lsa(number: int) -> LsaKey:
    return LsaKey(1, router_id(number), router_id(number))


@pytest.fixture(scope="module")
def fabric() -> Sparse:
    return clos(4, 6)


def test_no_router_is_sent_an_lsa_more_than_three_times(fabric: Sparse):
    for number in (1, 2, 4, 101, 102, 106):
        found = fabric.flooded(number)
        assert most(found) <= 3
        assert sum(found.values()) < 2 * 2 * len(fabric.net.nodes)  # of two LSAs


def test_nor_after_any_single_failure_and_databases_are_equal_at_once(fabric: Sparse):
    """One link, or one router: the rest of the topology still reaches every router."""
    for cables in fabric.single_failures():
        assert most(fabric.failed(cables, 0.15)) <= 3
        assert most(fabric.flooded(fabric.any_connected())) <= 3
        fabric.healed(cables)


def test_after_double_failures_all_databases_are_equal_within_half_a_second(fabric: Sparse):
    """Also where they part the topology: the new one compares what both parts have."""
    for cables in fabric.double_failures(12, 103, 106):
        fabric.failed(cables, 0.5)
        assert most(fabric.flooded(fabric.any_connected())) <= 3
        fabric.healed(cables)


def test_an_lsa_of_which_only_dead_routers_have_told_others_is_sent_over_the_new_topology():
    """Both parents of all leaves hang with an LSA of a leaf that no other router has."""
    sparse = clos(4, 6)
    net = sparse.net
    for cable in sparse.cables_of(1) + sparse.cables_of(2):
        cable.loss = 1.0
    sparse.change(104)
    net.run(20)
    assert all(net.database(n) == net.database(3) for n in net.nodes if n > 2)
    assert net.database(3)[router_lsa(104)] == net.database(104)[router_lsa(104)]


@pytest.mark.parametrize("liars", [(1,), (1, 2), (101, 102), (1, 101), (2, 4)])
def test_routers_that_acknowledge_and_pass_nothing_on_hide_no_change(fabric: Sparse, liars):
    """Spines 1 and 2 are the parents of all leaves, leaves 101 and 102 those of all spines."""
    fabric.lied_to(*liars)


def test_neighbors_that_do_not_take_part_are_sent_everything():
    """Half of the leaves: the rest of the fabric is sparse."""
    without = (104, 105, 106)
    sparse = clos(3, 6, without=without)
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
        assert state(net, number) is None
    assert state(net, 1).topology is not None
    assert not set(map(router_id, without)) & set(state(net, 1).topology.places)


def test_without_others_that_take_part_nothing_changes():
    totals = []
    for without in ((1, 2), (1, 2, 101, 102, 103)):
        sparse = clos(2, 3, without=without)
        before = len(sparse.net.trace)
        sparse.change(101)
        sparse.net.run(3)
        totals.append(sum(sparse.copies(before).values()))
    assert totals[0] == totals[1] > 0


def test_it_begins_after_a_refresh_of_the_own_lsas():
    """An LSA that is refreshed with the same contents tells the same links."""
    sparse = clos(2, 2, without=(1, 2, 101, 102))
    net = sparse.net
    for node in net.nodes.values():
        node.engine._originator.everything_changed(force=True)
        net._drain(node)
    net.run(3)
    for number, node in net.nodes.items():
        net.input(number, SettingsApplied(replace(node.settings, reduction=DYNAMIC)))
    net.run(CALM + 3)
    assert set(state(net, 1).topology.places) == {router_id(number) for number in net.nodes}


def test_a_reload_begins_and_ends_it(fabric: Sparse):
    net = fabric.net
    engine = net.nodes[106].engine
    settings = net.nodes[106].settings
    for reduction in (ReductionSettings(), DYNAMIC):
        net.input(106, SettingsApplied(replace(settings, reduction=reduction)))
        net.run(CALM + 3)
        assert net.in_sync()
        takes_part = router_id(106) in state(net, 1).topology.places
        assert takes_part == (reduction is DYNAMIC)
        assert (engine._flooding.dynamic.area(BACKBONE) is not None) == takes_part
        assert most(fabric.flooded(101)) <= 4


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.soak) for s in range(2, 30))]
)
def test_after_random_failures_on_lossy_links_all_databases_are_equal(seed: int):
    rng = random.Random(seed)
    sparse = clos(3, 4, seed, without=rng.sample([1, 2, 3, 101, 102, 103, 104], rng.randrange(3)))
    sparse.storm(rng, patience=30)
    assert sparse.net.in_sync()
