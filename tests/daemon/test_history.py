"""The history of configurations on disk: kept private, bounded, and never in the way of routing."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fared.daemon.change.history import KEPT, Entry, History


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def history(tmp_path: Path, said: list[str]) -> History:
    def say(event: str, **_: Any) -> None:
        said.append(event)

    return History(tmp_path / "state", SimpleNamespace(warning=say))


def entry(comment: str = "") -> Entry:
    return Entry(0, 1000.0, "apply", "anna", comment, 3, "final", 0)


def test_the_newest_configuration_comes_first(history: History):
    assert history.newest() is None
    for text in "ab":
        history.add(entry(text), f"text {text}")
    assert [e.comment for e in history.entries()] == ["b", "a"]
    assert [history.text(e) for e in history.entries()] == ["text b", "text a"]
    newest = history.newest()
    assert newest is not None
    assert (newest.number, newest.user, newest.changes) == (2, "anna", 3)


def test_only_the_daemon_can_read_the_files(history: History, tmp_path: Path):
    """They hold keys."""
    history.add(entry(), "key: secret")
    directory = tmp_path / "state" / "config-history"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}


def test_the_last_fifty_are_kept(history: History, tmp_path: Path):
    for number in range(KEPT + 5):
        history.add(entry(str(number)), f"text {number}")
    kept = [e.comment for e in history.entries()]
    assert kept == [str(number) for number in reversed(range(5, KEPT + 5))]
    assert len(list((tmp_path / "state" / "config-history").iterdir())) == 2 * KEPT


def test_an_entry_changes_its_state(history: History):
    added = history.add(entry(), "text")
    history.settle(added, "expired")
    (found,) = history.entries()
    assert found.state == "expired"
    assert history.text(found) == "text"


@pytest.mark.parametrize("damage", ["", "{", '{"number": 7}', "\x00" * 5000])
def test_damaged_facts_are_left_out(history: History, tmp_path: Path, said, damage: str):
    history.add(entry("a"), "a")
    history.add(entry("b"), "b")
    (tmp_path / "state" / "config-history" / "00000002.json").write_text(damage)
    assert [e.comment for e in history.entries()] == ["a"]
    assert "config-history-unreadable" in said
    assert history.add(entry("c"), "c").number == 3


def test_a_text_that_somebody_changed_is_refused(history: History, tmp_path: Path):
    added = history.add(entry(), "text")
    (tmp_path / "state" / "config-history" / "00000001.yaml").write_text("other")
    with pytest.raises(ValueError, match="not the text"):
        history.text(added)


def test_a_disk_that_refuses_is_logged(history: History, tmp_path: Path, said):
    (tmp_path / "state").write_text("a file in the place of the directory")
    assert history.add(entry(), "text").number == 1
    assert said == ["config-history-not-kept"]
    assert history.entries() == []


def test_while_descriptors_are_short_nothing_is_taken_for_the_first_configuration(
    history: History, monkeypatch: pytest.MonkeyPatch, said
):
    """A directory that cannot be read now is not empty: entry 1 would be written over."""
    history.add(entry("a"), "a")

    def short(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", short)
        for ask in (history.entries, history.newest):
            with pytest.raises(OSError, match="open files"):
                ask()
        lost = history.add(entry("b"), "b")
        assert said == ["config-history-not-kept"]
        with pytest.raises(OSError, match="open files"):
            history.add(entry("b"), "b", patient=True)
    history.settle(lost, "expired")
    assert [(e.state, history.text(e)) for e in history.entries()] == [("final", "a")]
