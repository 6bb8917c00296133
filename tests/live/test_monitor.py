"""``fared-cli monitor`` beside running daemons: events as they occur, and clean ends."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.test_events import listed_fields
from tests.live.daemons import BIN, Pair
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

SOON = 15
Event = dict[str, Any]


class Monitor:
    """A running ``fared-cli monitor``."""

    def __init__(self, socket: str, *arguments: str) -> None:
        command = [str(BIN / "fared-cli"), "-s", socket, "monitor", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        self.output = self.process.stdout
        self._rest = b""
        self.events: list[Event] = []

    def until(self, event: str, *, since: float = 0.0, **fields: object) -> Event:
        """Read until an event with these fields, not before ``since``; return it."""
        deadline = time.monotonic() + SOON
        while True:
            for found in self._read(deadline - time.monotonic()):
                assert set(found) == {"time", "level", "event", "fields"}
                self.events.append(found)
            for found in self.events:
                matches = fields.items() <= found["fields"].items() and found["time"] >= since
                if found["event"] == event and matches:
                    return found

    def _read(self, seconds: float) -> list[Event]:
        assert select.select([self.output], [], [], max(0.0, seconds))[0], self.events
        received = os.read(self.output.fileno(), 1 << 16)
        assert received, self.process.stderr.read() if self.process.stderr else ""
        *lines, self._rest = (self._rest + received).split(b"\n")
        return [json.loads(line) for line in lines]

    def ended(self) -> tuple[int, str]:
        """The exit code, and what it said."""
        assert self.process.stderr is not None
        code = self.process.wait(SOON)
        return code, self.process.stderr.read().decode()


@contextlib.contextmanager
def monitoring(pair: Pair, *arguments: str) -> Iterator[Monitor]:
    monitor = Monitor(str(pair.left.socket), *arguments)
    try:
        yield monitor
    finally:
        monitor.process.kill()
        monitor.process.communicate()


@pytest.fixture
def running(pair: Pair) -> Iterator[Pair]:
    """The shared pair; its links and daemons are put back."""
    yield pair
    pair.left.netns.ip("link", "set", "u0", "up")
    if not pair.left.alive():
        pair.left.start()
    pair.await_routes()


def began(monitor: Monitor, pair: Pair) -> None:
    """Make events until the monitor shows one: then it follows."""

    def shown() -> bool:
        assert monitor.process.poll() is None, monitor.ended()
        pair.left.ask("undrain")
        return bool(select.select([monitor.output], [], [], 0.1)[0])

    wait_for(shown, SOON, "the monitor prints events")
    monitor.until("undrain")


def test_events_are_printed_as_they_occur(running: Pair):
    """All of them have the schema and the fields of the page; Ctrl-C ends it with 0."""
    with monitoring(running, "--level", "debug", "--since", "1m") as monitor:
        began(monitor, running)
        begun = time.time()
        running.left.netns.ip("link", "set", "u0", "down")
        # those of the last minute come first, and may be of another test
        monitor.until("neighbor-changed", since=begun, interface="u0", state="Down")
        running.left.netns.ip("link", "set", "u0", "up")
        monitor.until("neighbor-changed", since=begun, interface="u0", state="Full")
        monitor.until("fib-applied", since=begun)
        page = listed_fields()
        for event in monitor.events:
            assert set(event["fields"]) <= page[event["event"]], event
        monitor.process.send_signal(signal.SIGINT)
        assert monitor.ended() == (0, "")


def test_only_what_is_asked_for_is_printed(running: Pair):
    with (
        monitoring(running, "neighbor-*", "--interface", "u[0]", "--since", "1h") as one,
        monitoring(running, "neighbor-*", "undrain") as both,
    ):
        began(both, running)
        for link in ("u1", "u0"):
            running.left.netns.ip("link", "set", link, "down")
            running.left.netns.ip("link", "set", link, "up")
            both.until("neighbor-changed", interface=link, state="Full")
        one.until("neighbor-changed", interface="u0", state="Full")
        assert {(e["event"], e["fields"]["interface"]) for e in one.events} == {
            ("neighbor-changed", "u0")
        }


def test_it_ends_when_nobody_reads_its_output(running: Pair):
    """At once, not with the next event; and the daemon forgets it."""
    with monitoring(running) as monitor:
        began(monitor, running)
        monitor.output.close()
        assert monitor.process.wait(SOON) == 0
        assert monitor.process.stderr is not None
        assert monitor.process.stderr.read() == b""


def test_it_tells_the_daemons_last_event_and_ends(running: Pair):
    with monitoring(running) as monitor:
        began(monitor, running)
        running.left.terminate()
        monitor.until("stopped")
        code, said = monitor.ended()
        assert code == 3
        assert "fared has ended" in said
        assert "Traceback" not in said


def test_it_ends_with_a_killed_daemon(running: Pair):
    with monitoring(running) as monitor:
        began(monitor, running)
        running.left.kill()
        assert monitor.ended()[0] == 3


def test_readers_that_stand_still_leave_room_for_commands(running: Pair):
    """The ninth is refused, with a hint; commands are answered, and events lost are bounded."""
    with contextlib.ExitStack() as stack:
        monitors = [stack.enter_context(monitoring(running)) for _ in range(8)]
        for monitor in monitors:
            began(monitor, running)
            monitor.process.send_signal(signal.SIGSTOP)
        refused = running.left.cli("monitor")
        assert refused.returncode == 1
        assert "8 readers" in refused.stderr
        assert running.left.cli("show", "status").returncode == 0
    wait_for(lambda: _follows(running), SOON, "the others are forgotten")


def _follows(pair: Pair) -> bool:
    with monitoring(pair, "--since", "1h") as monitor:
        try:
            began(monitor, pair)
        except AssertionError:
            return False
        return True
