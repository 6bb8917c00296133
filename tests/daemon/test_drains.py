"""Taking the router or a link out of service: kept across restarts, told, and undone."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from fared.daemon.daemon import Daemon
from fared.management.api.client import DaemonRefusedError
from tests.daemon.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def capacity(daemon: Daemon, name: str = "swp1") -> float | None:
    """What OSPF takes for the capacity of a link, bytes/s."""
    interfaces = daemon.parts.runner.router.instances["ospf"].engine.instance.interfaces.values()
    (found,) = (i.bandwidth.capacity for i in interfaces if i.name == name)
    return found


def logged(daemon: Daemon, event: str) -> list[dict[str, Any]]:
    return [line for line in daemon._logs.ring if line["event"] == event]


async def test_a_drained_router_is_drained_after_a_restart_until_somebody_undoes_it(stage):
    async with stage.running():
        assert (await stage.ask("drain", reason="optics"))["drained"]
    async with stage.running() as daemon:
        status = await stage.ask("show status")
        assert status["drained"]
        assert status["drained_reason"] == "optics"
        assert logged(daemon, "still-drained")
        assert not (await stage.ask("undrain"))["drained"]
    async with stage.running():
        assert not (await stage.ask("show status"))["drained"]


async def test_a_drained_link_keeps_a_share_of_its_capacity_after_a_restart(stage):
    async with stage.running() as daemon:
        whole = capacity(daemon)
        answer = await stage.ask("drain", interface="swp1", share=0.25, reason="optics")
        assert (answer["interface"], answer["share"]) == ("swp1", 0.25)
        assert capacity(daemon) == whole / 4
    async with stage.running() as daemon:
        assert capacity(daemon) == whole / 4
        rows = (await stage.ask("show interfaces"))["interfaces"]
        (row,) = (row for row in rows if row["interface"] == "swp1")
        ((by, share, reason),) = ((d["by"], d["share"], d["reason"]) for d in row["derated"])
        assert (share, reason) == (0.25, "optics")
        assert by != ""
        await stage.ask("undrain", interface="swp1")
        assert capacity(daemon) == whole


async def test_without_a_share_the_least_capacity_that_others_accept_is_left(stage):
    async with stage.running() as daemon:
        await stage.ask("drain", interface="swp1")
        assert capacity(daemon) == 125.0
        assert not (await stage.ask("show status"))["drained"]


async def test_a_reload_leaves_a_drained_link_drained(stage):
    async with stage.running() as daemon:
        await stage.ask("drain", interface="swp1", share=0.5)
        half = capacity(daemon)
        stage.write(cost=77)
        assert (await stage.ask("reload"))["applied"]
        assert capacity(daemon) == half


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"interface": "nope"}, "not-found"),
        ({"interface": 5}, "bad-argument"),
        ({"interface": "x" * 40}, "bad-argument"),
        ({"interface": "swp1", "share": 1.0}, "bad-argument"),
        ({"interface": "swp1", "share": -0.1}, "bad-argument"),
        ({"interface": "swp1", "share": True}, "bad-argument"),
        ({"share": 0.5}, "bad-argument"),
        ({"reason": "two\nlines"}, "bad-argument"),
    ],
)
async def test_a_request_that_makes_no_sense_changes_nothing(stage, args, code):
    async with stage.running() as daemon:
        before = capacity(daemon)
        with pytest.raises(DaemonRefusedError) as refused:
            await stage.ask("drain", **args)
        assert refused.value.code == code
        assert capacity(daemon) == before
        assert not (await stage.ask("show status"))["drained"]


NESTED = '{"a":' * 3500 + "1" + "}" * 3500


@pytest.mark.parametrize(
    "content", ["", "[]", '{"links": {"swp1": {"share": -1}}}', "\x00" * 99, NESTED]
)
async def test_a_damaged_file_leaves_everything_in_service(stage, content):
    stage.state.mkdir()
    (stage.state / "drained.json").write_text(content)
    async with stage.running() as daemon:
        assert capacity(daemon) == 1.25e9
        assert logged(daemon, "drained-unreadable")


async def test_whoever_drains_learns_that_a_restart_will_undo_it(stage, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with stage.running():
        assert (await stage.ask("drain"))["not_kept"] is None
        monkeypatch.setattr("fared.daemon.change.drains.replace_file", full)
        file = stage.state / "drained.json"
        for command, args in (("drain", {}), ("undrain", {}), ("drain", {"interface": "swp1"})):
            answer = await stage.ask(command, **args)
            assert answer["not_kept"] == f"{file}: No space left on device"


async def test_transit_traffic_has_time_to_leave_before_a_shutdown(stage):
    """The stub router is advertised before anything is flushed."""
    text = stage.file.read_text().replace("ospf:", "ospf:\n  stub-router-on-shutdown: 200ms")
    stage.file.write_text(text)
    async with stage.running() as daemon:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        daemon._stop.set()
        await asyncio.wait_for(_drained(daemon), 30)
    assert loop.time() - begun >= 0.2
    assert len(logged(daemon, "drain")) == 1


async def _drained(daemon: Daemon) -> None:
    while not daemon.parts.runner.router.settings.drained:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("interface", "reason"),
    [("lo", "no protocol has neighbors on lo"), ("swp9", "no interface swp9")],
)
async def test_only_a_link_to_other_routers_is_drained(stage, interface, reason):
    async with stage.running():
        with pytest.raises(DaemonRefusedError) as refused:
            await stage.ask("drain", interface=interface)
        assert str(refused.value).endswith(f"{reason}; links to routers: swp1")


async def test_a_passive_interface_is_not_drained(stage):
    text = stage.file.read_text()
    stage.file.write_text(text.replace("swp1: {", "swp1: {passive: true, "))
    async with stage.running():
        with pytest.raises(DaemonRefusedError, match="swp1 is passive: it leads to no router"):
            await stage.ask("drain", interface="swp1")
