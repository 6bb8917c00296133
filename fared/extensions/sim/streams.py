"""Virtual TCP between simulated routers: streams that wait while a link is down or nobody reads.

A connection runs over one wire, between the addresses of its two ports. The far kernel takes
``BUFFER`` bytes that its router does not read; then the sender waits. A router that is killed
closes its connections, as a kernel does for a process; over a link that is down nobody hears of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

import msgspec

from fared.core.ids import FAMILY_IPV6, format_address
from fared.core.streams import (
    AdvertiseRouter,
    CloseStream,
    Connect,
    Listen,
    Listener,
    ReadStream,
    RouterHeard,
    SendStream,
    StreamClosed,
    StreamId,
    StreamInput,
    StreamKey,
    StreamOpened,
    StreamOutput,
    StreamReceived,
    StreamSent,
    Transport,
)

if TYPE_CHECKING:
    from fared.extensions.sim.port import Port

BUFFER = 131_072
_READ = 65_536
_TIMEOUT = 1.0
"""Seconds after which an attempt fails that nobody answers."""
_Place = tuple[str, str]
"""A router and a protocol of it."""


class Wires(Protocol):
    """What streams need of the network."""

    now: float
    delay: float

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Schedule an action."""

    def tell(self, place: _Place, event: StreamInput) -> None:
        """Pass an input to a protocol of a router, if that runs."""

    def ports(self, name: str) -> Iterator[Port]:
        """The ports of a router."""


class StreamEnd(msgspec.Struct, eq=False):
    """One end of a connection, and what it has sent that the far end has not read."""

    place: _Place
    stream: StreamId
    port: Port
    far: StreamEnd | None = None
    queue: deque[bytes] = msgspec.field(default_factory=deque)
    waiting: int = 0
    """Bytes in the queue, and those of them that the far kernel has not taken."""
    untaken: int = 0
    reads: bool = True
    closing: bool = False
    key: StreamKey | None = None

    @property
    def connected(self) -> bool:
        """Whether bytes pass now."""
        return self.port.up and (self.far is None or self.far.key == self.key)


