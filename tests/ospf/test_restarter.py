"""The restarting router (RFC 3623 §2), with helpers around it, and without."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.protocols.igp.events import (
    LinkChanged,
    SendPacket,
)
from fared.protocols.ospf.flooding.database import MIN_LS_ARRIVAL
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.grace import GraceLsa
from fared.protocols.ospf.packet.lsa import MAX_AGE, LsType
from fared.protocols.ospf.packet.packets import Hello, LsUpdate
from tests.igp.engines import Node
from tests.igp.protocols import OSPF, PERIOD
from tests.igp.restarts import (
    come_back,
    helped,
    leave,
    results,
    star,
)
from tests.ospf.harness import Network, router_id


def graces(node: Node) -> list:
    """The grace LSAs that a node sent: (time, age, body)."""
    found = []
    for at, output in node.outputs:
        body = decode_packet(output.payload).body if isinstance(output, SendPacket) else None
        if isinstance(body, LsUpdate):
            for lsa in body.lsas:
                decoded = decode_body(lsa) if lsa.header.ls_type == LsType.OPAQUE_LINK else None
                if isinstance(decoded, GraceLsa):
                    found.append((at, lsa.header.ls_age, decoded))
    return found


@pytest.mark.rfc("RFC 3623 §2.1")
def test_grace_lsas_leave_before_the_first_hello_and_are_flushed_at_the_end():
    net = star(OSPF)
    leave(net, 1, planned=False)
    net.run(1.0)
    node = come_back(net, 1, planned=False)
    net.run(1.3)
    kinds = [
        type(decode_packet(output.payload).body)
        for _, output in node.outputs
        if isinstance(output, SendPacket) and output.ifindex == 2
    ]
    assert kinds[:4] == [LsUpdate] * 3 + [Hello]
    net.run(10.0)
    sent = graces(node)
    assert {body.reason for _, _, body in sent} == {0}
    assert sent[0][2].period == PERIOD
    assert sent[-1][1] == MAX_AGE
    for number in (1, 2, 3, 4):
        interfaces = net.nodes[number].engine.instance.interfaces.values()
        assert not any(len(interface.lsdb) for interface in interfaces)


@pytest.mark.parametrize("away", [0.45, 0.8, 0.95, 1.5])
def test_a_helper_may_compute_its_routes_a_second_after_a_grace_lsa_while_the_neighbor_is_full(
    away,
):
    """BIRD does; it drops an LSA that comes within MinLSArrival of the one before."""
    net = star(OSPF)
    leave(net, 1, planned=True)
    (announced, *_) = [at for at, _, _ in graces(net.nodes[1])]
    net.run(away)
    node = come_back(net, 1, planned=True)
    net.run(3.0)
    installed = next(at for at, _, _ in graces(node) if at >= announced + MIN_LS_ARRIVAL)
    first_hello = next(
        at
        for at, output in node.outputs
        if isinstance(output, SendPacket) and isinstance(decode_packet(output.payload).body, Hello)
    )
    assert first_hello >= installed + 1.0


def test_helpers_help_until_they_have_acknowledged_what_follows_the_exchange():
    """A neighbor that is not Full yet would otherwise advertise the link as lost."""
    net = star(OSPF)
    leave(net, 1, planned=False)
    net.run(1.0)
    node = come_back(net, 1, planned=False)
    net.until(lambda: results(node) == ["completed"], 5.0)
    assert not any(n.helping for n in node.engine.instance.neighbors())
    assert [helped(net, n) for n in (2, 3, 4)] == [[]] * 3
    net.until(lambda: [helped(net, n) for n in (2, 3, 4)] == [["completed"]] * 3, 3.0)


@pytest.mark.rfc("RFC 3623 §2.3")
def test_grace_lsas_are_flushed_even_if_a_neighbor_acknowledges_nothing():
    net = star(OSPF)
    leave(net, 1, planned=True)
    net.run(1.0)
    node = come_back(net, 1, planned=True)
    net.until(lambda: results(node) == ["completed"], 5.0)
    net.stop(4)
    net.until(lambda: helped(net, 2) == ["completed"], 3.5)


@pytest.mark.rfc("RFC 3623 §2.2", "RFC 3623 §3.2 (3)")
def test_a_topology_change_during_the_restart_ends_it_for_all():
    net = star(OSPF)
    leave(net, 1, planned=True)
    net.run(2.0)
    cable = next(c for c in net.cables if {n for n, _ in c.ends} == {9, 2})
    net.set_up(cable, up=False)
    net.run(6.0)
    assert [helped(net, n) for n in (2, 3, 4)] == [["topology-change"]] * 3
    assert not any(router_id(1) in {n.router_id for n in net.neighbors(m)} for m in (2, 3, 4))
    node = come_back(net, 1, planned=True)
    net.until(lambda: net.all_full() and net.in_sync(), 20.0)
    assert results(node) == ["inconsistent-lsa"]


@pytest.mark.rfc("RFC 3623 §2")
def test_nothing_is_originated_during_the_restart():
    net = star(OSPF)
    leave(net, 1, planned=True)
    net.run(1.0)
    node = come_back(net, 1, planned=True)
    net.until(lambda: "Loading" in net.states(1), 5.0)
    assert not results(node)
    assert node.engine.counters.lsdb["originated"] == 0
    assert {body.period for _, _, body in graces(node)} == {PERIOD}
    assert node.engine.restarting
    net.until(lambda: results(node) == ["completed"], 5.0)
    assert not node.engine.restarting


@pytest.mark.rfc("RFC 3623 §2.3")
def test_an_lsa_from_before_the_restart_that_is_no_longer_wanted_is_flushed():
    net = star(OSPF)
    leave(net, 1, planned=True)
    net.run(1.0)
    # The passive interface that advertised a stub network is the same, but TE of link 4 is gone.
    node = net.nodes[1]
    link, settings = node.links.pop(4)
    net.input(4, LinkChanged(*_down(net, 4)))
    node = come_back(net, 1, planned=True)
    net.run(12.0)
    assert len(results(node)) == 1
    own = [key for key in net.database(9) if key.advertising_router == router_id(1)]
    te = [key for key in own if key.link_state_id >> 24 == 1]
    assert link.ifindex not in {key.link_state_id & 0xFFFFFF for key in te}
    assert settings is not None


def _down(net: Network, number: int):
    """The link of a leaf toward router 1, without carrier."""
    link, settings = net.nodes[number].links[2]
    return replace(link, up=False), settings
