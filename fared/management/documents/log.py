"""``show log``: the last log lines."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fared.management.documents.cells import Styled, dim, plain
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import Facts, UnixTime
from fared.management.documents.human import LOG_LEVELS

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.paper import Paper

_LEVEL_STYLES = MappingProxyType({"error": "red", "warning": "yellow", "debug": "dim"})


class LogLine(Facts):
    """One log record."""

    time: UnixTime
    level: str
    event: str
    fields: dict[str, Any]

    def show(self, paper: Paper) -> None:
        """Print it in local time."""
        when = time.strftime("%b %d %H:%M:%S", time.localtime(self.time))
        level = Styled(f"{self.level:<7} ", _LEVEL_STYLES.get(self.level, ""))
        fields = ((dim(f" {key}="), plain(value)) for key, value in self.fields.items())
        known = (part for pair in fields for part in pair)
        paper.long((dim(f"{when} "), level, Styled(self.event, "bold"), *known))


class LogDocument(Answer, tag="fared-log/1"):
    """``show log``: the last records; argument ``lines`` (a number) limits them.

    Argument ``level`` (debug, info, warning, error): only records of at least that level.
    """

    lines: list[LogLine]

    def show(self, paper: Paper) -> None:
        """Print a line for each record."""
        for line in self.lines:
            line.show(paper)


def log(context: ViewContext, lines: int | None = None, level: str | None = None) -> LogDocument:
    """``show log``. Raises CommandError."""
    if level is not None and level not in LOG_LEVELS:
        known = ", ".join(LOG_LEVELS)
        raise CommandError("bad-argument", f"{level!r} is not a level: {known}")
    least = LOG_LEVELS if level is None else LOG_LEVELS[LOG_LEVELS.index(level) :]
    records = [record for record in context.log if record["level"] in least or level is None]
    chosen = records if lines is None else records[-lines:] if lines > 0 else []
    return LogDocument(
        lines=[
            LogLine(
                time=record["time"],
                level=record["level"],
                event=record["event"],
                fields=record["fields"],
            )
            for record in chosen
        ]
    )


DOCUMENT = Document(
    LogDocument,
    log,
    "The last log lines.",
    (
        Argument("lines", "number", help="Number of lines."),
        Argument("level", choices=LOG_LEVELS, help="Only lines of at least this level."),
    ),
)
