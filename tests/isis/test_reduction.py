"""Flooding reduction over IS-IS: SRM is set at once, and the transmission deferred.

Routers here only flood; ``tests/igp/test_reduction.py`` has whole engines of both protocols.
"""

import random

import pytest

from fared.protocols.igp.reduction import Reduction, ReductionSettings
from fared.protocols.isis.pdu.model import PduType
from tests.isis.floodnet import TWO, Network, name

DELAY = 0.2
LEAF = ReductionSettings(Reduction.LEAF, DELAY)
LSP = PduType.L2_LSP


def clos(spines: int, leaves: int, seed: int = 1, *, waiting=None, loss: float = 0.0) -> Network:
    """Spines 1.., leaves 101.., wires with jitter; ``waiting`` have the option."""
    net = Network(seed)
    tops, bottoms = range(1, spines + 1), range(101, 101 + leaves)
    waiting = bottoms if waiting is None else waiting
    for number in (*tops, *bottoms):
        net.add(number, **({"reduction": LEAF} if number in waiting else {}))
    for bottom in bottoms:
        for top in tops:
            net.join(bottom, top, delay=0.0005, jitter=0.002, loss=loss)
    for number in (*tops, *bottoms):
        net.say(number, f"router {number}")
    net.run(10)
    assert net.agree()
    return net


def until_agreed(net: Network, deadline: float = 30.0) -> float:
    """Seconds until all databases are equal."""
    start = net.now
    while not net.agree():
        assert net.now - start < deadline
        net.run(0.005)
    return net.now - start


def test_without_the_option_many_copies_cross():
    counts = []
    for waiting in (None, ()):
        net = clos(4, 8, waiting=waiting)
        since = net.now
        net.say(101, "something else")
        net.run(3)
        counts.append(len(net.pdus(LSP, since=since)))
    assert counts[1] > 1.3 * counts[0]


def test_copies_that_cross_acknowledge_each_other():
    """A router that has sent an LSP and receives it neither expects nor sends an acknowledgment."""
    net = Network()
    net.add(1, 2, 3)
    for ends in ((1, 2), (1, 3), (2, 3)):
        net.join(*ends)
    net.run(5)
    since = net.now
    net.say(1, "to both, who tell each other")
    net.run(8)
    assert len(net.pdus(LSP, since=since)) == 4
    assert len(net.pdus(PduType.L2_PSNP, since=since)) == 2
    assert all(router.flags() == 0 for router in net.routers.values())


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(s, marks=pytest.mark.soak) for s in range(4, 60))]
)
def test_whatever_fails_all_databases_are_the_same_in_the_end(seed):
    """Links and routers fail on lossy wires during floods, with any set of deferring routers."""
    rng = random.Random(seed)
    net = clos(3, 4, seed, waiting=rng.sample([1, 2, 3, 101, 102, 103, 104], rng.randrange(1, 8)))
    for cable in net.cables:
        cable.loss = rng.choice((0.0, 0.0, 0.2))
    for event in range(40):
        kind = rng.random()
        if kind < 0.3:
            cable = rng.choice(net.cables)
            (net.up if cable.cut else net.down)(cable)
        elif kind < 0.35:
            number = rng.choice(sorted(net.routers))
            net.restart(number, **rng.choice(({}, {"reduction": LEAF})))
            net.say(number, f"back {event}")
        elif kind < 0.45:
            number = rng.choice(sorted(net.routers))
            if name(number, 1) in net[number].texts:
                net.unsay(number, 1)
        else:
            net.say(rng.choice(sorted(net.routers)), f"event {event}", rng.randrange(2))
        net.run(rng.choice((0.0, 0.01, 0.1, 0.5, 2.0)))
    for cable in net.cables:
        cable.loss = 0.0
        if cable.cut:
            net.up(cable)
    until_agreed(net)
    net.run(70)
    assert net.agree()
    assert all(router.flags() == 0 for router in net.routers.values())
    assert all(
        not tx.shared.deferred
        for router in net.routers.values()
        for tx in router.lsp_transmitter.active(TWO)
    )
