"""What an operator can set about route computation."""

from __future__ import annotations

from dataclasses import dataclass, field

from fared.weights.adaptation import AdaptationSettings
from fared.weights.path_capacity import WeightMode
from fared.weights.quantise import DEFAULT_MAX_WEIGHT, DEFAULT_TOLERANCE

_SEARCH_MEMBERS = 16


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """How routes are weighed.

    ``max_weight`` is the largest integer weight, ``tolerance`` the loss allowed for smaller ones.

    ``flows``: how many large flows are expected over one set of next hops; weights then lean away
    from small paths. None: many, weights are in proportion.
    ``floor``: in available mode no link counts as less than this part of its capacity;
    ``adaptation``: how weights then follow.
    """

    max_paths: int = 64
    mode: WeightMode = WeightMode.CAPACITY
    max_weight: int = DEFAULT_MAX_WEIGHT
    tolerance: float = DEFAULT_TOLERANCE
    flows: int | None = None
    floor: float = 0.02
    adaptation: AdaptationSettings = field(default_factory=AdaptationSettings)

    def __post_init__(self) -> None:
        if self.max_paths < 1 or not 1 <= self.max_weight <= 0xFFFF:
            raise ValueError("max_paths is at least 1 and max_weight 1..65535")
        if self.flows is not None and self.flows < 1:
            raise ValueError("flows is at least 1")
        object.__setattr__(self, "mode", WeightMode(self.mode))

    @property
    def search_members(self) -> int:
        """Groups up to this size get the smallest good weights, larger ones plain floors.

        Available bandwidth is noise in its last digits: there the search is not worth it.
        """
        return 0 if self.mode is WeightMode.AVAILABLE else _SEARCH_MEMBERS
