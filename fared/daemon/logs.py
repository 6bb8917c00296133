"""Logging: structlog to stderr, JSON under systemd, colours on a terminal, and the last lines.

Every line is an event name that does not change between releases, with fields. The last lines are
kept in memory, so that ``fared-cli show log`` works on a switch without a journal.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import deque
from collections.abc import MutableMapping
from typing import Any, Final

from fared.startup import without

with without("rich"):
    import structlog

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
RING_SIZE: Final = 1000

Ring = deque[dict[str, Any]]
_Event = MutableMapping[str, Any]


class DaemonLog:
    """The logger, its last lines, level and style; a reload may change level and style.

    Other objects keep loggers and their methods, so a common processor checks the level, not the
    class of the logger.
    """

    def __init__(self, level: str, style: str) -> None:
        self.ring: Ring = deque(maxlen=RING_SIZE)
        self.configure(level, style)
        structlog.configure(
            processors=[
                self._drop_unwanted,
                structlog.processors.add_log_level,
                self._remember,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
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

    def _drop_unwanted(self, _logger: object, method: str, event: _Event) -> _Event:
        if LEVELS.get(method, LEVELS["error"]) < self._least:
            raise structlog.DropEvent
        return event

    def _remember(self, _logger: object, method: str, event: _Event) -> _Event:
        fields = {key: value for key, value in event.items() if key not in ("event", "level")}
        self.ring.append(
            {"time": time.time(), "level": method, "event": event.get("event"), "fields": fields}
        )
        return event

    def _render(self, logger: object, method: str, event: _Event) -> str:
        text: str = self._renderer(logger, method, event)
        return text
