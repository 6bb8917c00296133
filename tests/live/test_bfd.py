"""The BFD process of a live daemon is killed or stopped: what its neighbors notice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bench.daemons import bfd
from tests.live.daemons import LINKS, Json, Live, Pair, _config
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

DETECTION = 0.9
"""Seconds: 300 ms x 3."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two routers with a BFD session on each of two links."""
    made = Pair("bfd", tmp_path_factory.mktemp("bfd"), configured)
    try:
        made.start()
        yield made
    finally:
        made.close()


def configured(identity: str, hostname: str) -> Json:
    config = _config(identity, hostname)
    interfaces = config["ospf"]["areas"]["0.0.0.0"]["interfaces"]
    for link in LINKS:
        interfaces[link]["bfd"] = {"enabled": True, "min-tx": "300ms", "min-rx": "300ms"}
    return config


def up(daemon: Live) -> bool:
    """Whether the sessions of all links are up and fast at both ends."""
    rows = daemon.show("bfd")["sessions"]
    fast = [r for r in rows if r["state"] == r["neighbor_state"] == "Up"]
    return [r["detection_time"] for r in fast] == [DETECTION] * len(LINKS)


def whole(pair: Pair) -> bool:
    return all(up(d) and d.full() == len(LINKS) for d in (pair.left, pair.right))


def process(daemon: Live) -> Json:
    found: Json = daemon.show("bfd")["process"]
    return found


def events(daemon: Live, name: str) -> list[Json]:
    return [record for record in daemon.records() if record["event"] == name]


def changes(pair: Pair) -> dict[str, list[Any]]:
    """The changes of sessions and neighbors so far, at each end."""
    both = {"left": pair.left, "right": pair.right}
    return {
        name: [*events(daemon, "bfd-session"), *events(daemon, "neighbor-changed")]
        for name, daemon in both.items()
    }


@contextmanager
def unnoticed(pair: Pair) -> Iterator[None]:
    """No session and no neighbor changes at either end, until long after the block."""
    wait_for(lambda: whole(pair), 20, "sessions are up")
    before = changes(pair)
    yield
    wait_for(lambda: whole(pair), 20, "sessions are up")
    # twice the detection time of every session that the block may have cut off
    sent = [row["sent"] for row in pair.left.show("bfd")["sessions"]]

    def later() -> bool:
        now = [row["sent"] for row in pair.left.show("bfd")["sessions"]]
        if len(now) < len(sent):
            return False
        # a new process counts from zero, and its first report may come only now
        sent[:] = map(min, sent, now)
        return all(after >= before + 8 for after, before in zip(now, sent, strict=True))

    wait_for(later, 20, "eight more packets")
    assert changes(pair) == before


def test_a_killed_process_is_started_again_and_neither_end_notices(pair: Pair):
    with unnoticed(pair):
        wait_for(lambda: process(pair.left)["spare"], 20, "a process that waits")
        before = process(pair.left)
        os.kill(before["pid"], signal.SIGKILL)
        wait_for(lambda: process(pair.left)["starts"] == before["starts"] + 1, 20, "a new process")
        assert process(pair.left)["pid"] == before["spare"]
    ended = events(pair.left, "bfd-process-ended")[-1]
    assert (ended["status"], ended["reason"]) == (-signal.SIGKILL, "killed by SIGKILL")


def test_a_process_that_gets_no_cpu_for_less_than_the_detection_time_gives_no_alarm(pair: Pair):
    with unnoticed(pair):
        late = sum(row["late"] for row in pair.left.show("bfd")["sessions"])
        pid = process(pair.left)["pid"]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(DETECTION / 2)
        os.kill(pid, signal.SIGCONT)
        wait_for(
            lambda: sum(row["late"] for row in pair.left.show("bfd")["sessions"]) > late,
            20,
            "its lateness is counted",
        )


def test_after_a_longer_stop_the_neighbor_says_why_it_left_and_all_come_back(pair: Pair):
    wait_for(lambda: whole(pair), 20, "sessions are up")
    downs = len(events(pair.right, "bfd-session"))
    pid, starts = process(pair.left)["pid"], process(pair.left)["starts"]
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: len(events(pair.right, "bfd-session")) >= downs + 2, 8, "both are down")
    finally:
        os.kill(pid, signal.SIGCONT)
    alarms = events(pair.right, "bfd-session")[downs : downs + 2]
    assert [a["reason"] for a in alarms] == ["control detection time expired"] * 2
    wait_for(lambda: whole(pair), 20, "sessions are up again")
    assert process(pair.left)["pid"] == pid
    assert process(pair.left)["starts"] == starts


def test_a_process_that_is_silent_for_long_is_replaced(pair: Pair):
    wait_for(lambda: whole(pair), 20, "sessions are up")
    before = process(pair.left)
    os.kill(before["pid"], signal.SIGSTOP)
    wait_for(lambda: process(pair.left)["starts"] > before["starts"], 40, "a new process")
    assert events(pair.left, "bfd-process-silent")
    wait_for(lambda: whole(pair), 20, "sessions are up again")


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_router_without_cpu_time_to_spare_gives_no_false_alarm():
    """64 sessions for three minutes; ``python -m bench bfd --minutes 30`` for longer."""
    found = bfd.measure(3.0, bfd.FABRIC)
    assert found["up"] == found["sessions"] == bfd.FABRIC[0]
    assert (found["near"], found["far"]) == (0, 0), found
