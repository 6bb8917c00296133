"""From LSPs to the TED: the result of each kind of entry, by family, and what causes no output."""

import random

import numpy as np
import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix, parse_dotted, parse_prefix
from fared.core.links import InterfaceAddress
from fared.paths.spf.plan import build_plan
from fared.paths.spf.search import UNREACHABLE
from fared.paths.te.attributes import TeAttributes
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.compare import same_block
from fared.paths.ted.database import Ted
from fared.paths.ted.events import PrefixesUpdated, TedUpdated
from fared.paths.ted.model import PathType
from fared.protocols.igp.events import LoadsMeasured
from fared.protocols.isis.ids import Level, LevelSet, lsp_id
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    FLAG_EXTERNAL,
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    Hostname,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    MultiTopology,
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    ProtocolsSupported,
    Topology,
)
from fared.protocols.isis.settings import LAST_RESORT, IsisSettings
from fared.protocols.isis.ted.builder import TedBuilder
from fared.protocols.isis.update.suppression import adjacent
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
from tests.ted.kinds import described, kinds, moves_no_path
from tests.work import counting_calls

BOTH_PROTOCOLS = ProtocolsSupported((NLPID_IPV4, NLPID_IPV6))
A_PREFIX = parse_prefix("10.1.0.0/24")
OTHER_PREFIX = parse_prefix("10.2.0.0/24")
A_PREFIX6 = parse_prefix("2001:db8:1::/64")


class Builder:
    """A TED builder without an engine: LSPs in, blocks out."""

    def __init__(self, **settings) -> None:
        settings.setdefault("levels", LevelSet.BOTH)
        self.instance = Instance(IsisSettings(system(99), (AREA,), **settings), None)
        self.ted = TedBuilder(self.instance)
        self.said: list[TedUpdated | PrefixesUpdated] = []

    def feed(self, of: int, *tlvs, level=2, fragment=0, pseudonode=0, purged=False, **header):
        """Install an LSP and return the updates that follow."""
        lsp = Lsp(level, lsp_id(of, pseudonode, fragment), 1, 1200, tlvs=tlvs, **header)
        entry = StoredLsp(lsp.lsp_id, 1, 1, 9e9, b"", lsp, purged=purged)
        previous = self.instance.databases[Level(level)].put(entry)
        self.ted.lsp_changed(Level(level), entry, previous)
        return self.flush()

    def flush(self) -> list[TedUpdated | PrefixesUpdated]:
        self.ted.flush()
        outputs = self.instance.process.take_outputs()
        said = [o for o in outputs if isinstance(o, TedUpdated | PrefixesUpdated)]
        self.said += said
        return said

    def block(self, of: int, level=2, family=4, pseudonode=0):
        return described(self.said).get((level, node(of, pseudonode), family))


def link(to: int, metric: int = 10, **fields) -> IsNeighbor:
    return IsNeighbor(to << 8, metric, **fields)


def test_prefixes_that_an_lsp_had_before_are_not_read_again():
    """Unchanged TLVs are the same objects, as the codec returns them for known bytes."""
    builder, alone = Builder(), Builder()
    reached = IpReachability(4, (IpReach(A_PREFIX, 10),))
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2),)), reached)
    (before,) = builder.block(1).prefixes
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, 20),)), reached)
    alone.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, 20),)), reached)
    assert builder.block(1).prefixes[0] is before
    assert same_block(builder.block(1), alone.block(1))
    builder.feed(1, BOTH_PROTOCOLS, reached, IpReachability(4, (IpReach(OTHER_PREFIX, 5),)))
    assert [item.prefix for item in builder.block(1).prefixes] == [A_PREFIX, OTHER_PREFIX]


def test_routers_without_links_share_empty_columns():
    builder = Builder()
    for number in (1, 2):
        builder.feed(number, BOTH_PROTOCOLS)
    assert len(builder.block(1).neighbors) == 0
    assert builder.block(1).neighbors is builder.block(2).neighbors
    assert builder.block(1).capacities is builder.block(2).capacities


