"""Whether two descriptions of one router, or of one prefix behind it, are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from fared.paths.ted.model import NodeBlock


def same_block(a: NodeBlock | None, b: NodeBlock | None) -> bool:
    """Whether two blocks of one router are equal; None is a router that is not there."""
    if a is b:
        return True
    return (
        a is not None
        and b is not None
        and same_role(a, b)
        and a.prefixes == b.prefixes
        and a.hostname == b.hostname
        and _same(a.neighbors, b.neighbors)
        and _same(a.metrics, b.metrics)
        and _same(a.local_ids, b.local_ids)
        and _same(a.remote_ids, b.remote_ids)
        and _same(a.capacities, b.capacities)
        and _same(a.availables, b.availables)
        and (a.delays is b.delays or same_delays(a, b))
    )


def same_delays(a: NodeBlock, b: NodeBlock) -> bool:
    """Whether two blocks with the same links have the same delays."""
    if a.delays is None or b.delays is None:
        return a.delays is b.delays
    return _same(a.delays, b.delays)


def same_role(a: NodeBlock, b: NodeBlock) -> bool:
    """Whether two blocks describe the same kind of router, regardless of links and prefixes."""
    return (a.transit, a.network, a.is_asbr, a.virtual_end, a.asbr_routes) == (
        b.transit,
        b.network,
        b.is_asbr,
        b.virtual_end,
        b.asbr_routes,
    )


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays of one type hold the same bytes; the builders make only one kind of NaN.

    Most arrays have a few elements, for which NumPy's own comparison takes twenty times as long.
    """
    return a is b or a.tobytes() == b.tobytes()
