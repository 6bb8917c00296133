"""The prompt: ``fared-cli`` without arguments on a terminal, as ``vtysh`` and ``birdc``.

The standard readline edits lines. TAB completes what the shells complete (``values``). ``?`` ends
the line: it comes here as its last character, and the line is offered again after the list. Only
this module imports readline; commands run in this process, each with a session of its own.
"""

from __future__ import annotations

import contextlib
import os
import readline
import shlex
import traceback
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import ShellComplete, _resolve_context
from rich.table import Table

from fared.management.cli.ends import Program
from fared.management.cli.session import Failure, Session
from fared.management.documents.paper import console

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_PROGRAM: Final = "fared-cli"
_LEAVE: Final = ("exit", "quit", "logout", "end", "bye")
_MOST_LINES: Final = 1000
_MOST_ROWS: Final = 40
_PATIENCE: Final = 1.0
_QUESTION: Final = "?"
_WELCOME: Final = "fared {version}. ? lists what may follow, TAB completes, exit or Ctrl-D leaves."


def run(program: Program, session: Session, version: str) -> None:
    """Read commands and run them, until the user leaves."""
    click.echo(_WELCOME.format(version=version))
    history = _TypedLines()
    _bind(_Completer(program, session))
    name = _hostname(session, tell=True)
    while True:
        name = name or _hostname(session)
        try:
            line = input(f"{name or 'fared'}> ").strip()
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:  # as in a shell: a new line
            click.echo()
            continue
        if line in _LEAVE:
            return
        if line.endswith(_QUESTION):
            _explain(program, session, line[: -len(_QUESTION)])
        elif line:
            history.add(line)
            _perform(program, session, line)


def _hostname(session: Session, *, tell: bool = False) -> str:
    """Return the name of the router; empty without a daemon, of which the user is told once."""
    try:
        status = session.ask("show status", timeout=_PATIENCE)
    except Failure as failure:
        if tell:
            failure.show()
        return ""
    return str(status.get("hostname") or status.get("router_id") or "")


def _perform(program: Program, session: Session, line: str) -> None:
    """Run one command; whatever becomes of it, the prompt goes on."""
    try:
        words = shlex.split(line)
    except ValueError as error:  # a quote that is not closed
        click.echo(f"Error: {error}", err=True)
        return
    if words[:1] == [_PROGRAM]:  # as hints and documents write it
        words = words[1:]
    if not words:
        return
    try:
        program.perform(words, prog_name=_PROGRAM, obj=session.another())
    except (click.Abort, SystemExit, KeyboardInterrupt):
        pass
    except OSError as error:
        click.echo(f"Error: {error}", err=True)
    except Exception:  # noqa: BLE001 - a fault of a command is not one of the prompt
        traceback.print_exc()


def _explain(program: Program, session: Session, line: str) -> None:
    """List what may follow, with its help, and offer the line again."""
    words, text = _split(line)
    rows = _rows(_following(program, session, words, text))
    if not text:
        rows = _all(program, session, words, rows)
    grid = Table.grid(padding=(0, 2, 0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for value, help_text in rows:
        grid.add_row(value, help_text.replace("\n", " "))
    console().print(grid if rows else "  nothing known begins so")
    readline.set_startup_hook(lambda: _insert(line))


def _insert(line: str) -> None:
    readline.insert_text(line)
    readline.set_startup_hook(None)


def _split(line: str) -> tuple[list[str], str]:
    """Return the words before the last one, and what there is of that."""
    words = line.split()
    if words[:1] == [_PROGRAM]:
        words = words[1:]
    if not words or line[-1:].isspace():
        return words, ""
    return words[:-1], words[-1]


def _following(
    program: Program, session: Session, words: list[str], text: str
) -> list[CompletionItem]:
    """Return the words that may follow and begin with ``text``."""
    found: list[CompletionItem] = []
    with contextlib.suppress(click.ClickException, ValueError):
        complete = ShellComplete(program, {"obj": session.another()}, _PROGRAM, "")
        found = complete.get_completions(words, text)
    return found


def _rows(items: list[CompletionItem]) -> list[tuple[str, str]]:
    rows = [(item.value, item.help or "") for item in items[:_MOST_ROWS]]
    more = len(items) - len(rows)
    return [*rows, ("...", f"{more} more: type a beginning")] if more else rows


def _all(
    program: Program, session: Session, words: list[str], rows: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Add to words and values what else may follow: a value that is not known, options, Enter."""
    options = _rows(_following(program, session, words, "--"))
    if not words:
        return [*rows, *options, ("exit", "Leave. Also: quit, Ctrl-D.")]
    try:
        ctx = _resolve_context(program, {"obj": session.another()}, _PROGRAM, words)
    except click.ClickException:
        return rows
    command = ctx.command
    open_ones = [
        each
        for each in command.params
        if isinstance(each, click.Argument) and not ctx.params.get(each.name or "")
    ]
    if open_ones and not rows:
        rows = [(open_ones[0].metavar or str(open_ones[0].name).upper(), "")]
    runs = not isinstance(command, click.Group) or command.invoke_without_command
    if runs and not any(each.required for each in open_ones):
        options.append(("Enter", "Run it."))
    return [*rows, *options]


class _Completer:
    """Completes for readline, which asks for one value after the other."""

    def __init__(self, program: Program, session: Session) -> None:
        self._program, self._session = program, session
        self._found: list[str] = []

    def __call__(self, text: str, state: int) -> str | None:
        if state == 0:
            words, _ = _split(readline.get_line_buffer()[: readline.get_begidx()] + " ")
            items = _following(self._program, self._session, words, text)
            self._found = [each for item in items for each in _completed(item)]
        return self._found[state] if state < len(self._found) else None


def _completed(item: CompletionItem) -> list[str]:
    """Return the whole word, or the files that begin so."""
    if item.type == "file":
        names = glob(f"{item.value}*")  # noqa: PTH207 - of text that is no path yet
        return [f"{name}/" if Path(name).is_dir() else f"{name} " for name in names]
    return [f"{item.value} "]


def _bind(completer: _Completer) -> None:
    """Bind TAB and ``?``; where libedit stands in for readline, ``?`` needs Enter."""
    readline.set_completer(completer)
    readline.set_completer_delims(" \t")
    if "libedit" in (readline.__doc__ or ""):
        readline.parse_and_bind("bind ^I rl_complete")
        return
    for line in (
        "tab: complete",
        "set show-all-if-ambiguous on",
        "set bell-style none",
        r'"?": "\C-e\C-v?\C-m"',
    ):
        readline.parse_and_bind(line)


class _TypedLines:
    """The lines of former sessions, in a file that only its user can read."""

    def __init__(self) -> None:
        readline.set_auto_history(False)
        readline.set_history_length(_MOST_LINES)
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._file = Path(state) / "fared" / "cli-history"
        self._last = ""
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.touch(mode=0o600)
            self._file.chmod(0o600)
            readline.read_history_file(self._file)
            if readline.get_current_history_length() > _MOST_LINES:
                readline.write_history_file(self._file)

    def add(self, line: str) -> None:
        """Keep a line, at once: sessions beside this one have it when they begin."""
        if line == self._last:
            return
        self._last = line
        readline.add_history(line)
        with contextlib.suppress(OSError):
            readline.append_history_file(1, self._file)
