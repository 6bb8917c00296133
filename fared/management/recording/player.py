"""Runs a router on a recording, without sockets, kernel or clock, and compares what it does.

Every call of the recording is made again, at the recorded time; the stopwatch shows what it showed
then. The outputs of each turn must have the recorded digest; the first difference ends the
comparison, not the run.
"""

from __future__ import annotations

import pickle
import random
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fared import __version__
from fared.management.recording import calls, checkpoint, files
from fared.management.recording.digests import outputs_digest, state_digests
from fared.management.recording.files import RecordingError, Segment
from fared.management.recording.recording import PYTHON
from fared.management.recording.signature import KEY_NAME, is_ours, state_of
from fared.management.recording.taped import answered
from fared.management.recording.until import Until, names_of
from fared.management.recording.values import NamedClass, UnreadableValueError, ValueReader
from fared.router import events
from fared.router.router import Router
from fared.runtime import state_directory


class ReplayDifference(msgspec.Struct, frozen=True):
    """The first call after which the router differs from the recorded one."""

    segment: int
    call: int
    now: float
    what: str
    outputs: tuple[str, ...] = ()


class Played(msgspec.Struct):
    """What a replay has come to. ``call`` counts all calls; ``now``: the router's clock."""

    router: Router
    began: calls.SegmentBegun
    new_router: bool
    """Whether it began with a new router, else with the state of a running one."""
    call: int = 0
    now: float = 0.0
    segment: int = 0
    raised: list[str] = msgspec.field(default_factory=list)
    events: Counter[str] = msgspec.field(default_factory=Counter)
    difference: ReplayDifference | None = None
    compared: bool = True
    """Whether this is the version that was recorded, so that all must be equal."""
    confirmed: bool = False
    """Whether the recording ended with digests of databases and routes, and they are equal."""
    reached: bool = False
    """Whether the event to stop at has come."""
    offset: int = 0
    """Lines of the last segment that were played."""

    def differs(self, what: str, outputs: tuple[str, ...] = ()) -> None:
        """Record a difference, if it is the first."""
        if self.difference is None and self.compared:
            found = ReplayDifference(self.segment, self.call, self.now, what, outputs)
            self.difference = found


class _Step(NamedTuple):
    """A call, and the lines that describe what it did."""

    call: calls.Line
    readings: tuple[float, ...]
    given: calls.OutputsGiven | None
    raised: calls.CallRaised | None
    last: bool
    """Whether the file ends here: what it did may be missing."""


def play(
    directory: Path, *, until: str = "", trust: bool = False, keys: Path | None = None
) -> Played:
    """Replay a recording from its oldest segment on.

    ``until``: see ``Until``. ``trust``: load states that were not signed on this machine, with the
    key in the directory ``keys``. Raises RecordingError.
    """
    found = files.segments(directory)
    while found and not found[0].starts:
        del found[0]
    if not found:
        raise RecordingError(f"{directory} has no recording that a replay can begin with")
    player = _Player(Until(until), None if trust else keys or state_directory.of_this_machine())
    for segment in found:
        player.play(segment)
        if player.result.reached:
            break
    return player.result


