"""FEC counters of watched links, from a source that a test controls."""

from types import SimpleNamespace

from msgspec.structs import replace

from fared.config import load_text
from fared.core.links import Link
from fared.daemon.services.link_health import FecReader, LinkWatch
from tests.daemon.test_link_health import LINE, SWP1, SWP2


class Source:
    """Counters by name; interfaces that are not in it have none."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts
        self.without: set[int] = set()
        self.readings: list[dict[str, int]] = []
        self.error: OSError | None = None

    def may_have(self, ifindex: int) -> bool:
        return ifindex not in self.without

    def forget(self, ifindex: int) -> None:
        self.without.discard(ifindex)

    def read(self, wanted):
        self.readings.append(dict(wanted))
        if self.error is not None:
            raise self.error
        self.without |= {index for name, index in wanted.items() if name not in self.counts}
        return {name: self.counts[name] for name in wanted if name in self.counts}


async def end_of_reading(reader: FecReader) -> bool:
    """Wait until it has read; return False if it does not read now."""
    if reader._reading is None:
        return False
    await reader._reading
    return True


async def read(reader, wanted):
    reader.look(wanted)
    await end_of_reading(reader)


async def test_blocks_count_from_the_first_reading_on():
    source, failed = Source(swp1=5_000), []
    reader = FecReader(failed.append, source)
    for count, expected in ((5_000, 0), (5_010, 10), (3, 10), (7, 14)):
        source.counts["swp1"] = count
        await read(reader, {"swp1": 2})
        assert reader.errors("swp1") == expected
    assert failed == []


async def test_where_there_are_no_counters_nothing_is_read_any_more():
    source = Source()
    reader = FecReader(lambda _: None, source)
    await read(reader, {"swp1": 2})
    for _ in range(5):
        await read(reader, {"swp1": 2})
    assert len(source.readings) == 1
    reader.forget(2)
    await read(reader, {"swp1": 2})
    assert len(source.readings) == 2


async def test_a_slow_driver_is_not_asked_twice_at_once():
    source = Source(swp1=1)
    reader = FecReader(lambda _: None, source)
    reader.look({"swp1": 2})
    reader.look({"swp1": 2})
    assert await end_of_reading(reader)
    assert len(source.readings) == 1


async def test_an_error_is_reported_and_changes_no_count():
    source, failed = Source(swp1=1), []
    reader = FecReader(failed.append, source)
    await read(reader, {"swp1": 2})
    source.error = PermissionError(1, "not permitted")
    await read(reader, {"swp1": 2})
    assert len(failed) == 1
    assert reader.errors("swp1") == 0


class FecWatch:
    """A watch on two links, with errors of FEC only."""

    def __init__(self, directory, source: Source, **options) -> None:
        self.file, self.now, self.packets = directory / "dev", 0.0, 0
        self.said: list[str] = []
        self.fec = FecReader(lambda _: None, source)
        text = {"counters": str(self.file), "interfaces": {"swp*": {"mode": "act", **options}}}
        log = SimpleNamespace(
            info=lambda event, **_: self.said.append(event),
            warning=lambda event, **_: self.said.append(event),
        )
        links: dict[int, Link] = {2: SWP1, 3: SWP2}
        section = load_text(f"link-health: {text}\n").link_health
        self.watch = LinkWatch(
            section, lambda: links, lambda _: None, lambda: self.now, log, fec=self.fec
        )

    async def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.packets += 10_000
            names = ("swp1", "swp2")
            lines = [LINE.format(name=name, packets=self.packets, errors=0) for name in names]
            self.file.write_text("".join(lines))
            self.watch.check()
            await end_of_reading(self.fec)


async def test_a_link_whose_fec_fails_is_sick(tmp_path):
    """Its own count of the past does not matter, and the other link is well."""
    source = Source(swp1=1_000_000, swp2=3)
    watch = FecWatch(tmp_path, source)
    await watch.run(3)
    assert watch.watch.share("swp1") == 1.0
    source.counts["swp1"] += 15
    await watch.run(2)
    assert (watch.watch.share("swp1"), watch.watch.share("swp2")) == (0.25, 1.0)
    assert watch.said == ["link-sick"]
    facts = watch.watch.facts("swp1")
    assert facts is not None
    assert facts.errors == 15


async def test_without_the_setting_fec_is_not_read(tmp_path):
    source = Source(swp1=0)
    watch = FecWatch(tmp_path, source, fec=False)
    await watch.run(3)
    assert source.readings == []


async def test_a_link_that_comes_up_is_asked_again(tmp_path):
    """With another module it may have FEC."""
    source = Source()
    watch = FecWatch(tmp_path, source)
    await watch.run(2)
    assert len(source.readings) == 1
    watch.watch.link_changed(SWP1, replace(SWP1, up=False))
    await watch.run(1)
    assert source.readings[1] == {"swp1": 2}
