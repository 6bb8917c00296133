"""The limit of the prefixes that LSAs and LSPs list: how many of each are used."""

import random

from hypothesis import given
from hypothesis import strategies as st

from fared.protocols.igp.database_limit import RECHECK, Fullness, LimitSettings
from fared.protocols.igp.prefix_limit import PrefixLimit, known_first
from fared.protocols.igp.process import Process
from tests.core.test_limit_shares import ROOT, paths

OWN = 1


class Limited:
    """A limit of 100 and 60 for each originator; 2 and 3 are on a path."""

    def __init__(self) -> None:
        self.process = Process("test", 0.0, random.Random(1), str)
        self.read_again: list[list[str] | None] = []
        self.limit: PrefixLimit[str] = PrefixLimit(
            self.process,
            settings=lambda: LimitSettings(100, 60),
            on_path=lambda: paths((ROOT, 2), (2, 3)),
            read=lambda found: self.read_again.append(None if found is None else sorted(found)),
        )

    def lists(self, source: str, originator: int, count: int) -> int:
        return self.limit.take(source, originator, count, own=originator == OWN)

    def wait(self, seconds: float) -> None:
        self.process.now += seconds
        self.process.timers.fire(self.process.now)

    def events(self) -> list[str]:
        return [record.event for record in self.process.take_outputs()]


def test_what_an_lsa_lists_too_many_is_ignored_and_no_more():
    limited = Limited()
    assert limited.lists("a", 10, 80) == 60
    assert limited.lists("b", 11, 50) == 40
    assert limited.lists("c", 12, 1) == 0
    assert limited.limit.view().entries == 100
    assert limited.limit.view().ignored == 31
    assert limited.process.counters.lsdb["ignored-prefixes"] == 31


def test_routers_on_a_path_get_a_quarter_more_and_this_router_whatever_it_has():
    limited = Limited()
    assert limited.lists("a", 10, 60) + limited.lists("b", 11, 60) == 100
    assert limited.lists("c", 2, 50) == 25
    assert limited.lists("d", 3, 50) == 0
    assert limited.lists("e", OWN, 500) == 500


def test_an_lsa_that_grows_in_a_full_table_keeps_what_it_had():
    limited = Limited()
    limited.lists("a", 10, 60)
    limited.lists("b", 11, 40)
    assert limited.lists("b", 11, 45) == 40
    assert limited.lists("b", 11, 39) == 39
    assert list(known_first(["new", "x", "y"], {"y", "x"}, 2)) == ["x", "y"]


def test_the_log_warns_at_three_quarters_and_tells_once_that_the_table_is_full():
    limited = Limited()
    limited.lists("a", 10, 60)
    assert limited.events() == []
    limited.lists("b", 11, 20)
    assert limited.events() == ["test-prefixes-nearly-full"]
    for number in range(50):
        limited.lists(f"c{number}", 12 + number, 5)
    assert limited.events() == ["test-prefixes-full"]


def test_what_was_ignored_is_read_again_when_there_is_room():
    limited = Limited()
    limited.lists("a", 10, 60)
    limited.lists("b", 11, 60)
    limited.wait(RECHECK)
    assert limited.read_again == []
    limited.lists("a", 10, 0)
    limited.wait(RECHECK)
    assert limited.read_again == [["b"]]
    assert limited.lists("b", 11, 60) == 60
    assert limited.limit.view().state is Fullness.ROOM
    assert limited.events()[-1] == "test-prefixes-have-room"


_STEPS = st.lists(st.tuples(st.integers(0, 8), st.integers(2, 6), st.integers(0, 90)), max_size=60)


@given(_STEPS)
def test_no_sequence_of_advertisements_exceeds_the_limits(steps):
    limited, mine = Limited(), {}
    for number, originator, count in steps:
        source = f"{originator} {number}"
        before = mine.get(source, 0)
        mine[source] = limited.lists(source, originator, count)
        assert min(before, count) <= mine[source] <= count
        assert limited.limit.view().entries == sum(mine.values()) <= 125
        for one in range(2, 7):
            of_one = sum(used for key, used in mine.items() if key.startswith(f"{one} "))
            assert of_one <= 60
