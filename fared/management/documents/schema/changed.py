"""The document of the routes that one change changed."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import JsonDocument, UnixTime


class ChangedRoute(TypedDict):
    """A route; ``present`` False: it is gone."""

    prefix: str
    present: bool


class Changed(JsonDocument):
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
