"""The boot count on disk: it increases at every start, for any clock and any damage to the file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fared.daemon.change.boot_count import BootCount

WALL_NS = 1_795_000_000 * 10**9
OF_CLOCK = WALL_NS >> 32
DAY_NS = 86_400 * 10**9
NAME = "ospf-boot-count"


class Log(list):
    """The logged events and their fields."""

    def info(self, event, **fields):
        self.append((event, fields))

    warning = info


def life(directory: Path, wall_ns: int = WALL_NS) -> tuple[int, list[str]]:
    """Start the router: return its count, and the events that it logged."""
    log = Log()
    count = BootCount(directory, log).begin(wall_ns)
    return count, [event for event, _ in log]


def test_every_start_increments_the_count_for_any_clock(tmp_path: Path):
    """The clock is a day behind, in 1970, or unchanged; a clock ahead of the count advances it."""
    walls = (WALL_NS, WALL_NS - DAY_NS, 0, WALL_NS, WALL_NS + DAY_NS)
    counts = [life(tmp_path / "made", wall)[0] for wall in walls]
    later = (WALL_NS + DAY_NS) >> 32
    assert counts == [OF_CLOCK, OF_CLOCK + 1, OF_CLOCK + 2, OF_CLOCK + 3, later]
    assert (tmp_path / "made" / NAME).read_text() == f"{later}\n"
    assert [file.name for file in (tmp_path / "made").iterdir()] == [NAME]


def test_numbers_of_a_release_without_a_count_were_nanoseconds_and_are_exceeded(tmp_path: Path):
    """The count's place in the number is where these nanoseconds had theirs; it restarts later."""
    count, _ = life(tmp_path, WALL_NS + 5 * 10**9)
    assert (count << 32) + 1 > WALL_NS


def test_the_count_increments_once_per_process(tmp_path: Path):
    """Reloads get the same count."""
    kept = BootCount(tmp_path, Log())
    assert kept.begin(WALL_NS) == kept.begin(WALL_NS + DAY_NS) == OF_CLOCK
    assert life(tmp_path, WALL_NS)[0] == OF_CLOCK + 1


def test_a_count_incremented_by_sequence_number_overflow_is_kept(tmp_path: Path):
    """RFC 7474 §3.1. Without keys with extended sequence numbers, no file is written."""
    kept = BootCount(tmp_path, Log())
    kept.follow(5)
    assert list(tmp_path.iterdir()) == []
    count = kept.begin(WALL_NS)
    kept.follow(0)
    kept.follow(count + 1)
    assert life(tmp_path, WALL_NS)[0] == count + 2


def as_fifo(file: Path) -> None:
    os.mkfifo(file)


def as_directory(file: Path) -> None:
    file.mkdir()


def as_text(text: str):
    return lambda file: file.write_text(text)


@pytest.mark.parametrize(
    "spoil",
    [
        as_text(""),
        as_text("twelve"),
        as_text("-3"),
        as_text("\0" * 4096),
        as_text("99999999999999999999"),
        as_text("4294967295"),
        as_fifo,
    ],
    ids=["empty", "words", "negative", "zeros", "huge", "all ones", "FIFO"],
)
def test_a_file_without_a_valid_count_is_logged_and_replaced(tmp_path: Path, spoil):
    spoil(tmp_path / NAME)
    count, events = life(tmp_path)
    assert (count, events) == (OF_CLOCK, ["boot-count-unreadable", "boot-count"])
    assert life(tmp_path) == (OF_CLOCK + 1, ["boot-count"])


@pytest.mark.parametrize("step", ["open", "fsync", "replace", "mkdir"])
def test_a_failed_write_is_logged_and_the_router_starts(tmp_path: Path, step, monkeypatch):
    """Read-only, full or failing disk: the clock supplies the count; the old file is unchanged."""
    directory = tmp_path / "state"
    if step != "mkdir":
        assert life(directory)[0] == OF_CLOCK

    def fail(*_args, **_keywords):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fail_to_write(file, flags, *more):
        return fail() if flags & os.O_CREAT else os_open(file, flags, *more)

    os_open = os.open
    if step in ("replace", "mkdir"):
        monkeypatch.setattr(Path, step, fail)
    else:
        patched = fail_to_write if step == "open" else fail
        monkeypatch.setattr(os, step, patched)
    count, events = life(directory)
    assert count == OF_CLOCK + (step != "mkdir")
    assert events == ["boot-count-not-kept"]
    monkeypatch.undo()
    assert life(directory)[0] == count, "as though the failed life had not been"


def test_a_directory_in_place_of_the_file_is_named(tmp_path: Path):
    """It can be neither read nor replaced."""
    as_directory(tmp_path / NAME)
    log = Log()
    assert BootCount(tmp_path, log).begin(WALL_NS) == OF_CLOCK
    assert [event for event, _ in log] == ["boot-count-unreadable", "boot-count-not-kept"]
    assert {fields["file"] for _, fields in log} == {str(tmp_path / NAME)}
    assert all(fields["error"] for _, fields in log)


def test_the_count_is_on_disk_before_it_is_returned(tmp_path: Path, monkeypatch):
    """The content is synced before the rename, the directory after it."""
    done: list[str] = []
    replace, fsync = Path.replace, os.fsync
    monkeypatch.setattr(Path, "replace", lambda *a: (done.append("rename"), replace(*a))[1])
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("sync"), fsync(fd))[1])
    life(tmp_path)
    assert done == ["sync", "rename", "sync"]
