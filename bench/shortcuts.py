"""What shortcuts gain: each beside its plain rule, on the same work.

A router without I/O, that of ``changes``, does the same work with a shortcut and without it, in
turns: without it a function is replaced, so that the plain rule answers. Each row has the least CPU
time of both; its ratio is the median of the pairs. What gains less than a fifth is to be removed.

Run alone (``python bench/shortcuts.py [NAME...]``) or through the benchmark runner.
"""

from __future__ import annotations

# ruff: noqa: E402 - threads are limited before NumPy is loaded
import os
import sys
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gc
import itertools
import operator
import random
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from unittest.mock import patch

from msgspec.structs import replace

from bench import fabrics
from bench.beside_fabric import Fabric
from bench.changes import Leaf, external, learnt
from bench.scale_fabric import announced, packet, updates
from fared.core.ids import parse_prefix
from fared.core.wire import Reader
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.model import NodeBlock, PrefixReachability
from fared.protocols.igp.events import PacketReceived
from fared.protocols.ospf.packet import codec
from fared.protocols.ospf.packet.lsa import MAX_AGE, LsType, decode_lsa

PAIRS = 24
LEAST = 1.2
_AREA = 0
_SERVING = 16
"""Leaves that advertise the same prefix."""
_NEIGHBORS, _WAVES, _OF_A_WAVE, _WAVE = 64, 5, 10, 0.01
"""Neighbors that all announce 1,000 changed bandwidths a second, as in ``scale``."""
_HELD = 1_000
_ALL_SPF = 0xE0000005
Row = dict[str, Any]
Replaced = AbstractContextManager[object]
Turn = Callable[[Replaced], float]
"""Does some work once, within the context; returns the CPU ms of what matters in it."""


# -- work --------------------------------------------------------------------------------------


def lost_link() -> Turn:
    """A whole router of 64x512 whose far link is lost, and then restored."""
    fabric = Fabric(64, 512, te=True)
    fabric.originate()
    leaf = Leaf(fabric)
    leaf.join(2 * 511)
    numbers = itertools.count()

    def turn(replaced: Replaced) -> float:
        number = next(numbers)
        link = number % len(leaf.speakers), 1 + number * 5 % 511
        ends = fabric.leaf(link[1]), fabric.spine(link[0])
        fabric.cut.add(link)
        with replaced:
            spent = leaf.flood([fabric.router_lsa(end) for end in ends])
        fabric.cut.discard(link)
        leaf.flood([fabric.router_lsa(end) for end in ends])
        leaf.run(3.0)
        return spent

    return turn


def anycast() -> Turn:
    """The routes of a leaf of 64x512 when a far link is lost and several leaves serve a prefix."""
    blocks = fabrics.fabric(64, 512)
    served = PrefixReachability(parse_prefix("10.99.0.0/24"), 10)
    for number in range(_SERVING):
        block = blocks[fabrics.leaf(10 + number)]
        blocks[block.node] = replace(block, prefixes=(*block.prefixes, served))
    root, far, end = fabrics.leaf(0), fabrics.spine(1), fabrics.leaf(2)
    solver = RouteSolver(root, SolverSettings(max_paths=128))
    for node, block in blocks.items():
        solver.put_block(_AREA, node, block)
    solver.set_local_links(_AREA, fabrics.local_links(blocks[root]))
    solver.solve()

    def told(*news: NodeBlock) -> float:
        begun = time.process_time()
        for block in news:
            solver.put_block(_AREA, block.node, block)
            solver.solve()
        return (time.process_time() - begun) * 1e3

    def turn(replaced: Replaced) -> float:
        with replaced:
            spent = told(fabrics.without(blocks[far], end), fabrics.without(blocks[end], far))
        told(blocks[far], blocks[end])
        return spent

    return turn


