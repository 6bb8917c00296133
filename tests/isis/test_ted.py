"""From LSPs to the TED: what each kind of entry becomes, for which family, and what is no news."""

from dataclasses import replace

import numpy as np
import pytest

from fared.core.ids import Prefix, parse_dotted, parse_prefix
from fared.core.links import InterfaceAddress
from fared.isis.events import LoadMeasured, TedUpdated
from fared.isis.ids import Level, LevelSet, lsp_id
from fared.isis.instance import Instance
from fared.isis.lsdb import StoredLsp
from fared.isis.pdu.model import (
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    Hostname,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    Lsp,
    MultiTopology,
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    ProtocolsSupported,
    Topology,
)
from fared.isis.settings import IsisSettings
from fared.isis.ted import TedBuilder
from fared.te.attributes import TeAttributes
from fared.ted.compare import Difference, difference
from fared.ted.database import Ted
from fared.ted.model import PathType
from tests.isis.net import (
    AREA,
    FAST,
    FE80,
    Network,
    loopback,
    loopback6,
    mac,
    node,
    pair,
    prefixes,
    system,
)

BOTH_PROTOCOLS = ProtocolsSupported((NLPID_IPV4, NLPID_IPV6))
A_PREFIX = parse_prefix("10.1.0.0/24")
OTHER_PREFIX = parse_prefix("10.2.0.0/24")
A_PREFIX6 = parse_prefix("2001:db8:1::/64")


class Builder:
    """A TED builder without an engine around it: LSPs in, blocks out."""

    def __init__(self, **settings) -> None:
        settings.setdefault("levels", LevelSet.BOTH)
        self.instance = Instance(IsisSettings(system(99), (AREA,), **settings), None)
        self.ted = TedBuilder(self.instance)
        self.last: dict = {}

    def feed(self, of: int, *tlvs, level=2, fragment=0, pseudonode=0, purged=False, **header):
        """Install an LSP and return the updates that follow."""
        lsp = Lsp(level, lsp_id(of, pseudonode, fragment), 1, 1200, tlvs=tlvs, **header)
        entry = StoredLsp(lsp.lsp_id, 1, 1, 9e9, b"", lsp, purged=purged)
        previous = self.instance.databases[Level(level)].put(entry)
        self.ted.lsp_changed(Level(level), entry, previous)
        return self.flush()

    def flush(self) -> list[TedUpdated]:
        self.ted.flush()
        said = [o for o in self.instance.take_outputs() if isinstance(o, TedUpdated)]
        self.last.update({(u.area, u.node, u.family): u for u in said})
        return said

    def block(self, of: int, level=2, family=4, pseudonode=0):
        update = self.last.get((level, node(of, pseudonode), family))
        return None if update is None else update.block


def link(to: int, metric: int = 10, **fields) -> IsNeighbor:
    return IsNeighbor(to << 8, metric, **fields)


def test_prefixes_that_an_lsp_had_before_are_not_read_again():
    """Where the TLV is the same object, as the codec has it of bytes that did not change."""
    builder, alone = Builder(), Builder()
    reached = IpReachability(4, (IpReach(A_PREFIX, 10),))
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2),)), reached)
    (before,) = builder.block(1).prefixes
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, 20),)), reached)
    alone.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, 20),)), reached)
    assert builder.block(1).prefixes[0] is before
    assert difference(builder.block(1), alone.block(1)) is Difference.NONE
    builder.feed(1, BOTH_PROTOCOLS, reached, IpReachability(4, (IpReach(OTHER_PREFIX, 5),)))
    assert [item.prefix for item in builder.block(1).prefixes] == [A_PREFIX, OTHER_PREFIX]


