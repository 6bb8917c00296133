"""A recording that runs: one router on tape, written to a ring of segments.

It decides what stands at the begin and end of a segment; when a segment begins, and in which
process its state is written, is up to its owner (``daemon.services.recorder``).
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Final

from fared import __version__
from fared.management.recording import calls
from fared.management.recording.digests import state_digests
from fared.management.recording.files import SegmentRing
from fared.management.recording.taped import Tape, TapedRouter
from fared.router.router import Router

PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
MOST_DIGESTED: Final = 5000
"""Routes of a router whose databases and routes are compared at the end, too."""
_LEVEL: Final = 1
"""Of zlib: states shrink to a fifth at little cost."""


class Recording:
    """Puts a router on tape, and takes it off again.

    ``stopwatch`` is the one of the router, without the recording. All methods but ``end`` raise
    OSError if a file cannot be written.
    """

    def __init__(self, ring: SegmentRing, stopwatch: Callable[[], float]) -> None:
        self.ring = ring
        self._stopwatch = stopwatch
        self.tape = Tape(ring.write, stopwatch)
        self._router: TapedRouter | None = None

    @property
    def router(self) -> TapedRouter:
        """The router on tape."""
        assert self._router is not None
        return self._router

    def begin_new(self, router: Router, seed: int | str, now: float, wall: float) -> TapedRouter:
        """Tape a router that has got no call yet: its settings and ``seed`` are all of its state.

        ``seed`` is that of its ``random.Random``, ``now`` the time at which it was created,
        ``wall`` the same in seconds since 1970.
        """
        self._next_segment(now, wall, continues=False)
        self.tape.new_router(router.settings, seed, now)
        self._router = TapedRouter(router, self.tape)
        return self._router

    def begin(self, router: Router, now: float, wall: float) -> TapedRouter:
        """Tape a running router; ``keep_state`` must follow before its next call."""
        self._next_segment(now, wall, continues=False)
        self._router = TapedRouter(router, self.tape)
        return self._router

    def next_segment(self, now: float, wall: float) -> None:
        """Write to the next segment from now on."""
        self._next_segment(now, wall, continues=True)

    def _next_segment(self, now: float, wall: float, *, continues: bool) -> None:
        self.tape.flush()
        number = self.ring.next_segment()
        self.tape.next_file()
        self.tape.begin(
            calls.SegmentBegun(
                calls.FORMAT, __version__, PYTHON, number, now, wall, continues=continues
            )
        )

    def keep_state(self) -> int:
        """Write the state at the begin of the present segment; return its size in bytes.

        A fork may do it, for its copy of the router stays as it is. Raises TypeError or
        pickle.PicklingError too: something in the router cannot be kept.
        """
        from fared.management.recording import checkpoint  # noqa: PLC0415 - cloudpickle takes 20 ms

        router = self.router.untaped()
        router.measure_with(float)
        try:
            state = zlib.compress(checkpoint.dump(router), _LEVEL)
        finally:
            router.measure_with(self.tape.read_stopwatch)
        self.ring.keep_state(self.ring.number, state)
        return len(state)

    def end(self, now: float) -> Router:
        """Complete the recording; return the router, no longer on tape."""
        router = self.router.untaped()
        if len(router.table.routes) <= MOST_DIGESTED:
            self.tape.line(calls.StateSeen(now, *state_digests(router, now)))
        self.tape.flush()
        router.measure_with(self._stopwatch)
        self.ring.close()
        return router
