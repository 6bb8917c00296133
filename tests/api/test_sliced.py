"""Documents of a large fabric are built in slices: what the loop does in one turn has a bound."""

import asyncio
from collections import Counter

import pytest

from fared.extensions.sim.fabric import clos3
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.network import Network
from fared.management.api.respond import Responder
from fared.management.documents.errors import CommandError
from fared.management.documents.sliced import (
    PORTION,
    Sliced,
    Work,
    beside,
    chosen,
    each,
    finished,
    in_order,
)
from fared.protocols.ospf.lsdb import LsaEntry, kind_of
from tests.api.answers import run_view
from tests.api.seen import scraped, seen_from


@pytest.fixture(scope="module")
def fabric():
    made = clos3(2, 4, network=Network(seed=1))
    made.network.start_all()
    made.network.run_until_quiet(60)
    return made


@pytest.fixture
def shown(monkeypatch) -> list[object]:
    """The LSAs that somebody looks at."""
    seen: list[object] = []
    monkeypatch.setattr(LsaEntry, "lsa", property(seen.append))
    return seen


def test_tables_are_sorted_and_selected_a_portion_at_a_time():
    numbers = list(range(3 * PORTION, 0, -1))
    work = in_order(numbers, lambda number: number)
    assert len([None for _ in work]) >= 6
    assert finished(in_order(numbers, lambda number: number)) == sorted(numbers)
    assert finished(chosen(numbers, lambda number: number % 2 == 0))[0] == 3 * PORTION
    assert len(list(each(numbers, str))) == 3


async def test_other_work_goes_on_between_two_slices():
    """One slice for each turn of the loop, and what a thread does meanwhile."""
    now, turns = 0.0, 0

    @Sliced
    def view() -> Work[dict[str, int]]:
        nonlocal now
        for _ in range(10):
            now += 1.0
            yield
        return {"seen": (yield from beside(lambda: turns))}

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    responder = Responder(lambda *_: view.work(), clock=lambda: now)
    assert (await responder.document("show", {}))["seen"] >= 10
    other.cancel()
    assert view()["seen"] == turns, "without a loop, all at once"


async def test_a_view_may_refuse_in_its_middle():
    def view() -> Work[dict[str, int]]:
        yield
        raise CommandError("not-found", "gone")

    with pytest.raises(CommandError, match="gone"):
        await Responder(lambda *_: view()).document("show", {})


@pytest.mark.parametrize("document", ["interfaces", "neighbors", "timers", "memory", "status"])
def test_documents_without_lsas_look_at_none(fabric, shown, document):
    """A database has a hundred thousand."""
    run_view(seen_from(fabric, "L1"), f"show {document}", {})
    assert shown == []


def test_a_scrape_looks_at_no_lsa_to_count_them(fabric, shown):
    context = seen_from(fabric, "L1")
    counted = scraped(context)["lsdb_entries"]
    assert shown == []
    assert sum(counted.values()) == sum(map(len, context.ospf.instance.databases())) > 0


@pytest.mark.parametrize("make", [clos3, clos3_isis])
def test_counts_follow_the_database(make):
    """What is counted as entries come, change and go is what they add up to."""
    made = make(2, 4, network=Network(seed=1))
    made.network.start_all()
    made.network.run_until_quiet(60)
    made.network.set_capacity("S1", "L2", 1e6)
    made.network.set_link("S1", "L3", up=False)
    made.network.run_until_quiet(60)
    (engine,) = [i.engine for i in made.network.nodes["L1"].running.instances.values()]
    if make is clos3:
        for lsdb in engine.instance.databases():
            assert lsdb.checksum == sum(entry.lsa.header.ls_checksum for entry in lsdb)
            kinds = Counter(kind_of(entry.key, entry.raw) for entry in lsdb)
            assert +lsdb.kinds == kinds
        return
    for lsdb in engine.instance.databases.values():
        live = [entry for entry in lsdb.ordered() if not entry.purged]
        assert lsdb.checksum == sum(entry.lsp.checksum for entry in live)
        assert lsdb.live.total() == len(live)
