"""Dynamic flooding (RFC 9667) over IS-IS, as in OSPF; CSNPs compare the ends of new links."""

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from fared.core.dynamic_flooding import ALGORITHM, CALM, LEADER_PRIORITY, OWN, Capability
from fared.core.igp import SettingsApplied
from fared.core.reduction import Reduction, ReductionSettings
from fared.isis.ids import Level
from fared.isis.pdu.codec import LSPS, decode_pdu, peek_type
from fared.isis.pdu.router_capability import read_capability, write_capability
from fared.isis.pdu.tlvs import UnknownTlv
from tests.isis.net import Network, system

pytestmark = pytest.mark.slow

DYNAMIC = ReductionSettings(Reduction.DYNAMIC)


def clos(spines: int, leaves: int, seed: int = 1, *, without=()) -> Network:
    """Spines 1.., leaves 101.., each link with its own delay; ``without`` do not take part."""
    net = Network(seed)
    tops, bottoms = range(1, spines + 1), range(101, 101 + leaves)
    for number in (*tops, *bottoms):
        net.add(number, **({} if number in without else {"reduction": DYNAMIC}))
    for bottom in bottoms:
        for top in tops:
            net.join(bottom, top, delay=net.rng.uniform(0.0002, 0.002))
    net.until(lambda: net.all_up() and net.in_sync(), every=0.05)
    net.run(CALM + 2)
    return net


def state(net: Network, number: int):
    return net.nodes[number].engine._flooding.dynamic.level(Level.TWO)


def cables_of(net: Network, *ends: int) -> list:
    """The cable between two routers, or all of one."""
    return [c for c in net.cables if set(ends) <= {number for number, _ in c.ends}]


def connected(net: Network) -> list[int]:
    """The routers with a live cable."""
    return sorted({number for cable in net.cables if not cable.cut for number, _ in cable.ends})


def synced(net: Network) -> bool:
    """Whether all routers with a live cable have the same LSPs."""
    first, *others = connected(net)
    return all(net.database(number) == net.database(first) for number in others)


def change(net: Network, number: int) -> None:
    """Another metric of one live link."""
    ends = [end for cable in net.cables if not cable.cut for end in cable.ends]
    ifindex = min(ifindex for node, ifindex in ends if node == number)
    net.change(number, ifindex, metric=net.nodes[number].links[ifindex][1].metric % 200 + 7)


def copies(net: Network, since: int) -> Counter:
    """How often each router was sent each instance, by (router, LSP, sequence number)."""
    far = {}
    for cable in net.cables:
        if not cable.cut:
            a, b = cable.ends
            far[a], far[b] = b[0], a[0]
    found = Counter()
    for _, node, output in net.trace[since:]:
        to = far.get((node, output.ifindex))
        if to is not None and peek_type(output.payload) in LSPS:
            lsp = decode_pdu(output.payload)
            found[to, lsp.lsp_id, lsp.sequence_number] += 1
    return found


def most(found: Counter) -> int:
    return max(found.values(), default=0)


def flooded(net: Network, number: int) -> Counter:
    """The copies of a change of one router, which all others have within 30 ms."""
    before, at = len(net.trace), net.now
    change(net, number)
    net.run(0.001)
    net.until(lambda: synced(net), every=0.002)
    assert net.now - at < 0.03
    net.run(1)
    return copies(net, before)


def failed(net: Network, cables: list, within: float) -> Counter:
    before, at = len(net.trace), net.now
    for cable in cables:
        net.set_up(cable, False)
    net.until(lambda: synced(net), every=0.005)
    assert net.now - at < within
    net.run(1)
    return copies(net, before)


def healed(net: Network, cables: list) -> None:
    for cable in cables:
        net.set_up(cable, True)
    net.until(lambda: net.all_up() and net.in_sync(), every=0.05)
    net.run(CALM + 2)


@pytest.fixture(scope="module")
def fabric() -> Network:
    return clos(3, 5)


def test_no_router_is_sent_an_lsp_more_than_three_times(fabric: Network):
    for number in (1, 2, 3, 101, 102, 105):
        found = flooded(fabric, number)
        assert most(found) <= 3
        assert sum(found.values()) < 2 * len(fabric.nodes)


def test_nor_after_any_single_failure_and_databases_are_equal_at_once(fabric: Network):
    single = [[cable] for cable in fabric.cables]
    single += [cables_of(fabric, number) for number in fabric.nodes]
    for cables in single:
        assert most(failed(fabric, cables, 0.2)) <= 3
        assert most(flooded(fabric, fabric.rng.choice(connected(fabric)))) <= 3
        healed(fabric, cables)


def test_after_double_failures_all_databases_are_equal_within_half_a_second(fabric: Network):
    net, rng = fabric, random.Random(7)
    pairs = [rng.sample(net.cables, 2) for _ in range(8)]
    pairs += [cables_of(net, leaf, 1) + cables_of(net, leaf, 2) for leaf in (103, 105)]
    pairs += [cables_of(net, 1) + cables_of(net, 2), cables_of(net, 101) + cables_of(net, 102)]
    for cables in pairs:
        failed(net, cables, 0.5)
        assert most(flooded(net, rng.choice(connected(net)))) <= 3
        healed(net, cables)


def test_an_lsp_of_which_only_dead_routers_have_told_others_is_sent_over_the_new_topology():
    """Both parents of all leaves hang with an LSP of a leaf that no other router has."""
    net = clos(4, 6)
    for cable in cables_of(net, 1) + cables_of(net, 2):
        cable.loss = 1.0
    change(net, 104)
    net.run(60)
    assert all(net.database(n) == net.database(3) for n in net.nodes if n > 2)
    assert set(state(net, 104).view(2).parents) == {system(3), system(4)}


def test_neighbors_that_do_not_take_part_are_sent_everything():
    without = (104, 105, 106)
    net = clos(3, 6, without=without)
    for number in (1, 3, 101, 104):
        change(net, number)
        net.run(3)
        assert net.in_sync()
    for number in without:
        assert state(net, number) is None
    assert not set(map(system, without)) & set(state(net, 1).topology.places)


def test_a_reload_begins_and_ends_it(fabric: Network):
    net = fabric
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
    net = clos(3, 4, seed, without=rng.sample([1, 2, 3, 101, 102, 103, 104], rng.randrange(3)))
    for cable in net.cables:
        cable.loss = rng.choice((0.0, 0.0, 0.2))
    down = []
    for _ in range(20):
        if rng.random() < 0.4 and len(down) < 4:
            down.append(rng.choice([cable for cable in net.cables if not cable.cut]))
            net.set_up(down[-1], False)
        elif down and rng.random() < 0.5:
            net.set_up(down.pop(rng.randrange(len(down))), True)
        elif connected(net):
            change(net, rng.choice(connected(net)))
        net.run(rng.choice((0.0, 0.01, 0.1, 0.5, 2.0)))
    for cable in down:
        net.set_up(cable, True)
    for cable in net.cables:
        cable.loss = 0.0
    net.until(lambda: net.all_up() and net.in_sync(), 60, every=0.25)
    net.run(10)
    assert net.in_sync()