def test_lsps_with_the_same_neighbors_share_a_set_of_them():
    builder = Builder()
    for number in (1, 2):
        builder.feed(number, IsReachability((link(8), link(9))))
    one, other = builder.instance.databases[Level.TWO].ordered()
    assert adjacent(one) == {8, 9}
    assert adjacent(one) is adjacent(other)


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
    """In order of number, whatever the order of arrival; each prefix once."""
    builder = Builder()
    reach = IpReachability(4, (IpReach(A_PREFIX, 5),))
    builder.feed(1, IsReachability((link(3),)), reach, fragment=2)
    assert builder.block(1) is None  # ISO 10589 §7.2.5: without fragment 0 the others are ignored
    builder.feed(1, BOTH_PROTOCOLS, Hostname("one"), IsReachability((link(2),)), reach)
    block = builder.block(1)
    assert block.neighbors.tolist() == [node(2), node(3)]
    assert prefixes(block) == {"10.1.0.0/24": (5, "LEVEL_2")}
    assert len(block.prefixes) == 1
    assert block.hostname == "one"
    builder.feed(1, purged=True)
    assert builder.block(1) is None


@pytest.mark.rfc("RFC 1195 §5.2")
def test_a_family_that_a_router_does_not_speak_is_not_routed_through_it():
    """Without the NLPID of a family there is no block; RFC 1195 §3.10 does not check it."""
    builder = Builder()
    builder.feed(1, ProtocolsSupported((NLPID_IPV4,)), IsReachability((link(2),)))
    assert builder.block(1) is not None
    assert builder.block(1, family=6) is None


def test_a_pseudonode_serves_both_families():
    """It has no NLPIDs, metric 0 and no limit of bandwidth."""
    builder = Builder()
    builder.feed(1, IsReachability((link(1, 0), link(2, 0))), pseudonode=5)
    for family in (4, 6):
        block = builder.block(1, family=family, pseudonode=5)
        assert block.network
        assert block.neighbors.tolist() == [node(1), node(2)]


@pytest.mark.rfc("RFC 5305 §3")
@pytest.mark.parametrize("topology", [None, 2])
def test_a_link_at_the_maximum_metric_still_confirms_the_other_direction(topology):
    """RFC 5305 §3: SPF does not use it, the two-way check does; in topologies of RFC 5120, too."""
    family = 4 if topology is None else 6
    builder, ted = Builder(multi_topology=True), Ted()
    both = MultiTopology((Topology(0), Topology(2)))
    for of, metric in ((1, 10), (2, 0xFFFFFF)):
        neighbor = (link(3 - of, metric),)
        builder.feed(of, BOTH_PROTOCOLS, both, IsReachability(neighbor, topology))
        ted.put(builder.block(of, family=family))
    graph = ted.graph()
    there, back = (build_plan(graph, at) for at in (0, 1))
    assert there.distance.tolist() == [0, 10]
    assert back.distance.tolist() == [UNREACHABLE, 0]


@pytest.mark.rfc("RFC 5305 §3")
def test_narrow_metrics_do_not_revive_a_link_at_the_maximum_metric():
    builder = Builder()
    wide, narrow = IsReachability((link(2, 0xFFFFFF),)), NarrowIsReachability((_narrow(2),))
    builder.feed(1, BOTH_PROTOCOLS, wide, narrow)
    assert builder.block(1).metrics.tolist() == [0xFFFFFF]


def _narrow(to: int) -> NarrowNeighbor:
    return NarrowNeighbor(to << 8, 63)


@pytest.mark.rfc("RFC 5305 §4")
def test_prefixes_beyond_the_highest_metric_are_ignored():
    """RFC 5305 §4: above 0xFE000000."""
    builder = Builder()
    far = IpReach(parse_prefix("10.2.0.0/24"), 0xFE000001)
    near = IpReach(A_PREFIX, 0xFE000000)
    builder.feed(1, BOTH_PROTOCOLS, IpReachability(4, (far, near)))
    assert list(prefixes(builder.block(1))) == ["10.1.0.0/24"]


