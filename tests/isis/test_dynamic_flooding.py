"""Dynamic flooding (RFC 9667) over IS-IS, as in OSPF; CSNPs compare the ends of new links."""

import random
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from fared.protocols.igp.dynamic_flooding import ALGORITHM, CALM, LEADER_PRIORITY, OWN, Capability
from fared.protocols.igp.events import SettingsApplied
from fared.protocols.igp.reduction import ReductionSettings
from fared.protocols.isis.ids import Level
from fared.protocols.isis.pdu.codec import LSPS, decode_pdu, peek_type
from fared.protocols.isis.pdu.router_capability import read_capability, write_capability
from fared.protocols.isis.pdu.tlvs import UnknownTlv
from tests.isis.net import Network, system
from tests.sparse_flooding import DYNAMIC, SparseFlooding, most

pytestmark = pytest.mark.slow


class Sparse(SparseFlooding):
    """LSPs; another metric floods one of them."""

    floods = (18, 20)

    convergence = 0.03

    def ready(self) -> bool:
        return self.net.all_up() and self.net.in_sync()

    def change(self, number: int) -> None:
        ifindex = self.first_interface(number)
        metric = self.net.nodes[number].links[ifindex][1].metric
        self.net.change(number, ifindex, metric=metric % 200 + 7)

    def instances(self, payload: bytes) -> Iterator[tuple]:
        if peek_type(payload) in LSPS:
            lsp = decode_pdu(payload)
            yield lsp.lsp_id, lsp.sequence_number


def clos(spines: int, leaves: int, seed: int = 1, *, without=()) -> Sparse:
    sparse = Sparse(Network(seed))
    sparse.build(spines, leaves, without)
    return sparse


def state(net: Network, number: int):
    return net.nodes[number].engine._flooding.dynamic.level(Level.TWO)


@pytest.fixture(scope="module")
def fabric() -> Sparse:
    return clos(4, 6)


def test_no_router_is_sent_an_lsp_more_than_three_times(fabric: Sparse):
    for number in (1, 2, 3, 101, 102, 105):
        found = fabric.flooded(number)
        assert most(found) <= 3
        assert sum(found.values()) < 2 * len(fabric.net.nodes)


def test_nor_after_any_single_failure_and_databases_are_equal_at_once(fabric: Sparse):
    for cables in fabric.single_failures():
        assert most(fabric.failed(cables, 0.2)) <= 3
        assert most(fabric.flooded(fabric.any_connected())) <= 3
        fabric.healed(cables)


def test_after_double_failures_all_databases_are_equal_within_half_a_second(fabric: Sparse):
    for cables in fabric.double_failures(8, 103, 105):
        fabric.failed(cables, 0.5)
        assert most(fabric.flooded(fabric.any_connected())) <= 3
        fabric.healed(cables)


def test_an_lsp_of_which_only_dead_routers_have_told_others_is_sent_over_the_new_topology():
    """Both parents of all leaves hang with an LSP of a leaf that no other router has."""
    sparse = clos(4, 6)
    net = sparse.net
    for cable in sparse.cables_of(1) + sparse.cables_of(2):
        cable.loss = 1.0
    sparse.change(104)
    net.run(60)
    assert all(net.database(n) == net.database(3) for n in net.nodes if n > 2)
    assert set(state(net, 104).view(2).parents) == {system(3), system(4)}


@pytest.mark.parametrize("liars", [(1,), (1, 2), (101, 102), (1, 101), (2, 4)])
def test_routers_that_acknowledge_and_pass_nothing_on_hide_no_change(fabric: Sparse, liars):
    """Spines 1 and 2 are the parents of all leaves, leaves 101 and 102 those of all spines."""
    fabric.lied_to(*liars)


def test_neighbors_that_do_not_take_part_are_sent_everything():
    without = (104, 105, 106)
    sparse = clos(3, 6, without=without)
    net = sparse.net
    for number in (1, 3, 101, 104):
        sparse.change(number)
        net.run(3)
        assert net.in_sync()
    for number in without:
        assert state(net, number) is None
    assert not set(map(system, without)) & set(state(net, 1).topology.places)


def test_a_reload_begins_and_ends_it(fabric: Sparse):
    net = fabric.net
    settings = net.nodes[105].settings
    for reduction in (ReductionSettings(), DYNAMIC):
        net.input(105, SettingsApplied(replace(settings, reduction=reduction)))
        net.run(CALM + 5)
        assert net.in_sync()
        assert (system(105) in state(net, 1).topology.places) == (reduction is DYNAMIC)


def test_the_router_capability_tlv_is_that_of_rfc_9667():
    tlv = write_capability(0x0A000001, OWN)
    leader = bytes((27, 2, LEADER_PRIORITY, ALGORITHM))
    assert tlv == UnknownTlv(242, bytes((10, 0, 0, 1, 0)) + leader + bytes((28, 1, ALGORITHM)))
    assert read_capability((tlv,)) == OWN
    two = UnknownTlv(242, bytes(5) + bytes((28, 2, 1, 2)))
    assert read_capability((two,)) == Capability((1, 2))
    assert read_capability((UnknownTlv(242, bytes(5) + b"\x1b\x09"), UnknownTlv(1, b""))) is None


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.soak) for s in range(2, 30))]
)
def test_after_random_failures_on_lossy_links_all_databases_are_equal(seed: int):
    rng = random.Random(seed)
    sparse = clos(3, 4, seed, without=rng.sample([1, 2, 3, 101, 102, 103, 104], rng.randrange(3)))
    sparse.storm(rng, patience=60)
    assert sparse.net.in_sync()
