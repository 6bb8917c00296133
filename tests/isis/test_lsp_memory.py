"""What an LSP of a router with few links and prefixes takes, beside its bytes."""

import gc
import random
import tracemalloc
from collections.abc import Callable
from functools import partial

from fared.core.ids import SystemId, ipv4_prefix
from fared.core.timers import BoundAction, TimerQueue
from fared.protocols.isis.ids import Level, LevelSet, lsp_id
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.codec import decode_pdu, encode_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    ProtocolsSupported,
)
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.ted.builder import TedBuilder

COUNT = 500
FIRST = 1000


def encoded(number: int) -> bytes:
    """An LSP with two links and a prefix."""
    neighbors = tuple(IsNeighbor(number + other << 8, 10) for other in (1, 2))
    prefixes = (IpReach(ipv4_prefix(number << 8, 24), 10),)
    tlvs = (ProtocolsSupported((0xCC,)), IsReachability(neighbors), IpReachability(4, prefixes))
    return encode_pdu(Lsp(2, lsp_id(number), 1, 1200, tlvs=tlvs))


def taken(work: Callable[[], object]) -> int:
    """Bytes in use that were not before."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_an_lsp_with_two_links_and_a_prefix_takes_at_most_4400_bytes():
    settings = IsisSettings(SystemId(1), (b"\x49",), LevelSet.TWO, families=(4,))
    instance = Instance(settings, random.Random(1))
    builder = TedBuilder(instance)

    def learn(numbers: range) -> None:
        for number in numbers:
            lsp = decode_pdu(encoded(number))
            assert isinstance(lsp, Lsp)
            entry = StoredLsp(lsp.lsp_id, 1, lsp.checksum, 1e9, b"", lsp)
            builder.lsp_changed(Level.TWO, entry, instance.databases[Level.TWO].put(entry))
        builder.flush()
        instance.process.take_outputs()

    learn(range(FIRST - 9, FIRST))
    each = taken(partial(learn, range(FIRST, FIRST + COUNT))) / COUNT
    assert each < 4400, each


def test_the_timer_of_an_lsp_takes_less_than_300_bytes():
    queue, ran = TimerQueue(), list[tuple[int, int]]()

    def run(first: int, second: int) -> None:
        ran.append((first, second))

    def arm() -> None:
        for number in range(COUNT):
            queue.arm(number + 0.5, BoundAction(run, number, 2))

    assert taken(arm) / COUNT < 300
    queue.fire(1.5)
    assert ran == [(0, 2), (1, 2)]
