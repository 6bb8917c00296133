"""``show ina``: jobs of in-network aggregation, as the daemon knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.api.errors import CommandError
from fared.api.views.context import ViewContext

if TYPE_CHECKING:
    from fared.api.schema.ina import InaJobs

_WHAT = ("job", "jobs", "slots")


def ina(context: ViewContext, *, what: str | None = None, name: str | None = None) -> InaJobs:
    """``show ina [jobs | job NAME | slots]``. Raises CommandError.

    ``what`` is for the table; with ``job NAME`` the document has that job only.
    """
    chosen = next((word for word in _WHAT if what and word.startswith(what)), what or "")
    if chosen and chosen not in _WHAT:
        raise CommandError("bad-argument", f"no {chosen!r}: {', '.join(_WHAT)}")
    if (chosen == "job") != (name is not None):
        raise CommandError("bad-argument", "a name follows 'job', and nothing else")
    found = context.ina(True)
    if found is None:
        found = {
            "format": "fared-ina/1",
            "enabled": False,
            "what": "",
            "name": "",
            "process": None,
            "routers": [],
            "jobs": [],
        }
    jobs = [job for job in found["jobs"] if name in (None, job["name"])]
    if name is not None and not jobs:
        raise CommandError("not-found", f"no job {name}")
    return {**found, "what": chosen, "name": name or "", "jobs": jobs}
