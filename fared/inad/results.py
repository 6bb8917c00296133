"""The way of a result from the root to the workers of a bit string."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from fared.ina.plan.model import BitString, Vertex, members

Data = bytes | bytearray | memoryview
Addresses = Mapping[Vertex, tuple[str, int]]


class Dissemination(Protocol):
    """Sends one packet to several workers."""

    def send(self, bits: BitString, data: Data, addresses: Addresses) -> None:
        """Send ``data``, valid during the call only, to the workers of ``bits``."""


class PacketSender:
    """The UDP socket, as far as it sends: what cannot be sent is counted, and repeated by workers.

    Two cases are known: no route after a failure, and a full queue.
    """

    def __init__(self, sock: socket.socket, counters: Counter[str]) -> None:
        self._sock, self._counters = sock, counters

    def send(self, data: Data, address: tuple[str, int]) -> None:
        """Send a packet."""
        try:
            self._sock.sendto(data, socket.MSG_DONTWAIT, address)
        except BlockingIOError:
            self._counters["queue-full"] += 1
        except OSError:
            self._counters["not-sent"] += 1


class UnicastReplication:
    """A copy for each worker. BIER (RFC 8279) would send one packet on each link."""

    def __init__(self, sender: PacketSender) -> None:
        self._sender = sender

    def send(self, bits: BitString, data: Data, addresses: Addresses) -> None:
        """Send a copy to each worker."""
        for bfr_id in members(bits):
            address = addresses.get(-bfr_id)
            if address is not None:
                self._sender.send(data, address)
