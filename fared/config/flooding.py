"""The ``flooding`` section of a protocol: whether a router waits with what others deliver too."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from fared.config import values
from fared.config.section import Section
from fared.core.reduction import Reduction, ReductionSettings

_SHORTEST, _LONGEST = 0.01, 1.0
"""A retransmission interval of a second is usual: longer waits would cross those of neighbors."""


def _within(value: float) -> float:
    if not _SHORTEST <= value <= _LONGEST:
        raise values.expected("10ms to 1s")
    return value


class FloodingOptions(Section):
    """``reduction: leaf``: what one neighbor flooded goes to the others within ``delay``."""

    reduction: Literal["none", "leaf"] = "none"
    delay: Annotated[values.Duration, AfterValidator(_within)] = 0.2

    def settings(self) -> ReductionSettings:
        """What the engines take."""
        return ReductionSettings(Reduction(self.reduction), self.delay)
