"""Pages of LSA headers: descriptions sent, and descriptions of known LSAs recognized."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import AreaId
from fared.protocols.ospf.database_summary import SummaryCache
from fared.protocols.ospf.header_page import HeaderPage, KnownPages
from fared.protocols.ospf.lsdb import CURRENT, LsaEntry, Lsdb, Scope, compare
from fared.protocols.ospf.packet.lsa import MAX_AGE, decode_header
from tests.ospf.scripted import Scripted, make_lsa, update

NOW = 100.0
AGES = st.one_of(st.integers(0, 4000), st.sampled_from([0, 899, 900, 901, 3599, 3600]))


def database(ages: list[int], installed_at: float = NOW) -> Lsdb:
    """A database with one LSA of each age."""
    lsdb = Lsdb(Scope.AREA, area=AreaId(0))
    for number, age in enumerate(ages):
        install(lsdb, number, age=age, installed_at=installed_at)
    return lsdb


def install(lsdb: Lsdb, number: int, *, installed_at: float, **changes) -> LsaEntry:
    lsa = make_lsa(number + 1, **changes)
    key = lsa.header.key
    old = lsdb.entries.get(key)
    if old is not None:
        old.mark(CURRENT, on=False)
        lsdb.replaced += 1
        if lsdb.described is not None:
            del lsdb.described[old.instance]
    entry = lsdb.entries[key] = LsaEntry(lsdb, key, lsa.raw, installed_at)
    if lsdb.described is not None:
        lsdb.described[entry.instance] = entry
    return entry


def headers(lsdb: Lsdb, ages: list[int]) -> bytes:
    return b"".join(
        age.to_bytes(2, "big") + entry.instance for entry, age in zip(lsdb, ages, strict=True)
    )


def described(packed: bytes) -> list[tuple[int, int]]:
    """Number and age of each LSA."""
    found = [decode_header(packed[at : at + 20]) for at in range(0, len(packed), 20)]
    return [(header.advertising_router - 1, header.ls_age) for header in found]


@given(st.lists(st.tuples(AGES, AGES), min_size=1, max_size=5))
def test_a_description_is_known_only_if_each_instance_is_the_same(pairs):
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    lsdb = database(ours)
    packed = headers(lsdb, theirs)
    pages = KnownPages()
    expected = all(
        compare(entry.header(NOW), decode_header(packed[20 * n : 20 * n + 20])) == 0
        and entry.age(NOW) < MAX_AGE
        and theirs[n] < MAX_AGE
        for n, entry in enumerate(lsdb)
    )
    for _ in range(2):
        assert pages.recognized(packed, [lsdb], NOW) == expected


def test_a_known_description_is_not_known_once_an_lsa_is_replaced():
    lsdb = database([1, 1])
    packed, pages = headers(lsdb, [1, 1]), KnownPages()
    assert pages.recognized(packed, [lsdb], NOW)
    install(lsdb, 1, seq=7, installed_at=NOW)
    assert not pages.recognized(packed, [lsdb], NOW)


class Counted(list):
    """LSAs, and how often they were looked at."""

    looks = 0

    def __iter__(self):
        self.looks += 1
        return super().__iter__()


def test_lsas_are_looked_at_again_only_after_one_was_replaced():
    lsdb = database([1, 1, 1])
    entries = Counted(list(lsdb)[:2])
    page = HeaderPage.of(entries)
    made = entries.looks
    install(lsdb, 3, installed_at=NOW)
    assert page.current
    assert entries.looks == made
    install(lsdb, 2, seq=7, installed_at=NOW)  # of another page
    assert page.current
    assert page.current
    assert entries.looks == made + 1
    install(lsdb, 1, seq=7, installed_at=NOW)
    assert not page.current
    install(lsdb, 4, installed_at=NOW)
    assert not page.current


def test_a_database_counts_what_it_has_replaced():
    peer = Scripted()
    peer.to_full()
    lsdb = peer.engine.instance.areas[AreaId(0)].lsdb
    peer.send(update(make_lsa(77)))
    page, before = HeaderPage.of(list(lsdb)), lsdb.replaced
    peer.send(update(make_lsa(78)))
    assert lsdb.replaced == before
    peer.send(update(make_lsa(77, seq=9)))
    assert lsdb.replaced == before + 1
    assert not page.current


def test_what_one_area_knows_is_not_known_in_another():
    lsdb, other = database([1, 1]), Lsdb(Scope.AREA, area=AreaId(1))
    packed, pages = headers(lsdb, [1, 1]), KnownPages()
    assert pages.recognized(packed, [lsdb], NOW)
    assert not pages.recognized(packed, [other], NOW)


def taken(cache: SummaryCache, lsdb: Lsdb, now: float, room: int = 2) -> list[tuple[int, int]]:
    summaries = cache.of([lsdb], now, opaque=True)
    kept.append(summaries)
    found = []
    while summaries:
        found += described(summaries.take(room, now))
    return found


kept: list = []


@pytest.fixture(autouse=True)
def forgotten():
    kept.clear()


def test_neighbors_share_pages_with_present_ages():
    lsdb, cache = database([1, 5, 9]), SummaryCache()
    assert taken(cache, lsdb, NOW) == [(0, 1), (1, 5), (2, 9)]
    assert taken(cache, lsdb, NOW + 30) == [(0, 31), (1, 35), (2, 39)]
    assert kept[0].summary is kept[1].summary


def test_lsas_installed_later_are_described_once_to_the_next_neighbor():
    lsdb, cache = database([1, 1, 1]), SummaryCache()
    taken(cache, lsdb, NOW)
    install(lsdb, 3, installed_at=NOW)
    install(lsdb, 4, installed_at=NOW + 1, age=3)
    assert taken(cache, lsdb, NOW + 1) == [(0, 2), (1, 2), (2, 2), (3, 2), (4, 3)]
    assert taken(cache, lsdb, NOW + 1) == [(0, 2), (1, 2), (2, 2), (3, 2), (4, 3)]


def test_a_replaced_lsa_is_described_by_its_new_instance_only():
    lsdb, cache = database([1, 1, 1]), SummaryCache()
    taken(cache, lsdb, NOW)
    install(lsdb, 0, seq=9, age=0, installed_at=NOW + 1)
    assert taken(cache, lsdb, NOW + 1) == [(1, 2), (2, 2), (0, 0)]


def test_lsas_at_maxage_are_not_described():
    lsdb, cache = database([1, 3590, 1]), SummaryCache()
    assert len(taken(cache, lsdb, NOW)) == 3
    assert taken(cache, lsdb, NOW + 10) == [(0, 11), (2, 11)]


def test_a_summary_of_replaced_lsas_is_made_anew():
    lsdb, cache = database([1]), SummaryCache()
    for turn in range(3000):
        install(lsdb, 0, seq=turn + 10, installed_at=NOW + turn)
        assert len(taken(cache, lsdb, NOW + turn)) == 1
        del kept[:-1]
    assert len(kept[-1].summary.entries) < 1100
