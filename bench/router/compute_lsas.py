"""From LSAs to the operations for the kernel, without packets: rows of ``compute``.

What a leaf computes for LSAs in fabrics of three sizes, and for externals in databases of three
sizes. Cost in proportion to the change would be the same in all of them. CPU time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.neighbors.fabric import Fabric
from bench.router.fed import Fed, by_key, changed_bandwidths, costlier, external, lost, restored
from fared.protocols.ospf.packet.lsa import Lsa

SIZES = ((4, 8), (16, 64), (64, 512))
PREFIXES = (1_000, 10_000, 100_000)
BURST = 75
"""TE LSAs in a packet of 9,000 bytes."""
REPEAT = 5
QUIET = 10.0
"""Seconds after which the back-off is as it was."""


@dataclass(frozen=True)
class Spent:
    """A row: CPU time in ms, and that of the smallest fabric or database."""

    name: str
    milliseconds: float
    smallest: float | None = None


def spent(run: Callable[[], object]) -> float:
    """CPU time in ms."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        run()
        return (time.process_time() - start) * 1e3
    finally:
        gc.enable()


def in_bursts(fed: Fed, lsas: Sequence[Lsa], size: int, gap: float) -> None:
    """Receive LSAs in bursts of this size, so many seconds apart; wait as long after the last."""
    for at in range(0, len(lsas), size):
        fed.receive(lsas[at : at + size])
        fed.wait(gap)


def rows() -> Iterator[Spent]:
    """All rows."""
    yield from beside_the_smallest(
        (f"LSAs of {spines}x{leaves} with TE", fabric_rows(Fabric(spines, leaves, te=True)))
        for spines, leaves in SIZES
    )
    yield from beside_the_smallest(
        (f"{count} externals", external_rows(count)) for count in PREFIXES
    )


def beside_the_smallest(
    found: Iterable[tuple[str, Iterable[tuple[str, float]]]],
) -> Iterator[Spent]:
    """Compare each row with the same one of the first size."""
    smallest: dict[str, float] = {}
    for name, each in found:
        for what, taken in each:
            yield Spent(f"{name}: {what}", taken, smallest.get(what))
            smallest.setdefault(what, taken)


def fabric_rows(fabric: Fabric) -> Iterator[tuple[str, float]]:
    """A fabric of routers with TE LSAs, whose weights follow load."""
    fabric.originate()
    fed, lsas = Fed(fabric), by_key(fabric)
    loaded = spent(lambda: in_bursts(fed, lsas, BURST, 0.004))
    yield f"loaded, for each 1,000, {BURST} at once", loaded / len(lsas) * 1e3
    fed.wait(QUIET)
    changes = changed_bandwidths(fabric, 2_000, 1)
    yield "1,000 bandwidths in a second", spent(lambda: in_bursts(fed, changes, 10, 0.01)) / 2
    fed.wait(QUIET)
    gone, back, dearer = [], [], []
    for number in range(REPEAT):
        link = number % fabric.spines, 1 + number
        near, far = lost(fabric, link)
        gone.append(spent(lambda near=near: fed.receive([near])))
        fed.receive([far], 0.001)
        fed.wait(QUIET)
        ends = restored(fabric, link)
        back.append(spent(lambda ends=ends: in_bursts(fed, ends, 1, 0.2)))
        fed.wait(QUIET)
        ends = costlier(fabric, link)
        dearer.append(spent(lambda ends=ends: fed.receive(ends)))
        fed.wait(QUIET)
        del fabric.costs[link]
        fed.receive(restored(fabric, link))
        fed.wait(QUIET)
    yield "a link lost, reported by one end", min(gone)
    yield "a link restored, reported by both ends", min(back)
    yield "the metric of a link doubled, reported by both ends", min(dearer)


def external_rows(count: int) -> Iterator[tuple[str, float]]:
    """So many AS-external LSAs of one router."""
    fabric = Fabric(4, 8, te=False)
    fabric.asbrs.add(fabric.leaf(7))
    fabric.originate()
    fed = Fed(fabric)
    fed.receive(fabric.lsas.values())
    fed.wait(QUIET)
    lsas = [external(fabric, number, 10) for number in range(count)]

    def load() -> None:
        in_bursts(fed, lsas, 200, 0.005)
        fed.wait(QUIET)

    yield "loaded, for each 1,000, 200 at once", spent(load) / count * 1e3
    singly = []
    for number in range(REPEAT):
        lsa = external(fabric, number * (count // REPEAT), 20)
        singly.append(spent(lambda lsa=lsa: in_bursts(fed, [lsa], 1, 0.2)))
        fed.wait(QUIET)
    yield "one changed", min(singly)


def main() -> None:
    for row in rows():
        smaller = "" if row.smallest is None else f"{row.smallest:10.3f}"
        print(f"{row.name:72} {row.milliseconds:10.3f} {smaller}", flush=True)
