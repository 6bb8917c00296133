"""Clients cannot use the last descriptors, which are reserved for sockets of interfaces."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import sys
from pathlib import Path

import pytest

from fared.management.api import control, http_server
from fared.management.api.control import ControlServer
from fared.management.api.durations import Observed
from fared.management.api.http import App
from fared.management.api.http_server import HttpServer
from fared.management.api.listener import ClientListener
from fared.management.api.metrics import Metrics
from fared.management.api.respond import Responder
from fared.runtime import descriptors

RESERVED, FREE = 40, 80
"""Descriptors that are the router's, and how many are free where a test begins."""
CROWD = """
import resource, socket, sys, time
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
number, family, *address = sys.argv[1:]
clients = []
for _ in range(int(number)):
    clients.append(socket.socket(socket.AF_UNIX if family == "unix" else socket.AF_INET))
    clients[-1].connect(address[0] if family == "unix" else ("127.0.0.1", int(address[0])))
time.sleep(60)
"""


@pytest.fixture
def limit(monkeypatch):
    """A process that may open only a few files more, the last of which are reserved."""
    monkeypatch.setattr(descriptors, "LEAST_RESERVED", RESERVED)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    low = max(highest + FREE, 2 * RESERVED)
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    yield low
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("limit_of", "first_reserved"),
    [(64, 32), (200, 100), (256, 128), (1024, 768), (65536, 49152), (-1, 786432)],
)
def test_a_quarter_of_all_descriptors_is_for_the_router(monkeypatch, limit_of, first_reserved):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit_of, limit_of))
    assert descriptors.ceiling() == first_reserved


@contextlib.asynccontextmanager
async def serving(kind: str, directory: Path):
    """A server and what connects to it."""
    if kind == "control":
        path = directory / "fared.sock"
        server, connect = ControlServer(str(path), Responder(lambda *_: {})), ("unix", (path,))
        await server.start()
    else:
        app = App(Responder(lambda *_: {}), Metrics(tuple, "0", Observed()), lambda: True)
        server = HttpServer(ClientListener.on("127.0.0.1", 0), app)
        await server.start()
        connect = ("inet", (server.port,))
    yield connect
    await server.stop()


@pytest.mark.parametrize("kind", ["control", "http"])
async def test_clients_that_hold_connections_leave_the_routers_descriptors(
    limit, kind, tmp_path, monkeypatch
):
    """For any number of clients, the loop's exception handler reports it, and no callback fails."""
    # else the servers close idle clients: of a crowd that comes slowly, enough to have room
    monkeypatch.setattr(control, "_MAX_CONNECTIONS", 1000)
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 1000)
    loop, troubles, heard = asyncio.get_running_loop(), [], asyncio.Event()
    loop.set_exception_handler(lambda _, context: (troubles.append(context), heard.set()))
    async with serving(kind, tmp_path) as (family, address):
        crowd = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CROWD, str(limit), family, *map(str, address)
        )
        try:
            async with asyncio.timeout(20):
                await heard.wait()
            for descriptor in [os.dup(0) for _ in range(RESERVED - 5)]:
                os.close(descriptor)
        finally:
            crowd.kill()
            await crowd.wait()
    assert {context["exception"].errno for context in troubles} == {errno.EMFILE}
    assert not any("handle" in context for context in troubles)
