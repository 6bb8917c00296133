"""Connections to SONiC's databases by redis-py: rows in portions, keys, and notifications.

Each portion is one pipeline, and the loop does other work between two of them. A value of another
type than a hash is as one that is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from fared.sonic.databases import SonicDatabase
from fared.sonic.facts import HashFields, Row

FAILURES = (RedisError, OSError, asyncio.TimeoutError, ValueError, EOFError)
"""What a server can cause that is gone, or is no Redis."""
PORTION = 64
"""Rows of one pipeline: a few milliseconds of the loop."""
_PATIENCE = 2.0
"""Seconds for an answer."""
_LISTEN = 5.0
_MOST_KEYS = 262_144
_PATTERN = "__keyspace@{number}__:{keys}"


class RedisConnection:
    """One connection to each database, one more to each that is listened to. All raise FAILURES."""

    def __init__(self, databases: Mapping[str, SonicDatabase]) -> None:
        self._databases, self._closed = databases, False
        self._clients = {name: _client(database) for name, database in databases.items()}

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for client in self._clients.values():
            await _close(client)

    async def keys(self, database: str, patterns: Iterable[str]) -> list[bytes]:
        """Return the keys with these patterns, up to a bound."""
        found: list[bytes] = []
        for pattern in patterns:
            cursor = 0
            while len(found) < _MOST_KEYS:
                cursor, some = await self._clients[database].scan(cursor, pattern, 1000)
                found += [key for key in some if isinstance(key, bytes)]
                if not cursor:
                    break
        return found

    async def hash(self, database: str, key: str) -> dict[bytes, bytes]:
        """Return all fields of a hash."""
        found = await self._clients[database].hgetall(key)
        return found if isinstance(found, dict) else {}

    async def rows(self, wanted: Sequence[HashFields]) -> list[Row]:
        """Return the values of rows, in their order."""
        found: list[Row] = [()] * len(wanted)
        places: dict[str, list[int]] = {}
        for place, row in enumerate(wanted):
            places.setdefault(row.database, []).append(place)
        for database, mine in places.items():
            for start in range(0, len(mine), PORTION):
                portion = mine[start : start + PORTION]
                answers = await self._portion(database, [wanted[place] for place in portion])
                for place, answer in zip(portion, answers, strict=True):
                    found[place] = answer
                await asyncio.sleep(0)
        return found

    async def _portion(self, database: str, rows: Sequence[HashFields]) -> list[Row]:
        pipeline = self._clients[database].pipeline(transaction=False)
        for row in rows:
            pipeline.hmget(row.key, row.fields)
        answers = await pipeline.execute(raise_on_error=False)
        return [_row(answer, row) for answer, row in zip(answers, rows, strict=True)]

    async def set_fields(self, database: str, key: str, fields: Mapping[str, str]) -> None:
        """Set fields of a hash."""
        await self._clients[database].hset(key, mapping=dict(fields))

    async def delete(self, database: str, *keys: str) -> None:
        """Delete keys."""
        await self._clients[database].delete(*keys)

    async def notifies(self, database: str) -> bool:
        """Whether changed hashes of the server are notified by their keys."""
        try:
            found = await self._clients[database].config_get("notify-keyspace-events")
        except RedisError:
            return False  # CONFIG may be renamed or forbidden
        flags = str(found.get("notify-keyspace-events", ""))
        return "K" in flags and ("A" in flags or "h" in flags)

    async def listen(
        self, database: str, patterns: Iterable[str], changed: Callable[[], None]
    ) -> None:
        """Call ``changed`` once as soon as keys are listened to, and with each of their changes."""
        where = self._databases[database]
        client = _client(where)
        listening = client.pubsub()
        try:
            await listening.psubscribe(
                *(_PATTERN.format(number=where.number, keys=keys) for keys in patterns)
            )
            changed()
            while not self._closed:
                message = await listening.get_message(timeout=_LISTEN)
                if message is not None and message.get("type") == "pmessage":
                    changed()
        finally:
            await _close(listening)
            await _close(client)


def _client(database: SonicDatabase) -> Any:  # noqa: ANN401 - redis-py has no useful type
    return Redis(
        unix_socket_path=database.socket,
        db=database.number,
        socket_timeout=_PATIENCE,
        socket_connect_timeout=_PATIENCE,
        retry=Retry(NoBackoff(), 0),
    )


async def _close(client: Any) -> None:  # noqa: ANN401 - as said
    """Close a client, whatever state it is in; redis-py before 5 calls it otherwise."""
    with contextlib.suppress(*FAILURES):
        close = client.aclose if hasattr(client, "aclose") else client.close
        async with asyncio.timeout(_PATIENCE):
            await close()


def _row(answer: object, row: HashFields) -> Row:
    """Return the values of a row: nothing but bytes of the wanted number, or nothing."""
    if not isinstance(answer, list) or len(answer) != len(row.fields):
        return (None,) * len(row.fields)
    return [value if isinstance(value, bytes) else None for value in answer]
