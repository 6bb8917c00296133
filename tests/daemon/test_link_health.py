"""Links that are watched: what follows of their errors and flaps, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from fared.config import load_text
from fared.config.link_health import LinkHealth
from fared.core.links import Link
from fared.daemon.services.link_health import FecReader, LinkWatch
from tests.daemon.stage import Stage

LINE = "{name}: 0 {packets} {errors} 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
SWP1 = Link(2, "swp1", True, 1500, speed=1.25e9)
SWP2 = Link(3, "swp2", True, 1500, speed=1.25e9)


class WithoutFec:
    """Links whose drivers have no FEC counters."""

    def may_have(self, ifindex: int) -> bool:
        return False

    def forget(self, ifindex: int) -> None:
        pass

    def read(self, wanted: Mapping[str, int]) -> dict[str, int]:
        raise AssertionError(wanted)


class Watch:
    """A watch on two links, of which the second one is never mentioned."""

    def __init__(self, directory: Path, mode: str = "act", **options: Any) -> None:
        self.file = directory / "dev"
        self.now, self.packets, self.errors = 0.0, 0, 0
        self.links = {2: SWP1, 3: SWP2}
        self.treated: list[str] = []
        self.said: list[tuple[str, dict[str, Any]]] = []
        log = SimpleNamespace(
            info=lambda event, **facts: self.said.append((event, facts)),
            warning=lambda event, **facts: self.said.append((event, facts)),
        )
        self.watch = LinkWatch(
            self.section(mode, **options),
            lambda: self.links,
            lambda link: self.treated.append(link.name),
            lambda: self.now,
            log,
            fec=FecReader(lambda _: None, WithoutFec()),
        )
        self.run(1)

    def section(self, mode: str = "act", **options: Any) -> LinkHealth:
        written = {"mode": mode, "hold-down": "30s", **options}
        text = {"counters": str(self.file), "interfaces": {"swp1": written}}
        return load_text(f"link-health: {text}\n").link_health

    def run(self, seconds: int, errors: int = 0) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.packets += 10_000
            self.errors += errors
            self.write()
            self.watch.check()

    def write(self) -> None:
        lines = [
            LINE.format(name=name, packets=self.packets, errors=self.errors)
            for name in ("swp1", "swp2")
        ]
        self.file.write_text("".join(lines))

    def flap(self) -> None:
        self.watch.link_changed(replace(SWP1, up=False), SWP1)
        self.watch.link_changed(SWP1, replace(SWP1, up=False))

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.said]


def test_a_sick_link_is_derated_and_recovers(tmp_path):
    watch = Watch(tmp_path)
    watch.run(1, errors=5)
    watch.run(1, errors=5)
    assert watch.watch.share("swp1") == 0.25
    assert watch.treated == ["swp1"]
    derating = watch.watch.derating("swp1")
    assert derating is not None
    assert derating.by == "link-health"
    assert "10 errors" in derating.reason
    watch.run(60)
    assert watch.watch.share("swp1") == 1.0
    assert watch.watch.derating("swp1") is None
    assert watch.treated == ["swp1", "swp1"]
    assert watch.events == ["link-sick", "link-well"]


def test_a_link_that_nobody_named_is_not_watched(tmp_path):
    watch = Watch(tmp_path)
    watch.run(2, errors=1000)
    assert watch.watch.share("swp2") == 1.0
    assert watch.watch.facts("swp2") is None


def test_in_mode_monitor_it_is_only_told(tmp_path):
    watch = Watch(tmp_path, mode="monitor")
    watch.run(2, errors=1000)
    for _ in range(4):
        watch.flap()
    assert watch.watch.share("swp1") == 1.0
    assert not watch.watch.suppressed("swp1")
    assert watch.watch.derating("swp1") is None
    assert watch.treated == []
    assert watch.events == ["link-sick", "link-suppressed"]
    facts = watch.watch.facts("swp1")
    assert facts is not None
    assert (facts.share, facts.suppressed) == (0.0, True)


def test_a_link_that_flaps_waits_until_its_penalty_has_decayed(tmp_path):
    watch = Watch(tmp_path)
    for _ in range(2):
        watch.flap()
    assert not watch.watch.suppressed("swp1")
    watch.flap()
    assert watch.watch.suppressed("swp1")
    facts = watch.watch.facts("swp1")
    assert facts is not None
    watch.run(int(facts.reuse_in) - 1)
    assert watch.watch.suppressed("swp1")
    assert watch.treated == []
    watch.run(2)
    assert not watch.watch.suppressed("swp1")
    assert watch.treated == ["swp1"]
    assert watch.events == ["link-suppressed", "link-released"]


def test_losses_of_the_carrier_that_the_kernel_did_not_report_count_too(tmp_path):
    watch = Watch(tmp_path)
    watch.watch.link_changed(replace(SWP1, carrier_losses=6), SWP1)
    assert watch.watch.suppressed("swp1")


def test_counters_that_cannot_be_read_change_nothing(tmp_path):
    watch = Watch(tmp_path)
    watch.run(2, errors=1000)
    watch.file.unlink()
    for _ in range(100):
        watch.now += 1.0
        watch.watch.check()
    assert watch.watch.share("swp1") == 0.0
    assert watch.events.count("error-counters-not-read") in range(1, 5)


def test_other_options_end_the_treatment_and_equal_ones_do_not(tmp_path):
    watch = Watch(tmp_path)
    watch.run(2, errors=1000)
    watch.watch.configure(watch.section())
    assert watch.watch.share("swp1") == 0.0
    watch.watch.configure(watch.section(errors=1_000_000))
    assert watch.watch.share("swp1") == 1.0
    assert watch.treated == ["swp1", "swp1"]


def test_a_link_that_is_gone_is_forgotten(tmp_path):
    watch = Watch(tmp_path)
    watch.run(2, errors=1000)
    del watch.links[2]
    watch.run(1)
    assert watch.watch.facts("swp1") is None


@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({"steps": [{"ratio": "1%", "share": "25%"}, {"ratio": "0.1%", "share": "0%"}]}, "steps"),
        ({"steps": [{"ratio": "1%", "share": "100%"}]}, "steps"),
        ({"damping": {"reuse": 3000}}, "reuse"),
        ({"damping": {"half-life": "1m", "maximum": "1s"}}, "maximum"),
        ({"mode": "heal"}, "mode"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, at):
    with pytest.raises(Exception, match=at):
        Watch(tmp_path, **options)


async def test_a_running_daemon_derates_damps_and_releases(tmp_path, monkeypatch):
    """The router sees a suppressed link as down, and a derated one with less capacity."""
    stage, counters = Stage(tmp_path, monkeypatch), tmp_path / "dev"
    counters.write_text(LINE.format(name="swp1", packets=0, errors=0))
    section = {"counters": str(counters), "interfaces": {"swp1": {"mode": "act"}}}
    stage.file.write_text(stage.file.read_text() + f"\nlink-health: {section}\n")
    async with stage.running() as daemon:
        operation = daemon.parts.operation

        def seen() -> Any:
            interfaces = daemon.parts.runner.router.instances["ospf"].engine.instance.interfaces
            return next(i for i in interfaces.values() if i.name == "swp1")

        whole = seen().bandwidth.capacity
        operation.check_links()
        counters.write_text(LINE.format(name="swp1", packets=10_000, errors=5))
        operation.check_links()
        counters.write_text(LINE.format(name="swp1", packets=100_000, errors=12))
        operation.check_links()
        assert seen().bandwidth.capacity == whole / 4
        rows = (await stage.ask("show interfaces"))["interfaces"]
        (row,) = (row for row in rows if row["interface"] == "swp1")
        assert row["derated"][0]["by"] == "link-health"
        assert row["health"]["errors"] == 12
        values = {
            name: sample.value
            for family in daemon.parts.views.families()
            if family is not None
            for sample in family.samples
            if sample.labels.get("interface") == "swp1"
            for name in [sample.name]
        }
        assert values["fared_link_share_ratio"] == 0.25
        assert values["fared_link_errors"] == 12
        assert values["fared_link_suppressed"] == 0
        link = daemon.parts.monitor.links[2]
        for _ in range(3):
            daemon.parts.runner.feed_all(operation.link_changed(replace(link, up=False), link))
            daemon.parts.runner.feed_all(operation.link_changed(link, replace(link, up=False)))
        assert seen().state.value == "Down"
        assert operation.watch is not None
        operation.watch._watched["swp1"].damping._penalty = 1.0
        operation.check_links()
        assert seen().state.value == "Point-to-point"
