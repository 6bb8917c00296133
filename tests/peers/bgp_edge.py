"""One BGP session on the daemon's edge of streams, in a namespace: for tests beside real peers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

from fared.core.streams import Listen, Listener, ReadStream, RouterHeard, StreamId, StreamOpened
from fared.daemon.loop.streams.edge import StreamEdge
from fared.extensions.lab.namespaces import Netns
from tests.bgp_session.net import PEER, Speaker


class Edge:
    """Connects one session with its neighbor, both ways at once; ``log`` are lines."""

    def __init__(
        self, netns: Netns, speaker: Speaker, links: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        self.speaker, self.links = speaker, links
        self.log: list[tuple[str, dict[str, Any]]] = []
        levels = ("info", "warning", "error")
        write = {level: lambda event, **rest: self.log.append((event, rest)) for level in levels}
        self.streams = StreamEdge(
            self._take, self._flush, links.items, SimpleNamespace(**write), make=netns.socket
        )
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self.heard: list[RouterHeard] = []
        self._outputs: list[Any] = []
        self._reads: dict[StreamId, bool] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Listen, and begin."""
        transport = self.speaker.session.settings.transport
        self.streams.perform(Listen((Listener(PEER, transport),), transport.port))
        self.speaker.process.now = self._now
        self.speaker.session.start()
        self.perform(self.speaker.outputs())

    async def close(self) -> None:
        """End the session and all connections."""
        self.speaker.session.stop("the test is over")
        self.perform(self.speaker.outputs())
        if self._timer is not None:
            self._timer.cancel()
        self.streams.close_all()

    @property
    def _now(self) -> float:
        return self._loop.time() - self._begun

    def _take(self, inputs: Iterable[Any]) -> None:
        for event in inputs:
            if isinstance(event, RouterHeard):
                self.heard.append(event)
                continue
            if isinstance(event, StreamOpened):
                self._reads[event.stream] = True
            self._outputs += self.speaker.tell(event, self._now)

    def perform(self, outputs: list[Any]) -> None:
        """Do what the session wants, as the runner does."""
        self._outputs += outputs
        self._flush()

    def _flush(self) -> None:
        while self._outputs:
            outputs, self._outputs = self._outputs, []
            for one in outputs:
                self.streams.perform(one)
        for stream, before in self._reads.items():
            reads = self.speaker.session.reads(stream)
            if reads is not before:
                self._reads[stream] = reads
                self.streams.perform(ReadStream(stream, wanted=reads))
        if self._timer is not None:
            self._timer.cancel()
        deadline = self.speaker.process.timers.next_deadline()
        if deadline is not None:
            self._timer = self._loop.call_at(self._begun + deadline, self._tick)

    def _tick(self) -> None:
        self.perform(self.speaker.tick(self._now))
