"""What traffic does to weights over a time: how far programmed shares move, what is flooded.

Shares are read from the kernels once a second, LSAs and LSPs from one router's database: what
an operator could see, not what a router believes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.sim.load import Traffic
    from fared.sim.network import Node

_AREA_OPAQUE = 10
_TE = 1
"""The opaque type of TE LSAs (RFC 3630 §2.2)."""


@dataclass(slots=True)
class _Record:
    """Shares of one node (P, ports), what they were so far, and since when (s) they are that."""

    version: int
    since: int
    shares: NDArray[np.float64]
    total: NDArray[np.float64]
    squares: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]

    def change(self, at: int, shares: NDArray[np.float64], version: int) -> None:
        """Begin with other shares."""
        self.total += (at - self.since) * self.shares
        self.squares += (at - self.since) * self.shares**2
        self.least = np.minimum(self.least, shares)
        self.most = np.maximum(self.most, shares)
        self.since, self.shares, self.version = at, shares, version


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen; shares in points (hundredths of a destination's traffic).

    ``spread`` is the largest standard deviation of any share, ``swing`` the largest difference
    between its extremes; ``rewrites`` groups a leaf a second, the mean of all leaves;
    ``worst`` and ``overflow`` as of ``Sample``, means; ``highest`` the largest ``worst``.
    ``announced`` and ``announced_most``: originations a link a second, the mean of all links
    and the most of any link in any second.
    """

    spread: float
    swing: float
    rewrites: float
    worst: float
    highest: float
    overflow: float
    announced: float
    announced_most: int


@dataclass(slots=True)
class Watch:
    """Lets a network run and looks on."""

    traffic: Traffic
    _records: dict[str, _Record] = field(default_factory=dict)

    def run(self, seconds: int) -> Watched:
        """Run for so many whole seconds."""
        fabric = self.traffic.fabric
        samples = len(self.traffic.samples)
        first = next(iter(fabric.network.nodes.values()))
        begin = before = originations(first, fabric.network.now)
        most = 0
        self._records = {}
        self._look(0)
        for second in range(1, seconds + 1):
            fabric.network.run_for(1.0)
            self._look(second)
            now = originations(first, fabric.network.now)
            if now != before:
                most = max(most, *(now[key] - before.get(key, now[key]) for key in now))
            before = now
        spread, swing = self._extremes(seconds)
        sent = sum(count - begin.get(key, count) for key, count in before.items())
        seen = self.traffic.samples[samples:]
        leaves = fabric.leaf_prefixes
        return Watched(
            spread=100 * spread,
            swing=100 * swing,
            rewrites=sum(s.rewrites.get(leaf, 0) for s in seen for leaf in leaves)
            / len(leaves)
            / seconds,
            worst=_mean([sample.worst for sample in seen]),
            highest=max(sample.worst for sample in seen),
            overflow=_mean([sample.overflow for sample in seen]),
            announced=sent / max(1, len(before)) / seconds,
            announced_most=most,
        )

    def _look(self, second: int) -> None:
        for name, node in self.traffic.fabric.network.nodes.items():
            record = self._records.get(name)
            if record is None:
                shares = self._shares(node)
                self._records[name] = _Record(
                    node.kernel.version,
                    second,
                    shares,
                    np.zeros(shares.shape),
                    np.zeros(shares.shape),
                    shares,
                    shares,
                )
            elif record.version != node.kernel.version:
                record.change(second, self._shares(node), node.kernel.version)

    def _shares(self, node: Node) -> NDArray[np.float64]:
        """The shares (P, ports) of a kernel toward each leaf's prefix."""
        prefixes = self.traffic.fabric.leaf_prefixes
        shares = np.zeros((len(prefixes), len(node.ports)))
        for row, prefix in enumerate(prefixes.values()):
            for (_, ifindex), _, share in self.traffic.ways(node.name, prefix):
                shares[row, ifindex - 1] += share
        return shares

    def _extremes(self, seconds: int) -> tuple[float, float]:
        """The largest standard deviation and the largest range of any share, as ratios."""
        spread = swing = 0.0
        for record in self._records.values():
            record.change(seconds, record.shares, record.version)
            variance = record.squares / seconds - (record.total / seconds) ** 2
            spread = max(spread, float(np.sqrt(variance.clip(0).max(initial=0.0))))
            swing = max(swing, float((record.most - record.least).max(initial=0.0)))
        return spread, swing


def originations(node: Node, now: float) -> dict[tuple[int, int], int]:
    """The sequence number of each description of links, as one router's database has them.

    By origin and id: in OSPF one link's TE LSA, in IS-IS an LSP.
    """
    router = node.running
    found: dict[tuple[int, int], int] = {}
    if node.settings.ospf is not None:
        for database in router.engine.snapshot(now).databases:
            for view in database.lsas:
                header = view.lsa.header
                if header.ls_type == _AREA_OPAQUE and header.link_state_id >> 24 == _TE:
                    key = header.advertising_router, header.link_state_id
                    found[key] = header.ls_sequence_number
    if node.settings.isis is not None:
        for level in router.isis.snapshot(now).databases:
            for lsp in level.lsps:
                found[level.level, lsp.lsp.lsp_id] = lsp.lsp.sequence_number
    return found


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
