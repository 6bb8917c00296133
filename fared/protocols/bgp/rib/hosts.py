"""What hosts are told (``path-bandwidth: {value: share}``): their part, as if all of them sent.

The path bandwidth of a leaf does not limit one host while it exceeds the host's port, though the
leaf has lost uplinks that all its hosts share. So a host is told C * min(1, F / D) at most: C is
its port, F what neighbors carry for the prefix, D what all hosts can send. Where all paths meet
again in one router, the leaf of the destination, F is what they carry to there: what comes after
it, the port of one destination, limits by itself, and not in proportion to D.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fared.protocols.bgp.rib.bandwidth import announced
from fared.protocols.bgp.rib.shared import Chain


def offered(
    total: float | None, chain: Chain, neighbors: Collection[tuple[int, int]]
) -> float | None:
    """Return F: what paths carry to the last router that all of them pass, or else in all.

    ``chain`` names such routers, nearest first; one that is the only neighbor is no end of them.
    """
    if total is None or not chain or chain[-1].speaker in neighbors:
        return total
    return max(total, chain[-1].reach)


class Hosts:
    """The neighbors that are told a share, by number, each with the links that lead to it."""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        """The ifindex of each; 0: it leads nowhere yet."""
        self.configured: float | None = None
        """D, bytes/s, in place of that of the ports."""

    def demand(self, capacities: Mapping[int, float]) -> float | None:
        """Return D, bytes/s; ``capacities`` are those of links by neighbor. None: one is unknown.

        A link counts once, with what its derating leaves; one that is down has no neighbor.
        """
        if self.configured is not None:
            return self.configured
        by_link = {index: capacities.get(number) for number, index in self.ports.items() if index}
        known = [one for one in by_link.values() if one is not None]
        return sum(known) if len(known) == len(by_link) else None


def share(
    total: float | None, found: float | None, port: float | None, demand: float | None
) -> float | None:
    """Return what a host with a port of C is told if F is less than D.

    None: F is enough, or C, F or D is not known: the path bandwidth is told.
    """
    if found is None or port is None or not demand or found >= demand:
        return None
    return announced(total, port * found / demand)
