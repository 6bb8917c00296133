"""Copies of our own LSAs or LSPs that we have not originated, but another router with our id.

After a restart, our own from before come back, each once. If they go on coming, a second router has
our router id or system id, and each of both replaces what the other has said: its prefixes are
gone. RFC 4444 has notifications for IS-IS (isisSequenceNumberSkip, isisOwnLSPPurge).
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from fared.protocols.igp.refusals import KEPT

_WINDOW = 60.0
SUSPICIOUS = 3
"""So many copies of one LSA or LSP within a window do not come from before a restart."""
_MOST = 64
"""LSAs or LSPs counted at the same time; they are easily forged."""


class _ForeignEntry(msgspec.Struct):
    since: float
    times: int
    instance: Hashable


class ForeignCopies:
    """Counts them by LSA or LSP. Times are seconds."""

    def __init__(self) -> None:
        self._counted: dict[str, _ForeignEntry] = {}
        self._contested: tuple[str, float] | None = None

    def came(self, what: str, instance: Hashable, now: float) -> int:
        """Count a copy; return how many came within a minute, 0: it is the same instance again."""
        known = self._counted.get(what)
        if known is not None and instance == known.instance:
            return 0
        if known is None or now - known.since > _WINDOW:
            self._counted.pop(what, None)
            if len(self._counted) >= _MOST:
                del self._counted[next(iter(self._counted))]
            known = self._counted[what] = _ForeignEntry(now, 0, instance)
        known.times += 1
        known.instance = instance
        if known.times >= SUSPICIOUS:
            self._contested = what, now
        return known.times

    def contested(self, now: float) -> str | None:
        """The LSA or LSP that another router has originated in the last minutes; None: none."""
        if self._contested is None or now - self._contested[1] > KEPT:
            return None
        return self._contested[0]
