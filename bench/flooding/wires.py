"""Flooding counted on the virtual clock, and the cost of a duplicate.

Fabrics of engines, without routes or kernels, on wires of unequal delay: the number of packets for
a change, with and without flooding reduction. Part of ``flooding``.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import os
import random
import statistics
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from bench.neighbors.fabric import Fabric as Described
from bench.rows import compared
from fared.core.ids import AreaId, RouterId, SystemId
from fared.core.links import InterfaceAddress, Link
from fared.protocols.igp import events as igp
from fared.protocols.igp.reduction import Reduction, ReductionSettings
from fared.protocols.isis.engine import IsisEngine
from fared.protocols.isis.ids import LevelSet, lsp_id
from fared.protocols.isis.pdu.codec import encode_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.settings import CircuitSettings, IsisSettings
from fared.protocols.ospf.engine import OspfEngine
from fared.protocols.ospf.flooding.suppression import FloodSuppression
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLsa
from fared.protocols.ospf.packet.body import encode_router_lsa
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.lsa import encode_lsa
from fared.protocols.ospf.packet.packets import LsUpdate
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, OspfSettings

UPDATES, ACKS = "updates", "acks"
KINDS = {
    4: UPDATES,
    5: ACKS,
    18: UPDATES,
    20: UPDATES,
    24: "csnps",
    25: "csnps",
    26: ACKS,
    27: ACKS,
}
"""OSPF packet types and PDU types of IS-IS; their numbers do not overlap."""
BACKBONE = AreaId(0)
LEAF = ReductionSettings(Reduction.LEAF)
DYNAMIC = ReductionSettings(Reduction.DYNAMIC)
NONE = ReductionSettings()
NOTE_ACKS = (
    "on the virtual clock; updates and acks together are two packets per link with and without"
    " reduction: an update that crosses another on the link acknowledges it"
)
GOAL_DUPLICATE = 4.0
Row = dict[str, Any]


@dataclass
class Engine:
    """One router: an engine, and the far ends of its ports."""

    engine: OspfEngine | IsisEngine
    far: dict[int, tuple[int, int]] = field(default_factory=dict)
    links: dict[int, Link] = field(default_factory=dict)
    wake: float | None = None


class Wires:
    """A fabric of engines without routes or kernels, on wires of unequal and changing delay."""

    def __init__(self, proto: str, spines: int, leaves: int, reduction: ReductionSettings) -> None:
        self.now = 0.0
        self.counts: Counter[str] = Counter()
        self._isis = proto == "isis"
        self._random = random.Random(1)
        self._queue: list[tuple[float, int, int, Any]] = []
        self._order = 0
        self._last: dict[tuple[int, int], float] = {}
        self.nodes = [
            Engine(
                self._engine(number, reduction if number >= spines or reduction.dynamic else NONE)
            )
            for number in range(spines + leaves)
        ]
        for leaf in range(spines, spines + leaves):
            for spine in range(spines):
                self._join(leaf, spine)
        for number in range(len(self.nodes)):
            self._settle(number)

    def _engine(self, number: int, reduction: ReductionSettings) -> OspfEngine | IsisEngine:
        rng, name = random.Random(number), f"r{number}"
        if self._isis:
            system = SystemId(number + 1)
            return IsisEngine(
                IsisSettings(
                    system, (b"\x49\0\0",), LevelSet.TWO, name, number + 1, reduction=reduction
                ),
                rng,
            )
        areas = (AreaSettings(BACKBONE),)
        router = RouterId(0x0AFF0001 + number)
        return OspfEngine(OspfSettings(router, name, areas, reduction=reduction), rng)

    def _join(self, a: int, b: int) -> None:
        ends = [(node, len(self.nodes[node].links) + 1) for node in (a, b)]
        base = 0x0A800000 + 2 * (sum(len(node.links) for node in self.nodes) // 2)
        for side, (number, ifindex) in enumerate(ends):
            address = InterfaceAddress(4, base + side, 31)
            mac = 0x020000000000 | number << 16 | ifindex
            link = Link(
                ifindex, f"e{ifindex}", True, 1500, (address,), speed=1e9, hardware_address=mac
            )
            self.nodes[number].far[ifindex] = ends[1 - side]
            self.tell(number, link)

    def tell(self, number: int, link: Link, cost: int = 10) -> None:
        """Report a new or changed link to a router."""
        node = self.nodes[number]
        node.links[link.ifindex] = link
        if self._isis:
            settings = CircuitSettings(levels=LevelSet.TWO, hello_padding=False, metric=cost)
            node.engine.handle(igp.LinkChanged(link, settings), self.now)
        else:
            known = InterfaceSettings(BACKBONE, hello_interval=10, cost=cost)
            node.engine.handle(igp.LinkChanged(link, known), self.now)

    def cost(self, number: int, cost: int) -> None:
        """Change the cost of a router's first link."""
        self.tell(number, self.nodes[number].links[1], cost)
        self._settle(number)

    def _settle(self, number: int) -> None:
        node = self.nodes[number]
        for output in all_outputs(node.engine):
            if isinstance(output, igp.SendPacket):
                payload = output.payload
                kind = KINDS.get(payload[4] & 0x1F if self._isis else payload[1])
            else:
                continue
            if kind is not None:
                self.counts[kind] += 1
                self.counts["bytes"] += len(output.payload)
            self._carry(node, output)
        due = node.engine.next_deadline()
        if due is not None and (node.wake is None or due < node.wake):
            node.wake = max(due, self.now)
            self._push(node.wake, number, None)

    def _carry(self, node: Engine, output: Any) -> None:  # noqa: ANN401
        number, ifindex = node.far[output.ifindex]
        at = max(
            self._last.get((number, ifindex), 0.0), self.now + self._random.uniform(2e-4, 5e-3)
        )
        self._last[number, ifindex] = at
        link = node.links[output.ifindex]
        if self._isis:
            event: Any = igp.PacketReceived(
                ifindex, link.hardware_address, output.destination, output.payload
            )
        else:
            source = link.addresses[0].address
            event = igp.PacketReceived(
                ifindex, source, output.destination, output.payload, output.ttl
            )
        self._push(at, number, event)

    def _push(self, at: float, number: int, event: Any) -> None:  # noqa: ANN401
        self._order += 1
        heapq.heappush(self._queue, (at, self._order, number, event))

    def run(self, seconds: float) -> None:
        """Advance the virtual clock."""
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            self.now, _, number, event = heapq.heappop(self._queue)
            node = self.nodes[number]
            if event is not None:
                node.engine.handle(event, self.now)
            elif node.wake == self.now:
                node.wake = None
                node.engine.tick(self.now)
            else:
                continue
            self._settle(number)
        self.now = end


