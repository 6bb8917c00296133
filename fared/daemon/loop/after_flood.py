"""After a flood of packets or routes the daemon returns the memory that it needed for them.

Packets that wait leave the heap in pieces, and caches hold values that nobody needs any more: ids
of strangers, layouts and attributes of forged links. All caches are bounded; but what fills them
in a flood would stay in memory for the life of the process. Pages of which a part is in use stay:
what the database stored during a flood is scattered over them.

A hundred thousand LSAs fit into few packets, at times into fewer than are a flood: so the routes
written count too. Streams have no packets: what they bring counts by its length.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Iterable
from typing import Final

from fared.router.events import Converged, Output

LOOK_INTERVAL = 2.0
"""Seconds between two looks at the number of packets."""
FLOOD = 1000
"""Packets in an interval that are a flood: other daemons send some a second for each link."""
MANY_ROUTES: Final = 10_000
"""Routes, groups and next hops written in an interval that are a flood: a failure may change
thousands."""
_LONG: Final = 5
"""Looks at a flood after which tuples kept for new ones are freed: no reaction to a failure takes
ten seconds."""
_CALM: Final = 2
"""Looks without a flood after which one has ended: one that is processed slowly is not over."""
_CACHED = type(functools.lru_cache(len))


class AfterFlood:
    """Runs ``actions`` once whenever a flood has ended.

    ``taken`` counts all packets, ``written`` what was written to the kernel. ``meanwhile`` is run
    every ``_LONG`` looks while one goes on.
    """

    def __init__(
        self,
        taken: Callable[[], int],
        written: Callable[[], int],
        actions: Iterable[Callable[[], object]],
        meanwhile: Callable[[], object],
    ) -> None:
        self._taken = taken
        self._written = written
        self._actions = tuple(actions)
        self._meanwhile = meanwhile
        self._seen = 0
        """Looks at the present flood."""
        self._last = taken()
        self._last_written = written()
        self._awaited = 0
        """Looks until the actions are run; 0: there was no flood."""

    def look(self) -> None:
        """Look whether there is a flood, or was one; called every ``LOOK_INTERVAL`` seconds."""
        taken, written = self._taken(), self._written()
        flood = taken - self._last >= FLOOD or written - self._last_written >= MANY_ROUTES
        self._last, self._last_written = taken, written
        if flood:
            self._awaited = _CALM
            self._seen += 1
            if self._seen % _LONG == 0:
                self._meanwhile()
        elif self._awaited:
            self._awaited -= 1
            if not self._awaited:
                self._seen = 0
                for action in self._actions:
                    action()


class AfterManyRoutes:
    """Calls ``release`` when a change of many routes has reached the kernel.

    Such a change is planned and written in one piece, which takes 300 bytes a route for a moment.
    """

    def __init__(self, release: Callable[[], object]) -> None:
        self._release = release

    def observe(self, output: Output) -> None:
        """Look at a report; what it reports of is in memory until this turn of the loop ends."""
        if type(output) is Converged and output.record.operations >= MANY_ROUTES:
            asyncio.get_running_loop().call_soon(self._release)


def clear_caches() -> None:
    """Empty the caches of all functions of fared (``functools.lru_cache``) in loaded modules."""
    for name, module in list(sys.modules.items()):
        if name.startswith("fared."):
            for value in list(vars(module).values()):
                if isinstance(value, _CACHED):
                    value.cache_clear()
