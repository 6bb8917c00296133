"""The chunks of one worker: what their values are, and which of them have a result.

They are numbered through the life of the job. Links must not wait for arrays that are prepared: the
values of a chunk come from a ``Part`` of a call, which makes them when the chunk is sent for the
first time. They are kept as long as a new epoch may need them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from fared.extensions.ina.slots.calls import FAR, CallBounds
from fared.extensions.ina.slots.packet import DataType, Op, Values, control_of, types_of
from fared.extensions.ina.slots.setup import JobSetup

Source = Callable[[], Values]
"""Gives the values of a chunk, once."""


class Input(NamedTuple):
    """A chunk: its values, and what its packets tell of them.

    ``types`` are type and op as in a packet, ``size`` is in bytes.
    """

    values: Values
    types: int
    size: int
    exponent: int
    control: int
    receiver: int = 0
    """The BFR-id of the only worker that gets the result; 0: all get it."""

    @classmethod
    def of(
        cls,
        values: Values,
        data_type: DataType,
        op: Op = Op.SUM,
        exponent: int = 0,
        receiver: int = 0,
    ) -> Input:
        """Return a chunk with its control sum: of sums only, 0 for others."""
        control = control_of(values) if op is Op.SUM else 0
        return cls(values, types_of(data_type, op), values.nbytes, exponent, control, receiver)


class Part(Protocol):
    """Some chunks of a call that follow each other."""

    def made(self, at: int) -> Input:
        """Return chunk ``at`` of this part, which is asked for once."""


class Single:
    """A part of one chunk."""

    def __init__(
        self, source: Source, data_type: DataType, op: Op, exponent: int, receiver: int
    ) -> None:
        self._source, self._told = source, (data_type, op, exponent, receiver)

    def made(self, at: int) -> Input:
        """Return the chunk."""
        del at
        return Input.of(self._source(), *self._told)


class Chunks:
    """All chunks of a worker. ``next`` is the first one without a result, ``end`` the next to put.

    ``first`` is the first one without a result of this epoch; ``next`` may be ahead of it.
    """

    def __init__(self, calls: CallBounds) -> None:
        self._calls = calls
        self.next = self.end = self.first = 0
        self.restarts = 0
        """How often a call was taken back, all chunks of which are to be put again."""
        self.unsent: dict[int, tuple[int, Part]] = {}
        """Chunks of which nothing has been sent: part, and the number of its first chunk."""
        self.inputs: dict[int, Input] = {}
        """Those that have been sent."""
        self._keep = 0
        self._results: set[int] = set()
        """Chunks with a result, from ``next`` on."""
        self._epoch_results = self._results
        """The same of this epoch, from ``first`` on: the same set, unless chunks are summed again.

        Then ``first`` is ``next``, too.
        """

    @property
    def oldest_needed(self) -> int:
        """The first chunk whose input a new epoch may need."""
        return max(0, self.first - self._keep)

    @property
    def has_unsent(self) -> bool:
        """Whether a chunk was never sent, but for the closing one, which waits for all others."""
        return len(self.unsent) > (self._calls.closing in self.unsent)

    def keep(self, lead: int) -> None:
        """Keep the inputs of so many chunks with a result at least."""
        self._keep = max(self._keep, lead)

    def put(self, part: Part, count: int) -> int:
        """Add ``count`` chunks; return the number of the first."""
        first = self.end
        self.end += count
        self.unsent.update(dict.fromkeys(range(first, self.end), (first, part)))
        return first

    def input_of(self, chunk: int) -> Input:
        """Return the input of a chunk, which is made if it was never sent."""
        given = self.inputs.get(chunk)
        if given is None:
            first, part = self.unsent.pop(chunk)
            given = self.inputs[chunk] = part.made(chunk - first)
        return given

    def begins(self, base: int, setup: JobSetup) -> bool:
        """Whether an epoch can run from a chunk; if workers changed, take back what follows it."""
        calls = self._calls
        if not calls.changes(setup):
            return self.oldest_needed <= base <= self.next
        if not calls.permits(base, self.next):
            return False
        base = 0 if base == FAR else base  # all workers come back
        has_more = self.next > base or bool(self._results)
        if calls.returning or has_more:
            self.end = base
            self._results.clear()
            self.inputs.clear()
            self.unsent.clear()
            self.restarts += has_more
        self.unsent.pop(base - 1, None)  # a closing chunk that is not needed any more
        calls.began(base, setup, restarts=has_more)
        self.next = base
        return True

    def began(self, base: int) -> None:
        """Note that an epoch runs from a chunk on."""
        self.first = base
        again = base != self.next or self._results
        self._epoch_results = set() if again else self._results

    def note_result(self, chunk: int) -> bool:
        """Note a result of this epoch; return whether a former epoch gave it, too."""
        first = self.first
        if self._epoch_results is self._results:
            again = False
            self.first = self.next = _after(self._results, first, chunk)
        else:
            again = chunk < self.next or chunk in self._results
            if not again:
                self.next = _after(self._results, self.next, chunk)
            self.first = _after(self._epoch_results, first, chunk)
        for passed in range(first, self.first):
            self.inputs.pop(passed - self._keep, None)
        return again


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
