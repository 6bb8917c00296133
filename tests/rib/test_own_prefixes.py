"""How many prefixes are a router's own: neither those of its links nor those of others."""

from fared.core.ids import NodeId, Prefix, ipv4_prefix
from fared.paths.rib.own_prefixes import own_prefixes
from fared.paths.rib.prefixes import PrefixTable
from fared.paths.ted.model import PathType, PrefixReachability

ONE, TWO = NodeId(1), NodeId(2)


def prefix(number: int) -> Prefix:
    return ipv4_prefix((10 << 24) + (number << 8), 24)


def advertised(*rows: tuple[int, NodeId, int, PathType]) -> PrefixTable:
    """A table of area, router, number of the prefix, and path type."""
    table = PrefixTable()
    for area, node, number, kind in rows:
        item = PrefixReachability(prefix(number), 10, kind)
        table.put(area, node, {(number, kind): item})
    return table


def test_the_prefix_of_a_link_is_of_neither_end():
    table = advertised(
        (0, ONE, 1, PathType.INTRA_AREA),
        (0, ONE, 2, PathType.INTRA_AREA),
        (0, TWO, 2, PathType.INTRA_AREA),
        (0, ONE, 3, PathType.INTRA_AREA),
    )
    assert own_prefixes(table, ()) == {ONE: 2}


def test_summaries_leaked_prefixes_and_externals_are_not_own():
    kinds = (PathType.INTER_AREA, PathType.LEVEL_1_DOWN, PathType.EXTERNAL_1, PathType.EXTERNAL_2)
    table = advertised(
        *((1, ONE, number, kind) for number, kind in enumerate(kinds)),
        (1, TWO, 2, PathType.INTRA_AREA),
    )
    assert own_prefixes(table, ()) == {TWO: 1}


def test_what_looks_like_an_own_prefix_may_be_that_of_another():
    """IS-IS marks a redistributed prefix beside its path type."""
    table = advertised((2, ONE, 1, PathType.LEVEL_2), (2, ONE, 2, PathType.LEVEL_2))
    assert own_prefixes(table, [(ONE, prefix(2)), (TWO, prefix(1)), (ONE, prefix(9))]) == {ONE: 1}


def test_a_prefix_in_several_areas_counts_once():
    table = advertised((1, ONE, 1, PathType.LEVEL_1), (2, ONE, 1, PathType.LEVEL_2))
    assert own_prefixes(table, ()) == {ONE: 1}


def test_withdrawn_prefixes_do_not_count():
    table = advertised((0, ONE, 1, PathType.INTRA_AREA), (0, TWO, 1, PathType.INTRA_AREA))
    table.put(0, TWO, {(1, PathType.INTRA_AREA): None})
    assert own_prefixes(table, ()) == {ONE: 1}
    assert own_prefixes(PrefixTable(), ()) == {}
