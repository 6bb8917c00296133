"""Cost of prefixes: one changed prefix in an LSP, and all prefixes of a fabric at start.

IS-IS level 2 routers at the other end of a link advertise N prefixes in LSPs of 100, up to 250 LSPs
each: a thousand LSPs for 100,000 prefixes. Then an LSP arrives with one prefix at another metric.
The time covers decoding, the comparison with the previous LSP, the selection of the prefix and its
route. The cost must not depend on the number of prefixes held: the goal is the time with few.

All of them are learnt, in bursts of ten LSPs, and withdrawn: the goal is the time of each LSP when
there are few.

A fabric that advertises its links as prefixes has most of them at start: the time from blocks to
routes is compared with that of the same fabric with loopbacks alone. Times are CPU time of this
process, the best of several runs. ``python -m bench prefixes`` prints the rows.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Any

from msgspec.structs import replace

from bench.router.fabrics import Blocks, fabric, leaf, local_links
from bench.router.timing import in_turn
from bench.rows import compared
from fared.core.ids import Prefix, SystemId, isis_node
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.events import PrefixesUpdated, TedUpdated
from fared.paths.ted.model import LocalLink
from fared.protocols.isis.ids import Level, LevelSet, lsp_id
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.codec import Former, decode_raw, encode_pdu, read_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    NLPID_IPV4,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    ProtocolsSupported,
)
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.ted.builder import TedBuilder

AREA = 0
HELD = (1_000, 10_000, 100_000)
OF_AN_LSP = 100
OF_A_ROUTER = 250
CHANGES = 60
BURST = 10
"""LSPs that are learnt, or withdrawn, before the routes are computed."""
REPEAT = 15
STEPS = ("decode", "compare", "select")
OF_A_TLV = 25
ROOT = SystemId(1)
SPINES, LEAVES = 32, 128


class Learner:
    """A level 2 router that learns prefixes: its database, its TED and its routes."""

    def __init__(self) -> None:
        settings = IsisSettings(ROOT, (b"\x49",), LevelSet.TWO, families=(4,))
        self._instance = Instance(settings, random.Random(1))
        self._builder = TedBuilder(self._instance)
        self.solver = RouteSolver(isis_node(ROOT), SolverSettings())
        self._lsps: dict[int, Lsp] = {}
        self.spent = dict.fromkeys(STEPS, 0.0)
        self.least = dict.fromkeys(STEPS, inf)
        """Shortest duration of each step of a change, seconds."""

    def begin(self) -> None:
        """Start the timing of a change."""
        self.spent = dict.fromkeys(STEPS, 0.0)

    def receive(self, raw: bytes) -> None:
        """Process an LSP as flooding does: unchanged TLVs are not decoded again."""
        start = time.process_time()
        database = self._instance.databases[Level.TWO]
        whole = read_pdu(raw)
        previous = database.get(lsp_id(*_numbers(raw)))
        former = None if previous is None else Former(previous.raw, previous.lsp.tlvs)
        lsp = decode_raw(whole, former=former)
        assert isinstance(lsp, Lsp)
        decoded = time.process_time()
        entry = StoredLsp(lsp.lsp_id, lsp.sequence_number, lsp.checksum, 1e9, raw, lsp)
        self._builder.lsp_changed(Level.TWO, entry, database.put(entry))
        self.spent["decode"] += decoded - start
        self.spent["compare"] += time.process_time() - decoded

    def settle(self) -> None:
        """Compute the routes of all changes."""
        start = time.process_time()
        self._builder.flush()
        flushed = time.process_time()
        for output in self._instance.process.take_outputs():
            match output:
                case TedUpdated():
                    at = output.area, output.node
                    self.solver.put_block(*at, output.block, output.changes)
                case PrefixesUpdated():
                    self.solver.put_prefixes(output.area, output.node, output.changes)
        self.solver.solve()
        self.spent["compare"] += flushed - start
        self.spent["select"] += time.process_time() - flushed
        self.least = {step: min(self.least[step], took) for step, took in self.spent.items()}


def _numbers(raw: bytes) -> tuple[SystemId, int, int]:
    return SystemId(int.from_bytes(raw[12:18], "big")), raw[18], raw[19]


def far_end(number: int) -> SystemId:
    """The system id of a router that advertises prefixes."""
    return SystemId(ROOT + 1 + number)


def fragment(number: int, metric: int = 10) -> bytes:
    """Return LSP ``number``, whose middle prefix has the given metric."""
    first = (10 << 24) + (number * OF_AN_LSP << 8)
    reached = [IpReach(Prefix(4, first + (n << 8), 24), 10) for n in range(OF_AN_LSP)]
    reached[OF_AN_LSP // 2] = replace(reached[OF_AN_LSP // 2], metric=metric)
    tlvs = [
        IpReachability(4, tuple(reached[at : at + OF_A_TLV]))
        for at in range(0, OF_AN_LSP, OF_A_TLV)
    ]
    return _lsp(number, metric, tlvs)


def withdrawn(number: int) -> bytes:
    """Return the next instance of LSP ``number``, without prefixes."""
    return _lsp(number, 1000, [])


def _lsp(number: int, sequence: int, tlvs: list[IpReachability]) -> bytes:
    router, own = divmod(number, OF_A_ROUTER)
    link = IsReachability((IsNeighbor(ROOT << 8, 10),))
    head = () if own else (ProtocolsSupported((NLPID_IPV4,)), link)
    return encode_pdu(Lsp(2, lsp_id(far_end(router), 0, own), sequence, 1200, tlvs=(*head, *tlvs)))


def adjacent_to(count: int) -> Learner:
    """Return a router with links to those that advertise so many LSPs."""
    learner = Learner()
    routers = range(-(-count // OF_A_ROUTER))
    ends = IsReachability(tuple(IsNeighbor(far_end(n) << 8, 10) for n in routers))
    own = Lsp(2, lsp_id(ROOT), 1, 1200, tlvs=(ProtocolsSupported((NLPID_IPV4,)), ends))
    learner.receive(encode_pdu(own))
    links = (LocalLink(n + 1, f"eth{n}", isis_node(far_end(n)), 1, 0, 10, 1e9) for n in routers)
    learner.solver.set_local_links(2, tuple(links))
    return learner


def learnt(held: int) -> Learner:
    """Return a router that holds ``held`` prefixes."""
    count = held // OF_AN_LSP
    learner = adjacent_to(count)
    for number in range(count):
        learner.receive(fragment(number))
    learner.settle()
    assert len(learner.solver.routes) == held
    return learner


def learn_rows(sizes: tuple[int, ...] = (HELD[0], HELD[-1])) -> list[dict[str, Any]]:
    """Learn and withdraw all LSPs, a burst at a time; the CPU time of each LSP."""
    few, many = sizes
    spent: dict[tuple[str, int], float] = {}
    for held in (many, *(few,) * REPEAT):
        count = held // OF_AN_LSP
        learner = adjacent_to(count)
        for what, make in (("learnt", fragment), ("withdrawn", withdrawn)):
            lsps = [make(number) for number in range(count)]
            start = time.process_time()
            for first in range(0, count, BURST):
                for raw in lsps[first : first + BURST]:
                    learner.receive(raw)
                learner.settle()
            took = (time.process_time() - start) / count * 1e3
            spent[what, held] = min(took, spent.get((what, held), inf))
            assert len(learner.solver.routes) == (held if what == "learnt" else 0)
    count = many // OF_AN_LSP
    return [
        compared(
            f"IS-IS: {count:,} LSPs of {OF_AN_LSP} prefixes {what}, each, beside"
            f" {few // OF_AN_LSP}",
            spent[what, many],
            spent[what, few],
            "ms",
            0.4,
        )
        for what in ("learnt", "withdrawn")
    ]


def change_rows() -> list[dict[str, Any]]:
    """One changed prefix, compared with the same change among the fewest prefixes."""
    learners, notes = {}, {}
    for held in HELD:
        start = time.process_time()
        learners[held] = learnt(held)
        notes[held] = f"learnt in {time.process_time() - start:.2f} s of CPU"
    changing = {}
    for held, learner in learners.items():
        lsps = [fragment(held // OF_AN_LSP // 2, 11 + n) for n in range(CHANGES)]
        changing[str(held)] = partial(change, learner, iter(lsps))
    spent = in_turn(changing, CHANGES)
    rows = []
    for held, learner in list(learners.items())[1:]:
        name = f"IS-IS: one prefix of an LSP changes, {held:,} held, beside {HELD[0]:,} held"
        parts = ", ".join(f"{part} {1e3 * took:.2f} ms" for part, took in learner.least.items())
        row = compared(name, spent[str(held)], spent[str(HELD[0])], "ms", 0.6)
        rows.append({**row, "note": f"{held:,} held: {parts}; {notes[held]}"})
    return rows


def change(learner: Learner, lsps: Iterator[bytes]) -> None:
    """Process an LSP with one prefix at another metric."""
    learner.begin()
    learner.receive(next(lsps))
    learner.settle()


def start_rows() -> list[dict[str, Any]]:
    """From the blocks of a fabric to routes, with and without its links as prefixes."""

    def start(blocks: Blocks) -> None:
        solver = RouteSolver(leaf(1), SolverSettings())
        for node, block in blocks.items():
            solver.put_block(AREA, node, block)
        solver.set_local_links(AREA, local_links(blocks[leaf(1)]))
        solver.solve()

    runs = {
        name: partial(start, fabric(SPINES, LEAVES, link_prefixes=with_links))
        for name, with_links in (("all", True), ("loopbacks", False))
    }
    spent = in_turn(runs, REPEAT)
    name = f"{SPINES}x{LEAVES}, from blocks to routes: links as prefixes, beside loopbacks alone"
    return [compared(name, spent["all"], spent["loopbacks"], "ms", 0.33)]


def rows() -> list[dict[str, Any]]:
    """All measurements of prefixes."""
    return [*change_rows(), *learn_rows(), *start_rows()]