def test_one_fragment_becomes_one_block_a_family():
    """With the same arrays, since both families share a topology."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2), link(3, 20))))
    ipv4, ipv6 = builder.block(1), builder.block(1, family=6)
    assert ipv4.neighbors.tolist() == [node(2), node(3)]
    assert ipv4.metrics.tolist() == [10, 20]
    assert ipv6.neighbors is ipv4.neighbors
    assert ipv6.capacities is ipv4.capacities


def test_fragments_are_one_description():
    """In order of their numbers, whatever order they came in; prefixes once each."""
    builder = Builder()
    reach = IpReachability(4, (IpReach(A_PREFIX, 5),))
    builder.feed(1, IsReachability((link(3),)), reach, fragment=2)
    assert builder.block(1) is None  # ISO 10589 §7.2.5: without fragment 0 nothing counts
    builder.feed(1, BOTH_PROTOCOLS, Hostname("one"), IsReachability((link(2),)), reach)
    block = builder.block(1)
    assert block.neighbors.tolist() == [node(2), node(3)]
    assert prefixes(block) == {"10.1.0.0/24": (5, "LEVEL_2")}
    assert len(block.prefixes) == 1
    assert block.hostname == "one"
    builder.feed(1, purged=True)
    assert builder.block(1) is None


def test_a_family_that_a_router_does_not_speak_is_not_routed_through_it():
    """RFC 1195 §3.10: one topology, but no block for a family without its NLPID."""
    builder = Builder()
    builder.feed(1, ProtocolsSupported((NLPID_IPV4,)), IsReachability((link(2),)))
    assert builder.block(1) is not None
    assert builder.block(1, family=6) is None


def test_a_pseudonode_serves_both_families():
    """It says nothing of protocols, and costs and limits nothing."""
    builder = Builder()
    builder.feed(1, IsReachability((link(1, 0), link(2, 0))), pseudonode=5)
    for family in (4, 6):
        block = builder.block(1, family=family, pseudonode=5)
        assert block.network
        assert block.neighbors.tolist() == [node(1), node(2)]


def test_links_at_the_highest_metric_are_not_for_routing():
    """RFC 5305 §3: 2**24 - 1 says that a link is known and not to be used."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, 0xFFFFFF), link(3, 0xFFFFFE))))
    assert builder.block(1).neighbors.tolist() == [node(3)]


def test_prefixes_beyond_the_highest_metric_are_ignored():
    """RFC 5305 §4: above 0xFE000000."""
    builder = Builder()
    far = IpReach(parse_prefix("10.2.0.0/24"), 0xFE000001)
    near = IpReach(A_PREFIX, 0xFE000000)
    builder.feed(1, BOTH_PROTOCOLS, IpReachability(4, (far, near)))
    assert list(prefixes(builder.block(1))) == ["10.1.0.0/24"]


@pytest.mark.parametrize(
    ("level", "down", "kind"),
    [
        (1, False, PathType.LEVEL_1),
        (1, True, PathType.LEVEL_1_DOWN),
        (2, False, PathType.LEVEL_2),
        (2, True, PathType.LEVEL_2),
    ],
)
def test_the_down_bit_makes_another_kind_of_route(level, down, kind):
    """RFC 5302: in level 1 what was leaked comes last; in level 2 the bit says nothing."""
    builder = Builder()
    reach = IpReachability(6, (IpReach(A_PREFIX6, 5, down=down),))
    builder.feed(1, BOTH_PROTOCOLS, reach, level=level)
    (attached,) = builder.block(1, level, 6).prefixes
    assert attached.path_type is kind


def test_narrow_tlvs_are_read():
    """RFC 1195: metrics of six bits; what wide TLVs say of the same comes first."""
    builder = Builder()
    narrow = NarrowIsReachability((NarrowNeighbor(2 << 8, 7), NarrowNeighbor(3 << 8, 8)))
    internal = NarrowIpReachability((NarrowIpReach(A_PREFIX, 4),))
    other = parse_prefix("10.2.0.0/24")
    external = NarrowIpReachability((NarrowIpReach(other, 4, metric_external=True),), external=True)
    builder.feed(1, BOTH_PROTOCOLS, narrow, internal, external)
    block = builder.block(1)
    assert dict(zip(block.neighbors.tolist(), block.metrics.tolist(), strict=True)) == {
        node(2): 7,
        node(3): 8,
    }
    assert prefixes(block) == {"10.1.0.0/24": (4, "LEVEL_2"), "10.2.0.0/24": (68, "LEVEL_2")}
    wide = IsReachability((link(2, 100),)), IpReachability(4, (IpReach(A_PREFIX, 50),))
    builder.feed(1, *wide, fragment=1)
    block = builder.block(1)
    assert dict(zip(block.neighbors.tolist(), block.metrics.tolist(), strict=True)) == {
        node(2): 100,
        node(3): 8,
    }
    assert prefixes(block)["10.1.0.0/24"] == (50, "LEVEL_2")


