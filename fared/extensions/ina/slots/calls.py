"""Where calls begin and end, so that the workers of an elastic job change between two calls only.

Sums over different workers must never mix: each call is over one set of workers, the same one at
all of them. So the last chunk of a call is a *closing* one without meaning, which a worker sends
when it has all other results of the call. Its result tells that all workers have theirs: the call
has ended.

An epoch with other workers begins where a call does: each worker proposes the end of its last call
if it has all results of it, else the beginning, and the least proposal is taken. A call that has
ended anywhere is never taken back: all workers had its results when they closed it, so each of them
proposes its end at least. A call that has not is made again over the workers of the new epoch. A
worker that comes back proposes nothing, and begins with the others' next call.

``since`` is the epoch in which the workers last changed; a worker's results are of one such time.
Epochs between go on in the middle of a call, as in jobs whose workers do not change.
"""

from __future__ import annotations

from typing import Final

from fared.extensions.ina.plan.model import BitString
from fared.extensions.ina.slots.setup import JobSetup

FAR: Final = 1 << 62
"""What a worker proposes that comes back."""


class CallBounds:
    """The last call of one worker. ``returning``: other workers have been calling before."""

    def __init__(self, *, returning: bool) -> None:
        self.returning = returning
        self.closing = -1
        """The closing chunk of the last call that was closed; the next call begins after it."""
        self._opening = 0
        self._since: int | None = None
        self._bits: BitString = 0
        self._ended_over: BitString | None = None

    def close(self, chunk: int) -> None:
        """Note the closing chunk of a call."""
        self._opening, self.closing = self.closing + 1, chunk
        self._ended_over = None

    @property
    def summed_over(self) -> BitString:
        """The workers of the last call, once it has ended."""
        return self._bits if self._ended_over is None else self._ended_over

    def changes(self, setup: JobSetup) -> bool:
        """Whether results are of other workers than those of an epoch."""
        return setup.elastic and setup.since != self._since

    def proposal(self, setup: JobSetup, done: int) -> int:
        """Return the chunk from which an epoch may run; all before ``done`` have results."""
        if self.returning:
            return FAR
        if not self.changes(setup):
            return done
        return self.closing + 1 if done >= self.closing else self._opening

    def permits(self, base: int, done: int) -> bool:
        """Whether an epoch with other workers can begin at a chunk."""
        after = base == self.closing + 1 and done >= self.closing
        return self.returning or after or (base == self._opening and done <= self.closing)

    def began(self, base: int, setup: JobSetup, *, restarts: bool) -> None:
        """Note the workers of an epoch with other ones, which runs from ``base``.

        ``restarts``: the call that begins there has lost all its chunks.
        """
        if self.returning:
            self._opening, self.closing, self.returning = base, base - 1, False
        elif restarts:
            self.closing = base - 1
        elif base > self.closing:
            self._ended_over = self.summed_over
        self._since, self._bits = setup.since, setup.bits
