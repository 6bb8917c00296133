"""The HTTP server of a test."""

from contextlib import asynccontextmanager

from fared.management.api.http_server import HttpServer
from fared.management.api.listener import ClientListener


@asynccontextmanager
async def served(app):
    """Serve an application on a free port of 127.0.0.1; yield the port."""
    server = HttpServer(ClientListener.on("127.0.0.1", 0), app)
    await server.start()
    try:
        yield server.port
    finally:
        await server.stop()
