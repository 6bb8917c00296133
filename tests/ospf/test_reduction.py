"""Flooding reduction: copies that other routers send too are deferred, and none is lost."""

import random

import pytest
from msgspec.structs import replace

from fared.protocols.igp.reduction import Reduction, ReductionSettings
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.packets import LsAck, LsUpdate
from tests.ospf.harness import Network, router_id

DELAY = 0.2
LEAF = ReductionSettings(Reduction.LEAF, DELAY)
WIRE = 0.01
"""More than all wires of a path together take."""


def clos(spines: int, leaves: int, seed: int = 1, *, waiting=None, loss: float = 0.0) -> Network:
    """Spines 1.., leaves 101.., each link with its own delay; ``waiting`` have the option."""
    net = Network(seed)
    tops, bottoms = range(1, spines + 1), range(101, 101 + leaves)
    waiting = bottoms if waiting is None else waiting
    for number in (*tops, *bottoms):
        net.add(number, **({"reduction": LEAF} if number in waiting else {}))
    for bottom in bottoms:
        for top in tops:
            net.join(bottom, top, delay=net.rng.uniform(0.0002, 0.002), loss=loss)
    net.until(lambda: net.all_full() and net.in_sync(), every=0.05)
    net.run(3)
    return net


def change(net: Network, number: int, cost: int, ifindex: int = 2) -> None:
    """Another cost of one link: the router floods two LSAs."""
    link, settings = net.nodes[number].links[ifindex]
    net.link(number, link, replace(settings, cost=cost))


def sent(net: Network, since: int) -> list[tuple[int, object]]:
    return [(node, decode_packet(p.payload).body) for _, node, p in net.trace[since:]]


def updates(net: Network, since: int) -> int:
    return sum(isinstance(body, LsUpdate) for _, body in sent(net, since))


def counted(net: Network, number: int, what: str) -> int:
    return dict(net.nodes[number].engine.counters.lsdb).get(what, 0)


def test_an_lsa_that_a_leaf_receives_from_every_spine_is_flooded_to_none():
    """A leaf's LSAs cross each link once."""
    net = clos(3, 4)
    waited = sum(counted(net, leaf, "deferred-sent") for leaf in range(101, 105))
    before = len(net.trace)
    change(net, 101, 55)
    net.run(3)
    assert net.in_sync()
    assert updates(net, before) == 3 * 4
    assert sum(counted(net, leaf, "deferred-sent") for leaf in range(101, 105)) == waited


def test_one_leaf_floods_the_lsas_of_a_spine_to_the_other_spines():
    """The leaf with the shortest delay floods them; the others do not."""
    net = clos(3, 4)
    before = len(net.trace)
    change(net, 1, 55)
    at = net.now
    net.until(net.in_sync, every=0.004)
    assert 0.25 * DELAY < net.now - at < DELAY + WIRE
    net.run(3)
    assert updates(net, before) <= 3 * 4 + 4


@pytest.mark.parametrize("number", [1, 101])
def test_without_the_option_each_link_carries_one_copy_and_no_needed_copy_is_deferred(number: int):
    """Neighbors of the originator receive the LSA from it, and are sent no second copy."""
    net = clos(3, 4, waiting=())
    before, at = len(net.trace), net.now
    change(net, number, 55)
    net.until(net.in_sync, every=0.0005)
    assert net.now - at < 4 * WIRE
    net.run(3)
    assert updates(net, before) == 3 * 4


def test_a_spine_with_one_leaf_receives_lsas_within_the_delay():
    """Routers do not use the topology: after a second failure the LSA is late, not lost."""
    net = clos(2, 3)
    for cable in net.cables:
        if {n for n, _ in cable.ends} in ({2, 102}, {2, 103}):
            net.set_up(cable, False)
    net.run(5)
    for cost in range(30, 34):
        change(net, 1, cost)
        at = net.now
        net.until(net.in_sync, every=0.004)
        assert net.now - at < DELAY + WIRE
        net.run(3)


def test_in_a_row_of_routers_each_waits_its_turn_and_the_delays_add_up():
    net = Network(3)
    for number in range(1, 6):
        net.add(number, reduction=LEAF)
    for number in range(1, 5):
        net.join(number, number + 1)
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(3)
    change(net, 1, 44)
    at = net.now
    net.until(net.in_sync, every=0.004)
    assert 3 * 0.25 * DELAY < net.now - at < 3 * DELAY + WIRE


