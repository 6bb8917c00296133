"""Wrong values in every place of the sample configuration: an error there, soon, nothing else."""

import copy
import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fared.config import ConfigErrors, load_text
from fared.config.errors import format_path
from tests.work import takes_at_most

SAMPLE = yaml.safe_load((Path(__file__).parents[2] / "config/fared.yaml").read_text())
WRONG: tuple[Any, ...] = (
    {"no-such-key": 1},
    [["list"], {"of": "lists"}],
    "no such value",
    "a\x07b\x1b[2J\x9b2J\x7f",
    "\N{RIGHT-TO-LEFT OVERRIDE}400G",
    "x" * 100_000,
    "-1ms",
    "1e999G",
    "0x7fffffffffffffff",
    -1,
    10**30,
    -(10**30),
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
)
MORE: tuple[Any, ...] = (
    [None],
    {1: 2},
    {"a": {"b": {"c": []}}},
    [[[[]]]],
    dt.date(2026, 11, 25),
    dt.datetime(2026, 11, 25, 12, tzinfo=dt.UTC),
    b"\x00\xff",
    "10.0.0.256",
    "::1%lo/129",
    "50%%",
    "1h-1m",
    "--",
    "\N{FULLWIDTH DIGIT ONE}ms",
    "1e3.5",
    "[",
    "*" * 300,
    -0.5,
    1e-320,
    "${HOME}",
)
TIMES = 16
"""As long as the sample itself, the check of one with a wrong value may take."""
Where = tuple[Any, ...]


def places(value: Any, path: Where = ()) -> Iterator[Where]:
    """Every place of a document but its root."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def with_value(path: Where, value: Any) -> str:
    document = copy.deepcopy(SAMPLE)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=False)


def checked(text: str) -> tuple[tuple[str, ...], float]:
    """The places of the errors, and the seconds of CPU."""
    begun = time.process_time()
    try:
        load_text(text)
    except ConfigErrors as refused:
        errors, told = refused.errors, str(refused)
    else:
        errors, told = (), ""
    seconds = time.process_time() - begun
    assert told.replace("\n", "").isprintable()
    assert len(told) < 20_000
    return tuple(error.path for error in errors), seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "least"),
    [(WRONG[::4], 340), pytest.param(WRONG + MORE, 2_800, marks=pytest.mark.soak)],
    ids=["some", "all"],
)
def test_a_wrong_value_in_any_place_is_an_error_soon(values: tuple[Any, ...], least: int):
    """An accepted one is of a place where it is right: names, texts, large numbers."""
    usual = with_value(("hostname",), "a")
    measure = min(checked(usual)[1] for _ in range(5))
    refused, slow = 0, []
    for path in places(SAMPLE):
        for value in values:
            text = with_value(path, value)
            found, seconds = checked(text)
            refused += bool(found)
            if seconds > TIMES * measure and not takes_at_most(
                TIMES, lambda text=text: checked(text)[1], lambda: checked(usual)[1]
            ):
                slow.append((format_path(path), value))
    print(f"{refused} wrong values refused")  # noqa: T201
    assert not slow
    assert refused >= least


def test_an_error_cannot_steer_a_terminal_by_a_key_or_a_value():
    key = "a\x9b2J\N{RIGHT-TO-LEFT OVERRIDE}"
    for document in ({key: 1}, {"interfaces": {key: {key: key}}}, {"hostname": key}):
        with pytest.raises(ConfigErrors) as caught:
            load_text(yaml.dump(document))
        assert str(caught.value).replace("\n", "").isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("value", WRONG[:2], ids=["mapping", "list"])
def test_the_error_of_a_value_of_the_wrong_kind_names_its_place(value: Any):
    for path in places(SAMPLE):
        inner = SAMPLE
        for key in path:
            inner = inner[key]
        if isinstance(inner, dict | list):
            continue
        found, _ = checked(with_value(path, value))
        assert any(place.startswith(format_path(path)) for place in found), (path, found)
