"""Logging: structlog to stderr, JSON under systemd, colours on a terminal, and the last lines.

Every line is an event name that does not change between releases, with fields. The last lines are
kept in memory, so that ``fared-cli show log`` works on a switch without a journal, and passed to
those who follow the events (``fared-cli monitor``), who may want more than is written.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import MutableMapping
from typing import Any, Final

from fared.api.feed import LEVELS, EventFeed
from fared.api.log_ring import LogRing
from fared.startup import without

with without("rich"):
    import structlog

RING_SIZE: Final = 1000

_JSON: Final = (str, int, float, list, tuple, dict)
_Event = MutableMapping[str, Any]


class DaemonLog:
    """The logger, its last lines, level and style; a reload may change level and style.

    Other objects keep loggers and their methods, so a common processor checks the level, not the
    class of the logger.
    """

    def __init__(self, level: str, style: str) -> None:
        self.ring = LogRing(RING_SIZE)
        self.feed = EventFeed(self.ring)
        self.configure(level, style)
        structlog.configure(
            processors=[
                self._drop_unwanted,
                structlog.processors.add_log_level,
                # before the record, which must neither hold frames nor be other than JSON
                structlog.processors.format_exc_info,
                self._remember,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                self._render,
            ],
            wrapper_class=structlog.make_filtering_bound_logger(LEVELS["debug"]),
            logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
            cache_logger_on_first_use=True,
        )
        logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
        self.logger: structlog.stdlib.BoundLogger = structlog.get_logger("fared")

    def configure(self, level: str, style: str) -> None:
        """Set the lowest level to write; ``style`` is auto, json or text."""
        self._least = LEVELS[level]
        as_json = style == "json" or (style == "auto" and "JOURNAL_STREAM" in os.environ)
        colours = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        self._renderer: Any = (
            structlog.processors.JSONRenderer()
            if as_json
            else structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=24)
        )

    def wants(self, level: str) -> bool:
        """Whether lines of a level are written, or somebody follows them."""
        return LEVELS[level] >= self._least or self.feed.wants(LEVELS[level])

    def _drop_unwanted(self, _logger: object, method: str, event: _Event) -> _Event:
        level = LEVELS.get(method, LEVELS["error"])
        if level < self._least and not self.feed.wants(level):
            raise structlog.DropEvent
        return event

    def _remember(self, _logger: object, method: str, event: _Event) -> _Event:
        fields = {k: _plain(value) for k, value in event.items() if k not in ("event", "level")}
        record = {
            "time": time.time(),
            "level": method,
            "event": event.get("event"),
            "fields": fields,
        }
        self.feed.offer(record)
        if LEVELS.get(method, LEVELS["error"]) < self._least:
            raise structlog.DropEvent  # it was for followers only
        self.ring.append(record)
        return event

    def _render(self, logger: object, method: str, event: _Event) -> str:
        text: str = self._renderer(logger, method, event)
        return text


def _plain(value: object) -> object:
    """Return what JSON has of a field: a value, or the text that the log shows."""
    return value if value is None or isinstance(value, _JSON) else str(value)
