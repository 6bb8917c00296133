"""How many LSAs only announce another bandwidth, and how far apart their floods are.

``_FEW`` a second fill no packets, wherever they wait. But they would come to each router on the way
later, and all routers compute weights once a second: from loads of different moments, if they wait
for a good part of it at each hop. So the gap is ``flood_pacing`` for few, ``bandwidth_pacing`` for
``_MANY``, and between them in proportion.
"""

from __future__ import annotations

import math
from typing import Final

from fared.protocols.ospf.settings import OspfSettings

_FEW: Final = 80.0
_MANY: Final = 120.0
"""LSAs a second; in ``bandwidth_pacing`` so many come as fill a packet."""
_MEMORY: Final = 2.0
"""Seconds over which the rate is averaged: where all routers measure in the same moment, the LSAs
of a second come at once."""


class BandwidthRate:
    """The rate of these LSAs at a router, averaged exponentially."""

    __slots__ = ("_at", "_rate")

    def __init__(self) -> None:
        self._at = -math.inf
        self._rate = 0.0

    def count(self, now: float) -> None:
        """Count an LSA that is flooded."""
        self._rate = self.at(now) + 1 / _MEMORY
        self._at = now

    def at(self, now: float) -> float:
        """LSAs a second."""
        if now == self._at:
            return self._rate
        return self._rate * math.exp((self._at - now) / _MEMORY)

    def pacing(self, now: float, settings: OspfSettings) -> float:
        """Least gap between two floods of them, in seconds."""
        least, most = settings.flood_pacing, settings.bandwidth_pacing
        part = (self.at(now) - _FEW) / (_MANY - _FEW)
        return least + (most - least) * min(1.0, max(0.0, part))
