"""A ring of the workers themselves, for jobs without an aggregation tree.

A job without trees has one chain for each of some ranks: every worker's host adds its values to
what the one before it has sent, and the last one sends the sum on around the ring. So each chunk
passes each link of the ring twice at most, 2(n-1)/n times on average, as in any ring. A chain is a
tree whose VAT nodes are the hosts: slots, windows, epochs and numbers are those of trees, and so
sums have the same bits.

All workers derive the chains from the job; only the absence of trees is flooded.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Final, Protocol

from msgspec.structs import replace

from fared.extensions.ina.plan.model import BitString, Vertex
from fared.extensions.ina.slots.aggregator import TELLING_INTERVAL, Aggregator
from fared.extensions.ina.slots.packet import Flag, Header, PacketKind, decode_header, encode_header
from fared.extensions.ina.slots.setup import JobSetup, TreeSetup

HOSTS: Final = 1 << 60
"""The VAT node at the host of BFR-id i is vertex ``HOSTS`` + i.

A chain has no routers, whose ids may be as large: those of IS-IS are.
"""
_MOST_CHAINS: Final = 16
_WINDOW: Final = 8
_UP, _DOWN, _HELLO = 0, 1, 2
_HEAD = struct.Struct("!BH")
"""Direction, or a hello; and bytes of the bit string of receivers: only results have one."""
HELLO_INTERVAL: Final = 0.2
_SILENT_AFTER: Final = 5 * HELLO_INTERVAL
_KIND = 15

Data = bytes | bytearray | memoryview


def ring_of(setup: JobSetup) -> JobSetup:
    """Return a job without trees with its chains."""
    ranks = sorted(setup.workers)
    count = min(len(ranks), _MOST_CHAINS)
    starts = [at * len(ranks) // count for at in range(count)]
    trees = tuple(_chain(at, ranks[start:] + ranks[:start]) for at, start in enumerate(starts))
    return replace(setup, trees=trees)


def _chain(tree_id: int, order: list[int]) -> TreeSetup:
    hosts = [HOSTS + bfr_id for bfr_id in order]
    parents: dict[Vertex, Vertex] = dict(pairwise(hosts))
    parents |= {-bfr_id: host for bfr_id, host in zip(order, hosts, strict=True)}
    return TreeSetup(tree_id, hosts[-1], 1, _WINDOW, parents)


def next_in_ring(setup: JobSetup, bfr_id: int) -> int:
    """Return the worker to which one sends."""
    ranks = sorted(setup.workers)
    return ranks[(ranks.index(bfr_id) + 1) % len(ranks)]


def previous_in_ring(setup: JobSetup, bfr_id: int) -> int:
    """Return the worker from which one receives."""
    ranks = sorted(setup.workers)
    return ranks[ranks.index(bfr_id) - 1]


class RingPort(Protocol):
    """What a place in the ring sends: bytes are valid after the call, too."""

    def forward(self, frame: bytes) -> None:
        """Send a frame to the next worker; what is lost is repeated."""

    def backward(self, frame: bytes) -> None:
        """Send a frame to the worker before: only of whom somebody waits for."""

    def deliver(self, packet: bytes) -> None:
        """Give a packet to this host's worker, soon: not within the call."""


