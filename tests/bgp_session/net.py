"""BGP sessions on a virtual clock, joined by streams that can be slow, refused or lost."""

from __future__ import annotations

import heapq
import random
from typing import Any

from fared.core.ids import parse_dotted
from fared.core.streams import (
    CloseStream,
    Connect,
    ReadStream,
    SendStream,
    StreamClosed,
    StreamId,
    StreamOpened,
    StreamReceived,
    StreamSent,
    Transport,
)
from fared.protocols.bgp.session.events import NeighborSettings, SessionDown
from fared.protocols.bgp.session.fsm import BgpState
from fared.protocols.bgp.session.session import BgpSession
from fared.protocols.igp.process import Process

PEER = 7


def settings(number=65001, identifier="10.9.1.1", **options: Any) -> NeighborSettings:
    return NeighborSettings(number, parse_dotted(identifier), Transport("10.9.1.2"), **options)


class Speaker:
    """One session and its process; what it emits beside streams is in ``told``."""

    def __init__(self, options: NeighborSettings, seed: int = 1) -> None:
        self.process: Process[Any] = Process("bgp", 0.0, random.Random(seed), str)
        self.session = BgpSession(self.process, PEER, options)
        self.told: list[Any] = []

    @property
    def state(self) -> BgpState:
        return self.session.state

    @property
    def reasons(self) -> list[str]:
        return [one.reason for one in self.told if isinstance(one, SessionDown)]

    def tell(self, event: Any, now: float | None = None) -> list[Any]:
        """Handle an input; return what is for streams."""
        if now is not None:
            self.process.now = now
        self.session.handle(event)
        return self.outputs()

    def tick(self, now: float) -> list[Any]:
        self.process.now = now
        self.process.timers.fire(now)
        return self.outputs()

    def outputs(self) -> list[Any]:
        found = self.process.take_outputs()
        streams = (Connect, SendStream, CloseStream, ReadStream)
        self.told += [one for one in found if not isinstance(one, streams)]
        return [one for one in found if isinstance(one, streams)]


class Pair:
    """Two speakers, ``a`` and ``b``, and the connections between them."""

    def __init__(self, a: Speaker, b: Speaker, delay: float = 0.001, seed: int = 1) -> None:
        self.ends = {"a": a, "b": b}
        self.now, self.delay = 0.0, delay
        self.rng = random.Random(seed)
        self.refused: set[str] = set()
        """Ends that accept no connections."""
        self.reading = True
        self._queue: list[tuple[float, int, str, Any]] = []
        self._order = 0
        self._far: dict[tuple[str, StreamId], tuple[str, StreamId]] = {}

    def start(self, *names: str) -> None:
        for name in names or ("a", "b"):
            self.ends[name].session.start()
            self.perform(name)

    def perform(self, name: str, outputs: list[Any] | None = None) -> None:
        """Do what a speaker wants of its streams."""
        for one in self.ends[name].outputs() if outputs is None else outputs:
            key = (name, one.stream)
            match one:
                case Connect():
                    self._connect(name, one.stream)
                case SendStream() if key in self._far:
                    other, stream = self._far[key]
                    self.put(other, StreamReceived(stream, one.data))
                    if self.reading:
                        self.put(name, StreamSent(one.stream, len(one.data)), 0.0)
                case CloseStream():
                    self.cut(key, "closed", near=False)

    def _connect(self, name: str, stream: StreamId) -> None:
        other = "b" if name == "a" else "a"
        if other in self.refused:
            self.put(name, StreamClosed(stream, "connection refused"))
            return
        passive = stream._replace(passive=True)
        self._far[name, stream] = (other, passive)
        self._far[other, passive] = (name, stream)
        self.put(name, StreamOpened(stream, "", ""), 1.5 * self.delay)
        self.put(other, StreamOpened(passive, "", ""))

    def cut(self, key: tuple[str, StreamId], reason: str, near: bool = True) -> None:
        """End a connection: the far end hears of it, and the near one if the network did it."""
        far = self._far.pop(key, None)
        if far is None:
            return
        self._far.pop(far, None)
        self.put(far[0], StreamClosed(far[1], reason))
        if near:
            self.put(key[0], StreamClosed(key[1], reason))

    def lose(self) -> None:
        """Lose all connections."""
        for key in [*self._far]:
            self.cut(key, "connection reset by peer")

    def put(self, name: str, event: Any, delay: float | None = None) -> None:
        self._order += 1
        at = self.now + (self.delay if delay is None else delay)
        heapq.heappush(self._queue, (at, self._order, name, event))

    def run(self, seconds: float) -> None:
        """Run until this time has passed."""
        end = self.now + seconds
        for _ in range(200_000):
            due = [
                (deadline, name)
                for name, one in self.ends.items()
                if (deadline := one.process.timers.next_deadline()) is not None
            ]
            timer = min(due, default=(end + 1, ""))
            if self._queue and self._queue[0][0] <= timer[0]:
                at, _, name, event = self._queue[0]
                if at > end:
                    break
                heapq.heappop(self._queue)
                self.now = max(self.now, at)
                self.perform(name, self.ends[name].tell(event, self.now))
            else:
                if timer[0] > end:
                    break
                self.now = max(self.now, timer[0])
                self.perform(timer[1], self.ends[timer[1]].tick(self.now))
        else:
            raise AssertionError("it does not come to rest")
        self.now = end

    @property
    def up(self) -> bool:
        states = [one.state for one in self.ends.values()]
        return states == [BgpState.ESTABLISHED] * 2
