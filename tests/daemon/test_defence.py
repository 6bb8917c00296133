"""Unexpected exceptions are counted and logged at a limited rate; the daemon continues."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from fared.daemon.loop.defence import HOPELESS_AFTER, HOPELESS_TIMES, Defence
from fared.daemon.loop.rate_limited import INTERVAL
from fared.daemon.loop.runner import Runner
from fared.paths.fib.model import PutNextHop
from fared.protocols.igp.events import LogRecord
from fared.router import events


class Watched:
    """A defence with its log, its clock, and its reasons to end the daemon."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[dict[str, object]] = []
        self.given_up: list[BaseException] = []
        log = SimpleNamespace(
            error=lambda event, **fields: self.lines.append({"event": event, **fields}),
            debug=lambda *_, **__: None,
            warning=lambda *_, **__: None,
        )
        self.ended = 0
        self.defence = Defence(log, self.given_up.append, lambda: self.now, self._end)
        self.log = log

    def _end(self) -> None:
        self.ended += 1


def test_the_same_error_at_the_same_place_is_logged_once_a_minute():
    watched = Watched()
    for _ in range(1000):
        with watched.defence.guard("audit"):
            raise OSError("again")
    with watched.defence.guard("audit"):
        raise ValueError("another")
    assert watched.defence.counts == {"audit": 1001}
    assert len(watched.lines) == 2
    watched.now = INTERVAL + 1
    with watched.defence.guard("audit"):
        raise OSError("again")
    assert watched.lines[-1]["suppressed"] == 999


def test_a_router_that_only_fails_ends_the_daemon_once():
    watched = Watched()
    for number in range(2 * HOPELESS_TIMES):
        watched.now = number * HOPELESS_AFTER / HOPELESS_TIMES
        watched.defence.router_failed("tick", ValueError("broken"))
    assert len(watched.given_up) == 1


def test_the_first_error_for_lack_of_memory_ends_the_process():
    watched = Watched()
    with watched.defence.guard("audit"):
        raise OSError("something else")
    assert watched.ended == 0
    with watched.defence.guard("audit"):
        raise MemoryError
    assert watched.ended == 1
    watched.defence.router_failed("handle", MemoryError())
    assert watched.ended == 2


A_FINALIZER_RAISES = """
import sys
import fared.daemon.process as process
from fared.runtime.log_output import LogOutput

class Finalized:
    def __del__(self):
        raise {raised}

class Daemon:
    leaving = False
    def __init__(self, *_):
        self.stderr = LogOutput(sys.stderr, str)
    async def serve(self):
        Finalized()
        print("goes on")

process.Daemon = Daemon
process.run("fared.yaml", None)
"""


@pytest.mark.parametrize(
    ("raised", "returncode", "said", "output"),
    [
        ("MemoryError", 1, "fared: out of memory; our routes stay", ""),
        ("OSError", 0, "Exception ignored in", "goes on\n"),
    ],
)
def test_lack_of_memory_that_python_would_ignore_ends_the_process(
    raised: str, returncode: int, said: str, output: str
):
    """A finalizer that raises is reported and ignored: without memory it has not done its work."""
    ended = subprocess.run(
        [sys.executable, "-c", A_FINALIZER_RAISES.format(raised=raised)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (returncode, output)
    assert ended.stderr.startswith(said)


def test_a_router_that_succeeds_in_between_does_not_end_the_daemon():
    watched = Watched()
    for number in range(100):
        watched.now = float(number)
        watched.defence.router_failed("handle", ValueError("one packet"))
        watched.defence.router_worked()
    assert watched.given_up == []


class Broken:
    """A router that raises in some calls, and records its inputs."""

    settled = False

    def __init__(self) -> None:
        self.told: list[object] = []
        self.outputs: list[list[events.Output]] = []
        self.deadline: float | None = None

    def handle(self, event: object, _now: float) -> None:
        self.told.append(event)
        if event == "bad":
            raise ValueError(event)

    def tick(self, _now: float) -> None:
        raise ValueError("tick")

    def take_outputs(self) -> list[events.Output]:
        return self.outputs.pop(0) if self.outputs else []

    def next_deadline(self) -> float | None:
        return self.deadline


class Kernel:
    """A table that raises an unexpected exception."""

    def apply(self, _operations: object) -> list[object]:
        raise RuntimeError("no kernel")


async def test_one_bad_input_or_output_affects_no_other_and_the_kernel_always_answers():
    watched, router = Watched(), Broken()
    runner = Runner(router, Kernel(), {}, watched.log, defence=watched.defence)
    request = events.ApplyFib((PutNextHop(1, (1, 4, 1, False)),), "test")
    router.outputs = [[LogRecord("no-such-level", "x", {}), request]]
    runner.feed("bad", "good")
    assert router.told[:2] == ["bad", "good"]
    answer = router.told[2]
    assert isinstance(answer, events.FibApplied)
    assert [result.error != 0 for result in answer.results] == [True]
    assert watched.defence.counts == {"handle": 1, "output": 1, "apply": 1}


async def test_a_tick_that_fails_is_not_repeated_in_a_hot_loop():
    watched, router = Watched(), Broken()
    runner = Runner(router, Kernel(), {}, watched.log, defence=watched.defence)
    router.deadline = begun = runner._loop.time()
    runner.feed()
    runner._tick()
    assert runner._timer is not None
    assert runner._timer.when() > begun + 0.5
    runner.stop()
