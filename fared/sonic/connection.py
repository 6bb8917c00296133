"""Connections to SONiC's databases: rows in portions, keys, and notifications.

The loop does other work between two portions. A value of another type than a hash is as one that is
missing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

from fared.sonic.databases import SonicDatabase
from fared.sonic.facts import HashFields, Row
from fared.sonic.redis_socket import RedisSocket
from fared.sonic.resp import Argument, Reply, ServerError

FAILURES = (OSError, ValueError)
"""What a server can cause that is gone, or is no Redis."""
PORTION = 64
"""Rows that are asked for at once: a few milliseconds of the loop."""
_KEYS = 1000
_MOST_KEYS = 262_144
_PATTERN = "__keyspace@{number}__:{keys}"
_WRONG_TYPE = b"WRONGTYPE"


class RedisConnection:
    """One connection to each database, one more to each that is listened to. All raise FAILURES."""

    def __init__(self, databases: Mapping[str, SonicDatabase]) -> None:
        self._databases = databases
        self._sockets: dict[str, RedisSocket] = {}
        self._listening: list[RedisSocket] = []
        self._closed = False

    def close(self) -> None:
        """Close all connections at once: whoever waits for one of them has an error."""
        self._closed = True
        for opened in (*self._sockets.values(), *self._listening):
            opened.close()

    async def keys(self, database: str, patterns: Iterable[str]) -> AsyncIterator[list[bytes]]:
        """Yield the keys with these patterns in portions, up to a bound; some come twice."""
        left = _MOST_KEYS
        for pattern in patterns:
            cursor: Argument = 0
            while left > 0:
                command = ("SCAN", cursor, "MATCH", pattern, "COUNT", _KEYS)
                cursor, some = _scanned(await self._ask(database, command))
                left -= len(some)
                yield some
                if cursor == b"0":
                    break

    async def hash(self, database: str, key: str) -> dict[bytes, bytes]:
        """Return all fields of a hash, up to a bound."""
        found: dict[bytes, bytes] = {}
        cursor: Argument = 0
        while len(found) < _MOST_KEYS:
            command = ("HSCAN", key, cursor, "COUNT", _KEYS)
            reply = await self._ask(database, command, other_type=True)
            if reply is None:
                break
            cursor, fields = _scanned(reply)
            found.update(zip(fields[::2], fields[1::2], strict=False))
            if cursor == b"0":
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
                opened = await self._socket(database)
                commands = [("HMGET", wanted[i].key, *wanted[i].fields) for i in portion]
                for place, answer in zip(portion, await opened.ask(*commands), strict=True):
                    found[place] = _row(answer, wanted[place])
        return found

    async def set_fields(self, database: str, key: str, fields: Mapping[str, str]) -> None:
        """Set fields of a hash."""
        flat = [word for pair in fields.items() for word in pair]
        await self._ask(database, ("HSET", key, *flat))

    async def delete(self, database: str, *keys: str) -> None:
        """Delete keys."""
        await self._ask(database, ("DEL", *keys))

    async def notifies(self, database: str) -> bool:
        """Whether changed hashes of the server are notified by their keys."""
        command = ("CONFIG", "GET", "notify-keyspace-events")
        found = (await (await self._socket(database)).ask(command))[0]
        flags = b"".join(_bytes(found)[1:2])  # CONFIG may be renamed or forbidden
        return b"K" in flags and (b"A" in flags or b"h" in flags)

    async def listen(
        self,
        database: str,
        patterns: Sequence[str],
        changed: Callable[[], None],
        lost: Callable[[str], None],
    ) -> None:
        """From now on call ``changed`` with each change of the keys, ``lost`` if that ends."""
        where = self._databases[database]
        opened = await self._open(database, lambda _: changed(), lost)
        self._listening.append(opened)
        names = [_PATTERN.format(number=where.number, keys=keys) for keys in patterns]
        # Each has one reply. A notification between them is taken for one: nobody misses it, since
        # whoever listens reads everything then.
        await opened.ask(*[("PSUBSCRIBE", name) for name in names])

    async def _ask(
        self, database: str, command: Sequence[Argument], *, other_type: bool = False
    ) -> Reply:
        (reply,) = await (await self._socket(database)).ask(command)
        return _checked(reply, other_type=other_type)

    async def _socket(self, database: str) -> RedisSocket:
        opened = self._sockets.get(database)
        if opened is None or opened.error is not None:
            opened = self._sockets[database] = await self._open(database)
        return opened

    async def _open(
        self,
        database: str,
        pushed: Callable[[Reply], None] = lambda _: None,
        lost: Callable[[str], None] = lambda _: None,
    ) -> RedisSocket:
        where = self._databases[database]
        opened = await RedisSocket.open(where.socket, pushed, lost)
        if self._closed:
            opened.close()
        (reply,) = await opened.ask(("SELECT", where.number))
        _checked(reply)
        return opened


def _checked(reply: Reply, *, other_type: bool = False) -> Reply:
    """Return a reply; raise ValueError if it is an error.

    With ``other_type`` a value of another type is none.
    """
    if not isinstance(reply, ServerError):
        return reply
    if other_type and reply.startswith(_WRONG_TYPE):
        return None
    raise ValueError(reply.decode("ascii", "replace")[:200])


def _bytes(reply: Reply) -> list[bytes]:
    elements = reply if isinstance(reply, list) else []
    return [element for element in elements if isinstance(element, bytes)]


def _scanned(reply: Reply) -> tuple[bytes, list[bytes]]:
    match reply:
        case [bytes() as cursor, list() as some]:
            return cursor, _bytes(some)
    raise ValueError("a scan has another reply")


def _row(answer: Reply, row: HashFields) -> Row:
    """Return the values of a row: nothing but bytes of the wanted number, or nothing.

    Raises ValueError with an error that is not of this row: Redis may be loading.
    """
    answer = _checked(answer, other_type=True)
    if not isinstance(answer, list) or len(answer) != len(row.fields):
        return (None,) * len(row.fields)
    return [value if isinstance(value, bytes) else None for value in answer]
