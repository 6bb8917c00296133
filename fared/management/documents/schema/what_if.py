"""The answer to what would change if a link failed, or had less capacity."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import JsonDocument, Seconds
from fared.management.documents.schema.offline import RouteDifference


class RootDifference(TypedDict):
    """The routes of a router that change, as ``fared-cli spf --root ROOT --diff`` prints them.

    ``changed`` counts them; ``routes`` has the first 40.
    """

    root: str
    hostname: str | None
    changed: int
    routes: list[RouteDifference]
    unchanged: int


class WhatIfAnswer(JsonDocument):
    """``/api/v1/what-if``: computed for some routers from the present database.

    ``changes`` are the options of ``fared-cli spf`` that ask the same. ``omitted``: routers for
    which there was no time.
    """

    changes: list[str]
    roots: list[RootDifference]
    omitted: list[str]
    seconds: Seconds
