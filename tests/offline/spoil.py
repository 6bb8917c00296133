"""Strategies that change values anywhere in a saved database."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

from tests.offline.fabrics import Json, run_spf

Place = tuple[str | int, ...]

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["0", "10.255.0.1", "10.0.0.1/24", "0.0.0.0", "00" * 20]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["area", "lsas", "hex", "age", "neighbors", "name"]), inner
        )
    ),
    max_leaves=5,
)


def places(value: object, path: Place = ()) -> list[Place]:
    """Every place in a document, as the path of its keys."""
    found = [path] if path else []
    if isinstance(value, dict):
        items = list(value.items())
    else:
        items = list(enumerate(value)) if isinstance(value, list) else []
    return found + [place for key, inner in items for place in places(inner, (*path, key))]


def spoilt(document: Json, edits: list[tuple[Place, Any]]) -> Json:
    """A copy with other values in some places."""
    document = copy.deepcopy(document)
    for path, value in edits:
        spot: Any = document
        try:
            for key in path[:-1]:
                spot = spot[key]
            spot[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    return document


def assert_computed_or_refused(
    document: Json, *arguments: str, codes: tuple[int, ...] = (0, 1, 2)
) -> None:
    """The command ends with one of its exit codes, without a traceback."""
    result = run_spf(json.dumps(document), "--all", "--json", *arguments)
    assert result.exit_code in codes, result.exception
    assert result.exception is None or isinstance(result.exception, SystemExit)