class VirtualStreams:
    """All connections of a network."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires
        self.ends: dict[tuple[_Place, StreamId], StreamEnd] = {}
        self._listen: dict[_Place, Listen] = {}
        self._advertising: dict[tuple[_Place, int], int] = {}
        self._accepted = 0

    def perform(self, place: _Place, output: StreamOutput) -> None:
        """Do what an engine wants of its streams."""
        match output:
            case Connect(stream, transport):
                self._connect(place, stream, transport)
            case SendStream(stream, data):
                end = self.ends.get((place, stream))
                if end is not None:
                    end.queue.append(data)
                    end.waiting += len(data)
                    end.untaken += len(data)
                    self._pump(end)
            case CloseStream(stream):
                self._close(place, stream)
            case ReadStream(stream, wanted):
                end = self.ends.get((place, stream))
                if end is not None:
                    end.reads = wanted
                    if end.far is not None:
                        self._pump(end.far)
            case Listen():
                self._listen[place] = output
                self._change_keys(place, output)
            case AdvertiseRouter():
                self._advertise(place, output)

    def _change_keys(self, place: _Place, listen: Listen) -> None:
        """Use the present keys for connections that are open, too."""
        keys = {one.peer: one.transport.key for one in listen.listeners}
        for end in list(self.ends.values()):
            number = end.stream.peer
            if end.place == place and number in keys and end.key != keys[number]:
                end.key = keys[number]
                self._pump(end)
                if end.far is not None:
                    self._pump(end.far)

    def killed(self, name: str) -> None:
        """A router's process has ended: its kernel closes the connections."""
        for key in [key for key in self.ends if key[0][0] == name]:
            self._close(*key)
        for place in [place for place in self._listen if place[0] == name]:
            del self._listen[place]
        for at in [at for at in self._advertising if at[0][0] == name]:
            del self._advertising[at]

    def link_changed(self) -> None:
        """A link is down or up: what waits may pass."""
        for end in list(self.ends.values()):
            self._pump(end)

    # -- connections ----------------------------------------------------------------------------

    def _connect(self, place: _Place, stream: StreamId, transport: Transport) -> None:
        port, peer = self._way(place[0], transport)
        if port is None or peer is None or not port.up:
            self._fail(place, stream, "no route to host")
            return
        far, listener = self._listener(peer, place[1], port)
        if listener is None:
            self._fail(place, stream, "connection refused")
            return
        if listener.transport.key != transport.key:
            self._fail(place, stream, "timed out", _TIMEOUT)
            return
        self._accepted += 1
        passive = StreamId(listener.peer, passive=True, number=self._accepted)
        key = transport.key
        near, other = StreamEnd(place, stream, port), StreamEnd(far, passive, peer)
        near.key = other.key = key
        near.far, other.far = other, near
        self.ends[place, stream], self.ends[far, passive] = near, other
        mine, theirs = transport.local or "", transport.remote
        self._tell(other, StreamOpened(passive, theirs, mine), 1.0)
        self._tell(near, StreamOpened(stream, mine, theirs), 1.5)

    def _fail(
        self, place: _Place, stream: StreamId, reason: str, seconds: float | None = None
    ) -> None:
        delay = self._wires.delay if seconds is None else seconds
        closed = StreamClosed(stream, reason)
        self._wires.at(self._wires.now + delay, lambda: self._wires.tell(place, closed))

    def _way(self, name: str, transport: Transport) -> tuple[Port | None, Port | None]:
        """Return the ports of both ends of the wire to an address."""
        for port in self._wires.ports(name):
            for peer in port.far if transport.link in (None, port.name) else ():
                if transport.remote in addresses(peer):
                    return port, peer
        return None, None

    def _listener(self, peer: Port, proto: str, port: Port) -> tuple[_Place, Listener | None]:
        """Return who accepts a connection from a port."""
        place, mine = (peer.node, proto), addresses(port)
        listen = self._listen.get(place)
        for listener in () if listen is None else listen.listeners:
            wanted = listener.transport
            if wanted.remote in mine and wanted.link in (None, peer.name):
                return place, listener
        return place, None

    def _close(self, place: _Place, stream: StreamId) -> None:
        end = self.ends.pop((place, stream), None)
        if end is not None:
            end.closing = True
            self._pump(end)

    def _tell(self, end: StreamEnd, event: StreamInput, delays: float = 1.0) -> None:
        """Tell an end what has happened, unless it is closed until then."""

        def tell() -> None:
            if self.ends.get((end.place, end.stream)) is end:
                if isinstance(event, StreamClosed):
                    del self.ends[end.place, end.stream]
                self._wires.tell(end.place, event)

        self._wires.at(self._wires.now + delays * self._wires.delay, tell)

    def _pump(self, end: StreamEnd) -> None:
        """Deliver what an end has sent, as far as the far end reads; tell what has gone."""
        far = end.far
        if far is None:
            return
        passing = end.connected
        while passing and far.reads and end.queue:
            data = self._portion(end)
            self._tell(far, StreamReceived(far.stream, data))
        taken = end.untaken - max(0, end.waiting - BUFFER) if passing else 0
        if taken > 0:
            end.untaken -= taken
            self._tell(end, StreamSent(end.stream, taken), 0.0)
        if end.closing and passing and not (end.queue and far.reads):
            far.far = None
            self._tell(far, StreamClosed(far.stream, "it closed the connection"))

    @staticmethod
    def _portion(end: StreamEnd) -> bytes:
        parts, size = [], 0
        while end.queue and size < _READ:
            parts.append(end.queue.popleft())
            size += len(parts[-1])
        end.waiting -= size
        return b"".join(parts)

    # -- router advertisements --------------------------------------------------------------------

    def _advertise(self, place: _Place, output: AdvertiseRouter) -> None:
        key = (place, output.ifindex)
        if output.address is None:
            self._advertising.pop(key, None)
            return
        self._advertising[key] = output.address
        ports = [port for port in self._wires.ports(place[0]) if port.ifindex == output.ifindex]
        for peer in (peer for port in ports for peer in port.far):
            other = ((peer.node, place[1]), peer.ifindex)
            address = self._advertising.get(other)
            if address is not None:
                self._hear(*other, output.address)
                self._hear(*key, address)

    def _hear(self, place: _Place, ifindex: int, address: int) -> None:
        heard = RouterHeard(ifindex, address)
        at = self._wires.now + self._wires.delay
        self._wires.at(at, lambda: self._wires.tell(place, heard))


def addresses(port: Port) -> list[str]:
    """Return the addresses of a port as text."""
    found = [format_address(one.family, one.address) for one in port.link().addresses]
    return [*found, format_address(FAMILY_IPV6, port.link_local)]
