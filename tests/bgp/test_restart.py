"""Graceful restart (RFC 4724) of a spine, and what happens where it is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.bfd import BfdChanged, BfdSettings, BfdStatus, BfdWanted
from fared.core.ids import RouterId
from fared.extensions.sim.fabric import Fabric, clos3
from fared.protocols.bgp.packet.attributes import AsPath
from fared.protocols.bgp.settings import BgpRestartSettings
from fared.protocols.igp.events import GracefulRestartBegun
from fared.protocols.igp.restart import COMPLETED
from fared.router.events import To
from tests.bgp.fabrics import (
    apply_neighbor,
    emitted,
    engine,
    neighbor,
    ratio,
    shares,
    speakers,
    started,
)

EVEN = ratio({"S1": 1, "S2": 1})
GRACEFUL = BgpRestartSettings(enabled=True, restart_time=30, stale_time=60.0)
BEGUN = GracefulRestartBegun(30.0, planned=True)


def spines(settings: BgpRestartSettings = GRACEFUL) -> Fabric:
    return started(clos3(2, 2, builder=speakers(graceful_restart=settings)))


def writes(fabric: Fabric, name: str) -> list[str]:
    """What a node writes to its kernel from now on."""
    kernel, found = fabric.network.nodes[name].kernel, []
    apply = kernel.apply

    def noting(operations):
        found.extend(type(operation).__name__ for operation in operations)
        return apply(operations)

    kernel.apply = noting
    return found


@pytest.mark.rfc("RFC 4724 §4")
def test_a_spine_restarts_and_no_kernel_changes():
    fabric = spines()
    network = fabric.network
    network.run_for(6.0)  # after which unused groups are gone
    changes = [writes(fabric, name) for name in network.nodes]
    network.kill("S1")
    network.run_for(2.0)
    assert neighbor(fabric, "L1", "S1").agreed is None
    assert shares(fabric, "L1", "L2") == EVEN
    network.start("S1", BEGUN)
    assert engine(fabric, "S1").restarting
    network.run_for(10.0)
    assert neighbor(fabric, "L1", "S1").agreed is not None
    assert network.nodes["S1"].running.startup.ready
    assert changes == [[], [], [], []]
    (ended,) = [log for log in network.nodes["S1"].logs if log.event == "graceful-restart-ended"]
    assert ended.fields["result"] == COMPLETED
    assert not neighbor(fabric, "L1", "S1").stale


@pytest.mark.rfc("RFC 4724 §4.2")
def test_routes_of_a_spine_that_does_not_return_are_lost_after_its_time():
    fabric = spines()
    fabric.network.kill("S1")
    fabric.network.run_for(29.0)
    assert shares(fabric, "L1", "L2") == EVEN
    fabric.network.run_for(2.0)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})


@pytest.mark.rfc("RFC 4724 §4.2")
def test_what_it_does_not_tell_again_is_withdrawn_when_it_has_told_all():
    fabric = spines()
    fabric.network.kill("S1")
    fabric.network.set_link("S1", "L2", up=False)
    fabric.network.run_for(1.0)
    assert shares(fabric, "L1", "L2") == EVEN
    fabric.network.start("S1")
    fabric.network.run_for(3.0)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})


@pytest.mark.rfc("RFC 5882 §4.3")
@pytest.mark.parametrize("independent", [False, True])
def test_bfd_that_fails_meanwhile_counts_if_it_outlives_the_control_plane(independent):
    fabric = spines()
    wanted = emitted(fabric, "L1")
    apply_neighbor(fabric, "L1", ["S1"], bfd=BfdSettings())
    (session,) = [one for one in wanted if isinstance(one, BfdWanted)]
    up = BfdChanged(session.ifindex, session.remote, BfdStatus.UP)
    down = replace(up, status=BfdStatus.DOWN, independent=independent)
    fabric.network.input("L1", To("bgp", up))
    fabric.network.kill("S1")
    fabric.network.run_for(1.0)
    assert shares(fabric, "L1", "L2") == EVEN
    fabric.network.input("L1", To("bgp", down))
    fabric.network.run_for(0.02)
    assert shares(fabric, "L1", "L2") == (ratio({"S2": 1}) if independent else EVEN)


@pytest.mark.parametrize("settings", [GRACEFUL, BgpRestartSettings()], ids=["kept", "lost"])
def test_a_spine_may_return_with_another_as_and_router_id(settings):
    fabric = spines(settings)
    node = fabric.network.nodes["S1"]
    fabric.network.kill("S1")
    fabric.network.run_for(1.0)
    other = {"local_as": 64999, "router_id": RouterId(0x0AFF6363)}
    node.settings = node.settings.with_protocol("bgp", **other)
    fabric.network.start("S1")
    fabric.network.run_for(5.0)
    peer = neighbor(fabric, "L1", "S1").peer
    assert (peer.remote_as, peer.identifier) == (64999, 0x0AFF6363)
    paths = engine(fabric, "L1").instance.ribs[4].paths(fabric.leaf_prefixes["L2"])
    first = {path.peer.remote_as: path.path.attributes.find(AsPath) for path in paths}
    assert len(first) == 2
    assert first[64999].path[0].numbers[0] == 64999
    assert shares(fabric, "L1", "L2") == EVEN
    assert not neighbor(fabric, "L1", "S1").stale


def test_a_link_that_is_lost_meanwhile_ends_it_at_once():
    fabric = spines()
    fabric.network.kill("S1")
    fabric.network.run_for(1.0)
    fabric.network.set_link("S1", "L1", up=False)
    fabric.network.run_for(0.02)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})


def test_without_graceful_restart_the_routes_of_a_killed_spine_are_lost_at_once():
    fabric = spines(BgpRestartSettings())
    fabric.network.kill("S1")
    fabric.network.run_for(0.05)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    fabric.network.start("S1")
    fabric.network.run_for(3.0)
    assert shares(fabric, "L1", "L2") == EVEN


@pytest.mark.rfc("RFC 4724 §4.1")
def test_a_restart_ends_though_a_neighbor_does_not_return():
    fabric = spines()
    fabric.network.kill("S1")
    fabric.network.kill("L2")
    fabric.network.start("S1", BEGUN)
    fabric.network.run_for(29.0)
    assert engine(fabric, "S1").restarting
    assert shares(fabric, "S1", "L2") == ratio({"L2": 1})
    fabric.network.run_for(10.0)
    assert not engine(fabric, "S1").restarting
    assert shares(fabric, "S1", "L2") == {}
    logs = fabric.network.nodes["S1"].logs
    (ended,) = [one for one in logs if one.event == "graceful-restart-ended"]
    assert ended.fields["result"] == "not all neighbors have told their routes: L2"


@pytest.mark.rfc("RFC 4724 §4.1")
def test_neighbors_that_restart_together_do_not_wait_for_each_other():
    fabric = spines()
    for name in ("S1", "L1"):
        fabric.network.kill(name)
    fabric.network.run_for(1.0)
    for name in ("S1", "L1"):
        fabric.network.start(name, BEGUN)
    fabric.network.run_for(8.0)
    assert not engine(fabric, "S1").restarting
    assert not engine(fabric, "L1").restarting
    for name in ("S1", "L1"):
        logs = fabric.network.nodes[name].logs
        (ended,) = [one for one in logs if one.event == "graceful-restart-ended"]
        assert ended.fields["result"] == COMPLETED
    assert shares(fabric, "L1", "L2") == shares(fabric, "L2", "L1") == EVEN
