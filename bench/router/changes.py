"""One change, however much is held: the CPU time of a whole router, from packet to kernel writes.

A router without I/O, on the virtual clock, is leaf 0 with four OSPF neighbors; a simulated kernel
takes its writes. Externals: it holds 1,000, 10,000 and 100,000 of them, and one gets another
metric, or all are learnt, or withdrawn. Fabrics: of 4x8, 16x64 and 64x512 with its four neighbors
among the spines, a link of a neighbor is lost, or changes its available bandwidth. What it costs
must not depend on what is held: the goal is the cost with the least, in the same run.

Times are CPU time of the router's own calls: the best of several changes, acknowledgments of the
neighbors and one second of timers included. ``python -m bench changes`` prints the rows.
"""

from __future__ import annotations

import argparse
import gc
import random
from typing import Any

from bench.neighbors.fabric import Fabric
from bench.neighbors.leaf import CALM, NEIGHBORS, TICK, Leaf
from bench.neighbors.lsas import announced
from bench.report import show
from bench.rows import compared
from fared.core.wire import Reader
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.ospf.packet.bodies import AsExternalLsa, RouterLsa
from fared.protocols.ospf.packet.body import decode_body, encode_body
from fared.protocols.ospf.packet.lsa import MAX_AGE, Lsa, LsaKey, LsType, decode_lsa, encode_lsa

HELD = (1_000, 10_000, 100_000)
FABRICS = ((4, 8), (16, 64), (64, 512))
CHANGES = 12
OF_AN_UPDATE = 200
"""Externals in an update: a burst of its own, since the router computes after each."""
LEAST = 0.5
"""The cost may be twice that with the least: caches are colder, dictionaries larger."""
_E_BIT = 0x02
_ASBR = 0x02
Row = dict[str, Any]


def external(number: int, sequence: int, metric: int, router: int, age: int = 1) -> Lsa:
    """One AS-external LSA, a /26."""
    network = (20 << 24) + (number << 6)
    body = encode_body(AsExternalLsa(0xFFFFFFC0, True, metric, 0, 0))
    return encode_lsa(
        ls_age=age,
        options=_E_BIT,
        ls_type=LsType.AS_EXTERNAL,
        link_state_id=network,
        advertising_router=router,
        ls_sequence_number=sequence - 0x7FFFFFFF,
        body=body,
    )


def boundary(fabric: Fabric) -> int:
    """Make leaf 1 an AS boundary router; return its router id."""
    router = fabric.leaf(1)
    key = LsaKey(LsType.ROUTER, router, router)
    lsa = fabric.lsas[key]
    body = decode_body(lsa)
    assert isinstance(body, RouterLsa)
    fabric.lsas[key] = encode_lsa(
        ls_age=1,
        options=_E_BIT,
        ls_type=LsType.ROUTER,
        link_state_id=router,
        advertising_router=router,
        ls_sequence_number=lsa.header.ls_sequence_number + 1,
        body=encode_body(RouterLsa(_ASBR, body.links)),
    )
    return router


def learnt(held: int, mode: WeightMode = WeightMode.AVAILABLE) -> tuple[Leaf, int, float]:
    """Return a leaf that has learnt so many externals, their router, and the CPU seconds.

    They come after start-up, in updates of 9000 bytes: each is a burst that reaches the kernel.
    """
    fabric = Fabric(NEIGHBORS, 8, te=False)
    fabric.originate()
    router = boundary(fabric)
    leaf = Leaf(fabric, mode)
    leaf.join(14)
    before = leaf.spent
    for first in range(0, held, OF_AN_UPDATE):
        numbers = range(first, min(held, first + OF_AN_UPDATE))
        leaf.speakers[10].flood([external(number, 0, 20, router) for number in numbers])()
        leaf.run(TICK)
    leaf.run(CALM)
    if len(leaf.router.table.routes) < held:
        raise RuntimeError(f"{len(leaf.router.table.routes)} routes of {held}")
    return leaf, router, leaf.spent - before


