"""The view of the routes that one change changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.context import ViewContext
from fared.management.documents.errors import CommandError
from fared.router.convergence import SpfRecord

if TYPE_CHECKING:
    from fared.management.documents.schema import changed as schema

_SAME = 0.01
"""Seconds: a time in JSON is rounded, and the wall clock is slewed."""
_MOST = 1000


def changed(context: ViewContext, at: str | None = None) -> schema.Changed:
    """``show changed [TIME]``: by default of the last change. Raises CommandError."""
    record, journal = _record(context, at), context.router.journal
    found = [prefix for prefix, last in journal.last_change.items() if last.at == record.at]
    return {
        "format": "fared-changed/1",
        "at": context.unix(record.at),
        "causes": list(record.causes),
        "changed": record.routes,
        "later": max(record.routes - len(found), 0),
        "routes": [
            {"prefix": str(prefix), "present": prefix in context.routes}
            for prefix in sorted(found)[:_MOST]
        ],
    }


def _record(context: ViewContext, at: str | None) -> SpfRecord:
    runs = context.router.journal.spf_runs
    if not runs:
        raise CommandError("not-found", "nothing has been computed yet")
    if at is None:
        return next((run for run in reversed(runs) if run.routes), runs[-1])
    try:
        wanted = float(at)
    except ValueError:
        raise CommandError("bad-argument", f"{at!r} is not a Unix time") from None
    found = min(runs, key=lambda run: abs(context.unix(run.at) - wanted))
    if abs(context.unix(found.at) - wanted) > _SAME:
        raise CommandError("not-found", f"no change at {at} is remembered")
    return found
