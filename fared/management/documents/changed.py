"""``show changed [WHEN]``: the routes that one change changed."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from fared.core.units import parse_duration
from fared.management.documents import human
from fared.management.documents.cells import Columns, count, dim
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import Causes, Facts, UnixTime
from fared.management.documents.happened import told
from fared.management.documents.sliced import Sliced, Work

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.paper import Paper
    from fared.router.convergence import SpfRecord

_SAME: Final = 0.01
"""Seconds: a time in JSON is rounded, and the wall clock is slewed."""
_MOST: Final = 1000
_ROW: Final = re.compile(r"\d{1,4}")
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_DAY: Final = 86400
_MINUTE: Final = 60.0
_ROUNDED: Final = 0.1
"""Part of an age that two digits of it leave open."""


class ChangedRoute(Facts):
    """A route; ``present`` False: it is gone."""

    prefix: str
    present: bool


class Changed(Answer, tag="fared-changed/1"):
    """``show changed [WHEN]``: the routes whose last change was that of a computation.

    ``at`` is that of an entry of ``show convergence`` or ``show spf log``. The computation changed
    ``changed`` routes; ``later`` of them changed again since, and are not in ``routes``, which has
    1000 at most. ``causes`` and ``changes`` are as in these.
    """

    at: UnixTime
    causes: Causes
    changes: list[str]
    changed: int
    later: int
    routes: list[ChangedRoute]

    def show(self, paper: Paper) -> None:
        """Print the routes."""
        later = f", {self.later} of them again since" if self.later else ""
        paper.line(f"{count(self.changed, 'route')} changed {paper.ago(self.at)} ago{later}")
        paper.line(dim("; ".join(self.changes) or human.because(self.causes)))
        paper.line()
        paper.table(self.routes, _ROUTES)


_ROUTES: Columns = {"Route": "prefix", "": lambda route: "" if route.present else "gone"}


@Sliced
def changed(context: ViewContext, at: str | None = None) -> Work[Changed]:
    """``show changed [WHEN]``: by default of the last change. Raises CommandError."""
    record, journal = _record(context, at), context.router.journal
    changes_at = yield from told(context)
    found = [prefix for prefix, last in journal.last_change.items() if last.at == record.at]
    return Changed(
        at=context.unix(record.at),
        causes=list(record.causes),
        changes=changes_at(record.at),
        changed=record.routes,
        later=max(record.routes - len(found), 0),
        routes=[
            ChangedRoute(prefix=str(prefix), present=prefix in context.routes)
            for prefix in sorted(found)[:_MOST]
        ],
    )


class _Time(NamedTuple):
    """A Unix time, and the seconds by which a change may be before or after it."""

    at: float
    before: float
    after: float


def _record(context: ViewContext, when: str | None) -> SpfRecord:
    journal = context.router.journal
    runs = journal.spf_runs
    if not runs:
        raise CommandError("not-found", "nothing has been computed yet")
    if when is None:
        return next((run for run in reversed(runs) if run.routes), runs[-1])
    if _ROW.fullmatch(when):
        return _row(context, int(when))
    wanted = _time(when, context.wall)
    found = min(runs, key=lambda run: abs(context.unix(run.at) - wanted.at))
    if not -wanted.before <= context.unix(found.at) - wanted.at <= wanted.after:
        ago = human.duration(context.now - found.at)
        raise CommandError("not-found", f"no change at {when} is remembered; the nearest: {ago}")
    return found


def _row(context: ViewContext, number: int) -> SpfRecord:
    """Return the computation of a row of ``show convergence``, the last change is 1."""
    journal = context.router.journal
    if not 1 <= number <= len(journal.changes):
        rows = f"'show convergence' has {count(len(journal.changes), 'change')}"
        raise CommandError("not-found", f"no change {number}: {rows}")
    at = journal.changes[-number].at
    found = next((run for run in journal.spf_runs if run.at == at), None)
    if found is None:
        raise CommandError("not-found", f"the computation of change {number} is not remembered")
    return found


def _time(text: str, wall: float) -> _Time:
    """Parse Unix time, a time of day, or an age. Raises CommandError."""
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        hour, minute, second = (int(part or 0) for part in clock.groups())
        today = time.localtime(wall)
        at = time.mktime((*today[:3], hour, minute, second, 0, 0, -1))
        at -= _DAY if at > wall else 0
        return _Time(at, 0.0, _MINUTE if clock[3] is None else 1.0)
    try:
        return _Time(float(text), _SAME, _SAME)
    except ValueError:
        pass
    try:
        age = parse_duration(text)
    except ValueError:
        wanted = "a number of 'show convergence', an age (5m), a time (12:50) or Unix time"
        raise CommandError("bad-argument", f"{text!r} is not {wanted}") from None
    return _Time(wall - age, max(age * _ROUNDED, 1.0), max(age * _ROUNDED, 1.0))


DOCUMENT = Document(
    Changed,
    changed,
    "Routes that a change was the last to change: the last one, or that of WHEN.\n\n"
    "WHEN is a number of 'show convergence' (the last change is 1), an age (5m), a time of day\n"
    "(12:50, 12:50:45), or Unix time, as 'show convergence --json' has it.",
    (Argument("at", word="WHEN"),),
)
