"""Logging: structlog to stderr, JSON under systemd, colours on a terminal, and a ring to ask.

Every line is an event name that does not change between releases, with fields. The last lines
are kept in memory so that ``fared-cli show log`` works on a switch without a journal.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import deque
from collections.abc import MutableMapping
from typing import Any

# structlog loads rich where it finds it, for tracebacks nobody reads in a journal: 40 ms of
# start-up and 3 MB that a daemon has better uses for. Looking away is all it takes.
_LOOK_AWAY = "rich" not in sys.modules
if _LOOK_AWAY:
    sys.modules["rich"] = None  # type: ignore[assignment]
import structlog  # noqa: E402

if _LOOK_AWAY:
    del sys.modules["rich"]

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
RING_SIZE = 1000

Ring = deque[dict[str, Any]]


def configure(level: str, style: str) -> tuple[structlog.stdlib.BoundLogger, Ring]:
    """Set structlog up; ``style`` is auto, json or text. Returns the logger and its ring."""
    ring: Ring = deque(maxlen=RING_SIZE)

    def remember(
        _logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        fields = {key: value for key, value in event.items() if key not in ("event", "level")}
        ring.append(
            {"time": time.time(), "level": method, "event": event.get("event"), "fields": fields}
        )
        return event

    as_json = style == "json" or (style == "auto" and "JOURNAL_STREAM" in os.environ)
    colours = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=24)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            remember,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    return structlog.get_logger("fared"), ring
