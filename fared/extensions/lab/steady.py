"""Steady load: paced UDP flows without congestion control.

TCP adapts to the available capacity, so it cannot offer a fabric a given load. Here each stream
sends at a fixed rate, one packet of each of its flows in turn, regardless of loss. A separate
process sends all streams, so that sender and caller do not delay each other.
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
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.ranks import rank_of

OVERHEAD = 14 + 20 + 8
"""Bytes of the Ethernet, IPv4 and UDP headers of a packet."""
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
class SteadyStream:
    """Load from a node to an address of another: ``rate`` is bytes/s on the wire.

    Its packets, ``payload`` bytes without headers, belong to its ``flows`` in turn, each with its
    own source port; sending ``segments`` of one flow at once costs little more than sending one.
    With a ``period``, seconds, it sends in the first half of each period.
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
        """Return how many times to send until ``now``, in seconds since the start."""
        seconds = now
        if self.period is not None:
            whole, rest = divmod(now, self.period)
            seconds = whole * self.period / 2 + min(rest, self.period / 2)
        return seconds * self.rate / (self.payload + OVERHEAD) / self.segments


def between_hosts(
    fabric: Fabric, source: str, target: str, rate: BytesPerSecond, flows: int
) -> SteadyStream:
    """Return the stream from one host to another. Raises LabError."""
    return SteadyStream(source, target, rank_of(fabric.plan, target).nic.address.ip, rate, flows)


def through(fabric: Fabric, source: str, via: str, leaf: str, rate: BytesPerSecond) -> SteadyStream:
    """Return a stream from a host to a leaf through the spine ``via``, regardless of weights.

    Its destination is the leaf's address on its link to ``via``: from any other leaf, the only
    shortest path to it leads through that spine. Raises LabError.
    """
    address = fabric.plan.ports_between(leaf, via)[0].address.ip
    return SteadyStream(source, leaf, address, rate)


@contextmanager
def steady(fabric: Fabric, streams: Sequence[SteadyStream], seed: int = 0) -> Iterator[None]:
    """Send all streams until the context ends. Raises LabError if a socket cannot be opened."""
    with ExitStack() as stack:
        for target in dict.fromkeys(stream.target for stream in streams):
            sink = stack.enter_context(fabric.node(target).netns.socket(_INET, socket.SOCK_DGRAM))
            sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            try:
                sink.bind(("", _PORT))
            except OSError as error:
                raise LabError(f"{target}: UDP port {_PORT}: {error.strerror}") from error
        draw = random.Random(seed)
        senders = [_Paced(fabric, stream, draw, stack) for stream in streams]
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


class _Paced:
    """One stream in the sending process."""

    def __init__(
        self, fabric: Fabric, stream: SteadyStream, draw: random.Random, stack: ExitStack
    ) -> None:
        if not 1 <= stream.flows <= len(_SOURCE_PORTS):
            raise LabError(f"between 1 and {len(_SOURCE_PORTS)} flows, not {stream.flows}")
        self._stream = stream
        self._next = draw.random()  # a random phase: streams of one rate do not synchronise
        ports = draw.sample(_SOURCE_PORTS, stream.flows)
        netns = fabric.node(stream.source).netns
        connect = _segmented if stream.segments > 1 else _raw
        self._sends = connect(netns, stream, ports, stack)
        self._flow = 0

    def catch_up(self, now: float) -> None:
        """Send the packets that are due; skip those long overdue."""
        self._next = max(self._next, self._stream.due(now - _MOST_BEHIND))
        due = self._stream.due(now)
        while self._next <= due:
            self._next += 1
            # A full queue at the host, or no route: lost, like packets dropped on the path.
            with contextlib.suppress(OSError):
                self._sends[self._flow]()
            self._flow = (self._flow + 1) % len(self._sends)


def _raw(
    netns: Netns, stream: SteadyStream, ports: Sequence[int], stack: ExitStack
) -> list[_SendOne]:
    """One raw socket for all flows: each packet carries the source port of its flow."""
    raw = stack.enter_context(netns.socket(_INET, socket.SOCK_RAW, socket.IPPROTO_UDP))
    raw.connect((str(stream.address), 0))
    raw.setblocking(False)
    payload, length = bytes(stream.payload), _UDP.size + stream.payload
    # Checksum 0: none, as RFC 768 allows over IPv4.
    headers = [_UDP.pack(port, _PORT, length, 0) for port in ports]
    return [partial(raw.sendmsg, (header, payload)) for header in headers]


def _segmented(
    netns: Netns, stream: SteadyStream, ports: Sequence[int], stack: ExitStack
) -> list[_SendOne]:
    """One socket per flow; the kernel splits data into packets (UDP_SEGMENT, udp(7))."""
    sends: list[_SendOne] = []
    for port in ports:
        sender = stack.enter_context(netns.socket(_INET, socket.SOCK_DGRAM))
        sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, stream.payload)
        sender.bind(("", port))
        sender.connect((str(stream.address), _PORT))
        sender.setblocking(False)
        sends.append(partial(sender.send, bytes(stream.payload * stream.segments)))
    return sends


def _send(senders: Sequence[_Paced]) -> None:
    """Run the sending process until it is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError):  # other programs must not reduce the load
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    begun = time.monotonic()
    while True:
        now = time.monotonic() - begun
        for sender in senders:
            sender.catch_up(now)
        time.sleep(_TICK)
