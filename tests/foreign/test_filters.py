"""Chains of lists are one filter, which decides every prefix as they do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fared.core.filters import Filter, FilterItem
from fared.core.ids import FAMILY_IPV4, Prefix
from fared.extensions.foreign.filters import ChainEntry, all_of, in_turn

BITS = 4
"""Prefixes of so many bits are all that there are: each can be asked for."""
PREFIXES = [
    Prefix(FAMILY_IPV4, number << (32 - length), length)
    for length in range(BITS + 1)
    for number in range(1 << length)
]


@st.composite
def items(draw: st.DrawFn) -> FilterItem:
    prefix = draw(st.sampled_from(PREFIXES))
    least = draw(st.integers(prefix.length, BITS))
    return FilterItem(draw(st.booleans()), prefix, least, draw(st.integers(least, BITS)))


LISTS = st.lists(items(), min_size=1, max_size=4)


def permits(found: list[FilterItem], prefix: Prefix) -> bool:
    return Filter("", tuple(found)).permits(prefix)


@given(st.lists(st.builds(ChainEntry, st.booleans(), LISTS), max_size=4))
def test_what_the_list_of_an_entry_does_not_permit_goes_on_to_the_next(entries: list[ChainEntry]):
    found = in_turn(entries)
    for prefix in PREFIXES:
        decisions = (e.permit for e in entries if permits(list(e.items), prefix))
        assert permits(found, prefix) == next(decisions, False)


@given(st.lists(LISTS, min_size=1, max_size=3))
def test_what_all_of_several_lists_permit(lists: list[list[FilterItem]]):
    found = all_of(lists)
    for prefix in PREFIXES:
        assert permits(found, prefix) == all(permits(each, prefix) for each in lists)
