"""Start, stop and reload of the daemon: the order of steps, and the state after a failure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fared.config import Loaded
from fared.daemon import daemon as module
from fared.daemon.lock import InstanceLock, LockError
from fared.daemon.loop.errors import DaemonError
from fared.daemon.process import run
from fared.kernel.errors import PrivilegeError
from fared.protocols.ospf.auth.signature import read_auth
from tests.daemon.stage import Stage
from tests.waiting import loop_until


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def running(daemon: Any) -> dict[str, Any]:
    """The settings of OSPF's interfaces, by name."""
    interfaces = daemon.parts.runner.router.instances["ospf"].engine.instance.interfaces.values()
    return {interface.name: interface.settings for interface in interfaces}


def lock_of(stage: Stage) -> Path:
    return Path(f"{stage.socket}.lock")


async def test_the_first_packet_is_the_last_step_of_the_start(stage):
    """No packet is sent before the kernel can forward; privileges are checked before any write."""
    steps = (
        "control",
        "privileges",
        "fib",
        "monitor",
        "sysctls",
        "monitor started",
        "open",
        "send",
    )
    async with stage.running():
        assert lock_of(stage).read_text() == f"{os.getpid()}\n"
        assert stage.order(*reversed(steps)) == list(steps)


async def test_a_stop_notifies_neighbors_before_it_releases_anything(stage):
    steps = (
        "send",
        "ospf closed",
        "monitor closed",
        "fib closed",
        "control stopped",
    )
    async with stage.running():
        stage.happened.clear()
    assert stage.order(*reversed(steps)) == list(steps)
    assert "load closed" in stage.happened
    assert not lock_of(stage).exists()


async def test_while_another_daemon_holds_the_lock_nothing_is_touched(stage):
    other = InstanceLock(str(stage.socket))
    other.take()
    with pytest.raises(LockError, match=f"pid {os.getpid()} holds"):
        await stage.serve()
    assert stage.happened == []
    assert lock_of(stage).exists()
    other.release()


@pytest.mark.parametrize(
    ("step", "failure", "error"),
    [
        ("control", OSError(13, "cannot listen on /run/fared/fared.sock"), DaemonError),
        ("privileges", PrivilegeError("CAP_NET_RAW", "open raw sockets"), PrivilegeError),
        ("sysctls", PrivilegeError("CAP_NET_ADMIN", "write sysctls"), PrivilegeError),
        ("open", PrivilegeError("CAP_NET_RAW", "open raw sockets"), PrivilegeError),
    ],
)
async def test_a_start_that_fails_releases_lock_and_control_socket(stage, step, failure, error):
    stage.fails[step] = failure
    with pytest.raises(error):
        await stage.serve()
    assert not lock_of(stage).exists()
    assert ("control stopped" in stage.happened) is (step != "control")
    assert "send" not in stage.happened


def test_each_failure_is_reported_in_one_line(stage):
    stage.fails["privileges"] = PrivilegeError("CAP_NET_RAW", "open raw sockets")
    daemon = stage.make()
    with pytest.raises(DaemonError, match="CAP_NET_RAW is missing"):
        run(str(stage.file), Loaded(daemon.running.config))
    other = InstanceLock(str(stage.socket))
    other.take()
    with pytest.raises(DaemonError, match="another daemon is running"):
        run(str(stage.file), Loaded(daemon.running.config))
    other.release()


async def test_a_reload_applies_changes_but_those_that_need_a_restart(stage):
    async with stage.running() as daemon:
        before = daemon.running.config
        stage.write(cost=77, router_id="10.255.0.9", on_exit="keep")
        answer = await stage.ask("reload")
        assert answer["applied"] is True
        assert {change["path"]: change["action"] for change in answer["changes"]} == {
            "router-id": "restart-required",
            "fib.on-exit": "update-in-place",
            "ospf.areas.0.0.0.0.interfaces.swp1.cost": "update-in-place",
        }
        assert running(daemon)["swp1"].cost == 77
        assert daemon.parts.operation.router_id == 0x0AFF0001
        assert daemon.running.config.router_id == before.router_id
        assert daemon.running.config.fib.on_exit == "keep"
        assert daemon.runtime.last_reload_ok


async def test_a_failure_to_load_views_is_logged_and_does_not_end_the_daemon(stage, monkeypatch):
    """Views are loaded some time after the start."""

    def fail(_: list[str]) -> None:
        raise ImportError("half installed")

    monkeypatch.setattr(module, "VIEWS_AFTER", 0)
    monkeypatch.setattr("fared.daemon.people.views._load", fail)
    async with stage.running() as daemon:
        await loop_until(lambda: daemon.defence.counts["views"])
        assert (await stage.ask("show status"))["pid"] == os.getpid()


EXTENDED = "{algorithm: hmac-sha-256, key-id: 1, key: k, extended-sequence: true}"


async def test_the_boot_count_is_on_disk_before_the_first_packet(stage, monkeypatch):
    """RFC 7474 §3. The next start has the next count."""
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda *a: (stage.note("kept"), replace(*a))[1])
    stage.write(authentication=EXTENDED)
    counts = []
    for _ in range(2):
        stage.happened.clear()
        stage.sent.clear()
        stage.spoke.clear()
        async with stage.running():
            assert stage.order("send", "kept") == ["kept", "send"]
            counts.append(int((stage.state / "ospf-boot-count").read_text()))
            assert read_auth(stage.sent[0]).sequence >> 32 == counts[-1]
    assert counts[1] == counts[0] + 1


async def test_the_boot_count_is_written_at_the_reload_that_adds_a_key_for_it(stage):
    """It is written once per process; nothing is written before, nor by other reloads."""
    async with stage.running() as daemon:
        assert not stage.state.exists()
        for cost in (10, 20):
            stage.write(authentication=EXTENDED, cost=cost)
            assert (await stage.ask("reload"))["applied"] is True
            count = int((stage.state / "ospf-boot-count").read_text())
            assert (
                daemon.parts.runner.router.instances["ospf"].engine.instance.settings.boot_count
                == count
            )
        assert [record["event"] for record in daemon.parts.views.context().log].count(
            "boot-count"
        ) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ospf: [", "YAML|expected"),
        ("ospf: {areas: {0: {interfaces: {swp1: {cost: -1}}}}}", "cost"),
    ],
)
async def test_a_file_with_an_error_changes_nothing(stage, text, complaint):
    """The running configuration remains; the error is in the answer and in the status."""
    async with stage.running() as daemon:
        before, interfaces = daemon.running.config, running(daemon)
        stage.file.write_text(text)
        answer = await stage.ask("reload")
        assert answer["applied"] is False
        assert any(word in " ".join(answer["errors"]) for word in complaint.split("|"))
        assert daemon.running.config is before
        assert running(daemon) == interfaces
        assert not daemon.runtime.last_reload_ok
        assert daemon.runtime.last_reload_error


async def test_a_missing_file_changes_nothing_and_a_corrected_one_is_applied(stage):
    async with stage.running() as daemon:
        stage.file.unlink()
        assert (await stage.ask("reload"))["applied"] is False
        stage.write(cost=5)
        assert (await stage.ask("reload"))["applied"] is True
        assert daemon.runtime.last_reload_error is None
