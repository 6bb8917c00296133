"""A worker: it sends its chunks within a window, repeats what is lost, and collects results.

Chunks are numbered through the life of the job. In an epoch that runs from chunk c0 on, chunk
c0 + i goes through the tree that smooth weighted round robin gives to i, and sequences of each tree
begin at 0. Sequence s is sent when the result of s - S is here, and no chunk is sent that is
``lead`` or more ahead of the first one without a result of this epoch. So no worker is more than
``lead`` behind another, and inputs of twice as many chunks suffice to begin a new epoch.

A new epoch begins with the least ``next`` of all workers: a minimum over the new trees (``SYNC``).

The workers of an elastic job may change: then an epoch begins between two calls (``calls``).
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from fared.core.wire import DecodeError
from fared.extensions.ina.fields import MOST_WINDOW
from fared.extensions.ina.plan.model import BitString
from fared.extensions.ina.slots.alike import Alike, Changing
from fared.extensions.ina.slots.calls import FAR, CallBounds
from fared.extensions.ina.slots.chunks import Chunks, Input, Part, Single, Source
from fared.extensions.ina.slots.packet import (
    TYPES_AT,
    DataType,
    Flag,
    Header,
    Headers,
    Op,
    PacketKind,
    Values,
    agreeing,
    agrees,
    decode_header,
    encode_header,
    header_size,
    newer,
    rows_of,
    values_of,
)
from fared.extensions.ina.slots.ports import WorkerPort
from fared.extensions.ina.slots.setup import JobSetup
from fared.extensions.ina.slots.window import Outstanding, Repeats, TreeProgress

_PLACE = 1 << 32
_RESULT = PacketKind.RESULT
_NOTHING = np.zeros(1, "<i4")
"""The closing chunk of a call."""
_SYNC_EVERY = 0.2
"""Seconds after which the beginning of an epoch is repeated at the latest."""
_AT_END, _LAST = 0.5, 1 / 4
"""Part of their patience that results have while the windows of all trees are to come, and part of
these windows from which on they have none."""
_FIRST, REST_AFTER = 3, 0.004
"""Packets of each tree with which a call begins, and seconds after which the rest of the windows
follows at the latest, else with the first result: the links carry these meanwhile, also those of
other workers on the same machine."""
ASK_AFTER = 0.25
"""Seconds without a result after which a worker asks for whom the sum waits."""


def _wish(entry: Outstanding, now: float) -> int:
    """Return the flags of a repeated packet."""
    asks = Flag.ASK if now - entry.sent_at >= ASK_AFTER else 0
    return Flag.AGAIN | Flag.WANT | asks


class WorkerMachine:
    """One worker of one job. ``vertex`` is minus its BFR-id.

    ``returning``: other workers of an elastic job have been calling before.
    """

    def __init__(self, bfr_id: int, port: WorkerPort, *, returning: bool = False) -> None:
        self.vertex, self._bfr_id = -bfr_id, bfr_id
        self._bit = 1 << (bfr_id - 1)
        self._port = port
        self.setup: JobSetup | None = None
        self.counters: Counter[str] = Counter()
        self._base = 0
        self._lead = 0
        self.calls = CallBounds(returning=returning)
        self._chunks = Chunks(self.calls)
        self._headers: Headers | None = None
        self._stopped = False
        self._trees: list[TreeProgress] = []
        self._syncing: Outstanding | None = None
        self._repeats = Repeats(self.counters)
        self._rest_at = math.inf
        """When to send the rest of the windows of a call that has begun."""
        self._ending = False
        """Whether the present call took more than the windows."""
        self._alike = Alike[Header]()
        """Results of the present epoch."""

    # -- the job ------------------------------------------------------------------------------

    def install(self, setup: JobSetup, now: float) -> bool:
        """Begin an epoch, the first one or a newer one; others are ignored."""
        if self.setup is not None and not newer(setup.epoch, self.setup.epoch, 16):
            return False
        self.setup = setup
        self._lead = setup.lead
        self._chunks.keep(self._lead)
        like = self._header(PacketKind.DATA, setup, 0, 0)
        self._headers = Headers(like, like.kind, like.bits)
        self._trees = []
        self._alike.clear()
        self._repeats = Repeats(self.counters)
        self._syncing = Outstanding(0, now, self._repeats.first_due(now))
        self._send_sync(0)
        return True

    def put(
        self,
        values: Values | Source,
        data_type: DataType = DataType.INT32,
        op: Op = Op.SUM,
        exponent: int = 0,
        receiver: int = 0,
    ) -> int:
        """Add the next chunk; its values must not change before ``oldest_needed`` has passed it.

        Only the worker ``receiver`` gets the sum, by BFR-id; 0: all get it. Returns the number of
        the chunk. Call ``pump`` after the last one.
        """
        source = values if callable(values) else lambda: values
        return self.put_part(Single(source, data_type, op, exponent, receiver), 1)

    def put_part(self, part: Part, count: int) -> int:
        """Add ``count`` chunks; return the number of the first."""
        return self._chunks.put(part, count)

    def close_call(self) -> None:
        """Note that a call has all its chunks; in an elastic job it gets a closing one."""
        if self.setup is not None and self.setup.elastic:
            self.calls.close(self.put(_NOTHING))

    @property
    def summed_over(self) -> BitString:
        """The workers of the last call, once it has ended."""
        assert self.setup is not None
        return self.calls.summed_over if self.setup.elastic else self.setup.bits

    def stop(self) -> None:
        """Send no further chunk: what it would be made of may have changed."""
        self._stopped = True
        self._chunks.unsent.clear()

    @property
    def next(self) -> int:
        """The first chunk without a result."""
        return self._chunks.next

    @property
    def end(self) -> int:
        """The number of the next chunk that is put."""
        return self._chunks.end

    @property
    def restarts(self) -> int:
        """How often a call was taken back, all chunks of which are to be put again."""
        return self._chunks.restarts

    @property
    def oldest_needed(self) -> int:
        """The first chunk whose input a new epoch may need."""
        return self._chunks.oldest_needed

    @property
    def has_unsent(self) -> bool:
        """Whether a chunk of a call was never sent."""
        return self._chunks.has_unsent

    @property
    def running(self) -> bool:
        """Whether the epoch runs, and chunks are sent."""
        return self.setup is not None and self._syncing is None

    # -- sending ------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Send the first packets of a call; the rest of the windows follows."""
        self.pump(now, _FIRST)
        if self._chunks.has_unsent:
            self._rest_at = now + REST_AFTER

    def pump(self, now: float, most: int = MOST_WINDOW) -> None:
        """Send what the windows permit, ``most`` packets a tree."""
        self._rest_at = math.inf
        if self._syncing is None and not self._stopped:
            due = self._repeats.first_due(now)
            for tree in self._trees:
                self._pump(tree, now, due, most)

    def _pump(self, tree: TreeProgress, now: float, due: float, most: int) -> None:
        end = tree.next_sequence + most
        while (sequence := tree.next_sequence) < end and self._may_send(
            tree, sequence, chunk := self._base + tree.next_offset
        ):
            tree.advance()
            entry = tree.sent[sequence] = Outstanding(chunk, now, due)
            self._send(tree, sequence, entry, 0)
        if tree.sent:
            self._repeats.due = min(self._repeats.due, due)

    def _may_send(self, tree: TreeProgress, sequence: int, chunk: int) -> bool:
        """Whether there is such a chunk, and lead and window permit it.

        The closing chunk of a call is sent when all others have results.
        """
        chunks = self._chunks
        if chunk >= chunks.end or sequence - tree.window in tree.sent:
            return False
        early = chunk == self.calls.closing and chunks.next < chunk
        return not early and chunk < chunks.first + self._lead

    def deadline(self) -> float | None:
        """Return when to call ``tick``: at the latest when a packet is to be repeated."""
        if self._syncing is not None:
            return self._syncing.due
        due = min(self._repeats.due, self._rest_at)
        return None if due == math.inf else due

    def patience(self) -> float:
        """Return for how many seconds results may wait, to be processed with others.

        Waking up takes as long as processing some packets. When all chunks of a call have been
        sent, results wait the less, the fewer are to come, and the last ones do not. A call that
        fits the windows waits for nothing.
        """
        if self._syncing is not None:
            return 0.0
        chunks = self._chunks
        if chunks.has_unsent:
            self._ending = True
            return self._repeats.patience()
        end = self.calls.closing if chunks.next < self.calls.closing else chunks.end
        part = (end - chunks.next) / self._lead
        self._ending = self._ending and part > _LAST
        return self._repeats.patience() * _AT_END * min(1.0, part) if self._ending else 0.0

    def tick(self, now: float) -> None:
        """Repeat what has had no result for too long; send the rest of the windows of a call."""
        if self._syncing is not None:
            if now >= self._syncing.due:
                self._repeats.again(self._syncing, now)
                # It is small, and routers learn of an epoch one after the other.
                self._syncing.due = min(self._syncing.due, now + _SYNC_EVERY)
                self._send_sync(_wish(self._syncing, now))
            return
        if now >= self._rest_at:
            self.pump(now)
        if now < self._repeats.due:
            return
        for tree in self._trees:
            self._repeat(tree, self._repeats.expired(tree, now), now)
        self._repeats.find_earliest(self._trees)

    def _repeat(
        self, tree: TreeProgress, packets: list[tuple[int, Outstanding]], now: float
    ) -> None:
        for sequence, entry in packets:
            self._repeats.again(entry, now)
            self._send(tree, sequence, entry, _wish(entry, now))

    def _send(self, tree: TreeProgress, sequence: int, entry: Outstanding, flags: int) -> None:
        assert self._headers is not None
        values, types, size, exponent, control, receiver = self._chunks.input_of(entry.chunk)
        header = self._headers.encode(
            tree.tree_id, sequence % _PLACE, size, types, flags, exponent, control, receiver
        )
        self._port.send(tree.parents[self.vertex], header, values)

    def _send_sync(self, flags: int) -> None:
        setup = self.setup
        assert setup is not None
        tree = setup.trees[0]
        values: Values = np.array([self.calls.proposal(setup, self.next)], "<i8")
        header = self._header(PacketKind.SYNC, setup, tree.tree_id, values.nbytes)
        header = header._replace(data_type=DataType.INT64, op=Op.MIN, flags=flags)
        self._port.send(tree.parents[self.vertex], encode_header(header), values)

    def _header(self, kind: PacketKind, setup: JobSetup, tree: int, size: int) -> Header:
        return Header(
            kind, setup.job_id, tree, setup.epoch, 0, self._bit, size, length=setup.length,
            set_id=setup.set_id, sub_domain=setup.sub_domain,
        )  # fmt: skip

    # -- receiving ----------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview, now: float) -> None:
        """Process a packet, and send what is permitted then."""
        self.take(data, now)
        self.pump(now)

    def take(self, data: bytes | bytearray | memoryview, now: float) -> None:
        """Process a result or a nack; ``pump`` follows the last of those that came together.

        Nothing is raised: what is wrong is counted.
        """
        try:
            header = decode_header(data)
        except DecodeError as error:
            self.counters[f"malformed-{error.code}"] += 1
            return
        setup = self.setup
        kind, job, _, epoch = header[:4]
        if setup is None or job != setup.job_id:
            self.counters["unexpected"] += 1
        elif kind is PacketKind.LOST:
            self._port.lost(header.bits)
        elif epoch != setup.epoch:
            self.counters["other-epoch"] += 1
            if kind is PacketKind.NACK and newer(epoch, setup.epoch, 16):
                self._port.outdated(epoch)
        elif kind is _RESULT and self._syncing is None:
            self._result(setup, header, data, now)
        elif kind is PacketKind.LACKING:
            self._port.lacking(header.bits, silent=bool(header.flags & Flag.SILENT))
        elif kind is PacketKind.SYNC_RESULT and self._syncing is not None:
            self._synced(header, data, now)
        else:
            self.counters["late"] += 1

    def _synced(self, header: Header, data: bytes | bytearray | memoryview, now: float) -> None:
        setup = self.setup
        assert setup is not None
        if header.size != 8 or header.data_type is not DataType.INT64:
            self.counters["malformed-size"] += 1
            return
        base = int(values_of(header, data)[0])
        if not self._chunks.begins(base, setup):
            self.counters["lost-too-much"] += 1  # a worker that is not one of ours
            return
        self._base = 0 if base == FAR else base
        self._chunks.began(self._base)
        self._syncing = None
        self._repeats.due = math.inf
        self._trees = [TreeProgress(tree, at, setup.order) for at, tree in enumerate(setup.trees)]
        self.pump(now)

    def take_train(self, train: memoryview, step: int, now: float) -> None:
        """Process packets of ``step`` bytes that came together; the last one may be shorter."""
        at, end = 0, len(train)
        while at < end:
            like, told = self._alike.first(None, train, at, step)
            count = 0 if like is None else self._take_results(like, told, train, at, now)
            if not count:
                self.take(train[at : at + step], now)
            at += max(1, count) * step

    def _take_results(
        self, like: Header, told: list[Changing], train: memoryview, at: int, now: float
    ) -> int:
        """Take results that stand in ``train`` from ``at`` on, up to the first that is not usual.

        Returns how many.
        """
        tree, inputs = self._trees[like.tree], self._chunks.inputs
        step = header_size(like.length) + like.size
        rows = rows_of(train[at : at + len(told) * step], step, like)
        types = train[at + TYPES_AT]
        right = agreeing(like, rows, [control for _, _, control in told])
        for place, (sequence, _, _) in enumerate(told):
            entry = tree.sent.get(sequence)
            if entry is None or not right[place]:
                return place
            given = inputs[entry.chunk]
            if not self._fits(given, types, like):
                return place
            self._has_result(tree, sequence, entry, rows[place], now)
        return len(told)

    def _result(
        self,
        setup: JobSetup,
        header: Header,
        data: bytes | bytearray | memoryview,
        now: float,
    ) -> None:
        tree_id, _, sequence, bits = header[2:6]
        tree = self._trees[tree_id] if tree_id < len(self._trees) else None
        entry = None if tree is None else tree.sent.get(sequence)
        if tree is None or entry is None:
            self.counters["duplicate"] += 1
            return
        given = self._chunks.inputs[entry.chunk]
        if bits != setup.bits or not self._fits(given, data[TYPES_AT], header):
            self.counters["incomplete"] += 1
            return
        values = values_of(header, data)
        if not agrees(header, values):
            self.counters["control-sum"] += 1
            return
        self._alike.remember(None, data, header)
        self._has_result(tree, sequence, entry, values, now)

    def _fits(self, given: Input, types: int, header: Header) -> bool:
        """Whether a result is of a chunk: its sum, or none if another worker gets that.

        A sum for others is taken, too: routers of former versions know no receiver.
        """
        if types != given.types or header.size == given.size:
            return types == given.types
        others = given.receiver not in {0, self._bfr_id} and header.receiver == given.receiver
        return others and header.size == 0

    def _has_result(
        self, tree: TreeProgress, sequence: int, entry: Outstanding, values: Values, now: float
    ) -> None:
        del tree.sent[sequence]
        given = self._chunks.inputs[entry.chunk]
        tree.size += given.size
        lost = self._repeats.heard(tree, sequence, entry, now)
        if lost:
            self._repeat(tree, lost, now)
        again = self._chunks.note_result(entry.chunk)
        own = given.receiver in {0, self._bfr_id}
        self._port.result(entry.chunk, values if own else None, again=again)

    # -- for operators ------------------------------------------------------------------------

    def sizes(self) -> list[int]:
        """Return the bytes of results by tree, in this epoch."""
        return [tree.size for tree in self._trees]

    def lacking(self) -> list[int]:
        """Return the chunks that were sent and have no result yet."""
        return sorted(entry.chunk for tree in self._trees for entry in tree.sent.values())
