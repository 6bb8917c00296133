"""A replay is written as a test that passes, with a copy of what was played."""

from __future__ import annotations

import runpy
import stat
from pathlib import Path

import pytest

from fared.management.recording import files, written_test
from fared.management.recording.player import play
from fared.management.recording.written_test import write_test

TEST = "test_the_recorded_router_comes_to_these_routes"


def run(file: Path) -> dict[str, object]:
    """Run the test that a file has; return the names of the file."""
    names = runpy.run_path(str(file))
    names[TEST]()
    return names


def test_the_test_of_a_recording_passes(recording, tmp_path):
    file = tmp_path / "test_lost_link.py"
    assert write_test(file, recording, play(recording)) == str(
        tmp_path / "test_lost_link.recording"
    )
    names = run(file)
    assert names["RAISED"] == []
    assert "10.0.2.0/24 30: S2 1" in names["ROUTES"]
    copies = list((tmp_path / "test_lost_link.recording").iterdir())
    assert {copy.suffix for copy in copies} == {".calls"}
    assert len(copies) == 2
    assert {stat.S_IMODE(copy.stat().st_mode) for copy in copies} == {0o600}


def test_no_test_is_written_that_would_load_a_state(recording, tmp_path):
    min(recording.glob("*.calls")).unlink()
    with pytest.raises(files.RecordingError, match="begins with the start of a daemon"):
        write_test(tmp_path / "test_lost_link.py", recording, play(recording))
    assert not (tmp_path / "test_lost_link.recording").exists()


def test_a_test_that_says_something_else_fails(recording, tmp_path):
    file = tmp_path / "test_lost_link.py"
    write_test(file, recording, play(recording))
    file.write_text(file.read_text().replace("30: S2 1", "30: S1 1"))
    with pytest.raises(AssertionError):
        run(file)


def test_only_what_was_played_is_copied(recording, tmp_path):
    played = play(recording, until="neighbor-changed:3")
    assert played.segment == 1
    file = tmp_path / "test_start.py"
    copy = Path(write_test(file, recording, played))
    (only,) = files.segments(copy)
    assert only.size < files.segments(recording)[0].size
    again = play(copy)
    assert (again.call, again.difference) == (played.call, None)
    run(file)


def test_what_a_router_raised_is_in_the_test(recording, tmp_path):
    played = play(recording)
    played.raised.append("KeyError: '\"7\"'")
    file = tmp_path / "test_raised.py"
    write_test(file, recording, played)
    with pytest.raises(AssertionError):
        run(file)
    assert '    "KeyError: \'\\"7\\"\'",\n' in file.read_text()


def test_of_a_large_router_the_number_of_routes_is_tested(recording, tmp_path, monkeypatch):
    monkeypatch.setattr(written_test, "MOST_ROUTES", 3)
    file = tmp_path / "test_large.py"
    played = play(recording)
    write_test(file, recording, played)
    assert run(file)["ROUTES"] == len(played.router.table.routes)


@pytest.mark.parametrize("name", ["fault.py", "test_fault.txt", "test-fault.py", "test_.py.py"])
def test_a_file_that_pytest_would_not_find_is_refused(recording, tmp_path, name):
    with pytest.raises(files.RecordingError, match="is no name of a test"):
        write_test(tmp_path / name, recording, play(recording))


def test_nothing_is_overwritten(recording, tmp_path):
    file = tmp_path / "test_fault.py"
    file.write_text("precious")
    with pytest.raises(files.RecordingError, match=r"test_fault\.py exists"):
        write_test(file, recording, play(recording))
    file.unlink()
    (tmp_path / "test_fault.recording").mkdir()
    with pytest.raises(files.RecordingError, match=r"test_fault\.recording exists"):
        write_test(file, recording, play(recording))
    assert not file.exists()
    with pytest.raises(files.RecordingError, match="No such file"):
        write_test(tmp_path / "nowhere" / "test_fault.py", recording, play(recording))
