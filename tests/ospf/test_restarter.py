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
from fared.protocols.ospf.settings import GracefulRestartSettings
from tests.engines import Node
from tests.ospf.harness import FAST, LAN, Network, router_id
from tests.restarts import (
    PERIOD,
    come_back,
    helped,
    leave,
    lost,
    marks,
    results,
    topology_changes,
)


def star(*, helper: bool = True, leaves=(2, 3, 4)) -> Network:
    """Router 1 in the middle of others, which are connected to router 9 as well."""
    net = Network()
    for number in (1, *leaves, 9):
        settings = GracefulRestartSettings(enabled=True, helper=helper)
        net.add(number, graceful_restart=settings, epoch=1.8e9)
    for number in leaves:
        net.join(1, number, FAST)
        net.join(9, number, FAST)
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(12.0)
    return net


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


def restarted(*, planned: bool, away: float) -> None:
    net = star()
    others = (2, 3, 4, 9)
    before = {n: net.database(n) for n in others}
    since = marks(net, *others)
    leave(net, 1, planned=planned)
    net.run(away)
    node = come_back(net, 1, planned=planned)
    net.until(lambda: results(node) == ["completed"], 5.0)
    net.run(8.0)
    assert net.all_full()
    assert net.in_sync()
    assert lost(net, since) == []
    assert topology_changes(net, since) == []
    assert [helped(net, n) for n in (2, 3, 4)] == [["completed"]] * 3
    # All LSAs are there, those of router 1 with the next sequence number.
    after = net.database(9)
    assert set(after) == set(before[9])
    for key, (number, _) in before[9].items():
        own = key.advertising_router == router_id(1)
        assert after[key][0] == number + own


def test_after_a_planned_restart_no_neighbor_has_lost_an_adjacency_or_seen_a_change():
    restarted(planned=True, away=3.0)


def test_after_a_crash_no_neighbor_has_lost_an_adjacency_or_seen_a_change():
    restarted(planned=False, away=2.0)


def test_a_crash_of_longer_than_the_dead_interval_is_noticed_and_routes_are_right_after():
    net = star()
    leave(net, 1, planned=False)
    net.run(6.0)
    node = come_back(net, 1, planned=False)
    net.until(lambda: net.all_full() and net.in_sync(), 20.0)
    assert results(node) == ["inconsistent-lsa"]


def test_without_helpers_the_restart_ends_and_adjacencies_form_as_ever():
    net = star(helper=False)
    leave(net, 1, planned=True)
    net.run(1.0)
    node = come_back(net, 1, planned=True)
    net.until(lambda: net.all_full() and net.in_sync(), 20.0)
    assert results(node) == ["inconsistent-lsa"]


def test_grace_lsas_leave_before_the_first_hello_and_are_flushed_at_the_end():
    net = star()
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
        databases = net.nodes[number].engine.snapshot(net.now).databases
        assert not [d for d in databases if d.scope == "link"]


@pytest.mark.parametrize("away", [0.45, 0.8, 0.95, 1.5])
def test_a_helper_may_compute_its_routes_a_second_after_a_grace_lsa_while_the_neighbor_is_full(
    away,
):
    """BIRD does; it drops an LSA that comes within MinLSArrival of the one before."""
    net = star()
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
    net = star()
    leave(net, 1, planned=False)
    net.run(1.0)
    node = come_back(net, 1, planned=False)
    net.until(lambda: results(node) == ["completed"], 5.0)
    assert node.engine.snapshot(net.now).helped == ()
    assert [helped(net, n) for n in (2, 3, 4)] == [[]] * 3
    net.until(lambda: [helped(net, n) for n in (2, 3, 4)] == [["completed"]] * 3, 3.0)


def test_grace_lsas_are_flushed_even_if_a_neighbor_acknowledges_nothing():
    net = star()
    leave(net, 1, planned=True)
    net.run(1.0)
    node = come_back(net, 1, planned=True)
    net.until(lambda: results(node) == ["completed"], 5.0)
    net.stop(4)
    net.until(lambda: helped(net, 2) == ["completed"], 3.5)


def test_a_topology_change_during_the_restart_ends_it_for_all():
    net = star()
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


def test_a_neighbor_that_is_gone_ends_the_restart_and_its_link_is_withdrawn():
    net = star()
    leave(net, 1, planned=True)
    net.stop(4)
    node = come_back(net, 1, planned=True)
    net.until(lambda: results(node) != [], 4.1)
    net.run(8.0)
    assert results(node) == ["neighbor-lost"]
    assert net.states(1) == ["Full", "Full"]
    assert net.in_sync()


def test_all_routers_crashed_at_once_find_nobody_who_remembers_and_start_as_ever():
    net = star()
    numbers = tuple(net.nodes)
    for number in numbers:
        leave(net, number, planned=False)
    nodes = [come_back(net, number, planned=False) for number in numbers]
    net.until(lambda: net.all_full() and net.in_sync(), 20.0)
    assert all(results(node) == ["no-router-lsa"] for node in nodes)


def test_a_router_without_neighbors_ends_its_restart_after_the_dead_interval():
    net = star()
    for number in tuple(net.nodes):
        leave(net, number, planned=False)
    node = come_back(net, 1, planned=False)
    net.until(lambda: results(node) == ["no-neighbors"], 5.0)


def test_nothing_is_originated_during_the_restart():
    net = star()
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


def test_an_lsa_from_before_the_restart_that_is_no_longer_wanted_is_flushed():
    net = star()
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


def lan_restart(which: str) -> None:
    net = Network()
    for number in (1, 2, 3):
        net.add(
            number, graceful_restart=GracefulRestartSettings(enabled=True, helper=True), epoch=1.8e9
        )
    net.lan(1, 2, 3, settings=LAN)
    net.run(15.0)
    assert net.in_sync()
    view = net.interface(1)
    offices = {"dr": view.designated_router, "bdr": view.backup_designated_router}
    taken = {address & 0xFF for address in offices.values()}
    number = (offices.get(which, 0) & 0xFF) or next(n for n in (1, 2, 3) if n not in taken)
    others = [n for n in (1, 2, 3) if n != number]
    since = marks(net, *others)
    leave(net, number, planned=True)
    net.run(3.0)
    node = come_back(net, number, planned=True)
    net.until(lambda: results(node) != [], 10.0)
    assert results(node) == ["completed"]
    net.run(8.0)
    assert topology_changes(net, since) == []
    for n in (1, 2, 3):
        seen = net.interface(n)
        assert (seen.designated_router, seen.backup_designated_router) == tuple(offices.values())
    assert net.in_sync()


def test_a_designated_router_is_designated_again():
    lan_restart("dr")


def test_a_backup_is_backup_again():
    lan_restart("bdr")


def test_a_router_of_a_lan_without_office_restarts_unnoticed():
    lan_restart("none")