@pytest.mark.rfc("RFC 5302 §3.2", "RFC 5302 §3.3")
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
    """RFC 5302 §3.2, §3.3: the least preferred in level 1; the bit is ignored in level 2."""
    builder = Builder()
    reach = IpReachability(6, (IpReach(A_PREFIX6, 5, down=down),))
    builder.feed(1, BOTH_PROTOCOLS, reach, level=level)
    (attached,) = builder.block(1, level, 6).prefixes
    assert attached.path_type is kind


@pytest.mark.rfc("RFC 1195")
def test_narrow_tlvs_are_read():
    """RFC 1195: metrics of six bits; wide entries are preferred."""
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


@pytest.mark.rfc("RFC 5302 §3.3")
def test_an_internal_prefix_with_an_external_metric_is_ignored():
    """RFC 5302 §3.3: TLV 128 must not have it."""
    builder = Builder()
    marked = NarrowIpReach(A_PREFIX, 4, metric_external=True)
    kept = NarrowIpReach(OTHER_PREFIX, 4)
    builder.feed(1, BOTH_PROTOCOLS, NarrowIpReachability((marked, kept)))
    assert prefixes(builder.block(1)) == {"10.2.0.0/24": (4, "LEVEL_2")}


@pytest.mark.rfc("RFC 7794 §2.1", "RFC 5308 §2")
@pytest.mark.parametrize(
    "tlv",
    [
        IpReachability(4, (IpReach(A_PREFIX, 4, flags=FLAG_EXTERNAL),)),
        IpReachability(6, (IpReach(A_PREFIX6, 4, external=True),)),
        NarrowIpReachability((NarrowIpReach(A_PREFIX, 4),), external=True),
    ],
)
def test_each_way_to_mark_an_own_prefix_as_external_says_that_it_is_redistributed(tlv):
    """The X flag (RFC 7794 §2.1), the X bit (RFC 5308 §2), TLV 130 (RFC 1195)."""
    builder = Builder()
    builder.feed(99, BOTH_PROTOCOLS, tlv)
    found = builder.block(99, family=tlv.prefixes[0].prefix.family)
    assert [item.path_type for item in found.prefixes] == [PathType.LEVEL_2_REDISTRIBUTED]


@pytest.mark.rfc("RFC 5120 §7.2")
@pytest.mark.parametrize("multi_topology", [False, True])
def test_multi_topology_tlvs_with_id_zero_are_ignored(multi_topology):
    """RFC 5120 §7.2 to §7.4: topology 0 has the TLVs without an id."""
    builder = Builder(multi_topology=multi_topology)
    zero = (
        IsReachability((link(2),), 0),
        IpReachability(4, (IpReach(A_PREFIX, 10),), 0),
        IpReachability(6, (IpReach(A_PREFIX6, 10),), 0),
    )
    both = MultiTopology((Topology(0), Topology(2)))
    builder.feed(1, BOTH_PROTOCOLS, both, *zero)
    for family in (4, 6):
        block = builder.block(1, family=family)
        assert block.neighbors.tolist() == []
        assert prefixes(block) == {}


@pytest.mark.rfc("RFC 3787 §4")
def test_the_overload_bit_of_a_pseudonode_is_ignored():
    """RFC 3787 §4: and other areas are reached across the LAN."""
    builder = Builder()
    builder.feed(99, AreaAddresses((AREA,)), IsReachability((IsNeighbor(1 << 8 | 5, 10),)))
    lan = IsReachability((link(1, 0), link(99, 0)))
    builder.feed(1, lan, pseudonode=5, overload=True)
    there = IsReachability((IsNeighbor(1 << 8 | 5, 10),))
    builder.feed(1, BOTH_PROTOCOLS, AreaAddresses((b"\x49\x00\x07",)), there)
    assert builder.block(1, pseudonode=5).transit
    assert builder.ted.reaches_other_area()


