"""The restarting router (RFC 8706 §3.3, §3.4.1), with helpers around it, and without."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from fared.protocols.igp.events import (
    GracefulRestartRequested,
    LinkChanged,
    SendPacket,
)
from fared.protocols.isis.engine import IsisEngine
from fared.protocols.isis.ids import FIRST_LSP, LAST_LSP, Level, LevelSet, LspId
from fared.protocols.isis.pdu.codec import decode_pdu, peek_type
from fared.protocols.isis.pdu.model import LanHello, P2pHello, PduType
from fared.protocols.isis.pdu.tlvs import IsReachability, Restart, RestartFlag, of_type
from fared.protocols.isis.reacquisition import MOST_REQUESTS, T1, Progress, Reacquisition
from tests.igp.engines import Node
from tests.igp.protocols import ISIS, PERIOD
from tests.igp.restarts import (
    come_back,
    leave,
    lost,
    marks,
    restart_unnoticed,
    results,
    star,
    topology_changes,
)
from tests.isis.net import BOTH, FAST, ONE, TWO, Network, mac, system
from tests.isis.routed import Routers
from tests.packets.wireshark import ETHERNET, NEEDED, assert_sound, dissect

RR, RA, SA, PR, PA = RestartFlag


def flags(node: Node, since: float = 0.0) -> list[int]:
    """The restart flags of the hellos that a node sent, in order, each change once."""
    found: list[int] = []
    for at, output in node.outputs:
        if at < since or not isinstance(output, SendPacket):
            continue
        pdu = decode_pdu(output.payload)
        if isinstance(pdu, P2pHello | LanHello):
            (restart,) = of_type(pdu.tlvs, Restart)[:1] or (Restart(0),)
            if not found or found[-1] != restart.flags:
                found.append(restart.flags)
    return found


def test_with_the_overload_bit_at_start_up_a_restart_sets_none():
    net = star(ISIS, overload_on_startup=60.0)
    net.run(60.0)
    restart_unnoticed(ISIS, net, planned=True, away=0.4)


@pytest.mark.rfc("RFC 8706 §3.2.3")
def test_a_planned_restart_is_announced_to_all_and_acknowledged():
    net = star(ISIS)
    began = net.now
    net.input(1, GracefulRestartRequested(PERIOD))
    assert not net.nodes[1].engine.restart_announced
    net.until(lambda: net.nodes[1].engine.restart_announced, 0.1)
    assert flags(net.nodes[1], began) == [PR]
    assert flags(net.nodes[2], began) == [PA]


@pytest.mark.rfc("RFC 8706 §3.3.1")
def test_hellos_request_the_restart_until_the_database_is_described():
    net = star(ISIS)
    leave(net, 1, planned=False)
    net.run(1.0)
    began = net.now
    node = come_back(net, 1, planned=False)
    net.run(5.0)
    assert flags(node, began) == [RR, 0]
    assert RA in flags(net.nodes[2], began)


def test_a_router_that_does_not_restart_gracefully_ends_its_adjacencies():
    net = star(ISIS)
    net.nodes[1].engine.instance.settings = replace(net.nodes[1].settings, restarts=False)
    since = marks(net, 2)
    net.input(1, GracefulRestartRequested(PERIOD))
    net.run(0.1)
    assert lost(net, since)
    assert net.nodes[1].engine.restart_announced


def test_a_topology_change_during_the_restart_ends_it():
    net = star(ISIS)
    leave(net, 1, planned=True)
    net.run(1.0)
    cable = next(c for c in net.cables if {n for n, _ in c.ends} == {1, 2})
    net.set_up(cable, up=False)
    net.run(1.0)
    node = come_back(net, 1, planned=True)
    net.until(lambda: results(node) != [], 5.0)
    assert results(node) == ["inconsistent-lsp"]
    net.settle()
    assert {key >> 16 for key in net.database(9)} == {1, 2, 3, 4, 9}


def without(net: Network, number: int, kind: PduType) -> None:
    """From now on a router receives no PDU of a kind."""
    deliver = net.deliver

    def dropping(end, frame) -> None:
        if end[0] != number or peek_type(frame.payload) is not kind:
            deliver(end, frame)

    net.deliver = dropping  # type: ignore[method-assign]


@pytest.mark.rfc("RFC 8706 §3.3.1")
def test_a_neighbor_that_does_not_describe_its_database_is_asked_three_times():
    net = star(ISIS, leaves=(2,))
    leave(net, 1, planned=True)
    without(net, 1, PduType.L2_CSNP)
    node = come_back(net, 1, planned=True)
    net.run((MOST_REQUESTS - 1) * T1 + 1.0)
    assert flags(node) == [RR]
    net.until(lambda: results(node) == ["no-helper"], T1)
    assert flags(node) == [RR, 0]


@pytest.mark.rfc("RFC 8706 §3.4.1")
def test_databases_that_stay_incomplete_end_the_restart_with_t3_and_the_overload_bit():
    net = star(ISIS, leaves=(2,))
    leave(net, 1, planned=True)
    without(net, 1, PduType.L2_LSP)
    node = come_back(net, 1, planned=True, remaining=3.0)
    net.until(lambda: results(node) != [], 4.0)
    assert results(node) == ["grace-period-expired"]
    net.until(lambda: net.nodes[1].engine.overloaded, 0.1)
    del net.deliver
    net.settle()
    assert not net.nodes[1].engine.overloaded


def test_an_lsp_of_a_former_pseudonode_is_purged_after_the_restart():
    """The DIS restarts with priority 0."""
    net = Network()
    for number in (1, 2, 3):
        net.add(number, **ISIS.graceful())
    net.lan(1, 2, 3)
    net.settle()
    (number,) = ISIS.designated(net, 1)
    leave(net, number, planned=True)
    net.run(2.0)
    link, settings = net.nodes[number].links[2]
    net.nodes[number].links[2] = (link, replace(settings, priority=0))
    node = come_back(net, number, planned=True)
    net.until(lambda: results(node) != [], 10.0)
    net.run(20.0)
    (live,) = {key for key in net.database(node.name) if key & 0xFF00}
    assert live >> 16 != number


def test_what_is_leaked_between_the_levels_stays_advertised():
    net = Network()
    net.add(1, levels=ONE, **ISIS.graceful())
    net.add(2, levels=BOTH, **ISIS.graceful())
    net.add(3, levels=TWO, **ISIS.graceful())
    net.join(1, 2)
    net.join(2, 3)
    routers = Routers(net)
    net.run(10.0)
    routers.settle()
    since = marks(net, 1, 3)
    leave(net, 2, planned=True)
    node = come_back(net, 2, planned=True)
    routers = Routers(net)
    net.until(lambda: not node.engine.restarting, 10.0)
    routers.settle()
    assert results(node) == ["completed"]
    assert topology_changes(net, since) == []
    assert routers.route(3, "10.255.0.1/32") is not None


# The restart on one circuit, as a value


@pytest.mark.rfc("RFC 8706 §3.3.1")
def test_requests_end_with_the_acknowledgment_and_a_complete_set_of_csnps():
    state = Reacquisition().requested().acknowledged(LevelSet.BOTH)
    state = state.described(Level.ONE, FIRST_LSP, LAST_LSP)
    assert state.requesting
    state = state.described(Level.TWO, FIRST_LSP, LspId(7))
    assert state.requesting
    assert state.described(Level.TWO, LspId(9), LAST_LSP).requesting, "a gap"
    assert state.described(Level.TWO, LspId(8), LAST_LSP).progress is Progress.RESTORED


@pytest.mark.rfc("RFC 8706 §3.3.1")
def test_csnps_may_come_before_the_acknowledgment():
    state = Reacquisition().requested().described(Level.TWO, FIRST_LSP, LAST_LSP)
    assert state.requesting
    assert state.acknowledged(LevelSet.TWO).progress is Progress.RESTORED


def test_a_neighbor_that_does_not_answer_gets_three_requests():
    state = Reacquisition()
    for _ in range(MOST_REQUESTS):
        state = state.requested()
        assert state.requesting
    assert state.requested().progress is Progress.FAILED


def begin_anew(net: Network, number: int, **changes) -> Node:
    """Start a new process with the same links, which knows of no former life."""
    old = net.nodes[number]
    settings = replace(old.settings, **changes)
    engine = IsisEngine(settings, random.Random(5))
    node = net.nodes[number] = Node(number, engine, 5, settings, links=old.links)
    for link, circuit in node.links.values():
        net.input(number, LinkChanged(link, circuit))
    return node


def lists(net: Network, at: int, neighbor: int) -> bool:
    """Whether a router advertises its adjacency with another one."""
    lsp = net.lsp(at, at)
    listed = {n.neighbor for tlv in of_type(lsp.tlvs, IsReachability) for n in tlv.neighbors}
    return system(neighbor) << 8 in listed


def adjacent(net: Network, at: int, neighbor: int) -> bool:
    circuits = net.nodes[at].engine.instance.circuits.values()
    known = (c.adjacency for c in circuits if c.adjacency is not None)
    return any(a.up and a.system_id == system(neighbor) for a in known)


@pytest.mark.rfc("RFC 8706 §3.3.2", "RFC 8706 §3.4.2")
@pytest.mark.parametrize("helper", [True, False])
def test_a_router_that_starts_is_not_advertised_before_it_has_the_database(helper: bool):
    """By neighbors that understand it, which a router that helps nobody asks as well."""
    net = star(ISIS)
    leave(net, 1, planned=False)
    net.run(FAST.hello_interval * FAST.hello_multiplier + 2)
    assert not lists(net, 2, 1)
    begun = net.now
    node = begin_anew(net, 1, suppress_adjacency=True, restart_helper=helper)
    early = []
    while not results(node, "suppress-adjacency-ended") and net.now < begun + 30:
        net.run(0.05)
        early += [adjacent(net, at, 1) and not lists(net, at, 1) for at in (2, 3, 4)]
        if node.engine.instance.starting:
            assert not any(lists(net, at, 1) for at in (2, 3, 4))
    assert any(early), "their adjacencies were up, and not advertised"
    assert results(node, "suppress-adjacency-ended") == ["completed"]
    assert net.database(1).keys() >= net.database(9).keys()
    assert flags(node, begun) == [SA, 0]
    net.until(lambda: all(lists(net, at, 1) for at in (2, 3, 4)), 5.0)


def test_a_graceful_restart_does_not_suppress_adjacencies():
    net = star(ISIS, suppress_adjacency=True)
    leave(net, 1, planned=True)
    since = marks(net, 2, 3, 4, 9)
    node = come_back(net, 1, planned=True)
    net.until(lambda: results(node) != [], 5.0)
    assert results(node) == ["completed"]
    assert topology_changes(net, since) == []
    assert SA not in flags(node)


@NEEDED
def test_wireshark_finds_no_malformed_packet_of_a_restart(tmp_path):
    """Announced, requested, acknowledged: by this router and by its neighbors."""
    net = star(ISIS, leaves=(2,))
    begun = net.now
    leave(net, 1, planned=True)
    node = come_back(net, 1, planned=True)
    net.until(lambda: results(node) != [], 5.0)
    frames = [frame(name, output) for at, name, output in net.trace if at >= begun]
    dissected = dissect(tmp_path, ETHERNET, frames)
    assert_sound(dissected)
    assert dissected.count("ISO 10589 ISIS") >= len(frames)
    for flag in ("Restart Request", "Restart Acknowledgment"):
        assert f"= {flag}: True" in dissected, flag


def frame(name: int, output: SendPacket) -> bytes:
    """An 802.3 frame with the LLC header of IS-IS."""
    content = b"\xfe\xfe\x03" + output.payload
    addresses = output.destination.to_bytes(6, "big") + mac(name, output.ifindex).to_bytes(6, "big")
    return addresses + len(content).to_bytes(2, "big") + content
