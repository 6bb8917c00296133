"""Arguments and answers of the commands that change the configuration (``config_change``)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from fared.management.api.errors import CommandError
from fared.management.api.respond import Json

CONFIRM_WITHIN: Final = (1.0, 86_400.0)
"""Seconds that an operator may set for the confirmation."""
MOST_COMMENT: Final = 200
"""Characters."""


def confirm_within(args: Json) -> float | None:
    """Return the seconds within which the change must be confirmed. Raises CommandError."""
    given = args.get("confirm")
    if given is None:
        return None
    least, most = CONFIRM_WITHIN
    if isinstance(given, bool) or not isinstance(given, int | float) or not least <= given <= most:
        raise CommandError("bad-argument", f"confirm must be {least:g} to {most:g} seconds")
    return float(given)


def comment_of(args: Json) -> str:
    """Return the comment, empty if there is none. Raises CommandError."""
    given = args.get("comment") or ""
    if not isinstance(given, str) or len(given) > MOST_COMMENT or not given.isprintable():
        text = f"comment must be one line of at most {MOST_COMMENT} printable characters"
        raise CommandError("bad-argument", text)
    return given


def back_of(args: Json) -> int | None:
    """Return the place in the history. Raises CommandError."""
    given = args.get("back")
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    raise CommandError("bad-argument", "back must be a number")


def date(at: float) -> str:
    """Format Unix time as local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def answer(
    changes: list[Json],
    within: float | None = None,
    *,
    confirmed: bool = False,
    warnings: Sequence[str] = (),
) -> Json:
    """Answer of a change that was applied, or confirmed."""
    return {
        "format": "fared-config-change/1",
        "applied": True,
        "confirmed": confirmed,
        "confirm_within": within,
        "changes": changes,
        "errors": [],
        "warnings": [*warnings],
    }


def refused(errors: list[str]) -> Json:
    """Answer of a change that was refused: nothing was changed. ``errors``: lines for people."""
    return {**answer([]), "applied": False, "errors": errors}


def cannot_save(path: str, error: OSError) -> str:
    """Explain why the file cannot be written."""
    reason = error.strerror or str(error)
    return f"cannot write {path}: {reason}; nothing was changed (docs: operating, Changes)"
