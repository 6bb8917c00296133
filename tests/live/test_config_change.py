"""Configurations with a way back, in a daemon beside another: nothing moves that did not change."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.live.daemons import LINKS, Pair
from tests.live.test_reload import SOON, changed, transitions
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

UNCONFIRMED = 8
"""Seconds until the former configuration returns: what is looked at meanwhile are a write to the
kernel and three answers of the daemon, which takes seconds on a busy machine."""


@pytest.fixture
def running(pair: Pair) -> Iterator[Pair]:
    """The shared pair; its configuration is put back."""
    yield pair
    pair.left.reload()
    pair.await_routes()


@pytest.fixture
def dearer(running: Pair, tmp_path: Path) -> str:
    """A file in which one of the two links costs more."""
    file = tmp_path / "dearer.yaml"
    file.write_text(yaml.safe_dump(changed(running, "u0", cost=25), sort_keys=False))
    return str(file)


def applied(pair: Pair, *arguments: str) -> str:
    done = pair.left.cli("config", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def history(pair: Pair) -> list[tuple[str, str, str]]:
    """How, state and comment of each configuration that ran, newest first."""
    found = json.loads(applied(pair, "history", "--json"))["entries"]
    assert {entry["user"] for entry in found} <= {"fared", "SIGHUP", getpass.getuser()}
    return [(entry["how"], entry["state"], entry["comment"]) for entry in found]


def test_a_configuration_that_nobody_confirms_goes_as_it_came(running: Pair, dearer: str):
    """No adjacency moves, and file and kernel end as they were."""
    before = transitions(running), running.left.file.read_text(), running.view.routes()
    shown = applied(running, "apply", dearer, "--confirm", f"{UNCONFIRMED}s", "--comment", "try u1")
    assert "10 -> 25  [update-in-place]" in shown
    assert "fared-cli config confirm" in shown
    wait_for(lambda: running.used() == {"u1"}, UNCONFIRMED, "the cheaper link only")
    assert running.left.show("status")["config"]["unconfirmed_until"] is not None
    code, status = running.left.on_terminal("show", "status")
    assert code == 0
    assert "the former one returns in" in status
    back = UNCONFIRMED + SOON
    wait_for(lambda: running.used() == set(LINKS), back, "the former configuration is back")
    wait_for(lambda: history(running)[0][0] == "return", SOON, "it is in the history")
    assert history(running)[1] == ("apply", "expired", "try u1")
    assert (transitions(running), running.left.file.read_text(), running.view.routes()) == before
    assert running.left.cli("config", "confirm").returncode == 1


def test_a_confirmed_configuration_is_the_file(running: Pair, dearer: str):
    before = transitions(running)
    applied(running, "apply", dearer, "--confirm", "60s")
    saved, runs = (
        running.left.show("config", saved=saved)["config"]["ospf"]["areas"]["0.0.0.0"]["interfaces"]
        for saved in (True, False)
    )
    assert (saved["u0"]["cost"], runs["u0"]["cost"]) == (10, 25)
    assert "confirmed and saved" in applied(running, "confirm")
    assert running.left.file.read_text() == Path(dearer).read_text()
    wait_for(lambda: running.used() == {"u1"}, SOON, "the cheaper link only")
    applied(running, "rollback", "--comment", "enough")
    wait_for(lambda: running.used() == set(LINKS), SOON, "both links")
    assert history(running)[0] == ("rollback", "final", "enough")
    assert transitions(running) == before


def test_after_a_crash_before_the_confirmation_the_former_configuration_runs(
    running: Pair, dearer: str
):
    before = running.left.file.read_text()
    applied(running, "apply", dearer, "--confirm", "60s")
    wait_for(lambda: running.used() == {"u1"}, SOON, "the cheaper link only")
    running.left.kill()
    assert running.left.file.read_text() == before
    running.left.start()
    running.await_routes()
    assert running.used() == set(LINKS)
    assert [how for how, _, _ in history(running)][:2] == ["return", "apply"]


def test_a_configuration_with_errors_is_refused_whole(running: Pair, tmp_path: Path):
    before = running.left.file.read_text()
    file = tmp_path / "bad.yaml"
    file.write_text("ospf: {aera: {}}\n")
    done = running.left.cli("config", "apply", str(file))
    assert done.returncode == 1
    assert f"{file}:1:8: ospf.aera: " in done.stdout
    assert running.left.file.read_text() == before
    assert running.left.cli("config", "apply", "/no/such.yaml").returncode == 1
    assert running.left.cli("config", "apply", str(file), "--confirm", "soon").returncode == 2


def test_the_history_is_read_on_a_terminal_of_80_columns(running: Pair):
    running.left.assert_answers("config", "history")
