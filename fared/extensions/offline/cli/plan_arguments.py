"""The values of options of ``fared-cli plan failures``, and its line of progress."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple, Self

import click
import yaml

from fared.core.units import parse_percent
from fared.extensions.offline.plan.sets import DOUBLES
from fared.management.cli.session import Failure

_MOST_DOUBLES = 20_000
_BAR = 16
"""Columns of the progress bar."""
_GROUPS = "a file of groups is YAML: name: [pattern, ...], such as power: [S1, 'L1,*']"


def read_percent(text: str) -> float:
    """Return a part, 0..1, of ``25%``. Raises ValueError."""
    return parse_percent(text, lambda part: 0 < part <= 1)


class Doubles(NamedTuple):
    """How many pairs of links to try (None: all), or one of each class of equal ones."""

    most: int | None
    classes: bool = False


def read_doubles(text: str) -> Doubles:
    """Return which pairs of links to try: ``all``, ``classes`` or a number. Raises ValueError."""
    if text in ("all", "classes"):
        return Doubles(None, text == "classes")
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is neither 'all' nor 'classes' nor a number")
    return Doubles(int(text))


def read_group(text: str) -> tuple[str, list[str]]:
    """Return the name and the patterns of ``NAME=P;P``. Raises ValueError."""
    name, equals, patterns = text.partition("=")
    members = [pattern.strip() for pattern in patterns.split(";") if pattern.strip()]
    if not equals or not name or not members:
        raise ValueError(f"{text!r} is not NAME=PATTERN;PATTERN...")
    return name, members


def name_list(text: str | None) -> tuple[str, ...]:
    """Return the names of ``A,B``."""
    return () if text is None else tuple(name.strip() for name in text.split(","))


def which_doubles(given: Doubles | None, asked: set[str]) -> Doubles:
    """Return which pairs of links to try: as given, or those that a bound asks for."""
    if given is not None:
        return given
    return Doubles(_MOST_DOUBLES if DOUBLES in asked else 0)


def how_many_pairs(text: str) -> int | None:
    """Return how many pairs of ends to show, None for ``all``."""
    if text == "all":
        return None
    if not text.isascii() or not text.isdecimal():
        raise click.BadParameter(f"{text!r} is neither 'all' nor a number", param_hint="--pairs")
    return int(text)


def read_groups(file: Path | None) -> dict[str, list[str]]:
    """Read the patterns of each group from YAML. Raises Failure."""
    if file is None:
        return {}
    try:
        found = yaml.safe_load(file.read_text())
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}", _GROUPS) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Failure(f"{file}: not YAML: {error}", _GROUPS) from error
    if not isinstance(found, dict) or not found:
        raise Failure(f"{file}: expected names of groups with lists of patterns", _GROUPS)
    for name, members in found.items():
        if (
            not isinstance(members, list)
            or not members
            or not all(isinstance(member, str) for member in members)
        ):
            text = f"{file}: {name}: expected a list of patterns such as S1 or L1,S*"
            raise Failure(text, _GROUPS)
    return {str(name): members for name, members in found.items()}


class PlanProgress:
    """A progress bar on a terminal: failures done, rate, time left."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            click.echo("\r\x1b[K", err=True, nl=False)

    def show(self, done: int, total: int) -> None:
        """Draw the line anew."""
        if not sys.stderr.isatty():
            return
        spent = max(time.monotonic() - self._begun, 1e-3)
        rate = done / spent
        left = (total - done) / rate
        filled = _BAR * done // max(total, 1)
        bar = "█" * filled + "░" * (_BAR - filled)
        text = f"{done:,} of {total:,} failures, {rate:,.0f}/s, {left:.0f} s left"
        click.echo(f"\r\x1b[K{bar} {text}", err=True, nl=False)
        self._drawn = True
