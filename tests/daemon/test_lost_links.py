"""Lost links over restarts."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.daemon.services.lost_links import LostLinksFile
from fared.router.changes import DatabaseChanges
from fared.router.lost import KEPT, LostLink

LINK = LostLink("ospf", 0, NodeId(1), NodeId(2), 1, 0.0, ("L1", None))


class Process:
    """One life of a daemon with a state directory."""

    def __init__(self, directory: Path) -> None:
        self.changes = DatabaseChanges()
        self.lost = self.changes.lost
        self.warned: list[str] = []
        log = SimpleNamespace(warning=lambda event, **_: self.warned.append(event))
        self.file = LostLinksFile(directory, lambda: self.changes, log)

    async def lives(self, *ages: float) -> None:
        """Links are lost ``ages`` ago, and the process ends."""
        now = asyncio.get_running_loop().time()
        for number, age in enumerate(ages, 10):
            self.lost.lose(replace(LINK, a=NodeId(number), since=now - age), network=False)
        self.file.close()

    def read(self, now: float = 1000.0) -> list[tuple[int, float]]:
        return [(link.a, round(now - link.since)) for link in self.file.read(now)]


def test_a_new_process_knows_what_the_former_one_had_lost(tmp_path):
    asyncio.run(Process(tmp_path).lives(500.0, 20.0))
    assert Process(tmp_path).read() == [(10, 500), (11, 20)]


def test_a_link_is_forgotten_a_day_after_its_loss_even_if_nobody_ran(tmp_path, monkeypatch):
    asyncio.run(Process(tmp_path).lives(500.0, 20.0))
    later = Process(tmp_path)
    clock = time.time
    monkeypatch.setattr("time.time", lambda: clock() + KEPT - 100.0)
    assert [a for a, _ in later.read()] == [11]


def test_a_clock_that_was_set_back_makes_no_loss_of_tomorrow(tmp_path, monkeypatch):
    asyncio.run(Process(tmp_path).lives(500.0))
    clock = time.time
    monkeypatch.setattr("time.time", lambda: clock() - 7200.0)
    assert Process(tmp_path).read() == [(10, 0)]


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"a": 1}', b"\xff"])
def test_an_unreadable_file_is_told_and_ignored(tmp_path, content):
    (tmp_path / "lost-links.json").write_bytes(content)
    process = Process(tmp_path)
    assert process.read() == []
    assert process.warned == ["lost-links-unreadable"]


def test_only_something_new_is_written(tmp_path):
    process = Process(tmp_path)
    asyncio.run(process.lives())
    assert not list(tmp_path.iterdir())
    asyncio.run(process.lives(1.0))
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    asyncio.run(process.lives())
    assert file.stat().st_mtime_ns == written
