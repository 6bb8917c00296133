"""A UDP socket that sends and receives trains: packets of one size to one address in one call.

A worker or root often has several packets for one address. The kernel takes them as one buffer
(``UDP_SEGMENT``), routes them once, and parts them where a link or a queue requires it, at the
latest when a socket without ``UDP_GRO`` receives them. Trains are short: a shaper that cannot take
one whole parts it, too, and other traffic waits no longer behind one than behind a TCP segment.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

Buffer = bytes | memoryview
Address = tuple[str, int]
Addresses = tuple[Address, ...]
Take = Callable[[Address, memoryview, int], None]
"""Gets the source of a train, its bytes, and those of each packet; the last may be shorter."""

_MOST_TRAIN: Final = 28_000
"""Bytes of a train: three jumbo frames, nineteen of the usual size."""
_MOST_PACKET: Final = 1 << 16
_SOL_UDP, _UDP_SEGMENT, _UDP_GRO = socket.IPPROTO_UDP, 103, 104
_SIZE = struct.Struct("=H")
_STEP = struct.Struct("=i")
_ROOM: Final = socket.CMSG_SPACE(_STEP.size)
_NO_TRAINS = (errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.EOPNOTSUPP)
"""What the kernel answers to a train that some device or route does not take."""

Packet = tuple[int, tuple[Buffer, ...]]
"""Its bytes, and the buffers that have them."""


class TrainSocket:
    """The socket. What cannot be sent is counted: workers repeat packets.

    Two cases are known: no route after a failure (``not-sent``), and a full queue (``queue-full``).
    """

    def __init__(self, sock: socket.socket, counters: Counter[str]) -> None:
        self._sock, self._counters = sock, counters
        self._trains = True
        self._queues: dict[Addresses, list[Packet]] = {}
        self._buffer = bytearray(_MOST_PACKET)
        self._view, self._buffers = memoryview(self._buffer), [self._buffer]
        with contextlib.suppress(OSError):
            sock.setsockopt(_SOL_UDP, _UDP_GRO, 1)

    # -- sending ----------------------------------------------------------------------------------

    def put(self, addresses: Addresses, size: int, *buffers: Buffer) -> None:
        """Queue a packet of ``size`` bytes for each address; its buffers must not change.

        It is sent by ``flush``.
        """
        queue = self._queues.get(addresses)
        if queue is None:
            queue = self._queues[addresses] = []
        queue.append((size, buffers))

    def flush(self) -> None:
        """Send what is queued."""
        if not self._queues:
            return
        queues, self._queues = self._queues, {}
        for addresses, packets in queues.items():
            trains = [packets] if len(packets) == 1 else trains_of(packets)
            for train in trains:
                for address in addresses:
                    self._send(train, address)

    def _send(self, train: Sequence[Packet], address: Address) -> None:
        if len(train) > 1 and self._trains:
            step = _SIZE.pack(train[0][0])
            buffers = [buffer for _, parts in train for buffer in parts]
            told = [(_SOL_UDP, _UDP_SEGMENT, step)]
            try:
                self._sock.sendmsg(buffers, told, socket.MSG_DONTWAIT, address)
            except BlockingIOError:
                self._counters["queue-full"] += len(train)
                return
            except OSError as error:
                if error.errno not in _NO_TRAINS:
                    self._counters["not-sent"] += len(train)
                    return
                self._trains = False
            else:
                return
        for packet in train:
            self._send_one(packet, address)

    def _send_one(self, packet: Packet, address: Address) -> None:
        try:
            self._sock.sendmsg(packet[1], (), socket.MSG_DONTWAIT, address)
        except BlockingIOError:
            self._counters["queue-full"] += 1
        except OSError:
            self._counters["not-sent"] += 1

    # -- receiving --------------------------------------------------------------------------------

    def receive(self, take: Take, most: int) -> None:
        """Call ``take`` for ``most`` trains that wait, single packets too; valid in the call."""
        receive, buffers, view = self._sock.recvmsg_into, self._buffers, self._view
        for _ in range(most):
            try:
                size, told, _, source = receive(buffers, _ROOM, socket.MSG_DONTWAIT)
            except OSError:  # none waits
                return
            if not size:
                self._counters["empty"] += 1
                continue
            take(source, view[:size], _STEP.unpack(told[0][2])[0] if told else size)


def trains_of(packets: Sequence[Packet]) -> list[list[Packet]]:
    """Return packets in trains, in their order; the last packet of a train may be shorter."""
    found: list[list[Packet]] = []
    room = last = 0
    for packet in packets:
        size = packet[0]
        if not found or size > room or found[-1][0][0] != last or size > last:
            found.append([])
            room = _MOST_TRAIN
        found[-1].append(packet)
        room -= size
        last = size
    return found
