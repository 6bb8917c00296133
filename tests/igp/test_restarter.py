"""The restarting router (RFC 3623 §2, RFC 8706 §3.3), with helpers around it, and without."""

from typing import Any

import pytest

from fared.protocols.igp.events import LogRecord
from tests.igp.engines import Node
from tests.igp.protocols import Protocol
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


def ended(net: Any, node: Node, within: float = 5.0) -> list[str]:
    """How the restart of a router ends, within some seconds."""
    net.until(lambda: results(node) != [], within)
    return results(node)


@pytest.mark.rfc("RFC 3623 §2.2", "RFC 8706 §3.3.1")
@pytest.mark.parametrize(
    ("planned", "away"), [(True, 0.7), (False, 0.45)], ids=["planned", "crash"]
)
def test_after_a_restart_no_neighbor_has_lost_an_adjacency_or_seen_a_change(
    protocol: Protocol, planned: bool, away: float
):
    restart_unnoticed(protocol, star(protocol), planned=planned, away=away)


@pytest.mark.rfc("RFC 3623 §5", "RFC 8706 §3.3.1")
def test_a_crash_of_longer_than_the_dead_interval_is_noticed_and_routes_are_right_after(
    protocol: Protocol,
):
    net = star(protocol)
    since = marks(net, 2)
    leave(net, 1, planned=False)
    net.run(1.6 * protocol.dead_interval)
    assert lost(net, since)
    node = come_back(net, 1, planned=False)
    net.until(lambda: protocol.ready(net) and results(node) != [], 20.0)
    assert results(node) == [protocol.unhelped]


@pytest.mark.rfc("RFC 3623 §2.2", "RFC 8706 §3.3.1")
def test_without_helpers_the_restart_ends_and_adjacencies_form_as_ever(protocol: Protocol):
    net = star(protocol, **protocol.graceful(helper=False))
    leave(net, 1, planned=True)
    net.run(1.0)
    node = come_back(net, 1, planned=True)
    net.until(lambda: protocol.ready(net) and results(node) != [], 20.0)
    assert results(node) == [protocol.unhelped]


@pytest.mark.rfc("RFC 3623 §2.2 (2)")
def test_a_neighbor_that_is_gone_ends_the_restart_and_its_link_is_withdrawn(protocol: Protocol):
    net = star(protocol)
    leave(net, 1, planned=True)
    net.stop(4)
    node = come_back(net, 1, planned=True)
    assert ended(net, node, protocol.patience)[0] in {"neighbor-lost", "inconsistent-lsp"}
    net.run(8.0)
    assert not protocol.lists(net, 9, 1, 4)
    assert net.in_sync()


@pytest.mark.rfc("RFC 3623 §5")
def test_all_routers_crashed_at_once_find_nobody_who_remembers_and_start_as_ever(
    protocol: Protocol,
):
    net = star(protocol)
    numbers = tuple(net.nodes)
    for number in numbers:
        leave(net, number, planned=False)
    nodes = [come_back(net, number, planned=False) for number in numbers]
    net.until(lambda: protocol.ready(net) and all(results(node) for node in nodes), 20.0)
    assert {result for node in nodes for result in results(node)} <= protocol.forgotten


def test_a_router_without_neighbors_ends_its_restart(protocol: Protocol):
    """In OSPF after the dead interval, in IS-IS after its requests."""
    net = star(protocol)
    for number in tuple(net.nodes):
        leave(net, number, planned=False)
    node = come_back(net, 1, planned=False)
    assert ended(net, node, protocol.patience + 1.0) == ["no-neighbors"]


@pytest.mark.rfc("RFC 3623 §2", "RFC 8706 §3.4.1")
def test_nothing_is_originated_during_the_restart(protocol: Protocol):
    net = star(protocol)
    leave(net, 1, planned=True)
    for cable in net.cables:
        cable.delay = 0.2
    node = come_back(net, 1, planned=True)
    net.run(0.39)
    assert node.engine.restarting
    assert node.engine.counters.lsdb["originated"] == 0
    assert ended(net, node) == ["completed"]
    assert not node.engine.restarting


@pytest.mark.rfc("RFC 3623 §2.1", "RFC 8706 §3.3.1")
@pytest.mark.parametrize("office", [0, 1, 2], ids=["first", "second", "none"])
def test_on_a_lan_a_router_keeps_its_office_and_restarts_unnoticed(protocol: Protocol, office: int):
    """DR, BDR or none of both; in IS-IS the DIS, or one of the others."""
    net = protocol.network()
    for number in (1, 2, 3):
        net.add(number, **protocol.graceful())
    net.lan(1, 2, 3)
    net.run(15.0)
    assert net.in_sync()
    offices = protocol.designated(net, 1)
    ranked = (*offices, *(n for n in (1, 2, 3) if n not in offices))
    number = ranked[office]
    since = marks(net, *(n for n in (1, 2, 3) if n != number))
    leave(net, number, planned=True)
    net.run(0.7 * protocol.dead_interval)
    node = come_back(net, number, planned=True)
    assert ended(net, node, 10.0) == ["completed"]
    net.run(12.0)
    assert lost(net, since) == []
    assert topology_changes(net, since) == []
    assert {protocol.designated(net, n) for n in (1, 2, 3)} == {offices}
    assert net.in_sync()


def test_a_router_that_starts_again_is_not_taken_for_two(protocol: Protocol):
    """It meets its own advertisements of former times, as if another had its id."""
    net = protocol.network()
    for number in (2, 3, 4):
        net.join(1, number)
    net.run(10)
    net.restart(1)
    net.run(60)
    assert net.nodes[1].engine.contested(net.now) is None
    logs = [log.event for log in net.nodes[1].said(LogRecord)]
    assert f"{protocol.name}-foreign-copies" not in logs
