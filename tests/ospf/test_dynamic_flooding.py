"""Dynamic flooding (RFC 9667): LSAs cross few links, and reach every router all the same."""

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from fared.core.dynamic_flooding import CALM
from fared.core.igp import SettingsApplied
from fared.core.reduction import Reduction, ReductionSettings
from fared.ospf.packet.codec import decode_packet
from fared.ospf.packet.lsa import LsaKey
from fared.ospf.packet.packets import LsUpdate
from tests.ospf.harness import BACKBONE, Network, router_id

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
    net.until(lambda: net.all_full() and net.in_sync(), every=0.05)
    net.run(CALM + 2)
    return net


def state(net: Network, number: int):
    return net.nodes[number].engine._flooding.dynamic.area(BACKBONE)


def router_lsa(number: int) -> LsaKey:
    return LsaKey(1, router_id(number), router_id(number))


def cables_of(net: Network, *ends: int) -> list:
    """The cable between two routers, or all of one."""
    return [c for c in net.cables if set(ends) <= {number for number, _ in c.ends}]


def connected(net: Network) -> list[int]:
    """The routers with a live cable."""
    return sorted({number for cable in net.cables if not cable.cut for number, _ in cable.ends})


def synced(net: Network) -> bool:
    """Whether all routers with a live cable have the same LSAs."""
    first, *others = connected(net)
    return all(net.database(number) == net.database(first) for number in others)


def change(net: Network, number: int) -> None:
    """Another cost of one live link: the router floods two LSAs."""
    ends = [end for cable in net.cables if not cable.cut for end in cable.ends]
    ifindex = min(ifindex for node, ifindex in ends if node == number)
    link, settings = net.nodes[number].links[ifindex]
    net.link(number, link, replace(settings, cost=settings.cost % 200 + 7))


def copies(net: Network, since: int) -> Counter:
    """How often each router was sent each instance, by (router, LSA, sequence number)."""
    far = {}
    for cable in net.cables:
        if not cable.cut:
            a, b = cable.ends
            far[a], far[b] = b[0], a[0]
    found = Counter()
    for _, node, output in net.trace[since:]:
        to = far.get((node, output.ifindex))
        body = decode_packet(output.payload).body
        if to is not None and isinstance(body, LsUpdate):
            for lsa in body.lsas:
                found[to, lsa.header.key, lsa.header.ls_sequence_number] += 1
    return found


def most(found: Counter) -> int:
    return max(found.values(), default=0)


def flooded(net: Network, number: int) -> Counter:
    """The copies of a change of one router, which all others have within 20 ms."""
    before, at = len(net.trace), net.now
    change(net, number)
    net.until(lambda: synced(net), every=0.002)
    assert net.now - at < 0.02
    net.run(1)
    return copies(net, before)


def failed(net: Network, cables: list, within: float) -> Counter:
    """The copies of what a failure causes; all databases are equal within a time."""
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
    net.until(lambda: net.all_full() and net.in_sync(), every=0.05)
    net.run(CALM + 2)


@pytest.fixture(scope="module")
def fabric() -> Network:
    return clos(4, 6)


def test_no_router_is_sent_an_lsa_more_than_three_times(fabric: Network):
    for number in (1, 2, 4, 101, 102, 106):
        found = flooded(fabric, number)
        assert most(found) <= 3
        assert sum(found.values()) < 2 * 2 * len(fabric.nodes)  # of two LSAs


def test_nor_after_any_single_failure_and_databases_are_equal_at_once(fabric: Network):
    """One link, or one router: the rest of the topology still reaches every router."""
    single = [[cable] for cable in fabric.cables]
    single += [cables_of(fabric, number) for number in fabric.nodes]
    for cables in single:
        assert most(failed(fabric, cables, 0.15)) <= 3
        number = fabric.rng.choice(connected(fabric))
        assert most(flooded(fabric, number)) <= 3
        healed(fabric, cables)


def test_after_double_failures_all_databases_are_equal_within_half_a_second(fabric: Network):
    """Also where they part the topology: the new one compares what both parts have."""
    net, rng = fabric, random.Random(7)
    pairs = [rng.sample(net.cables, 2) for _ in range(12)]
    pairs += [cables_of(net, leaf, 1) + cables_of(net, leaf, 2) for leaf in (103, 106)]
    pairs += [cables_of(net, 1) + cables_of(net, 2), cables_of(net, 101) + cables_of(net, 102)]
    for cables in pairs:
        failed(net, cables, 0.5)
        assert most(flooded(net, fabric.rng.choice(connected(net)))) <= 3
        healed(net, cables)


def test_an_lsa_of_which_only_dead_routers_have_told_others_is_sent_over_the_new_topology():
    """Both parents of all leaves hang with an LSA of a leaf that no other router has."""
    net = clos(4, 6)
    for cable in cables_of(net, 1) + cables_of(net, 2):
        cable.loss = 1.0
    change(net, 104)
    net.run(20)
    assert all(net.database(n) == net.database(3) for n in net.nodes if n > 2)
    assert net.database(3)[router_lsa(104)] == net.database(104)[router_lsa(104)]


def test_neighbors_that_do_not_take_part_are_sent_everything():
    """Half of the leaves: the rest of the fabric is sparse."""
    without = (104, 105, 106)
    net = clos(3, 6, without=without)
    for number in (1, 3, 101, 104):
        before = len(net.trace)
        change(net, number)
        net.run(3)
        assert net.in_sync()
        found = copies(net, before)
        assert all(found[key] <= 3 for key in found if key[0] == router_id(101) & 0xFF)
    for number in without:
        assert state(net, number) is None
    assert state(net, 1).topology is not None
    assert not set(map(router_id, without)) & set(state(net, 1).topology.places)


def test_without_others_that_take_part_nothing_changes():
    net = clos(2, 3, without=(1, 2))
    before = len(net.trace)
    change(net, 101)
    net.run(3)
    plain = clos(2, 3, without=(1, 2, 101, 102, 103))
    since = len(plain.trace)
    change(plain, 101)
    plain.run(3)
    assert sum(copies(net, before).values()) == sum(copies(plain, since).values())


def test_a_reload_begins_and_ends_it(fabric: Network):
    net = fabric
    engine = net.nodes[106].engine
    settings = net.nodes[106].settings
    for reduction in (ReductionSettings(), DYNAMIC):
        net.input(106, SettingsApplied(replace(settings, reduction=reduction)))
        net.run(CALM + 3)
        assert net.in_sync()
        takes_part = router_id(106) in state(net, 1).topology.places
        assert takes_part == (reduction is DYNAMIC)
        assert (engine._flooding.dynamic.area(BACKBONE) is not None) == takes_part
        assert most(flooded(net, 101)) <= 4


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
    net.until(lambda: net.all_full() and net.in_sync(), 30, every=0.25)
    net.run(10)
    assert net.in_sync()
