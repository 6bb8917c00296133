"""Large documents: built and written in slices, so that tables do not delay hellos."""

import asyncio
import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.management.api.encode import BLOCK, encode, slices
from fared.management.api.respond import Responder
from fared.management.documents.rows import Rows, Shared

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=2 * BLOCK) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=BLOCK,
)


def never() -> float:
    """A clock on which no slice is ever over."""
    return 0.0


@given(VALUES)
def test_the_slices_of_a_value_are_its_json_text(value):
    ticks = count()
    for clock in (never, lambda: next(ticks)):
        assert json.loads(b"".join(slices(value, clock))) == value


def test_rows_are_a_list_at_any_depth():
    rows = Rows(range(100), lambda n: {"n": n})
    document = {
        "rows": rows,
        "none": Rows([], str),
        "areas": [{"lsas": rows}],
        "deep": [{"a": [{"b": rows}]}],
    }
    expected = [{"n": n} for n in range(100)]
    assert json.loads(b"".join(slices(document, never))) == {
        "rows": expected,
        "none": [],
        "areas": [{"lsas": expected}],
        "deep": [{"a": [{"b": expected}]}],
    }
    assert rows == expected
    assert (len(rows), rows[3], rows[1:3], [*rows]) == (100, {"n": 3}, expected[1:3], expected)


def test_rows_that_many_rows_share_are_made_once():
    """Ten thousand routes have the next hops of a few sets."""
    made = []
    hops = Shared(range(3), lambda n: made.append(n) or {"n": n})
    routes = Rows(range(100), lambda n: {"route": n, "hops": hops if n % 2 else []})
    expected = [{"route": n, "hops": [{"n": 0}, {"n": 1}, {"n": 2}] * (n % 2)} for n in range(100)]
    assert json.loads(b"".join(slices({"routes": routes}, never))) == {"routes": expected}
    assert made == [0, 1, 2]


def test_nan_and_infinity_are_null():
    assert encode([float("nan"), float("inf")]) == b"[null,null]"


def test_values_that_are_not_json_are_refused():
    with pytest.raises(TypeError, match="object"):
        encode({"value": object()})


async def test_one_slice_is_built_per_turn_of_the_loop_for_any_number_of_clients():
    """Eight clients request 5,000 rows. A row takes 0.1 ms, a slice 4 ms: some 40 rows a turn."""
    built, clients, rows = 0, 8, 5_000

    def row(number):
        nonlocal built
        built += 1
        return {"n": number}

    async def client():
        return b"".join([text async for text in responder.stream("show", {})])

    responder = Responder(lambda *_: {"rows": Rows(range(rows), row)}, clock=lambda: built * 0.0001)
    asking = [asyncio.create_task(client()) for _ in range(clients)]
    most, before = 0, 0
    while not all(task.done() for task in asking):
        await asyncio.sleep(0)
        most, before = max(most, built - before), built
    assert built == clients * rows
    assert most <= 40 + BLOCK
    assert all(len(json.loads(task.result())["rows"]) == rows for task in asking)
