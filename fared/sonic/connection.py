"""Connections to SONiC's databases by redis-py: rows in portions, keys, and notifications.

The loop does other work between two portions. A value of another type than a hash is as one that is
missing. Closing waits for no answer of Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from fared.sonic.databases import SonicDatabase
from fared.sonic.facts import HashFields, Row

FAILURES = (RedisError, OSError, ValueError, EOFError)
"""What a server can cause that is gone, or is no Redis."""
PORTION = 64
"""Rows that are asked for at once: a few milliseconds of the loop."""
PATIENCE = 2.0
"""Seconds for an answer."""
_KEYS = 1000
_MOST_KEYS = 262_144
_PATTERN = "__keyspace@{number}__:{keys}"
_WRONG_TYPE = "WRONGTYPE"


class RedisConnection:
    """One connection to each database, one more to each that is listened to. All raise FAILURES."""

    def __init__(self, databases: Mapping[str, SonicDatabase]) -> None:
        self._databases = databases
        self._clients = {name: _client(database) for name, database in databases.items()}
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    async def close(self) -> None:
        """Close all connections: whoever waits for one of them has an error."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        for client in self._clients.values():
            with contextlib.suppress(*FAILURES):
                await client.connection_pool.disconnect(inuse_connections=True)

    async def keys(self, database: str, patterns: Iterable[str]) -> AsyncIterator[list[bytes]]:
        """Yield the keys with these patterns in portions, up to a bound; some come twice."""
        left = _MOST_KEYS
        for pattern in patterns:
            cursor = 0
            while left > 0:
                cursor, some = await self._client(database).scan(cursor, pattern, _KEYS)
                left -= len(some)
                yield [key for key in some if isinstance(key, bytes)]
                if not cursor:
                    break

    async def hash(self, database: str, key: str) -> dict[bytes, bytes]:
        """Return all fields of a hash, up to a bound."""
        found: dict[bytes, bytes] = {}
        cursor = 0
        while len(found) < _MOST_KEYS:
            try:
                cursor, some = await self._client(database).hscan(key, cursor, count=_KEYS)
            except ResponseError as error:
                if _other_type(error):
                    break
                raise
            found.update(some)
            if not cursor:
                break
        return found

    async def rows(self, wanted: Sequence[HashFields]) -> list[Row]:
        """Return the values of rows, in their order."""
        found: list[Row] = [()] * len(wanted)
        places: dict[str, list[int]] = {}
        for place, row in enumerate(wanted):
            places.setdefault(row.database, []).append(place)
        for database, mine in places.items():
            for start in range(0, len(mine), PORTION):
                portion = mine[start : start + PORTION]
                pipeline = self._client(database).pipeline(transaction=False)
                for place in portion:
                    pipeline.hmget(wanted[place].key, wanted[place].fields)
                answers = await pipeline.execute(raise_on_error=False)
                for place, answer in zip(portion, answers, strict=True):
                    found[place] = _row(answer, wanted[place])
        return found

    async def set_fields(self, database: str, key: str, fields: Mapping[str, str]) -> None:
        """Set fields of a hash."""
        await self._client(database).hset(key, mapping=dict(fields))

    async def delete(self, database: str, *keys: str) -> None:
        """Delete keys."""
        await self._client(database).delete(*keys)

    async def notifies(self, database: str) -> bool:
        """Whether changed hashes of the server are notified by their keys."""
        try:
            found = await self._client(database).config_get("notify-keyspace-events")
        except ResponseError:
            return False  # CONFIG may be renamed or forbidden
        flags = str(found.get("notify-keyspace-events", ""))
        return "K" in flags and ("A" in flags or "h" in flags)

    async def listen(
        self,
        database: str,
        patterns: Sequence[str],
        changed: Callable[[], None],
        lost: Callable[[str], None],
    ) -> None:
        """From now on call ``changed`` with each change of the keys, ``lost`` if that ends."""
        number = self._databases[database].number
        listening = self._client(database).pubsub()
        await listening.psubscribe(
            *(_PATTERN.format(number=number, keys=keys) for keys in patterns)
        )
        waiting = self._wait(listening, changed, lost)
        self._tasks.append(asyncio.get_running_loop().create_task(waiting))

    async def _wait(
        self, listening: PubSub, changed: Callable[[], None], lost: Callable[[str], None]
    ) -> None:
        try:
            while not self._closed:
                # The confirmation of each pattern counts, too: only what comes later is notified.
                if await listening.get_message(timeout=PATIENCE) is not None:
                    changed()
        except Exception as error:  # noqa: BLE001 - whatever a broken server makes redis-py raise
            lost(str(error) or type(error).__name__)

    def _client(self, database: str) -> Any:  # noqa: ANN401 - redis-py has no useful type
        if self._closed:  # redis-py would connect again
            raise ConnectionError("closed")
        return self._clients[database]


def _client(database: SonicDatabase) -> Any:  # noqa: ANN401 - as said
    return Redis(
        unix_socket_path=database.socket,
        db=database.number,
        socket_timeout=PATIENCE,
        socket_connect_timeout=PATIENCE,
        retry=Retry(NoBackoff(), 0),
    )


def _other_type(error: ResponseError) -> bool:
    return _WRONG_TYPE in str(error)


def _row(answer: object, row: HashFields) -> Row:
    """Return the values of a row: nothing but bytes of the wanted number, or nothing.

    Raises ResponseError with an error that is not of this row: Redis may be loading.
    """
    if isinstance(answer, Exception) and not (
        isinstance(answer, ResponseError) and _other_type(answer)
    ):
        raise answer
    if not isinstance(answer, list) or len(answer) != len(row.fields):
        return (None,) * len(row.fields)
    return [value if isinstance(value, bytes) else None for value in answer]
