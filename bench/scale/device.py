"""The device under test of ``scale``: one daemon, leaf 0, on a core of its own."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.neighbors.devices import Device, Speaker
from bench.neighbors.fabric import Fabric
from bench.neighbors.isis import Adjacencies, IsisNeighbor
from bench.neighbors.lsas import LsaContents
from bench.neighbors.lsps import LspContents
from bench.neighbors.ospf import OspfNeighbor
from bench.neighbors.script import Contents, Script, Send
from bench.scale.kernel import KernelRoutes

DUT_CORE, SCRIPT_CORE = 0, 1
_PROFILED = Path(__file__).with_name("profiled.py")
_QUESTION = b'{"command": "none"}\n'
_ASK = 0.1
_GAP = 0.002
_AT_ONCE = 16
"""Neighbors that send an update each in reply to requests, every ``_GAP``: 576 Mb/s.

As much as the kernel lets FRR buffer: if all sent at once, most would be lost, and asked for again.
"""
_LONGEST = 0.02
_FINE = 0.0005


class Lag:
    """How long the loop of fared is held: the longest time that an empty request has to wait."""

    def __init__(self, path: Path) -> None:
        self.longest = 0.0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))
        self.socket.setblocking(False)
        self._asked: float | None = None
        self._next = 0.0

    def ask(self, now: float) -> None:
        """Ask, if the last question has been answered and it is time."""
        if self._asked is not None:
            self.longest = max(self.longest, now - self._asked)
        elif now >= self._next:
            self._asked, self._next = now, now + _ASK
            self.socket.send(_QUESTION)

    def read(self) -> None:
        """Take an answer."""
        with contextlib.suppress(BlockingIOError):
            if self.socket.recv(4096).endswith(b"\n") and self._asked is not None:
                self.longest = max(self.longest, time.monotonic() - self._asked)
                self._asked = None


class Scaled(Device):
    """The daemon, its scripted neighbors, and the loop that runs them."""

    def __init__(
        self,
        kind: str,
        protocol: str,
        fabric: Fabric,
        directory: Path,
        *,
        hello: int = 1,
        spread: float = 0.001,
        metric: str = "available",
        profile: Path | None = None,
    ) -> None:
        self.hello, self.dead = hello, 4 * hello
        self.metric, self.profile = metric, profile
        self.contents: Contents
        if protocol == "ospf":
            device, self.contents = fabric.leaf(0), LsaContents(fabric)
        else:
            device, self.contents = fabric.system(fabric.leaf(0)), LspContents(fabric)
        self._adjacencies = Adjacencies()
        self.script = Script(self.contents, device, hello, spread)
        super().__init__(kind, protocol, fabric, directory)
        self.monitor.close()
        self.kernel = KernelRoutes(self.inside.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
        self.lag: Lag | None = None
        self.late = 0.0
        """The longest turn of this loop, seconds: the script must not be the bottleneck."""
        self._poll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {
            self.kernel.socket.fileno(): self.kernel.read
        }
        for number in self.sockets:
            self._readers[number] = partial(self.receive, number)
        for number in self._readers:
            self._poll.register(number, select.EPOLLIN)
        self._hello_at = self._push_at = 0.0
        self._pushed = 0
        self.announcer: Callable[[float], float] | None = None
        """Called in every turn with the time; returns when it is to be called again."""

    def _speaker(self, spine: int, ifindex: int, send: Send) -> Speaker:
        router, contents = self.fabric.spine(spine), self.contents
        if isinstance(contents, LsaContents):
            return OspfNeighbor(self.script, contents, router, send)
        assert isinstance(contents, LspContents)
        return IsisNeighbor(
            self.script,
            contents,
            self._adjacencies,
            send,
            system=self.fabric.system(router),
            address=self.fabric.addresses((spine, 0))[0],
            circuit=ifindex,
        )

    # The daemon

    def configuration(self) -> dict[str, Any]:
        """The configuration of fared."""
        found = super().configuration()
        found["adaptive"] = {"metric": self.metric}
        return found

    def commands(self) -> list[tuple[list[str], Path]]:
        """The commands, on a core of their own."""
        pinned = []
        for command, ready in super().commands():
            if self.kind == "fared" and self.profile is not None:
                tail = command[command.index("-c") :]
                command[:] = [sys.executable, str(_PROFILED), str(self.profile), *tail]
            pinned.append((["taskset", "-c", str(DUT_CORE), *command], ready))
        return pinned

    def start(self) -> None:
        """Start the daemon."""
        super().start()
        if self.kind == "fared":
            self.lag = Lag(self.directory / "fared.sock")
            self._readers[self.lag.socket.fileno()] = self.lag.read
            self._poll.register(self.lag.socket.fileno(), select.EPOLLIN)

    def core(self) -> float:
        """Seconds that the core of the daemon was busy so far, with other processes too."""
        (line,) = (
            line.split()
            for line in Path("/proc/stat").read_text().splitlines()
            if line.startswith(f"cpu{DUT_CORE} ")
        )
        user, nice, system, _idle, _wait, *rest = map(int, line[1:9])
        return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")

    def profiled(self, *, on: bool) -> None:
        """Switch the profile on or off."""
        if self.profile is not None and self.kind == "fared":
            os.kill(self.processes[0].pid, signal.SIGUSR1 if on else signal.SIGUSR2)

    # The loop

    def serve(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Run the neighbors for ``seconds`` or until the condition holds; return if it holds."""
        deadline = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            if now >= self._hello_at:
                self._hello_at = now + 0.9 * self.hello
                for neighbor in self.script.neighbors:
                    neighbor.hello()
            pushing = self._push(now)
            self.script.retransmit(now)
            if self.lag is not None:
                self.lag.ask(now)
            if until is not None and until():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            sent = self.script.turn(now)
            wait = min(left, _LONGEST if sent and not pushing else _GAP)
            if self.announcer is not None:
                wait = min(wait, max(0.0, self.announcer(now) - time.monotonic()))
            self.late = max(self.late, time.monotonic() - now)
            for number, _ in self._poll.poll(wait if sent else _FINE):
                self._readers[number]()

    def _push(self, now: float) -> bool:
        """Send a portion of the requested LSAs every few milliseconds, neighbors in turn."""
        busy = [neighbor for neighbor in self.script.neighbors if neighbor.pending]
        if busy and now >= self._push_at + _GAP:
            self._push_at = now
            after = [each for each in busy if each.bit > self._pushed]
            for neighbor in (after + busy)[: min(_AT_ONCE, len(busy))]:
                neighbor.push()
                self._pushed = neighbor.bit
        return bool(busy)
