"""What a recording costs a leaf: CPU of its router, bytes, and the states of segments.

``python -m bench recording 16x64 64x512`` brings up leaf 0 of each fabric without sockets and lets
bandwidths change, in turns with and without a recording: CPU of the same calls. Then it writes the
state of the router, as the fork of a daemon does; the time of the fork itself is that of this
process, which holds the fabric too.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
import zlib
from pathlib import Path

from bench.neighbors.fabric import Fabric
from bench.neighbors.leaf import Leaf
from bench.neighbors.lsas import announced
from fared.core.wire import Reader
from fared.management.recording import checkpoint
from fared.management.recording.files import SegmentRing
from fared.management.recording.recording import Recording
from fared.protocols.ospf.packet.lsa import decode_lsa

TURNS = 5
CHANGES = 30
_NEIGHBORS = 4


def changes(fabric: Fabric, leaf: Leaf, dice: random.Random) -> float:
    """Let bandwidths of other leaves change; return the CPU ms of the router."""
    spent = 0.0
    for number in range(CHANGES):
        link = (number % _NEIGHBORS, 1 + number * 5 % (fabric.leaves - 1))
        newer = announced(fabric.te_lsa(fabric.leaf(link[1]), link).raw, dice)
        spent += leaf.flood([decode_lsa(Reader(newer))])
    return spent


def calls(fabric: Fabric, leaf: Leaf) -> None:
    """Print what a call costs more on tape, and its bytes."""
    dice, more, ratios = random.Random(3), [], []
    for _ in range(TURNS):
        without = changes(fabric, leaf, dice)
        with tempfile.TemporaryDirectory() as directory:
            ring = SegmentRing(Path(directory) / "ring", 1 << 30, 2, Path(directory))
            recording = Recording(ring, time.perf_counter)
            leaf.router = recording.begin(leaf.router, leaf.now, 0.0)
            taped = changes(fabric, leaf, dice)
            leaf.router = recording.end(leaf.now)
        more.append((taped - without) * 1e3 / recording.tape.calls)
        ratios.append(taped / without)
    size = ring.written / recording.tape.calls
    print(
        f"  a call: {statistics.median(more):.1f} us of CPU more, {size:.0f} bytes;"
        f" CPU with / without: {statistics.median(ratios):.2f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f})"
    )


def state(leaf: Leaf) -> None:
    """Print what the state of the router costs."""
    leaf.router.measure_with(float)
    begun = time.process_time()
    found = checkpoint.dump(leaf.router)
    packed = zlib.compress(found, 1)
    written = time.process_time()
    checkpoint.load(zlib.decompress(packed))
    loaded = time.process_time()
    leaf.router.measure_with(time.perf_counter)
    forking = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    forking = time.perf_counter() - forking
    os.waitpid(pid, 0)
    print(
        f"  its state: {len(packed) / 1e6:.2f} MB, written in {written - begun:.2f} s of CPU,"
        f" loaded in {loaded - written:.2f} s; a fork {forking * 1e3:.0f} ms"
    )


def main() -> None:
    """Print the rows of the fabrics that are named."""
    for name in sys.argv[1:] or ["16x64"]:
        spines, leaves = map(int, name.split("x"))
        fabric = Fabric(spines, leaves, te=True)
        fabric.originate()
        leaf = Leaf(fabric)
        leaf.join(2 * (leaves - 1))
        print(f"leaf 0 of {name}, OSPF:")
        calls(fabric, leaf)
        state(leaf)
