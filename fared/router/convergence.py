"""The duration of each change from its first sign to the kernel, and its causes.

An input that changes something carries the time of its first sign. The causes collected since the
last computation are passed with it to the FIB and become one record of ``show convergence``.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

import msgspec

from fared.core.ids import Prefix

Record = TypeVar("Record", bound=msgspec.Struct)
MAX_CAUSES = 8
MOST_RECORDS = 256
MOST_CHANGES = 16384
"""Prefixes whose last change is remembered, and an eighth more between two looks at their number:
more than a fabric has, fewer than may be learnt from beyond it."""


class ConvergenceRecord(msgspec.Struct, frozen=True, array_like=True):
    """One change. Times are on the router's clock, durations in seconds.

    ``detected``: from the kernel's message, or the packet, until the engine had it; ``originated``:
    from then until our own LSAs, and those to flood, were ready; ``flooded``: to send them;
    ``waited``: added by the SPF back-off; ``computed`` is ``spf`` (shortest paths) and ``weighed``
    (weights and RIB); ``planned``: the FIB plan, after other areas or levels have been told of the
    change; ``programmed``: the kernel; ``total``: from the first sign to the end.
    """

    at: float
    causes: tuple[str, ...]
    spf_ran: bool
    routes: int
    operations: int
    detected: float
    originated: float
    flooded: float
    waited: float
    computed: float
    spf: float
    weighed: float
    planned: float
    programmed: float
    total: float


class SpfRecord(msgspec.Struct, frozen=True, array_like=True):
    """One run of the solver: an entry of ``show spf log``."""

    at: float
    causes: tuple[str, ...]
    spf_ran: bool
    nodes: int
    edges: int
    routes: int
    computed: float
    backoff: str
    spf: float = 0.0
    """The part of ``computed`` for shortest paths; the rest is for weights and routes."""


class StageTimes(msgspec.Struct, frozen=True):
    """Durations before the computation of a change, seconds each: see ``ConvergenceRecord``."""

    detected: float = 0.0
    originated: float = 0.0
    flooded: float = 0.0


class PendingChange(msgspec.Struct):
    """Causes and times since the last computation."""

    since: float | None = None
    detected: float = 0.0
    originated: float = 0.0
    flooded: float = 0.0
    causes: list[str] = msgspec.field(default_factory=list)
    more: int = 0

    def add(self, cause: str, since: float) -> None:
        """Add a cause; the earliest sign counts."""
        self.since = since if self.since is None else min(self.since, since)
        if cause in self.causes:
            return
        if len(self.causes) < MAX_CAUSES:
            self.causes.append(cause)
        else:
            self.more += 1

    def stage_times(self) -> StageTimes:
        """The durations so far."""
        return StageTimes(self.detected, self.originated, self.flooded)

    def summary(self) -> tuple[str, ...]:
        """The causes for people."""
        return (*self.causes, f"and {self.more} more") if self.more else tuple(self.causes)


class LastChange(msgspec.Struct, frozen=True):
    """The time of the last change of a route or its weights, and the causes."""

    at: float
    causes: tuple[str, ...]


class PackedRing(Sequence[Record], Generic[Record]):
    """At most so many records, the oldest first: many are kept, and few are ever read.

    A struct of numbers takes a third as bytes.
    """

    def __init__(self, kind: type[Record], most: int) -> None:
        self._kind = kind
        self._packed: deque[bytes] = deque(maxlen=most)

    def append(self, record: Record) -> None:
        """Add a record; the oldest makes room."""
        self._packed.append(msgspec.msgpack.encode(record))

    def _decode(self, packed: bytes) -> Record:
        return msgspec.msgpack.decode(packed, type=self._kind)

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[Record]:
        return map(self._decode, self._packed)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        """Decode one record, or several."""
        if isinstance(index, slice):
            return [*map(self._decode, [*self._packed][index])]
        return self._decode(self._packed[index])


class Journal(msgspec.Struct):
    """The last changes and SPF runs, and counts since start."""

    changes: PackedRing[ConvergenceRecord] = msgspec.field(
        default_factory=lambda: PackedRing(ConvergenceRecord, MOST_RECORDS)
    )
    spf_runs: PackedRing[SpfRecord] = msgspec.field(
        default_factory=lambda: PackedRing(SpfRecord, MOST_RECORDS)
    )
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    runs: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """Runs of the solvers, by protocol and reason (topology or capacity)."""
    last_change: dict[Prefix, LastChange] = msgspec.field(default_factory=dict)
    """The last change of routes or their weights, withdrawn ones included: the most recent ones."""

    def changed(self, prefixes: Collection[Prefix], at: float, causes: tuple[str, ...]) -> None:
        """Record the causes of the present routes."""
        known, change = self.last_change, LastChange(at, causes)
        skipped = max(0, len(prefixes) - MOST_CHANGES)
        if skipped:  # a table that once had room for all of them would keep it
            known.clear()
        for prefix in islice(prefixes, skipped, None):
            known.pop(prefix, None)  # the last ones changed are at the end
            known[prefix] = change
        if len(known) > MOST_CHANGES + MOST_CHANGES // 8:
            for prefix in list(islice(known, len(known) - MOST_CHANGES)):
                del known[prefix]