def test_the_overload_bit_bars_transit():
    """Of fragment 0 only."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, overload=True)
    assert not builder.block(1).transit
    builder.feed(1, BOTH_PROTOCOLS)
    builder.feed(1, Hostname("x"), fragment=1, overload=True)
    assert builder.block(1).transit


def test_multi_topology_takes_ipv6_from_its_own_tlvs():
    """RFC 5120: TLVs 222 and 237 of MT 2, with an overload bit of their own."""
    builder = Builder(multi_topology=True)
    tlvs = (
        BOTH_PROTOCOLS,
        MultiTopology((Topology(0), Topology(2, overload=True))),
        IsReachability((link(2),)),
        IsReachability((link(3, 30),), 2),
        IpReachability(6, (IpReach(A_PREFIX6, 1),)),
        IpReachability(6, (IpReach(loopback6(1), 2),), 2),
    )
    builder.feed(1, *tlvs)
    assert builder.block(1).neighbors.tolist() == [node(2)]
    assert builder.block(1).transit
    ipv6 = builder.block(1, family=6)
    assert ipv6.neighbors.tolist() == [node(3)]
    assert not ipv6.transit
    assert list(prefixes(ipv6)) == ["2001:db8::1/128"]


def test_multi_topology_leaves_out_routers_that_are_not_in_it():
    """One that tells of no topologies is in topology 0 alone."""
    builder = Builder(multi_topology=True)
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2),)))
    assert builder.block(1) is not None
    assert builder.block(1, family=6) is None


def test_a_single_topology_ignores_those_of_others():
    """Links of MT 2 are not ours to use."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2),)), IsReachability((link(3),), 2))
    assert builder.block(1, family=6).neighbors.tolist() == [node(2)]


# Bandwidths and parallel links


def te(capacity: float, available: float | None = None) -> TeAttributes:
    return TeAttributes(max_bandwidth=capacity, available_bandwidth=available)


def test_a_changed_bandwidth_is_no_change_of_topology():
    """And nothing at all where the same is said again."""
    builder = Builder()
    first = builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, attributes=te(1e9)),)))
    assert [u.topology for u in first] == [True, True]
    second = builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, attributes=te(5e8)),)))
    assert [u.topology for u in second] == [False, False]
    assert [u.family for u in second] == [4, 6]
    assert builder.block(1).capacities.tolist() == [5e8]
    again = builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, attributes=te(5e8)),)))
    assert again == []
    assert second[0].cause == "lsp 0000.0000.0001.00-00 seq 0x00000001"


def test_a_changed_path_capacity_is_no_change_of_topology():
    """The experimental sub-TLV of a leaked prefix; absurd values are none."""
    builder = Builder()

    def told(capacity):
        return IpReachability(4, (IpReach(A_PREFIX, 5, capacity=capacity),))

    builder.feed(1, BOTH_PROTOCOLS, told(1e9))
    assert [u.topology for u in builder.feed(1, BOTH_PROTOCOLS, told(5e8))] == [False]
    assert builder.block(1).prefixes[0].capacity == 5e8
    builder.feed(1, BOTH_PROTOCOLS, told(float("nan")))
    assert builder.block(1).prefixes[0].capacity is None


