"""Turns and ticks of a quiet router, which only sends hellos: the same packets in fewer calls."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fared.extensions.sim.fabric import clos3
from fared.extensions.sim.network import Network
from fared.paths.ted.events import TedUpdated
from fared.protocols.igp import events as igp
from fared.protocols.igp.engine import ProcessEngine
from fared.protocols.ospf.engine import OspfEngine
from fared.router import events
from fared.router.router import Router
from tests.work import counting_calls

Sent = list[tuple[float, str, int, bytes]]


def a_minute(monkeypatch: pytest.MonkeyPatch) -> tuple[Sent, dict[str, object]]:
    """All packets of a fabric that starts, is quiet, loses a link and a router, and heals."""
    sent: Sent = []
    network = Network(seed=5)
    send = network._send

    def record(node: SimpleNamespace, proto: str, packet: igp.SendPacket) -> None:
        sent.append((network.now, node.name, packet.ifindex, packet.payload))
        send(node, proto, packet)

    monkeypatch.setattr(network, "_send", record)
    clos3(2, 3, network=network)
    network.start_all()
    network.run_for(25.0)
    network.set_link("S1", "L1", up=False)
    network.run_for(12.0)
    network.set_link("S1", "L1", up=True)
    network.run_for(23.0)
    return sent, {name: node.running.table.routes for name, node in network.nodes.items()}


def test_all_packets_are_those_of_a_router_that_settles_everything_at_each_tick(monkeypatch):
    quick = a_minute(monkeypatch)
    monkeypatch.setattr(OspfEngine, "_send_alone", ProcessEngine._send_alone)
    assert a_minute(monkeypatch) == quick
    assert len(quick[0]) > 200


def quiet() -> tuple[Network, Router]:
    """A leaf with four neighbors that has been quiet for a while."""
    network = Network(seed=5)
    clos3(4, 2, network=network)
    network.start_all()
    network.run_for(60.0)
    return network, network.nodes["L1"].running


def test_a_tick_that_only_sends_hellos_takes_one_turn():
    _, router = quiet()
    due = router.next_deadline()
    router.tick(due)
    packets = router.take_outputs()
    assert [type(output.event) for output in packets] == [igp.SendPacket] * 4
    assert router.settled
    assert router.take_outputs() == []
    assert router.next_deadline() > due


def test_what_such_a_tick_costs():
    _, router = quiet()
    due = router.next_deadline()
    with counting_calls() as calls:
        router.tick(due)
        router.take_outputs()
        router.next_deadline()
    assert calls.count < 200


def test_an_input_after_the_tick_is_processed_with_its_hellos():
    network, router = quiet()
    due = router.next_deadline()
    router.tick(due)
    router.handle(igp.LinkRemoved(network.find_port("L1", "S1").ifindex), due)
    found: list[events.Output] = []
    while outputs := router.take_outputs():
        found += outputs
    hellos = [
        o for o in found if isinstance(o, events.From) and isinstance(o.event, igp.SendPacket)
    ]
    assert len(hellos) >= 3
    assert any(isinstance(output, events.ApplyFib) for output in found)


def test_an_ospf_engine_that_has_published_needs_no_further_turn(monkeypatch):
    """It sends, and its router installs, what it would with another one: there is nothing left."""
    quick = a_minute(monkeypatch)
    monkeypatch.setattr(OspfEngine, "_ends_with_publishing", False)
    assert a_minute(monkeypatch) == quick


def test_a_lost_link_is_settled_once_it_is_published():
    network, router = quiet()
    engine = router.instances["ospf"].engine
    engine.handle(igp.LinkRemoved(network.find_port("L1", "S1").ifindex), network.now)
    assert any(isinstance(output, igp.SendPacket) for output in engine.take_outputs())
    assert not engine.settled
    assert any(isinstance(output, TedUpdated) for output in engine.take_outputs())
    assert engine.settled
    assert engine.take_outputs() == []
