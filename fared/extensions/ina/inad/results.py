"""The way of a result from the root to the workers of a bit string.

``UnicastReplication`` sends a copy to each worker. ``BierReplication`` sends one packet of BIER
(RFC 8279) into the loopback, and the tables of the fabric copy it; that takes a packet socket, and
so CAP_NET_RAW. Repeated results, and what BIER does not reach, go by unicast.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.plan.model import BitString, Vertex, members
from fared.extensions.ina.trains import TrainSocket

Data = bytes | bytearray | memoryview
Addresses = Mapping[Vertex, tuple[str, int]]
_MOST_FRAMES = 256


class Dissemination(Protocol):
    """Sends one packet to several workers."""

    def send(self, bits: BitString, data: Data, addresses: Addresses, way: BierWay | None) -> bool:
        """Send ``data``, valid during the call only, to the workers of ``bits``.

        ``way``: by BIER if possible; return whether it went so.
        """


class UnicastReplication:
    """A copy for each worker."""

    def __init__(self, trains: TrainSocket) -> None:
        self._trains = trains
        self._last: tuple[BitString, Addresses, tuple[tuple[str, int], ...]] = (0, {}, ())
        """Most results go to the same workers as the one before: their addresses."""

    def send(self, bits: BitString, data: Data, addresses: Addresses, way: BierWay | None) -> bool:
        """Queue a copy for each worker."""
        del way
        last_bits, last_addresses, receivers = self._last
        if bits != last_bits or addresses is not last_addresses:
            found = (addresses.get(-bfr_id) for bfr_id in members(bits))
            receivers = tuple(address for address in found if address is not None)
            self._last = bits, addresses, receivers
        packet = bytes(data)  # the slot may be used again before it is sent
        self._trains.put(receivers, len(packet), packet)
        return False


class BierReplication:
    """One packet for all workers, from ``source``, the address and port of this process."""

    def __init__(
        self, otherwise: Dissemination, source: tuple[str, int], counters: Counter[str]
    ) -> None:
        """Open the packet socket. Raises OSError, without CAP_NET_RAW for example."""
        self._otherwise, self._source, self._counters = otherwise, source, counters
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._sock.bind(("lo", 0))
        except OSError:
            self._sock.close()
            raise
        self._frames: dict[tuple[int, BitString, int, int], tuple[BierWay, bytes]] = {}

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def send(self, bits: BitString, data: Data, addresses: Addresses, way: BierWay | None) -> bool:
        """Send one packet; a copy to each worker if there is no way or only one worker."""
        if way is None or not bits & (bits - 1):
            return self._otherwise.send(bits, data, addresses, way)
        try:
            frame = self._frame(way, bits, data)
            self._sock.sendmsg((frame, data), (), socket.MSG_DONTWAIT)
        except (ValueError, KeyError, OSError):
            self._counters["bier-not-sent"] += 1
            return self._otherwise.send(bits, data, addresses, way)
        self._counters["bier-sent"] += 1
        return True

    def _frame(self, way: BierWay, bits: BitString, data: Data) -> bytes:
        tree = int.from_bytes(data[8:10], "big")
        key = id(way), bits, len(data), tree
        found = self._frames.get(key)
        if found is None or found[0] is not way:
            if len(self._frames) >= _MOST_FRAMES:
                self._frames.clear()
            # The entropy keeps each tree on one path (RFC 8296 §2.1.2).
            frame = way.frame(bits, len(data), self._source, tree)
            found = self._frames[key] = (way, frame)
        return found[1]
