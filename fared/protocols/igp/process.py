"""State common to all routing processes: time, timers, outputs, counters.

The parts of an engine share one ``Instance``, the state of its protocol, which holds a ``Process``.
A process reads no clock: the engine sets ``now`` before it handles an input.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from fared.core.log_limit import LogRateLimiter, Verdict
from fared.core.rng import Rng
from fared.core.timers import TimerQueue
from fared.protocols.igp.counters import PacketCounters, ProtocolCounters
from fared.protocols.igp.events import LogRecord
from fared.protocols.igp.foreign_copies import SUSPICIOUS, ForeignCopies
from fared.protocols.igp.refusals import Differs, Refusals

Output = TypeVar("Output")


class Counting(Protocol):
    """The interface of a packet that is rejected."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def counters(self) -> PacketCounters:
        """Its counters."""


class Process(Generic[Output]):
    """Time, timers, randomness, outputs and counters of one routing process.

    ``name`` is that of the protocol, ``epoch`` the wall-clock time (seconds since 1970) at
    ``now`` 0; ``show`` writes the address that packets come from.
    """

    def __init__(self, name: str, epoch: float, rng: Rng, show: Callable[[int], str]) -> None:
        self.name = name
        self.epoch = epoch
        self.rng = rng
        self.now = 0.0
        self.timers = TimerQueue()
        self.routine = 0
        """Timers fired in this tick that only queued a hello, or were armed again."""
        self.counters = ProtocolCounters()
        self._show = show
        self.refusals = Refusals(show)
        """Refused hellos."""
        self.foreign_copies = ForeignCopies()
        self._outputs: list[Output | LogRecord] = []
        self._log_limiter = LogRateLimiter()

    @property
    def wall(self) -> float:
        """The wall clock's time, seconds since 1970."""
        return self.epoch + self.now

    @property
    def has_outputs(self) -> bool:
        """Whether ``take_outputs`` would return any."""
        return bool(self._outputs)

    def emit(self, output: Output) -> None:
        """Append an output to those that the next ``take_outputs`` returns."""
        self._outputs.append(output)

    def take_outputs(self) -> list[Output | LogRecord]:
        """Return the outputs since the last call."""
        taken, self._outputs = self._outputs, []
        return taken

    def log(self, level: str, event: str, **fields: object) -> None:
        """Emit a log record."""
        self._outputs.append(LogRecord(level, event, fields))

    def reject(
        self,
        reason: str,
        source: int,
        patience: float = 0.0,
        differs: Differs = None,
        /,
        *,
        interface: Counting | None = None,
        kind: str = "",
        **fields: object,
    ) -> None:
        """Count bad input from a peer, and log it at a limited rate.

        ``patience``: it is no warning before it has lasted so many seconds. ``differs``: the value
        of the peer and ours. ``kind``: the type of a packet, ``interface`` where it was received.
        """
        self.counters.errors[reason] += 1
        if interface is not None:
            interface.counters.rejected[kind, reason] += 1
            fields = {"interface": interface.name, **fields}
        limiter, level = self._log_limiter, "warning"
        if patience and not limiter.lasts(source, reason, self.now, patience):
            level, verdict = "info", limiter.judge(source, "", self.now)
        else:
            verdict = limiter.judge(source, reason, self.now)
        if verdict is Verdict.SUPPRESS:
            return
        if differs is not None:
            fields["theirs"], fields["ours"] = differs
        rejected = f"{self.name}-rejected"
        self.log(level, rejected, reason=reason, source=self._show(source), **fields)
        if verdict is Verdict.LOG_LAST:
            self.log("warning", f"{rejected}-many", effect="counted but not logged for a minute")

    def forget(self, ifindex: int) -> None:
        """The protocol no longer runs on an interface."""
        self.refusals.forget(ifindex)
        self.counters.forget(ifindex)

    def may_log(self, source: int, cause: str) -> bool:
        """Whether what a neighbor is the cause of is to be logged: not too often."""
        return self._log_limiter.judge(source, cause, self.now) is not Verdict.SUPPRESS

    def foreign_copy(self, entry: str, instance: Hashable) -> bool:
        """Count an LSA or LSP of ours that we have not originated; whether to log that."""
        times = self.foreign_copies.came(entry, instance, self.now)
        self.counters.lsdb["foreign-copies"] += bool(times)
        return times == SUSPICIOUS

    def discard(self, rule: str) -> None:
        """Count a packet that a rule of the protocol says to discard: no error."""
        self.counters.discarded[rule] += 1
