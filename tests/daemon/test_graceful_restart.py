"""What one process leaves for the next: the file beside the control socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from fared.config import load_text
from fared.daemon.change import restart as module
from fared.daemon.change.restart import GracefulRestart
from fared.management.documents.errors import CommandError
from fared.protocols.igp.events import GracefulRestartBegun, GracefulRestartRequested
from tests.daemon.test_boot_count import Log

BOOT = 1000.0


class Host:
    """A daemon; ``fed`` are the events for its router."""

    def __init__(self, directory: Path, *, enabled: bool = True, announced: bool = True) -> None:
        text = (
            f"api: {{socket: {directory}/fared.sock}}\n"
            f"ospf: {{graceful-restart: {{enabled: {str(enabled).lower()}, grace-period: 60}},"
            " areas: {0: {interfaces: {lo: {passive: true}}}}}\n"
        )
        self.path = str(directory / "fared.yaml")
        Path(self.path).write_text(text)
        self.config = load_text(text)
        self.log = Log()
        self.fed: list[object] = []
        self.gone = asyncio.Event()
        engine = SimpleNamespace(restart_announced=announced)
        router = SimpleNamespace(
            startup=SimpleNamespace(ready=True), instances={"ospf": SimpleNamespace(engine=engine)}
        )
        self.runner = SimpleNamespace(router=router, feed=self.fed.append)

        self.restarts = GracefulRestart(self, self.runner, self.leave, self.log)

    @property
    def left(self) -> bool:
        return self.gone.is_set()

    def leave(self, *, farewell: bool) -> None:
        self.farewell = farewell
        self.gone.set()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Seconds since the machine's boot, and the id of the boot."""
    now: dict[str, object] = {"at": BOOT, "boot": "first"}
    monkeypatch.setattr(module, "ANSWER_FOR", 0.0)
    monkeypatch.setattr(module, "_boottime", lambda: now["at"])
    monkeypatch.setattr(module, "_boot", lambda: now["boot"])
    return now


def begun(directory: Path, *, routes: bool = True, **host) -> GracefulRestartBegun | None:
    return Host(directory, **host).restarts.begun(routes=routes)


def announce(directory: Path, **host) -> Host:
    daemon = Host(directory, **host)
    asyncio.run(_restart(daemon))
    return daemon


async def _restart(daemon: Host, *, graceful: bool = True) -> None:
    await daemon.restarts.restart(graceful=graceful)
    assert not daemon.left, "the answer goes first"
    await daemon.gone.wait()


def test_the_first_start_is_no_restart_and_one_after_a_crash_is(tmp_path: Path):
    assert begun(tmp_path) is None
    assert begun(tmp_path) == GracefulRestartBegun(60.0, planned=False)


def test_an_announced_restart_has_what_is_left_of_the_grace_period(tmp_path: Path, clock):
    host = announce(tmp_path)
    assert host.fed == [GracefulRestartRequested(60.0)]
    assert host.left
    clock["at"] = BOOT + 12.0
    assert begun(tmp_path) == GracefulRestartBegun(48.0, planned=True)


def test_a_restart_after_the_grace_period_is_an_ordinary_start(tmp_path: Path, clock):
    announce(tmp_path)
    clock["at"] = BOOT + 61.0
    assert begun(tmp_path) is None


def test_without_routes_in_the_kernel_the_start_is_an_ordinary_one(tmp_path: Path):
    begun(tmp_path)
    assert begun(tmp_path, routes=False) is None


def test_after_a_boot_of_the_machine_the_start_is_an_ordinary_one(tmp_path: Path, clock):
    begun(tmp_path)
    clock["boot"] = "second"
    assert begun(tmp_path) is None


def test_after_a_clean_stop_the_start_is_an_ordinary_one(tmp_path: Path):
    begun(tmp_path)
    Host(tmp_path).restarts.stopped()
    assert begun(tmp_path) is None
    assert [file.name for file in tmp_path.glob("*.restart*")] == ["fared.sock.restart"]


def test_without_graceful_restart_there_is_no_file_and_no_command(tmp_path: Path):
    begun(tmp_path)
    assert begun(tmp_path, enabled=False) is None
    assert not list(tmp_path.glob("*.restart*"))
    with pytest.raises(CommandError, match="not enabled"):
        announce(tmp_path, enabled=False)


@pytest.mark.parametrize("enabled", [False, True])
def test_a_restart_that_is_not_graceful_tells_neighbors_nothing_but_farewell(
    tmp_path: Path, enabled: bool
):
    host = Host(tmp_path, enabled=enabled)
    asyncio.run(_restart(host, graceful=False))
    assert host.farewell
    assert host.fed == []


def test_a_configuration_that_could_not_start_is_not_restarted_with(tmp_path: Path):
    host = Host(tmp_path)
    Path(host.path).write_text("ospf: {areas: nowhere}\n")
    with pytest.raises(CommandError, match="areas"):
        asyncio.run(host.restarts.restart())
    assert not host.left
    assert host.fed == []


def test_a_neighbor_that_does_not_answer_delays_the_restart_only_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "ANNOUNCED_WITHIN", 0.05)
    host = announce(tmp_path, announced=False)
    assert host.left
    assert "restart-not-acknowledged" in [event for event, _ in host.log]


NESTED = "[" * 2000 + "]" * 2000


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": "fared-restart/1"}', "\x00" * 9, NESTED]
)
def test_a_damaged_file_is_logged_and_the_start_is_an_ordinary_one(tmp_path: Path, content: str):
    (tmp_path / "fared.sock.restart").write_text(content)
    host = Host(tmp_path)
    assert host.restarts.begun(routes=True) is None
    assert [event for event, _ in host.log] == ["restart-state-unreadable"]
    written = json.loads((tmp_path / "fared.sock.restart").read_text())
    assert written["planned"] is False


def test_a_directory_that_cannot_be_written_is_logged(tmp_path: Path):
    (tmp_path / "fared.sock.restart.new").mkdir()
    host = Host(tmp_path)
    host.restarts.running()
    assert [event for event, _ in host.log] == ["restart-state-not-kept"]


def test_with_both_protocols_the_longest_grace_period_counts(tmp_path: Path):
    host = Host(tmp_path)
    text = Path(host.path).read_text() + (
        "isis: {net: 49.0001.0000.0000.0001.00, interfaces: {lo: {passive: true}},"
        " graceful-restart: {enabled: true, grace-period: 90}}\n"
    )
    host.config = load_text(text)
    assert host.restarts.period == 90.0
    host.config = load_text(text.replace("enabled: true, grace-period: 60", "enabled: false"))
    assert host.restarts.period == 90.0