@pytest.mark.rfc("ISO 10589 §7.2.8.1")
def test_the_overload_bit_bars_transit():
    """Of fragment 0 only."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, overload=True)
    assert not builder.block(1).transit
    builder.feed(1, BOTH_PROTOCOLS)
    builder.feed(1, Hostname("x"), fragment=1, overload=True)
    assert builder.block(1).transit


@pytest.mark.rfc("RFC 5120 §4")
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


@pytest.mark.rfc("RFC 5120 §7.1")
def test_multi_topology_leaves_out_routers_that_are_not_in_it():
    """RFC 5120 §7.1: without TLV 229 a router is in topology 0 only."""
    builder = Builder(multi_topology=True)
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2),)))
    assert builder.block(1) is not None
    assert builder.block(1, family=6) is None


def test_a_single_topology_ignores_those_of_others():
    """Links of MT 2 are not used."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2),)), IsReachability((link(3),), 2))
    assert builder.block(1, family=6).neighbors.tolist() == [node(2)]


# Bandwidths and parallel links


def te(capacity: float, available: float | None = None) -> TeAttributes:
    return TeAttributes(max_bandwidth=capacity, available_bandwidth=available)


def test_a_changed_bandwidth_is_no_change_of_topology():
    """An equal instance causes no output."""
    builder = Builder()
    alone = builder.feed(2, BOTH_PROTOCOLS, IsReachability((link(1),)))
    first = builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, attributes=te(1e9)),)))
    second = builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, attributes=te(5e8)),)))
    expected = [ChangeKind.ONE_WAY] * 2 + [ChangeKind.TOPOLOGY] * 2 + [ChangeKind.CAPACITY] * 2
    assert kinds([*alone, *first, *second]) == expected
    assert [u.family for u in second] == [4, 6]
    assert builder.block(1).capacities.tolist() == [5e8]
    again = builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2, attributes=te(5e8)),)))
    assert again == []
    assert second[0].cause == "lsp 0000.0000.0001.00-00 seq 0x00000001"


def test_a_changed_bandwidth_touches_one_row_of_the_block():
    """The fragments of a router are rows of one block; the other arrays stay the same objects."""
    builder = Builder()
    ends = [link(far, attributes=te(1e9, 1e9)) for far in range(2, 8)]
    builder.feed(1, BOTH_PROTOCOLS, IsReachability(tuple(ends[:2])))
    builder.feed(1, IsReachability(tuple(ends[2:3])), IsReachability(tuple(ends[3:])), fragment=3)
    before = builder.block(1)
    ends[4] = link(6, attributes=te(1e9, 4e8))
    said = builder.feed(
        1, IsReachability(tuple(ends[2:3])), IsReachability(tuple(ends[3:])), fragment=3
    )
    assert [update.family for update in said] == [4, 6]
    after = builder.block(1)
    assert after.availables.tolist() == [1e9, 1e9, 1e9, 1e9, 4e8, 1e9]
    assert after.neighbors is before.neighbors
    assert after.local_ids is before.local_ids
    assert before.availables.tolist() == [1e9] * 6, "who has the block keeps it"
    assert builder.block(1, family=6).availables is after.availables
    said = builder.feed(1, IsReachability(tuple(ends[2:])), fragment=3)
    assert said == [], "the same links in other TLVs"
    said = builder.feed(1, IsReachability((link(9), *ends[3:])), fragment=3)
    assert [update.family for update in said] == [4, 6]
    assert builder.block(1).neighbors is not after.neighbors


