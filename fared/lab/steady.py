"""Steady load: paced UDP flows that do not yield when links are full.

TCP takes what is left, and so says little about how a fabric would carry a given load. Here each
stream sends at a rate of its own, one packet of each of its flows after the other, whatever
happens to them. A process apart from the caller's sends them, so that neither slows the other.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address

from fared.core.units import BytesPerSecond
from fared.lab.errors import LabError
from fared.lab.fabric import Fabric
from fared.lab.namespaces import Netns

OVERHEAD = 14 + 20 + 8
"""Bytes of the Ethernet, IPv4 and UDP headers, which a link carries besides the payload."""
_UDP = struct.Struct("!HHHH")
_PORT = 4791
_FIRST_SOURCE_PORT = 1024
_SOURCE_PORTS = range(_FIRST_SOURCE_PORT, 65536)
_UDP_SEGMENT = 103
_INET = socket.AF_INET
_TICK = 0.002
_MOST_BEHIND = 0.05
_STOP_DEADLINE = 5.0

_SendOne = Callable[[], int]


@dataclass(frozen=True)
class Stream:
    """Load from a node to an address of another: ``rate`` is bytes/s on the wire.

    Its packets, ``payload`` bytes without headers, belong to its ``flows`` in turn, each with a
    source port of its own; ``segments`` of one flow at once cost little more than one. With a
    ``period``, seconds, it sends in the first half of each.
    """

    source: str
    target: str
    address: IPv4Address
    rate: BytesPerSecond
    flows: int = 1
    payload: int = 1400
    segments: int = 1
    period: float | None = None

    def due(self, now: float) -> float:
        """Return how many times to send until ``now``, seconds after the beginning."""
        seconds = now
        if self.period is not None:
            whole, rest = divmod(now, self.period)
            seconds = whole * self.period / 2 + min(rest, self.period / 2)
        return seconds * self.rate / (self.payload + OVERHEAD) / self.segments


def between_hosts(
    fabric: Fabric, source: str, target: str, rate: BytesPerSecond, flows: int
) -> Stream:
    """Return the stream from one host to another. Raises LabError."""
    _, port = fabric.plan.leaf_of(target)
    return Stream(source, target, port.peer_address, rate, flows)


def through(fabric: Fabric, source: str, via: str, leaf: str, rate: BytesPerSecond) -> Stream:
    """Return the stream from a host to a leaf that no weights can lead over another spine.

    It goes to the leaf's own address on its link with the spine ``via``: from any other leaf the
    one shortest path there leads through that spine. Raises LabError.
    """
    address = fabric.plan.ports_between(leaf, via)[0].address.ip
    return Stream(source, leaf, address, rate)


@contextmanager
def steady(fabric: Fabric, streams: Sequence[Stream], seed: int = 0) -> Iterator[None]:
    """Send all streams until the context ends. Raises LabError when sockets cannot be had."""
    with ExitStack() as stack:
        for target in dict.fromkeys(stream.target for stream in streams):
            sink = stack.enter_context(fabric.node(target).netns.socket(_INET, socket.SOCK_DGRAM))
            sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            try:
                sink.bind(("", _PORT))
            except OSError as error:
                raise LabError(f"{target}: UDP port {_PORT}: {error.strerror}") from error
        draw = random.Random(seed)
        senders = [_Sender(fabric, stream, draw, stack) for stream in streams]
        process = multiprocessing.get_context("fork").Process(target=_send, args=(senders,))
        process.start()
        try:
            yield
        finally:
            process.terminate()
            process.join(_STOP_DEADLINE)
            if process.is_alive():
                process.kill()
                process.join()


class _Sender:
    """One stream, in the hands of the sending process."""

    def __init__(
        self, fabric: Fabric, stream: Stream, draw: random.Random, stack: ExitStack
    ) -> None:
        if not 1 <= stream.flows <= len(_SOURCE_PORTS):
            raise LabError(f"between 1 and {len(_SOURCE_PORTS)} flows, not {stream.flows}")
        self._stream = stream
        self._next = draw.random()  # streams of one rate do not send in step
        ports = draw.sample(_SOURCE_PORTS, stream.flows)
        netns = fabric.node(stream.source).netns
        connect = _segmented if stream.segments > 1 else _raw
        self._sends = connect(netns, stream, ports, stack)
        self._flow = 0

    def catch_up(self, now: float) -> None:
        """Send what is due; what is due for long has missed its time."""
        self._next = max(self._next, self._stream.due(now - _MOST_BEHIND))
        due = self._stream.due(now)
        while self._next <= due:
            self._next += 1
            # A full queue at the host, or no route: lost, as it is on the way.
            with contextlib.suppress(OSError):
                self._sends[self._flow]()
            self._flow = (self._flow + 1) % len(self._sends)


def _raw(netns: Netns, stream: Stream, ports: Sequence[int], stack: ExitStack) -> list[_SendOne]:
    """One raw socket for all flows: a source port is a field to fill in, not a socket to open."""
    raw = stack.enter_context(netns.socket(_INET, socket.SOCK_RAW, socket.IPPROTO_UDP))
    raw.connect((str(stream.address), 0))
    raw.setblocking(False)
    payload, length = bytes(stream.payload), _UDP.size + stream.payload
    # Checksum 0: none, as RFC 768 allows over IPv4.
    headers = [_UDP.pack(port, _PORT, length, 0) for port in ports]
    return [partial(raw.sendmsg, (header, payload)) for header in headers]


def _segmented(
    netns: Netns, stream: Stream, ports: Sequence[int], stack: ExitStack
) -> list[_SendOne]:
    """A socket for each flow, and the kernel cuts what it is given into packets (udp(7))."""
    sends: list[_SendOne] = []
    for port in ports:
        sender = stack.enter_context(netns.socket(_INET, socket.SOCK_DGRAM))
        sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, stream.payload)
        sender.bind(("", port))
        sender.connect((str(stream.address), _PORT))
        sender.setblocking(False)
        sends.append(partial(sender.send, bytes(stream.payload * stream.segments)))
    return sends


def _send(senders: Sequence[_Sender]) -> None:
    """Be the sending process, until it is ended."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError):  # other programs must not thin the load out
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    begun = time.monotonic()
    while True:
        now = time.monotonic() - begun
        for sender in senders:
            sender.catch_up(now)
        time.sleep(_TICK)
