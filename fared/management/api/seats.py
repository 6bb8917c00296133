"""The places of those who follow a stream: few, and divided by client.

A client has no way to keep others out by taking all places. If there is none left, the client that
has most of them gives one up to a client with fewer; otherwise a place is taken over from one's
own, or, for a client without any, from whoever has had one for a while. Of these places the one
goes whose reader took its last event longest ago: one that reads nothing, if there is any.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final

from fared.management.documents.errors import CommandError

TENURE: Final = 10.0
"""Seconds for which a place is safe from those with as many: reconnecting takes no place away."""


class Seat:
    """A place of one reader; ``task`` serves it, and is cancelled if the place must be given up."""

    def __init__(self, client: Hashable, task: asyncio.Task[object] | None, now: float) -> None:
        self.client = client
        self.task = task
        self.since = now
        self.read_at = now


class Seats:
    """At most ``most`` places."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._taken: list[Seat] = []

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, client: Hashable) -> Seat:
        """Give the present task a place. Raises CommandError (busy): there is none for it."""
        if len(self._taken) >= self._most:
            leaving = self._leaving(client)
            if leaving is None:
                raise CommandError("busy", f"{self._most} readers follow already; try again")
            self._taken.remove(leaving)
            if leaving.task is not None:
                leaving.task.cancel()
        seat = Seat(client, asyncio.current_task(), self._clock())
        self._taken.append(seat)
        return seat

    def read(self, seat: Seat) -> None:
        """Note that the reader has taken what was sent."""
        seat.read_at = self._clock()

    def free(self, seat: Seat) -> None:
        """Give up a place."""
        if seat in self._taken:
            self._taken.remove(seat)

    def _leaving(self, client: Hashable) -> Seat | None:
        """Return whose place a client gets."""
        held = Counter(seat.client for seat in self._taken)
        largest, most = held.most_common(1)[0]
        if most > held[client] + 1:
            found = [seat for seat in self._taken if seat.client == largest]
        else:
            due = self._clock() - TENURE
            found = [seat for seat in self._taken if seat.since <= due]
            if client in held:
                found = [seat for seat in found if seat.client == client]
        return min(found, key=lambda seat: seat.read_at, default=None)
