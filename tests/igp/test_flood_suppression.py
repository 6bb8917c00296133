"""Flood suppression: a neighbor that hears from the originator itself is sent no second copy.

Both ends of a lost link flood the loss: one of the two suffices, since SPF requires links in both
directions.
"""

import pytest
from msgspec.structs import replace

from tests.igp.clos import Clos
from tests.igp.protocols import Protocol

SUPPRESSION = 0.1
WIRE = 0.01
"""More than all wires of a path together take."""


def fails(fabric: Clos, *ends: int) -> None:
    """The link between two routers goes down, at both ends."""
    (cable,) = fabric.cables_of(*ends)
    fabric.net.set_up(cable, False)


def knows(fabric: Clos, number: int, *ends: int) -> bool:
    """Whether a router knows from either end that the link between two routers is lost."""
    a, b = ends
    lists = fabric.protocol.lists
    return not lists(fabric.net, number, a, b) or not lists(fabric.net, number, b, a)


def all_know(fabric: Clos, *ends: int) -> float:
    """Seconds until every router knows of a loss."""
    at = fabric.net.now
    fabric.net.until(lambda: all(knows(fabric, n, *ends) for n in fabric.net.nodes), every=0.0005)
    return fabric.net.now - at


@pytest.mark.parametrize("seed", range(4))
def test_every_router_learns_of_a_loss_before_any_refloods_it(protocol: Protocol, seed: int):
    fabric = Clos(protocol, 3, 5, seed)
    before = len(fabric.net.trace)
    fails(fabric, 1, 101)
    assert all_know(fabric, 1, 101) < 0.25 * SUPPRESSION
    assert set(fabric.senders(before)) <= {1, 101}
    fabric.net.run(3)
    assert fabric.net.in_sync()
    assert protocol.acknowledged(fabric.net)


def test_of_a_loss_few_copies_cross(protocol: Protocol):
    """The one of a spine to other spines, and that of a leaf to other leaves, are late.

    They are deferred anyway, and share packets. Without suppression 85 and more cross in IS-IS.
    """
    sent = []
    for seed in range(3):
        fabric = Clos(protocol, 4, 8, seed)
        before = len(fabric.net.trace)
        fails(fabric, 1, 101)
        fabric.net.run(0.25 * SUPPRESSION)
        assert len(fabric.senders(before)) == 10
        fabric.net.run(3)
        assert fabric.net.in_sync()
        sent.append(len(fabric.senders(before)))
    assert sum(sent) < 3 * protocol.copies_of_a_loss * 4 * 8


def test_if_only_one_end_detects_the_loss_the_other_learns_of_it_after_the_delay(
    protocol: Protocol,
):
    """A leaf loses its port; the spine's end still has carrier and floods nothing."""
    fabric = Clos(protocol, 3, 4)
    net = fabric.net
    (cable,) = fabric.cables_of(1, 101)
    ifindex = next(ifindex for number, ifindex in cable.ends if number == 101)
    link, settings = net.nodes[101].links[ifindex]
    at = net.now
    net.link(101, replace(link, up=False), settings)
    net.until(lambda: not protocol.lists(net, 1, 101, 1), every=0.0005)
    assert net.now - at < SUPPRESSION + WIRE
    net.run(3)
    assert not any(protocol.lists(net, number, 101, 1) for number in net.nodes)


@pytest.mark.parametrize("seed", range(4))
def test_several_simultaneous_failures_reach_every_router(protocol: Protocol, seed: int):
    """A spine that loses half of its leaves, and a leaf that loses another spine."""
    fabric = Clos(protocol, 3, 6, seed)
    for leaf in (101, 102, 103):
        fails(fabric, 1, leaf)
    fails(fabric, 2, 104)
    at = fabric.net.now
    fabric.net.until(fabric.net.in_sync, every=0.002)
    assert fabric.net.now - at < 4 * (SUPPRESSION + WIRE)


def test_a_router_not_adjacent_to_the_originator_receives_a_change_at_once(protocol: Protocol):
    fabric = Clos(protocol, 3, 5)
    before, at = len(fabric.net.trace), fabric.net.now
    fabric.change(101)
    fabric.net.until(fabric.net.in_sync, every=0.0005)
    assert fabric.net.now - at < 4 * WIRE
    assert set(fabric.senders(before)) == {101, 1, 2, 3}


@pytest.mark.parametrize("originator", [1, 101])
def test_what_is_lost_on_its_way_from_the_originator_arrives_from_others(
    protocol: Protocol, originator: int
):
    """The originator still lists the neighbor: the copies of others are sent after the delay."""
    fabric = Clos(protocol, 2, 3)
    (deaf,) = fabric.cables_of(1, 101)
    deaf.cut = True  # no router has detected the failure yet
    at = fabric.net.now
    ifindex = max(ifindex for number, ifindex in fabric.live_ends() if number == originator)
    protocol.change(fabric.net, originator, ifindex)
    fabric.net.until(fabric.net.in_sync, every=0.0005)
    assert fabric.net.now - at < SUPPRESSION + 4 * WIRE
    deaf.cut = False
    fabric.net.run(10)
    assert fabric.ready()
