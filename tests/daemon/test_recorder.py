"""The recorder of the daemon: segments roll over, a fork writes states, and no failure reaches the
router."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fared.daemon.services import recorder as module
from fared.daemon.services.recorder import RouterRecorder
from fared.extensions.sim.fabric import Fabric, clos3
from fared.extensions.sim.network import Network
from fared.management.recording.files import RecordingError, segments
from fared.management.recording.player import play
from fared.management.recording.recording import Recording
from fared.management.recording.taped import TapedRouter
from fared.protocols.igp.events import PacketReceived
from tests.waiting import wait_for

FOREVER = 3600.0


class Log:
    """Keeps the names of events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def info(self, event: str, **_: object) -> None:
        self.events.append(event)

    warning = error = info


class Stage:
    """Leaf L1 of a fabric, and its recorder; time is that of the fabric."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
        monkeypatch.setenv("STATE_DIRECTORY", str(state))  # of the replays
        self.fabric: Fabric = clos3(2, 2, network=Network(seed=3))
        self.network = self.fabric.network
        self.network.start_all()
        self.network.run_until_quiet(60)
        self.node = self.network.nodes["L1"]
        self.log = Log()
        monkeypatch.setattr(module, "_now", lambda: self.network.now)
        monkeypatch.setattr(module, "INTERVAL", FOREVER)
        self.recorder = RouterRecorder(self, str(state), guard, self.log)  # type: ignore[arg-type]
        self._router = self.node.running

    @property
    def router(self) -> object:
        return self.node.router

    @router.setter
    def router(self, router: object) -> None:
        self.node.router = router  # type: ignore[assignment]

    def flap(self) -> None:
        for up in (False, True):
            self.network.set_link("L1", "S1", up=up)
            self.network.run_for(1)

    def check(self) -> bool:
        """One look at the recording; whether no fork runs after it."""
        self.recorder.check()
        return self.recorder._fork is None


@contextmanager
def guard(_name: str) -> Iterator[None]:
    yield


def children() -> list[str]:
    """The processes that this one has started and not waited for."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stage:
    return Stage(monkeypatch, tmp_path / "state")


async def test_a_running_router_is_recorded_and_replays(stage: Stage, tmp_path: Path):
    stage.recorder.begin(tmp_path / "r", None)
    assert isinstance(stage.router, TapedRouter)
    stage.flap()
    await stage.recorder.end()
    assert type(stage.router).__name__ == "Router"
    assert stage.log.events == ["recording-started", "recording-stopped"]
    played = play(tmp_path / "r")
    assert played.difference is None
    assert played.confirmed
    found = stage.recorder.look()
    assert found is not None
    assert found.calls == played.call
    assert found.failure == ""
    assert found.size == sum(one.size for one in segments(tmp_path / "r"))


async def test_packets_that_arrive_together_are_calls_of_their_own_on_tape(
    stage: Stage, tmp_path: Path
):
    (proto,) = stage.node.router.instances
    junk = [PacketReceived(1, 1, 2, bytes([number])) for number in range(3)]
    calls = []
    for count in (0, 3):
        stage.recorder.begin(tmp_path / f"{count}", None)
        stage.node.router.receive(proto, iter(junk[:count]), stage.network.now)
        await stage.recorder.end()
        played = play(tmp_path / f"{count}")
        assert played.difference is None
        calls.append(played.call)
    assert calls[1] == calls[0] + 3


async def test_two_recordings_in_one_directory_are_two(stage: Stage, tmp_path: Path):
    """What the router does between them is in none."""
    calls = 0
    for _ in range(2):
        stage.recorder.begin(tmp_path / "r", None)
        stage.flap()
        await stage.recorder.end()
        stage.flap()
        found = stage.recorder.look()
        assert found is not None
        calls += found.calls
    played = play(tmp_path / "r")
    assert (played.difference, played.confirmed, played.segment) == (None, True, 2)
    assert played.call == calls
    first, second = segments(tmp_path / "r")
    assert second.state is not None
    second.state.unlink()
    played = play(tmp_path / "r")
    assert (played.difference, played.confirmed, played.segment) == (None, True, 1)
    assert first.state is not None


