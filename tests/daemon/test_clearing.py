"""``clear`` and ``log level``: adjacencies form again, counters and levels change for a while."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from fared.daemon.people.clearing import clear_neighbor
from fared.extensions.sim.fabric import clos3
from fared.extensions.sim.levels import clos3_isis
from fared.management.api.client import DaemonRefusedError
from fared.management.api.requests import ClearNeighborRequest
from fared.management.documents.errors import CommandError
from fared.management.documents.views import protocol
from fared.protocols.igp.counters import PacketCounters
from fared.router import events
from tests.api.seen import seen_from
from tests.bgp.fabrics import apply_neighbor, neighbor, speakers, started
from tests.daemon.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


@pytest.fixture(params=[clos3, clos3_isis], ids=["ospf", "isis"])
def fabric(request):
    fabric = request.param(2, 2)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60.0)
    return fabric


def states(fabric, router, name=None):
    found = protocol.neighbors(seen_from(fabric, router), name).neighbors
    return {row.hostname: (row.state, row.flaps) for row in found}


def clear(fabric, router, name, proto=None, soft=False):
    """Clear as the daemon does; return the answer."""

    def to_router(proto, interface, cleared):
        fabric.network.input(router, events.To(proto, cleared))

    views = SimpleNamespace(context=lambda: seen_from(fabric, router))
    operation = SimpleNamespace(clear_neighbor=to_router)
    return clear_neighbor(
        views, operation, ClearNeighborRequest(neighbor=name, proto=proto, soft=soft)
    )


def test_a_cleared_adjacency_ends_at_both_ends_and_forms_again(fabric):
    (good,) = {state for state, _ in states(fabric, "L1").values()}
    answer = clear(fabric, "L1", "S1")
    assert [(row.hostname, row.interface) for row in answer.neighbors] == [("S1", "S1")]
    fabric.network.run_until_quiet(60.0)
    assert states(fabric, "L1") == {"S1": (good, 1), "S2": (good, 0)}
    assert states(fabric, "S1") == {"L1": (good, 1), "L2": (good, 0)}


def test_the_adjacency_is_down_at_once(fabric):
    (good,) = {state for state, _ in states(fabric, "L1").values()}
    clear(fabric, "L1", "S1")
    state, _ = states(fabric, "L1").get("S1", ("Down", 1))
    assert state != good


def test_a_neighbor_that_is_not_there_is_not_cleared(fabric):
    with pytest.raises(CommandError, match="no neighbor S9; known: S1, S2"):
        clear(fabric, "L1", "S9")
    with pytest.raises(CommandError, match="is not a protocol"):
        clear(fabric, "L1", "S1", "rip")
    with pytest.raises(CommandError, match="only neighbors of BGP tell their routes again"):
        clear(fabric, "L1", "S1", soft=True)


def test_a_session_of_bgp_begins_again_or_its_routes_are_told_again():
    """As ``clear bgp NEIGHBOR soft`` of others; a session that is not established is refused."""
    fabric = started(clos3(2, 2, builder=speakers()))
    s1 = neighbor(fabric, "L1", "S1")
    before = s1.received
    clear(fabric, "L1", "S1", soft=True)
    fabric.network.run_for(1.0)
    assert (s1.received > before, s1.flaps) == (True, 0)
    assert clear(fabric, "L1", "S1").neighbors[0].interface == "S1"
    assert s1.flaps == 1
    with pytest.raises(CommandError, match="the session with S1 is not established"):
        clear(fabric, "L1", "S1")
    fabric.network.run_for(10.0)
    assert s1.state.label == "Established"


def test_a_neighbor_that_announced_too_many_prefixes_is_tried_again_at_once():
    """As ``clear bgp NEIGHBOR`` of FRR, which cancels the timer of maximum-prefix restart."""
    fabric = started(clos3(2, 2, builder=speakers()))
    s1 = neighbor(fabric, "L1", "S1")
    apply_neighbor(fabric, "L1", ["S1"], maximum_prefixes=1, restart_after=3600.0)
    fabric.network.run_for(1.0)
    assert s1.held is not None
    with pytest.raises(CommandError, match="the session with S1 is not established"):
        clear(fabric, "L1", "S1", soft=True)
    apply_neighbor(fabric, "S1", ["L1"], exports=())
    flaps = s1.flaps
    assert clear(fabric, "L1", "S1").neighbors[0].interface == "S1"
    assert s1.held is None
    fabric.network.run_for(60.0)
    assert (s1.state.label, s1.flaps) == ("Established", flaps)


async def test_counters_begin_anew_and_metrics_do_not(stage):
    async with stage.running() as daemon:
        context = daemon.parts.views.context()
        counters = next(iter(context.router.instances.values())).engine.counters
        counters.errors["ttl"] += 3
        one = counters.interfaces.setdefault(99, PacketCounters())
        one.received["ls-ack"] += 2
        one.rejected["ls-ack", "ttl"] += 3
        before = await stage.ask("show counters")
        assert before["cleared_at"] is None
        assert (await stage.ask("clear-counters"))["cleared"]
        after = await stage.ask("show counters")
        assert after["cleared_at"] is not None
        found = {(row["group"], row["name"]): row["value"] for row in after["counters"]}
        assert found["packet-errors", "ttl"] == found["packets", "received ls-ack"] == 0
        totals = daemon.parts.views.context().counters()["ospf"]
        assert totals["packet-errors"]["ttl"] == 3
        assert totals["packets"]["received ls-ack"] == 2
        assert one == PacketCounters()


async def test_the_level_of_the_log_changes_until_a_reload(stage):
    async with stage.running() as daemon:
        logs = daemon.parts.logs
        assert not logs.wants("debug")
        answer = await stage.ask("log-level", level="debug")
        assert (answer["level"], answer["configured"]) == ("debug", "info")
        assert logs.wants("debug")
        daemon.parts.reconfigured()
        assert not logs.wants("debug")


@pytest.mark.parametrize(
    ("command", "args", "message"),
    [
        ("log-level", {"level": "chatty"}, "level must be one of debug, info, warning, error"),
        ("clear-neighbor", {"neighbor": "S1"}, "no neighbor S1; known: none"),
        ("clear-neighbor", {"neighbor": "S1", "proto": "rip"}, "proto must be ospf or isis"),
    ],
)
async def test_what_makes_no_sense_is_refused(stage, command, args, message):
    async with stage.running():
        with pytest.raises(DaemonRefusedError, match=message):
            await stage.ask(command, **args)
