"""``fared-cli top``: a page on the terminal that refreshes in place, until q or Ctrl-C.

It asks for the documents of ``show`` over the control socket, on a connection for each, so a
restart of the daemon only stops the page for a while; meanwhile the last one stays.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from functools import partial
from typing import NoReturn

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from fared.management.cli.session import Failure, Session, moves_cursor, output_options
from fared.management.cli.top_page import Snapshot, page
from fared.management.documents import human
from fared.management.documents.paper import console

_INTERVAL = 1.0
_PATIENCE = 3.0
"""Seconds for an answer: a daemon that stands still must not hold the page for long."""
_LOOK = 0.2
"""Seconds between looks at the size of the terminal."""
_EVENTS = 50
_QUIT = (b"q", b"Q", b"\x03")
_TERMINATED = 128 + signal.SIGTERM


@click.command()
@output_options
@click.pass_obj
def top(session: Session) -> None:
    """Watch neighbors, links, weights and events on one page. Quit with q.

    It refreshes every second, or at the interval of --watch. The last page stays while the daemon
    restarts.
    """
    if session.as_json:
        raise click.UsageError("top is for people; for JSON: fared-cli show ... --json --watch 1")
    if not (sys.stdin.isatty() and moves_cursor()):
        raise Failure(
            "top needs a terminal that it can draw on", "without one: fared-cli show ... --watch 1"
        )
    found = _fetch(session)
    with _keys(), contextlib.suppress(KeyboardInterrupt):
        _run(session, found)


def _fetch(session: Session) -> Snapshot:
    """Ask the daemon for everything on the page. Raises Failure or Unreachable."""
    return Snapshot(
        session.ask("show status", timeout=_PATIENCE),
        session.ask("show interfaces", timeout=_PATIENCE),
        session.ask("show neighbors", timeout=_PATIENCE),
        session.ask("show weights", timeout=_PATIENCE),
        session.ask("show log", {"lines": _EVENTS}, timeout=_PATIENCE),
        session.ask("show convergence", timeout=_PATIENCE),
    )


def _run(session: Session, found: Snapshot) -> None:
    """Refresh the page until the user quits."""
    screen = console()
    problem, since = "", time.time()
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        while True:
            draw = partial(_draw, live, screen, found, problem, since)
            draw()
            if _quits(screen, draw, session.watch or _INTERVAL):
                return
            try:
                found, problem, since = _fetch(session), "", time.time()
            except Failure as failure:
                problem = failure.message


def _draw(live: Live, screen: Console, found: Snapshot, problem: str, since: float) -> None:
    now = time.time()
    why = f"as of {human.duration(now - since)} ago: {problem}" if problem else ""
    lines = page(found, now, screen.width, screen.height, why)
    live.update(Text("\n").join(lines), refresh=True)


def _quits(screen: Console, draw: Callable[[], None], interval: float) -> bool:
    """Wait for the interval, and draw again if the terminal changes its size.

    Return whether the user quits.
    """
    size, end = screen.size, time.monotonic() + interval
    while (left := end - time.monotonic()) > 0:
        if _pressed(min(left, _LOOK)) in _QUIT:
            return True
        if screen.size != size:
            size = screen.size
            draw()
    return False


def _pressed(limit: float) -> bytes:
    """Return a key that is pressed within so many seconds; q if the terminal is gone."""
    ready, _, _ = select.select([sys.stdin], [], [], limit)
    if not ready:
        return b""
    return os.read(sys.stdin.fileno(), 1) or b"q"


@contextlib.contextmanager
def _keys() -> Iterator[None]:
    """Read keys without echo or Enter, and leave the terminal as it was, also when terminated.

    The page cannot be stopped with Ctrl-Z, which would leave the shell on it. Ctrl-C ends it also
    where a parent ignores it.
    """
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    stopping = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    terminating = signal.signal(signal.SIGTERM, _terminated)
    interrupting = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTSTP, stopping)
        signal.signal(signal.SIGTERM, terminating)
        signal.signal(signal.SIGINT, interrupting)


def _terminated(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(_TERMINATED)
