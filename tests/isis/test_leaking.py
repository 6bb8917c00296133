"""Level-1-2 routers: leaking between levels, attached bits, no loops."""

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix, parse_prefix
from fared.paths.ted.events import AdvertisedRoute
from fared.paths.ted.model import PathType
from fared.protocols.igp.events import SettingsApplied
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.pdu.tlvs import IpReach, IpReachability, of_type
from fared.protocols.isis.settings import LAST_RESORT
from fared.protocols.isis.ted.fragment_prefixes import kept_attributes, read_prefixes
from tests.isis.net import BOTH, FAST, ONE, TWO, Network, loopback, loopback6, node, prefixes
from tests.isis.routed import Routers

SLOW = replace(FAST, hello_interval=10.0)
"""Short intervals: no test waits for a hello."""
POD_A, POD_B, CORE = (bytes.fromhex(area) for area in ("490001", "490002", "490099"))


def reach(lsps, prefix: Prefix) -> IpReach | None:
    """The entry of a prefix in an LSP."""
    for tlv in of_type(lsps.tlvs, IpReachability):
        for entry in tlv.prefixes:
            if entry.prefix == prefix:
                return entry
    return None


def two_pods(*, down: bool = False, **settings) -> Network:
    """Leaf 1 - spines 2, 3 (area A) - core 9 - spines 5, 6 (area B) - leaf 4."""
    net = Network()
    for number, level, area in (
        (1, ONE, POD_A),
        (2, BOTH, POD_A),
        (3, BOTH, POD_A),
        (4, ONE, POD_B),
        (5, BOTH, POD_B),
        (6, BOTH, POD_B),
        (9, TWO, CORE),
    ):
        net.add(number, levels=level, areas=(area,), level2_to_level1=down, **settings)
    for leaf, spines in ((1, (2, 3)), (4, (5, 6))):
        for spine in spines:
            net.join(leaf, spine, SLOW, levels=ONE)
            net.join(spine, 9, SLOW, levels=TWO)
    return net


@pytest.fixture(scope="module")
def leaking():
    """Two pods with leaking in both directions, converged."""
    net = two_pods(down=True)
    routers = Routers(net)
    net.run(15)
    routers.settle()
    return net, routers


@pytest.mark.rfc("RFC 5302 §3.3")
def test_level_1_prefixes_are_announced_in_level_2(leaking):
    """With the metric of the route and the R flag, without the down bit."""
    net, routers = leaking
    entry = reach(net.lsp(9, 2), loopback(1))
    assert (entry.metric, entry.down) == (10, False)
    assert entry.flags & 0x40
    assert reach(net.lsp(9, 2), loopback6(1)).metric == 10
    assert routers.route(9, "10.255.0.1/32").path_type is PathType.LEVEL_2
    assert set(routers.hops(9, "10.255.0.1/32")) == {2, 3}


@pytest.mark.rfc("RFC 5302 §3.3")
def test_level_2_prefixes_go_down_with_the_down_bit(leaking):
    """Leaf 1 receives the prefix of leaf 4 from both spines, with the down bit."""
    net, routers = leaking
    for spine in (2, 3):
        entry = reach(net.lsp(1, spine, level=1), loopback(4))
        assert entry.down
        assert entry.metric == 30
    route = routers.route(1, "10.255.0.4/32")
    assert route.path_type is PathType.LEVEL_1_DOWN
    assert route.metric == 40
    assert set(routers.hops(1, "10.255.0.4/32")) == {2, 3}
    assert set(routers.hops(1, "2001:db8::4/128")) == {2, 3}


@pytest.mark.rfc("RFC 5302 §2")
def test_what_went_down_never_goes_up(leaking):
    """Spine 3 receives the prefix of leaf 4 from spine 2 in level 1, and does not leak it."""
    net, _ = leaking
    for spine in (2, 3):
        assert reach(net.lsp(9, spine), loopback(4)) is None
        assert reach(net.lsp(9, spine), loopback(9)) is None


@pytest.mark.rfc("RFC 5302 §3.2")
def test_a_spine_prefers_level_2_over_what_its_peer_leaked(leaking):
    """RFC 5302 §3.2: otherwise two spines would forward to each other."""
    _, routers = leaking
    for spine in (2, 3):
        route = routers.route(spine, "10.255.0.4/32")
        assert route.path_type is PathType.LEVEL_2
        assert set(routers.hops(spine, "10.255.0.4/32")) == {9}


