"""Flooding reduction: copies that other routers send too are deferred, and none is lost."""

import random

import pytest

from fared.protocols.igp.reduction import Reduction, ReductionSettings
from tests.igp.clos import Clos
from tests.igp.protocols import Protocol

DELAY = 0.2
LEAF = ReductionSettings(Reduction.LEAF, DELAY)
WIRE = 0.01
"""More than all wires of a path together take."""


def clos(protocol: Protocol, spines: int, leaves: int, seed: int = 1, *, waiting=None) -> Clos:
    """The routers that are ``waiting``, by default all leaves, have the option."""
    waiting = range(101, 101 + leaves) if waiting is None else waiting
    options = {number: {"reduction": LEAF} for number in waiting}
    return Clos(protocol, spines, leaves, seed, options=lambda number: options.get(number, {}))


def deferred_sent(fabric: Clos) -> int:
    """How many deferred copies leaves have sent in the end."""
    nodes = (node for number, node in fabric.net.nodes.items() if number > 100)
    return sum(node.engine.counters.lsdb.get("deferred-sent", 0) for node in nodes)


def known_after(fabric: Clos, every: float = 0.004) -> float:
    """Seconds until all routers have what has just changed."""
    at = fabric.net.now
    fabric.net.until(fabric.net.in_sync, every=every)
    return fabric.net.now - at


def test_what_a_leaf_receives_from_every_spine_it_floods_to_none(protocol: Protocol):
    """What a leaf originates crosses each link once."""
    fabric = clos(protocol, 4, 8)
    waited, before = deferred_sent(fabric), len(fabric.net.trace)
    fabric.change(101)
    fabric.net.run(3)
    assert fabric.net.in_sync()
    assert len(fabric.senders(before)) == 4 * 8
    assert deferred_sent(fabric) == waited
    assert protocol.acknowledged(fabric.net)


def test_one_leaf_floods_what_a_spine_originates_to_the_other_spines(protocol: Protocol):
    """The leaf with the shortest delay floods it; the others do not."""
    fabric = clos(protocol, 4, 8)
    before = len(fabric.net.trace)
    fabric.change(1)
    assert 0.25 * DELAY < known_after(fabric) < DELAY + WIRE
    fabric.net.run(3)
    assert len(fabric.senders(before)) <= 4 * 8 + 6


@pytest.mark.parametrize("number", [1, 101])
def test_without_the_option_each_link_carries_one_copy_and_no_needed_copy_is_deferred(
    protocol: Protocol, number: int
):
    """Neighbors of the originator receive the change from it, and are sent no second copy."""
    fabric = clos(protocol, 3, 4, waiting=())
    before = len(fabric.net.trace)
    fabric.change(number)
    assert known_after(fabric, every=0.0005) < 4 * WIRE
    fabric.net.run(3)
    assert len(fabric.senders(before)) == 3 * 4


def test_a_spine_with_one_leaf_receives_changes_within_the_delay(protocol: Protocol):
    """Routers do not use the topology: after a second failure a copy is late, not lost."""
    fabric = clos(protocol, 2, 3)
    for cable in fabric.cables_of(2, 102) + fabric.cables_of(2, 103):
        fabric.net.set_up(cable, False)
    fabric.net.run(5)
    for _ in range(8):
        fabric.change(1)
        assert known_after(fabric) < DELAY + WIRE
        fabric.net.run(3)


def test_in_a_row_of_routers_each_waits_its_turn_and_the_delays_add_up(protocol: Protocol):
    net = protocol.network(3)
    for number in range(1, 6):
        net.add(number, reduction=LEAF)
    for number in range(1, 5):
        net.join(number, number + 1)
    net.until(lambda: protocol.ready(net))
    net.run(3)
    protocol.change(net, 1, 2)
    at = net.now
    net.until(net.in_sync, every=0.004)
    assert 3 * 0.25 * DELAY < net.now - at < 3 * DELAY + WIRE


def test_what_is_flushed_while_it_waits_reaches_every_router(protocol: Protocol):
    """It is deferred as any other change, and stays in the database meanwhile."""
    fabric = clos(protocol, 2, 3)
    fabric.change(1)
    for cable in fabric.cables_of(1):
        cable.delay = 0.0002
    fabric.net.run(0.02)
    protocol.flush(fabric.net, 1)
    fabric.net.run(5)
    for number in (2, 101, 102, 103):
        keys = fabric.net.database(number)
        assert protocol.identity(1) not in map(protocol.originator, keys)
    assert protocol.acknowledged(fabric.net)


def test_the_copy_of_a_neighbor_ends_the_wait_and_is_acknowledged(protocol: Protocol):
    fabric = clos(protocol, 2, 2)
    net = fabric.net
    waited, before = deferred_sent(fabric), len(net.trace)
    fabric.change(101)
    net.run(protocol.longest_wait)
    acknowledged = sum(
        len(protocol.acknowledges(output.payload))
        for _, node, output in net.trace[before:]
        if node == 102
    )
    assert acknowledged == 2 * protocol.advertisements  # from two spines
    assert protocol.acknowledged(net)
    assert deferred_sent(fabric) == waited
    assert not any(node.engine.counters.lsdb["retransmitted"] for node in net.nodes.values())


def test_routers_without_and_with_the_option_and_spines_that_wait_agree(protocol: Protocol):
    for waiting in ((101,), (1, 2), (1, 2, 101, 102, 103)):
        fabric = clos(protocol, 2, 3, waiting=waiting)
        for number in fabric.net.nodes:
            fabric.change(number)
        fabric.net.run(3)
        assert fabric.net.in_sync()


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.soak) for s in range(2, 40))]
)
def test_after_random_failures_all_databases_are_equal(protocol: Protocol, seed: int):
    """Random failures on lossy links: flooding is as reliable as without the option."""
    rng = random.Random(seed)
    waiting = rng.sample([1, 2, 3, 101, 102, 103, 104], rng.randrange(1, 8))
    fabric = clos(protocol, 3, 4, seed, waiting=waiting)
    fabric.storm(rng, patience=30)
    assert fabric.net.in_sync()
    quiet = len(fabric.net.trace)
    fabric.net.run(5)
    assert not fabric.senders(quiet)


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(s, marks=pytest.mark.soak) for s in range(4, 60))]
)
def test_in_a_damaged_fabric_a_change_is_known_within_the_delay_for_each_router_that_waits(
    protocol: Protocol, seed: int
):
    """With any failures that leave the fabric connected, the bound holds for every change."""
    rng = random.Random(seed)
    fabric = clos(protocol, 3, 4, seed)
    for cable in rng.sample(fabric.net.cables, 4):
        fabric.net.set_up(cable, False)
    fabric.net.run(8)
    if not fabric.net.in_sync():
        return  # cut in two
    for _ in range(6):
        number = rng.choice(fabric.connected())
        fabric.change(number)
        assert known_after(fabric) < 4 * (DELAY + WIRE)  # no shortest path crosses more leaves
        fabric.net.run(3)
