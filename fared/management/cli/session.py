"""Common to all commands: the socket of the daemon, printing, and exit codes.

Exit codes: 0 ok, 1 a negative result or malformed input, 2 usage, 3 the daemon is unreachable.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, TypeVar

import click

from fared.management.api.client import (
    PATIENCE,
    ControlClient,
    DaemonRefusedError,
    DaemonUnreachableError,
)
from fared.runtime.sockets import CONTROL_SOCKET

Json = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])

NEGATIVE = 1
USAGE = 2
UNREACHABLE = 3
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_HELP = "'--help' after the command tells what it expects"
_PIPE_WIDTH = 160
"""Columns if the output is no terminal, so that nothing is cut in a pipe."""


class Session:
    """The global options: ``socket``, ``as_json`` and ``watch`` (seconds, None for once)."""

    def __init__(self) -> None:
        self.socket = CONTROL_SOCKET
        self.as_json = False
        self.watch: float | None = None

    def another(self) -> Session:
        """Return a session with the same daemon, and none of the other options."""
        found = Session()
        found.socket = self.socket
        return found

    def ask(self, command: str, args: Json | None = None, timeout: float = PATIENCE) -> Json:
        """Return a document of the daemon. Raises Failure or Unreachable."""
        with self.client(command, timeout) as client:
            return client.request(command, args=args)

    @contextmanager
    def client(self, command: str, timeout: float = PATIENCE) -> Iterator[ControlClient]:
        """Yield a client of the daemon; convert its errors into Failure and Unreachable."""
        try:
            yield ControlClient(self.socket, timeout)
        except DaemonUnreachableError as error:
            from fared.management.cli import hints  # noqa: PLC0415 - only after an error

            raise Unreachable(str(error), hints.of_silence(error, self.socket)) from error
        except DaemonRefusedError as error:
            from fared.management.cli import hints  # noqa: PLC0415 - only after an error

            hint = hints.of_refusal(error, command)
            raise Failure(str(error), hint, refused=True) from error

    def show_answer(
        self,
        command: str,
        args: Json | None = None,
        bad: Callable[[Json], bool] | None = None,
    ) -> None:
        """Print the answer of the daemon, repeatedly with ``--watch``.

        ``bad`` recognizes a negative result, which ends with exit code 1. JSON for a program is
        passed on unchanged, in one line, so that a large table is not parsed and encoded again.
        """
        if self.as_json and self.watch is None and bad is None and not sys.stdout.isatty():
            with self.client(command) as client:
                text = client.text(command, args=args)
            sys.stdout.buffer.write(text + b"\n")
            sys.stdout.flush()
            return
        self.show(lambda: self.ask(command, args), bad)

    def show(self, fetch: Callable[[], Json], bad: Callable[[Json], bool] | None = None) -> None:
        """Print the result of ``fetch``, repeatedly with ``--watch``; ``bad`` as above."""
        if self.watch is not None:
            self._watch(fetch)
            return
        document = fetch()
        self.print(document)
        if bad is not None and bad(document):
            raise click.exceptions.Exit(NEGATIVE)

    def print(self, document: Json) -> None:
        """Print a document as JSON or as a table."""
        if self.as_json:
            click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        else:
            click.echo(render(document), nl=False)

    def _watch(self, fetch: Callable[[], Json]) -> None:
        clear = moves_cursor() and not self.as_json
        try:
            while True:
                self._watch_once(fetch, clear=clear)
                time.sleep(self.watch or 0)
        except KeyboardInterrupt:
            click.echo(err=True)

    def _watch_once(self, fetch: Callable[[], Json], *, clear: bool) -> None:
        try:
            document = fetch()
        except Failure as failure:
            # Continue, so that a restarting daemon can be watched.
            click.echo(failure.format_message(), err=True)
            return
        if self.as_json:
            click.echo(json.dumps(document, ensure_ascii=False))
            return
        text = render(document)
        if clear:
            text = f"{_CLEAR}{time.strftime('%H:%M:%S')}  every {self.watch:g}s\n\n{text}"
        click.echo(text, nl=False)
        sys.stdout.flush()


def moves_cursor() -> bool:
    """Whether stdout is a terminal that can be cleared and drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb", "unknown")


class Failure(click.ClickException):
    """A message on stderr and exit code 1: refused, not found, malformed.

    ``hint`` says what to do next, in a line of its own. ``refused``: by the daemon.
    """

    exit_code = NEGATIVE

    def __init__(self, message: str, hint: str = "", *, refused: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.refused = refused

    def show(self, file: IO[Any] | None = None) -> None:
        """Print message and hint."""
        click.echo(folded(f"Error: {self.format_message()}"), file=file, err=True)
        tell(self.hint or _HELP)


class Mistake(Failure):
    """Words that mean something else here: exit code 2."""

    exit_code = USAGE


class Unreachable(Failure):
    """No daemon answers: exit code 3."""

    exit_code = UNREACHABLE


def tell(hint: str) -> None:
    """Print what to do next, if anything."""
    if hint:
        click.echo(folded(f"Hint: {hint}"), err=True)


def folded(text: str) -> str:
    """Break lines at words on a terminal; for programs a line stays one."""
    if not sys.stderr.isatty():
        return text
    columns = shutil.get_terminal_size().columns
    lines = (
        textwrap.wrap(
            line,
            columns,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.splitlines()
    )
    return "\n".join(part for line in lines for part in line or [""])


def render(document: Json) -> str:
    """Format a document as a table, as wide as the terminal, with colours only there."""
    from fared.management.cli.tables import write  # noqa: PLC0415 - as above
    from fared.management.documents.paper import console  # noqa: PLC0415 - rich: 25 ms that --json saves

    target = console(None if sys.stdout.isatty() else _PIPE_WIDTH)
    with target.capture() as captured:
        write(document, target, time.time())
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _set(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:  # noqa: ANN401
        _ = param
        if value is not None and value is not False:
            setattr(ctx.ensure_object(Session), name, value)

    return callback


def output_options(function: F) -> F:
    """Add ``--json`` and ``--watch``, which are accepted before and after a command."""
    function = click.option(
        "--watch",
        type=click.FloatRange(min=0.1),
        metavar="SECONDS",
        help="Repeat at this interval.",
        expose_value=False,
        callback=_set("watch"),
    )(function)
    return _json_option(_set("as_json"), function)


def once_options(function: F) -> F:
    """Add ``--json`` to a command that is not repeated."""

    def read(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if ctx.ensure_object(Session).watch is not None:
            raise click.UsageError(f"{ctx.command.name} takes no --watch: it is not repeated")
        _set("as_json")(ctx, param, value)

    return _json_option(read, function)


def _json_option(callback: Callable[..., None], function: F) -> F:
    return click.option(
        "--json",
        is_flag=True,
        help="Print the JSON document.",
        expose_value=False,
        callback=callback,
    )(function)


def socket_option(function: F) -> F:
    """Add ``-s``."""
    return click.option(
        "-s",
        "--socket",
        metavar="SOCKET",
        envvar="FARED_SOCKET",
        help=f"Control socket of the daemon (default {CONTROL_SOCKET}, or $FARED_SOCKET).",
        expose_value=False,
        callback=_set("socket"),
    )(function)
