"""FEC counters of watched links, read beside the event loop: a driver may ask its firmware."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from fared.kernel.fec_counters import FecCounters


class FecSource(Protocol):
    """What ``FecCounters`` does, for tests also from elsewhere."""

    def may_have(self, ifindex: int) -> bool:
        """Whether an interface has FEC counters, as far as is known."""

    def forget(self, ifindex: int) -> None:
        """Ask an interface again."""

    def read(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Return the counters by interface. Raises OSError."""


class FecReader:
    """Uncorrectable blocks by link, since the first reading of the link.

    ``look`` begins a reading, unless one is in progress or no link has counters; the next ``look``
    finds its result. ``failed`` is called with an error.
    """

    def __init__(self, failed: Callable[[OSError], None], source: FecSource | None = None) -> None:
        self._failed = failed
        self._source: FecSource = FecCounters() if source is None else source
        self._last: dict[str, int] = {}
        self._counted: dict[str, int] = {}
        self._reading: asyncio.Task[None] | None = None

    def errors(self, name: str) -> int:
        """Blocks of a link that could not be corrected; 0 where there are no counters."""
        return self._counted.get(name, 0)

    def forget(self, ifindex: int) -> None:
        """Ask an interface again, since it came up."""
        self._source.forget(ifindex)

    def look(self, wanted: Mapping[str, int]) -> None:
        """Begin a reading of these links: ifindex by name."""
        asked = {name: index for name, index in wanted.items() if self._source.may_have(index)}
        for name in self._last.keys() - asked.keys():
            del self._last[name]
        if asked and (self._reading is None or self._reading.done()):
            self._reading = asyncio.get_running_loop().create_task(self._read(asked))

    async def _read(self, asked: Mapping[str, int]) -> None:
        try:
            found = await asyncio.to_thread(self._source.read, asked)
        except OSError as error:
            self._failed(error)
            return
        for name, count in found.items():
            # less than before: the driver has begun anew
            more = max(0, count - self._last.get(name, count))
            self._counted[name] = self._counted.get(name, 0) + more
        self._last = found
