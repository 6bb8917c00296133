"""The slots of a router that sums, and the sums in them."""

from __future__ import annotations

import numpy as np

from fared.ina.plan.model import BitString
from fared.ina.slots.packet import (
    Header,
    Op,
    PacketKind,
    Values,
    header_size,
    put_sum,
    values_of,
)
from fared.ina.slots.setup import JobSetup, TreeRole

_OPS = tuple({Op.SUM: np.add, Op.MAX: np.maximum, Op.MIN: np.minimum}[op] for op in Op)
"""By number: the hash of a member is slow."""


class Slot:
    """The sum of one chunk, in the packet that will carry it."""

    __slots__ = (
        "answered",
        "answered_at",
        "begun_at",
        "buffer",
        "complete",
        "control",
        "exponent",
        "header",
        "seen",
        "sequence",
        "shape",
        "start",
        "told_at",
        "total",
    )

    def __init__(self, room: int, start: int) -> None:
        self.buffer = bytearray(start + room)
        self.start = start
        self.header: Header | None = None
        """That of the first packet of the present sequence."""
        self.sequence: int | None = None
        self.shape: tuple[object, ...] = ()
        """Size, data type and op of all its packets."""
        self.total: Values | None = None
        self.seen = self.answered = 0
        self.control = self.exponent = 0
        self.complete = False
        self.answered_at = self.told_at = self.begun_at = 0.0

    def begin(self, header: Header, now: float) -> None:
        """Empty the slot for a sequence."""
        self.begun_at = now
        self.header = header
        self.sequence, self.shape = header.sequence, header[6:9]
        self.seen = self.answered = 0
        self.complete = False

    def add(self, header: Header, data: bytes | bytearray | memoryview) -> None:
        """Add the values of a packet, and its bits."""
        op, _, exponent, control = header[8:12]
        total = self.total
        if self.seen == 0 or total is None:
            end = self.start + header.size
            self.buffer[self.start : end] = data[self.start : end]
            self.total = values_of(header, self.buffer)
            self.control, self.exponent = control, exponent
        else:
            _OPS[op](total, values_of(header, data), out=total)
            self.control += control
            self.exponent = max(self.exponent, exponent)
        self.seen |= header.bits

    def packet(self, kind: PacketKind, flags: int) -> memoryview:
        """Return the packet with the sum; the flags of packets do not add up."""
        assert self.header is not None
        put_sum(self.buffer, self.header, kind, self.seen, flags, self.exponent, self.control)
        return memoryview(self.buffer)[: self.start + self.header.size]


class TreeSlots:
    """The slots of one tree; ``sync`` is that of the epoch's beginning."""

    def __init__(self, role: TreeRole, setup: JobSetup, versions: int) -> None:
        self.role = role
        self.bits, self.senders = role.bits, role.senders
        start = header_size(setup.length)
        self.entries = [Slot(setup.payload, start) for _ in range(versions * role.window)]
        self.sync = Slot(setup.payload, start)
        self.sums = self.size = self.repeated = 0
        """Sums that were completed, the bytes of their values, and how often they went again."""

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
