"""``fared-cli monitor``: the daemon's events until Ctrl-C, as JSON lines, for people as the log.

Bytes go from the control socket to a program as they come, and are never parsed; on a terminal, and
without --json, each is a line as ``show log`` prints it. It ends with 0 on
Ctrl-C or if nobody reads its output any longer, also while no event occurs; with 3 if the daemon
ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
from collections.abc import Callable
from typing import Final

import click
import msgspec

from fared.management.api.requests import duration
from fared.management.cli import values
from fared.management.cli.options import parsed_by
from fared.management.cli.session import Json, Session, Unreachable, once_options
from fared.management.documents.log import LogLine

_CHUNK: Final = 1 << 16
_LEVELS: Final = ("debug", "info", "warning", "error")


@click.command()
@click.argument("events", metavar="[EVENT]...", nargs=-1, shell_complete=values.of("events"))
@click.option(
    "--level",
    type=click.Choice(_LEVELS),
    default="info",
    show_default=True,
    help="Only events of this level and above.",
)
@click.option(
    "--interface",
    metavar="NAME",
    help="Only events of these interfaces, as swp*.",
    shell_complete=values.of("interface"),
)
@click.option(
    "--since",
    metavar="DURATION",
    callback=parsed_by(duration),
    help="Begin with those of the last time, as 10m, that the log still has.",
)
@once_options
@click.pass_obj
def monitor(
    session: Session,
    events: tuple[str, ...],
    level: str,
    interface: str | None,
    since: float | None,
) -> None:
    """Print events as they occur, until Ctrl-C, in a pipe as one JSON object a line.

    EVENT is the name of an event, or a pattern such as 'neighbor-*'; without it all events are
    printed. The page events.md of the documentation lists them with their fields.
    """
    args: Json = {"events": list(events), "level": level}
    if interface is not None:
        args["interface"] = interface
    if since is not None:
        args["since"] = since
    write = _write if session.as_json or not sys.stdout.isatty() else _Lines()
    # EPIPE: who read the output has gone, as it may
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        _follow(session, args, write)


def _follow(session: Session, args: Json, write: Callable[[bytes], None]) -> None:
    """Copy the stream to stdout. Raises Failure, Unreachable, BrokenPipeError."""
    with (
        session.client("monitor") as client,
        client.stream("monitor", args) as (connection, first),
    ):
        write(first)
        while _readable(connection):
            received = _received(connection)
            write(received)
            if not received:
                raise Unreachable(
                    "fared has ended", "'fared-cli monitor' follows the next one when it runs"
                )


def _write(data: bytes) -> None:
    """Write to stdout. Raises BrokenPipeError."""
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]


class _Lines:
    """Prints events for people."""

    def __init__(self) -> None:
        from fared.management.documents.paper import Paper, console  # noqa: PLC0415 - rich: 25 ms

        self._paper = Paper(console(), 0.0)
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            msgspec.json.decode(line, type=LogLine).show(self._paper)


def _readable(connection: socket.socket) -> bool:
    """Wait until the connection has data or ends; return False when stdout is closed before."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    poll.register(sys.stdout.fileno(), 0)  # its error or hang-up is reported nevertheless
    ready = dict(poll.poll())
    return not ready.get(sys.stdout.fileno(), 0) & (select.POLLERR | select.POLLHUP)


def _received(connection: socket.socket) -> bytes:
    """Return what came; nothing: the daemon has ended, or has been killed."""
    try:
        return connection.recv(_CHUNK)
    except ConnectionError:
        return b""
