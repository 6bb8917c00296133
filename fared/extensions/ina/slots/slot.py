"""The slots of a router that sums, and the sums in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fared.extensions.ina.plan.model import BitString
from fared.extensions.ina.slots.packet import (
    SEQUENCES,
    DataType,
    Header,
    Headers,
    Op,
    PacketKind,
    Values,
    header_size,
    types_of,
    wrapped_control,
)
from fared.extensions.ina.slots.setup import JobSetup, TreeRole


def _product(first: Values, second: Values, *, out: Values) -> None:
    """Multiply: integers wrap, floats become infinite, as in C."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        np.multiply(first, second, out=out)


_BY_OP: dict[Op, Callable[..., object]] = {
    Op.SUM: np.add,
    Op.MAX: np.maximum,
    Op.MIN: np.minimum,
    Op.PRODUCT: _product,
}
_OPS = tuple(_BY_OP[op] for op in Op)
"""By number: the hash of a member is slow."""
_FLOAT32 = DataType.FLOAT32
_MOST_PATIENCE = 0.004
_SUMS_OF_PATIENCE = 3.0
_LEAST_SUMS, _MOST_SUMS = 4, 32
"""Sums over which the pace is measured."""


class Slot:
    """What a router knows of the sum of one chunk, and the ``buffer`` of the packet with it."""

    __slots__ = (
        "answered",
        "answered_at",
        "begun_at",
        "buffer",
        "complete",
        "control",
        "exponent",
        "header",
        "receiver",
        "seen",
        "sequence",
        "shape",
        "told_at",
    )

    def __init__(self, buffer: memoryview) -> None:
        self.buffer = buffer
        self.header: Header | None = None
        """What the packets of the present sequence have in common."""
        self.sequence: int | None = None
        self.shape: tuple[object, ...] = ()
        """Size, data type and op of all its packets."""
        self.receiver = 0
        """The BFR-id of who gets the sum; 0: all workers."""
        self.seen = self.answered = 0
        self.control = self.exponent = 0
        self.complete = False
        self.answered_at = self.told_at = self.begun_at = 0.0

    def begin(self, like: Header, sequence: int, now: float) -> None:
        """Empty the slot for a sequence, with packets like one of it."""
        self.begun_at = now
        self.header, self.shape, self.receiver = like, like[6:9], like.receiver
        self.sequence = sequence
        self.seen = self.answered = self.control = 0
        self.complete = False

    def note(self, bits: BitString, exponent: int, control: int) -> None:
        """Note whose values have been added."""
        if self.seen == 0 or exponent > self.exponent:
            self.exponent = exponent
        self.control += control
        self.seen |= bits

    def packet(self, kind: PacketKind, flags: int) -> memoryview:
        """Return the packet with the sum; the flags of packets do not add up."""
        assert self.header is not None
        size = self.header.size
        octets = self._encode(kind, flags, size, wrapped_control(self.control))
        self.buffer[: len(octets)] = octets
        return self.buffer[: len(octets) + size]

    def completion(self, kind: PacketKind, flags: int) -> bytes:
        """Return the packet that only tells that the sum is complete."""
        return self._encode(kind, flags, 0, 0)

    def _encode(self, kind: PacketKind, flags: int, size: int, control: int) -> bytes:
        header, sequence = self.header, self.sequence
        assert header is not None
        assert sequence is not None
        return Headers(header, kind, self.seen).encode(
            header.tree,
            sequence,
            size,
            types_of(header.data_type, header.op),
            flags,
            self.exponent,
            control,
            self.receiver,
        )


