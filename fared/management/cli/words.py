"""Command groups that accept unique prefixes of words, load lazily, and suggest near misses."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from fared.management.cli import ends
from fared.management.cli.session import folded
from fared.runtime.extensions import PluggedOptions, part

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MOST_HELP = 200
"""Characters: the list of commands shows first sentences whole, over two lines if need be."""
_ELSEWHERE = "{!r} is in another package: install fared-tools"


class Lazy(NamedTuple):
    """A command that is created at first use, and its help, whose first sentence is for lists."""

    make: Callable[[], click.Command]
    help: str | Callable[[], str]


def widened(lazy: Lazy, plugged: PluggedOptions) -> Lazy:
    """Return a command with the options of another package, or a refusal of the first of them."""

    def make() -> click.Command:
        command = lazy.make()
        try:
            add: Callable[[click.Command], click.Command] = part(plugged.target)
        except ModuleNotFoundError as error:
            if not _is_of(plugged.target, error):
                raise
            return _refusing(plugged.option)(command)
        return add(command)

    return Lazy(make, lazy.help)


def _refusing(option: str) -> Callable[[click.Command], click.Command]:
    def refuse(_ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(_ELSEWHERE.format(option))

    return click.option(option, expose_value=False, hidden=True, callback=refuse)


def _is_of(target: str, error: ModuleNotFoundError) -> bool:
    """Whether it is the module of a part that is missing, and not one that this imports."""
    return f"{target.partition(':')[0]}.".startswith(f"{error.name}.")


def imported(target: str) -> Callable[[], click.Command]:
    """Return a function that imports the command ``module:attribute``."""
    attribute = target.partition(":")[2]

    def load() -> click.Command:
        try:
            command: click.Command = part(target)
        except ModuleNotFoundError as error:
            if not _is_of(target, error):
                raise
            raise click.UsageError(_ELSEWHERE.format(attribute)) from error
        return command

    return load


class UnknownWordError(click.UsageError):
    """No word, or several, begin so; a long list is broken at words on a terminal."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message."""
        click.echo(folded(f"Error: {self.format_message()}"), file=file, err=True)


def complete(word: str, known: Sequence[str], what: str) -> str:
    """Return the word of ``known`` that ``word`` abbreviates. Raises UnknownWordError."""
    if word in known:
        return word
    matches = [name for name in known if name.startswith(word)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownWordError(f"{what} {word!r} is ambiguous: {', '.join(matches)}")
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    raise UnknownWordError(f"no {what} {word!r}; {hint}")


class Words(ends.Program):
    """A group whose commands may be shortened; lazy ones cost nothing until used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - click's own signature
        super().__init__(*args, **kwargs)
        self._lazy: dict[str, Lazy] = {}
        self._names: list[str] = []

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add an existing command."""
        super().add_command(cmd, name)
        self._names.append(name or str(cmd.name))

    def add_lazy(self, name: str, lazy: Lazy) -> None:
        """Add a command that is created at first use."""
        self._lazy[name] = lazy
        self._names.append(name)

    @property
    def names(self) -> list[str]:
        """The commands, in the order in which they were added."""
        return self._names

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which they were added."""
        _ = ctx
        return self._names

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; create a lazy one."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        return self._lazy[cmd_name].make()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Expand the word before click looks it up; what follows an unknown one is unknown."""
        if args and not args[0].startswith("-"):
            try:
                args = [complete(args[0], self.list_commands(ctx), "command"), *args[1:]]
            except UnknownWordError:
                if not ctx.resilient_parsing:
                    raise
                return args[0], click.Command(args[0], add_help_option=False), []
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command, without importing the lazy ones, or an option."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for TAB

        names = (name for name in self._names if name.startswith(incomplete))
        items = [CompletionItem(name, help=self._help_of(name)) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing the lazy ones."""
        _ = ctx
        rows = [(name, self._help_of(name)) for name in self._names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _help_of(self, name: str) -> str:
        lazy = self._lazy.get(name)
        if lazy is None:
            return self.commands[name].get_short_help_str(_MOST_HELP)
        text = lazy.help if isinstance(lazy.help, str) else lazy.help()
        command = click.Command(name, help=text)
        return command.get_short_help_str(_MOST_HELP)


def one_of(*words: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return the callback of an optional argument that is one of ``words``, or a prefix of one."""

    def expand(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        return None if value is None else complete(value, words, "word")

    return expand
