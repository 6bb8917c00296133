"""Answers of the commands that change the configuration (``config_change``)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fared.management.api.respond import Json


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
