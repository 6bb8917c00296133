"""Rows by advertiser and source: two lists at first, a dictionary after a change."""

from hypothesis import given
from hypothesis import strategies as st

from fared.paths.rib.sources import RowsBySource

ADVERTISERS = range(3)
ROWS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9), min_size=1)


@given(st.lists(st.tuples(st.sampled_from(ADVERTISERS), ROWS, st.booleans()), max_size=12))
def test_rows_are_those_of_the_last_change(steps: list[tuple[int, dict[str, int], bool]]):
    held, model = RowsBySource(), dict[int, dict[str, int]]()
    for advertiser, rows, withdrawn in steps:
        known = held.of(advertiser)
        assert known == model.get(advertiser, {})
        if not known:
            held.begin(advertiser, rows, list(rows.values()))
            model[advertiser] = dict(rows)
        elif withdrawn:
            held.forget(advertiser)
            del model[advertiser]
        else:
            known.update(rows)
            model[advertiser] |= rows
        assert len(held) == len(model)
        assert sorted(held) == sorted(model)
        for at in ADVERTISERS:
            assert dict(held.items(at)) == model.get(at, {})
            assert list(held.sources(at)) == list(model.get(at, {}))
