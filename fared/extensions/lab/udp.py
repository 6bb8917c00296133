"""UDP packets from host to host at an even rate, and the order in which they arrive.

Packets are built on a raw socket opened inside the host's namespace, where a source port is a field
of the packet and needs no socket of its own. A packet carries its flow and its number; while the
sender waits for its next packet, the process reads what has arrived.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from fared.extensions.lab.fabric import RunningNode
from fared.extensions.lab.packet_order import PacketOrder, packet_order, together

FIRST_SOURCE_PORT = 1024
SOURCE_PORTS = 60000
DESTINATION_PORT = 4791  # RoCEv2: the traffic of an AI fabric
DESTINATION_PORTS = 16
PAYLOAD = 64
LEAST_PAYLOAD, MOST_PAYLOAD = 8, 65000
MOST_FLOWS = SOURCE_PORTS * DESTINATION_PORTS
_UDP = struct.Struct("!HHHH")
_TAG = struct.Struct("!II")
"""Of a packet: its flow, and its number in the flow."""
_CHECKSUM_OFFSET = 6
_SMALL_BUFFER, _LARGE_BUFFER = 4096, 1 << 26
_SO_RCVBUFFORCE = 33
TICK = 0.002

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Stream:
    """Packets to send: ``repeats`` of each of ``flows``, in turn; ``rate`` in packets a second."""

    flows: int
    repeats: int = 1
    rate: int = 25_000
    payload: int = PAYLOAD


def five_tuples(flows: int) -> Iterator[tuple[int, int]]:
    """Yield (source port, destination port) pairs, all distinct."""
    for number in range(flows):
        yield (
            FIRST_SOURCE_PORT + number % SOURCE_PORTS,
            DESTINATION_PORT + number // SOURCE_PORTS,
        )


def send(
    node: RunningNode,
    target: Address,
    stream: Stream,
    idle: Callable[[], None] | None = None,
    *,
    source: Address | None = None,
) -> None:
    """Send at an even rate: in each tick the packets that are due. ``idle`` runs in between.

    ``source``: the address of the node, by which one with several NICs selects the NIC.
    """
    length = _UDP.size + stream.payload
    filling = bytes(stream.payload - _TAG.size)
    with node.netns.socket(_family(target), socket.SOCK_RAW, socket.IPPROTO_UDP) as raw:
        if target.version == 6:  # IPv6 requires the checksum; the kernel computes it
            raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_CHECKSUM, _CHECKSUM_OFFSET)
        if source is not None:
            raw.bind((str(source), 0))
        raw.connect((str(target), 0))
        begun = time.monotonic()
        number = 0
        for repeat in range(stream.repeats):
            for flow, (source_port, destination_port) in enumerate(five_tuples(stream.flows)):
                if number >= (time.monotonic() - begun) * stream.rate:
                    time.sleep(TICK)
                    if idle is not None:
                        idle()
                # Checksum 0 stands for none, which RFC 768 permits over IPv4.
                header = _UDP.pack(source_port, destination_port, length, 0)
                raw.send(header + _TAG.pack(flow, repeat) + filling)
                number += 1


class Arrivals:
    """The packets of a stream that the receiver's sockets hold, and those read from them."""

    def __init__(self, sockets: list[socket.socket], flows: int) -> None:
        """Read from these sockets."""
        self._sockets = sockets
        self._numbers: list[list[int]] = [[] for _ in range(flows)]
        self._buffer = bytearray(_TAG.size)

    def read(self) -> None:
        """Read all that has arrived; what is no packet of the stream is skipped."""
        for one in self._sockets:
            with suppress(BlockingIOError):
                while True:
                    if one.recv_into(self._buffer) == _TAG.size:
                        self._note(*_TAG.unpack(self._buffer))

    def _note(self, flow: int, number: int) -> None:
        if flow < len(self._numbers):
            self._numbers[flow].append(number)

    def order(self) -> PacketOrder:
        """Return the order of all flows together."""
        return together(packet_order(numbers) for numbers in self._numbers)


@contextmanager
def sinks(node: RunningNode, target: Address, flows: int = 0) -> Iterator[Arrivals]:
    """Keep the destination ports open, so that the host does not answer packets with ICMP.

    With ``flows``, the sockets hold their packets for ``Arrivals``; otherwise the order of packets
    is not of interest, and the kernel drops them.
    """
    with ExitStack() as stack:
        sockets = []
        for port in range(DESTINATION_PORT, DESTINATION_PORT + DESTINATION_PORTS):
            sink = stack.enter_context(node.netns.socket(_family(target), socket.SOCK_DGRAM))
            sink.setblocking(False)
            if flows:
                sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _LARGE_BUFFER)
                sockets.append(sink)
            else:
                sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
            sink.bind(("", port))
        yield Arrivals(sockets, flows)


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6