class SumPace:
    """Seconds from one sum of a tree to the next, while sums follow each other without a gap.

    Waking up for a train takes longer than adding it. So a router takes trains together that come
    in the time of three sums, an eighth of a window. A sum that no other follows is the last
    one of a call, or all of it: then nothing waits.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._sums = 0
        self._seconds = 0.0

    def patience(self) -> float:
        """Return for how many seconds packets may wait for others."""
        return min(_MOST_PATIENCE, _SUMS_OF_PATIENCE * self._seconds)

    def note(self, sums: int, now: float, *, more: bool) -> None:
        """Note sums that were completed; ``more``: the next one has begun."""
        if not more:
            self._since, self._seconds = None, 0.0
            return
        if self._since is None:
            self._since, self._sums = now, 0
            return
        self._sums += sums
        if self._sums >= _LEAST_SUMS:
            self._seconds = (now - self._since) / self._sums
        if self._sums >= _MOST_SUMS:
            self._since, self._sums = now, 0


class TreeSlots:
    """The slots of one tree; ``sync`` is that of the epoch's beginning.

    The packets with their sums stand in rows one after the other, those of ``entries`` and that of
    ``sync``: what a train has for neighbors is added in one step.
    """

    def __init__(self, role: TreeRole, setup: JobSetup, versions: int) -> None:
        self.role = role
        self.bits, self.senders = role.bits, role.senders
        count, self._width = versions * role.window, header_size(setup.length) + setup.payload
        width = self._width
        self._rows = memoryview(bytearray((count + 1) * width))
        slots = [Slot(self._rows[at * width : (at + 1) * width]) for at in range(count + 1)]
        self.entries, self.sync = slots[:-1], slots[-1]
        self._values = tuple(np.frombuffer(self._rows, kind.dtype) for kind in DataType)
        """All rows, headers too, as values of each type."""
        self.next = 0
        """The first sequence without a sum. Nobody sends one a window beyond it, or more: that
        takes the result of this one."""
        self.sums = self.size = self.repeated = 0
        """Sums that were completed, the bytes of their values, and how often they went again."""
        self.pace = SumPace()

    def put(self, row: int, packets: memoryview, size: int) -> None:
        """Put packets of ``size`` bytes into rows from ``row`` on."""
        width = self._width
        at, step = row * width, len(packets) if size == width else size
        for begin in range(0, len(packets), step):
            self._rows[at : at + step] = packets[begin : begin + step]
            at += width

    def add(self, like: Header, row: int, packets: memoryview, size: int) -> None:
        """Add the values of packets of ``size`` bytes to those of rows from ``row`` on.

        The headers of neighbors are added too if all are integers, since one step for all takes
        half the time; rows get theirs when they are sent.
        """
        whole, width = self._values[like.data_type], self._width
        item = whole.itemsize
        given = np.frombuffer(packets, whole.dtype)
        at, step, start = row * width // item, size // item, (size - like.size) // item
        if size == width and like.data_type is not _FLOAT32:
            step = len(given)
        for begin in range(start, len(given), step):
            target = whole[at + start : at + step]
            _OPS[like.op](target, given[begin : begin - start + step], out=target)
            at += width // item

    def advance(self) -> None:
        """Find the first sequence without a sum, after some were completed."""
        entries, count = self.entries, len(self.entries)
        while (slot := entries[self.next % count]).complete and slot.sequence == self.next:
            self.next = (self.next + 1) % SEQUENCES

    def follows(self, slot: Slot) -> bool:
        """Whether the sum after that of a slot has begun, too."""
        sequence = slot.sequence
        if slot is self.sync or sequence is None:
            return False
        return self.entries[(sequence + 1) % len(self.entries)].sequence == sequence + 1

    def open_slots(self) -> list[Slot]:
        """Return the slots with a part of the sum."""
        entries = (*self.entries, self.sync)
        return [slot for slot in entries if slot.seen and not slot.complete]

    def waited_for(self) -> BitString:
        """Return the workers that open slots lack: stragglers."""
        lacking = 0
        for slot in self.open_slots():
            lacking |= self.role.bits & ~slot.seen
        return lacking


class Admitted(NamedTuple):
    """Packets of one child that pass all tests but that of the sequence.

    They are equal in all that ``like`` has but for sequence, exponent and control sum.
    """

    like: Header
    tree: TreeSlots
    slots: Sequence[Slot]
    """Those of the tree that take them, by the sequence modulo their number."""
    row: int
    """That of the first of these slots."""
    window: int
    """How many sequences may be open."""
    size: int
    """Bytes of a packet."""


def admit(tree: TreeSlots, header: Header) -> Admitted:
    """Return what packets like one with this header have in common."""
    size = header_size(header.length) + header.size
    if header.kind is PacketKind.SYNC:
        return Admitted(header, tree, [tree.sync], len(tree.entries), 1, size)
    return Admitted(header, tree, tree.entries, 0, tree.role.window, size)
