"""A session over TCP to the double: rows are in a real Redis when they are acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from fared.sonic.connection import RedisConnection
from fared.sonic.warm_restart import WarmRestart
from tests.fpm.peers import NAMES, PROTOCOL, Switch, in_order
from tests.fpm.server import FpmServer, rows_in
from tests.sonic.redis_server import Server

ROUTES = 500
WEIGHTS = {1: 1, 2: 2, 3: 255}


@pytest.fixture
def redis(tmp_path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.stop()


class Client(Switch):
    """The session of a switch, whose bytes go to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def dial(self, port: int) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        self.session.connected(self.now)

    async def hang_up(self) -> None:
        self.session.lost()
        self.writer.transport.abort()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def exchange(self) -> None:
        """Send all, and wait until all is acknowledged."""
        self.session.touch(self.planner.take_touched())
        async with asyncio.timeout(60):
            while self.session.has_output():
                self.writer.write(self.session.writable(1 << 16, self.now))
            while self.session.waiting:
                data = await self.reader.read(1 << 16)
                assert data, "the server has closed the connection"
                assert self.session.received(data, self.now) == ""


@contextlib.asynccontextmanager
async def served(redis: Server) -> AsyncIterator[FpmServer]:
    server = FpmServer(Client().peer, redis.db("APPL_DB"))
    server.double.names.update(NAMES)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def test_acknowledged_routes_are_rows_in_redis_and_survive_both_ends(redis):
    client, database = Client(), redis.db("APPL_DB")
    async with served(redis) as server:
        client.put(range(ROUTES), WEIGHTS)
        await client.dial(server.port)
        await client.exchange()
        rows = rows_in(database)
        assert in_order(rows) == in_order(client.expected())
        assert len(rows) == ROUTES

        await server.stop()
        await client.hang_up()
        client.put(range(10), {1: 7})
        client.remove(range(10, 20))
        assert rows_in(database) == rows
        await server.start()
        await client.dial(server.port)
        await client.exchange()
        # a deletion is not acknowledged: what comes after it is
        client.put([0], {2: 1})
        await client.exchange()
        assert in_order(rows_in(database)) == in_order(client.expected())

        successor = WarmRestart(RedisConnection(redis.databases), redis.databases)
        assert await successor.routes_of("ospf") == set(client.expected())
        await client.hang_up()


async def test_a_server_that_reads_nothing_has_no_rows_and_then_all(redis):
    client, database = Client(), redis.db("APPL_DB")
    async with served(redis) as server:
        server.reads.clear()
        client.put(range(ROUTES), WEIGHTS)
        await client.dial(server.port)
        sending = asyncio.create_task(client.exchange())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not sending.done()
        assert rows_in(database) == {}
        server.reads.set()
        await sending
        assert in_order(rows_in(database)) == in_order(client.expected())
        assert {row["protocol"] for row in rows_in(database).values()} == {"ospf"}
        assert server.double.protocols == {PROTOCOL: "ospf"}
        await client.hang_up()
