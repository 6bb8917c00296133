"""Flood suppression: a neighbor that receives an LSP from its originator is sent no second copy."""

from __future__ import annotations

import itertools
import random

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted, parse_prefix
from fared.protocols.isis.ids import Level, lsp_id
from fared.protocols.isis.lsdb import Lsdb, StoredLsp
from fared.protocols.isis.pdu.model import Lsp, PduType
from fared.protocols.isis.pdu.tlvs import (
    Hostname,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    Tlv,
)
from fared.protocols.isis.update.suppression import SUPPRESSION, covered
from tests.isis.net import Network

SPINES, LEAVES = range(1, 5), range(11, 19)
LINKS = len(SPINES) * len(LEAVES)
LSP = PduType.L2_LSP
WIRE = 0.015
"""Seconds: more than the delay of all wires of a path."""


@pytest.fixture(scope="module")
def clos() -> Network:
    """4 spines, 8 leaves, wires of different delays; each test restores it."""
    net = Network()
    dice = random.Random(3)
    for number in (*SPINES, *LEAVES):
        net.add(number)
    for leaf, spine in itertools.product(LEAVES, SPINES):
        net.join(leaf, spine, delay=dice.uniform(0.0002, 0.005))
    net.until(lambda: net.all_up() and net.in_sync(), 60.0)
    net.run(3)
    return net


def cable(net: Network, *ends: int):
    return next(c for c in net.cables if {node for node, _ in c.ends} == set(ends))


def learns(net: Network, number: int, of: int) -> float:
    """Seconds until a router holds the present LSP of another router."""
    start, identifier = net.now, lsp_id(of)
    net.run(0.0001)
    wanted = net.database(of)[identifier]
    net.until(lambda: net.database(number)[identifier] == wanted, 2.0, every=0.001)
    return net.now - start


@pytest.mark.parametrize("originator", [LEAVES[0], SPINES[0]])
def test_each_link_carries_one_copy_of_what_a_router_originates(clos: Network, originator: int):
    """Without suppression 50 and more cross these 32 links."""
    before = clos.sent[LSP]
    clos.change(originator, 2, metric=20)
    clos.run(3)
    assert clos.in_sync()
    assert clos.sent[LSP] - before == LINKS


def test_where_the_originators_own_copy_is_lost_ours_is_late_by_a_moment(clos: Network):
    """No router has detected the failed link yet."""
    dead = cable(clos, 1, 11)
    dead.cut = True
    clos.change(11, 2, metric=30)
    assert learns(clos, 1, 11) < SUPPRESSION.delay + WIRE
    dead.cut = False
    clos.run(10)
    assert clos.in_sync()
    assert clos.all_up()


def test_of_a_lost_link_everybody_learns_at_once_and_few_copies_cross(clos: Network):
    """One LSP of either end suffices, since SPF requires links in both directions.

    A few deferred copies may be sent. Without suppression 85 and more are.

    """
    lost = cable(clos, 2, 12)
    before, start = clos.sent[LSP], clos.now

    def knows(number: int) -> bool:
        listed = [
            {
                n.neighbor >> 8
                for tlv in lsp.tlvs
                if isinstance(tlv, IsReachability)
                for n in tlv.neighbors
            }
            for lsp in (clos.lsp(number, 2), clos.lsp(number, 12))
        ]
        return 12 not in listed[0] or 2 not in listed[1]

    clos.set_up(lost, up=False)
    clos.until(lambda: all(map(knows, (*SPINES, *LEAVES))), 2.0, every=0.001)
    assert clos.now - start < WIRE
    clos.run(3)
    assert clos.in_sync()
    assert clos.sent[LSP] - before < 2.5 * LINKS
    clos.set_up(lost, up=True)
    clos.until(lambda: clos.all_up() and clos.in_sync(), 10.0)
    clos.run(3)


# Covered neighbors


def link(neighbor: int, metric: int = 10, **more) -> IsNeighbor:
    return IsNeighbor(neighbor << 8, metric, **more)


def to(*neighbors: int) -> IsReachability:
    return IsReachability(tuple(map(link, neighbors)))


class Known:
    """A database of LSPs, by originator."""

    def __init__(self) -> None:
        self.database = Lsdb(Level.TWO)

    def put(self, system: int, *tlvs: Tlv, fragment: int = 0, lifetime: int = 1200) -> frozenset:
        """Store another instance of an LSP; return the covered systems."""
        identifier = lsp_id(system, 0, fragment)
        old = self.database.get(identifier)
        lsp = Lsp(2, identifier, 1 if old is None else old.sequence_number + 1, lifetime, tlvs=tlvs)
        entry = StoredLsp(identifier, lsp.sequence_number, 1, 1e9, b"", lsp, purged=not lifetime)
        self.database.put(entry)
        return covered(self.database, old, entry)


def test_the_neighbors_in_all_fragments_of_the_originator_are_covered():
    known = Known()
    known.put(1, to(2, 3))
    known.put(1, to(4), fragment=1)
    known.put(5, to(6))
    assert known.put(1, to(2, 3), Hostname("one")) == {2, 3, 4}


def test_a_neighbor_that_is_new_to_the_originator_is_not():
    """It may still await CSNPs, and a restored link must be used soon."""
    known = Known()
    assert known.put(1, to(2)) == set()
    assert known.put(1, to(2, 3)) == {2}
    assert known.put(1, to(2, 3), Hostname("one")) == {2, 3}


def test_a_purge_and_what_follows_it_are_flooded_to_all():
    known = Known()
    known.put(1, to(2))
    assert known.put(1, lifetime=0) == set()
    assert known.put(1, to(2)) == set()


def test_neighbors_of_the_far_end_of_a_lost_link_are_covered_too():
    """The far end floods the loss as well, and that of the prefix of the link."""
    known = Known()
    numbered = link(3, local_addresses=(parse_dotted("10.128.0.0"),))
    subnet = IpReach(parse_prefix("10.128.0.0/31"), 10)
    known.put(3, to(1, 7, 8))
    known.put(1, IsReachability((link(2), numbered)), IpReachability(4, (subnet,)))
    assert known.put(1, to(2)) == {2, 1, 7, 8}


def test_of_several_lost_links_those_are_covered_that_are_neighbors_of_all_far_ends():
    known = Known()
    known.put(3, to(1, 7, 8))
    known.put(4, to(1, 8, 9))
    known.put(1, to(2, 3, 4))
    assert known.put(1, to(2)) == {2, 1, 8}


@pytest.mark.parametrize(
    "more",
    [
        (Hostname("another"),),
        (IpReachability(4, (IpReach(parse_prefix("10.1.0.0/24"), 10),)),),
        (IsReachability((link(9, 77),)),),
    ],
    ids=["hostname", "prefix", "metric"],
)
def test_a_loss_beside_other_news_is_no_loss_that_the_far_end_floods(more: tuple[Tlv, ...]):
    known = Known()
    known.put(3, to(1, 7))
    known.put(1, to(2, 3))
    assert known.put(1, to(2), *more) == {2}


def test_a_lost_prefix_of_hosts_is_news_of_its_own():
    known = Known()
    hosts = IpReachability(4, (IpReach(parse_prefix("10.1.0.0/24"), 10),))
    known.put(3, to(1, 7))
    known.put(1, to(2, 3), hosts)
    assert known.put(1, to(2)) == {2}


def test_lans_cover_nobody():
    known = Known()
    lan = replace(link(3), neighbor=3 << 8 | 1)
    known.put(3, to(1, 7))
    known.put(1, IsReachability((link(2), lan)))
    assert known.put(1, to(2)) == {2}
