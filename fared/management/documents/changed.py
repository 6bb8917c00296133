"""``show changed [TIME]``: the routes that one change changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import Columns, count, dim
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import Facts, UnixTime

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.paper import Paper
    from fared.router.convergence import SpfRecord

_SAME = 0.01
"""Seconds: a time in JSON is rounded, and the wall clock is slewed."""
_MOST = 1000


class ChangedRoute(Facts):
    """A route; ``present`` False: it is gone."""

    prefix: str
    present: bool


class Changed(Answer, tag="fared-changed/1"):
    """``show changed [TIME]``: the routes whose last change was that of a computation.

    ``at`` is that of an entry of ``show convergence`` or ``show spf log``. The computation changed
    ``changed`` routes; ``later`` of them changed again since, and are not in ``routes``, which has
    1000 at most.
    """

    at: UnixTime
    causes: list[str]
    changed: int
    later: int
    routes: list[ChangedRoute]

    def show(self, paper: Paper) -> None:
        """Print the routes."""
        later = f", {self.later} of them again since" if self.later else ""
        paper.line(f"{count(self.changed, 'route')} changed {paper.ago(self.at)} ago{later}")
        paper.line(dim(human.because(self.causes) + "\n"))
        paper.table(self.routes, _ROUTES)


_ROUTES: Columns = {"Route": "prefix", "": lambda route: "" if route.present else "gone"}


def changed(context: ViewContext, at: str | None = None) -> Changed:
    """``show changed [TIME]``: by default of the last change. Raises CommandError."""
    record, journal = _record(context, at), context.router.journal
    found = [prefix for prefix, last in journal.last_change.items() if last.at == record.at]
    return Changed(
        at=context.unix(record.at),
        causes=list(record.causes),
        changed=record.routes,
        later=max(record.routes - len(found), 0),
        routes=[
            ChangedRoute(prefix=str(prefix), present=prefix in context.routes)
            for prefix in sorted(found)[:_MOST]
        ],
    )


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


DOCUMENT = Document(
    Changed,
    changed,
    "Routes that a change was the last to change: the last one, or that of TIME.\n\n"
    "TIME is Unix time, as 'show convergence --json' has it.",
    (Argument("at", word="TIME"),),
)