def copies(proto: str, spines: int, leaves: int, reduction: ReductionSettings) -> dict[str, float]:
    """Packets for a change at a leaf and for a change at a spine: means over several changes."""
    wires = Wires(proto, spines, leaves, reduction)
    wires.run(30)
    found: dict[str, float] = {}
    for who, number in (("leaf", spines), ("spine", 0)):
        wires.counts.clear()
        for step in range(4):
            wires.cost(number + step, 20 + step)
            wires.run(4)
        for figure in (UPDATES, ACKS, "bytes"):
            found[f"{who} {figure}"] = wires.counts[figure] / 4
    return found


def all_copies(proto: str, spines: int, leaves: int) -> dict[str, float]:
    """The same without flood suppression: no neighbor is covered by the originator."""
    with (
        patch("fared.protocols.isis.update.database.covered", lambda *_: frozenset()),
        patch.object(FloodSuppression, "covered", lambda *_: 0),
    ):
        return copies(proto, spines, leaves, NONE)


def virtual_rows(fabrics: tuple[tuple[str, int, int], ...]) -> list[Row]:
    """Compare counts with and without reduction; load does not change them: one process a core."""
    wanted = [(*each, reduction) for each in fabrics for reduction in (LEAF, DYNAMIC, NONE)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        unsuppressed = pool.map(all_copies, *zip(*fabrics, strict=True))
        counted = list(pool.map(copies, *zip(*wanted, strict=True)))
    rows: list[Row] = []
    for number, ((proto, spines, leaves), every) in enumerate(
        zip(fabrics, unsuppressed, strict=True)
    ):
        leaf, dynamic, without = counted[3 * number : 3 * number + 3]
        for who in ("leaf", "spine"):
            name = (
                f"{proto} {spines}x{leaves}, a change at a {who}, updates: flood suppression / none"
            )
            ours, other = (found[f"{who} {UPDATES}"] for found in (without, every))
            rows.append(compared(name, ours, other, "packets"))
        ways = (("leaf reduction", leaf), ("dynamic flooding", dynamic))
        for who, (way, with_it) in itertools.product(("leaf", "spine"), ways):
            name = f"{proto} {spines}x{leaves}, a change at a {who}"
            for figure, unit in ((UPDATES, "packets"), ("bytes", "bytes")):
                ours, other = (found[f"{who} {figure}"] for found in (with_it, without))
                rows.append(
                    {
                        "name": f"{name}, {figure}: {way} / none",
                        "ours": ours,
                        "other": other,
                        "unit": unit,
                        "ratio": other / ours if ours else None,
                        "note": NOTE_ACKS,
                    }
                )
    return rows


# -- the cost of a copy --------------------------------------------------------------------------


def duplicate_rows() -> list[Row]:
    """One packet with a router LSA of 64 links or a full LSP: the first copy and a duplicate."""
    rows = []
    for proto in ("ospf", "isis"):
        first, again = _first_and_again(proto)
        rows.append(
            {
                "name": f"{proto}: a copy more of what is known / the first copy",
                "ours": again * 1e6,
                "other": first * 1e6,
                "unit": "us",
                "ratio": first / again,
                "goal": f">= {GOAL_DUPLICATE:g}x",
                "met": first / again >= GOAL_DUPLICATE,
            }
        )
    return rows


def _first_and_again(proto: str, number: int = 300) -> tuple[float, float]:
    """CPU seconds for the first copy and a duplicate, medians, at a leaf with eight neighbors.

    Two neighbors send each sequence number once, in turn. The times include taking the outputs.
    """
    wires = Wires(proto, 8, 2, NONE)
    wires.run(30)
    leaf = wires.nodes[8]
    times: tuple[list[float], list[float]] = ([], [])
    gc.disable()
    for sequence in range(number):
        wires.now += 0.02
        for spine in (0, 1):
            far, far_index = leaf.far[spine + 1]
            link = wires.nodes[far].links[far_index]
            event = (_ospf_packet if proto == "ospf" else _isis_packet)(spine, link, sequence + 1)
            begin = time.process_time_ns()
            leaf.engine.receive(iter((event,)), wires.now)
            all_outputs(leaf.engine)
            times[spine].append((time.process_time_ns() - begin) / 1e9)
        leaf.engine.tick(wires.now)
        all_outputs(leaf.engine)
    gc.enable()
    return statistics.median(times[0]), statistics.median(times[1])


def all_outputs(engine: OspfEngine | IsisEngine) -> list[Any]:
    """All outputs of an engine, in order."""
    found: list[Any] = []
    while outputs := engine.take_outputs():
        found += outputs
    return found


def _ospf_packet(spine: int, link: Link, sequence: int) -> igp.PacketReceived:
    """A router LSA of 64 links, as a spine floods it."""
    links = tuple(RouterLink(1, number, 0x0A000000 + number, 10) for number in range(64))
    lsa = encode_lsa(
        ls_age=1,
        options=2,
        ls_type=1,
        link_state_id=9,
        advertising_router=9,
        ls_sequence_number=sequence,
        body=encode_router_lsa(RouterLsa(0, links)),
    )
    packet = encode_packet(0x0AFF0001 + spine, 0, LsUpdate((lsa,)))
    return igp.PacketReceived(spine + 1, link.addresses[0].address, 0xE0000005, packet, 1)


def _isis_packet(spine: int, link: Link, sequence: int) -> igp.PacketReceived:
    """A fragment full of TE links, as a spine floods it."""
    described = Described(64, 8, te=True)
    router = described.leaf(5)
    system, tlvs = described.system(router), tuple(described.fragments(router)[1])
    raw = encode_pdu(Lsp(2, lsp_id(system, 0, 1), sequence, 1200, tlvs=tlvs, is_type=3))
    return igp.PacketReceived(spine + 1, link.hardware_address, 0x0180C2000015, raw)
