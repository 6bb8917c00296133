"""Notifications to systemd: their order, and that each is true when it is sent."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.router.stages import Stage
from tests.live.daemons import LINKS, RIGHT_STUB, Pair
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

WATCHDOG = 5.0
"""Seconds: half of which a busy machine may take."""


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Pair]:
    """Two routers of which only the right one runs."""
    made = Pair("n", tmp_path)
    try:
        made.right.start()
        yield made
    finally:
        made.close()


def test_systemd_is_notified_of_stages_then_ready_then_watchdog_then_stopping(
    waiting: Pair, tmp_path: Path
):
    """READY=1 comes once the routes are in the kernel, and not before."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        path = tmp_path / "n.sock"
        systemd.bind(str(path))
        systemd.settimeout(30)
        waiting.left.start({"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": f"{WATCHDOG * 1e6:.0f}"})
        heard: list[str] = []
        while "READY=1" not in heard:
            heard.append(systemd.recv(4096).decode())
        hops = waiting.view.hops(RIGHT_STUB)
        assert {hop.interface for hop in hops} == set(LINKS)
        order = [text.removeprefix("STATUS=start-up: ") for text in heard if "start-up" in text]
        assert order == [stage.label for stage in Stage if stage is not Stage.STARTING]
        before = heard.index("READY=1")
        assert heard[:before].count("WATCHDOG=1") >= 1, "its loop runs"
        assert heard[before - 1] == "STATUS=routing"

        fed: list[float] = []
        while len(fed) < 3:
            text = systemd.recv(4096).decode()
            assert text == "WATCHDOG=1"
            fed.append(time.monotonic())
        gaps = [later - sooner for sooner, later in itertools.pairwise(fed)]
        assert max(gaps) < WATCHDOG, "within the time systemd waits, half of which is usual"

        code, _ = waiting.left.terminate()
        assert code == 0
        systemd.setblocking(False)
        rest = []
        with contextlib.suppress(BlockingIOError):
            while True:
                rest.append(systemd.recv(4096).decode())
        assert "STOPPING=1" in rest
        assert "WATCHDOG=1" not in rest[rest.index("STOPPING=1") :]


def test_a_restart_in_place_feeds_the_watchdog_on_its_way(waiting: Pair, tmp_path: Path):
    """For systemd nothing ends: it counts from the last notification of the former process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        path = tmp_path / "n.sock"
        systemd.bind(str(path))
        systemd.settimeout(30)
        # so long that nothing but the restart itself feeds it
        waiting.left.start({"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "3600000000"})
        wait_for(waiting.left.settled, 30, "ready")
        while systemd.recv(4096) != b"READY=1":
            pass
        waiting.left.cli("restart")
        heard: list[str] = []
        while "READY=1" not in heard:
            heard.append(systemd.recv(4096).decode())
        started = next(n for n, text in enumerate(heard) if "start-up" in text)
        assert "STOPPING=1" not in heard
        assert "WATCHDOG=1" in heard[:started], "before the next process is loaded"
        assert "WATCHDOG=1" in heard[started:], "as soon as its loop runs"


def test_without_systemd_nothing_is_notified(waiting: Pair):
    """No NOTIFY_SOCKET, no trouble."""
    waiting.left.start({"WATCHDOG_USEC": "400000"})
    wait_for(waiting.left.settled, 30, "ready")
    assert waiting.left.complaints() == []
