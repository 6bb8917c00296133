"""The ``spf`` section of a protocol: the delays of route computation."""

from __future__ import annotations

from fared.config import quantities, values
from fared.config.section import Section


class SpfDelays(Section, frozen=True):
    """Delays of the SPF computation, seconds (RFC 8405 §3)."""

    initial_delay: quantities.Duration = 0.0
    short_delay: quantities.Duration = 0.05
    long_delay: quantities.Duration = 0.2
    holddown: quantities.Duration = 2.0
    time_to_learn: quantities.Duration = 0.5

    def check(self) -> None:
        """Refuse delays out of order."""
        # RFC 8405 §3: INITIAL <= SHORT <= LONG, and HOLDDOWN longer than TIME_TO_LEARN
        if self.short_delay < self.initial_delay:
            raise values.expected("at least initial-delay", field="short-delay")
        if self.long_delay < self.short_delay:
            raise values.expected("at least short-delay", field="long-delay")
        if self.holddown <= self.time_to_learn:
            raise values.expected("more than time-to-learn", field="holddown")