def test_unknown_bandwidths_are_nan():
    """Somebody who floods no TE."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2),)))
    assert np.isnan(builder.block(1).capacities).all()
    assert np.isnan(builder.block(1).availables).all()


@pytest.mark.parametrize("numbered", [True, False])
def test_parallel_links_are_told_apart(numbered):
    """Router 2 floods no TE: the graph takes the bandwidths from router 1, link by link.

    By IPv4 addresses, all that FRR sends, or by link identifiers where there are no addresses.
    """
    builder = Builder()

    def ends(mine: int, theirs: int) -> dict:
        if numbered:
            return {"local_addresses": (mine,), "remote_addresses": (theirs,)}
        return {"local_id": mine, "remote_id": theirs}

    one = [link(2, attributes=te(c), **ends(10 + n, 30 - n)) for n, c in enumerate((1e9, 2e9, 3e9))]
    two = [link(1, **ends(30 - n, 10 + n)) for n in range(3)]
    two[1] = replace(two[1], metric=99)
    builder.feed(1, BOTH_PROTOCOLS, IsReachability(tuple(one)))
    builder.feed(2, BOTH_PROTOCOLS, IsReachability(tuple(two)))
    ted = Ted()
    for number in (1, 2):
        ted.put(builder.block(number))
    graph = ted.graph()
    back = graph.way(graph.index(node(2)), graph.index(node(1)))
    assert graph.capacity[back] == 4e9  # the two links at metric 10: 1 and 3 GB/s


def test_addresses_come_before_identifiers():
    """Where a router sends both, as fared does, FRR at the other end has addresses only."""
    builder = Builder()
    both = link(2, local_addresses=(5,), remote_addresses=(6,), local_id=7, remote_id=8)
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((both,)))
    assert builder.block(1).local_ids.tolist() == [5]
    assert builder.block(1).remote_ids.tolist() == [6]


def test_the_far_address_alone_tells_links_apart():
    """FRR without TE sends only the neighbor's address."""
    builder = Builder()
    entries = (link(2, remote_addresses=(6,)), link(2, remote_addresses=(8,)))
    builder.feed(1, BOTH_PROTOCOLS, IsReachability(entries))
    assert builder.block(1).local_ids.tolist() == [0, 0]
    assert builder.block(1).remote_ids.tolist() == [6, 8]


# Local links


def test_local_links_of_both_families():
    """IPv4 by the neighbor's address, IPv6 by its link-local one; ids as in our own block."""
    net = pair()
    net.settle()
    (ipv4,) = net.local_links(1)
    (ipv6,) = net.local_links(1, family=6)
    assert (ipv4.gateway, ipv4.family) == (parse_dotted("10.128.0.1"), 4)
    assert (ipv6.gateway, ipv6.family) == (FE80 | mac(2, 2), 6)
    assert not ipv4.onlink
    assert ipv4.local_id == ipv6.local_id == net.blocks(1)[node(1)].local_ids[0]
    assert (ipv4.metric, ipv4.bandwidth, ipv4.neighbor) == (10, 12.5e6, node(2))


def test_a_link_without_ipv4_addresses_carries_ipv4_over_ipv6():
    """So a fabric needs no link addressing at all."""
    net = pair(numbered=False)
    net.settle()
    (ipv4,) = net.local_links(1)
    assert (ipv4.gateway, ipv4.family, ipv4.onlink) == (FE80 | mac(2, 2), 6, False)
    assert ipv4.local_id == 2 == net.blocks(1)[node(1)].local_ids[0]
    assert prefixes(net.blocks(1)[node(2)]) == {"10.255.0.2/32": (0, "LEVEL_2")}


def test_a_borrowed_address_is_on_the_link_though_in_no_subnet_of_it():
    """Unnumbered links with the address of a loopback: the gateway is taken to be there."""
    net = pair(numbered=False)
    for number in (1, 2):
        borrowed = InterfaceAddress(4, loopback(number).network, 32)
        net.link(number, net.port(number, 2, (borrowed,)), FAST)
    net.settle()
    (ipv4,) = net.local_links(1)
    assert (ipv4.gateway, ipv4.family, ipv4.onlink) == (loopback(2).network, 4, True)