def one_external() -> Turn:
    """One of a thousand externals changes its metric."""
    leaf, router, _ = learnt(_HELD)
    numbers = itertools.count(1)

    def turn(replaced: Replaced) -> float:
        number = next(numbers)
        with replaced:
            return leaf.flood([external(_HELD // 2, number, 20 + number % 7, router)])

    return turn


def withdrawn() -> Turn:
    """A thousand externals are flushed, and learnt again."""
    leaf, router, _ = learnt(_HELD)
    numbers = itertools.count(1)

    def flooded(age: int, sequence: int) -> float:
        before = leaf.spent
        for first in range(0, _HELD, 200):
            lsas = [external(n, sequence, 20, router, age) for n in range(first, first + 200)]
            leaf.speakers[10].flood(lsas)()
            leaf.run(0.02)
        leaf.run(10.0)
        return (leaf.spent - before) * 1e3

    def turn(replaced: Replaced) -> float:
        sequence = next(numbers)
        flooded(1, sequence)
        with replaced:
            return flooded(MAX_AGE, sequence)

    return turn


def copies() -> Turn:
    """Changed bandwidths that all of 64 neighbors flood in the same packets."""
    fabric = Fabric(_NEIGHBORS, 64, te=True)
    fabric.originate()
    leaf = Leaf(fabric, neighbors=_NEIGHBORS)
    leaf.join(2 * 63)
    dice = random.Random(3)
    keys = [key for key in fabric.lsas if key.ls_type == LsType.OPAQUE_AREA]
    dice.shuffle(keys)
    turns = itertools.cycle(keys)

    def wave() -> list[PacketReceived]:
        lsas = []
        for key in itertools.islice(turns, _OF_A_WAVE):
            lsas.append(announced(fabric.lsas[key].raw, dice))
            fabric.lsas[key] = decode_lsa(Reader(lsas[-1]))
        return [
            PacketReceived(
                ifindex,
                fabric.addresses((ifindex - 10, 0))[0],
                _ALL_SPF,
                packet(speaker.router_id, body),
                1,
            )
            for body in updates(lsas)
            for ifindex, speaker in leaf.speakers.items()
        ]

    def turn(replaced: Replaced) -> float:
        before = leaf.spent
        waves = [wave() for _ in range(_WAVES)]
        with replaced:
            for packets in waves:
                leaf.receive(packets)
                leaf.run(_WAVE)
        spent = leaf.spent - before
        leaf.run(1.0)
        return spent * 1e3

    return turn


def hellos() -> Turn:
    """Each of 64 neighbors repeats its hello, one packet a wakeup."""
    fabric = Fabric(_NEIGHBORS, 8, te=False)
    fabric.originate()
    leaf = Leaf(fabric, neighbors=_NEIGHBORS)
    leaf.join(2 * 7)

    def turn(replaced: Replaced) -> float:
        before = leaf.spent
        with replaced:
            for speaker in leaf.speakers.values():
                speaker.hello()
                leaf.receive(leaf.taken())
        return (leaf.spent - before) * 1e3

    return turn


# -- shortcuts ---------------------------------------------------------------------------------


class Shortcut(NamedTuple):
    """``plain``: by what a function is replaced, so that the plain rule answers."""

    name: str
    work: Callable[[], Turn]
    plain: Mapping[str, Any]


def _none(*_: object, **__: object) -> None:
    """There is no shortcut."""


def _false(*_: object, **__: object) -> bool:
    return False


def _decoded(_: object, raw: bytes, *, verify: bool) -> object:
    """Decode an update, whether it is known or not."""
    return codec.decode_packet(raw, verify_checksum=verify, packed=True).body


_PATHS, _OSPF = "fared.paths", "fared.protocols.ospf"
SHORTCUTS = (
    Shortcut(
        "graph of a lost link",
        lost_link,
        {f"{_PATHS}.ted.database.updated_graph": lambda *_: (None, None)},
    ),
    Shortcut("plan of a lost link", lost_link, {f"{_PATHS}.spf.patch.cut_plan": _none}),
    Shortcut("capacities of a lost link", lost_link, {f"{_PATHS}.rib.area.after_loss": _none}),
    Shortcut(
        "rows toward several leaves",
        anycast,
        {f"{_PATHS}.rib.area.still_contracted": lambda *_: {}},
    ),
    Shortcut("one changed prefix", one_external, {f"{_PATHS}.rib.selector.take_few": _none}),
    Shortcut(
        "withdrawn externals",
        withdrawn,
        {f"{_OSPF}.flooding.withdrawals.Withdrawals.process": lambda _, __, lsas: lsas},
    ),
    Shortcut(
        "updates decoded once", copies, {f"{_OSPF}.packet.codec.DecodedUpdates.decode": _decoded}
    ),
    Shortcut(
        "copies compared as bytes",
        copies,
        {f"{_OSPF}.flooding.procedure.find_copies": lambda lsas, *_: (None, list(lsas))},
    ),
    Shortcut(
        "copies of many neighbors at once",
        copies,
        {
            f"{_OSPF}.flooding.duplicates.Duplicates.joins": _false,
            f"{_OSPF}.flooding.duplicates.Duplicates.gather": _false,
        },
    ),
    Shortcut(
        "repeated hellos", hellos, {f"{_OSPF}.adjacency.hello.HelloProtocol.repeated": _false}
    ),
)


class Plain(AbstractContextManager[None]):
    """Replaces functions."""

    def __init__(self, shortcut: Shortcut) -> None:
        self._patches = [patch(name, by) for name, by in shortcut.plain.items()]

    def __enter__(self) -> None:
        for each in self._patches:
            each.start()

    def __exit__(self, *_: object) -> None:
        for each in self._patches:
            each.stop()


def measure(shortcut: Shortcut, turn: Turn) -> Row:
    """Do the work in pairs; return a row."""
    pairs = []
    for number in range(PAIRS):
        gc.collect()
        gc.disable()
        spent = {}
        for plain in (False, True) if number % 2 else (True, False):
            spent[plain] = turn(Plain(shortcut) if plain else nullcontext())
        gc.enable()
        pairs.append((spent[False], spent[True]))
    ratio = statistics.median(plain / ours for ours, plain in pairs)
    return {
        "name": shortcut.name,
        "ours": min(ours for ours, _ in pairs),
        "other": min(plain for _, plain in pairs),
        "unit": "ms",
        "ratio": ratio,
        "goal": f">= {LEAST:g}x",
        "met": ratio >= LEAST,
    }


def rows(names: Collection[str] = ()) -> Iterator[Row]:
    """One row for each shortcut; ``names``: of these only."""
    chosen = [each for each in SHORTCUTS if not names or each.name in names]
    for work, together in itertools.groupby(chosen, operator.attrgetter("work")):
        turn = work()
        yield from [measure(shortcut, turn) for shortcut in together]


def main() -> None:
    for row in rows(sys.argv[1:]):
        print(f"{row['name']:36} {row['ours']:8.3f} {row['other']:8.3f} ms {row['ratio']:6.2f}x")


if __name__ == "__main__":
    main()
