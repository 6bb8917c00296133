"""``show ina``: jobs of in-network aggregation, as ``fared-jobs`` knows them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from fared.management.documents.context import AggregationSource, ViewContext
from fared.management.documents.errors import CommandError

if TYPE_CHECKING:
    from fared.management.documents.schema.ina import InaJobs

_WHAT = ("job", "jobs", "slots")


def ina(
    context: ViewContext, *, what: str | None = None, name: str | None = None
) -> InaJobs | Awaitable[InaJobs]:
    """``show ina [jobs | job NAME | slots]``. Raises CommandError.

    ``what`` is for the table; with ``job NAME`` the document has that job only.
    """
    chosen = next((word for word in _WHAT if what and word.startswith(what)), what or "")
    if chosen and chosen not in _WHAT:
        raise CommandError("bad-argument", f"no {chosen!r}: {', '.join(_WHAT)}")
    if (chosen == "job") != (name is not None):
        raise CommandError("bad-argument", "a name follows 'job', and nothing else")
    if context.ina is not None:
        return _shown(context.ina, chosen, name)
    if name is not None:
        raise CommandError("not-found", f"no job {name}")
    return {
        "format": "fared-ina/1",
        "enabled": False,
        "what": chosen,
        "name": "",
        "process": None,
        "routers": [],
        "jobs": [],
    }


async def _shown(source: AggregationSource, what: str, name: str | None) -> InaJobs:
    return {**await source.show(name), "what": what, "name": name or ""}
