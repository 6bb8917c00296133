"""The exception by which a request is refused, and its codes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_NAMES_SHOWN: Final = 8
ERROR_CODES = {
    "bad-request": "not a JSON object with a command, or too large",
    "unknown-command": "the daemon does not know the command or document",
    "bad-argument": "an argument is missing or cannot be read",
    "not-found": "no such prefix, node or LSA",
    "forbidden": "only members of api: change-group: may change the daemon",
    "unsupported": "known, but not in this daemon or configuration",
    "busy": "too many HTTP connections are being answered (only /metrics and health are then), or"
    " the kernel cannot be read now",
    "internal": "the daemon failed to answer; its log has the reason",
}
"""``{"ok": false, "error": {"code", "message"}}`` on the control socket."""


class CommandError(Exception):
    """A request that is refused; ``code`` is one of ``ERROR_CODES``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def not_found(what: str, wanted: str, known: Iterable[str]) -> CommandError:
    """Return the refusal of a name that nothing has: ``no neighbor S9; known: S1, S2``."""
    names = [*dict.fromkeys(known)]
    shown = ", ".join(names[:_NAMES_SHOWN]) or "none"
    more = len(names) - _NAMES_SHOWN
    return CommandError(
        "not-found", f"no {what} {wanted}; known: {shown}{f' and {more} more' if more > 0 else ''}"
    )
