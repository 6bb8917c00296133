"""A forwarding table that keeps nothing: routes are forwarded elsewhere, such as by a switch chip.

The planner works as with a kernel that accepts everything, and nobody changes what is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from fared.paths.fib.model import FibOperation, FibState, OperationResult


class UnwrittenFib:
    """Accepts every operation, without effect."""

    def apply(self, operations: Sequence[FibOperation]) -> list[OperationResult]:
        """Answer that each succeeded."""
        return [OperationResult(operation) for operation in operations]

    def dump(self) -> FibState:
        """Return that nothing is there."""
        return FibState()
