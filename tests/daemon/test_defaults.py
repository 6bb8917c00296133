"""A default is written once: where settings of a package have one, the configuration reads it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from fared.config import Config
from fared.config.section import Section
from fared.config.shapes import fields_of, section_in
from fared.daemon.change.settings import link_events
from tests.config.links import named
from tests.daemon.test_reload_promises import (
    SETTINGS,
    Path,
    changed_at,
    config_of,
    settings_of,
    written_out,
)

Key = tuple[tuple[type, Any], ...]
"""The way to a value: a struct and its field, or a container and its index, from outside."""


@pytest.mark.parametrize(("protocol", "path"), SETTINGS)
def test_a_number_that_is_the_default_of_a_package_is_not_written_in_the_section(
    protocol: str, path: Path
):
    """The fields of the package are those that follow the setting, whatever their names."""
    if literal := written_default(path):
        document = written_out(protocol)
        before, after = (reached(config_of(d)) for d in (document, changed_at(document, path)))
        followers = [key for key in before if after.get(key) != before[key]]
        found = [default for key in followers for default in defaults(key)]
        assert (literal, literal is True) not in [(default, default is True) for default in found]


def written_default(path: Path) -> float | None:
    """The number or true that a section has as default of a setting, if it is written there.

    Zero and false are no more than "off", and mypy compares the names of choices.
    """
    section, name = Config, ""
    kind: type[Section] | None = Config
    for key in path:
        if kind is not None and (field := fields_of(kind).get(key)):
            section, name, kind = kind, field.name, section_in(field.hint)
    declaring = next(cls for cls in section.__mro__ if name in vars(cls).get("__annotations__", {}))
    for line in ast.parse(inspect.getsource(declaring)).body[0].body:
        if isinstance(line, ast.AnnAssign) and line.target.id == name:
            value = getattr(line.value, "value", None)
            return value if isinstance(line.value, ast.Constant) and value != str(value) else None
    raise AssertionError(f"{declaring} has no {name}")


def reached(config: Config) -> dict[Key, Any]:
    """What the packages run with, on a link too, value by value."""
    watched = [
        settings
        for options in config.link_health.interfaces.values()
        for settings in (options.error_settings(), options.damping.settings())
    ]
    return dict(values([settings_of(config, 1), *link_events(config, named("e1")), *watched]))


def values(value: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, msgspec.Struct):
        parts = [(name, getattr(value, name)) for name in value.__struct_fields__]
    elif isinstance(value, Mapping):
        parts = list(value.items())
    elif isinstance(value, list | tuple):
        parts = list(enumerate(value))
    else:
        yield key, value
        return
    for name, part in parts:
        yield from values(part, (*key, (type(value), name)))


def defaults(key: Key) -> Iterator[Any]:
    """What the structs on the way have at its end if the field is not given."""
    for at, (kind, name) in enumerate(key):
        if issubclass(kind, msgspec.Struct):
            optional = kind.__struct_fields__[::-1][: len(kind.__struct_defaults__)]
            if name in optional:
                default = kind.__struct_defaults__[::-1][optional.index(name)]
                yield dict(values(default)).get(key[at + 1 :])
