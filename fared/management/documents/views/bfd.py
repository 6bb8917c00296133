"""``show bfd``: the sessions, as the process that runs them last reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.context import ViewContext

if TYPE_CHECKING:
    from fared.management.documents.schema.bfd import Bfd


def bfd(context: ViewContext, *, detail: bool = False) -> Bfd:
    """``show bfd``; ``detail`` is for the table, since the document always has all values."""
    found = context.bfd()
    if found is not None:
        return {**found, "detail": detail}
    return {
        "format": "fared-bfd/1",
        "process": None,
        "discarded": {},
        "sessions": [],
        "detail": detail,
    }
