"""A router that sums: its slots in each tree. It never repeats anything by itself.

Entry ``sequence mod 2 S`` holds the sum of one chunk, the bits that are in it (``seen``), and once
all of the A-BM are, the packet that was sent: up, or as the root the result. Whoever lacks the
result asks again with ``WANT``; complete entries on the way pass that on, and the root answers.
"""

from __future__ import annotations

from collections import Counter

from fared.core.wire import DecodeError
from fared.extensions.ina.plan.model import BitString, Vertex, members
from fared.extensions.ina.slots.alike import Alike, Changing
from fared.extensions.ina.slots.packet import (
    SEQUENCES,
    Buffer,
    Flag,
    Header,
    PacketKind,
    decode_header,
    encode_header,
    newer,
    with_sum,
)
from fared.extensions.ina.slots.ports import AggregatorPort
from fared.extensions.ina.slots.setup import JobSetup, TreeRole
from fared.extensions.ina.slots.slot import Admitted, Slot, TreeSlots, admit

ANSWER_INTERVAL = 0.001
"""Seconds in which one wish for a result is answered once: a quarter of the least timeout."""
TELLING_INTERVAL = 0.1
"""Seconds in which one slot tells once for whom it waits."""
_RESULTS = (PacketKind.RESULT, PacketKind.SYNC_RESULT)
# An attribute of an enum takes ten times as long as a global name.
_DATA, _SYNC = PacketKind.DATA, PacketKind.SYNC
_AGAIN, _WANT, _ASK = int(Flag.AGAIN), int(Flag.WANT), int(Flag.ASK)