def calls_of_a_change(fragments: int) -> int:
    """The calls that a changed bandwidth in the last of so many fragments takes."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS)
    for number in range(1, fragments):
        builder.feed(1, IsReachability((link(2, attributes=te(1e9, 1e9)),)), fragment=number)
    calls = 0
    for rate in (4e8, 5e8):
        after = IsReachability((link(2, attributes=te(1e9, rate)),))
        with counting_calls() as counted:
            said = builder.feed(1, after, fragment=fragments - 1)
        assert [update.family for update in said] == [4, 6]
        calls = counted.count
    return calls


def test_a_changed_bandwidth_costs_the_same_however_many_fragments_a_router_has():
    assert calls_of_a_change(40) == calls_of_a_change(3)


@pytest.mark.parametrize("multi_topology", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_patched_blocks_equal_those_read_from_scratch(multi_topology, seed):
    """Bandwidths, links and names of fragments change at random, several before each flush."""
    dice = random.Random(seed)
    builder, followed = Builder(multi_topology=multi_topology), Ted()
    both = MultiTopology((Topology(0), Topology(2)))
    parts: dict[int, list] = {}
    for _ in range(60):
        for _ in range(dice.choice((1, 1, 3))):
            number = dice.choice((0, 0, 1, 2)) if 0 in parts else 0
            tlvs = parts.setdefault(number, [BOTH_PROTOCOLS, both, *_links(dice), *_links(dice)])
            at = dice.randrange(2, len(tlvs))
            changed = list(tlvs[at].neighbors)
            if changed and dice.random() < 0.8:  # the other TLVs stay the same objects
                one = dice.randrange(len(changed))
                rate = dice.choice((None, 1e8, 2e8))
                attributes = te(dice.choice((1e9, 2e9)), rate)
                attributes = replace(attributes, delay=dice.choice((None, None, None, 350)))
                changed[one] = replace(changed[one], attributes=attributes)
                tlvs[at] = IsReachability(tuple(changed), tlvs[at].topology)
            elif dice.random() < 0.5:
                tlvs[at : at + 2] = _links(dice)
            lsp = Lsp(2, lsp_id(1, 0, number), 1, 1200, tlvs=tuple(tlvs))
            entry = StoredLsp(lsp.lsp_id, 1, 1, 9e9, b"", lsp)
            previous = builder.instance.databases[Level.TWO].put(entry)
            builder.ted.lsp_changed(Level.TWO, entry, previous)
        for update in builder.flush():
            if update.family == 4 and isinstance(update, TedUpdated):
                assert update.block is not None
                followed.put(update.block)
        scratch, alone = Builder(multi_topology=multi_topology), Ted()
        for number, tlvs in parts.items():
            scratch.feed(1, *tlvs, fragment=number)
        for family in (4, 6):
            assert same_block(builder.block(1, family=family), scratch.block(1, family=family))
        alone.put(scratch.block(1))
        ours, theirs = followed.links(node(1)), alone.links(node(1))
        assert np.array_equal(ours.availables, theirs.availables, equal_nan=True)
        assert np.array_equal(ours.capacities, theirs.capacities, equal_nan=True)
        assert np.array_equal(ours.block.each_delay(), theirs.block.each_delay(), equal_nan=True)


def _links(dice: random.Random) -> list[IsReachability]:
    """Links of topology 0 and of topology 2."""
    return [
        IsReachability(
            tuple(link(dice.randrange(2, 9), attributes=te(1e9, 1e9)) for _ in range(3)), topology
        )
        for topology in (None, 2)
    ]


def test_a_changed_path_capacity_is_no_change_of_topology():
    """The experimental sub-TLV of a leaked prefix; invalid values are ignored."""
    builder = Builder()

    def told(capacity):
        return IpReachability(4, (IpReach(A_PREFIX, 5, capacity=capacity),))

    first = builder.feed(1, BOTH_PROTOCOLS, told(1e9))
    second = builder.feed(1, BOTH_PROTOCOLS, told(5e8))
    assert kinds([*first, *second])[-1] is ChangeKind.ADVERTISED
    assert builder.block(1).prefixes[0].capacity == 5e8
    builder.feed(1, BOTH_PROTOCOLS, told(float("nan")))
    assert builder.block(1).prefixes[0].capacity is None


def test_unknown_bandwidths_are_nan():
    """A router without TE."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, IsReachability((link(2),)))
    assert np.isnan(builder.block(1).capacities).all()
    assert np.isnan(builder.block(1).availables).all()


