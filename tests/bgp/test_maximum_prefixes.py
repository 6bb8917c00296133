"""A neighbor that would tell a million prefixes: what is kept of them, and how its session ends.

With FARED_TEST_SOAK=1 the limit is that of the product, 100,000, and resident memory is measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.core.ids import ipv4_prefix
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import AsPath, Origin, attributes_of
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.messages import MessageType, RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.settings import BgpNeighborSettings
from tests.bgp.fuzzing import KEPT, TARGETS, Far, Speaker

MILLION = 1_000_000
OF_MESSAGE = 500
"""Prefixes of an UPDATE, each with attributes of its own."""
OF_READ = 65536
"""Bytes that are read at once."""
PREFIX = 4
"""Octets of a /24 in a message, at least."""
CEASE, MAXIMUM_NUMBER_OF_PREFIXES_REACHED = 6, 1
SOAK = bool(os.environ.get("FARED_TEST_SOAK"))
LIMIT = BgpNeighborSettings("10.9.1.2").maximum_prefixes or 0
MOST_MEMORY = 120
"""MiB for 100,000 prefixes, and what of a read is beyond."""
ROUNDS = 3


def flood(far: Far, number: int = MILLION) -> Iterator[bytes]:
    """Yield what a neighbor sends, as it is read: a million prefixes."""
    pending = bytearray()
    for first in range(0, number, OF_MESSAGE):
        some = tuple(
            [ipv4_prefix((20 << 24) + (at << 8), 24) for at in range(first, first + OF_MESSAGE)]
        )
        path = AsPath(sequence(far.number, 4_200_000_000 + first))
        update = Update(
            (),
            (RouteGroup(BgpNextHop(4, far.network + 2), some),),
            attributes_of([Origin(0), path]),
        )
        for message in encode_message(update, far.coding):
            pending += message
        while len(pending) >= OF_READ:
            yield bytes(pending[:OF_READ])
            del pending[:OF_READ]
    yield bytes(pending)


def endure(speaker: Speaker, far: Far) -> int:
    """Have a neighbor send all that it can; return how many prefixes it told at most."""
    rib, number, most = speaker.engine.instance.ribs[4], speaker.neighbor(far).number, 0
    for data in flood(far):
        going_on = speaker.say(far, data)
        most = max(most, len(rib.table))
        if not going_on:
            assert number not in rib.outs
            return most
    raise AssertionError("a million prefixes are taken")


def resident() -> float:
    """MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.rfc("RFC 4271 §6.7", "RFC 4486 §4")
@pytest.mark.parametrize(
    "limit",
    [
        1000,
        pytest.param(
            LIMIT, marks=pytest.mark.skipif(not SOAK, reason="a minute: set FARED_TEST_SOAK=1")
        ),
    ],
)
def test_of_a_million_prefixes_no_more_than_the_limit_and_a_read_are_kept(limit: int):
    speaker = Speaker(most=limit)
    far, before = TARGETS[0], resident()
    for _ in range(ROUNDS):
        speaker.sent.clear()
        assert endure(speaker, far) <= len(KEPT) + 1 + limit + OF_READ // PREFIX
        last = bytes(speaker.sent[-(19 + 2) :])
        assert last[18:] == bytes(
            (MessageType.NOTIFICATION, CEASE, MAXIMUM_NUMBER_OF_PREFIXES_REACHED)
        )
        assert speaker.told_by(speaker.neighbor(far).number) == set()
        assert speaker.witness_is_unharmed()
        assert not speaker.up(far)
        speaker.again(far)
    if limit == LIMIT:
        assert resident() - before < MOST_MEMORY
    speaker.lose(far)
    speaker.run(120.0)
    assert len(speaker.engine.instance.ribs[4].table) == len(KEPT) + 1
