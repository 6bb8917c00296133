"""The ring of segments is bounded, private, and always has what a replay can begin with."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fared.management.recording import calls
from fared.management.recording.files import RecordingError, SegmentRing, segments


def ring_in(directory: Path, limit: int = 10_000, most: int = 5) -> SegmentRing:
    return SegmentRing(directory / "ring", limit, most, directory)


def head(number: int) -> calls.SegmentBegun:
    return calls.SegmentBegun(calls.FORMAT, "1", "3", number, 0.0, 0.0)


def add(ring: SegmentRing, size: int, *, state: int | None) -> int:
    """Write a segment of a size; ``state``: the size of its state, if it has one."""
    number = ring.next_segment()
    ring.write(calls.encoded([head(number)]))
    ring.write(bytes(size))
    if state is not None:
        ring.keep_state(number, bytes(state))
    ring.prune()
    return number


def numbers(ring: SegmentRing) -> list[int]:
    return [segment.number for segment in segments(ring.directory)]


def test_the_oldest_segments_are_removed_beyond_the_size(tmp_path):
    ring = ring_in(tmp_path, limit=10_000, most=100)
    for _ in range(20):
        add(ring, 2000, state=500)
        assert sum(file.stat().st_size for file in ring.directory.iterdir()) <= 10_000
    assert numbers(ring) == [18, 19, 20]


def test_the_oldest_segments_are_removed_beyond_the_number(tmp_path):
    ring = ring_in(tmp_path, most=5)
    for _ in range(9):
        add(ring, 10, state=10)
    assert numbers(ring) == [5, 6, 7, 8, 9]


def test_a_segment_without_a_state_needs_the_ones_before_it(tmp_path):
    ring = ring_in(tmp_path, most=2)
    add(ring, 10, state=10)
    for _ in range(4):
        add(ring, 10, state=None)
    assert numbers(ring) == [1, 2, 3, 4, 5]
    add(ring, 10, state=10)
    assert numbers(ring) == [6]


def test_the_ring_goes_on_with_the_next_number(tmp_path):
    ring = ring_in(tmp_path)
    add(ring, 10, state=10)
    ring.close()
    assert add(ring_in(tmp_path), 10, state=10) == 2


def test_files_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        ring = ring_in(tmp_path)
        add(ring, 10, state=10)
    finally:
        os.umask(before)
    assert stat.S_IMODE(ring.directory.stat().st_mode) == 0o700
    modes = [stat.S_IMODE(file.stat().st_mode) for file in ring.directory.iterdir()]
    assert modes == [0o600, 0o600]


def test_a_directory_with_other_files_is_refused(tmp_path):
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring" / "letter.txt").write_text("dear all")
    with pytest.raises(RecordingError, match=r"has other files, such as letter\.txt"):
        ring_in(tmp_path)


def test_a_directory_that_is_refused_keeps_all_its_files(tmp_path):
    """``record start /etc/fared`` must not remove what an editor or fared itself has begun."""
    ring = tmp_path / "ring"
    ring.mkdir()
    names = ["000001.new", "fared.yaml", "fared.yaml.new", "report.new"]
    for name in names:
        (ring / name).touch()
    with pytest.raises(RecordingError, match=r"has other files, such as fared\.yaml"):
        ring_in(tmp_path)
    assert sorted(file.name for file in ring.iterdir()) == names


def test_neither_links_are_followed_to_a_directory_nor_directories_made_on_the_way(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "ring").symlink_to("elsewhere")
    with pytest.raises(RecordingError, match="symbolic link"):
        ring_in(tmp_path)
    with pytest.raises(RecordingError, match="No such file"):
        ring_in(tmp_path / "on" / "the")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "on").exists()


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "ring").write_text("")
    with pytest.raises(RecordingError, match="File exists"):
        ring_in(tmp_path)


def test_a_state_that_was_not_completed_is_removed(tmp_path):
    ring = ring_in(tmp_path)
    add(ring, 10, state=None)
    (ring.directory / "000001.new").write_bytes(b"half")
    ring.close()
    again = ring_in(tmp_path)
    assert [file.name for file in again.directory.iterdir()] == ["000001.calls"]


def test_a_link_is_not_followed(tmp_path):
    ring = ring_in(tmp_path)
    (tmp_path / "elsewhere").write_text("precious")
    ring.path(1, ".calls").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="File exists"):
        ring.next_segment()
    assert (tmp_path / "elsewhere").read_text() == "precious"
