"""Filters: prefix lists as in FRR, with tags."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.filters import Filter, FilterItem, denying, parse_item, within
from fared.core.ids import ADDRESS_BITS, Prefix, parse_prefix


def listed(*items: str, name: str = "test") -> Filter:
    return Filter(name, tuple(map(parse_item, items)))


def permitted(found: Filter, *prefixes: str, tag: int = 0) -> list[str]:
    return [text for text in prefixes if found.permits(parse_prefix(text), tag)]


def test_an_item_without_ge_and_le_matches_the_prefix_itself():
    assert permitted(listed("permit 10.0.0.0/8"), "10.0.0.0/8", "10.1.0.0/16") == ["10.0.0.0/8"]


def test_ge_and_le_match_lengths_inside_the_prefix_as_in_frr():
    tried = ("10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.1/32", "11.0.0.0/24")
    assert permitted(listed("permit 10.0.0.0/8 le 24"), *tried) == [*tried[:3]]
    assert permitted(listed("permit 10.0.0.0/8 ge 24"), *tried) == [*tried[2:4]]
    assert permitted(listed("permit 10.0.0.0/8 ge 16 le 24"), *tried) == [*tried[1:3]]


def test_the_first_item_that_matches_decides_and_without_one_a_prefix_is_denied():
    found = listed("deny 10.9.0.0/16 le 32", "permit 10.0.0.0/8 le 32")
    assert permitted(found, "10.9.1.0/24", "10.8.1.0/24", "172.16.0.0/12") == ["10.8.1.0/24"]
    assert found.decides(parse_prefix("10.9.1.0/24")) == 0
    assert found.decides(parse_prefix("172.16.0.0/12")) is None


def test_an_item_with_a_tag_matches_prefixes_with_that_tag_only():
    found = listed("permit tag 77", "permit 10.0.0.0/8 le 32 tag 0", "deny any")
    assert permitted(found, "10.0.0.0/8", "2001:db8::/32", tag=77) == [
        "10.0.0.0/8",
        "2001:db8::/32",
    ]
    assert permitted(found, "10.0.0.0/8", "2001:db8::/32") == ["10.0.0.0/8"]
    assert permitted(found, "10.0.0.0/8", tag=5) == []


def test_any_matches_both_families_and_a_prefix_its_own():
    tried = ("0.0.0.0/0", "10.0.0.0/8", "::/0", "2001:db8::/32")
    assert permitted(listed("permit any"), *tried) == [*tried]
    assert permitted(listed("permit 0.0.0.0/0 le 32"), *tried) == [*tried[:2]]


def test_a_list_of_prefixes_permits_what_is_inside_them():
    found = within((parse_prefix("10.0.0.0/8"), parse_prefix("2001:db8::/32")))
    tried = ("10.0.0.0/8", "10.1.1.1/32", "11.0.0.0/8", "2001:db8:1::/48", "2001:db9::/32")
    assert permitted(found, *tried) == [tried[0], tried[1], tried[3]]


def test_of_several_filters_all_must_permit():
    filters = (listed("permit 10.0.0.0/8 le 32"), listed("permit any tag 7", name="second"))
    assert denying(filters, parse_prefix("10.1.0.0/16"), 7) is None
    assert denying(filters, parse_prefix("10.1.0.0/16")) is filters[1]
    assert denying((), parse_prefix("10.1.0.0/16")) is None


def test_a_filter_says_which_item_decides():
    found = listed("deny 10.9.0.0/16 le 32", "permit 10.0.0.0/8 le 32")
    inside, outside = parse_prefix("10.9.0.0/24"), parse_prefix("192.0.2.0/24")
    assert found.told(inside) == "filter test, item 1: deny 10.9.0.0/16 le 32"
    assert found.told(outside) == "filter test: no item matches"


@pytest.mark.parametrize(
    ("items", "unreachable"),
    [
        (("permit any", "deny 10.0.0.0/8"), [(1, 0)]),
        (("permit 10.0.0.0/8 le 24", "deny 10.1.0.0/16 ge 24 le 24"), [(1, 0)]),
        (("permit 10.0.0.0/8 le 24", "deny 10.1.0.0/16 le 32"), []),
        (("permit 10.0.0.0/8 le 32 tag 7", "deny 10.1.0.0/16"), []),
        (("permit 10.0.0.0/8 le 32", "deny 10.1.0.0/16 tag 7"), [(1, 0)]),
        (("permit 0.0.0.0/0 le 32", "permit tag 7"), []),
        (("permit 0.0.0.0/0 le 32", "permit ::/0 le 128", "deny any"), [(2, 1)]),
        (("deny 10.0.0.0/8", "permit 10.0.0.0/8"), [(1, 0)]),
    ],
)
def test_an_item_of_which_an_earlier_one_matches_everything_is_unreachable(items, unreachable):
    assert list(listed(*items).unreachable()) == unreachable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.0/8", "permit or deny first"),
        ("permit", "a prefix, tag or any"),
        ("permit 10.0.0/8", "a prefix such as"),
        ("permit 10.0.0.0/8 ge 4", "8 <= ge <= le <= 32"),
        ("permit 10.0.0.0/8 le 33", "8 <= ge <= le <= 32"),
        ("permit 10.0.0.0/8 ge 24 le 16", "8 <= ge <= le <= 32"),
        ("permit 10.0.0.0/8 ge", "a number after ge"),
        ("permit 10.0.0.0/8 le 24 le 32", "at most once"),
        ("permit 10.0.0.0/8 seq 5", "ge, le and tag"),
        ("permit any le 24", "after a prefix"),
        ("permit tag 4294967296", "a number after tag"),
    ],
)
def test_an_item_that_cannot_be_read_says_what_is_expected(text, expected):
    with pytest.raises(ValueError, match=expected):
        parse_item(text)


def networks() -> list[Prefix]:
    """Few networks of both families, so that items and prefixes meet."""
    found = [
        Prefix(family, bits << (width - 2) >> (width - length) << (width - length), length)
        for family, width in ADDRESS_BITS.items()
        for length in (0, 1, 2, 3, 31, 32, width)
        for bits in range(4)
    ]
    return list(dict.fromkeys(found))


def item(permit: bool, prefix: Prefix | None, lengths: tuple[int, int], tag: int | None):
    if prefix is None:
        return FilterItem(permit, tag=tag)
    least, most = (max(prefix.length, ADDRESS_BITS[prefix.family] - n) for n in lengths)
    return FilterItem(permit, prefix, min(least, most), max(least, most), tag)


PREFIXES, TAGS = st.sampled_from(networks()), st.integers(0, 2)
ITEMS = st.builds(
    item,
    st.booleans(),
    st.none() | PREFIXES,
    st.sampled_from([(0, 0), (0, 1), (1, 30), (29, 32), (128, 128), (0, 128)]),
    st.none() | TAGS,
)


def matches(one: FilterItem, prefix: Prefix, tag: int) -> bool:
    """The rule, item by item."""
    inside = one.prefix is None or one.prefix.covers(prefix)
    return inside and one.least <= prefix.length <= one.most and one.tag in (None, tag)


@settings(max_examples=60)
@given(st.lists(ITEMS, min_size=1, max_size=10), PREFIXES, TAGS)
def test_the_index_finds_the_item_that_the_plain_rule_finds(found, prefix, tag):
    plain = next((at for at, one in enumerate(found) if matches(one, prefix, tag)), None)
    assert Filter("", tuple(found)).decides(prefix, tag) == plain


@settings(max_examples=60)
@given(st.lists(ITEMS, min_size=1, max_size=8), PREFIXES, TAGS)
def test_an_unreachable_item_never_decides(found, prefix, tag):
    built = Filter("", tuple(found))
    assert built.decides(prefix, tag) not in dict(built.unreachable())


@settings(max_examples=60)
@given(ITEMS)
def test_an_item_is_read_as_it_is_written(written):
    assert parse_item(str(written)) == written