def test_an_lsa_flushed_while_deferred_reaches_every_router():
    """An LSA at MaxAge is deferred as any other, and stays in the database meanwhile."""
    net = clos(2, 3)
    change(net, 1, 60)
    for cable in net.cables:
        if 1 in {n for n, _ in cable.ends}:
            cable.delay = 0.0002
    victim = net.nodes[1].engine
    net.run(0.02)
    victim._self_lsas.flush_all()
    net._drain(net.nodes[1])
    net.run(5)
    for number in (2, 101, 102, 103):
        keys = net.database(number)
        assert not [key for key in keys if key.advertising_router == router_id(1)]


def test_the_copy_of_a_neighbor_ends_the_wait_and_is_acknowledged():
    net = clos(2, 2)
    waited = counted(net, 102, "deferred-sent")
    before = len(net.trace)
    change(net, 101, 71)
    net.run(1)
    acks = [body for node, body in sent(net, before) if node == 102 and isinstance(body, LsAck)]
    assert sum(len(body.lsa_headers) for body in acks) == 4  # two LSAs from two spines
    assert all(n.retransmissions == 0 for n in net.nodes[102].engine.snapshot(net.now).neighbors)
    assert counted(net, 102, "deferred-sent") == waited
    assert sum(counted(net, n, "retransmitted") for n in net.nodes) == 0


def test_routers_without_and_with_the_option_and_spines_that_wait_agree():
    for waiting in ((101,), (1, 2), (1, 2, 101, 102, 103)):
        net = clos(2, 3, waiting=waiting)
        for number in net.nodes:
            change(net, number, 20 + number % 50)
        net.run(3)
        assert net.in_sync()


def _storm(net: Network, rng: random.Random, events: int) -> None:
    """Links fail and return, costs change, at random times; at most a third is down."""
    down = []
    for _ in range(events):
        kind = rng.random()
        if kind < 0.4 and len(down) < len(net.cables) // 3:
            cable = rng.choice([c for c in net.cables if not c.cut])
            down.append(cable)
            net.set_up(cable, False)
        elif kind < 0.7 and down:
            net.set_up(down.pop(rng.randrange(len(down))), True)
        else:
            number = rng.choice(sorted(net.nodes))
            ifindex = rng.choice([i for i in net.nodes[number].links if i > 1])
            change(net, number, rng.randrange(1, 60), ifindex)
        net.run(rng.choice((0.0, 0.01, 0.1, 0.5, 2.0)))
    for cable in down:
        net.set_up(cable, True)


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.soak) for s in range(2, 40))]
)
def test_after_random_failures_all_databases_are_equal(seed):
    """Random failures on lossy links: flooding is as reliable as without the option."""
    rng = random.Random(seed)
    net = clos(3, 4, seed, waiting=rng.sample([1, 2, 3, 101, 102, 103, 104], rng.randrange(1, 8)))
    for cable in net.cables:
        cable.loss = rng.choice((0.0, 0.0, 0.2))
    _storm(net, rng, 15)
    for cable in net.cables:
        cable.loss = 0.0
    net.until(lambda: net.all_full() and net.in_sync(), 30, every=0.25)
    net.run(10)
    assert net.in_sync()
    quiet = len(net.trace)
    net.run(5)
    assert updates(net, quiet) == 0


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.soak) for s in range(2, 40))]
)
def test_in_a_damaged_fabric_a_change_is_known_within_the_delay_for_each_router_that_waits(seed):
    """With any failures that leave the fabric connected, the bound holds for every change."""
    rng = random.Random(seed)
    net = clos(3, 4, seed)
    for cable in rng.sample(net.cables, 4):
        net.set_up(cable, False)
    net.run(8)
    if not net.in_sync():
        return  # cut in two
    for _ in range(4):
        number = rng.choice(sorted(net.nodes))
        up = [i for c in net.cables if not c.cut for n, i in c.ends if n == number]
        if not up:
            continue
        change(net, number, rng.randrange(60, 250), up[0])
        at = net.now
        net.until(net.in_sync, every=0.004)
        assert net.now - at < 4 * (DELAY + WIRE)  # no shortest path crosses more leaves
        net.run(3)
