"""``show bfd``: the sessions, as the process that runs them last reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.api.views.context import ViewContext

if TYPE_CHECKING:
    from fared.api.schema.bfd import Bfd


def bfd(context: ViewContext) -> Bfd:
    """``show bfd``."""
    found = context.bfd()
    if found is not None:
        return found
    return {"format": "fared-bfd/1", "process": None, "discarded": {}, "sessions": []}
