"""Commands of ``fared-cli`` from requests (``api.requests``): their options and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fared.management.api.requests import DaemonRequest, RequestField, fields_of
from fared.management.cli import values
from fared.management.cli.options import parsed_by
from fared.management.cli.session import F, Json, Session, once_options, output_options

Reader = Callable[[click.Context, click.Parameter, str | None], Any]


def request_command(
    cls: type[DaemonRequest],
    text: str,
    *arguments: str,
    bad: Callable[[Json], bool] | None = None,
) -> click.Command:
    """Return the command that sends a request; ``text`` is its help.

    ``arguments`` are the fields that are words, all others are options; ``bad`` recognizes a
    negative answer.
    """

    @(output_options if cls.reads else once_options)
    @click.pass_obj
    def command(session: Session, /, **given: Any) -> None:  # noqa: ANN401 - values of any field
        session.show_answer(cls.command, args=given_of(given), bad=bad)

    found = click.command(cls.command, help=text)(command)
    found.params[:0] = parameters(cls, *arguments)
    return found


def given_of(given: Json) -> Json:
    """Return the fields that were given; a share of 0 was."""
    return {name: value for name, value in given.items() if value is not None}


def parameters(cls: type[DaemonRequest], *arguments: str) -> list[click.Parameter]:
    """Return arguments and options for the fields of a request."""
    return [
        _argument(field) if field.name in arguments else _option(field) for field in fields_of(cls)
    ]


def with_options(cls: type[DaemonRequest], *options: str) -> Callable[[F], F]:
    """Add options of a request to a command that does more than send it."""

    def add(function: F) -> F:
        for field in reversed(fields_of(cls)):
            if field.name in options:
                function = click.option(f"--{field.name}", **_settings(field))(function)
        return function

    return add


def _argument(field: RequestField) -> click.Argument:
    metavar = field.value.metavar
    return click.Argument(
        [field.name],
        required=not metavar.startswith("["),
        metavar=metavar or field.name.upper(),
        callback=parsed_by(field.value.parse),
        shell_complete=values.of(field.name),
    )


def _option(field: RequestField) -> click.Option:
    return click.Option([f"--{field.name}"], **_settings(field))


def _settings(field: RequestField) -> dict[str, Any]:
    if field.type is bool:
        return {"is_flag": True, "default": None, "help": field.value.help}
    return {
        "metavar": field.value.metavar,
        "help": field.value.help,
        "required": field.required,
        "callback": parsed_by(field.value.parse),
    }
