"""The edge of the streams of one protocol: does what its engine asks for, and tells what happens.

Within a turn of the loop all inputs are passed on together, as packets are, and what the engine
sends is collected, so that one call sends it. No buffer grows without bound: the engine counts what
is unsent (``StreamSent``), and stops reading (``ReadStream``) before it has too much; one call
reads ``RECEIVE_SIZE`` at most.

When the daemon ends, an engine sends a farewell and closes its streams, which then have until the
daemon has ended to be read. In a graceful restart nothing is sent: the neighbor sees that the
connection has ended, and keeps forwarding (RFC 4724 §4.2).
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from fared.core.streams import (
    AdvertiseRouter,
    CloseStream,
    Connect,
    Listen,
    Listener,
    ReadStream,
    SendStream,
    StreamClosed,
    StreamId,
    StreamInput,
    StreamOpened,
    StreamOutput,
    StreamReceived,
    StreamSent,
    unanswered,
)
from fared.daemon.loop.streams.advertising import Advertising
from fared.daemon.loop.streams.leaving import LeavingStreams
from fared.daemon.loop.streams.listening import Listening
from fared.daemon.loop.streams.pump import WRITE, Pump
from fared.daemon.loop.streams.stream import TcpStream
from fared.kernel import tcp
from fared.kernel.arrived import count_error, receive_buffer
from fared.kernel.reopening import Report, ignore

_CONNECT_WITHIN: Final = 20.0
"""Seconds until a neighbor that does not answer is given up; most engines have less patience."""
_CLOSED: Final = "it closed the connection"
_LAST_READS: Final = 4
"""Reads of a connection that failed: more than an engine takes at once."""
_MOST_OF_NEIGHBOR: Final = 4
"""Connections that a neighbor may have open: two, but that of a former life may not have ended."""


class StreamEdge:
    """Sockets of one protocol that has streams.

    ``take`` passes inputs to the engine, ``flush`` executes what follows; ``links`` are the names
    of interfaces by index. ``make`` makes sockets.
    """

    def __init__(
        self,
        take: Callable[[Iterable[StreamInput]], None],
        flush: Callable[[], None],
        links: Callable[[], Iterable[tuple[int, str]]],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        *,
        report: Report = ignore,
        make: tcp.MakeSocket = socket.socket,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.received = 0
        """Bytes that were read."""
        self._take, self._flush, self._links, self._make = take, flush, links, make
        self._loop = asyncio.get_running_loop()
        self._pump = Pump(flush)
        self._listening = Listening(
            self._pump,
            self._accepted,
            self.counters,
            link_name=lambda index: dict(links()).get(index),
            make=make,
            log=log,
        )
        self._advertising = Advertising(
            self._pump, self._tell, self.counters, make=make, report=report
        )
        self._streams: dict[StreamId, TcpStream] = {}
        self._timers: dict[StreamId, asyncio.TimerHandle] = {}
        self._told: list[StreamInput] = []
        """Inputs of the next turn."""
        self._unwritten: dict[TcpStream, None] = {}
        self._first: dict[TcpStream, None] = {}
        """Those that are read in the next turn."""
        self._turn: asyncio.Handle | None = None
        self._numbers = 0
        self._buffer = receive_buffer()
        self._leaving = LeavingStreams(self._buffer)

    def perform(self, output: StreamOutput) -> None:
        """Do what the engine asks for. Raises PrivilegeError."""
        match output:
            case SendStream(number, data):
                if (found := self._streams.get(number)) is not None:
                    found.put(data)
                    self._unwritten[found] = None
                    self._soon()
            case ReadStream(number, wanted):
                if (found := self._streams.get(number)) is not None:
                    if wanted and found.reads:
                        self._first[found] = None
                        self._soon()
                    found.read_on(wanted=wanted)
            case Connect():
                self._connect(output)
            case CloseStream(number):
                self._close(number)
            case Listen():
                self._listening.listen(output)
                self._change_keys(output)
            case AdvertiseRouter():
                self._advertising.advertise(output)

    def read_all(self) -> None:
        """Process all that has come, after the loop was delayed."""
        self._pump.turn(float("inf"))
        self.read_quiet()

    def read_quiet(self) -> None:
        """Process what quiet neighbors have sent."""
        for stream in [one for one in self._streams.values() if one.quiet]:
            self._read(stream)
        self._flush()

    def close_all(self) -> None:
        """Close everything, without another byte."""
        self._listening.close()
        self._advertising.close()
        for timer in (*self._timers.values(), self._turn):
            if timer is not None:
                timer.cancel()
        for stream in self._streams.values():
            stream.close()
        self._leaving.close()
        self._pump.close()
        for table in (self._streams, self._timers, self._unwritten):
            table.clear()

    # -- turns ------------------------------------------------------------------------------

    def _tell(self, event: StreamInput) -> None:
        """Pass an input on, in a turn of the pump."""
        self._take((event,))

    def _soon(self) -> None:
        if self._turn is None:
            self._turn = self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """Write what was collected, and tell what could not be told before."""
        self._turn = None
        unwritten, self._unwritten = self._unwritten, {}
        told, self._told = self._told, []
        first, self._first = self._first, {}
        for stream in unwritten:
            self._write(stream)
        self._take(told)
        for stream in first:
            if self._streams.get(stream.id) is stream and not stream.connecting:
                self._read(stream)
        self._flush()

    # -- opening ----------------------------------------------------------------------------

    def _connect(self, wanted: Connect) -> None:
        number, transport = wanted.stream, wanted.transport
        try:
            sock = tcp.connecting(self._make, transport, self._index_of(transport.link))
        except OSError as error:
            count_error(self.counters, "connect-error", error)
            self._told.append(StreamClosed(number, _words(error)))
            self._soon()
            return
        stream = self._streams[number] = TcpStream(number, transport, sock)
        stream.watch(self._pump, partial(self._ready, stream))
        self._timers[number] = self._loop.call_later(_CONNECT_WITHIN, self._give_up, stream)

    def _index_of(self, link: str | None) -> int:
        """The index of an interface; 0: none is named. Raises OSError."""
        if link is None:
            return 0
        for index, name in self._links():
            if name == link:
                return index
        raise OSError(errno.ENODEV, f"there is no interface {link}")

    def _give_up(self, stream: TcpStream) -> None:
        self.counters["connect-error-ETIMEDOUT"] += 1
        self._drop(stream, unanswered(stream.transport))
        self._flush()

    def _accepted(self, listener: Listener, made: socket.socket) -> bool:
        """Take the connection of a neighbor, unless it has too many."""
        peer = listener.peer
        if sum(one.passive and one.peer == peer for one in self._streams) >= _MOST_OF_NEIGHBOR:
            return False
        self._numbers += 1
        number = StreamId(peer, passive=True, number=self._numbers)
        stream = self._streams[number] = TcpStream(number, listener.transport, made)
        stream.watch(self._pump, partial(self._ready, stream))
        self.counters["accepted"] += 1
        self._opened(stream)
        return True

    def _opened(self, stream: TcpStream) -> None:
        """Tell of a connection that is there, or why it is not."""
        timer = self._timers.pop(stream.id, None)
        if timer is not None:
            timer.cancel()
        try:
            stream.opened()
            local, remote = stream.sock.getsockname()[0], stream.sock.getpeername()[0]
        except OSError as error:
            count_error(self.counters, "connect-error", error)
            self._drop(stream, _words(error))
            return
        self._tell(StreamOpened(stream.id, local, remote))

    def _change_keys(self, wanted: Listen) -> None:
        """Use new keys for connections that are open: they stay, if the neighbor changes, too."""
        keys = {one.peer: one.transport for one in wanted.listeners}
        for stream in self._streams.values():
            new = keys.get(stream.id.peer)
            old = stream.transport
            if new is None or new.remote != old.remote or new.key == old.key:
                continue
            try:
                tcp.set_key(stream.sock, new.remote, new.key)
            except OSError as error:
                count_error(self.counters, "key-error", error)
            else:
                stream.transport = replace(old, key=new.key)

    # -- open -------------------------------------------------------------------------------

    def _ready(self, stream: TcpStream, events: int) -> None:
        """Process a socket that can be written or read, or is broken."""
        if stream.connecting:
            self._opened(stream)
            return
        if stream.leaving:
            self._leaving.ready(stream)
            return
        if events & WRITE:
            self._write(stream)
        if self._streams.get(stream.id) is stream and events & ~WRITE:
            self._read(stream)

    def _write(self, stream: TcpStream) -> None:
        """Send, and tell how much; what came before an error is still passed on."""
        try:
            sent = stream.write()
        except OSError as error:
            self._break(stream, error)
            return
        if sent:
            self._tell(StreamSent(stream.id, sent))

    def _read(self, stream: TcpStream) -> bool:
        """Read once, if that is wanted; whether there may be more."""
        if not stream.reads:  # it is broken
            error = stream.error()
            self._drop(stream, _words(error) if error.errno else _CLOSED)
            return False
        try:
            data = stream.read(self._buffer)
        except BlockingIOError:
            return False
        except OSError as error:
            self._drop(stream, _words(error))
            return False
        if not data:
            self._drop(stream, _CLOSED)
            return False
        self.received += len(data)
        stream.heard(data, self._loop.time())
        self._tell(StreamReceived(stream.id, data))
        return True

    def _break(self, stream: TcpStream, error: OSError) -> None:
        """Pass on what had come on a connection that failed: it may say why."""
        for _ in range(_LAST_READS):
            if not stream.reads or not self._read(stream):
                break
        if self._streams.get(stream.id) is stream:
            self._drop(stream, _words(error))

    def _drop(self, stream: TcpStream, reason: str) -> None:
        """Close a stream, and tell why."""
        self._forget(stream)
        stream.close()
        self._tell(StreamClosed(stream.id, reason))

    def _forget(self, stream: TcpStream) -> None:
        del self._streams[stream.id]
        self._unwritten.pop(stream, None)
        timer = self._timers.pop(stream.id, None)
        if timer is not None:
            timer.cancel()

    def _close(self, number: StreamId) -> None:
        """Close a stream for the engine, which is told nothing of it any more."""
        self._told = [one for one in self._told if getattr(one, "stream", None) != number]
        stream = self._streams.get(number)
        if stream is None:
            return
        self._forget(stream)
        if stream.connecting:
            stream.close()
        else:
            self._leaving.add(stream)


def _words(error: OSError) -> str:
    """An error of the kernel within a sentence."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
