"""``show config``: what runs, or the file as the next start would read it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from fared.management.documents.cells import dim
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import UnixTime

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.paper import Paper


class ConfigDocument(Answer, tag="fared-config/1"):
    """``show config``: a configuration with all defaults, in the form of the file.

    ``saved``: whether it is the file's, which was written at ``loaded_at``, and not what runs.
    """

    file: str
    loaded_at: UnixTime
    config: Any
    """An object, or JSON text of one that is made once for all who ask."""
    saved: bool

    def show(self, paper: Paper) -> None:
        """Print it as the file has it."""
        import yaml  # noqa: PLC0415 - 10 ms, for this table only

        which = "saved" if self.saved else "running"
        paper.line(dim(f"# {self.file}, {which}, with all defaults"))
        text = yaml.safe_dump(self.config, sort_keys=False, default_flow_style=False)
        paper.long(text.rstrip())


def config(
    context: ViewContext, *, running: bool | None = None, saved: bool | None = None
) -> Awaitable[ConfigDocument]:
    """``show config``."""
    if running and saved:
        raise CommandError("bad-argument", "running and saved exclude each other")
    found: Awaitable[ConfigDocument] = context.shown_config(saved=bool(saved))
    return found


DOCUMENT = Document(
    ConfigDocument,
    config,
    "The running configuration with all defaults, or the saved one.",
    (
        Argument("running", "switch", help="What runs (the default)."),
        Argument("saved", "switch", help="The file, as the next start would read it."),
    ),
)
