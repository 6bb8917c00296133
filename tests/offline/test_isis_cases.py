"""LANs, overload, attached bits, an IPv6 topology: from every root as on the routers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import LANS, Fabric, FabricBuilder
from fared.extensions.sim.levels import COMMON, clos3_isis, clos5_levels
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, Levels
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.pdu.codec import decode_pdu, encode_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import IpReachability, NarrowIpReach, NarrowIpReachability, Tlv
from fared.protocols.isis.settings import CircuitKind
from tests.offline.fabrics import Json, answer, run_spf
from tests.offline.isis_fabrics import (
    FAMILIES,
    live,
    offline,
    offline_all,
    saved,
    started,
    system,
)


def check_all(fabric: Fabric, source: str) -> None:
    """Compare all routers by the database of one, and that one with its addresses."""
    document = saved(fabric, source)
    for af in FAMILIES:
        found = offline_all(document, af)
        for name in fabric.router_ids:
            assert found[system(fabric, name)] == live(fabric, name, af, addresses=False), name
        assert offline(document, af) == live(fabric, source, af)


# LANs


@pytest.fixture(scope="module")
def lan() -> Fabric:
    """R1 to R4 on a LAN; R5 is connected to R1 and R2."""
    builder = FabricBuilder(Network(seed=2), protocols=[IsisBuilder(COMMON)])
    for name in ("R1", "R2", "R3", "R4", "R5"):
        builder.router(name)
        builder.hosts(name)
    network = builder.fabric.network
    ports = []
    for number, name in enumerate(("R1", "R2", "R3", "R4"), start=1):
        port = builder._port(name, LANS + 256 + number, 24, "lan1", 50e9)
        port.settings["isis"] = replace(port.settings["isis"], kind=CircuitKind.BROADCAST)
        ports.append(port)
    network.join(ports)
    builder.link("R1", "R5")
    builder.link("R2", "R5")
    return started(builder.fabric, quiet=6.0)


def pseudonode(document: Json) -> str:
    """The id of the only pseudonode."""
    return next(node["id"] for node in answer(document)["nodes"] if node["id"].count(".") == 3)


def test_over_a_lan(lan):
    check_all(lan, "R3")
    assert answer(saved(lan, "R3"))["ignored"] == []


def test_a_router_leaves_the_lan(lan):
    """The link of R1 to the LAN is named by the pseudonode, or by another router on it."""
    document = saved(lan, "R3")
    gone = offline(document, "ipv6", "--fail-link", f"R1,{pseudonode(document)}")
    assert gone == offline(document, "ipv6", "--fail-link", "R1,R4")
    behind = str(lan.leaf_prefixes6["R5"])
    assert [hop[0] for hop in gone[behind][3]] == [system(lan, "R2")]


def test_the_whole_lan_fails(lan):
    document = saved(lan, "R3")
    left = offline(document, "ipv4", "--fail-node", pseudonode(document))
    assert str(lan.leaf_prefixes["R5"]) not in left
    assert not any(prefix.startswith("10.192.") for prefix in left)


def test_a_lan_outlives_its_designated_is(lan):
    document = saved(lan, "R3")
    dis = next(
        name for name in lan.router_ids if pseudonode(document).startswith(system(lan, name))
    )
    root = next(name for name in ("R3", "R4") if name != dis)
    changed = offline(saved(lan, root), "ipv4", "--fail-node", dis)
    assert str(lan.leaf_prefixes["R5"]) in changed


def test_a_pseudonode_is_no_root(lan):
    document = saved(lan, "R3")
    result = run_spf(document, "--root", pseudonode(document))
    assert result.exit_code == 2
    assert "is a network" in result.stderr


# Settings that affect the view of a router


@pytest.mark.parametrize("numbered", [True, False])
def test_a_fabric_with_and_without_addresses_on_its_links(numbered):
    """Without addresses, IPv4 routes have IPv6 next hops."""
    check_all(started(clos3_isis(2, 3, levels=Levels(numbered=numbered))), "L1")


def test_a_topology_of_its_own_for_ipv6():
    check_all(started(clos3_isis(2, 3, common=replace(COMMON, multi_topology=True))), "L2")


def test_in_level_1_alone():
    inside = Levels(LevelSet.ONE, LevelSet.ONE, b"\x49\x00\x01")
    check_all(started(clos3_isis(2, 3, levels=inside)), "S1")


@pytest.mark.parametrize("multi_topology", [False, True])
def test_an_overloaded_spine(multi_topology):
    fabric = clos3_isis(3, 3, common=replace(COMMON, multi_topology=multi_topology))
    node = fabric.network.nodes["S2"]
    node.settings = node.settings.with_protocol("isis", overload=True)
    started(fabric)
    check_all(fabric, "L1")
    ignored = answer(saved(fabric, "L1"), "--af", "ipv6")["ignored"]
    assert {"key": system(fabric, "S2"), "reason": "overload"} in ignored


@pytest.fixture(scope="module")
def figure_two() -> Fabric:
    """Five stages, leaking in both directions."""
    return started(clos5_levels(2, 2, 2, 2))


@pytest.fixture(scope="module")
def attached() -> Fabric:
    """Five stages without leaking down: leaves follow the attached bits of their spines."""
    common = replace(COMMON, level2_to_level1=False)
    return started(clos5_levels(2, 2, 2, 2, common=common))


@pytest.mark.parametrize("af", FAMILIES)
@pytest.mark.parametrize("source", ["p1.L1", "p1.S1", "SS1.1"])
def test_a_default_route_for_those_who_are_attached(attached, source, af):
    """A leaf has one, an attached spine has none."""
    assert offline(saved(attached, source), af) == live(attached, source, af)
    assert (source == "p1.L1") == bool(
        {"0.0.0.0/0", "::/0"} & offline(saved(attached, source), af).keys()
    )


@pytest.mark.parametrize("af", FAMILIES)
def test_a_border_router_that_lost_its_way_out_follows_the_others(attached, af):
    document = saved(attached, "p1.S1")
    args = ("--fail-link", "p1.S1,SS1.1", "--fail-link", "p1.S1,SS1.2")
    default = "0.0.0.0/0" if af == "ipv4" else "::/0"
    assert default in offline(document, af, *args)
    leaf = offline(document, af, "--root", "p1.L1", *args)
    assert [hop[0] for hop in leaf[default][3]] == [system(attached, "p1.S2")]


@pytest.mark.parametrize("af", FAMILIES)
@pytest.mark.parametrize(
    ("source", "roots"),
    [
        ("p1.L1", ["p1.L1", "p1.L2"]),
        ("p1.S1", ["p1.S1", "p1.L1", "p1.L2", "SS1.1", "SS1.2"]),
        ("p2.S2", ["p2.S2", "p2.L1", "p2.L2", "SS2.1", "SS2.2"]),
        ("SS1.2", ["SS1.1", "SS1.2"]),
    ],
)
def test_every_root_of_which_all_levels_are_known(figure_two, source, roots, af):
    document = saved(figure_two, source)
    for root in roots:
        found = offline(document, af, "--root", root, addresses=False)
        assert found == live(figure_two, root, af, addresses=False), root


@pytest.mark.parametrize("af", FAMILIES)
def test_a_border_router_of_another_pod_has_its_level_2_routes(figure_two, af):
    """The prefixes that it leaks from its PoD are not its own, although its level 1 is unknown."""
    found = offline(saved(figure_two, "p1.S1"), af, "--root", "p2.S1", addresses=False)
    wanted = live(figure_two, "p2.S1", af, addresses=False)
    assert found
    assert {prefix: wanted[prefix] for prefix in found} == found


def as_others_say_it(document: Json, *, marked: bool, narrow: str) -> Json:
    """A database whose leaked prefixes have no R flag, or with narrow TLVs besides, or instead."""
    lsps = []
    for entry in document["lsps"]:
        lsp = decode_pdu(bytes.fromhex(entry["hex"]))
        assert isinstance(lsp, Lsp)
        tlvs: list[Tlv] = []
        for tlv in lsp.tlvs:
            if not isinstance(tlv, IpReachability):
                tlvs.append(tlv)
                continue
            reaches = tlv.prefixes if marked else (replace(r, flags=None) for r in tlv.prefixes)
            if tlv.family != 4 or narrow != "instead":
                tlvs.append(replace(tlv, prefixes=tuple(reaches)))
            if tlv.family == 4 and narrow:
                entries = (NarrowIpReach(r.prefix, r.metric, r.down) for r in tlv.prefixes)
                tlvs.append(NarrowIpReachability(tuple(entries)))
        raw = encode_pdu(replace(lsp, checksum=0, tlvs=tuple(tlvs)))
        lsps.append({**entry, "hex": raw.hex()})
    return {**document, "lsps": lsps}


@pytest.mark.parametrize("af", FAMILIES)
@pytest.mark.parametrize(
    ("marked", "narrow"),
    [(False, ""), (False, "besides"), (True, "besides"), (False, "instead"), (True, "instead")],
)
def test_leaked_prefixes_are_known_without_a_mark_and_in_narrow_tlvs(
    figure_two, marked, narrow, af
):
    """Some routers, as Holo, set no R flag (RFC 7794): level 1 shows the origin of a prefix.

    TLVs 128 and 130 have no place for the flag, whether other TLVs have it or not.
    """
    ours = saved(figure_two, "p1.S1")
    document = as_others_say_it(ours, marked=marked, narrow=narrow)
    assert offline(document, af) == live(figure_two, "p1.S1", af)
    for args in (("--level", "2"), ("--fail-link", "p1.S1,p1.L1", "--root", "SS1.1")):
        assert offline(document, af, *args) == offline(ours, af, *args)


@pytest.mark.parametrize("level", [1, 2])
def test_one_level_only(figure_two, level):
    document = saved(figure_two, "p1.S1")
    kinds = {route["type"] for route in answer(document, "--level", str(level))["routes"]}
    assert kinds == {f"level-{level}"}
