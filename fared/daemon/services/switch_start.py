"""The start of FPM on a switch with SONiC: the rows of a former process, and warm restart.

Before the session connects, the rows of a former process are read from Redis. Once the first routes
are in the kernel, those that nobody wants are deleted, and once the peer has been sent all routes
SONiC is told that initial information has ended (EOIU), which ends a warm restart. The same is told
of each connection. FPM waits a second for it at most: if Redis does not answer it runs without, and
the rest follows when it does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from fared.core.ids import Prefix, parse_prefix
from fared.daemon.services.fpm import FpmService
from fared.sonic.connection import RedisConnection
from fared.sonic.databases import SonicDatabase
from fared.sonic.protocols import protocol_words
from fared.sonic.warm_restart import WarmRestart

_PAUSE, _LONGEST_PAUSE = 0.25, 10.0
_LOOK_EVERY: Final = 0.1
"""Seconds between two looks whether all is sent, which takes a moment at the start."""
_STATE_EVERY: Final = 1.0
_PORTION: Final = 200
"""Keys that are parsed in one turn of the loop."""
T = TypeVar("T")


class SwitchStart:
    """Runs beside one ``FpmService`` from ``start`` to ``stop``."""

    def __init__(
        self,
        fpm: FpmService,
        databases: Mapping[str, SonicDatabase],
        protocol: int,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        """``protocol`` is that of our routes."""
        self._fpm, self._databases, self._log = fpm, databases, log
        self._protocol = protocol
        self.prepared = asyncio.Event()
        """Set when rows of a former process are known."""
        self._known = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = self._told = False

    def start(self) -> None:
        """Begin to read."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """End it; what SONiC was told stays."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()

    def routes_known(self) -> None:
        """The first routes are in the kernel."""
        self._known.set()

    async def _run(self) -> None:
        await self._done(self._begin)
        rows = await self._inherit()
        self._log.info("fpm-rows-inherited", rows=rows)
        self.prepared.set()
        await self._known.wait()
        await self._inherit()  # the peer may have read the last bytes of the former process later
        self._fpm.session.bury()
        self._fpm.pump()
        while True:
            await self._all_sent()
            await self._done(WarmRestart.reached)
            await self._follow()
            await self._done(WarmRestart.begin)

    async def _all_sent(self) -> None:
        while True:
            await self._fpm.replayed.wait()
            if self._fpm.sent_all:
                return
            await asyncio.sleep(_LOOK_EVERY)

    async def _begin(self, warm: WarmRestart) -> None:
        await warm.begin()
        await self._look(warm)

    async def _inherit(self) -> int:
        """Pass on the rows that are there now; return how many."""
        rows = await _prefixes(await self._done(self._rows))
        self._fpm.session.inherit(rows)
        return len(rows)

    async def _rows(self, warm: WarmRestart) -> set[str]:
        return await warm.routes_of(protocol_words(self._protocol))

    async def _look(self, warm: WarmRestart) -> bool:
        """Show the state of a warm restart; return whether one is going on."""
        state = await warm.state()
        self._fpm.warm_restart = state.text
        return state.enabled and state.state != "reconciled"

    async def _follow(self) -> None:
        """Follow a warm restart until the connection is lost."""
        lost = self._fpm.lost
        while self._fpm.replayed.is_set() and await self._done(self._look):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(lost.wait(), _STATE_EVERY)
                return
        if self._fpm.replayed.is_set():
            await lost.wait()

    async def _done(self, do: Callable[[WarmRestart], Awaitable[T]]) -> T:
        """Do something in Redis, if need be again and again; say once that it fails."""
        pause = _PAUSE
        while not self._stopping:
            connection = RedisConnection(self._databases)
            try:
                return await do(WarmRestart(connection, self._databases))
            except Exception as error:  # noqa: BLE001 - whatever a broken server makes redis-py raise
                self._failed(str(error) or type(error).__name__)
            finally:
                await connection.close()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise asyncio.CancelledError  # a library has swallowed it

    def _failed(self, error: str) -> None:
        if not self._told and not self._stopping:
            self._told = True
            effect = "FPM runs without: rows of a former process and EOIU follow with Redis"
            self._log.warning("sonic-start-not-told", error=error, effect=effect)


async def _prefixes(keys: Iterable[str]) -> set[Prefix]:
    """Return the prefixes of keys; those in a VRF are not ours."""
    found: set[Prefix] = set()
    for number, key in enumerate(keys):
        if number % _PORTION == _PORTION - 1:
            await asyncio.sleep(0)
        try:
            found.add(parse_prefix(key))
        except ValueError:
            continue
    return found