def test_our_own_description_holds_what_is_connected_only(leaking):
    """The block of a router excludes the prefixes that it leaks."""
    net, _ = leaking
    for level in (1, 2):
        own = prefixes(net.blocks(2, level)[node(2)])
        assert "10.255.0.1/32" not in own
        assert "10.255.0.4/32" not in own
        assert "10.255.0.2/32" in own
    assert "10.255.0.1/32" in prefixes(net.blocks(9)[node(2)])


def test_leaked_prefixes_carry_what_their_paths_can(leaking):
    """The path capacity sub-TLV: 100 Mb/s through each spine."""
    net, routers = leaking
    assert reach(net.lsp(9, 2), loopback(1)).capacity == 12.5e6
    attached = {p.prefix: p.capacity for p in net.blocks(9)[node(2)].prefixes}
    assert attached[loopback(1)] == 12.5e6
    assert routers.hops(9, "10.255.0.1/32") == {2: 12.5e6, 3: 12.5e6}


def test_a_thinner_path_behind_a_spine_is_seen_in_the_other_pod():
    """The link from spine 5 to leaf 4 at a quarter: it changes weights on leaf 1 and the core."""
    net = two_pods(down=True)
    routers = Routers(net)
    net.run(15)
    routers.settle()
    link, settings = net.nodes[5].links[2]
    net.link(5, replace(link, speed=12.5e6 / 4), settings)
    routers.settle()
    assert routers.hops(9, "10.255.0.4/32") == {5: 12.5e6 / 4, 6: 12.5e6}


def test_a_small_change_of_path_capacity_is_not_announced(leaking):
    """Below the announce threshold nothing is flooded."""
    net, _ = leaking
    prefix = parse_prefix("10.77.0.0/24")
    facts = AdvertisedRoute(10, PathType.LEVEL_1, (1,), 10e6)
    net.routes(2, prefix, facts)
    net.run(1)
    before = net.lsp(9, 2).sequence_number
    net.routes(2, prefix, replace(facts, capacity=9.8e6))
    net.run(6)
    assert net.lsp(9, 2).sequence_number == before
    net.routes(2, prefix, replace(facts, capacity=9e6))
    net.run(6)
    assert reach(net.lsp(9, 2), prefix).capacity == 9e6
    net.routes(2, prefix, None)
    net.run(6)
    assert reach(net.lsp(9, 2), prefix) is None


def test_without_a_code_point_no_capacity_is_told_or_believed():
    """With ``path_capacity_code`` None."""
    net = Network()
    net.add(1, levels=BOTH, path_capacity_code=None)
    net.add(2, levels=TWO)
    net.join(1, 2)
    net.settle()
    net.routes(1, loopback(50), AdvertisedRoute(10, PathType.LEVEL_1, (1,), 10e6))
    net.run(2)
    assert reach(net.lsp(2, 1), loopback(50)).capacity is None
    told = IpReach(loopback(50), 10, capacity=5e6)
    lsp = replace(net.lsp(2, 1), tlvs=(IpReachability(4, (told,)),))
    silent = read_prefixes(lsp, own=False, capacity_code=None)
    assert silent.entries[None, 4][loopback(50)].capacity is None


def test_leaking_down_is_off_unless_configured():
    """Leaf 1 then follows the attached bits."""
    net = two_pods()
    routers = Routers(net)
    net.run(15)
    routers.settle()
    assert reach(net.lsp(1, 2, level=1), loopback(4)) is None
    assert routers.route(1, "10.255.0.4/32") is None
    for default in ("0.0.0.0/0", "::/0"):
        route = routers.route(1, default)
        assert route.path_type is PathType.LEVEL_1_DOWN
        assert set(routers.hops(1, default)) == {2, 3}


def test_leaking_up_can_be_switched_off_and_on():
    """At run time; then the prefixes of the pod are in level 2 again."""
    net = two_pods(level1_to_level2=False)
    routers = Routers(net)
    net.run(15)
    routers.settle()
    assert reach(net.lsp(9, 2), loopback(1)) is None
    net.input(2, SettingsApplied(replace(net.nodes[2].settings, level1_to_level2=True)))
    routers.settle()
    assert reach(net.lsp(9, 2), loopback(1)).metric == 10
    assert set(routers.hops(9, "10.255.0.1/32")) == {2}


# Attached bit


@pytest.mark.rfc("ISO 10589 §7.2.9.2")
def test_the_attached_bit_is_set_while_another_area_is_reached():
    """It is cleared when the last path fails, and the default route is withdrawn."""
    net = two_pods()
    net.run(15)
    assert net.lsp(1, 2, level=1).attached
    assert net.nodes[2].engine.attached
    assert prefixes(net.blocks(1, 1)[node(2)])["0.0.0.0/0"] == (0, "LEVEL_1_DOWN")
    assert prefixes(net.blocks(1, 1, 6)[node(2)])["::/0"] == (0, "LEVEL_1_DOWN")
    net.set_up(net.cables[1], up=False)
    net.run(5)
    assert not net.lsp(1, 2, level=1).attached
    assert "0.0.0.0/0" not in prefixes(net.blocks(1, 1)[node(2)])
    assert net.lsp(1, 3, level=1).attached


