"""A worker: it sends its chunks within a window, repeats what is lost, and collects results.

Chunks are numbered through the life of the job. In an epoch that runs from chunk c0 on, chunk
c0 + i goes through the tree that smooth weighted round robin gives to i, and sequences of each tree
begin at 0. Sequence s is sent when the result of s - S is here, and no chunk is sent that is
``lead`` or more ahead of the first one without a result of this epoch. So no worker is more than
``lead`` behind another, and inputs of twice as many chunks suffice to begin a new epoch.

A new epoch begins with the least ``next`` of all workers: a minimum over the new trees (``SYNC``).

The workers of an elastic job may change: then an epoch begins between two calls (``calls``).

Links must not wait for arrays that are prepared: the values of a chunk come from a ``Part`` of a
call, which makes them when the chunk is sent for the first time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from fared.core.wire import DecodeError
from fared.ina.plan.model import BitString, Vertex
from fared.ina.slots.calls import FAR, CallBounds
from fared.ina.slots.packet import (
    DataHeaders,
    DataType,
    Flag,
    Header,
    Op,
    PacketKind,
    Values,
    agrees,
    control_of,
    decode_header,
    encode_header,
    newer,
    values_of,
)
from fared.ina.slots.setup import JobSetup
from fared.ina.slots.window import LEAST_BURST, Outstanding, RoundTrip, TreeProgress

_LATER_RESULTS = 3
"""A chunk is repeated at once when as many later ones of its tree have a result."""
_PLACE = 1 << 32
_RESULT = PacketKind.RESULT
_NOTHING = np.zeros(1, "<i4")
"""The closing chunk of a call."""
_SYNC_EVERY = 0.2
"""Seconds after which the beginning of an epoch is repeated at the latest."""
ASK_AFTER = 0.25
"""Seconds without a result after which a worker asks for whom the sum waits."""


class WorkerPort(Protocol):
    """What a worker sends and gets."""

    def send(self, parent: Vertex, header: bytes, values: Values) -> None:
        """Send a packet to the first VAT node of a tree."""

    def result(self, chunk: int, values: Values, header: Header, *, again: bool) -> None:
        """Take the result of a chunk, whose values are valid during the call only.

        ``again``: a former epoch gave it too; it must be the same.
        """

    def outdated(self, epoch: int) -> None:
        """A router runs a newer epoch than this worker."""

    def lacking(self, bits: BitString) -> None:
        """A router waits for these workers."""


Source = Callable[[], Values]
"""Gives the values of a chunk, once."""


class Input(NamedTuple):
    """A chunk: its values, what its packets tell of them, and their control sum."""

    values: Values
    data_type: DataType
    op: Op
    exponent: int
    control: int

    @classmethod
    def of(cls, values: Values, data_type: DataType, op: Op = Op.SUM, exponent: int = 0) -> Input:
        """Return a chunk with its control sum: of sums only, 0 for others."""
        control = control_of(values) if op is Op.SUM else 0
        return cls(values, data_type, op, exponent, control)


class Part(Protocol):
    """Some chunks of a call that follow each other."""

    def made(self, at: int) -> Input:
        """Return chunk ``at`` of this part, which is asked for once."""


class _Single:
    """A part of one chunk."""

    def __init__(self, source: Source, data_type: DataType, op: Op, exponent: int) -> None:
        self._source, self._told = source, (data_type, op, exponent)

    def made(self, at: int) -> Input:
        del at
        return Input.of(self._source(), *self._told)


def _wish(entry: Outstanding, now: float) -> int:
    """Return the flags of a repeated packet."""
    asks = Flag.ASK if now - entry.sent_at >= ASK_AFTER else 0
    return Flag.AGAIN | Flag.WANT | asks


def _after(results: set[int], first: int, chunk: int) -> int:
    """Note the result of a chunk; return the first chunk without one, ``first`` before.

    ``results`` has those after it.
    """
    if chunk != first:
        results.add(chunk)
        return first
    first += 1
    while first in results:
        results.remove(first)
        first += 1
    return first


class WorkerMachine:
    """One worker of one job. ``vertex`` is minus its BFR-id.

    ``returning``: other workers of an elastic job have been calling before.
    """

    def __init__(self, bfr_id: int, port: WorkerPort, *, returning: bool = False) -> None:
        self.vertex = -bfr_id
        self._bit = 1 << (bfr_id - 1)
        self._port = port
        self.setup: JobSetup | None = None
        self.counters: Counter[str] = Counter()
        self.next = 0
        """The first chunk without a result."""
        self.end = 0
        """The number of the next chunk that is put."""
        self.calls = CallBounds(returning=returning)
        self.restarts = 0
        """How often a call was taken back, all chunks of which are to be put again."""
        self._base = 0
        self._first = 0
        """The first chunk without a result of this epoch; ``next`` may be ahead of it."""
        self._keep = 0
        self._lead = 0
        self._inputs: dict[int, Input] = {}
        self._unsent: dict[int, tuple[int, Part]] = {}
        """Chunks of which nothing has been sent: part, and the number of its first chunk."""
        self._headers: DataHeaders | None = None
        self._stopped = False
        self._results: set[int] = set()
        """Chunks with a result, from ``next`` on."""
        self._epoch_results: set[int] = set()
        """The same of this epoch, from ``_first`` on."""
        self._trees: list[TreeProgress] = []
        self._syncing: Outstanding | None = None
        self._round_trip = RoundTrip()
        self._due = math.inf
        """No packet is to be repeated before."""

    # -- the job ------------------------------------------------------------------------------

    def install(self, setup: JobSetup, now: float) -> bool:
        """Begin an epoch, the first one or a newer one; others are ignored."""
        if self.setup is not None and not newer(setup.epoch, self.setup.epoch, 16):
            return False
        self.setup = setup
        self._lead = setup.lead
        self._keep = max(self._keep, self._lead)
        self._headers = DataHeaders(self._header(PacketKind.DATA, setup, 0, 0))
        self._trees = []
        self._round_trip = RoundTrip()
        self._syncing = Outstanding(0, now, now + self._round_trip.timeout(0))
        self._send_sync(0)
        return True

    def put(
        self,
        values: Values | Source,
        data_type: DataType = DataType.INT32,
        op: Op = Op.SUM,
        exponent: int = 0,
    ) -> int:
        """Add the next chunk; its values must not change before ``oldest_needed`` has passed it.

        Returns its number. Call ``pump`` after the last one.
        """
        source = values if callable(values) else lambda: values
        return self.put_part(_Single(source, data_type, op, exponent), 1)

    def put_part(self, part: Part, count: int) -> int:
        """Add ``count`` chunks; return the number of the first."""
        first = self.end
        self.end += count
        self._unsent.update(dict.fromkeys(range(first, self.end), (first, part)))
        return first

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
        self._unsent.clear()

    @property
    def oldest_needed(self) -> int:
        """The first chunk whose input a new epoch may need."""
        return max(0, self._first - self._keep)

    @property
    def running(self) -> bool:
        """Whether the epoch runs, and chunks are sent."""
        return self.setup is not None and self._syncing is None

    # -- sending ------------------------------------------------------------------------------

    def pump(self, now: float) -> None:
        """Send what the windows permit."""
        if self._syncing is None:
            for tree in self._trees:
                self._pump(tree, now)

    def _pump(self, tree: TreeProgress, now: float) -> None:
        while not self._stopped:
            sequence = tree.next_sequence
            chunk = self._base + tree.offset(sequence)
            if not self._may_send(tree, sequence, chunk):
                return
            tree.done.discard(sequence - tree.window)
            tree.next_sequence += 1
            due = now + self._round_trip.timeout(0)
            self._due = min(self._due, due)
            entry = tree.sent[sequence] = Outstanding(chunk, now, due)
            self._send(tree, sequence, entry, 0)

    def _may_send(self, tree: TreeProgress, sequence: int, chunk: int) -> bool:
        """Whether there is such a chunk, and lead and window permit it.

        The closing chunk of a call is sent when all others have results.
        """
        behind = sequence - tree.window
        if chunk >= self.end or (behind >= 0 and behind not in tree.done):
            return False
        early = chunk == self.calls.closing and self.next < chunk
        return not early and chunk < self._first + self._lead

    def deadline(self) -> float | None:
        """Return when to call ``tick``: at the latest when a packet is to be repeated."""
        if self._syncing is not None:
            return self._syncing.due
        return None if self._due == math.inf else self._due

    def patience(self) -> float:
        """Return for how many seconds results may wait, to be processed with others.

        Waking up takes as long as processing some packets. At the end of a call nothing waits.
        """
        left = len(self._unsent) - (self.calls.closing in self._unsent)
        return self._round_trip.patience() if left and self._syncing is None else 0.0

    def _earliest(self) -> float:
        """Return when the first packet is to be repeated."""
        dues = [entry.due for tree in self._trees for entry in tree.sent.values()]
        return min(dues, default=math.inf)

    def tick(self, now: float) -> None:
        """Repeat what has had no result for too long."""
        if self._syncing is not None:
            if now >= self._syncing.due:
                self._again(self._syncing, now)
                # It is small, and routers learn of an epoch one after the other.
                self._syncing.due = min(self._syncing.due, now + _SYNC_EVERY)
                self._send_sync(_wish(self._syncing, now))
            return
        if now < self._due:
            return
        for tree in self._trees:
            late = [
                (sequence, entry)
                for sequence, entry in tree.sent.items()
                if now >= entry.due and not tree.puts_off(entry, now)
            ]
            for at, (sequence, entry) in enumerate(late):
                self._round_trip.expired(now)
                if at < tree.burst:
                    self._repeat(tree, sequence, entry, now)
                else:
                    entry.due = now + self._round_trip.timeout(0)
            if late:
                tree.burst *= 2
        self._due = self._earliest()

    def _repeat(self, tree: TreeProgress, sequence: int, entry: Outstanding, now: float) -> None:
        self._again(entry, now)
        self._send(tree, sequence, entry, _wish(entry, now))

    def _again(self, entry: Outstanding, now: float) -> None:
        self.counters["repeated"] += 1
        entry.repeats += 1
        entry.later = 0
        entry.due = now + self._round_trip.timeout(entry.repeats)
        self._due = min(self._due, entry.due)

    def _send(self, tree: TreeProgress, sequence: int, entry: Outstanding, flags: int) -> None:
        assert self._headers is not None
        given = self._inputs.get(entry.chunk)
        if given is None:
            first, part = self._unsent.pop(entry.chunk)
            given = self._inputs[entry.chunk] = part.made(entry.chunk - first)
        values, data_type, op, exponent, control = given
        header = self._headers.encode(
            tree.tree_id, sequence % _PLACE, values.nbytes, data_type << 4 | op, flags, exponent,
            control,
        )  # fmt: skip
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
        if setup is None or header.job != setup.job_id:
            self.counters["unexpected"] += 1
        elif header.epoch != setup.epoch:
            self.counters["other-epoch"] += 1
            if header.kind is PacketKind.NACK and newer(header.epoch, setup.epoch, 16):
                self._port.outdated(header.epoch)
        elif header.kind is _RESULT and self._syncing is None:
            self._result(header, data, now)
        elif header.kind is PacketKind.LACKING:
            self._port.lacking(header.bits)
        elif header.kind is PacketKind.SYNC_RESULT and self._syncing is not None:
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
        if not self._begins(base, setup):
            self.counters["lost-too-much"] += 1  # a worker that is not one of ours
            return
        base = 0 if base == FAR else base
        self._base = self._first = base
        self._epoch_results.clear()
        self._syncing = None
        self._due = math.inf
        self._trees = [TreeProgress(tree, at, setup.order) for at, tree in enumerate(setup.trees)]
        self.pump(now)

    def _begins(self, base: int, setup: JobSetup) -> bool:
        """Whether an epoch can run from a chunk; if workers changed, take back what follows it."""
        if not self.calls.changes(setup):
            return self.oldest_needed <= base <= self.next
        if not self.calls.permits(base, self.next):
            return False
        base = 0 if base == FAR else base  # all workers come back
        has_more = self.next > base or bool(self._results)
        if self.calls.returning or has_more:
            self.end = base
            self._results.clear()
            self._inputs.clear()
            self._unsent.clear()
            self.restarts += has_more
        self._unsent.pop(base - 1, None)  # a closing chunk that is not needed any more
        self.calls.began(base, setup, restarts=has_more)
        self.next = base
        return True

    def _result(self, header: Header, data: bytes | bytearray | memoryview, now: float) -> None:
        setup = self.setup
        assert setup is not None
        tree = self._trees[header.tree] if header.tree < len(self._trees) else None
        entry = None if tree is None else tree.sent.get(header.sequence)
        if tree is None or entry is None:
            self.counters["duplicate"] += 1
            return
        values = values_of(header, data)
        given = self._inputs[entry.chunk]
        if header.bits != setup.bits or values.shape != given.values.shape:
            self.counters["incomplete"] += 1
            return
        if not agrees(header, values):
            self.counters["control-sum"] += 1
            return
        del tree.sent[header.sequence]
        tree.done.add(header.sequence)
        tree.size += header.size
        self._note_progress(tree, header.sequence, entry, now)
        again = entry.chunk < self.next or entry.chunk in self._results
        self._port.result(entry.chunk, values, header, again=again)
        self._advance(entry.chunk, again=again)

    def _note_progress(
        self, tree: TreeProgress, sequence: int, entry: Outstanding, now: float
    ) -> None:
        tree.heard_at = now
        if not entry.repeats and now > tree.measured_at:
            # Results that came together tell the round trip once.
            tree.measured_at = now
            self._round_trip.measured(now - entry.sent_at)
            tree.burst = LEAST_BURST
        if next(iter(tree.sent), sequence) >= sequence:
            return  # nothing that was sent before waits
        for other, waiting in list(tree.sent.items()):
            if other < sequence:
                waiting.later += 1
                if waiting.later == _LATER_RESULTS:
                    self._repeat(tree, other, waiting, now)

    def _advance(self, chunk: int, *, again: bool) -> None:
        if not again:
            self.next = _after(self._results, self.next, chunk)
        first = self._first
        self._first = _after(self._epoch_results, first, chunk)
        for passed in range(first, self._first):
            self._inputs.pop(passed - self._keep, None)

    # -- for operators ------------------------------------------------------------------------

    def sizes(self) -> list[int]:
        """Return the bytes of results by tree, in this epoch."""
        return [tree.size for tree in self._trees]

    def lacking(self) -> list[int]:
        """Return the chunks that were sent and have no result yet."""
        return sorted(entry.chunk for tree in self._trees for entry in tree.sent.values())