@pytest.mark.rfc("RFC 5307 §1.1")
@pytest.mark.parametrize("numbered", [True, False])
def test_parallel_links_are_told_apart(numbered):
    """By IPv4 addresses, which FRR sends, or by link identifiers if there are none.

    Router 2 has no TE, so the graph takes the bandwidths of each link from router 1.

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
    """fared sends both; FRR at the other end has addresses only."""
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
    """A fabric therefore needs no addresses on links."""
    net = pair(numbered=False)
    net.settle()
    (ipv4,) = net.local_links(1)
    assert (ipv4.gateway, ipv4.family, ipv4.onlink) == (FE80 | mac(2, 2), 6, False)
    assert ipv4.local_id == 2 == net.blocks(1)[node(1)].local_ids[0]
    assert prefixes(net.blocks(1)[node(2)]) == {"10.255.0.2/32": (0, "LEVEL_2")}


def test_a_neighbor_that_announces_no_ipv4_address_gets_no_ipv4():
    """Nor over an IPv6 next hop: FRR forwards no IPv4 on such a link."""
    net = pair(numbered=False)
    lo, settings = net.nodes[2].links[1]
    with_ipv4 = lo.addresses
    net.link(2, replace(lo, addresses=with_ipv4[1:]), settings)
    net.settle()
    assert net.local_links(1) == ()
    assert len(net.local_links(2)) == len(net.local_links(1, family=6)) == 1
    net.link(2, replace(lo, addresses=with_ipv4), settings)
    net.run(0.1)
    assert len(net.local_links(1)) == 1, "its hello said so at once"


def test_without_ipv6_too_ipv4_goes_to_the_address_of_the_neighbors_loopback():
    net = Network()
    for number in (1, 2):
        net.add(number, families=(4,))
    net.join(1, 2, numbered=False)
    net.settle()
    (ipv4,) = net.local_links(1)
    assert (ipv4.gateway, ipv4.family, ipv4.onlink) == (loopback(2).network, 4, True)


def test_a_borrowed_address_is_on_the_link_though_in_no_subnet_of_it():
    """Unnumbered links with the address of a loopback: the gateway is onlink."""
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
    """Its hellos list its protocols (TLV 129)."""
    net = Network()
    net.add(1)
    net.add(2, families=(4,))
    net.join(1, 2)
    net.settle()
    assert len(net.local_links(1)) == 1
    assert net.local_links(1, family=6) == ()
    assert node(2) not in net.blocks(1, family=6)


def test_load_is_no_change_of_local_links():
    """Only bandwidths change."""
    net = pair()
    net.settle()
    said = len(net.nodes[1].said(TedUpdated))
    net.input(1, LoadsMeasured({2: 6e6}))
    net.run(0.1)
    updates = net.nodes[2].said(TedUpdated)
    assert kinds(updates)[-1] is ChangeKind.LOAD
    assert updates[-1].block.availables.tolist() == [6.5e6]
    mine = net.nodes[1].said(TedUpdated)
    assert moves_no_path(mine, new=len(mine) - said)


# Paths to other areas


@pytest.mark.rfc("ISO 10589 §7.2.9.2")
def test_other_areas_are_looked_for_over_two_way_links_only():
    """A router without a link back does not set the attached bit."""
    builder = Builder()
    builder.feed(99, AreaAddresses((AREA,)), IsReachability((link(1),)))
    builder.feed(1, AreaAddresses((b"\x49\x00\x07",)), IsReachability(()))
    assert not builder.ted.reaches_other_area()
    builder.feed(1, AreaAddresses((b"\x49\x00\x07",)), IsReachability((link(99),)))
    assert builder.ted.ways_stale[Level.TWO]
    assert builder.ted.reaches_other_area()
    assert not builder.ted.ways_stale[Level.TWO]
    builder.feed(99, AreaAddresses((AREA,)), IsReachability((link(1, 0xFFFFFF),)))
    assert builder.ted.ways_stale[Level.TWO]
    assert not builder.ted.reaches_other_area(), "RFC 5305 §3: no path leads over that link"


@pytest.mark.rfc("ISO 10589 §7.2.9.2")
def test_an_attached_router_that_is_overloaded_is_the_last_resort():
    """An overloaded router carries no transit traffic, but leads out where no other one does."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS, level=1, attached=True)
    assert prefixes(builder.block(1, 1)) == {"0.0.0.0/0": (0, "LEVEL_1_DOWN")}
    builder.feed(1, BOTH_PROTOCOLS, level=1, attached=True, overload=True)
    assert prefixes(builder.block(1, 1)) == {"0.0.0.0/0": (LAST_RESORT, "LEVEL_1_DOWN")}
    builder.feed(1, BOTH_PROTOCOLS, level=1, attached=True)
    builder.ted.follow_attached(follow=False)
    builder.flush()
    assert prefixes(builder.block(1, 1)) == {}


