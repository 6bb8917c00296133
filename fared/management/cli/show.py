"""Commands that print a document of the daemon: one for each entry of the registry.

``show isis ...`` and ``show ospf ...`` are the same commands narrowed to one protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

from fared.management.cli.session import F, Json, Session, output_options
from fared.management.cli.words import Lazy, Words, one_of
from fared.management.documents import human
from fared.management.documents.declare import PROTOCOLS, Argument
from fared.management.documents.registry import SHOWN, document_of, narrowed

_NEGATIVE: dict[str, Callable[[Json], bool]] = {
    "fib diff": lambda found: bool(found["diff"]),
    "validate": lambda found: not found["ok"],
}
"""By document and flags: the condition on a document that makes the exit code 1."""


@click.group(cls=Words)
@output_options
def show() -> None:
    """Show the state of the daemon."""


def lazy_command(name: str, proto: str | None = None) -> Lazy:
    """Return the command that prints a document; ``proto``: of that protocol only."""
    return Lazy(partial(_command_of, name, proto), lambda: document_of(name).help)


def _narrowed_to(proto: str) -> Lazy:
    """Return the group of ``show`` commands of one protocol."""
    text = f"The same, for {human.PROTOCOLS[proto]} only."

    def make() -> click.Group:
        group = Words(proto, help=text)
        for name in narrowed():
            group.add_lazy(name, lazy_command(name, proto))
        return output_options(group)

    return Lazy(make, text)


def _command_of(name: str, proto: str | None) -> click.Command:
    document = document_of(name)

    def callback(session: Session, /, **values: object) -> None:
        given = {word: value for word, value in values.items() if value is not None}
        flags = (argument.name for argument in document.args if argument.kind == "flag")
        bad = _NEGATIVE.get(" ".join([name, *(flag for flag in flags if flag in given)]))
        if proto is not None:
            given["proto"] = proto
        session.show_answer(document.command, given, bad)

    function = output_options(click.pass_obj(callback))
    arguments = document.args if proto is not None else document.arguments
    for argument in reversed(arguments):
        function = _parameter(argument)(function)
    return click.command(name, help=document.help)(function)


def _parameter(argument: Argument) -> Callable[[F], F]:
    """Declare an argument: flags and text as words, the rest as options."""
    name, option = argument.name, f"--{argument.name}"
    if argument.choices:
        return click.option(option, type=click.Choice(argument.choices), help=argument.help)
    if argument.kind == "number":
        return click.option(option, type=int, metavar="N", help=argument.help)
    if argument.kind == "switch":
        return click.option(option, is_flag=True, default=None, help=argument.help)
    if argument.kind == "flag":
        return click.argument(name, metavar=f"[{name}]", required=False, callback=_flag(name))
    word = argument.word or name.upper()
    metavar = word if argument.required else f"[{word}]"
    return click.argument(name, metavar=metavar, required=argument.required)


def _flag(name: str) -> Callable[[click.Context, click.Parameter, str | None], bool | None]:
    expand = one_of(name)
    return lambda ctx, param, value: True if expand(ctx, param, value) else None


for _name in SHOWN:
    show.add_lazy(_name, lazy_command(_name))
for _name in PROTOCOLS:
    show.add_lazy(_name, _narrowed_to(_name))
