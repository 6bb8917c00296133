"""``fared --fallback``: a refused file leaves the router with the configuration that ran last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fared.config import ConfigErrors, load_runnable
from fared.config.load import Loaded
from fared.daemon import main
from fared.daemon.change.history import Entry, History, State
from fared.daemon.change.last_configuration import last_configuration
from tests.daemon.stage import Stage

RAN = "router-id: 10.0.0.{}\nospf: {{areas: {{0: {{interfaces: {{swp1: {{}}}}}}}}}}\n"
WRONG = "ospf: {areas: nowhere}\n"


class Log:
    """Where a history says what it could not read."""

    def warning(self, event: str, **fields: Any) -> None:
        """Forget it."""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    made = tmp_path / "fared.yaml"
    made.write_text(WRONG)
    return made


def keep(tmp_path: Path, text: str, state: State = "final") -> Entry:
    history = History(tmp_path / "state", Log())
    return history.add(Entry(0, 0.0, "start", "fared", "", 0, state, 0), text)


def last(file: Path) -> Loaded | None:
    with pytest.raises(ConfigErrors) as refused:
        load_runnable(file)
    return last_configuration(str(file), refused.value)


def test_the_newest_that_was_confirmed_and_is_whole_and_valid_runs(file, tmp_path):
    keep(tmp_path, RAN.format(1))
    keep(tmp_path, RAN.format(2))
    keep(tmp_path, WRONG)
    keep(tmp_path, RAN.format(4), "unconfirmed")
    keep(tmp_path, RAN.format(5), "expired")
    damaged = keep(tmp_path, RAN.format(6))
    (tmp_path / "state/config-history" / f"{damaged.number:08}.yaml").write_text(RAN.format(7))
    found = last(file)
    assert found is not None
    assert found.text == RAN.format(2)
    assert "areas" in found.refused


def test_without_one_that_ran_the_daemon_ends_as_without_the_option(file, capsys):
    assert last(file) is None
    with pytest.raises(SystemExit) as ended:
        main._load(str(file), fallback=True)
    assert ended.value.code == main.EXIT_USAGE
    assert "areas" in capsys.readouterr().err


def test_only_the_option_falls_back(file, tmp_path):
    keep(tmp_path, RAN.format(1))
    assert main._load(str(file), fallback=True).text == RAN.format(1)
    with pytest.raises(SystemExit):
        main._load(str(file), fallback=False)


async def test_who_looks_sees_that_the_file_is_refused(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch)
    stage.refused = "fared.yaml:1: areas: expected a mapping"
    async with stage.running():
        config = (await stage.ask("show status"))["config"]
        assert not config["last_reload_ok"]
        assert "areas" in config["last_reload_error"]
        checks = {check["name"]: check for check in (await stage.ask("validate"))["checks"]}
        assert not checks["the configuration file is in use"]["ok"]
        assert (await stage.ask("reload"))["applied"], "the file has been mended"
        assert (await stage.ask("show status"))["config"]["last_reload_ok"]