class _Player:
    """Plays segments, one after the other."""

    def __init__(self, until: Until, keys: Path | None) -> None:
        """``keys`` None: all states are trusted."""
        self._until = until
        self._keys = keys
        self._played: Played | None = None
        self._reader = ValueReader()
        self._readings: Iterator[float] = iter(())
        self._shown = 0.0
        self._requests: list[events.ApplyFib] = []

    @property
    def result(self) -> Played:
        """The present outcome."""
        assert self._played is not None
        return self._played

    def _stopwatch(self) -> float:
        self._shown = next(self._readings, self._shown)
        return self._shown

    def play(self, segment: Segment) -> None:
        """Play a segment: on with the same router, unless the segment begins with another."""
        self._reader = ValueReader()
        lines = segment.lines()
        head = next(lines, None)
        if not isinstance(head, calls.SegmentBegun) or head.format != calls.FORMAT:
            raise RecordingError(f"{segment.file} is no recording ({calls.FORMAT})")
        before = self._played
        fresh = before is None or not head.continues or before.segment + 1 != segment.number
        known = list(lines)
        for line in known:
            if isinstance(line, NamedClass):
                self._name(line)
            elif isinstance(line, calls.NewRouter):
                self._begin(head, self._new_router(line, head), new=True)
                fresh = False
        if fresh and before is not None and segment.state is None:
            return  # its first state could not be written
        if fresh:
            self._begin(head, self._load(segment, head), new=False)
        self.result.segment = segment.number
        for number, step in enumerate(_steps(known), 1):
            self._make(step)
            self.result.offset = number
            if self.result.reached:
                return
        self._end(known)

    def _begin(self, head: calls.SegmentBegun, router: Router, *, new: bool) -> None:
        equal = (head.version, head.python) == (__version__, PYTHON)
        before = self._played
        self._played = Played(router, head, new, now=head.now, compared=equal)
        if before is not None:  # another recording in the same directory
            self._played.call, self._played.events = before.call, before.events
            self._played.raised, self._played.difference = before.raised, before.difference
        self._requests = []

    def _new_router(self, line: calls.NewRouter, head: calls.SegmentBegun) -> Router:
        settings = self._value(line.settings)
        try:
            return Router(settings, random.Random(line.seed), line.now, self._stopwatch)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            text = f"fared {head.version} recorded settings that this one cannot use: {error}"
            raise RecordingError(text) from None

    def _load(self, segment: Segment, head: calls.SegmentBegun) -> Router:
        if segment.state is None:
            raise RecordingError(f"{segment.file} has no state to begin with")
        if (head.version, head.python) != (__version__, PYTHON):
            raise RecordingError(
                f"fared {head.version} on Python {head.python} wrote the state of this recording,"
                f" and no other can load it: this is {__version__} on Python {PYTHON}"
            )
        try:
            content = segment.state.read_bytes()
        except OSError as error:
            raise RecordingError(f"{segment.state}: {error.strerror}") from None
        if self._keys is not None and not is_ours(content, self._keys):
            raise RecordingError(
                f"{segment.state} was not signed with {self._keys / KEY_NAME},"
                " and to load it runs what its writer wrote"
            )
        try:
            router = checkpoint.load(zlib.decompress(state_of(content)))
        except (zlib.error, pickle.UnpicklingError, EOFError, ImportError, AttributeError) as error:
            raise RecordingError(f"{segment.state} cannot be loaded: {error}") from None
        router.measure_with(self._stopwatch)
        return router

    def _name(self, line: NamedClass) -> None:
        try:
            self._reader.name(line)
        except UnreadableValueError as error:
            raise RecordingError(str(error)) from None

    def _value(self, written: Any) -> Any:  # noqa: ANN401 - settings or an event
        try:
            return self._reader.read(written)
        except UnreadableValueError as error:
            raise RecordingError(str(error)) from None

    # -- one call ---------------------------------------------------------------------------

    def _make(self, step: _Step) -> None:
        """Make a call again, and compare."""
        played, router = self.result, self.result.router
        played.call += 1
        self._readings = iter(step.readings)
        outputs: list[events.Output] = []
        event: events.Input | None = None
        error = ""
        try:
            match step.call:
                case calls.InputHandled(now, written):
                    played.now, event = now, self._value(written)
                    router.handle(event, now)
                case calls.FibAnswered(now, place):
                    played.now = now
                    event = self._answer(step.call, place)
                    if event is not None:
                        router.handle(event, now)
                case calls.AgeDetected(seconds):
                    router.detected(seconds)
                case calls.ClockTicked(now):
                    played.now = now
                    router.tick(now)
                case _:
                    outputs = router.take_outputs()
        except RecordingError:
            raise
        except Exception as raised:  # noqa: BLE001 - what the router raised is to be compared
            error = f"{type(raised).__qualname__}: {raised}"
            played.raised.append(error)
        self._requests += [output for output in outputs if isinstance(output, events.ApplyFib)]
        self._compare(step, outputs, error)
        names = names_of(event, outputs)
        played.events.update(names)
        played.reached = self._until.reached(played.call, names)

    def _answer(self, line: calls.FibAnswered, place: int) -> events.FibApplied | None:
        """Return the kernel's answer; None: this router has not asked for it."""
        try:
            return answered(line, self._requests.pop(place))
        except IndexError:
            self.result.differs("the kernel answers what was not asked")
            return None

    def _compare(self, step: _Step, outputs: list[events.Output], error: str) -> None:
        was = "" if step.raised is None else f"{step.raised.error}: {step.raised.words}"
        if step.last and not was and step.given is None:
            return  # the recorded process ended during this call, or after it
        if error != was:
            self.result.differs(f"raises {error or 'nothing'}, was: {was or 'nothing'}")
            return
        given = step.given or calls.OutputsGiven(0, b"")
        shown = tuple(repr(output) for output in outputs)
        if given.count != len(outputs):
            self.result.differs(f"{len(outputs)} outputs, were {given.count}", shown)
        elif outputs and given.digest != outputs_digest(outputs):
            self.result.differs("other outputs", shown)

    def _end(self, lines: list[calls.Line]) -> None:
        """Compare databases and routes with those of a recording that ended here."""
        seen = lines[-1] if lines else None
        self.result.confirmed = False
        if not isinstance(seen, calls.StateSeen):
            return
        self.result.now = seen.now
        digests = state_digests(self.result.router, seen.now)
        if digests.databases != seen.databases:
            self.result.differs("other databases at the end")
        elif digests.routes != seen.routes:
            self.result.differs("other routes at the end")
        else:
            self.result.confirmed = True


def _steps(lines: list[calls.Line]) -> Iterator[_Step]:
    """Yield calls with the lines that follow each."""
    made: calls.Line | None = None
    after: list[calls.Line] = []
    for line in lines:
        if isinstance(line, calls.CALLS):
            if made is not None:
                yield _step(made, after, last=False)
            made, after = line, []
        else:
            after.append(line)
    if made is not None:
        ended = any(isinstance(line, calls.StateSeen) for line in after)
        yield _step(made, after, last=not ended)


def _step(made: calls.Line, after: list[calls.Line], *, last: bool) -> _Step:
    readings: tuple[float, ...] = ()
    given, raised = None, None
    for line in after:
        match line:
            case calls.StopwatchRead(readings):
                pass
            case calls.OutputsGiven():
                given = line
            case calls.CallRaised():
                raised = line
    return _Step(made, readings, given, raised, last)
