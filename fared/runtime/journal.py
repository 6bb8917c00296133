"""The priority of a log line for the journal (sd-daemon(3), ``SyslogLevelPrefix=``).

Without it the journal takes all lines for informational, and ``journalctl -p warning`` has none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TextIO

_PRIORITIES: Final[Mapping[str, int]] = MappingProxyType(
    {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2, "exception": 3}
)
"""Of syslog (RFC 5424 §6.2.1), by level."""


def reads(stream: TextIO) -> bool:
    """Whether the journal reads a stream: ``JOURNAL_STREAM`` names its device and inode."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def prefixed(text: str, level: str) -> str:
    """Return a text with the priority of a level before each of its lines."""
    mark = f"<{_PRIORITIES.get(level, 3)}>"
    return mark + text.replace("\n", f"\n{mark}")


def prefix_rendered(_: object, level: str, text: Any) -> str:  # noqa: ANN401 - structlog's type
    """Do the same as the last processor of structlog."""
    return prefixed(text, level)


def tell(text: str, level: str) -> None:
    """Write a text to stderr, with the priority of its level if the journal reads it.

    For what programs say without a logger: before they have one, or as their last words.
    """
    text = text.rstrip("\n")
    sys.stderr.write((prefixed(text, level) if reads(sys.stderr) else text) + "\n")
