"""A router that writes down every call it gets, and what it answered.

It shares all state with the router that it tapes, so a recording begins and ends while the daemon
runs. A call is written before it is made, so that a recording contains what a router did not
survive; after it follow what its stopwatch showed, and a digest of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fared.management.recording import calls
from fared.management.recording.digests import outputs_digest
from fared.management.recording.values import ValueWriter
from fared.paths.fib.model import FibOperation, OperationResult
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.router import Router
from fared.router.settings import RouterSettings

Sink = Callable[[bytes], None]


class Tape:
    """Where the calls of a router go.

    Nothing here disturbs the router: what cannot be written is a ``failure``, and ends the tape.
    """

    def __init__(self, sink: Sink, stopwatch: Callable[[], float]) -> None:
        self._sink = sink
        self._stopwatch = stopwatch
        self._lines: list[calls.Line] = []
        self._readings: list[float] = []
        self._writer = ValueWriter(self._lines.append)
        self.open_requests: list[events.ApplyFib] = []
        """Requests that the kernel has not answered."""
        self.failure = ""
        """Why nothing is written any more."""
        self.calls = 0
        """Written so far."""

    def next_file(self) -> None:
        """Begin another file, which describes itself again."""
        self._writer = ValueWriter(self._lines.append)

    def flush(self) -> None:
        """Write all lines now."""
        if self._lines and not self.failure:
            try:
                self._sink(calls.encoded(self._lines))
            except OSError as error:
                self.failure = error.strerror or str(error)
        self._lines.clear()

    def read_stopwatch(self) -> float:
        """The stopwatch of the router: what it shows is part of the recording."""
        self._readings.append(self._stopwatch())
        return self._readings[-1]

    def begin(self, head: calls.SegmentBegun) -> None:
        """Write the first line of a file."""
        self._lines.append(head)
        self.flush()

    def new_router(self, settings: RouterSettings, seed: int | str, now: float) -> None:
        """Write that the segment begins with a router that has got no call yet."""
        self._write(lambda: calls.NewRouter(self._writer.write(settings), seed, now))

    def input(self, event: events.Input, now: float) -> None:
        """Write an input; an answer of the kernel refers to its request."""
        self._write(lambda: self._input_line(event, now))

    def call(self, line: calls.Line) -> None:
        """Write a call, before it is made."""
        self._write(lambda: line)

    def late_call(self, line: calls.Line) -> None:
        """Add a call that cannot fail, which is written with the next one."""
        if not self.failure:
            self._lines.append(line)
            self.calls += 1

    def _write(self, make: Callable[[], calls.Line]) -> None:
        self._readings.clear()
        if self.failure:
            return
        try:
            line = make()
        except (TypeError, RecursionError) as error:
            self.flush()
            self.failure = str(error)
            return
        self._lines.append(line)
        self.calls += 1
        self.flush()

    def line(self, line: calls.Line) -> None:
        """Add a line, which is written with the next call."""
        self._lines.append(line)

    def made(self) -> None:
        """Complete a call that returned."""
        if self._readings and not self.failure:
            self._lines.append(calls.StopwatchRead(tuple(self._readings)))

    def raised(self, error: Exception) -> None:
        """Complete a call that raised."""
        self.made()
        self._lines.append(calls.CallRaised(type(error).__qualname__, str(error)))

    def _input_line(self, event: events.Input, now: float) -> calls.Line:
        if isinstance(event, events.FibApplied):
            answer = self._answer(event, now)
            if answer is not None:
                return answer
        return calls.InputHandled(now, self._writer.write(event))

    def _answer(self, event: events.FibApplied, now: float) -> calls.FibAnswered | None:
        """Return a line that leaves out what the router itself has said; None: it does not fit."""
        places = [n for n, one in enumerate(self.open_requests) if one is event.request]
        if not places:
            return None
        del self.open_requests[places[0]]
        wanted, results = event.request.operations, event.results
        if [result.operation for result in results] != list(wanted):
            return None
        errors = tuple(
            calls.RefusedOperation(n, r.error, r.message, _subject(r.operation))
            for n, r in enumerate(results)
            if r.error
        )
        return calls.FibAnswered(now, places[0], errors, event.seconds)


class TapedRouter(Router):
    """A running router on tape, to be used in place of that one."""

    __slots__ = ("_untaped", "tape")

    def __init__(self, router: Router, tape: Tape) -> None:  # the router is complete already
        self.__dict__ = router.__dict__
        self._untaped = router
        self.tape = tape
        router.measure_with(tape.read_stopwatch)

    def untaped(self) -> Router:
        """The router itself, whose calls are not written."""
        return self._untaped

    def detected(self, seconds: float) -> None:
        """Like that of the router, on tape."""
        self.tape.late_call(calls.AgeDetected(seconds))
        super().detected(seconds)

    def handle(self, event: events.Input, now: float) -> None:
        """Like that of the router, on tape."""
        tape = self.tape
        tape.input(event, now)
        try:
            super().handle(event, now)
        except Exception as error:
            tape.raised(error)
            raise
        tape.made()

    def receive(self, proto: str, packets: Iterator[igp.Received], now: float) -> None:
        """Like that of the router: each packet is a call on tape."""
        for packet in igp.each(packets):
            self.handle(events.To(proto, packet), now)

    def tick(self, now: float) -> None:
        """Like that of the router, on tape."""
        self.tape.call(calls.ClockTicked(now))
        try:
            super().tick(now)
        except Exception as error:
            self.tape.raised(error)
            raise
        self.tape.made()

    def take_outputs(self) -> list[events.Output]:
        """Like that of the router, on tape."""
        tape = self.tape
        tape.call(calls.OutputsTaken())
        try:
            outputs = super().take_outputs()
        except Exception as error:
            tape.raised(error)
            raise
        tape.made()
        if outputs:
            tape.open_requests += [o for o in outputs if isinstance(o, events.ApplyFib)]
            tape.line(calls.OutputsGiven(len(outputs), outputs_digest(outputs)))
        return outputs


def answered(line: calls.FibAnswered, request: events.ApplyFib) -> events.FibApplied:
    """Return the answer of the kernel that a line stands for, as far as it fits the request."""
    results = [OperationResult(operation) for operation in request.operations]
    places = {_subject(op): n for n, op in enumerate(request.operations)} if line.errors else {}
    for one in line.errors:
        place = places.get(one.subject) if one.subject else one.place
        if place is not None and place < len(results):  # another version may ask for less
            results[place] = OperationResult(request.operations[place], one.error, one.message)
    return events.FibApplied(request, tuple(results), line.seconds)


def _subject(operation: FibOperation) -> str:
    """What an operation writes: its kind, and its route or the number of its object."""
    return str(operation).partition(": ")[0]
