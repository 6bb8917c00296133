"""``show config``: what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.context import ViewContext
from fared.management.documents.errors import CommandError

if TYPE_CHECKING:
    from fared.management.documents.schema import config as schema


def config(
    context: ViewContext, *, running: bool | None = None, saved: bool | None = None
) -> schema.ConfigDocument:
    """``show config``. The daemon answers ``saved`` itself: the file is not the view's."""
    if running and saved:
        raise CommandError("bad-argument", "running and saved exclude each other")
    return {
        "format": "fared-config/1",
        "file": context.runtime.config_file,
        "loaded_at": context.runtime.loaded_at,
        "config": context.config.document(),
        "saved": False,
    }