class Aggregator:
    """All trees of one job at one router, for one epoch after another."""

    VERSIONS = 2
    """Entries for each chunk of the window: one may still be asked for, one is filled."""

    def __init__(self, node: Vertex, port: AggregatorPort) -> None:
        self._node, self._port = node, port
        self.setup: JobSetup | None = None
        self.counters: Counter[str] = Counter()
        self._trees: dict[int, TreeSlots] = {}
        self._alike = Alike[Admitted]()

    def install(self, setup: JobSetup) -> bool:
        """Begin an epoch with empty slots; an epoch that is not newer is ignored."""
        if self.setup is not None and not newer(setup.epoch, self.setup.epoch, 16):
            return False
        self.setup = setup
        self._alike.clear()
        self._trees = {
            role.tree_id: TreeSlots(role, setup, self.VERSIONS) for role in setup.roles(self._node)
        }
        return True

    def receive(self, sender: Vertex, data: Buffer, now: float) -> None:
        """Process a packet of a child. Nothing is raised: what is wrong is counted."""
        try:
            header = decode_header(data)
        except DecodeError as error:
            self.counters[f"malformed-{error.code}"] += 1
            return
        setup = self.setup
        kind, job, tree_id, epoch, _, bits, size = header[:7]
        if setup is None or job != setup.job_id:
            self.counters["unexpected"] += 1
            return
        if kind is not _DATA and kind is not _SYNC:
            if kind in _RESULTS:
                self._pass_on(sender, header, data, setup)
            else:
                self.counters["unexpected"] += 1
            return
        if epoch != setup.epoch and not self._is_of_this_epoch(sender, header, setup):
            return
        tree = self._trees.get(tree_id)
        if tree is None:
            self.counters["no-tree"] += 1
        elif header.length != setup.length or size > setup.payload or not bits:
            self.counters["malformed-size"] += 1
        elif bits & ~tree.senders.get(sender, 0):
            # Who could send anything could poison sums: each child only has its own bits.
            self.counters["sender"] += 1
        else:
            self._take_one(sender, tree, header, data, now)

    def _take_one(
        self, sender: Vertex, tree: TreeSlots, header: Header, data: Buffer, now: float
    ) -> None:
        """Take a packet that its sender may send."""
        if header.bits & ~tree.bits:
            self._not_summed(tree.role, header.bits, data)
        else:
            admitted = admit(tree, header)
            self._alike.remember(sender, data, admitted)
            if not self._take(admitted, [(header[4], *header[10:12])], data, 0, now):
                self._not_added(admitted, header, now)

    def receive_train(self, sender: Vertex, train: Buffer, step: int, now: float) -> None:
        """Process packets of ``step`` bytes that came together; the last one may be shorter.

        All but a few are like others of their sender, which have passed the tests already.
        """
        at, end = 0, len(train)
        while at < end:
            admitted, packets = self._alike.first(sender, train, at, step)
            count = 0 if admitted is None else self._take(admitted, packets, train, at, now)
            if not count:
                self.receive(sender, train[at : at + step], now)
            at += max(1, count) * step

    def _pass_on(
        self,
        sender: Vertex,
        header: Header,
        data: Buffer,
        setup: JobSetup,
    ) -> None:
        """Pass a result on to the workers behind this relay."""
        tree = self._trees.get(header.tree)
        if header.epoch != setup.epoch:
            self.counters["result-of-another-epoch"] += 1
        elif tree is None or tree.role.above != sender:
            self.counters["sender"] += 1
        else:
            self.counters["passed-on"] += 1
            bits = with_sum(header.receiver, setup.bits)
            self._down(tree.role, bits if header.size else setup.bits & ~bits, data)

    def _down(self, role: TreeRole, bits: BitString, data: Buffer) -> None:
        """Send a result to workers of a bit string, as far as they get theirs from here."""
        for router, behind in role.below.items():
            if bits & behind:
                self._port.down(router, data)
        if bits & role.direct:
            self._port.disseminate(bits & role.direct, data)

    def _is_of_this_epoch(self, sender: Vertex, header: Header, setup: JobSetup) -> bool:
        """Whether to take a packet of another epoch: never; its sender is told if it is behind."""
        if newer(header.epoch, setup.epoch, 16):
            self.counters["epoch-ahead"] += 1  # this router will soon get it too
        else:
            self.counters["epoch-behind"] += 1
            nack = header._replace(
                kind=PacketKind.NACK, epoch=setup.epoch, size=0, control=0, flags=0
            )
            self._port.nack(sender, encode_header(nack))
        return False

    def _take(
        self, admitted: Admitted, told: list[Changing], data: Buffer, at: int, now: float
    ) -> int:
        """Add packets that stand in ``data`` from ``at`` on, up to the first that is not new.

        Returns how many.
        """
        like, tree, slots, first_row, window, size = admitted
        bits, shape, receiver, first = like.bits, like[6:9], like.receiver, told[0][0]
        row = first % len(slots)
        fresh = slots[row].sequence != first
        if fresh:  # their sequences are consecutive: those within the window come first
            ahead = (first - (tree.next if like.kind is _DATA else 0)) % SEQUENCES
            told = told[: max(0, window - ahead)]
        taken = []
        for slot, (sequence, exponent, control) in zip(
            slots[row : row + len(told)], told, strict=False
        ):
            if fresh:
                if slot.sequence == sequence:
                    break
                slot.begin(like, sequence, now)  # a newer sequence empties it
            elif slot.sequence != sequence or slot.shape != shape or not self._is_new(slot, bits):
                break
            elif slot.receiver != receiver:
                slot.receiver = 0  # of a router of a former version: all get the sum
            slot.note(bits, exponent, control)
            taken.append(slot)
        if taken:
            packets = memoryview(data)[at : at + len(taken) * size]
            if fresh:
                tree.put(first_row + row, packets, size)
            else:
                tree.add(like, first_row + row, packets, size)
            self.counters["added"] += len(taken)
            full = [slot for slot in taken if slot.seen == tree.bits]
            if full:
                self._complete(tree, full, like.size, now)
        return len(taken)

    def _complete(self, tree: TreeSlots, full: list[Slot], size: int, now: float) -> None:
        """Send the sums that have all values now."""
        tree.sums += len(full)
        tree.size += len(full) * size
        tree.pace.note(len(full), now, more=tree.follows(full[-1]))
        for slot in full:
            slot.complete = True
            self._send(tree, slot, tree.bits, 0)
        tree.advance()

    def _is_new(self, slot: Slot, bits: BitString) -> bool:
        return not (slot.complete or bits & slot.seen)

    def _not_added(self, admitted: Admitted, header: Header, now: float) -> None:
        """Answer or count a packet whose values are not added."""
        tree, sequence = admitted.tree, header.sequence
        slot = admitted.slots[sequence % len(admitted.slots)]
        if slot.sequence != sequence:
            # everybody has the result, or nobody may send that yet
            late = header.kind is _SYNC or newer(tree.next, sequence, 32)
            self.counters["stale" if late else "beyond-window"] += 1
        elif slot.shape != header[6:9]:
            self.counters["shape"] += 1
        elif header.bits & ~slot.seen:
            self.counters["overlap"] += 1
        elif slot.complete and header.flags & _WANT:
            self._answer(tree, slot, header, now)
        else:
            self.counters["duplicate"] += 1
            if header.flags & _ASK and not slot.complete:
                self._tell(tree, slot, header, now)

    def _not_summed(self, role: TreeRole, bits: BitString, data: Buffer) -> None:
        if bits & role.bits:
            self.counters["foreign"] += 1
            return
        # draft-song-ina-00 §2.1: nothing of this packet is to be aggregated here
        self.counters["passed"] += 1
        if role.parent is not None:
            self._port.up(role.parent, data)

    def _tell(self, tree: TreeSlots, slot: Slot, header: Header, now: float) -> None:
        """Tell all whose values are here which workers' values are missing.

        Not only who asks: workers ask at the same time, and a slot tells once in an interval.
        """
        if now - slot.told_at < TELLING_INTERVAL:
            return
        slot.told_at = now
        self.counters["told"] += 1
        lacking = header._replace(
            kind=PacketKind.LACKING, bits=tree.role.bits & ~slot.seen, size=0, control=0, flags=0
        )
        self._port.disseminate(slot.seen, encode_header(lacking))

    def _answer(self, tree: TreeSlots, slot: Slot, header: Header, now: float) -> None:
        """Resend the sum to the parent, or, at the root, the result to the workers that asked."""
        bits = header.bits
        if now - slot.answered_at >= ANSWER_INTERVAL:
            slot.answered_at, slot.answered = now, 0
        if not bits & ~slot.answered:
            self.counters["answered-lately"] += 1
            return
        slot.answered |= bits
        self.counters["answered"] += 1
        tree.repeated += 1
        self._send(tree, slot, bits, _AGAIN | _WANT | header.flags & _ASK)

    def _send(self, tree: TreeSlots, slot: Slot, bits: BitString, flags: int) -> None:
        assert slot.header is not None
        is_sync = slot.header.kind is _SYNC
        if tree.role.parent is not None:
            self._port.up(tree.role.parent, slot.packet(slot.header.kind, flags))
            return
        kind, flags = PacketKind.SYNC_RESULT if is_sync else PacketKind.RESULT, flags & _AGAIN
        few = with_sum(0 if is_sync else slot.receiver, bits)
        if few:
            self._down(tree.role, few, slot.packet(kind, flags))
        if bits != few:
            self._down(tree.role, bits & ~few, slot.completion(kind, flags))

    def patience(self) -> float:
        """Return for how many seconds packets may wait, to be processed with others."""
        found = (tree.pace.patience() for tree in self._trees.values())
        return min((seconds for seconds in found if seconds), default=0.0)

    # -- for operators ------------------------------------------------------------------------

    @property
    def trees(self) -> list[TreeSlots]:
        """The trees of which this router is a VAT node, in the present epoch."""
        return list(self._trees.values())

    def waited_for(self) -> list[int]:
        """Return the BFR-ids that slots with a part of the sum lack: stragglers."""
        lacking = 0
        for tree in self._trees.values():
            lacking |= tree.waited_for()
        return members(lacking)

    def open_slots(self) -> int:
        """Return how many slots have a part of the sum."""
        return sum(len(tree.open_slots()) for tree in self._trees.values())

    def wait(self, now: float) -> float:
        """Return for how many seconds the oldest open slot has waited; 0 if none is open."""
        begun = (slot.begun_at for tree in self._trees.values() for slot in tree.open_slots())
        return max(0.0, now - min(begun, default=now))
