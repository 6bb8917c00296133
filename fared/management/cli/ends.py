"""How a command ends if its output does: as a Unix program.

A reader that has gone (``| head``) ends it by SIGPIPE, Ctrl-C by SIGINT, so that a shell sees 141
and 130 and a script stops; a full disk or a closed stdout is an error, exit code 1. SIGPIPE is
raised only then: with its default action a daemon that goes away would end the client without a
word.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click

_FAILED = 1


@contextmanager
def unix() -> Iterator[None]:
    """End the program if writing fails, or on Ctrl-C."""
    _open_all()
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        by_signal(signal.SIGINT)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT, errno.EFBIG):
            raise
        _give_up()
        click.echo(f"Error: cannot write: {error.strerror}", err=True)
        sys.exit(_FAILED)


@contextmanager
def pipes() -> Iterator[None]:
    """End by SIGPIPE if the reader has gone."""
    try:
        yield
    except BrokenPipeError:
        by_signal(signal.SIGPIPE)


def by_signal(number: signal.Signals) -> None:
    """End by a signal, with its default action."""
    _give_up()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _open_all() -> None:
    """Open what the parent closed, or the next socket would be stdout: nothing can be written."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        setattr(sys, name, _stream(number, name))


def _stream(number: int, name: str) -> IO[Any]:
    mode = "r" if name == "stdin" else "w"
    return open(number, mode, encoding="utf-8", closefd=False)


def _give_up() -> None:
    """Drop what is buffered for stdout: Python would write it again at exit, and complain."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


class Program(click.Group):
    """A group of commands that ends so."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's own signature
        **extra: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Run as a program, which ends as Unix programs do."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        with unix():
            if "COMP_WORDS" in os.environ:
                from fared.management.cli import bash  # noqa: PLC0415 - only for TAB

                bash.use()
            found = sys.argv[1:] if args is None else list(args)
            sys.exit(self.perform(found, prog_name=prog_name, complete_var=complete_var, **extra))

    def perform(self, args: list[str], **extra: Any) -> int:  # noqa: ANN401 - as above
        """Run a command and print its errors; return the exit code."""
        try:
            return super().main(args, standalone_mode=False, **extra) or 0
        except click.ClickException as error:
            instead = self.meant(args, error)
            if isinstance(instead, list):
                return self.perform(instead, **extra)
            instead.show()
            return instead.exit_code

    def meant(
        self, args: list[str], error: click.ClickException
    ) -> list[str] | click.ClickException:
        """Return what to run instead of words that are wrong, or else what to say."""
        _ = args
        return error

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run a command; click itself hides that a reader has gone."""
        with pipes():
            return super().invoke(ctx)
