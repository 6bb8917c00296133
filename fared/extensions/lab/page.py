"""``fared-lab page``: the page of a router of the lab, at an address of this machine.

The routers' HTTP servers listen in their network namespaces. A socket stays in the namespace where
it was made, so connections that come in outside are passed on through sockets made inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.namespaces import Netns

HTTP_PORT = 9547
"""Where a daemon of the lab serves its page, in its own namespace."""
_READ = 1 << 16


def listen(port: int) -> socket.socket:
    """Listen at 127.0.0.1, at any free port if this one is taken. Raises LabError."""
    for tried in (port, 0):
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", tried))
    raise LabError("no port is free at 127.0.0.1")


def show_page(fabric: Fabric, name: str | None, listener: socket.socket) -> int:
    """Forward to the page of a router, by default of the first leaf, until Ctrl-C."""
    named = name or next(iter((*fabric.plan.leaves, *fabric.plan.routers))).name
    node = fabric.node(named)
    if node.plan.node.kind != "fared":
        raise LabError(f"{named} runs {node.plan.node.kind}, which has no page")
    print(f"{named}: http://127.0.0.1:{listener.getsockname()[1]}/ (Ctrl-C ends)", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(forward(listener, lambda: inside(node.netns)))
    return 0


def inside(netns: Netns) -> socket.socket:
    """Make a socket in a namespace, for the daemon there."""
    made = netns.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setblocking(False)
    return made


async def forward(
    listener: socket.socket, make: Callable[[], socket.socket], port: int = HTTP_PORT
) -> None:
    """Pass connections on until cancelled; ``make`` makes the sockets toward the daemon."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        far = make()
        try:
            await loop.sock_connect(far, ("127.0.0.1", port))
            there, back = await asyncio.open_connection(sock=far)
        except OSError:
            far.close()
            writer.transport.abort()  # a browser shows that nobody answers
            return
        ways = [asyncio.create_task(_pass(*way)) for way in ((reader, back), (there, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for end in (back, writer):
            end.close()

    listener.setblocking(False)
    server = await asyncio.start_server(connected, sock=listener)
    async with server:
        await server.serve_forever()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until one end closes."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_READ):
            writer.write(data)
            await writer.drain()
