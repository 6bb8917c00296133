"""Reads SONiC's databases again and again, and tells what has changed.

Counters are read once a second. Facts of links are read when a notification says that they may have
changed, and else once a second; names of ports and LAGs seldom. Reading takes at most a third of
the time, however many ports there are. If Redis does not answer, what was known stays, and it is
tried again with growing pauses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from fared.core.link_facts import PlatformLink
from fared.sonic.connection import PORTION, RedisConnection
from fared.sonic.databases import SonicDatabase
from fared.sonic.facts import HashFields, read_facts, wanted_rows
from fared.sonic.inventory import PATTERNS, Inventory, InventoryReader
from fared.sonic.traffic import FIELDS, PortTraffic
from fared.sonic.values import Values

INTERVAL = 1.0
SELDOM = 5.0
"""Seconds between two readings of names, and of facts whose changes are notified."""
_SHARE = 2.0
"""So many times as long as a reading took nothing is read."""
_GATHER = 0.02
"""Seconds in which notifications collect."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0
_WATCHED: Mapping[str, tuple[str, ...]] = {
    "CONFIG_DB": PATTERNS,
    "STATE_DB": ("PORT_TABLE*",),
    "APPL_DB": ("PORT_TABLE*", "LAG_*"),
}


class SonicReader:
    """Keeps ``facts`` and ``traffic`` current while ``run`` runs.

    ``clock`` is that of the loop. ``changed`` is called with other facts, ``heard`` with an error,
    and with None after each reading. ``ready`` is set from the first facts on.
    """

    def __init__(
        self,
        databases: Mapping[str, SonicDatabase],
        changed: Callable[[], None],
        heard: Callable[[str | None], None],
        clock: Callable[[], float],
        connect: Callable[[Mapping[str, SonicDatabase]], RedisConnection] = RedisConnection,
    ) -> None:
        self._databases, self._connect, self._clock = databases, connect, clock
        self._changed, self._heard = changed, heard
        self.values = Values()
        self.inventory = Inventory()
        self.facts: dict[str, PlatformLink] = {}
        self.traffic = PortTraffic()
        self.ready = asyncio.Event()
        self.notified = False
        """Whether changes of all databases are notified."""
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._lost: str | None = None
        """Why changes are no longer notified."""
        self._told = False
        """Whether a change was notified that has not been read."""
        self._names_due = self._facts_due = self._counters_due = 0.0

    def stop(self) -> None:
        """Let ``run`` end, which the caller cancels: a library may swallow that."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Read until it is cancelled."""
        failures = 0
        while not self._stopping.is_set():
            connection = self._connect(self._databases)
            self._lost = None
            try:
                await self._read_all(connection)
                failures = 0
                self._heard(None)
                await self._listen(connection)
                self.ready.set()
                await self._keep(connection)
            except Exception as error:  # noqa: BLE001 - whatever a broken server makes redis-py raise
                if not self._stopping.is_set():
                    self._heard(str(error) or type(error).__name__)
            finally:
                await connection.close()
            if self._stopping.is_set():
                return
            await asyncio.sleep(min(_FIRST_PAUSE * 2.0 ** min(failures, 8), _LONGEST_PAUSE))
            failures += 1

    async def _read_all(self, connection: RedisConnection) -> None:
        self._names_due = self._facts_due = self._counters_due = 0.0
        await self._read_due(connection)

    async def _keep(self, connection: RedisConnection) -> None:
        """Read whatever is due, and what is notified. Raises FAILURES."""
        while not self._stopping.is_set():
            due = min(self._names_due, self._facts_due, self._counters_due)
            alarm = asyncio.get_running_loop().call_at(due, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                alarm.cancel()
            if self._told:
                await asyncio.sleep(_GATHER)
            self._wake.clear()
            if self._lost is not None:
                raise ConnectionError(self._lost)
            await self._read_due(connection)
            self._heard(None)

    async def _read_due(self, connection: RedisConnection) -> None:
        if self._told:
            self._told = False
            self._facts_due = self._clock()
        now = self._clock()
        if now >= self._names_due:
            await self._read_names(connection)
            self._names_due = self._next(now, SELDOM)
        if now >= self._facts_due:
            started = self._clock()
            await self._read_facts(connection)
            self._facts_due = self._next(started, SELDOM if self.notified else INTERVAL)
        if now >= self._counters_due:
            started = self._clock()
            await self._read_counters(connection)
            self._counters_due = self._next(started, INTERVAL)

    def _next(self, started: float, interval: float) -> float:
        now = self._clock()
        return max(started + interval, now + _SHARE * (now - started))

    # -- what is read -----------------------------------------------------------------------

    async def _read_names(self, connection: RedisConnection) -> None:
        found = InventoryReader(self._databases["CONFIG_DB"].separator, self.values)
        async for keys in connection.keys("CONFIG_DB", PATTERNS):
            found.take(keys)
        self.inventory = found.inventory()

    async def _read_facts(self, connection: RedisConnection) -> None:
        facts: dict[str, PlatformLink] = {}
        for part in self.inventory.portions(PORTION):
            rows = await connection.rows(wanted_rows(part, self._databases))
            read_facts(part, rows, self.values, facts)
        if facts != self.facts:
            self.facts = facts
            self._changed()

    async def _read_counters(self, connection: RedisConnection) -> None:
        map_of_names = await connection.hash("COUNTERS_DB", "COUNTERS_PORT_NAME_MAP")
        key, counted = self._databases["COUNTERS_DB"].key, set[str]()
        inventory = self.inventory
        for part in inventory.portions(PORTION):
            oids = {
                port: oid
                for port in part.ports
                if (oid := self.values.name(map_of_names.get(port.encode())))
            }
            wanted = [HashFields("COUNTERS_DB", key("COUNTERS", o), FIELDS) for o in oids.values()]
            rows = dict(zip(oids, await connection.rows(wanted), strict=True))
            self.traffic.take(rows, self._clock(), self.values)
            counted |= oids.keys()
        self.traffic.settle(counted, inventory.lags)

    # -- notifications ----------------------------------------------------------------------

    async def _listen(self, connection: RedisConnection) -> None:
        """Listen to all databases that notify; without all of them facts are polled too."""
        self.notified = all([await connection.notifies(name) for name in _WATCHED])
        if not self.notified:
            return
        for name, patterns in _WATCHED.items():
            await connection.listen(name, patterns, partial(self._hear_of, name), self._hear_end)
            self._hear_of(name)

    def _hear_of(self, name: str) -> None:
        """Something has changed in a database, or may have before it was listened to."""
        if name == "CONFIG_DB":
            self._names_due = 0.0
        self._told = True
        self._wake.set()

    def _hear_end(self, error: str) -> None:
        self._lost = error
        self._wake.set()
