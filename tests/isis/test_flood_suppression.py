"""Which neighbors receive an LSP from its originator, and are sent no second copy at once.

``tests/igp/test_flood_suppression.py`` has fabrics that flood so.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted, parse_prefix
from fared.protocols.isis.ids import Level, lsp_id
from fared.protocols.isis.lsdb import Lsdb, StoredLsp
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    Hostname,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    Tlv,
)
from fared.protocols.isis.update.suppression import covered


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