class RingPlace:
    """The VAT node of one worker's host."""

    def __init__(self, bfr_id: int, port: RingPort) -> None:
        self._bfr_id, self._port = bfr_id, port
        self._bit = 1 << (bfr_id - 1)
        self._previous = 0
        self._bits, self._octets = 0, 0
        self._now, self._told_at = 0.0, -math.inf
        self._heard_at = math.inf
        """When something came from the worker before; infinite: nothing yet in this epoch."""
        self._ticked_at = -math.inf
        self._silent = b""
        """What is told if nothing comes any more."""
        self.aggregator = Aggregator(HOSTS + bfr_id, self)

    def install(self, setup: JobSetup) -> None:
        """Begin an epoch of a job, given with its chains."""
        before = previous_in_ring(setup, self._bfr_id)
        self._previous = HOSTS + before
        silent = Header(
            PacketKind.LACKING, setup.job_id, 0, setup.epoch, 0, 1 << (before - 1), 0,
            flags=Flag.SILENT, length=setup.length,
        )  # fmt: skip
        self._silent, self._heard_at = encode_header(silent), math.inf
        self._bits, self._octets = setup.bits, setup.length // 8
        self.aggregator.install(setup)

    def put(self, packet: bytes, now: float) -> None:
        """Take a packet of this host's worker."""
        self._now = now
        self.aggregator.receive(-self._bfr_id, packet, now)

    def take(self, frame: memoryview, now: float) -> None:
        """Take a frame of the worker before; a malformed one is counted."""
        self._now = self._heard_at = now
        if len(frame) < _HEAD.size:
            self.aggregator.counters["malformed-frame"] += 1
            return
        direction, octets = _HEAD.unpack_from(frame)
        packet = frame[_HEAD.size + octets :]
        if direction == _UP:
            self.aggregator.receive(self._previous, packet, now)
        elif direction == _DOWN and octets == self._octets:
            bits = int.from_bytes(frame[_HEAD.size : _HEAD.size + octets], "big")
            self._spread(bits & self._bits, packet, self._port.forward)
        elif direction == _HELLO and not packet:
            pass
        else:
            self.aggregator.counters["malformed-frame"] += 1

    def take_back(self, frame: memoryview) -> None:
        """Take a frame of the next worker: whom somebody there waits for."""
        octets = self._octets
        if len(frame) <= _HEAD.size + octets or frame[: _HEAD.size] != _HEAD.pack(_DOWN, octets):
            self.aggregator.counters["malformed-frame"] += 1
            return
        bits = int.from_bytes(frame[_HEAD.size : _HEAD.size + octets], "big")
        self._spread(bits & self._bits, frame[_HEAD.size + octets :], self._port.backward)

    def tick(self, now: float) -> None:
        """Every ``HELLO_INTERVAL``: show that this worker runs; tell if the one before does not.

        Its kernel may still take what is sent to it.
        """
        self._port.forward(_HEAD.pack(_HELLO, 0))
        late, self._ticked_at = now - self._ticked_at >= 2 * HELLO_INTERVAL, now
        if late and self._heard_at < now:  # this worker was away: frames wait to be read
            self._heard_at = now
        if now - self._heard_at >= _SILENT_AFTER:
            self.aggregator.counters["silent"] += 1
            self._tell(self._silent)

    def _spread(self, bits: BitString, packet: Data, send: Callable[[bytes], None]) -> None:
        """Give a packet to this worker if it is one of the receivers, and to the others."""
        if bits & self._bit:
            self._port.deliver(bytes(packet))
        others = bits & ~self._bit
        if others:
            receivers = others.to_bytes(self._octets, "big")
            send(_HEAD.pack(_DOWN, self._octets) + receivers + packet)

    def _tell(self, packet: Data) -> None:
        """Tell all workers for whom this place waits, in both ways: one of them may be stuck."""
        self._spread(self._bits, packet, self._port.forward)
        self._spread(self._bits & ~self._bit, packet, self._port.backward)

    # -- AggregatorPort -------------------------------------------------------------------------

    def up(self, parent: Vertex, data: Data) -> None:
        """Send a partial sum to the next worker.

        A worker that asks for whom the sum waits is told here, too: for those after this place.
        """
        del parent
        self._port.forward(_HEAD.pack(_UP, 0) + data)
        if data[1] & Flag.ASK and self._now - self._told_at >= TELLING_INTERVAL:
            self._told_at = self._now
            header = decode_header(data)
            lacking = header._replace(
                kind=PacketKind.LACKING, bits=self._bits & ~header.bits, size=0, control=0, flags=0
            )
            self._tell(encode_header(lacking))

    def down(self, router: Vertex, data: Data) -> None:
        """Never called: results go around, and no chain has another way for them."""
        del router, data

    def disseminate(self, bits: BitString, data: Data) -> None:
        """Send a result around the ring, or for whom this place waits."""
        if data[0] & _KIND == PacketKind.LACKING:
            self._tell(data)
        else:
            self._spread(bits, data, self._port.forward)

    def nack(self, sender: Vertex, data: bytes) -> None:
        """Only count: all workers learn of epochs from their routers."""
        del sender, data
        self.aggregator.counters["epoch-behind"] += 1
