"""Commands that print a document of the daemon: one for each entry of the registry.

``show isis ...``, ``show ospf ...`` and ``show bgp ...`` are the same commands narrowed to one
protocol, with those that only it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import click

from fared.core.units import parse_duration
from fared.management.cli import values
from fared.management.cli.options import parsed_by
from fared.management.cli.session import F, Json, Session, output_options
from fared.management.cli.words import Lazy, Words, one_of
from fared.management.documents import human
from fared.management.documents.declare import PROTOCOLS, Argument, Document
from fared.management.documents.registry import SHOWN, document_of, narrowed

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_NEGATIVE: dict[str, Callable[[Json], bool]] = {
    "fib diff": lambda found: bool(found["diff"]),
    "validate": lambda found: not found["ok"],
}
"""By document and flags: the condition on a document that makes the exit code 1."""


_OF_PROTOCOL: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {"bgp": {"summary": "bgp-summary", "routes": "bgp-routes"}}
)
"""Documents that only one protocol has, by their words behind its name."""


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
        own = _OF_PROTOCOL.get(proto, {})
        group = Words(proto, help=text, **_alone(next(iter(own.values()), None)))
        for name, document in own.items():
            group.add_lazy(name, lazy_command(document))
        for name in narrowed():
            if name not in own:
                group.add_lazy(name, lazy_command(name, proto))
        return output_options(group)

    return Lazy(make, text)


def _alone(name: str | None) -> dict[str, Any]:
    """Return what makes a group without a further word print a document; None: it does not."""
    if name is None:
        return {}

    def callback(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            ctx.invoke(lazy_command(name).make())

    return {"invoke_without_command": True, "callback": click.pass_context(callback)}


def _command_of(name: str, proto: str | None) -> click.Command:
    document = document_of(name)

    def callback(session: Session, /, **found: Any) -> None:  # noqa: ANN401 - of any argument
        found |= _by_name(document.args, found.pop("words", ()))
        given = {word: value for word, value in found.items() if value is not None}
        flags = (argument.name for argument in document.args if argument.kind == "flag")
        bad = _NEGATIVE.get(" ".join([name, *(flag for flag in flags if flag in given)]))
        if proto is not None:
            given["proto"] = proto
        session.show_answer(document.command, given, bad)

    function = output_options(click.pass_obj(callback))
    arguments = document.args if proto is not None else document.arguments
    if _has_both(document.args):
        shown = " ".join(f"[{_word(each)}]" for each in document.args if each.is_word)
        words = partial(_following, document)
        function = click.argument("words", nargs=-1, metavar=shown, shell_complete=words)(function)
        arguments = tuple(each for each in arguments if not each.is_word)
    for argument in reversed(arguments):
        function = _parameter(document, argument)(function)
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


def _following(
    document: Document, ctx: click.Context, param: click.Parameter, text: str
) -> list[CompletionItem]:
    """Complete a word where flags stand beside text."""
    found = _by_name(document.args, ctx.params.get("words") or ())
    words = [argument for argument in document.args if argument.is_word]
    flags = [(each.name, each.help) for each in words if each.kind == "flag"]
    items = values.offered((flag for flag in flags if flag[0] not in found), text)
    texts = [each.name for each in words if each.kind != "flag" and each.name not in found]
    complete = values.of_document(document.name, texts[0]) if texts else None
    return [*items, *(complete(ctx, param, text) if complete else ())]


def _parameter(document: Document, argument: Argument) -> Callable[[F], F]:
    """Declare an argument: flags and text as words, the rest as options."""
    name = argument.name
    complete = values.of_document(document.name, name)
    if not argument.is_word:
        settings = (
            _option(argument)
            if argument.choices
            else {**_option(argument), "shell_complete": complete}
        )
        return click.option(f"--{name}", help=argument.help, **settings)
    if argument.kind == "flag":
        return click.argument(
            name,
            metavar=f"[{name}]",
            required=False,
            callback=_flag(name),
            shell_complete=lambda _ctx, _param, text: values.offered([(name, argument.help)], text),
        )
    metavar = _word(argument) if argument.required else f"[{_word(argument)}]"
    return click.argument(
        name, metavar=metavar, required=argument.required, shell_complete=complete
    )


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
