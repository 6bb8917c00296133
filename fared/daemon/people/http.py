"""The HTTP port: open from the start, with a server that is loaded for the first client.

The HTTP server (uvicorn, prometheus_client, the page) takes more CPU to load than a router takes to
start, and most routers of a fabric never have a client. So the kernel listens, and the first client
waits in its queue while a thread loads the server; hellos continue meanwhile.
"""

from __future__ import annotations

import asyncio
import importlib
import socket
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

import msgspec

from fared import __version__
from fared.config import Config
from fared.config.values import HttpAddress
from fared.daemon.loop.runner import Runner
from fared.daemon.people.scrape import observe
from fared.daemon.people.views import ViewSource
from fared.management.api.durations import Observed
from fared.management.api.listener import ClientListener
from fared.management.api.respond import Responder
from fared.management.documents.context import ViewContext

_SERVER = (
    "fared.management.api.http_server",
    "fared.management.api.http",
    "fared.management.api.metrics",
)


class Served(msgspec.Struct, frozen=True):
    """The content to serve: documents, metrics, and whether the daemon is ready.

    ``families`` yields the present metrics, ``names`` the host names that are served, ``context``
    the state that events and what-if are about.
    """

    responder: Responder
    families: Callable[[], Iterable[Any]]
    observed: Observed
    ready: Callable[[], bool]
    names: Callable[[], Collection[str]]
    context: Callable[[], ViewContext] | None = None


def http_port(
    listen: HttpAddress, responder: Responder, views: ViewSource, runner: Runner
) -> HttpPort:
    """Return the port of a daemon, which serves ``responder``, the metrics and the page."""
    observed = Observed()
    runner.observers.append(partial(observe, observed))
    served = Served(
        responder,
        views.families,
        observed,
        ready=lambda: runner.router.startup.ready,
        names=lambda: host_names(views.running.config),
        context=views.context,
    )
    return HttpPort(listen.host, listen.port, served)


def host_names(config: Config) -> set[str]:
    """Return the names by which browsers and scrapers may call this host, in lower case."""
    listen, kernel = config.api.http, socket.gethostname()
    host = "" if listen is None else listen.host
    known = (config.hostname or "", kernel, kernel.partition(".")[0], host, *config.api.http_names)
    return {name.lower() for name in known if name}


class HttpPort:
    """Listens from ``start`` to ``stop``; ``loading`` is called for the first client."""

    def __init__(
        self, host: str, port: int, served: Served, loading: Callable[[], None] = lambda: None
    ) -> None:
        self.host = host
        self.port = port
        self._served = served
        self._loading = loading
        self._server: Any = None
        self._task: asyncio.Task[None] | None = None
        self._listener: ClientListener | None = None

    def start(self) -> None:
        """Begin to listen; ``port`` is then the actual one. Raises OSError."""
        listener = self._listener = ClientListener.on(self.host, self.port)
        self.port = listener.getsockname()[1]
        asyncio.get_running_loop().add_reader(listener, self._knocked, listener)

    async def stop(self) -> None:
        """Complete pending answers, for a bounded time, and close."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._server is not None:
            await self._server.stop()
        elif self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()

    def _knocked(self, listener: ClientListener) -> None:
        """Load the server for the first client."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        self._loading()
        self._task = loop.create_task(self._serve(listener))
        self._task.add_done_callback(_raise_what_failed)

    async def _serve(self, listener: ClientListener) -> None:
        for name in _SERVER:
            await asyncio.to_thread(importlib.import_module, name)
        # Loaded by now, in a thread: a daemon that nobody asks over HTTP does not need them.
        from fared.management.api.http import App  # noqa: PLC0415
        from fared.management.api.http_server import HttpServer  # noqa: PLC0415
        from fared.management.api.metrics import Metrics  # noqa: PLC0415

        served = self._served
        metrics = Metrics(served.families, __version__, served.observed)
        app = App(served.responder, metrics, served.ready, served.names, served.context)
        self._server = HttpServer(listener, app)
        await self._server.start()


def _raise_what_failed(task: asyncio.Task[None]) -> None:
    """Raise the task's exception into the loop's exception handler."""
    if not task.cancelled():
        task.result()
