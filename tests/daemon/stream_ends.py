"""Two edges of streams, each in a network namespace of its own, under engines that only listen."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from fared.core.streams import (
    CloseStream,
    Connect,
    Listen,
    Listener,
    ReadStream,
    SendStream,
    StreamClosed,
    StreamId,
    StreamKey,
    StreamOpened,
    StreamReceived,
    StreamSent,
    Transport,
)
from fared.daemon.loop.streams.edge import StreamEdge
from fared.extensions.lab.namespaces import Netns
from tests.waiting import loop_until, wait_for

PORT = 179
_numbers = itertools.count(1)
_prefix = f"se{random.SystemRandom().randrange(16**5):05x}"


class End:
    """The edge in a namespace; ``heard`` are all inputs of its engine, in order."""

    def __init__(self, name: str) -> None:
        self.netns = Netns.create(f"{_prefix}{name}{next(_numbers)}")
        self.heard: list[Any] = []
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.links: dict[int, str] = {}
        self._edge: StreamEdge | None = None

    @property
    def edge(self) -> StreamEdge:
        """Made when it is first needed, as in the daemon."""
        if self._edge is None:
            levels = ("info", "warning", "error")
            write = {
                level: lambda event, **rest: self.lines.append((event, rest)) for level in levels
            }
            self._edge = StreamEdge(
                self._take,
                lambda: None,
                self.links.items,
                SimpleNamespace(**write),
                make=self.netns.socket,
            )
        return self._edge

    def _take(self, inputs: Iterable[Any]) -> None:
        self.heard += inputs

    def do(self, *outputs: Any) -> None:
        for one in outputs:
            self.edge.perform(one)

    def listen(self, *transports: Transport) -> None:
        """Neighbors have the numbers 1, 2, and so on."""
        self.do(Listen(tuple(Listener(n, one) for n, one in enumerate(transports, 1)), PORT))

    def connect(self, transport: Transport) -> StreamId:
        number = StreamId(1, passive=False, number=next(_numbers))
        self.do(Connect(number, transport))
        return number

    def told(self, kind: type) -> list[Any]:
        return [one for one in self.heard if isinstance(one, kind)]

    def received(self, number: StreamId) -> bytes:
        return b"".join(one.data for one in self.told(StreamReceived) if one.stream == number)

    def sent(self, number: StreamId) -> int:
        return sum(one.count for one in self.told(StreamSent) if one.stream == number)

    def reason(self, number: StreamId) -> str | None:
        """Why a stream is closed; None: it is not."""
        found = [one.reason for one in self.told(StreamClosed) if one.stream == number]
        assert len(found) < 2
        return found[0] if found else None

    async def closed(self, number: StreamId) -> str:
        await loop_until(lambda: self.reason(number), 10.0, "the end of a stream")
        reason = self.reason(number)
        assert reason
        return reason

    async def opened(self, passive: bool = True) -> StreamId:
        """The last stream that was opened, when there is one."""
        await loop_until(lambda: self._opened(passive), 10.0, lambda: f"{self.heard} {self.lines}")
        return self._opened(passive)[-1]

    def _opened(self, passive: bool) -> list[StreamId]:
        return [one.stream for one in self.told(StreamOpened) if one.stream.passive is passive]

    async def counted(self, name: str) -> None:
        await loop_until(lambda: self.edge.counters[name], 10.0, lambda: str(self.edge.counters))

    def snmp(self, name: str) -> int:
        """A counter of TCP in the kernel of the namespace."""
        lines = self.netns.run(["cat", "/proc/net/netstat"]).stdout.splitlines()
        names, values = (line.split() for line in lines if line.startswith("TcpExt:"))
        return int(dict(zip(names, values, strict=True))[name])

    def close(self) -> None:
        if self._edge is not None:
            self._edge.close_all()
        self.netns.delete()


class Ends:
    """``left`` (10.0.0.1, fd00::1, fe80::1) and ``right`` (.2), on one link, ``e0`` at both."""

    def __init__(self) -> None:
        self.left, self.right = End("l"), End("r")
        wire = f"link add e0 index 11 type veth peer name e0 index 12 netns {self.right.netns.name}"
        self.left.netns.batch("ip", [wire])
        for host, index, end in ((1, 11, self.left), (2, 12, self.right)):
            end.links[index] = "e0"
            end.netns.batch(
                "ip",
                [
                    "link set e0 addrgenmode none",
                    "link set e0 up",
                    f"addr add 10.0.0.{host}/24 dev e0",
                    f"addr add fd00::{host}/64 dev e0 nodad",
                    f"addr add fe80::{host}/64 dev e0 nodad",
                ],
            )

        # until then the kernel drops what is sent
        for end in (self.left, self.right):
            state = functools.partial(end.netns.ip, "-br", "link", "show", "e0")
            wait_for(lambda s=state: s().split()[1] == "UP", 10.0, state)

    async def join(self, **options: Any) -> tuple[StreamId, StreamId]:
        """Connect left to right with options of both transports; return their streams."""
        remote = options.pop("remote", ("10.0.0.1", "10.0.0.2"))
        self.right.listen(Transport(remote[0], **options))
        active = self.left.connect(Transport(remote[1], **options))
        passive = await self.right.opened()
        assert await self.left.opened(passive=False) == active
        return active, passive

    def close(self) -> None:
        self.left.close()
        self.right.close()


__all__ = ["CloseStream", "End", "Ends", "ReadStream", "SendStream", "StreamKey"]