async def test_segments_roll_over_and_the_ring_stays_bounded(stage: Stage, tmp_path: Path):
    directory, limit = tmp_path / "r", 200_000
    stage.recorder.begin(directory, limit)
    for _ in range(40):
        stage.flap()
        wait_for(stage.check, 30, "the fork has ended")
        known = segments(directory)
        assert sum(one.size for one in known) < limit + limit / 4
    await stage.recorder.end()
    known = segments(directory)
    assert known[0].number > 1
    assert len(known) > 2
    assert all(one.state is not None for one in known)
    played = play(directory)
    assert played.difference is None
    assert played.confirmed


async def test_a_full_disk_ends_the_recording_and_not_the_router(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage.recorder.begin(tmp_path / "r", None)
    stage.flap()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    wait_for(stage.check, 30, "the fork has ended")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        stage.flap()
    stage.check()
    assert not stage.recorder.running
    assert stage.log.events[-1] == "recording-failed"
    found = stage.recorder.look()
    assert found is not None
    assert found.failure == "No space left on device"
    routes = dict(stage.node.running.table.routes)
    stage.flap()
    assert stage.node.running.table.routes.keys() == routes.keys()
    assert play(tmp_path / "r").difference is None


async def test_a_recording_whose_first_state_fails_ends(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(_: Recording) -> int:
        raise TypeError

    monkeypatch.setattr(Recording, "keep_state", fail)
    stage.recorder.begin(tmp_path / "r", None)
    wait_for(stage.check, 30, "the fork has ended")
    assert not stage.recorder.running
    found = stage.recorder.look()
    assert found is not None
    assert "cannot be written (exit code 1)" in found.failure
    assert type(stage.router).__name__ == "Router"


async def test_a_later_state_that_fails_leaves_the_calls_to_replay(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage.recorder.begin(tmp_path / "r", 100_000)
    wait_for(stage.check, 30, "the fork has ended")

    def fail(_: Recording) -> int:
        raise TypeError

    monkeypatch.setattr(Recording, "keep_state", fail)
    for _ in range(10):
        stage.flap()
        wait_for(stage.check, 30, "the fork has ended")
    assert "recording-state-not-kept" in stage.log.events
    await stage.recorder.end()
    known = segments(tmp_path / "r")
    assert len(known) > 2
    assert [one.state is not None for one in known] == [True, *[False] * (len(known) - 1)]
    assert play(tmp_path / "r").confirmed


async def test_without_states_a_recording_ends_before_it_fills_the_disk(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limit = 40_000
    stage.recorder.begin(tmp_path / "r", limit)
    wait_for(stage.check, 30, "the fork has ended")

    def fail(_: Recording) -> int:
        raise TypeError

    monkeypatch.setattr(Recording, "keep_state", fail)
    for _ in range(100):
        stage.flap()
        wait_for(stage.check, 30, "the fork has ended")
        if not stage.recorder.running:
            break
    found = stage.recorder.look()
    assert found is not None
    assert found.failure == "states cannot be written, and the ring is full"
    assert found.size < 7 * limit


async def test_a_fork_that_takes_too_long_is_killed_at_the_end(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def wait(_: Recording) -> int:
        return int(bool(asyncio.run(asyncio.sleep(FOREVER))))

    monkeypatch.setattr(Recording, "keep_state", wait)
    before = set(children())  # other tests of this process may have left some
    stage.recorder.begin(tmp_path / "r", None)
    await stage.recorder.end(within=0.2)
    found = stage.recorder.look()
    assert found is not None
    assert "killed by SIGKILL" in found.failure
    assert set(children()) <= before


async def test_a_directory_that_cannot_be_written_is_refused(stage: Stage, tmp_path: Path):
    (tmp_path / "letter.txt").write_text("dear all")
    with pytest.raises(RecordingError, match="has other files"):
        stage.recorder.begin(tmp_path, None)
    assert not stage.recorder.running
    assert type(stage.router).__name__ == "Router"
