"""The LSAs, LSPs and computations that a failed and restored link causes: no more than needed."""

import pytest

from fared.extensions.sim.fabric import Fabric, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.network import Network, link_events
from fared.paths.ted.events import LocalLinksChanged, TedUpdated
from fared.protocols.igp import events as igp
from fared.protocols.ospf.origination.external import External
from fared.router import events
from tests.sim.externals import announce

SETTLED = 3.0
PROTOCOLS = {"ospf": clos3, "isis": clos3_isis}


@pytest.fixture(params=PROTOCOLS)
def fabric(request) -> Fabric:
    """2 spines and 3 leaves, started and quiet."""
    made = PROTOCOLS[request.param](2, 3, network=Network(seed=3))
    made.network.start_all()
    made.network.run_until_quiet(60)
    made.network.run_for(SETTLED)
    return made


def originated(fabric: Fabric) -> int:
    """How many LSAs or LSPs all routers have issued so far."""
    return sum(
        count
        for router in fabric.network.routers()
        for instance in router.instances.values()
        for name, count in instance.engine.counters.lsdb.items()
        if name == "originated"
    )


def runs(fabric: Fabric) -> dict[str, int]:
    """How often each router has computed."""
    return {name: len(node.running.journal.spf_runs) for name, node in fabric.network.nodes.items()}


def test_each_end_advertises_a_healed_link_once_and_every_router_computes_once(fabric):
    """What the first end tells changes no path: it waits for the word of the other."""
    network = fabric.network
    network.set_link("S1", "L1", up=False)
    network.run_for(SETTLED)
    issued, before = originated(fabric), runs(fabric)
    network.set_link("S1", "L1", up=True)
    network.run_for(SETTLED)
    assert {name: after - before[name] for name, after in runs(fabric).items()} == dict.fromkeys(
        before, 1
    )
    te_lsas = 2 if network.nodes["S1"].settings.protocols.get("ospf") else 0
    assert originated(fabric) - issued == 2 + te_lsas


def test_a_subnet_without_a_neighbor_is_advertised(fabric):
    """Half a second later: nobody came."""
    network = fabric.network
    network.set_link("S1", "L1", up=False)
    network.run_for(SETTLED)
    network.kill("S1")
    network.run_for(6)
    issued = originated(fabric)
    network.set_link("S1", "L1", up=True)
    network.run_for(0.3)
    assert originated(fabric) == issued
    network.run_for(0.3)
    assert originated(fabric) == issued + 1


def test_a_router_that_loses_a_link_floods_before_it_computes(fabric):
    """Neighbors work while we do."""
    network = fabric.network
    port, node = network.find_port("S1", "L1"), network.nodes["S1"]
    port.admin_up = False
    node.kernel.link_down(port.ifindex)
    router = node.running
    for event in link_events(node, port):
        router.handle(event, network.now)
    kinds = [
        [type(getattr(output, "event", output)) for output in router.take_outputs()]
        for _ in range(3)
    ]
    assert igp.SendPacket in kinds[0]
    assert events.Computed not in kinds[0]
    assert events.Computed in kinds[1]


def test_a_lost_link_is_flooded_before_its_next_hops_are_followed_and_routes_written(fabric):
    """The kernel has removed them itself; one batch writes what else changes."""
    network = fabric.network
    port, node = network.find_port("S1", "L1"), network.nodes["S1"]
    router = node.running
    port.admin_up = False
    node.kernel.link_down(port.ifindex)

    def followed() -> bool:
        hops = router.planner.installed.nexthops.values()
        return all(ifindex != port.ifindex for ifindex, *_ in hops)

    turns = []
    for event in link_events(node, port):
        router.handle(event, network.now)
    while outputs := router.take_outputs():
        kinds = [type(getattr(output, "event", output)) for output in outputs]
        turns.append((igp.SendPacket in kinds, kinds.count(events.ApplyFib), followed()))
    assert turns == [(True, 0, False), (False, 1, True)]


def test_packets_are_sent_before_the_ted_is_updated(fabric):
    """The packets of a lost link do not wait for the own description of the router."""
    network = fabric.network
    port, node = network.find_port("S1", "L1"), network.nodes["S1"]
    port.admin_up = False
    (instance,) = node.running.instances.values()
    for event in link_events(node, port):
        node.running.handle(event, network.now)
    first, second = (list(map(type, instance.engine.take_outputs())) for _ in range(2))
    assert igp.SendPacket in first
    assert not {TedUpdated, LocalLinksChanged} & set(first)
    assert {TedUpdated, LocalLinksChanged} <= set(second)


def test_packets_are_sent_before_interfaces_are_read_for_redistribution(monkeypatch):
    """What is redistributed does not change with most links that are lost."""
    fabric = clos3(2, 3, network=Network(seed=3))
    network, read, reads = fabric.network, External._read_interfaces, []
    announce(fabric, "S1")
    network.start_all()
    network.run_until_quiet(60)
    port, node = network.find_port("S1", "L1"), network.nodes["S1"]
    port.admin_up = False
    (instance,) = node.running.instances.values()
    for event in link_events(node, port):
        node.running.handle(event, network.now)
    monkeypatch.setattr(External, "_read_interfaces", lambda own: reads.append(own) or read(own))
    assert igp.SendPacket in map(type, instance.engine.take_outputs())
    assert not reads
    instance.engine.take_outputs()
    assert len(reads) == 1


def test_a_lost_link_costs_every_router_one_computation_at_once(fabric):
    """A lost link costs everybody one computation at once; what the other end says can wait."""
    network = fabric.network
    before = runs(fabric)
    network.set_link("S1", "L1", up=False)
    network.run_for(0.04)
    done = {name: after - before[name] for name, after in runs(fabric).items()}
    assert done == dict.fromkeys(before, 1)
