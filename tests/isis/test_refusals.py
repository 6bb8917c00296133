"""Why a system on a link is no neighbor, or not for all families: said by cause."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.bfd import BfdSettings
from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.core.links import InterfaceAddress
from fared.protocols.igp.events import LogRecord
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.isis.adjacency.problems import problem_of
from tests.isis.net import AREA, BOTH, FAST, LAN, ONE, TWO, Network, pair

OTHER_AREA, THIRD_AREA = bytes.fromhex("490002"), bytes.fromhex("490003")
KEY = TimedKey(AuthKey(Algorithm.MD5, 1, b"key"))


def refused(net: Network, number: int = 1) -> list[tuple]:
    engine = net.nodes[number].engine
    return [(r.interface, r.source, r.cause) for r in engine.refused(net.now)]


def problem(net: Network, number: int):
    (adjacency,) = net.adjacencies(number)
    return problem_of(net.instance(number).settings, adjacency, net.now)


def logged(net: Network, number: int, event: str) -> list[dict]:
    records = net.nodes[number].said(LogRecord)
    return [record.fields for record in records if record.event == event]


def counters(net: Network, number: int):
    return net.nodes[number].engine.counters


@pytest.mark.parametrize(
    ("a", "b", "circuit", "cause"),
    [
        ({"levels": ONE}, {"levels": TWO}, {}, "level-mismatch"),
        ({"levels": ONE}, {"levels": ONE, "areas": (OTHER_AREA,)}, {}, "area-mismatch"),
        ({}, {}, {"kind": LAN.kind}, "network-type-mismatch"),
        ({}, {}, {"authentication": (KEY,)}, "auth"),
        ({"families": (FAMILY_IPV4,)}, {"families": (FAMILY_IPV6,)}, {}, "no-common-protocol"),
    ],
)
def test_a_refused_hello_is_kept_with_its_cause(a, b, circuit, cause):
    net = Network()
    net.add(1, **a)
    net.add(2, **b)
    net.join(1, 2)
    net.change(2, 2, **circuit)
    net.run(5)
    assert refused(net, 2) == [("eth2", "02:00:00:01:00:02", cause)]
    assert net.adjacencies(2) == []


@pytest.mark.parametrize("kind", ["point-to-point", "LAN"])
def test_a_system_in_another_area_is_refused_with_the_areas_of_both(kind):
    net = Network()
    net.add(1, levels=ONE, areas=(OTHER_AREA, THIRD_AREA))
    net.add(2, levels=ONE)
    (net.join if kind == "point-to-point" else net.lan)(1, 2)
    net.run(5)
    (refusal,) = net.nodes[2].engine.refused(net.now)
    assert refusal.text == "it is in another area: 49.0002, 49.0003, ours 49.0001"
    (record, *_) = logged(net, 2, "isis-rejected")
    assert (record["theirs"], record["ours"]) == ("49.0002, 49.0003", "49.0001")


def test_a_link_too_small_for_our_lsps_is_the_cause_not_the_levels():
    net = pair()
    net.run(5)
    link, settings = net.nodes[1].links[2]
    net.link(1, replace(link, mtu=1400), settings)
    net.run(5)
    assert [cause for _, _, cause in refused(net)] == ["mtu-too-small"]


@pytest.mark.rfc("ISO 10589 §8.4.2")
def test_hellos_of_a_level_that_is_not_ours_are_no_errors_beside_a_router_of_both():
    """ISO 10589 §8.4.2: they are discarded; an adjacency forms in the level in common."""
    net = Network()
    net.add(1, levels=TWO)
    net.add(2, levels=BOTH)
    net.lan(1, 2)
    net.run(60)
    assert net.all_up()
    assert counters(net, 1).errors == {}
    assert counters(net, 1).discarded["level-mismatch"] > 30
    assert logged(net, 1, "isis-rejected") == refused(net) == []


def test_a_neighbor_that_does_not_receive_us_is_told():
    net = pair()
    net.cables[0].deaf = {2}
    net.run(10)
    assert problem(net, 1).cause == "not-heard"
    assert logged(net, 1, "isis-neighbor-problem")
    net.cables[0].deaf = set()
    net.run(10)
    assert problem(net, 1) is None


@pytest.mark.rfc("RFC 6213 §3.2")
def test_strict_bfd_that_is_not_up_is_told():
    net = pair(settings=replace(FAST, bfd=BfdSettings(strict=True)))
    net.run(10)
    assert [problem(net, number).cause for number in (1, 2)] == ["bfd-down"] * 2


@pytest.mark.rfc("RFC 3719 §6")
def test_unequal_mtus_are_told_from_the_size_of_the_neighbors_padded_hellos():
    """Those of the larger end are lost at the smaller one, which therefore knows nothing."""
    net = pair()
    link, settings = net.nodes[1].links[2]
    net.cables[0].deaf = {2}
    net.link(1, replace(link, mtu=9000), settings)
    net.run(10)
    assert problem(net, 1).text.startswith("its MTU differs: 1500, ours 9000")


@pytest.mark.rfc("RFC 5120 §3")
@pytest.mark.parametrize("number", [1, 2])
def test_multi_topology_at_one_end_only_is_told_at_both(number):
    net = Network()
    for each in (1, 2):
        net.add(each, multi_topology=each == number)
    net.join(1, 2)
    net.run(5)
    assert net.all_up()
    assert [problem(net, each).cause for each in (1, 2)] == ["topology-mismatch"] * 2


def test_one_address_at_both_ends_is_told_at_both():
    net = pair()
    ours, settings = net.nodes[1].links[2]
    link, _ = net.nodes[2].links[2]
    net.link(2, replace(link, addresses=(ours.addresses[0], *link.addresses[1:])), settings)
    net.run(5)
    assert [problem(net, each).cause for each in (1, 2)] == ["duplicate-address"] * 2


def test_a_neighbor_in_another_subnet_is_told_and_used():
    """Hellos do not depend on it; other implementations may have no routes over the link."""
    net = pair()
    net.run(5)
    link, settings = net.nodes[2].links[2]
    elsewhere = InterfaceAddress(FAMILY_IPV4, 0x0A080002, 24)
    net.link(2, replace(link, addresses=(elsewhere, *link.addresses[1:])), settings)
    net.run(20)
    assert net.all_up()
    assert problem(net, 1).text.startswith("its address is not on our network: 10.8.0.2, ours ")
    assert problem(net, 2).text.endswith(", ours 10.8.0.2/24")
    unnumbered = replace(elsewhere, prefix_length=32)
    net.link(2, replace(link, addresses=(unnumbered, *link.addresses[1:])), settings)
    net.run(20)
    assert (problem(net, 1).cause, problem(net, 2)) == ("source-network", None)


def test_two_systems_with_one_system_id_are_told_wherever_they_are():
    """They are not adjacent; each replaces the LSP of the other."""
    net = Network()
    net.add(3)
    net.restart(3, system_id=1, areas=(AREA,))
    net.join(1, 2)
    net.join(2, 3)
    net.run(120)
    for number in (1, 3):
        contested = net.nodes[number].engine.contested(net.now)
        assert contested.startswith("0000.0000.0001.00-0")
        (first, *_) = logged(net, number, "isis-foreign-copies")
        assert first["notification"] in {"isisSequenceNumberSkip", "isisOwnLSPPurge"}  # RFC 4444
    assert net.nodes[2].engine.contested(net.now) is None


def test_adjacent_systems_with_one_system_id_refuse_each_other():
    net = Network()
    net.add(2)
    net.restart(2, system_id=1)
    net.join(1, 2, FAST)
    net.run(5)
    assert [cause for _, _, cause in refused(net)] == ["duplicate-system-id"]
