"""The daemon with a fake kernel: calls to everything outside it are recorded in order.

The router, the pump, the lock and the control socket are the real ones.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from fared.config import load_runnable
from fared.core.links import InterfaceAddress, Link
from fared.daemon import daemon as module
from fared.daemon import kernel, parts
from fared.daemon.daemon import Daemon
from fared.daemon.loop import health, inputs
from fared.management.api.client import ControlClient
from fared.management.api.control import ControlServer
from fared.paths.fib.simulated import SimulatedFib
from fared.protocols.igp.events import SendPacket

LO = Link(1, "lo", True, 65536, (InterfaceAddress(4, 0x0AFF0001, 32),), loopback=True)
SWP1 = Link(2, "swp1", True, 1500, (InterfaceAddress(4, 0x0A000001, 31),), speed=1.25e9)
CONFIG = """
router-id: {router_id}
state-directory: {state}
fib: {{on-exit: {on_exit}}}
api: {{socket: {socket}}}
ospf:
  areas:
    0: {{interfaces: {{lo: {{passive: true}},
                     swp1: {{cost: {cost}, network-type: point-to-point,
                            authentication: {authentication}}}}}}}
"""


class Lenient:
    """A fake: all other methods do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


class Stage:
    """One daemon to start, and ``happened``: its calls, in order."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.happened: list[str] = []
        self.socket = directory / "run" / "fared.sock"
        self.file = directory / "fared.yaml"
        self.state = directory / "state"
        self.sent: list[bytes] = []
        self.fails: dict[str, Exception] = {}
        """What raises when it is touched."""
        self.fib = self._fib()
        self.refused = ""
        """The errors of a file in whose place the daemon runs what ran last."""
        self.spoke = asyncio.Event()
        self._replace(monkeypatch)
        self.write()

    def write(self, **values: Any) -> None:
        """Write the configuration file, with some values changed."""
        usual = {
            "cost": 10,
            "router_id": "10.255.0.1",
            "on_exit": "withdraw",
            "authentication": "null",
            "socket": self.socket,
            "state": self.state,
        }
        self.file.write_text(CONFIG.format(**usual | values))

    def make(self) -> Daemon:
        """Create a daemon from the file."""
        loaded = replace(load_runnable(self.file), refused=self.refused)
        return Daemon(str(self.file), loaded)

    async def serve(self) -> None:
        """Run a daemon that is expected to exit."""
        async with asyncio.timeout(30):
            await self.make().serve()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Daemon]:
        """Run a daemon from its first hello to its shutdown."""
        self.spoke.clear()
        daemon = self.make()
        task = asyncio.create_task(daemon.serve())
        try:
            spoke = asyncio.create_task(self.spoke.wait())
            await asyncio.wait({task, spoke}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
            spoke.cancel()
            yield daemon
        finally:
            daemon._stop.set()
            async with asyncio.timeout(30):
                await task

    async def ask(self, command: str, **arguments: Any) -> Any:
        """Send a request to the control socket; return the answer."""
        client = ControlClient(str(self.socket), 10)
        return await asyncio.to_thread(client.request, command, None, arguments)

    def order(self, *names: str) -> list[str]:
        """Return those of the names that were recorded, in order of their first call."""
        return sorted((n for n in names if n in self.happened), key=self.happened.index)

    def note(self, name: str) -> None:
        """Record a call, and raise an error if the test demands one."""
        self.happened.append(name)
        if name == "send":
            self.spoke.set()
        if name in self.fails:
            raise self.fails[name]

    def _replace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = SimpleNamespace(
            measure=lambda _: {}, expired=lambda *_: [], close=lambda: self.note("load closed")
        )
        monkeypatch.setattr(health, "LoadSource", lambda: source)
        monkeypatch.setattr(module, "ControlServer", self._control)
        monkeypatch.setattr(module, "check_privileges", lambda: self.note("privileges"))
        monkeypatch.setattr(kernel, "SettingsGuard", self._settings)
        monkeypatch.setattr(kernel, "KernelFib", lambda **_: self.note("fib") or self.fib)
        monkeypatch.setattr(kernel.monitor, "KernelMonitor", self._monitor)
        sockets = {"ospf": lambda *_: self._sockets("ospf")}
        monkeypatch.setattr(inputs, "SOCKETS", sockets)
        monkeypatch.setattr(parts, "FAREWELL", 0.01)

    def _control(self, *arguments: Any) -> ControlServer:
        stage = self

        class Control(ControlServer):
            async def start(self) -> None:
                stage.note("control")
                await super().start()

            async def stop(self) -> None:
                stage.note("control stopped")
                await super().stop()

        return Control(*arguments)

    def _monitor(self, *_: Any, **__: Any) -> Any:
        self.note("monitor")
        made = Lenient()
        made.links, made.arrived = {1: LO, 2: SWP1}, 0.0
        made.start = lambda *_: self.note("monitor started")
        made.close = lambda: self.note("monitor closed")
        return made

    def _settings(self, *_: Any) -> Any:
        made = Lenient()
        made.start, made.set_back = lambda: self.note("sysctls"), 0
        return made

    def _fib(self) -> Any:
        stage = self

        class Fib(SimulatedFib, Lenient):
            port_id, written, foreign, marks = 1, 0, {}, frozenset()
            notices = Lenient()

            def apply(self, operations: Any) -> Any:
                stage.note("fib written")
                return super().apply(operations)

            def close(self) -> None:
                stage.note("fib closed")

        return Fib()

    def _sockets(self, protocol: str) -> Any:
        stage = self

        class Sockets(Lenient):
            def __init__(self) -> None:
                self.opened: set[int] = set()
                self.counters: Counter[str] = Counter()

            def open(self, ifindex: int, _unicasts: object = None) -> None:
                stage.note("open")
                self.opened.add(ifindex)

            def __contains__(self, ifindex: object) -> bool:
                return ifindex in self.opened

            def send(self, packet: SendPacket) -> None:
                stage.sent.append(packet.payload)
                stage.note("send")

            def close_all(self) -> None:
                stage.note(f"{protocol} closed")

        return Sockets()