@pytest.mark.rfc("ISO 10589 §7.2.9.1")
def test_a_spine_that_lost_its_core_follows_the_attached_bit_of_its_peer():
    """A level-1-2 router that reaches no other area acts as a level-1 router."""
    net = two_pods()
    net.run(15)
    assert "0.0.0.0/0" not in prefixes(net.blocks(2, 1)[node(3)])
    net.set_up(net.cables[1], up=False)
    net.run(5)
    assert "0.0.0.0/0" in prefixes(net.blocks(2, 1)[node(3)])
    net.set_up(net.cables[1], up=True)
    net.run(10)
    assert "0.0.0.0/0" not in prefixes(net.blocks(2, 1)[node(3)])


def test_level_2_within_one_area_leads_nowhere():
    """Two level-1-2 routers of one area alone are not attached."""
    net = Network()
    for number in (1, 2):
        net.add(number, levels=BOTH)
    net.join(1, 2)
    net.settle(1, 2)
    assert not net.lsp(2, 1, level=1).attached


@pytest.mark.rfc("ISO 10589 §7.2.9.2")
def test_another_area_two_hops_away_counts():
    """ISO 10589 §7.2.9.2: all of level 2 is considered, not only neighbors."""
    net = Network()
    net.add(1, levels=BOTH)
    net.add(2, levels=TWO)
    net.add(3, levels=TWO, areas=(POD_B,))
    net.join(1, 2)
    net.join(2, 3)
    net.settle(2)
    assert net.nodes[1].engine.attached


@pytest.mark.parametrize("change", [{"attached": False}, {"overload": True}])
def test_the_attached_bit_can_be_kept_back(change):
    """By configuration, and while the router is overloaded."""
    net = two_pods()
    net.run(15)
    net.input(2, SettingsApplied(replace(net.nodes[2].settings, **change)))
    net.run(2)
    assert not net.lsp(1, 2, level=1).attached


def overload(net: Network, *numbers: int, overloaded: bool = True) -> None:
    for number in numbers:
        settings = replace(net.nodes[number].settings, overload=overloaded)
        net.input(number, SettingsApplied(settings))
    net.run(2)


def test_overloaded_routers_keep_the_attached_bit_while_there_is_no_other():
    net = two_pods()
    net.run(15)
    overload(net, 2, 3)
    assert net.lsp(1, 2, level=1).attached
    assert net.lsp(1, 3, level=1).attached
    overload(net, 3, overloaded=False)
    assert not net.lsp(1, 2, level=1).attached


def test_an_overloaded_router_keeps_the_attached_bit_for_a_leaf_that_has_no_other():
    """Leaf 8 has a link to spine 2 only; leaf 1 and spine 3 lie behind it."""
    net = two_pods()
    net.add(8, levels=ONE, areas=(POD_A,))
    net.join(8, 2, SLOW, levels=ONE)
    net.run(15)
    overload(net, 2)
    assert net.lsp(8, 2, level=1).attached


def test_overloaded_routers_leak_at_metrics_that_are_used_last():
    """Inside a level others do not cross them; what is in their LSPs they reach."""
    net = two_pods(down=True)
    routers = Routers(net)
    net.run(15)
    routers.settle()
    overload(net, 2, 3, 5, 6)
    routers.settle()
    assert reach(net.lsp(9, 2), loopback(1)).metric == 10 + LAST_RESORT
    assert reach(net.lsp(9, 2), loopback(2)).metric == 0
    assert routers.route(1, "10.255.0.4/32").metric == 40 + 2 * LAST_RESORT
    assert set(routers.hops(1, "10.255.0.4/32")) == {2, 3}


def test_what_a_router_leaks_while_it_starts_is_used_last():
    net = Network()
    for number, level in ((1, ONE), (2, BOTH), (9, TWO)):
        net.add(number, levels=level, overload_on_startup=30.0)
    net.join(1, 2, SLOW, levels=ONE)
    net.join(2, 9, SLOW, levels=TWO)
    routers = Routers(net)
    net.run(15)
    routers.settle()
    assert reach(net.lsp(9, 2), loopback(1)).metric == 10 + LAST_RESORT
    net.run(30)
    assert reach(net.lsp(9, 2), loopback(1)).metric == 10


