"""Settings of route computation."""

from __future__ import annotations

import msgspec

from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.defaults import FLOOR, MAX_PATHS
from fared.paths.weights.path_capacity import WeightMode
from fared.paths.weights.path_delay import DelayRule
from fared.paths.weights.quantise import DEFAULT_MAX_WEIGHT, DEFAULT_TOLERANCE

_SEARCH_MEMBERS = 16
_MICROSECONDS = 1e6


def _microseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * _MICROSECONDS)


class SolverSettings(msgspec.Struct, frozen=True):
    """How next hops are weighted.

    ``max_weight`` is the largest integer weight, ``tolerance`` the loss allowed for smaller ones.
    ``max_group_size``: the greatest sum of the weights of a set; None: any.

    ``flows``: the number of large flows expected over one set of next hops; weights are then skewed
    away from low-capacity paths. None: many flows, and weights are proportional.
    ``delay_margin``, ``delay_bound``, ``unknown_delay``: ``delay_rule`` in seconds.
    ``floor``: in available mode a link counts for at least this part of its capacity;
    ``adaptation``: how these weights follow load.
    """

    max_paths: int = MAX_PATHS
    mode: WeightMode = WeightMode.CAPACITY
    max_weight: int = DEFAULT_MAX_WEIGHT
    tolerance: float = DEFAULT_TOLERANCE
    max_group_size: int | None = None
    flows: int | None = None
    floor: float = FLOOR
    delay_margin: float | None = None
    delay_bound: float | None = None
    unknown_delay: float = 0.0
    adaptation: AdaptationSettings = AdaptationSettings()

    def __post_init__(self) -> None:
        if self.max_paths < 1 or not 1 <= self.max_weight <= 0xFFFF:
            raise ValueError("max_paths is at least 1 and max_weight 1..65535")
        if self.max_group_size is not None and self.max_group_size < 1:
            raise ValueError("max_group_size is at least 1")
        if self.flows is not None and self.flows < 1:
            raise ValueError("flows is at least 1")
        msgspec.structs.force_setattr(self, "mode", WeightMode(self.mode))

    @property
    def delay_rule(self) -> DelayRule:
        """Which next hops at equal cost are used by their path delay; mostly all."""
        return DelayRule(
            _microseconds(self.delay_margin),
            _microseconds(self.delay_bound),
            round(self.unknown_delay * _MICROSECONDS),
        )

    @property
    def most_paths(self) -> int:
        """The most next hops of a set: each takes an entry of the group at least."""
        return min(self.max_paths, self.max_group_size or self.max_paths)

    @property
    def search_members(self) -> int:
        """Groups up to this size get the smallest good weights, larger ones rounded-down weights.

        In available mode the search is not worth its cost: the last digits of available bandwidth
        are noise.
        """
        return 0 if self.mode is WeightMode.AVAILABLE else _SEARCH_MEMBERS
