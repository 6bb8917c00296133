"""One change, however much is held: the CPU time of a whole router, from packet to kernel writes.

A router without I/O, on the virtual clock, is leaf 0 with four OSPF neighbors; a simulated kernel
takes its writes. Externals: it holds 1,000, 10,000 and 100,000 of them, and one gets another
metric, or all are learnt, or withdrawn. Fabrics: of 4x8, 16x64 and 64x512 with its four neighbors
among the spines, a link of a neighbor is lost, or changes its available bandwidth. What it costs
must not depend on what is held: the goal is the cost with the least, in the same run.

Times are CPU time of the router's own calls: the best of several changes, acknowledgments of the
neighbors and one second of timers included. ``python bench/changes.py`` prints the rows.
"""

from __future__ import annotations

# ruff: noqa: E402 - threads are limited before NumPy is loaded
import os
import sys
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import gc
import random
import time
from typing import Any

from bench.beside_fabric import RATE, Fabric
from bench.beside_speakers import MTU, OspfSpeaker
from bench.rows import compared
from bench.scale_fabric import announced
from fared.core.ids import AreaId, RouterId
from fared.core.links import InterfaceAddress, Link
from fared.core.wire import Reader
from fared.paths.fib.simulated import SimulatedFib
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.igp import events as igp
from fared.protocols.ospf.packet.bodies import AsExternalLsa, RouterLsa
from fared.protocols.ospf.packet.body import decode_body, encode_body
from fared.protocols.ospf.packet.lsa import MAX_AGE, Lsa, LsaKey, LsType, decode_lsa, encode_lsa
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings
from fared.router import events
from fared.router.router import Router
from fared.router.settings import RouterSettings

NEIGHBORS = 4
HELD = (1_000, 10_000, 100_000)
FABRICS = ((4, 8), (16, 64), (64, 512))
CHANGES = 12
OF_AN_UPDATE = 200
"""Externals in an update: a burst of its own, since the router computes after each."""
LEAST = 0.5
"""The cost may be twice that with the least: caches are colder, dictionaries larger."""
_SETTLE = 1.0
_CALM = 30.0
"""Until weights have followed the loads of all links."""
_TICK = 0.02
_AREA = AreaId(0)
_E_BIT = 0x02
_ASBR = 0x02
Row = dict[str, Any]


class Leaf:
    """Leaf 0, a whole router, and its neighbors; ``spent`` is the CPU time of the router."""

    def __init__(
        self,
        fabric: Fabric,
        mode: WeightMode = WeightMode.AVAILABLE,
        neighbors: int = NEIGHBORS,
    ) -> None:
        self.fabric, self.now, self.spent = fabric, 0.0, 0.0
        self._inbox: list[igp.PacketReceived] = []
        self._kernel = SimulatedFib()
        own = fabric.leaf(0)
        settings = OspfSettings(RouterId(own), areas=(AreaSettings(_AREA),))
        chosen = RouterSettings({"ospf": settings}, SolverSettings(mode=mode))
        self.router = Router(chosen, random.Random(1), 0.0, time.perf_counter)
        self._handle(events.FibAdopted(self._kernel.dump()))
        loopback = InterfaceSettings(_AREA, NetworkType.LOOPBACK, passive=True)
        lo = Link(1, "lo", True, 65536, (InterfaceAddress(4, own, 32),), loopback=True)
        self._handle(events.To("ospf", igp.LinkChanged(lo, loopback)))
        self.speakers = {10 + spine: self._neighbor(spine) for spine in range(neighbors)}
        self._handle(events.LinksKnown())
        self._sequence = 0

    def _neighbor(self, spine: int) -> OspfSpeaker:
        ifindex, (theirs, mine) = 10 + spine, self.fabric.addresses((spine, 0))
        address = (InterfaceAddress(4, mine, 31),)
        link = Link(ifindex, f"s{spine}", True, MTU, address, hardware_address=ifindex)
        settings = InterfaceSettings(_AREA, capacity=RATE)
        self._handle(events.To("ospf", igp.LinkChanged(link, settings)))

        def send(raw: bytes) -> None:
            self._inbox.append(igp.PacketReceived(ifindex, theirs, 0xE0000005, raw, 1))

        router = self.fabric.spine(spine)
        speaker = OspfSpeaker(router, send, self.fabric.lsas, serves=not spine)
        speaker.silent = False
        return speaker

    def _handle(self, event: events.Event) -> None:
        begun = time.process_time()
        self.router.handle(event, self.now)
        self.spent += time.process_time() - begun

    def run(self, seconds: float) -> None:
        """Advance the clock; hellos every five seconds."""
        until = self.now + seconds
        while self.now < until:
            self.now += _TICK
            for speaker in self.speakers.values():
                if int(self.now / 5) != int((self.now - _TICK) / 5):
                    speaker.hello()
                if speaker.pending:
                    speaker.push()
            for packet in self.taken():  # each is a burst of its own: nothing is saved by batches
                self._handle(events.To("ospf", packet))
                self._drain()
            begun = time.process_time()
            self.router.tick(self.now)
            self.spent += time.process_time() - begun
            self._drain()

    def taken(self) -> list[igp.PacketReceived]:
        """Return what the neighbors have sent since the last time."""
        arrived, self._inbox = self._inbox, []
        return arrived

    def receive(self, packets: list[igp.PacketReceived]) -> None:
        """Process packets that arrived together."""
        begun = time.process_time()
        self.router.receive("ospf", iter(packets), self.now)
        self.spent += time.process_time() - begun
        self._drain()

    def _drain(self) -> None:
        while True:
            begun = time.process_time()
            outputs = self.router.drain()
            self.spent += time.process_time() - begun
            if not outputs:
                return
            for output in outputs:
                match output:
                    case events.From(_, igp.SendPacket(ifindex, _, payload)):
                        self.speakers[ifindex].receive(payload)
                    case events.ApplyFib():
                        results = tuple(self._kernel.apply(output.operations))
                        self._handle(events.FibApplied(output, results))

    def join(self, routes: int) -> float:
        """Bring up all adjacencies and learn the database; return the CPU seconds."""
        for _ in range(300):
            self.run(1.0)
            if len(self.router.table.routes) >= routes:
                break
        else:
            raise RuntimeError(f"{len(self.router.table.routes)} routes of {routes}")
        spent = self.spent
        self.run(_CALM)
        return spent

    def flood(self, lsas: list[Lsa]) -> float:
        """Receive LSAs from the first neighbor; return the CPU ms of the router."""
        before = self.spent
        self.speakers[10].flood(lsas)()
        self.run(_SETTLE)
        return (self.spent - before) * 1e3


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
        leaf.run(_TICK)
    leaf.run(_CALM)
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
        leaf.run(_TICK)
    leaf.run(_CALM)
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
    from bench.report import table

    rows = fabric_rows(sizes) if sizes else []
    print("\n".join(table(rows + (external_rows(tuple(given.held)) if given.held else []))))


if __name__ == "__main__":
    main()