# Attributes that leaking preserves


@pytest.mark.rfc("RFC 5130 §3.1", "RFC 7794 §2.1")
def test_tags_and_attributes_stay_with_a_leaked_prefix():
    """RFC 5130, RFC 7794: tags and N are kept, R is set; sub-TLVs of level 1 only are not."""
    entry = IpReach(
        loopback(1), 10, tags=(7, 8), flags=0x20, unknown=((2, b"x" * 8), (3, b"sid"), (11, b"a"))
    )
    kept = kept_attributes(entry)
    assert kept.tags == (7, 8)
    assert kept.unknown == ((2, b"x" * 8), (11, b"a"))


@pytest.mark.rfc("RFC 7794 §2.1")
def test_a_node_flag_survives_leaking(leaking):
    """The loopback of leaf 1 keeps its N flag."""
    net, _ = leaking
    assert reach(net.lsp(9, 2), loopback(1)).flags == 0x60


@pytest.mark.rfc("RFC 5305 §4")
def test_a_prefix_of_too_high_a_metric_is_not_leaked(leaking):
    """RFC 5305 §4: a prefix with a metric above MAX_PATH_METRIC is not used."""
    net, _ = leaking
    far = parse_prefix("10.78.0.0/24")
    net.routes(2, far, AdvertisedRoute(0xFE000001, PathType.LEVEL_1, (1,), None))
    net.run(3)
    assert reach(net.lsp(9, 2), far) is None


def test_leaked_and_connected_prefixes_do_not_fight():
    """A connected prefix is advertised as connected, whatever the route."""
    net = Network()
    net.add(1, levels=BOTH)
    net.add(2, levels=TWO)
    net.join(1, 2, FAST, levels=TWO)
    net.settle()
    net.routes(1, loopback(1), AdvertisedRoute(55, PathType.LEVEL_1, (1,), None))
    net.run(2)
    assert reach(net.lsp(2, 1), loopback(1)).metric == 0
    assert LevelSet.TWO in net.instance(1).settings.levels


# Five stages: PoDs are level 1, planes level 2, spines both; rates in Gb/s, every link is 400


GIGABIT = 1e9 / 8


def five_stages() -> tuple[Network, Routers]:
    """Two PoDs of one leaf and four spines, four planes of four super-spines."""
    net = Network(3)
    for pod, area in ((1, POD_A), (2, POD_B)):
        net.add(10 * pod + 1, levels=ONE, areas=(area,), level2_to_level1=True)
        for spine in range(1, 5):
            number = 100 * pod + spine
            net.add(number, levels=BOTH, areas=(area,), level2_to_level1=True)
            net.join(10 * pod + 1, number, SLOW, levels=ONE, speed=400 * GIGABIT, numbered=False)
    for plane in range(1, 5):
        for k in range(1, 5):
            top = 200 + 4 * plane + k
            net.add(top, levels=TWO, areas=(CORE,))
            for pod in (1, 2):
                spine = 100 * pod + plane
                net.join(spine, top, SLOW, levels=TWO, speed=400 * GIGABIT, numbered=False)
    net.run(10)
    routers = Routers(net)
    routers.settle()
    return net, routers


def limit(net: Network, tail: int, head: int, rate: float) -> None:
    """Set the bandwidth from one router to another."""
    for (number, ifindex), cable in net.by_end.items():
        if number == tail and head in {end[0] for end in cable.ends}:
            link, settings = net.nodes[number].links[ifindex]
            net.link(number, replace(link, speed=rate * GIGABIT), settings)


def test_between_pods_the_leaf_sees_the_remote_damage():
    """Worked examples E5 and E6, in both families, over links without any IPv4 address."""
    net, routers = five_stages()
    for destination in ("10.255.0.21/32", "2001:db8::15/128"):
        assert set(routers.hops(11, destination).values()) == {400 * GIGABIT}
        assert routers.route(11, destination).metric == 40
    limit(net, 201, 21, 100)
    routers.settle()
    for destination in ("10.255.0.21/32", "2001:db8::15/128"):
        seen = {k: round(v / GIGABIT) for k, v in routers.hops(11, destination).items()}
        assert seen == {101: 100, 102: 400, 103: 400, 104: 400}
    limit(net, 201, 21, 400)
    for k in range(1, 5):
        limit(net, 101, 204 + k, 100)
    routers.settle()
    seen = {k: round(v / GIGABIT) for k, v in routers.hops(11, "10.255.0.21/32").items()}
    assert seen == {101: 400, 102: 400, 103: 400, 104: 400}
    assert set(routers.hops(101, "10.255.0.21/32").values()) == {100 * GIGABIT}
