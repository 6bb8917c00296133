"""Where a replay stops: after so many calls, or at an event.

The name of an event is that of a log line (docs/events.md), or the kind of an input or output of
the router: ``packet-received``, ``link-changed``, ``computed``, ``apply-fib``. ``NAME:3`` is the
third one, a number alone counts calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fared.protocols.igp import events as igp
from fared.router import events

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def kind_of(value: object) -> str:
    """Return the kind of an input or output: ``link-changed``."""
    return _BOUNDARY.sub("-", type(value).__name__).lower()


def names_of(event: events.Input | None, outputs: Iterable[events.Output]) -> list[str]:
    """Return the names of what one call brought and caused."""
    found: list[str] = []
    if event is not None:
        found.append(kind_of(event.event if isinstance(event, events.To) else event))
    for output in outputs:
        inner = output.event if isinstance(output, events.From) else output
        match inner:
            case igp.LogRecord(_, name):
                found.append(name)
            case igp.AdjacencyChanged():
                found.append("neighbor-changed")
            case _:
                found.append(kind_of(inner))
    return found


class Until:
    """Counts to the event at which a replay stops; ``text`` empty: it plays all."""

    def __init__(self, text: str) -> None:
        """Raises ValueError."""
        name, _, number = text.partition(":")
        self._calls = int(name) if name.isdecimal() else 0
        self._name = "" if self._calls else name
        self._left = int(number) if number else 1
        if self._left < 1 or (text and not name):
            raise ValueError(f"{text!r} is no event: NAME, NAME:3, or a number of calls")

    def reached(self, call: int, names: Sequence[str]) -> bool:
        """Whether the replay stops after this call."""
        if self._calls:
            return call >= self._calls
        self._left -= names.count(self._name) if self._name else 0
        return self._left <= 0
