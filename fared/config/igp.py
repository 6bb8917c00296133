"""What protocols have alike: families, reduction of flooding, SPF, sources of routes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from fared.config import quantities, values
from fared.config.section import Section, settings_of
from fared.config.shapes import Note
from fared.core.backoff import BackoffSettings
from fared.protocols.igp.reduction import Reduction, ReductionSettings

_SHORTEST, _LONGEST = 0.01, 1.0
"""Seconds: neighbors usually retransmit after a second, so a longer delay would overlap that."""
_BACKOFF = BackoffSettings()


def _within(value: float) -> None:
    if not _SHORTEST <= value <= _LONGEST:
        raise ValueError


def _check_families(families: tuple[str, ...]) -> None:
    if not families or len(set(families)) < len(families):
        raise ValueError


Families = Annotated[
    tuple[Literal["ipv4", "ipv6"], ...],
    Note(after=_check_families, words="ipv4, ipv6, or both"),
]


def families_of(names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the address families, 4 and 6, ascending."""
    return tuple(sorted(int(name[3]) for name in names))


class FloodingOptions(Section, frozen=True):
    """``reduction``: how flooding to neighbors is reduced.

    ``leaf``: flooding from a neighbor to others is deferred by up to ``delay``. ``dynamic``:
    routers that support it flood to each other over a sparse topology only (RFC 9667).
    """

    reduction: Literal["none", "leaf", "dynamic"] = "none"
    delay: Annotated[quantities.Duration, Note(after=_within, words="10ms to 1s")] = (
        ReductionSettings().delay
    )

    def settings(self) -> ReductionSettings:
        """Return the settings of the engines."""
        return settings_of(ReductionSettings, self, mode=Reduction(self.reduction))


class SpfDelays(Section, frozen=True):
    """Delays of the SPF computation, seconds (RFC 8405 §3)."""

    initial_delay: quantities.Duration = _BACKOFF.initial_delay
    short_delay: quantities.Duration = _BACKOFF.short_delay
    long_delay: quantities.Duration = _BACKOFF.long_delay
    holddown: quantities.Duration = _BACKOFF.holddown
    time_to_learn: quantities.Duration = _BACKOFF.time_to_learn

    def check(self) -> None:
        """Refuse delays out of order."""
        # RFC 8405 §3: INITIAL <= SHORT <= LONG, and HOLDDOWN longer than TIME_TO_LEARN
        if self.short_delay < self.initial_delay:
            raise values.expected("at least initial-delay", field="short-delay")
        if self.long_delay < self.short_delay:
            raise values.expected("at least short-delay", field="long-delay")
        if self.holddown <= self.time_to_learn:
            raise values.expected("more than time-to-learn", field="holddown")


class Sources(Section, frozen=True):
    """Sources of routes; one that is not named is not advertised, ``static:`` has all defaults."""

    unwritten: ClassVar[tuple[object, ...]] = (None,)
    """An empty value would mean all defaults, so None is not written."""

    @property
    def named(self) -> dict[str, Section]:
        """Return the named sources."""
        return {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }

    @property
    def wanted(self) -> bool:
        """Whether any source is named."""
        return bool(self.named)
