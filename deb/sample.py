"""Reads ``config/fared.yaml`` as people do: settings in comments count, and comments are help.

The file shows every setting with its default, or an example where it has none; what is off by
default stands behind a ``#``. Help is the comment at the end of a line, continued below it in the
same column, or a comment on lines of its own above. ``manual`` prints it in fared.yaml(5), and
``tests/config/test_examples.py`` compares the settings with the fields of the sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from fared.config.model import Config
from fared.config.section import Section
from fared.config.shapes import Field, fields_of, section_in

_LINE = re.compile(r'([ #]*)(- )?(?:("[^"]+"|[\w.*/-]+):(?= |$))? *(.*)')
"""Column, item of a list, key, and the rest."""
_COMMENT = re.compile(r"(?:^|\s+)#\s*")
_ASIDE = 20
"""Comments from this column on continue that of the line above."""


class Shown(NamedTuple):
    """A setting as the file shows it; ``value`` is None if it stands on the lines below.

    ``help``: lines of its comment.
    """

    section: type[Section]
    field: Field
    value: Any
    help: list[str]


class _Mapping(NamedTuple):
    """What the keys beyond a column are: those of a section, or names of several (``by_name``)."""

    column: int
    section: type[Section] | None
    by_name: bool = False


def sections(whole: type[Section] = Config) -> list[type[Section]]:
    """Return the sections of the file, or in another one, each once and before those in it."""
    found: list[type[Section]] = []

    def enter(section: type[Section] | None) -> None:
        if section is not None and section not in found:
            found.append(section)
            for field in fields_of(section).values():
                enter(section_in(field.hint))

    enter(whole)
    return found


def places(whole: type[Section] = Config, above: str = "") -> Iterator[tuple[type[Section], str]]:
    """Yield each section with every place of it, as ``ospf: areas: *: interfaces: *``."""
    for key, field in fields_of(whole).items():
        inside = section_in(field.hint)
        if inside is not None:
            place = f"{above}{key}" + (": *" if "dict[" in str(field.hint) else "")
            yield inside, place
            yield from places(inside, f"{place}: ")


Help = dict[tuple[type[Section], str], str]


def help_of(text: str) -> Help:
    """Return the help of every setting, by section and key: its comment where the file has one.

    Else that of the same setting elsewhere: one that another section inherits too, or that must be
    the same. A section without a comment has its own description.
    """
    comments: Help = {}
    for one in list(shown(text)):  # help grows
        words = " ".join(line for line in one.help if line not in one.field.shape.words)
        place = one.section, one.field.key
        comments[place] = comments.get(place) or words
    every = [(section, field) for section in sections() for field in fields_of(section).values()]
    return {
        (section, field.key): comments.get((section, field.key))
        or next(_elsewhere(section, field, comments), "")
        for section, field in every
    }


def _elsewhere(section: type[Section], field: Field, comments: Help) -> Iterator[str]:
    """Yield help of the same setting in other sections, the nearest first."""
    inside = section_in(field.hint)
    if inside is not None:
        yield summary(inside)
    others = [(other, text) for (other, key), text in comments.items() if key == field.key]
    own, words = set(section.__mro__) - set(Section.__mro__), field.shape.words
    yield from (text for other, text in others if text and own & set(other.__mro__))
    same = {text for other, text in others if fields_of(other)[field.key].shape.words == words}
    if len(same - {""}) == 1:
        yield from same - {""}


def summary(section: type[Section]) -> str:
    """Return the first sentence about a section."""
    return re.split(r"(?<=[\w)])\.(?= |\n|$)", section.__doc__ or "")[0].strip() + "."


def shown(text: str) -> Iterator[Shown]:
    """Yield the settings that a file shows, in its order; ``help`` grows until the next one."""
    mappings = [_Mapping(-1, Config)]
    above: list[str] = []
    last: list[str] = []
    for line in text.splitlines():
        lead, item, key, rest = _LINE.fullmatch(line).groups(default="")  # type: ignore[union-attr]
        column = max(len(lead + item) - 2 * lead.count("#"), 0)
        around = [mapping for mapping in mappings if mapping.column < column]
        _, section, by_name = around[-1]
        value, *comment = _COMMENT.split(rest, maxsplit=1)
        field = None if section is None or by_name else fields_of(section).get(key)
        if field is not None:
            inside, given = section_in(field.hint), yaml.safe_load(value)
            mappings = [*around, _Mapping(column, inside, "dict[" in str(field.hint))]
            last, above = [*above, *comment], []
            yield Shown(section, field, given, last)
            yield from _inline(inside, given)
        elif (key and by_name) or (item and not key):
            mappings = [*around, _Mapping(column, section)]
            yield from _inline(section, yaml.safe_load(value))
        elif not rest:
            above.clear()
        else:
            (last if len(lead) >= _ASIDE else above).append(line[len(lead) :])


def _inline(section: type[Section] | None, value: object) -> Iterator[Shown]:
    """Yield the settings of a section that is written in one line."""
    if section is not None and isinstance(value, dict):
        for key, content in value.items():
            field = fields_of(section)[key]
            yield Shown(section, field, content, [])
            yield from _inline(section_in(field.hint), content)
