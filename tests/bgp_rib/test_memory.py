"""What a path takes that no other is like, from its bytes to the tables: they may be ten thousands.

Allocated bytes are counted, which are the same however fast and busy the machine is.
"""

from __future__ import annotations

import gc
import tracemalloc

from fared.core.ids import NodeId, ipv4_prefix
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    ExtendedCommunities,
    Origin,
    attributes_of,
)
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.communities import LinkBandwidth
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.packet.update import UpdateReader
from fared.protocols.bgp.rib.decision import DecisionSettings
from fared.protocols.bgp.rib.paths import BgpPeer
from fared.protocols.bgp.rib.tables import BgpRib

SPINE, LEAF = 65100, 4_200_000_000
HEADER = 19
FEW, MANY = 100, 600
MOST = 700
"""Bytes: 545 with Python 3.11; it was 1445 with blocks that were read, and keys, kept beside it."""


def messages(count: int) -> list[bytes]:
    """UPDATE messages of one neighbor, each with other attributes, about the same prefix."""
    hop, prefix = BgpNextHop(4, 0x0A000001), ipv4_prefix(0x0B000000, 24)
    found: list[bytes] = []
    for leaf in range(count):
        community = LinkBandwidth(SPINE, 12.5e9).raw
        path = AsPath(sequence(SPINE, LEAF + leaf))
        items = attributes_of([Origin(0), path, ExtendedCommunities((community,))])
        found += encode_message(Update((), (RouteGroup(hop, (prefix,)),), items))
    return found


def allocated(count: int) -> int:
    """Bytes that a table takes of so many messages, with their reader."""
    told = messages(count)
    gc.collect()
    tracemalloc.start()
    try:
        rib, reader = BgpRib(NodeId(1), 65000, 4, DecisionSettings()), UpdateReader(Coding())
        rib.table.add(BgpPeer(1, SPINE, 2, 2))
        for one in told:
            update = reader.decode(one, HEADER)
            group = update.routes[0]
            rib.table.announce(1, group.prefixes, update.attributes, group.next_hop)
        assert len(rib.table.paths) == count
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_a_path_that_no_other_is_like_is_kept_once():
    each = (allocated(MANY) - allocated(FEW)) / (MANY - FEW)
    assert each < MOST
