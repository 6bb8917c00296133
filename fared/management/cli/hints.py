"""What to do next after an error: a hint for every refusal, and for a silent daemon.

The daemon says what is wrong; what a user of this tool does about it is said here, by the code of
the refusal, the command, and words of the message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from fared.management.api.client import DaemonRefusedError, DaemonUnreachableError
from fared.runtime.extensions import SERVICES

_MOST_SOCKETS: Final = 3


class _Hint(NamedTuple):
    """The hint for a refusal; an empty ``code``, ``command`` or ``words`` stands for all."""

    code: str
    command: str
    words: str
    text: str


_HINTS: Final = (
    _Hint("", "", "does not run", "'fared-cli show status' tells which protocols run; the others"
          " need a section of the configuration and a restart"),
    _Hint("unsupported", "", "BGP has no database", "'fared-cli show topology' has the neighbors,"
          " and the links to them"),
    _Hint("forbidden", "", "", "'id' lists your groups; the administrator adds users to them"),
    _Hint("bad-argument", "", "is not a prefix", "write a prefix as 10.0.2.0/24 or 2001:db8::/64,"
          " or an address that the route serves"),
    _Hint("not-found", "path", "neighbors of BGP", "BGP knows no routers behind them: name"
          " a prefix, or an address"),
    _Hint("not-found", "path", "", "'fared-cli show topology' lists the routers, by name and id"),
    _Hint("not-found", "show routes", "no route", "'fared-cli show routes' lists the routes;"
          " 'fared-cli show routes PREFIX --longer' those within a prefix"),
    _Hint("not-found", "", "no route to", "'fared-cli show routes' lists the routes;"
          " 'fared-cli show neighbors' tells whether neighbors are up"),
    _Hint("not-found", "show database", "", "'fared-cli show database' lists types and ids"),
    _Hint("not-found", "drain", "", "'fared-cli show interfaces' lists the interfaces"),
    _Hint("not-found", "undrain", "", "'fared-cli show interfaces' tells which links are drained"),
    _Hint("not-found", "clear-neighbor", "", "'fared-cli show neighbors' lists them"),
    _Hint("not-found", "config-confirm", "", "it was confirmed, or the former configuration is"
          " back: 'fared-cli config history' tells"),
    _Hint("not-found", "config-rollback", "", "'fared-cli config history' lists them by number"),
    _Hint("busy", "drain", "", "'fared-cli show interfaces' tells which links are drained;"
          " 'fared-cli undrain interface NAME' puts one back"),
    _Hint("busy", "monitor", "", "end another 'fared-cli monitor' first"),
    _Hint("busy", "config-", "confirmation", "'fared-cli config confirm' keeps that change,"
          " 'fared-cli config rollback' undoes it"),
    _Hint("busy", "record-start", "", "'fared-cli record stop' ends it"),
    _Hint("not-found", "record-stop", "", "'fared-cli record start' begins one"),
    _Hint("unsupported", "record-start", "", "name a directory that is new, or has a recording, and"
          " that the daemon may write: the service may write below /var/lib/fared"),
    _Hint("unsupported", "restart", "", "without --graceful neighbors route around this router"
          " meanwhile"),
    _Hint("unsupported", "show config", "", "'fared-cli config check FILE' tells all errors;"
          " 'fared-cli show config' shows what runs"),
    _Hint("bad-argument", "restart", "", "the next daemon could not read its file: correct it,"
          " then 'fared-cli config check FILE'"),
    _Hint("bad-argument", "config-diff", "", "correct the file; 'fared-cli config check FILE' needs"
          " no daemon"),
    *(_Hint("bad-argument", f"{service.section}-", "not enabled", f"add '{service.section}:"
            " {enabled: true}' to the configuration, then 'fared-cli restart'")
      for service in SERVICES),
    _Hint("unknown-command", "", "", "the daemon has another version than this tool: compare"
          " 'fared-cli --version' with 'fared-cli show status'; after an upgrade 'fared-cli"
          " restart'"),
    _Hint("bad-request", "", "", "the daemon has another version than this tool: compare"
          " 'fared-cli --version' with 'fared-cli show status'"),
    _Hint("busy", "", "", "try again in a few seconds"),
    _Hint("internal", "", "", "'fared-cli show log' has more; a report needs the file of"
          " 'fared-cli tech-support'"),
    _Hint("not-found", "", "", "the command without it lists all there is"),
    _Hint("unsupported", "", "", "'fared-cli show config' shows the settings that run"),
    _Hint("", "", "", "'--help' after the command tells what it expects"),
)  # fmt: skip
"""The first that fits is shown."""


def of_refusal(error: DaemonRefusedError, command: str) -> str:
    """Return what to do about a refusal of ``command`` (``show routes``, ``config-apply``)."""
    return next(
        hint.text
        for hint in _HINTS
        if hint.code in ("", error.code)
        and command.startswith(hint.command)
        and hint.words in str(error)
    )


def of_silence(error: DaemonUnreachableError, path: str) -> str:
    """Return what to do if no daemon answers on the socket ``path``."""
    cause = error.__cause__
    if isinstance(cause, PermissionError):
        return _permission(path)
    if isinstance(cause, TimeoutError):
        return "it may be busy or stopped: 'journalctl -u fared -n 20', or its own log, tells more"
    others = _other_sockets(path)
    if others:
        return f"other daemons may answer: {' or '.join(f'-s {other}' for other in others)}"
    return "'systemctl start fared' starts it; 'journalctl -u fared -n 20' tells why it ended"


def _permission(path: str) -> str:
    """Name the group of the socket, unless it is that of root."""
    try:
        group = Path(path).group()
    except (OSError, KeyError):
        group = ""
    if group in ("", "root"):
        return "use sudo"
    return f"use sudo, or join the group: 'sudo usermod -aG {group} USER', then log in again"


def _other_sockets(path: str) -> list[str]:
    """Return sockets beside the one that was asked."""
    try:
        beside = sorted(Path(path).parent.glob("*.sock"))
    except OSError:
        return []
    return [str(found) for found in beside if found != Path(path) and found.is_socket()][
        :_MOST_SOCKETS
    ]