def withdrawn(leaf: Leaf, router: int, held: int) -> float:
    """Flush so many externals (RFC 2328 §14.1), and return the CPU seconds.

    One of them has changed before, ``CHANGES`` times.
    """
    before = leaf.spent
    last = {held // 2: (CHANGES, 20 + CHANGES)}
    for first in range(0, held, OF_AN_UPDATE):
        numbers = range(first, min(held, first + OF_AN_UPDATE))
        gone = [external(number, *last.get(number, (0, 20)), router, MAX_AGE) for number in numbers]
        leaf.speakers[10].flood(gone)()
        leaf.run(TICK)
    leaf.run(CALM)
    if len(leaf.router.table.routes) >= held:
        raise RuntimeError(f"{len(leaf.router.table.routes)} routes are left of {held}")
    return leaf.spent - before


def external_rows(held: tuple[int, ...] = HELD) -> list[Row]:
    """One changed external, and learning each of them, beside the fewest."""
    changed, learning, withdrawing = {}, {}, {}
    for count in held:
        gc.collect()
        leaf, router, seconds = learnt(count)
        learning[count] = seconds / count * 1e6
        changed[count] = min(
            leaf.flood([external(count // 2, 1 + n, 21 + n, router)]) for n in range(CHANGES)
        )
        withdrawing[count] = withdrawn(leaf, router, count) / count * 1e6
    rows = []
    least = held[0]
    for count in held[1:]:
        name = f"OSPF: one of {count:,} externals changes, beside one of {least:,}"
        rows.append(compared(name, changed[count], changed[least], "ms", LEAST))
        name = f"OSPF: learning {count:,} externals, each, beside {least:,}"
        rows.append(compared(name, learning[count], learning[least], "us", LEAST))
        name = f"OSPF: withdrawing {count:,} externals, each, beside {least:,}"
        rows.append(compared(name, withdrawing[count], withdrawing[least], "us", LEAST))
    return rows


def fabric_rows(fabrics: tuple[tuple[int, int], ...] = FABRICS) -> list[Row]:
    """A link of a neighbor lost, and one changed bandwidth, beside the smallest fabric."""
    found: dict[tuple[int, int], dict[str, float]] = {}
    for size in fabrics:
        gc.collect()
        found[size] = _in_fabric(*size)
    rows = []
    small = fabrics[0]
    for size in fabrics[1:]:
        for what in found[size]:
            name = f"OSPF: {what} in {size[0]}x{size[1]}, beside {small[0]}x{small[1]}"
            rows.append(compared(name, found[size][what], found[small][what], "ms", LEAST))
    return rows


def _in_fabric(spines: int, leaves: int) -> dict[str, float]:
    fabric = Fabric(spines, leaves, te=True)
    fabric.originate()
    leaf = Leaf(fabric)
    leaf.join(2 * (leaves - 1))
    dice = random.Random(3)
    links = [(n % NEIGHBORS, 1 + n * 5 % (leaves - 1)) for n in range(CHANGES)]
    changed = []
    for link in links:
        lsa = fabric.te_lsa(fabric.leaf(link[1]), link)
        newer = announced(lsa.raw, dice)
        changed.append(leaf.flood([decode_lsa(Reader(newer))]))
    lost = []
    for link in links:
        fabric.cut.add(link)
        ends = fabric.leaf(link[1]), fabric.spine(link[0])
        lost.append(leaf.flood([fabric.router_lsa(end) for end in ends]))
        fabric.cut.discard(link)
        leaf.flood([fabric.router_lsa(end) for end in ends])
        leaf.run(3.0)
    return {"a changed bandwidth": min(changed), "a lost link": min(lost)}


def rows() -> list[Row]:
    """All rows; the largest database of externals takes most of the time."""
    return [*fabric_rows(), *external_rows()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--held", type=int, nargs="*", default=HELD, help="externals")
    parser.add_argument("--fabrics", nargs="*", default=[f"{s}x{k}" for s, k in FABRICS])
    given = parser.parse_args()
    sizes = tuple((int(s), int(k)) for s, k in (text.split("x") for text in given.fabrics))
    rows = fabric_rows(sizes) if sizes else []
    show(rows + (external_rows(tuple(given.held)) if given.held else []))
