"""State common to all routing processes: time, timers, outputs, counters.

The parts of an engine share one ``Instance``, the state of its protocol, which holds a ``Process``.
A process reads no clock: the engine sets ``now`` before it handles an input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from fared.core.igp import LogRecord
from fared.core.log_limit import LogRateLimiter, Verdict
from fared.core.rng import Rng
from fared.core.timers import TimerQueue

Output = TypeVar("Output")


class ProtocolCounters(msgspec.Struct):
    """Running totals since the process began."""

    packets: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """By (``received`` or ``sent``, type of packet)."""
    errors: Counter[str] = msgspec.field(default_factory=Counter)
    """Packets rejected, by reason."""
    transitions: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """State changes of neighbors, by (from, to)."""
    lsdb: Counter[str] = msgspec.field(default_factory=Counter)
    """LSA or LSP events: originated, flooded, retransmitted, deferred (not flooded at once, since
    others may deliver it), deferred-sent (no other did), and those of one protocol only."""


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

    def reject(self, reason: str, source: int, **fields: object) -> None:
        """Count bad input from a peer, and log it at a limited rate."""
        self.counters.errors[reason] += 1
        verdict = self._log_limiter.judge(source, reason, self.now)
        if verdict is Verdict.SUPPRESS:
            return
        rejected = f"{self.name}-rejected"
        self.log("warning", rejected, reason=reason, source=self._show(source), **fields)
        if verdict is Verdict.LOG_LAST:
            self.log("warning", f"{rejected}-many", effect="counted but not logged for a minute")
