"""The daemon's events for those who follow them: filters, and queues that are bounded.

The log offers each record to ``EventFeed``. While nobody follows, that is one look at an empty
tuple. A follower has a queue of ``QUEUE`` records; when it is full, the oldest record makes room
and is counted, so a reader that is slow or stands still costs the daemon this queue and no time.
"""

from __future__ import annotations

import asyncio
import fnmatch
import re
import threading
import time
from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any, Final

import msgspec

from fared.management.api.respond import Json
from fared.management.api.seats import Seat, Seats
from fared.management.documents.errors import CommandError
from fared.management.documents.log_ring import LogRing

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
QUEUE: Final = 1000
"""Records that wait for one reader."""
MAX_FOLLOWERS: Final = 8
_MAX_PATTERNS: Final = 64
_MAX_PATTERN: Final = 200
"""Characters of one pattern."""


class EventFilter(msgspec.Struct, frozen=True):
    """Which events a reader wants; None: whatever their name, or interface, is."""

    least: int = LEVELS["info"]
    names: re.Pattern[str] | None = None
    interface: re.Pattern[str] | None = None

    def fits(self, record: Mapping[str, Any]) -> bool:
        """Whether a record of the log is wanted."""
        if LEVELS.get(record["level"], LEVELS["error"]) < self.least:
            return False
        if self.names is not None and self.names.match(str(record["event"])) is None:
            return False
        if self.interface is None:
            return True
        name = record["fields"].get("interface")
        return isinstance(name, str) and self.interface.match(name) is not None


class Follower:
    """The queue of one reader."""

    def __init__(self, wanted: EventFilter, seat: Seat) -> None:
        self.wanted = wanted
        self.seat = seat
        self.lost = 0
        """Records that were dropped since the last ``take``."""
        self._records: deque[Json] = deque()
        self._arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def put(self, record: Json) -> None:
        """Queue a record, if it is wanted; also from another thread, as files are written."""
        if not self.wanted.fits(record):
            return
        if len(self._records) >= QUEUE:
            self._records.popleft()
            self.lost += 1
        self._records.append(record)
        if self._thread == threading.get_ident():
            self._arrived.set()
        else:
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def arrived(self) -> None:
        """Wait until there is something to take."""
        await self._arrived.wait()

    def take(self, most: int) -> list[Json]:
        """Return up to ``most`` of the oldest records, after what tells of lost ones."""
        found: list[Json] = []
        if self.lost:
            event = "events-lost"
            fields = {"count": self.lost}
            at = self._records[0]["time"]
            found.append({"time": at, "level": "warning", "event": event, "fields": fields})
            self.lost = 0
        while self._records and len(found) < most:
            found.append(self._records.popleft())
        if not self._records:
            self._arrived.clear()
        return found


class EventFeed:
    """Passes the records of the log to all who follow."""

    def __init__(self, ring: LogRing) -> None:
        self._ring = ring
        self.seats = Seats(MAX_FOLLOWERS)
        self._followers: tuple[Follower, ...] = ()

    def wants(self, level: int) -> bool:
        """Whether somebody follows events of this level."""
        followers = self._followers
        return bool(followers) and any(one.wanted.least <= level for one in followers)

    def offer(self, record: Json) -> None:
        """Pass on a record of the log."""
        for follower in self._followers:
            follower.put(record)

    def follow(self, args: Json, client: Hashable = None) -> Follower:
        """Begin to follow as the arguments of a request demand, for a client (``Seats``).

        Raises CommandError.
        """
        wanted, since = _wanted(args), _number(args, "since")
        follower = Follower(wanted, self.seats.take(client))
        if since is not None:
            begin = time.time() - since
            for record in self._ring:
                if record["time"] >= begin:
                    follower.put(record)
        self._followers += (follower,)
        return follower

    def leave(self, follower: Follower) -> None:
        """Follow no longer."""
        self.seats.free(follower.seat)
        self._followers = tuple(other for other in self._followers if other is not follower)


def _wanted(args: Json) -> EventFilter:
    """Read the filters of a request. Raises CommandError."""
    unknown = set(args) - {"events", "level", "interface", "since"}
    if unknown:
        raise CommandError("bad-argument", f"no argument {min(unknown)!r}")
    level = args.get("level") or "info"
    if not isinstance(level, str) or level not in LEVELS:
        raise CommandError("bad-argument", f"level must be one of {', '.join(LEVELS)}")
    interface = args.get("interface")
    return EventFilter(
        LEVELS[level],
        _globs("events", args.get("events") or []),
        None if interface is None else _globs("interface", [interface]),
    )


def _globs(name: str, patterns: object) -> re.Pattern[str] | None:
    """Compile shell patterns, one of which must match; none: all match."""
    if not isinstance(patterns, list) or len(patterns) > _MAX_PATTERNS:
        raise CommandError("bad-argument", f"{name} must be up to {_MAX_PATTERNS} patterns")
    texts = [text for text in patterns if isinstance(text, str) and len(text) <= _MAX_PATTERN]
    if len(texts) != len(patterns):
        raise CommandError("bad-argument", f"{name} must be text of up to {_MAX_PATTERN}")
    return re.compile("|".join(map(fnmatch.translate, texts))) if texts else None


def _number(args: Json, name: str) -> float | None:
    value = args.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise CommandError("bad-argument", f"{name} must be seconds")
    return float(value)
