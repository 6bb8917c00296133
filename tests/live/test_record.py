"""A real daemon is recorded, and its router, run again on the files, does the same."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.management.api.client import DaemonRefusedError
from fared.management.recording.files import segments
from tests.live.daemons import LEFT, REPOSITORY, Json, Pair, run_program
from tests.live.isis_daemons import LEFT_SYSTEM, IsisPair
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]


@pytest.fixture(scope="module", params=["ospf", "isis"])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Two daemons, of which the left one is recorded from its first start on."""
    directory = tmp_path_factory.mktemp("record")
    make = IsisPair if request.param == "isis" else Pair
    pair = make(f"r{request.param}", directory)
    pair.left.arguments = ["--record", str(directory / "start")]
    try:
        pair.start()
        yield pair
    finally:
        pair.close()


@pytest.fixture
def recorded(shared: Pair) -> Pair:
    """The same, whatever the test before has left: the left one is recorded since a start."""
    left = shared.left
    if not left.alive() or not status(shared)["recording"]:
        if left.alive():
            left.terminate()
        left.start()
        shared.await_routes()
    return shared


def replay(directory: Path, *arguments: str) -> Json:
    done = run_program("fared-cli", "replay", str(directory), "--json", *arguments)
    assert done.stderr == "", done.stderr
    document: Json = json.loads(done.stdout)
    assert document["format"] == "fared-replay/1"
    assert done.returncode == (document["equal"] is False or document["reached"] is False)
    return document


def status(pair: Pair) -> Json:
    return pair.left.ask("record-status")


def start_directory(pair: Pair) -> Path:
    return pair.left.directory.parent / "start"


def lose_and_heal_a_link(pair: Pair) -> None:
    pair.left.netns.ip("link", "set", "u0", "down")
    wait_for(lambda: pair.used() == {"u1"}, 40, "the other link is used alone")
    pair.left.netns.ip("link", "set", "u0", "up")
    pair.await_routes()


def replay_at_rest(pair: Pair) -> Json:
    """Replay what was recorded until now, with the routes that the daemon has now."""

    def document() -> Json | None:
        before = len(pair.left.show("routes")["routes"])
        found = replay(start_directory(pair))
        return found if found["routes"] == before else None

    return wait_for(document, 40, "the replay has the routes of the daemon")


def test_a_recording_from_the_start_on_replays_while_it_goes_on(recorded: Pair):
    lose_and_heal_a_link(recorded)
    document = replay_at_rest(recorded)
    assert document["equal"] is True, document["difference"]
    assert document["begins"] == "router"
    identity = LEFT_SYSTEM if "isis" in recorded.left.config else LEFT
    assert document["router_id"] == identity
    assert document["hostname"] == "left"
    assert document["events"]["neighbor-changed"] >= 4
    assert document["events"]["link-changed"] >= 4
    assert status(recorded)["recording"] is True


def test_a_replay_until_an_event_stops_there(recorded: Pair):
    whole = replay(start_directory(recorded))
    document = replay(start_directory(recorded), "--until", "computed:2")
    assert document["reached"] is True
    assert document["events"]["computed"] >= 2
    assert document["calls"] <= whole["calls"]
    assert replay(start_directory(recorded), "--until", "computed:9999")["reached"] is False


def test_a_recording_is_private(recorded: Pair):
    directory = start_directory(recorded)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}


def test_a_killed_daemon_leaves_what_replays_and_the_next_one_goes_on(recorded: Pair):
    left, directory = recorded.left, start_directory(recorded)
    before = len(segments(directory))
    left.kill()
    document = replay(directory)
    assert document["equal"] is True, document["difference"]
    assert document["confirmed"] is False
    left.start()
    recorded.await_routes()
    assert left.terminate()[0] == 0
    assert len(segments(directory)) == before + 1
    document = replay(directory)
    assert document["equal"] is True, document["difference"]
    assert document["confirmed"] is True
    assert document["segment"] == before + 1
    assert document["routes"] > 0
    assert left.complaints() == []


def test_a_running_daemon_is_recorded_from_a_state_on(recorded: Pair, tmp_path: Path):
    left = recorded.left
    left.ask("record-stop")
    directory = tmp_path / "later"
    done = left.cli("record", "start", str(directory), "--size", "8")
    assert (done.returncode, done.stderr) == (0, "")
    again = left.cli("record", "start", str(directory))
    assert again.returncode == 1
    assert "a recording runs" in again.stderr
    calls = status(recorded)["calls"]
    wait_for(lambda: status(recorded)["calls"] > calls, 40, "hellos are recorded")
    lose_and_heal_a_link(recorded)
    wait_for(lambda: segments(directory)[0].state is not None, 40, "the state is written")
    stopped = left.ask("record-stop")
    assert stopped["recording"] is False
    assert stopped["directory"] == str(directory)
    assert stopped["failure"] is None
    assert stopped["limit"] == 8 << 20
    refused = run_program("fared-cli", "replay", str(directory))
    assert refused.returncode == 1, "its key is not that of this machine's service"
    assert "was not signed with" in refused.stderr
    document = replay(directory, "--trust")
    assert document["equal"] is True, document["difference"]
    assert document["confirmed"] is True
    assert document["begins"] == "state"
    assert document["calls"] == stopped["calls"]
    assert document["events"]["neighbor-changed"] >= 2
    calls = status(recorded)["calls"]
    lose_and_heal_a_link(recorded)
    assert status(recorded)["calls"] == calls, "nothing is recorded any more"
    assert recorded.left.complaints() == []
    assert left.cli("record", "stop").returncode == 1


def test_a_recording_becomes_a_test_that_passes(recorded: Pair, tmp_path: Path):
    file = tmp_path / "test_fault.py"
    document = replay(start_directory(recorded), "--until", "computed:2", "--write-test", str(file))
    assert document["test"] == str(tmp_path / "test_fault.recording")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "1 passed" in ran.stdout
    text = file.read_text()
    assert "ROUTES = [" in text
    file.write_text(text.replace("ROUTES = [", 'ROUTES = [\n    "10.0.0.0/8 1: connected",'))
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert "1 failed" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"directory": "here"}, "absolute path"),
        ({"directory": 3}, "absolute path"),
        ({"size": 3}, "1 MiB to 1 TiB"),
        ({"size": True}, "1 MiB to 1 TiB"),
        ({"directory": "/proc/nowhere"}, "/proc/nowhere: "),
    ],
)
def test_wrong_requests_are_refused(pair: Pair, arguments: Json, text: str):
    with pytest.raises(DaemonRefusedError, match=text):
        pair.left.ask("record-start", **arguments)
    assert pair.left.ask("record-status")["recording"] is False
