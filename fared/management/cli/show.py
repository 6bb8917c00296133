"""Commands that print a document of the daemon: one for each entry of the registry.

``show isis ...`` and ``show ospf ...`` are the same commands narrowed to one protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from fared.core.units import parse_duration
from fared.management.cli.options import parsed_by
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

    def callback(session: Session, /, **values: Any) -> None:  # noqa: ANN401 - of any argument
        values |= _by_name(document.args, values.pop("words", ()))
        given = {word: value for word, value in values.items() if value is not None}
        flags = (argument.name for argument in document.args if argument.kind == "flag")
        bad = _NEGATIVE.get(" ".join([name, *(flag for flag in flags if flag in given)]))
        if proto is not None:
            given["proto"] = proto
        session.show_answer(document.command, given, bad)

    function = output_options(click.pass_obj(callback))
    arguments = document.args if proto is not None else document.arguments
    if _has_both(document.args):
        shown = " ".join(f"[{_word(each)}]" for each in document.args if each.is_word)
        function = click.argument("words", nargs=-1, metavar=shown)(function)
        arguments = tuple(each for each in arguments if not each.is_word)
    for argument in reversed(arguments):
        function = _parameter(argument)(function)
    return click.command(name, help=document.help)(function)


def _has_both(arguments: tuple[Argument, ...]) -> bool:
    """Whether flags stand beside text: each may be left out."""
    return len({argument.kind for argument in arguments if argument.is_word}) > 1


def _by_name(arguments: tuple[Argument, ...], words: tuple[str, ...]) -> dict[str, Any]:
    """Return flags and text by name: a word that a flag begins with is that flag."""
    flags = [argument.name for argument in arguments if argument.kind == "flag"]
    texts = [argument.name for argument in arguments if argument.is_word]
    texts = [name for name in texts if name not in flags]
    found: dict[str, Any] = {}
    for word in words:
        flag = [name for name in flags if name.startswith(word)]
        if len(flag) == 1:
            found[flag[0]] = True
        elif not texts:
            raise click.UsageError(f"Got unexpected extra argument ({word})")
        else:
            found[texts.pop(0)] = word
    return found


def _word(argument: Argument) -> str:
    if argument.kind == "flag":
        return argument.name
    return argument.word or argument.name.upper()


def _parameter(argument: Argument) -> Callable[[F], F]:
    """Declare an argument: flags and text as words, the rest as options."""
    if not argument.is_word:
        return click.option(f"--{argument.name}", help=argument.help, **_option(argument))
    name = argument.name
    if argument.kind == "flag":
        return click.argument(name, metavar=f"[{name}]", required=False, callback=_flag(name))
    metavar = _word(argument) if argument.required else f"[{_word(argument)}]"
    return click.argument(name, metavar=metavar, required=argument.required)


def _option(argument: Argument) -> dict[str, Any]:
    if argument.choices:
        return {"type": click.Choice(argument.choices)}
    if argument.kind == "number":
        return {"type": int, "metavar": "N"}
    if argument.kind == "switch":
        return {"is_flag": True, "default": None}
    if argument.kind == "duration":
        return {"metavar": "TIME", "callback": parsed_by(parse_duration)}
    return {"metavar": _word(argument)}


def _flag(name: str) -> Callable[[click.Context, click.Parameter, str | None], bool | None]:
    expand = one_of(name)
    return lambda ctx, param, value: True if expand(ctx, param, value) else None


for _name in SHOWN:
    show.add_lazy(_name, lazy_command(_name))
for _name in PROTOCOLS:
    show.add_lazy(_name, _narrowed_to(_name))
