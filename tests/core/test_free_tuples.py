"""Packets that were read and forgotten leave no memory in use: not even tuples kept for new ones.

``tuple`` of a generator allocates ten places and shrinks: the result never comes from the tuples
that Python keeps, up to 2,000 of each size, but goes there when it is freed. A flood then fills
these, and holes remain between the entries of the database when they are emptied.
"""

import gc
import sys
from collections.abc import Callable

import pytest

from fared.protocols.isis.adjacency.checks import read_hello
from fared.protocols.isis.pdu.codec import decode_pdu
from fared.protocols.isis.pdu.model import LanHello, Lsp, P2pHello
from fared.protocols.isis.ted.fragment_facts import read_fragment
from fared.protocols.ospf.packet.codec import decode_packet
from tests.packets.recorded import ISIS, OSPF, load

ROUNDS = 100
MOST = 300
"""Blocks of memory: of caches and free lists that a few packets fill."""


def read_isis(payload: bytes) -> None:
    """Decode a PDU, and read what a hello or an LSP says."""
    pdu = decode_pdu(payload)
    if isinstance(pdu, LanHello | P2pHello):
        read_hello(pdu)
    elif isinstance(pdu, Lsp):
        read_fragment(pdu, own=False, capacity_code=None)


@pytest.mark.parametrize(
    ("recordings", "read"), [(ISIS, read_isis), (OSPF, decode_packet)], ids=["isis", "ospf"]
)
def test_packets_that_are_read_again_and_again_take_no_more_memory(
    recordings: tuple[str, ...], read: Callable[[bytes], object]
):
    payloads = [packet.payload for packet in load(*recordings)]
    for payload in payloads:
        read(payload)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(ROUNDS):
        for payload in payloads:
            read(payload)
    grown = sys.getallocatedblocks() - before
    assert grown < MOST, grown
