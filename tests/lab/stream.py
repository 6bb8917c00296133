"""A stream of numbered UDP packets between two hosts, and a count of those that were lost."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
import time
from typing import Self

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.ranks import rank_of

RATE = 1000
"""Packets/s, where a test does not choose another rate."""
_PORT, _FIRST_SOURCE = 4791, 20_000
_UDP, _NUMBER = struct.Struct("!HHHH"), struct.Struct("!I")
_SO_RCVBUFFORCE, _BUFFER = 33, 16 << 20
"""A receiver that waits for a processor loses nothing: room for all packets of a test."""
_SILENCE = 1.0


class Stream:
    """Sends to an address of another host until ``finish``, which ``with`` calls at its end.

    Source ports rotate: ``flows`` flows are hashed over all paths.
    """

    def __init__(
        self, source: Netns, sink: Netns, target: str, *, flows: int = 1, rate: int = RATE
    ) -> None:
        self._flows, self._rate = flows, rate
        self._raw = source.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        self._raw.connect((target, 0))
        self._sink = sink.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self._sink.bind(("", _PORT))
        self._sink.settimeout(_SILENCE)
        self._over = threading.Event()
        self._arrived: set[int] = set()
        self.sent = 0
        self._threads = [threading.Thread(target=work) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    @classmethod
    def between(
        cls, fabric: Fabric, source: str, destination: str, *, flows: int = 1, rate: int = RATE
    ) -> Self:
        """Send from one host of a fabric to another."""
        far = rank_of(fabric.plan, destination)
        ends = (fabric.node(source).netns, fabric.node(far.host).netns)
        return cls(*ends, str(far.address()), flows=flows, rate=rate)

    @property
    def lost(self) -> int:
        """The number of packets not received; during the stream it includes packets in flight."""
        return self.sent - len(self._arrived)

    @property
    def gap(self) -> float:
        """The longest gap, in seconds, by send time, from which no packet arrived."""
        arrived = [-1, *sorted(self._arrived), self.sent]
        gaps = (later - sooner for sooner, later in itertools.pairwise(arrived))
        return (max(gaps) - 1) / self._rate

    def missing(self, first: int, last: int) -> int:
        """How many of the packets sent as number ``first`` to before ``last`` have not arrived."""
        return last - first - sum(number in self._arrived for number in range(first, last))

    def flowing(self) -> bool:
        """Whether a packet sent in the last 50 ms has arrived."""
        return self.sent > 0 and self.sent - max(self._arrived, default=-99) < self._rate * 0.05

    def finish(self) -> None:
        """Stop sending, and wait for packets in flight."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._raw.close()
        self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def _send(self) -> None:
        begun = time.monotonic()
        length = _UDP.size + _NUMBER.size
        while not self._over.wait(0.002):
            due = int((time.monotonic() - begun) * self._rate)
            while self.sent < due:
                head = _UDP.pack(_FIRST_SOURCE + self.sent % self._flows, _PORT, length, 0)
                with contextlib.suppress(OSError):
                    self._raw.send(head + _NUMBER.pack(self.sent))
                self.sent += 1

    def _receive(self) -> None:
        while True:
            try:
                self._arrived.add(_NUMBER.unpack(self._sink.recv(64))[0])
            except TimeoutError:
                if self._over.is_set():
                    return
