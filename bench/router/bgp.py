"""BGP messages: prefixes read and written, and sessions that pass updates on.

Times are CPU of the fastest of several runs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from bench.rows import compared
from fared.core.ids import Prefix, ipv4_prefix
from fared.core.streams import StreamId, StreamOpened, StreamReceived, Transport
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    ExtendedCommunities,
    Origin,
    PathAttributes,
    attributes_of,
)
from fared.protocols.bgp.packet.capabilities import FourOctetAs, multiprotocol
from fared.protocols.bgp.packet.codec import KEEPALIVE, Decoder, encode_message, encode_open
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.communities import LinkBandwidth
from fared.protocols.bgp.packet.messages import MessageType, OpenMessage, RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.session.events import NeighborSettings
from fared.protocols.bgp.session.session import BgpSession
from fared.protocols.igp.process import Process

PREFIXES = 10_000
_AS = 65002
_READ = 65536
_RUNS = 5
_STREAM = StreamId(1, passive=True, number=1)


def attributes(bandwidth: float) -> PathAttributes:
    community = LinkBandwidth(_AS, bandwidth).raw
    items = (Origin(0), AsPath(sequence(_AS)), ExtendedCommunities((community,)))
    return attributes_of(items)


def least(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest run."""
    found = []
    for _ in range(_RUNS):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def tables() -> dict[str, RouteGroup]:
    """Ten thousand prefixes of each family."""
    four = tuple(ipv4_prefix(n << 8, 24) for n in range(PREFIXES))
    six = tuple(Prefix(6, 0xFD << 120 | n << 64, 64) for n in range(PREFIXES))
    return {
        "IPv4 /24": RouteGroup(BgpNextHop(4, 1), four),
        "IPv6 /64": RouteGroup(BgpNextHop(6, 1), six),
    }


def decode(messages: list[bytes], coding: Coding) -> None:
    decoder = Decoder(coding)
    for message in messages:
        decoder.decode(MessageType.UPDATE, message)


def receive(stream: bytes) -> None:
    """Bring a session up, and let it process all messages of a stream."""
    process: Process[Any] = Process("bgp", 0.0, random.Random(1), str)
    session = BgpSession(process, 1, NeighborSettings(65001, 1, Transport("192.0.2.1")))
    session.start()
    session.handle(StreamOpened(_STREAM, "", ""))
    hello = OpenMessage(_AS, 9, 2, (multiprotocol(4), FourOctetAs(_AS)))
    session.handle(StreamReceived(_STREAM, encode_open(hello) + KEEPALIVE))
    for at in range(0, len(stream), _READ):
        session.handle(StreamReceived(_STREAM, stream[at : at + _READ]))
        while process.timers.next_deadline() == process.now:
            process.timers.fire(process.now)
        process.take_outputs()


def rows() -> list[dict[str, Any]]:
    """The rows of the report."""
    found = []
    coding, same = Coding(), attributes(1e9)
    for name, group in tables().items():
        update = Update((), (group,), same)
        messages = [*encode_message(update, coding)]
        writing = least(lambda update=update: [*encode_message(update, coding)])
        reading = least(lambda messages=messages: decode(messages, coding))
        what = f"{PREFIXES:,} prefixes {name} in {len(messages)} messages, each"
        found.append(compared(f"write {what}", writing / PREFIXES * 1e6, None, "us"))
        found.append(compared(f"read {what}", reading / PREFIXES * 1e6, None, "us"))
    group = tables()["IPv4 /24"]
    for name, step in (("equal attributes", 0.0), ("a bandwidth each", 1e3)):
        single = [
            message
            for number, prefix in enumerate(group.prefixes)
            for message in encode_message(
                Update(
                    (), (RouteGroup(group.next_hop, (prefix,)),), attributes(1e9 + number * step)
                )
            )
        ]
        reading = least(lambda single=single: decode(single, coding)) / PREFIXES * 1e6
        passing = least(lambda single=single: receive(b"".join(single))) / PREFIXES * 1e6
        found.append(compared(f"read messages of one prefix, {name}", reading, None, "us"))
        found.append(compared(f"a session passes them on, {name}", passing, None, "us"))
    return found
