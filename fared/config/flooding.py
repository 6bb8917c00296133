"""The ``flooding`` section of a protocol: how a router reduces flooding to its neighbors."""

from __future__ import annotations

from typing import Annotated, Literal

from fared.config import quantities
from fared.config.section import Section, settings_of
from fared.config.shapes import Note
from fared.protocols.igp.reduction import Reduction, ReductionSettings

_SHORTEST, _LONGEST = 0.01, 1.0
"""Seconds: neighbors usually retransmit after a second, so a longer delay would overlap that."""


def _within(value: float) -> None:
    if not _SHORTEST <= value <= _LONGEST:
        raise ValueError


class FloodingOptions(Section, frozen=True):
    """``reduction``: how flooding to neighbors is reduced.

    ``leaf``: flooding from a neighbor to others is deferred by up to ``delay``. ``dynamic``:
    routers that support it flood to each other over a sparse topology only (RFC 9667).
    """

    reduction: Literal["none", "leaf", "dynamic"] = "none"
    delay: Annotated[quantities.Duration, Note(after=_within, words="10ms to 1s")] = 0.2

    def settings(self) -> ReductionSettings:
        """Return the settings of the engines."""
        return settings_of(ReductionSettings, self, mode=Reduction(self.reduction))
