"""Virtual links between routers of other implementations (RFC 2328 §15): fared has none."""

import pytest

from fared.core.ids import dotted, length_mask, parse_dotted, parse_prefix
from fared.protocols.ospf.packet.bodies import (
    B_BIT,
    V_BIT,
    RouterLink,
    RouterLinkType,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.body import encode_router_lsa, encode_summary_lsa
from fared.protocols.ospf.packet.lsa import LsType, encode_lsa
from tests.offline.fabrics import answer

SAVED = """
000102010a0000010a000001800000019f4a0030000000020a0000020a0900000100000a0a090000fffffffe0300000a
000102010a0000020a00000280000001049c003c010000030a0000010a0900010100000a0a090000fffffffe0300000a
    0a0000030a09010004000014
000102010a0000030a00000380000001a55a0024010000010a0000020a09010304000014
000102030a1400000a00000380000001d159001cffff000000000007
"""
"""Area 0 of 10.0.0.1: a point-to-point link to 10.0.0.2, whose virtual link leads to 10.0.0.3."""


def test_a_path_crosses_the_virtual_link_of_other_routers():
    """RFC 2328 §16.1 (2): SPF skips links to stub networks only."""
    area = {
        "area": "0.0.0.0",
        "lsas": [{"hex": lsa} for lsa in SAVED.replace("\n    ", "").split()],
    }
    (route,) = [r for r in routes([area], "10.0.0.1") if r["prefix"] == "10.20.0.0/16"]
    assert (route["metric"], route["nexthops"][0]["neighbor"]) == (37, "10.0.0.2")


def routes(areas: list, root: str) -> list:
    document = {"format": "fared-lsdb/1", "proto": "ospf", "router_id": root, "areas": areas}
    return answer(document, "--root", root)["routes"]


# A and B are joined by a virtual link through area 1, in which X is between them. X is in the
# backbone as well, where it has a link to A only. The prefix is behind B, in the backbone.

A, B, X = (parse_dotted(f"10.0.0.{n}") for n in (1, 2, 3))
PREFIX = parse_prefix("10.20.0.0/16")
VIA = RouterLinkType.POINT_TO_POINT


def lsa(kind: int, of: int, body: bytes, link_state_id: int | None = None) -> dict:
    encoded = encode_lsa(
        ls_age=1,
        options=2,
        ls_type=kind,
        link_state_id=of if link_state_id is None else link_state_id,
        advertising_router=of,
        ls_sequence_number=-0x7FFFFFFF,
        body=body,
    )
    return {"hex": encoded.raw.hex()}


def router(of: int, flags: int, *links: tuple[int, int, int]) -> dict:
    """A router LSA with links (type, far end, metric); the link data names both ends."""
    listed = [RouterLink(kind, far, of << 8 & 0xFFFFFF00 | far & 0xFF, m) for kind, far, m in links]
    return lsa(LsType.ROUTER, of, encode_router_lsa(RouterLsa(flags, tuple(listed))))


def summary(of: int, metric: int) -> dict:
    body = encode_summary_lsa(SummaryLsa(length_mask(PREFIX.length), metric))
    return lsa(LsType.SUMMARY_NETWORK, of, body, PREFIX.network)


def crossed(direct: int = 10) -> list:
    """Both areas; ``direct`` is the cost of X's link to A in the backbone."""
    stub = RouterLink(RouterLinkType.STUB, PREFIX.network, length_mask(PREFIX.length), 5)
    behind = RouterLsa(B_BIT, (RouterLink(4, A, 0x0A010202, 20), stub))
    backbone = [
        router(A, B_BIT, (4, B, 20), (VIA, X, direct)),
        router(X, B_BIT, (VIA, A, direct)),
        lsa(LsType.ROUTER, B, encode_router_lsa(behind)),
    ]
    transit = [
        router(A, B_BIT | V_BIT, (VIA, X, 10)),
        router(X, B_BIT, (VIA, A, 10), (VIA, B, 10)),
        router(B, B_BIT | V_BIT, (VIA, X, 10)),
        summary(A, 25),
        summary(B, 5),
    ]
    return [{"area": "0.0.0.0", "lsas": backbone}, {"area": "0.0.0.1", "lsas": transit}]


def reached(root: int, direct: int = 10) -> tuple:
    (route,) = [r for r in routes(crossed(direct), dotted(root)) if r["prefix"] == str(PREFIX)]
    return route["metric"], route["type"], [hop["neighbor"] for hop in route["nexthops"]]


@pytest.mark.parametrize("direct", [1, 10, 100])
def test_a_border_router_in_the_transit_area_goes_straight_to_the_far_end(direct):
    """RFC 2328 §16.3: A forwards what crosses its virtual link over X, which must not return it."""
    assert reached(X, direct) == (15, "intra-area", [dotted(B)])


def test_the_end_of_a_virtual_link_forwards_over_the_transit_area():
    """RFC 2328 §16.3: its summaries tell the next hops of paths that begin with a virtual link."""
    assert reached(A) == (25, "intra-area", [dotted(X)])


def test_without_a_virtual_link_summaries_of_another_area_are_not_examined():
    """RFC 2328 §16.2: only those of the backbone, at an area border router."""
    areas = crossed()
    areas[1]["lsas"][0] = router(A, B_BIT, (VIA, X, 10))
    areas[1]["lsas"][2] = router(B, B_BIT, (VIA, X, 10))
    (route,) = [r for r in routes(areas, dotted(X)) if r["prefix"] == str(PREFIX)]
    assert route["nexthops"][0]["neighbor"] == dotted(A)
