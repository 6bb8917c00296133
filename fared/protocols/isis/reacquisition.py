"""Reacquiring the adjacency of a circuit after a restart of this router (RFC 8706 §3.3.1).

Its hellos have RR set, and are sent at intervals of T1 only, until the neighbor has acknowledged
the restart (RA) and has described its whole database in CSNPs. Normal hellos before that would
begin the adjacency anew. A neighbor that does not help, or does not answer, gets them after all.
"""

from __future__ import annotations

import enum

import msgspec
from msgspec.structs import replace

from fared.protocols.isis.ids import FIRST_LSP, LAST_LSP, Level, LevelSet, LspId

T1 = 3.0
"""Seconds between two requests (§3.1)."""
MOST_REQUESTS = 3


class Progress(enum.Enum):
    """How far the restart on a circuit is; values are display labels."""

    REQUESTING = "requesting"
    RESTORED = "restored"
    FAILED = "failed"


class Reacquisition(msgspec.Struct, frozen=True):
    """The restart on one circuit, or in one level of a LAN: a value, each event returns the next.

    ``levels`` are those of the acknowledged adjacency, none before RA. ``covered``: by level, the
    last LSP id up to which CSNPs have described the database without a gap.
    """

    progress: Progress = Progress.REQUESTING
    requests: int = 0
    levels: LevelSet = LevelSet.NONE
    covered: tuple[tuple[Level, LspId], ...] = ()

    @property
    def requesting(self) -> bool:
        """Whether hellos have RR set: T1 runs."""
        return self.progress is Progress.REQUESTING

    def requested(self) -> Reacquisition:
        """A request is due: it is sent, unless the neighbor has not answered several of them."""
        if self.requests >= MOST_REQUESTS:
            return self.refused()
        return replace(self, requests=self.requests + 1)

    def acknowledged(self, levels: LevelSet) -> Reacquisition:
        """RA was received: the neighbor keeps the adjacency, in these levels."""
        return _settled(replace(self, levels=levels))

    def described(self, level: Level, start: LspId, end: LspId) -> Reacquisition:
        """A CSNP with this range was received."""
        known = dict(self.covered)
        before = known.get(level)
        if start == FIRST_LSP or (before is not None and start <= before + 1):
            known[level] = max(end, before or FIRST_LSP)
        return _settled(replace(self, covered=tuple(sorted(known.items()))))

    def refused(self) -> Reacquisition:
        """The neighbor does not help: the adjacency begins anew."""
        return replace(self, progress=Progress.FAILED) if self.requesting else self


def _settled(state: Reacquisition) -> Reacquisition:
    """§3.3.1: T1 is cancelled after RA and a complete set of CSNPs of each level."""
    known = dict(state.covered)
    whole = all(known.get(level) == LAST_LSP for level in state.levels.levels)
    if not (state.requesting and state.levels and whole):
        return state
    return replace(state, progress=Progress.RESTORED)
