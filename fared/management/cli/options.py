"""Options of a command as one value: a named tuple, each field with its type and its option.

``@options_of(Asked)`` adds an option for each field and calls the command with an ``Asked``. The
option of ``fail_links`` is ``--fail-links`` unless it names another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import click

_T = TypeVar("_T")


class Opt(NamedTuple):
    """An option: its name, empty for that of the field, and the settings that click knows."""

    name: str
    settings: dict[str, Any]


def parsed_by(parse: Callable[[str], Any]) -> Callable[..., Any]:
    """Return a callback that parses one value, or each of several."""

    def read(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:  # noqa: ANN401
        try:
            if isinstance(value, tuple):
                return tuple(parse(one) for one in value)
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return read


def opt(name: str = "", **settings: Any) -> Opt:  # noqa: ANN401 - click's own settings
    """Return an option for ``Annotated``."""
    return Opt(name, settings)


def options_of(cls: type[_T]) -> Callable[[Callable[[_T], None]], Callable[..., None]]:
    """Return what gives a command the options of ``cls``, a named tuple, in the order of fields."""

    def add(function: Callable[[_T], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**given: Any) -> None:  # noqa: ANN401 - values of any field
            function(cls(**given))

        for name, hint in reversed(get_type_hints(cls, include_extras=True).items()):
            found: Opt = get_args(hint)[1]
            flag = found.name or "--" + name.replace("_", "-")
            command = click.option(flag, name, **found.settings)(command)
        return command

    return add
