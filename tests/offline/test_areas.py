"""Saved databases of routers in several areas: summaries and externals as on the routers."""

from __future__ import annotations

import pytest

from fared.core.ids import length_mask
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric
from fared.extensions.sim.network import Network
from fared.protocols.ospf.packet.bodies import AsExternalLsa, RouterLsa, SummaryLsa
from fared.protocols.ospf.packet.body import encode_body
from fared.protocols.ospf.packet.lsa import LsType, encode_lsa
from fared.router.events import RouterSettingsApplied
from tests.offline.fabrics import answer, live_table, saved, started, table


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    built = started(clos5_areas(2, 2, 2, 2, network=Network(seed=1)))
    built.network.set_capacity("p2.S1", "p2.L1", DEFAULT_CAPACITY / 4)
    built.network.run_until_quiet(60)
    return built


@pytest.mark.parametrize(
    ("source", "root"),
    [
        ("p1.L1", "p1.L1"),
        ("p1.L1", "p1.L2"),
        ("p1.S1", "p1.S1"),
        ("p1.S1", "p1.L1"),
        ("p1.S1", "SS1.1"),
        ("p1.S1", "p2.S1"),
        ("SS1.2", "SS1.1"),
    ],
)
def test_the_same_routes_as_live(fabric, source, root):
    """A database has the areas of its router: that of p1.S1 lacks the PoD of p2.S1."""
    found = table(answer(saved(fabric, source), "--root", root))
    live = live_table(fabric, root)
    assert found
    if (source, root) != ("p1.S1", "p2.S1"):
        assert found.keys() == live.keys()
    assert {prefix: live[prefix] for prefix in found if not found[prefix][1]} == {
        prefix: route for prefix, route in found.items() if not route[1]
    }


@pytest.mark.parametrize("root", ["p1.L1", "SS1.1"])
def test_a_drained_border_router_raises_its_summaries(fabric, root):
    document = saved(fabric, "p1.S1")
    settings = fabric.network.nodes["p1.S1"].settings
    fabric.network.input("p1.S1", RouterSettingsApplied(settings.drain()))
    fabric.network.run_until_quiet(60)
    found = table(answer(document, "--overload", "p1.S1", "--root", root))
    live = live_table(fabric, root)
    assert {prefix: live[prefix] for prefix in found} == found
    fabric.network.input("p1.S1", RouterSettingsApplied(settings))
    fabric.network.run_until_quiet(60)


def _lsa(ls_type: LsType, link_state_id: int, router: int, body) -> dict[str, str]:
    raw = encode_lsa(
        ls_age=1,
        options=2,
        ls_type=ls_type,
        link_state_id=link_state_id,
        advertising_router=router,
        ls_sequence_number=-0x7FFFFFFF,
        body=encode_body(body),
    ).raw
    return {"hex": raw.hex()}


def test_externals_lie_behind_their_asbr_or_behind_the_border_routers_that_lead_to_it(fabric):
    """RFC 2328 §16.4: type 1 metrics are added, type 2 metrics are compared first."""
    document = saved(fabric, "p1.L1")
    spines = [fabric.router_ids[name] for name in ("p1.S1", "p1.S2")]
    asbr, mask = 0x0AFFFF01, length_mask(24)
    for spine, cost in zip(spines, (10, 15), strict=True):
        summary = _lsa(LsType.SUMMARY_ASBR, asbr, spine, SummaryLsa(0, cost))
        document["areas"][0]["lsas"].append(summary)
    for link_state_id, type_2, metric in ((0xC0000200, False, 5), (0xC6336400, True, 20)):
        body = AsExternalLsa(mask, type_2, metric, 0, 0)
        document.setdefault("as", []).append(_lsa(LsType.AS_EXTERNAL, link_state_id, asbr, body))
    routes = {route["prefix"]: route for route in answer(document)["routes"]}
    first, second = routes["192.0.2.0/24"], routes["198.51.100.0/24"]
    assert (first["type"], first["metric"]) == ("external-1", 5 + 10 + 10)
    assert (second["type"], second["metric"]) == ("external-2", 20)
    for route in (first, second):
        assert [hop["hostname"] for hop in route["nexthops"]] == ["p1.S1"]


def test_with_a_forwarding_address_the_way_is_that_to_the_address(fabric):
    """RFC 2328 §16.4 (3): the ASBR must be reachable; the route is that to the address."""
    document = saved(fabric, "p1.L1")
    asbr, far, near = 0x0AFFFF01, fabric.leaf_prefixes["p2.L1"], fabric.leaf_prefixes["p1.L2"]
    spine = fabric.router_ids["p1.S2"]
    document["areas"][0]["lsas"].append(_lsa(LsType.SUMMARY_ASBR, asbr, spine, SummaryLsa(0, 90)))
    document["as"] = [
        _lsa(LsType.AS_EXTERNAL, 0xC0000200, asbr, _external(type_2=False, to=near.network + 9)),
        _lsa(LsType.AS_EXTERNAL, 0xC0000300, asbr, _external(type_2=True, to=far.network + 9)),
        _lsa(LsType.AS_EXTERNAL, 0xC0000400, asbr, _external(type_2=True, to=0x01020304)),
    ]
    routes = {route["prefix"]: route for route in answer(document)["routes"]}
    first, second = routes["192.0.2.0/24"], routes["192.0.3.0/24"]
    assert first["metric"] == 5 + routes[str(near)]["metric"]
    assert [h["weight"] for h in first["nexthops"]] == [1, 1]
    assert second["metric"] == 5
    assert [h["weight"] for h in second["nexthops"]] == [
        h["weight"] for h in routes[str(far)]["nexthops"]
    ]
    assert "192.0.4.0/24" not in routes


def _external(*, type_2: bool, to: int) -> AsExternalLsa:
    return AsExternalLsa(length_mask(24), type_2, 5, to, 0)


def test_an_asbr_inside_the_area_needs_no_summary(fabric):
    document = saved(fabric, "p1.L1")
    inside, leaf = fabric.router_ids["p1.S2"], fabric.router_ids["p1.L2"]
    lsas = document["areas"][0]["lsas"]
    for lsa in lsas:
        raw = bytes.fromhex(lsa["hex"])
        if raw[3] == LsType.ROUTER and raw[4:8] == leaf.to_bytes(4, "big"):
            assert raw[20] == 0
            body = RouterLsa(2, ())
            changed = bytes.fromhex(_lsa(LsType.ROUTER, leaf, leaf, body)["hex"])[20:22] + raw[22:]
            lsa["hex"] = _resign(raw[:20] + changed).hex()
    lsas.append(_lsa(LsType.SUMMARY_ASBR, leaf, inside, SummaryLsa(0, 1)))
    body = AsExternalLsa(length_mask(24), False, 5, 0, 0)
    document["as"] = [_lsa(LsType.AS_EXTERNAL, 0xC0000200, leaf, body)]
    routes = {route["prefix"]: route for route in answer(document)["routes"]}
    assert routes["192.0.2.0/24"]["metric"] == 5 + 20
    assert len(routes["192.0.2.0/24"]["nexthops"]) == 2


def _resign(raw: bytes) -> bytes:
    """The LSA with the next sequence number and a correct checksum."""
    return encode_lsa(
        ls_age=1,
        options=raw[2],
        ls_type=raw[3],
        link_state_id=int.from_bytes(raw[4:8], "big"),
        advertising_router=int.from_bytes(raw[8:12], "big"),
        ls_sequence_number=int.from_bytes(raw[12:16], "big", signed=True) + 1,
        body=raw[20:],
    ).raw
