"""Records the router of this process: segments in a ring of files, states written by a fork.

A fork has a copy of the router as it is at that moment, and takes its time to write it, while the
daemon goes on. A segment ends when it is as large as the states are, or an eighth of the ring. The
calls are in the file before they are made, so what a killed process leaves can be replayed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from fared.daemon.loop.defence import Guard
from fared.daemon.loop.periodic import Periodic
from fared.management.recording.files import RecordingError, SegmentRing, segments
from fared.management.recording.recording import Recording
from fared.router.router import Router
from fared.runtime import children
from fared.runtime.children import Fork

INTERVAL: Final = 1.0
"""Seconds between two looks at the recording."""
DEFAULT_LIMIT: Final = 64 << 20
"""Bytes of a recording."""
_SEGMENTS: Final = 64
_PARTS: Final = 8
"""Segments that the size of a ring allows at least."""
_EXCESS: Final = 4
"""How many times its size a ring may take, while no state can be written."""
_LONGEST: Final = 120
"""Seconds that a fork may take."""
_PATIENCE: Final = 10.0
"""Seconds for which the end of the daemon waits for a fork."""


class RouterHolder(Protocol):
    """What calls the router."""

    router: Router


class StateFork(NamedTuple):
    """A process that writes the state at the begin of a segment; ``first``: of the recording."""

    process: Fork
    segment: int
    first: bool


class Recorded(msgspec.Struct):
    """A recording that runs or ran. ``size``: bytes, ``since``: seconds since 1970."""

    directory: Path
    limit: int
    since: float
    calls: int = 0
    segments: int = 0
    size: int = 0
    failure: str = ""


class RouterRecorder:
    """Begins and ends recordings, and looks after the present one."""

    def __init__(
        self,
        runner: RouterHolder,
        state_directory: str,
        guard: Callable[[str], Guard],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        self._runner, self._state_directory = runner, state_directory
        self._guard, self._log = guard, log
        self._recording: Recording | None = None
        self._fork: StateFork | None = None
        self._jobs: Periodic | None = None
        self._segment_size = 0
        self.last: Recorded | None = None
        """The present recording, or the last one."""

    @property
    def running(self) -> bool:
        """Whether the router is recorded."""
        return self._recording is not None

    def begin_new(self, directory: Path, seed: int, now: float) -> None:
        """Record the router from its first call on. Raises RecordingError.

        ``seed`` is that of its ``random.Random``.
        """
        recording = self._open(directory, DEFAULT_LIMIT)
        with _refusal(directory):
            taped = recording.begin_new(self._runner.router, seed, now, time.time())
        self._runner.router = taped
        self._begun(recording)

    def begin(self, directory: Path, limit: int | None) -> None:
        """Record the running router from now on. Raises RecordingError."""
        recording = self._open(directory, limit or DEFAULT_LIMIT)
        with _refusal(directory):
            taped = recording.begin(self._runner.router, _now(), time.time())
            self._fork = self._forked(recording, first=True)
        self._runner.router = taped
        self._begun(recording)

    def _open(self, directory: Path, limit: int) -> Recording:
        if importlib.util.find_spec("cloudpickle") is None:
            raise RecordingError("the package cloudpickle is not installed")
        ring = SegmentRing(directory, limit, _SEGMENTS, Path(self._state_directory))
        self._segment_size = limit // _PARTS
        self.last = Recorded(directory, limit, time.time())
        return Recording(ring, time.perf_counter)

    def _begun(self, recording: Recording) -> None:
        self._recording = recording
        self._jobs = Periodic(self._guard)
        self._jobs.every(INTERVAL, "recording", self.check)
        ring = recording.ring
        self._log.info("recording-started", directory=str(ring.directory), limit=ring.limit)

    # -- while it runs ----------------------------------------------------------------------

    def check(self) -> None:
        """Write what waits, see to the fork, begin the next segment if it is time."""
        recording = self._recording
        if recording is None:
            return
        recording.tape.flush()
        failure = recording.tape.failure or self._reap(recording)
        if not failure and self._fork is None and recording.ring.written >= self._segment_size:
            failure = self._next_segment(recording)
        if failure:
            self._fail(failure)

    def _next_segment(self, recording: Recording) -> str:
        """Begin a segment; return why that is not possible, or nothing."""
        try:
            recording.next_segment(_now(), time.time())
            self._fork = self._forked(recording, first=False)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _forked(self, recording: Recording, *, first: bool) -> StateFork:
        """Start the process that writes the state of this moment. Raises OSError."""
        return StateFork(Fork(recording.keep_state, _LONGEST), recording.ring.number, first)

    def _reap(self, recording: Recording) -> str:
        """See whether the fork has ended; return why the recording cannot go on, or nothing."""
        status = None if self._fork is None else self._fork.process.ended()
        return "" if status is None else self._written(recording, status)

    def _written(self, recording: Recording, status: int) -> str:
        """Process the end of a fork; return why the recording cannot go on, or nothing."""
        fork, self._fork = self._fork, None
        assert fork is not None
        ring = recording.ring
        if status == 0:
            size = ring.path(fork.segment, ".state").stat().st_size
            self._segment_size = max(ring.limit // _PARTS, size)
            ring.prune()
            return ""
        if fork.first:
            return f"the state of the router cannot be written ({children.reason(status)})"
        self._log.warning(
            "recording-state-not-kept",
            segment=fork.segment,
            code=status,
            reason=children.reason(status),
        )
        if sum(segment.size for segment in segments(ring.directory)) > _EXCESS * ring.limit:
            return "states cannot be written, and the ring is full"
        return ""

    def _fail(self, reason: str) -> None:
        self._log.error("recording-failed", reason=reason)
        if self._fork is not None:
            self._fork.process.kill()
            self._fork = None
        self._take_off(reason)

    # -- its end ----------------------------------------------------------------------------

    async def end(self, within: float = _PATIENCE) -> None:
        """End the recording, if there is one; a fork gets so many seconds."""
        recording = self._recording
        if recording is None:
            return
        failure = recording.tape.failure
        if self._fork is not None:
            assert self._jobs is not None
            self._jobs.stop()  # it would ask for the same status
            status = await self._fork.process.end(within)
            failure = failure or self._written(recording, status)
        self._take_off(failure)
        found = self.look()
        assert found is not None
        self._log.info(
            "recording-stopped",
            directory=str(found.directory),
            segments=found.segments,
            calls=found.calls,
            reason=failure or None,
        )

    def _take_off(self, failure: str) -> None:
        """Take the router off the tape."""
        recording, self._recording = self._recording, None
        assert recording is not None
        assert self._jobs is not None
        self._jobs.stop()
        self._runner.router = recording.end(_now())
        if self.last is not None:
            self.last.calls, self.last.failure = recording.tape.calls, failure

    def look(self) -> Recorded | None:
        """Return the figures of the present recording, or of the last one."""
        found = self.last
        if found is None:
            return None
        if self._recording is not None:
            found.calls = self._recording.tape.calls
        with contextlib.suppress(RecordingError, OSError):
            known = segments(found.directory)
            found.segments, found.size = len(known), sum(segment.size for segment in known)
        return found


@contextlib.contextmanager
def _refusal(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordingError(f"{directory}: {error.strerror}") from None


def _now() -> float:
    return asyncio.get_running_loop().time()