def test_parallel_links_have_ids_of_their_own():
    """Three links between two routers, numbered or not."""
    net = pair()
    net.join(1, 2, numbered=False)
    net.join(1, 2)
    net.settle()
    block = net.blocks(1)[node(1)]
    assert len(set(block.local_ids.tolist())) == 3
    assert {x.local_id for x in net.local_links(1)} == set(block.local_ids.tolist())
    far = net.blocks(1)[node(2)]
    assert set(far.remote_ids.tolist()) == set(block.local_ids.tolist())


def test_a_neighbor_without_ipv6_gives_no_link_for_it():
    """Its hellos say what it speaks."""
    net = Network()
    net.add(1)
    net.add(2, families=(4,))
    net.join(1, 2)
    net.settle()
    assert len(net.local_links(1)) == 1
    assert net.local_links(1, family=6) == ()
    assert node(2) not in net.blocks(1, family=6)


def test_load_is_no_change_of_local_links():
    """Only bandwidth floats move."""
    net = pair()
    net.settle()
    said = len(net.nodes[1].said(TedUpdated))
    net.input(1, LoadMeasured(2, 6e6))
    net.run(0.1)
    news = net.nodes[2].said(TedUpdated)[-1]
    assert not news.topology
    assert news.block.availables.tolist() == [6.5e6]
    assert all(not u.topology for u in net.nodes[1].said(TedUpdated)[said:])


# The ways to other areas


def test_other_areas_are_looked_for_over_two_way_links_only():
    """A router that nobody else confirms does not make us attached."""
    builder = Builder()
    builder.feed(99, AreaAddresses((AREA,)), IsReachability((link(1),)))
    builder.feed(1, AreaAddresses((b"\x49\x00\x07",)), IsReachability(()))
    assert not builder.ted.reaches_other_area()
    builder.feed(1, AreaAddresses((b"\x49\x00\x07",)), IsReachability((link(99),)))
    assert builder.ted.areas_stale
    assert builder.ted.reaches_other_area()
    assert not builder.ted.areas_stale


def test_a_default_route_is_not_taken_from_an_overloaded_router():
    """It is told not to be passed through."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, level=1, attached=True)
    assert list(prefixes(builder.block(1, 1))) == ["0.0.0.0/0"]
    builder.feed(1, BOTH_PROTOCOLS, level=1, attached=True, overload=True)
    assert list(prefixes(builder.block(1, 1))) == []
    builder.feed(1, BOTH_PROTOCOLS, level=1, attached=True)
    builder.ted.follow_attached(follow=False)
    builder.flush()
    assert list(prefixes(builder.block(1, 1))) == []


def test_a_node_of_which_nothing_is_left_is_gone_once():
    """One update a family, then silence."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS)
    gone = builder.feed(1, purged=True)
    assert [(u.family, u.block) for u in gone] == [(4, None), (6, None)]
    assert builder.feed(1, purged=True) == []


def test_withdrawing_takes_back_all_that_was_said():
    """For a router that starts anew under another name."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS)
    builder.feed(2, ProtocolsSupported((NLPID_IPV4,)))
    gone = builder.ted.withdraw_all("renamed")
    told = {(u.node, u.family) for u in gone if isinstance(u, TedUpdated)}
    assert told == {(node(1), 4), (node(1), 6), (node(2), 4)}


def test_attributes_of_prefixes_are_kept_for_leaking():
    """Found again by prefix; of several routers the first by LSP id; forgotten with them."""
    builder = Builder()
    for of, tag in ((2, 22), (1, 11)):
        reach = IpReachability(4, (IpReach(A_PREFIX, 5, tags=(tag,)),))
        builder.feed(of, BOTH_PROTOCOLS, reach, level=1)
    assert builder.ted.noted(Level.ONE, A_PREFIX).tags == (11,)
    assert builder.ted.take_noted() == [(Level.ONE, A_PREFIX)]
    builder.feed(1, BOTH_PROTOCOLS, level=1)
    assert builder.ted.noted(Level.ONE, A_PREFIX).tags == (22,)
    builder.feed(2, BOTH_PROTOCOLS, level=1)
    assert builder.ted.noted(Level.ONE, A_PREFIX) is None
    assert builder.ted.noted(Level.TWO, Prefix(4, 0, 0)) is None
