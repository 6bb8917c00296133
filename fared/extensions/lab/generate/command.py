"""``fared-lab generate NAME``: a command for each topology of the registry, made when it is used.

A module is imported only then: some use networkx, which takes 100 ms.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable
from typing import Annotated, get_args, get_origin, get_type_hints

import click

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.generate.model import Generator, Option
from fared.extensions.lab.generate.registry import NAMES
from fared.extensions.lab.generate.writer import text


def generator(name: str) -> type[Generator]:
    """Return the topology of a name of the registry."""
    module = importlib.import_module(f"{__package__}.{name.replace('-', '_')}")
    found: type[Generator] = module.GENERATOR
    return found


class _Generators(click.Group):
    """Finds its commands in the registry."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return _command(generator(cmd_name)) if cmd_name in NAMES else None


@click.group(cls=_Generators)
def generate() -> None:
    """Write a topology file of another size to the standard output."""


def _command(topology: type[Generator]) -> click.Command:
    """Make the command of a topology: its own options first, then those of all."""
    make: Callable[..., Generator] = topology

    def write(**values: object) -> None:
        try:
            file = text(make(**values))
        except LabError as error:
            raise click.UsageError(str(error)) from error
        click.echo(file, nl=False)

    common = {field.name for field in dataclasses.fields(Generator)}
    options = sorted(_options(topology), key=lambda option: option.name in common)
    return click.Command(
        topology.command(),
        params=[*options],
        callback=write,
        help=inspect.getdoc(topology),
        short_help=topology.summary(),
    )


def _options(topology: type[Generator]) -> list[click.Option]:
    """Return the options of a topology's fields."""
    hints = get_type_hints(topology, include_extras=True)
    found = []
    for field in dataclasses.fields(topology):
        hint = hints[field.name]
        assert get_origin(hint) is Annotated, field.name
        declared = next(extra for extra in get_args(hint) if isinstance(extra, Option))
        found.append(
            click.Option(
                [f"--{field.name.replace('_', '-')}", field.name],
                type=declared.type,
                default=field.default,
                show_default=bool(field.default),
                help=declared.help,
            )
        )
    return found
