"""Command groups that take any unique beginning of a word, load lazily, and hint at near misses."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click


class Lazy(NamedTuple):
    """A command that is imported when it is used: ``module:attribute`` and its line of help."""

    target: str
    help: str


def complete(word: str, known: Sequence[str], what: str) -> str:
    """Return the word of ``known`` that ``word`` stands for. Raises click.UsageError."""
    if word in known:
        return word
    matches = [name for name in known if name.startswith(word)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise click.UsageError(f"{what} {word!r} is ambiguous: {', '.join(matches)}")
    import difflib  # noqa: PLC0415 - only after a mistake

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    raise click.UsageError(f"no {what} {word!r}; {hint}")


class Words(click.Group):
    """A group whose commands may be shortened; ``lazy`` ones cost nothing until used."""

    def __init__(self, *args: Any, lazy: dict[str, Lazy] | None = None, **kwargs: Any) -> None:  # noqa: ANN401 - click's own signature
        super().__init__(*args, **kwargs)
        self._lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List eager and lazy commands in the order of their definition."""
        _ = ctx
        return [*self.commands, *self._lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing a lazy one."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name].target.partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise click.UsageError(f"{cmd_name!r} is not in this build of fared") from error
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Expand the word before click looks it up."""
        if args and not args[0].startswith("-"):
            args = [complete(args[0], self.list_commands(ctx), "command"), *args[1:]]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing the lazy ones."""
        _ = ctx
        rows = [(name, command.get_short_help_str(60)) for name, command in self.commands.items()]
        rows += [(name, entry.help) for name, entry in self._lazy.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def one_of(*words: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Make the callback of an optional argument that is one of ``words``, or the start of one."""

    def expand(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        return None if value is None else complete(value, words, "word")

    return expand
