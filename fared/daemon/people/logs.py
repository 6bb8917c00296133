"""Logging: structlog to stderr, JSON under systemd, colours on a terminal, and the last lines.

Every line is an event name that does not change between releases, with fields. The last lines are
kept in memory, so that ``fared-cli show log`` works on a switch without a journal, and passed to
those who follow the events (``fared-cli monitor``), who may want more than is written.

Lines below a warning wait for ``_WAIT``, with the time of their event: a lost link concerns all
routers of a fabric within milliseconds, and to write a line takes a tenth of the reaction of each.
A warning is written at once, after the lines that wait, and so are these if somebody reads the last
lines.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from structlog import dev, processors
from structlog._native import make_filtering_bound_logger
from structlog._output import WriteLogger
from structlog.exceptions import DropEvent

from fared.daemon.loop.errors import end_out_of_memory
from fared.management.api.feed import LEVELS, EventFeed
from fared.management.documents.log_ring import LogRing
from fared.runtime import journal
from fared.runtime.log_output import LogOutput
from fared.runtime.startup import without

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger  # it wraps loggers of ``logging``

RING_SIZE: Final = 1000
_WAIT: Final = 0.05
"""Seconds that a line waits at most: longer than the reaction of a fabric to a lost link."""

_JSON: Final = (str, int, float, list, tuple, dict)
_Event = MutableMapping[str, Any]


class _Line(NamedTuple):
    """A line that waits: the logger that writes it, its level and fields, the time of its event."""

    logger: Any
    level: str
    event: _Event
    time: float


class LibraryLog(logging.StreamHandler[TextIO]):
    """What libraries log themselves.

    asyncio logs a MemoryError there if it has no memory to report it, and Python prints that
    the line could not be written.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, with its priority if the journal reads it."""
        text = super().format(record)
        level = record.levelname.lower()
        return journal.prefixed(text, level) if journal.reads(self.stream) else text

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; end the process if it tells of a MemoryError."""
        if record.exc_info and isinstance(record.exc_info[1], MemoryError):
            end_out_of_memory()
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - name of logging
        """Report that a record was not written."""
        if isinstance(sys.exception(), MemoryError):
            end_out_of_memory()
        super().handleError(record)


class DaemonLog:
    """The logger, its last lines, level and style; a reload may change level and style.

    Other objects keep loggers and their methods, so a common processor checks the level, not the
    class of the logger.
    """

    def __init__(self, level: str, style: str) -> None:
        self.ring = LogRing(RING_SIZE, self.write)
        self.feed = EventFeed(self.ring)
        self._lines: deque[_Line] = deque()
        self._thread = threading.get_ident()
        self._due = self._ended = False
        self._journal = journal.reads(sys.stderr)
        self.output = LogOutput(sys.stderr, self._lost)
        self.configure(level, style)
        logging.basicConfig(level=logging.WARNING, handlers=[LibraryLog(self.output.file)])
        # ``structlog.configure`` and its proxy would load what shows lines in colours, with rich.
        filtering: Any = make_filtering_bound_logger(LEVELS["debug"])
        self.logger: BoundLogger = filtering(WriteLogger(self.output.file), [self._put_off], {})

    def configure(self, level: str, style: str) -> None:
        """Set the lowest level to write; ``style`` is auto, json or text."""
        self.write()
        self._least = LEVELS[level]
        as_json = style == "json" or (style == "auto" and "JOURNAL_STREAM" in os.environ)
        self._renderer: Any = processors.JSONRenderer() if as_json else self._coloured()

    def set_level(self, level: str) -> None:
        """Change the level until it is configured again."""
        self.write()
        self._least = LEVELS[level]

    def _coloured(self) -> dev.ConsoleRenderer:
        colours = self.output.isatty() and "NO_COLOR" not in os.environ
        with without("rich"):
            return dev.ConsoleRenderer(colors=colours, pad_event_to=24)

    def wants(self, level: str) -> bool:
        """Whether lines of a level are written, or somebody follows them."""
        return LEVELS[level] >= self._least or self.feed.wants(LEVELS[level])

    def end(self) -> None:
        """Write what waits, and all that follows at once: the process ends."""
        self._ended = True
        self.write()

    def write(self) -> None:
        """Write the lines that wait."""
        self._due = False
        for _ in range(len(self._lines)):
            try:
                line = self._lines.popleft()
            except IndexError:  # a thread that writes files has logged a warning meanwhile
                break
            if (text := self._text(line)) is not None:
                line.logger.msg(text)

    def _put_off(self, logger: object, method: str, event: _Event) -> str:
        """Let a line wait until the loop has time for it; or return its text, to be written now.

        A line that nobody wants is dropped.
        """
        level = LEVELS.get(method, LEVELS["error"])
        if level < self._least and not self.feed.wants(level):
            raise DropEvent
        line = _Line(logger, method, event, time.time())
        waits = level < LEVELS["warning"] and "exc_info" not in event
        if waits and (loop := self._loop()) is not None:
            self._lines.append(line)
            if not self._due:
                self._due = True
                loop.call_later(_WAIT, self.write)
            raise DropEvent
        self.write()
        text = self._text(line)
        if text is None:
            raise DropEvent
        return text

    def _loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that writes later; None: no loop of this thread runs, or the process ends."""
        if self._ended or threading.get_ident() != self._thread:
            return None
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            return None

    def _text(self, line: _Line) -> str | None:
        """Remember a line, and return what is written of it; None: it was for followers only."""
        logger, level, event, at = line
        event = processors.add_log_level(logger, level, event)
        # before the record, which must neither hold frames nor be other than JSON
        event = processors.format_exc_info(logger, level, event)
        fields = {k: _plain(value) for k, value in event.items() if k not in ("event", "level")}
        record = {"time": at, "level": level, "event": event.get("event"), "fields": fields}
        self.feed.offer(record)
        if LEVELS.get(level, LEVELS["error"]) < self._least:
            return None
        self.ring.append(record)
        return self._rendered(level, event, at)

    def _rendered(self, level: str, event: _Event, at: float) -> str:
        event["timestamp"] = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
        text: str = self._renderer(None, level, event)
        return journal.prefixed(text, level) if self._journal else text

    def _lost(self, count: int) -> str:
        """What is written in place of lines that stderr's reader was too slow for."""
        event, level = "log-lines-lost", "warning"
        fields = {"count": count}
        return self._rendered(level, {"event": event, "level": level, **fields}, time.time()) + "\n"


def _plain(value: object) -> object:
    """Return what JSON has of a field: a value, or the text that the log shows."""
    return value if value is None or isinstance(value, _JSON) else str(value)
