"""A small edge for BGP sessions: TCP in a namespace, for tests beside real peers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

from fared.core.streams import (
    CloseStream,
    Connect,
    SendStream,
    StreamClosed,
    StreamId,
    StreamOpened,
    StreamReceived,
    StreamSent,
)
from fared.extensions.lab.namespaces import Netns
from tests.bgp_session.net import PEER, Speaker
from tests.waiting import loop_until

_BACKLOG = 8
_READ = 65536


class Edge:
    """Connects one session with the neighbor of a link, both ways at once."""

    def __init__(self, netns: Netns, speaker: Speaker, local: str) -> None:
        self.speaker, self._netns, self._local = speaker, netns, local
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._sockets: dict[StreamId, socket.socket] = {}
        self._queues: dict[StreamId, asyncio.Queue[bytes | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._accepted = 0

    def start(self) -> None:
        """Listen, and begin."""
        server = self._socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((self._local, 179))
        server.listen(_BACKLOG)
        self._spawn(self._accept(server))
        self.speaker.process.now = self._now
        self.speaker.session.start()
        self.perform(self.speaker.outputs())

    async def close(self) -> None:
        """End the session and all connections."""
        self.speaker.session.stop("the test is over")
        self.perform(self.speaker.outputs())
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self._sockets.values():
            one.close()

    @property
    def _now(self) -> float:
        return self._loop.time() - self._begun

    def _socket(self) -> socket.socket:
        made = self._netns.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setblocking(False)
        return made

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def tell(self, event: Any) -> None:
        """Pass an input on, and do what follows."""
        self.perform(self.speaker.tell(event, self._now))

    def perform(self, outputs: list[Any]) -> None:
        """Do what the session wants, and wake it when it is due."""
        for one in outputs:
            match one:
                case Connect():
                    self._spawn(self._connect(one))
                case SendStream():
                    self._queues[one.stream].put_nowait(one.data)
                case CloseStream() if one.stream in self._queues:
                    self._queues[one.stream].put_nowait(None)
        if self._timer is not None:
            self._timer.cancel()
        deadline = self.speaker.process.timers.next_deadline()
        if deadline is not None:
            self._timer = self._loop.call_at(self._begun + deadline, self._tick)

    def _tick(self) -> None:
        self.perform(self.speaker.tick(self._now))

    async def _accept(self, server: socket.socket) -> None:
        with server:
            while True:
                made, _ = await self._loop.sock_accept(server)
                made.setblocking(False)
                self._accepted += 1
                self._opened(StreamId(PEER, passive=True, number=self._accepted), made)

    async def _connect(self, wanted: Connect) -> None:
        made = self._socket()
        try:
            await self._loop.sock_connect(made, (wanted.transport.remote, wanted.transport.port))
        except OSError as error:
            made.close()
            self.tell(StreamClosed(wanted.stream, error.strerror or "not connected"))
            return
        self._opened(wanted.stream, made)

    def _opened(self, stream: StreamId, made: socket.socket) -> None:
        self._sockets[stream], self._queues[stream] = made, asyncio.Queue()
        self._spawn(self._read(stream, made))
        self._spawn(self._write(stream, made))
        self.tell(StreamOpened(stream, self._local, ""))

    async def _read(self, stream: StreamId, made: socket.socket) -> None:
        reason = "it closed the connection"
        try:
            while data := await self._loop.sock_recv(made, _READ):
                self.tell(StreamReceived(stream, data))
                await loop_until(lambda: self._wants(stream))
        except OSError as error:
            reason = error.strerror or reason
        self._drop(stream)
        self.tell(StreamClosed(stream, reason))

    def _wants(self, stream: StreamId) -> bool:
        return stream not in self._sockets or self.speaker.session.reads(stream)

    async def _write(self, stream: StreamId, made: socket.socket) -> None:
        while (data := await self._queues[stream].get()) is not None:
            try:
                await self._loop.sock_sendall(made, data)
            except OSError:
                return  # the reader tells
            self.tell(StreamSent(stream, len(data)))
        with contextlib.suppress(OSError):  # it may have closed already
            made.shutdown(socket.SHUT_WR)
        self._drop(stream)

    def _drop(self, stream: StreamId) -> None:
        found = self._sockets.pop(stream, None)
        if found is not None:
            found.close()
