"""The effect of traffic on weights over time: the movement of shares, and the flooding.

Shares are read from the kernels once a second, LSAs and LSPs from one router's database: only what
an operator can see, not the state of a router.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fared.router.protocols import BGP, ISIS, OSPF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from fared.extensions.sim.load import Traffic
    from fared.extensions.sim.network import Node
    from fared.protocols.bgp import instance as bgp
    from fared.protocols.isis import instance as isis
    from fared.protocols.ospf import instance as ospf

_AREA_OPAQUE = 10
_TE = 1
"""The opaque type of TE LSAs (RFC 3630 §2.2)."""


class _Record(msgspec.Struct):
    """Shares of one node (P, ports), their history, and the time (s) of their last change."""

    version: int
    since: int
    shares: NDArray[np.float64]
    total: NDArray[np.float64]
    squares: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]

    def change(self, at: int, shares: NDArray[np.float64], version: int) -> None:
        """Start a period of changed shares."""
        self.total += (at - self.since) * self.shares
        self.squares += (at - self.since) * self.shares**2
        self.least = np.minimum(self.least, shares)
        self.most = np.maximum(self.most, shares)
        self.since, self.shares, self.version = at, shares, version


class Watched(msgspec.Struct, frozen=True):
    """The results; shares in points (hundredths of a destination's traffic).

    ``spread`` is the largest standard deviation of any share, ``swing`` the largest difference
    between its extremes; ``rewrites`` groups a leaf a second, the mean of all leaves;
    ``worst`` and ``overflow`` as of ``Sample``, means; ``highest`` the largest ``worst``.
    ``advertised`` and ``advertised_most``: originations for each link and second, the mean of all
    links and the maximum of any link in any second.
    """

    spread: float
    swing: float
    rewrites: float
    worst: float
    highest: float
    overflow: float
    advertised: float
    advertised_most: int


class Watch(msgspec.Struct):
    """Runs a network and records it."""

    traffic: Traffic
    _records: dict[str, _Record] = msgspec.field(default_factory=dict)

    def run(self, seconds: int) -> Watched:
        """Run for a number of whole seconds."""
        fabric = self.traffic.fabric
        samples = len(self.traffic.samples)
        first = next(iter(fabric.network.nodes.values()))
        begin = before = originations(first)
        most = 0
        self._records = {}
        self._look(0)
        for second in range(1, seconds + 1):
            fabric.network.run_for(1.0)
            self._look(second)
            now = originations(first)
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
            advertised=sent / max(1, len(before)) / seconds,
            advertised_most=most,
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
        """Return the shares (P, ports) of a kernel toward each leaf's prefix."""
        prefixes = self.traffic.fabric.leaf_prefixes
        shares = np.zeros((len(prefixes), len(node.ports)))
        for row, prefix in enumerate(prefixes.values()):
            for (_, ifindex), _, share in self.traffic.ways(node.name, prefix):
                shares[row, ifindex - 1] += share
        return shares

    def _extremes(self, seconds: int) -> tuple[float, float]:
        """Return the largest standard deviation and the largest range of any share, as ratios."""
        spread = swing = 0.0
        for record in self._records.values():
            record.change(seconds, record.shares, record.version)
            variance = record.squares / seconds - (record.total / seconds) ** 2
            spread = max(spread, float(np.sqrt(variance.clip(0).max(initial=0.0))))
            swing = max(swing, float((record.most - record.least).max(initial=0.0)))
        return spread, swing


def originations(node: Node) -> dict[tuple[int, int], int]:
    """Return the sequence numbers of link descriptions in one router's database.

    They are by originator and id: in OSPF of the TE LSA of one link, in IS-IS of an LSP. In BGP
    they are the UPDATE messages that a neighbor has sent.
    """
    found: dict[tuple[int, int], int] = {}
    for name, instance in node.running.instances.items():
        found.update(_DESCRIPTIONS[name](instance.engine.instance))
    return found


def _te_lsas(instance: ospf.Instance) -> Iterator[tuple[tuple[int, int], int]]:
    for lsdb in instance.databases():
        for entry in lsdb:
            header = entry.lsa.header
            if header.ls_type == _AREA_OPAQUE and header.link_state_id >> 24 == _TE:
                key = header.advertising_router, header.link_state_id
                yield key, header.ls_sequence_number


def _lsps(instance: isis.Instance) -> Iterator[tuple[tuple[int, int], int]]:
    for level, lsdb in instance.databases.items():
        for entry in lsdb.ordered():
            yield (level, entry.lsp_id), entry.sequence_number


def _updates(instance: bgp.BgpInstance) -> Iterator[tuple[tuple[int, int], int]]:
    for number, neighbor in instance.neighbors.items():
        yield (number, 0), neighbor.received


_DESCRIPTIONS: Mapping[str, Callable[[Any], Iterator[tuple[tuple[int, int], int]]]] = (
    MappingProxyType({OSPF: _te_lsas, ISIS: _lsps, BGP: _updates})
)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