def test_a_node_of_which_nothing_is_left_is_gone_once():
    """One update for each family, then no more."""
    builder = Builder()
    builder.feed(1, BOTH_PROTOCOLS)
    gone = builder.feed(1, purged=True)
    assert [(u.family, u.block) for u in gone] == [(4, None), (6, None)]
    assert builder.feed(1, purged=True) == []


def test_attributes_of_prefixes_are_kept_for_leaking():
    """Found by prefix; of several routers the first by LSP id; removed with its LSP."""
    builder = Builder()
    for of, tag in ((2, 22), (1, 11)):
        reach = IpReachability(4, (IpReach(A_PREFIX, 5, tags=(tag,)),))
        builder.feed(of, BOTH_PROTOCOLS, reach, level=1)
    assert builder.ted.attributes.of(Level.ONE, A_PREFIX).tags == (11,)
    assert builder.ted.attributes.take_changed() == [(Level.ONE, A_PREFIX)]
    builder.feed(1, BOTH_PROTOCOLS, level=1)
    assert builder.ted.attributes.of(Level.ONE, A_PREFIX).tags == (22,)
    builder.feed(2, BOTH_PROTOCOLS, level=1)
    assert builder.ted.attributes.of(Level.ONE, A_PREFIX) is None
    assert builder.ted.attributes.of(Level.TWO, Prefix(4, 0, 0)) is None


# Next hops that the kernel refuses


def host(net: Network, number: int, ifindex: int, *addresses: str) -> None:
    """Give a router these host addresses on one interface."""
    own = tuple(InterfaceAddress(4, parse_dotted(address), 32) for address in addresses)
    net.link(number, net.port(number, ifindex, own), FAST if ifindex < ELSEWHERE else None)


ELSEWHERE = 9
"""An interface without IS-IS."""


def test_of_two_addresses_of_a_neighbor_the_one_that_we_have_ourselves_is_no_next_hop():
    net = pair()
    net.settle()
    host(net, 1, 2, "10.7.0.1")
    host(net, 2, 2, "10.7.0.2", "10.7.0.3")
    host(net, 1, ELSEWHERE, "10.7.0.2")
    net.run(5.0)
    (link,) = net.local_links(1)
    assert (link.gateway, link.onlink) == (parse_dotted("10.7.0.3"), True)


def test_an_adjacency_that_forwards_nothing_is_not_advertised():
    """The only address of the neighbor is one of ours, and IS-IS runs for IPv4 only."""
    net = Network()
    for number in (1, 2):
        net.add(number, families=frozenset({4}))
    net.join(1, 2)
    net.settle()
    assert net.local_links(1)
    host(net, 1, ELSEWHERE, "10.128.0.1")
    net.run(5.0)
    assert (net.local_links(1), len(net.blocks(2)[node(1)].neighbors)) == ((), 0)
    host(net, 1, ELSEWHERE)
    net.run(5.0)
    assert len(net.blocks(2)[node(1)].neighbors) == len(net.local_links(1)) == 1


def test_of_several_subnets_of_a_link_the_next_hop_is_in_the_common_one():
    """In whatever order either end has them; link addresses in LSPs, too."""
    net = pair()
    subnets = {1: ("10.99.0.1", "10.4.0.1"), 2: ("10.4.0.2", "10.98.0.2")}
    for number, addresses in subnets.items():
        own = tuple(InterfaceAddress(4, parse_dotted(address), 24) for address in addresses)
        net.link(number, net.port(number, 2, own), FAST)
    net.settle()
    (link,) = net.local_links(1)
    assert (link.gateway, link.onlink) == (parse_dotted("10.4.0.2"), False)
    assert net.blocks(2)[node(1)].local_ids.tolist() == [parse_dotted("10.4.0.1")]
