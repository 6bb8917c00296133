"""Flood suppression of flushes and summaries; ``tests/igp`` has that of links."""

from collections import Counter
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import BACKBONE, AreaId, ipv4_prefix, parse_dotted
from fared.paths.ted.events import AdvertisedRoute, RoutesComputed
from fared.paths.ted.model import PathType
from fared.protocols.ospf.flooding import suppression
from fared.protocols.ospf.lsdb import Lsdb, Scope
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLsa
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.packets import LsUpdate
from fared.protocols.ospf.settings import AreaSettings
from tests.igp.clos import Clos
from tests.igp.protocols import OSPF
from tests.ospf.harness import FAST, Network

SUPPRESSION = 0.1
WIRE = 0.01
"""More than all wires of a path together take."""


def cable(net: Network, *ends: int):
    return next(c for c in net.cables if {node for node, _ in c.ends} == set(ends))


def bodies(net: Network, since: int) -> list[LsUpdate]:
    """The updates that were sent."""
    sent = (decode_packet(p.payload).body for _, _, p in net.trace[since:])
    return [body for body in sent if isinstance(body, LsUpdate)]


@pytest.mark.parametrize("seed", range(4))
def test_the_flush_of_a_te_lsa_goes_in_the_packets_of_the_router_lsa(seed: int):
    """A later flush took as many packets again, 122 instead of 62 updates in a fabric of 4x8."""
    net = Clos(OSPF, 3, 5, seed).net
    before = len(net.trace)
    net.set_up(cable(net, 1, 101), False)
    net.run(3)
    packets = [[lsa.header for lsa in update.lsas] for update in bodies(net, before)]
    assert any(header.ls_type == 10 for headers in packets for header in headers)
    for headers in packets:
        routers = {header.advertising_router for header in headers if header.ls_type == 1}
        assert {header.advertising_router for header in headers} == routers


POD = AreaId(1)


def two_border_routers() -> Network:
    """Border routers 1 and 2 of an area with leaves 101 to 103; 9 is in the backbone."""
    areas = (AreaSettings(POD), AreaSettings(BACKBONE))
    net = Network(1)
    for number in (1, 2):
        net.add(number, areas=areas)
    for leaf in (101, 102, 103):
        net.add(leaf, areas=areas[:1])
        for spine in (1, 2):
            net.join(leaf, spine, replace(FAST, area=POD))
    net.add(9)
    for spine in (1, 2):
        net.join(9, spine)
    net.until(net.all_full, every=0.05)
    net.run(3)
    return net


@pytest.mark.rfc("RFC 2328 §16.2")
def test_summaries_of_a_border_router_reach_other_border_routers_later():
    """They ignore them (RFC 2328 §16.2); all others receive them at once."""
    net, prefix = two_border_routers(), ipv4_prefix(parse_dotted("10.9.0.0"), 24)
    facts = AdvertisedRoute(20, PathType.INTER_AREA, (BACKBONE,), 1e9)
    before, at = len(net.trace), net.now
    net.input(1, RoutesComputed({prefix: facts}, {}))

    def told(number: int) -> bool:
        held = {key.link_state_id for key in net.database(number, POD) if key.ls_type == 3}
        return prefix.network in held

    net.until(lambda: all(told(leaf) for leaf in (101, 102, 103)), every=0.0005)
    assert net.now - at < WIRE
    assert not told(2)
    assert set(OSPF.senders(net, before)) == {1}
    net.until(lambda: told(2), every=0.0005)
    assert 0.25 * SUPPRESSION < net.now - at < SUPPRESSION + WIRE


def test_which_neighbors_get_the_summaries_of_a_router_is_found_once_until_a_router_lsa_changes(
    monkeypatch,
):
    net, looked_up = two_border_routers(), []
    look_up = suppression._router_lsa
    monkeypatch.setattr(
        suppression, "_router_lsa", lambda lsdb, of: looked_up.append(of) or look_up(lsdb, of)
    )

    def advertise(*networks: str) -> int:
        """Advertise prefixes; return for how many neighbors leaf 101 defers its copies."""
        at, leaf = len(looked_up), net.nodes[101].engine.instance
        facts = AdvertisedRoute(20, PathType.INTER_AREA, (BACKBONE,), 1e9)
        prefixes = [ipv4_prefix(parse_dotted(network), 24) for network in networks]
        net.input(1, RoutesComputed(dict.fromkeys(prefixes, facts), {}))
        wanted = {prefix.network for prefix in prefixes}
        lsdb = next(area.lsdb for area in leaf.areas.values())
        net.until(lambda: wanted <= {entry.key.link_state_id for entry in lsdb}, every=0.0005)
        counts.append(len(looked_up) - at)
        deferred = [e.deferred for e in lsdb if e.key.link_state_id in wanted]
        assert len(set(deferred)) == 1
        return deferred[0].bit_count()

    counts: list[int] = []
    assert advertise("10.9.1.0", "10.9.2.0", "10.9.3.0") == 1
    assert advertise("10.9.4.0") == 1
    once, nothing = counts
    assert once <= 3 * 4  # three leaves
    assert nothing == 0
    net.set_up(cable(net, 2, 9), False)
    net.run(3)
    assert advertise("10.9.5.0") == 0  # 2 is no border router any more


def distinct(links: list[RouterLink]) -> list[RouterLink]:
    return list(dict.fromkeys(links))


LINKS = st.lists(
    st.builds(RouterLink, st.sampled_from([1, 1, 2]), st.integers(1, 9), st.just(1), st.just(10)),
    max_size=9,
)


@given(st.lists(st.tuples(st.integers(1, 3), LINKS), max_size=9))
def test_far_ends_follow_the_router_lsas_of_all_routers(history):
    kept, area, present = suppression.FloodSuppression(), Lsdb(Scope.AREA, BACKBONE), {}
    with mock.patch.object(suppression, "_ENDS_KEPT", 2):
        for router, links in history:
            present[router] = RouterLsa(0, tuple(links))
            for known, body in present.items():
                far = Counter(k.link_id for k in body.links if k.link_type == 1)
                assert kept._ends_of(area, known, body) == far
    assert len(kept._ends) <= 2


@given(LINKS.map(distinct), LINKS, st.integers(0, 9), st.integers(0, 3))
def test_links_are_lost_if_a_router_lsa_lacks_them_and_has_no_other(links, other, low, lost):
    """Wherever the others are listed now."""
    before = RouterLsa(0, tuple(links))
    less = links[:low] + links[low + lost :]
    for present in (less, less[::-1], less + other[:1], other):
        gone = set(links) - set(present)
        only = gone and not set(present) - set(links) and all(k.link_type == 1 for k in gone)
        found = suppression._lost_neighbors(before, RouterLsa(0, tuple(dict.fromkeys(present))))
        assert found == ({k.link_id for k in gone} if only else set())
