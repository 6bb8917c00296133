"""The double of ``fpmsyncd`` behind a real socket; with Redis its rows are in APPL_DB.

What the double changes is written to Redis before its acknowledgements are sent, so a client that
has its acknowledgement finds the row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from tests.fpm.fpmsyncd import Connection, Fpmsyncd

_READ = 1 << 16


class ChangedRows(dict[str, dict[str, str]]):
    """Rows, and the keys of those that may have changed."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[str] = set()

    def setdefault(self, key: str, default: dict[str, str]) -> dict[str, str]:  # type: ignore[override]
        """The double fills what this returns."""
        self.changed.add(key)
        return super().setdefault(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        """Note that a row has gone."""
        self.changed.add(key)
        return super().pop(key, *default)

    def take_changed(self) -> Iterator[tuple[str, dict[str, str] | None]]:
        """Yield the rows that may have changed, None for those that have gone."""
        changed, self.changed = self.changed, set()
        for key in changed:
            yield key, self.get(key)


class FpmServer:
    """Serves a double at a port of 127.0.0.1; ``database`` is a client of APPL_DB.

    While ``reads`` is cleared nothing is read, as if the process were stopped.
    """

    def __init__(self, double: Fpmsyncd, database: Any = None) -> None:
        self.double, self._database = double, database
        self.rows = double.rows = ChangedRows()
        self.reads = asyncio.Event()
        self.reads.set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def start(self) -> None:
        """Listen, at the port of the first time."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End as a process does: connections are lost, rows stay in Redis and in the double."""
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = self.double.connect()
        self._writers.add(writer)
        try:
            while await self.reads.wait() and (data := await reader.read(_READ)):
                self.double.send(client, data)
                await self._answer(client, writer)
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            if client in self.double.connections:
                self.double.close(client)
            writer.transport.abort()

    async def _answer(self, client: Connection, writer: asyncio.StreamWriter) -> None:
        self._write_rows()
        while acks := client.read():
            writer.write(acks)
            await writer.drain()
            self.double.run()
            self._write_rows()

    def _write_rows(self) -> None:
        changed = list(self.rows.take_changed())
        if self._database is None or not changed:
            return
        pipeline = self._database.pipeline()
        for key, fields in changed:
            pipeline.delete(f"ROUTE_TABLE:{key}")
            if fields is not None:
                pipeline.hset(f"ROUTE_TABLE:{key}", mapping=fields)
        pipeline.execute()


def rows_in(database: Any) -> dict[str, dict[str, str]]:
    """Return the rows of APPL_DB by prefix."""
    keys = [key.decode() for key in database.scan_iter("ROUTE_TABLE:*", 1000)]
    return {
        key.partition(":")[2]: {k.decode(): v.decode() for k, v in database.hgetall(key).items()}
        for key in keys
    }
