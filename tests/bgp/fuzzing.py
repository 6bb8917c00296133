"""One BGP speaker between neighbors that send anything: messages, mutations of them, noise.

``Speaker`` is an engine without a router: neighbors ``TARGETS`` send what a test wants, and the
neighbor ``WITNESS`` tells 20 routes that nobody else's messages may harm. ``resets`` says by the
RFCs alone, without the codec, whether an UPDATE ends its session.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fared.core.ids import NodeId, Prefix, RouterId, ipv4_prefix, parse_dotted
from fared.core.links import InterfaceAddress, Link
from fared.core.streams import (
    CloseStream,
    SendStream,
    StreamClosed,
    StreamId,
    StreamOpened,
    StreamReceived,
    StreamSent,
)
from fared.paths.rib.solver import RouteSolver, SolverSettings
from fared.protocols.bgp.engine import BgpEngine
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import AsPath, LocalPref, Origin, attributes_of
from fared.protocols.bgp.packet.capabilities import (
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    NextHopEncoding,
    RouteRefreshCapability,
    multiprotocol,
)
from fared.protocols.bgp.packet.codec import KEEPALIVE, encode_message, encode_open
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.messages import OpenMessage, RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.settings import BgpLinkSettings, BgpNeighborSettings, BgpSettings
from fared.protocols.igp.events import LinkChanged
from tests.bgp_packet.test_bytes import MARKER, MESSAGES
from tests.bgp_rib.routers import feed
from tests.packets.damage import mutate

_UPDATE = 2
LOCAL_AS = 65001
MOST = 300
"""Prefixes that a neighbor may announce."""


class Far(NamedTuple):
    """A neighbor: its AS, whether it knows AS numbers of four octets, families, address."""

    name: str
    number: int
    wide: bool
    families: tuple[int, ...]
    network: int

    @property
    def text(self) -> str:
        return ".".join(map(str, (self.network + 2).to_bytes(4, "big")))

    @property
    def coding(self) -> Coding:
        return Coding(self.wide, self.number == LOCAL_AS, 0, self.families, 4096)


def _far(place: int, name: str, number: int, wide: bool, families: tuple[int, ...]) -> Far:
    return Far(name, number, wide, families, parse_dotted("10.9.0.0") + 256 * place)


WITNESS = _far(0, "witness", 65100, True, (4, 6))
TARGETS = (
    _far(1, "external", 65002, True, (4, 6)),
    _far(2, "internal", LOCAL_AS, True, (4, 6)),
    _far(3, "two octets", 65003, False, (4,)),
)
KEPT = tuple(ipv4_prefix((172 << 24) + (16 << 16) + (at << 8), 24) for at in range(20))


class Speaker:
    """An engine with its four links; the sessions are up."""

    def __init__(self, seed: int = 1, most: int = MOST) -> None:
        """``most``: prefixes that a neighbor may announce."""
        self.now, self._opened = 0.0, 0
        neighbors = tuple(
            BgpNeighborSettings(
                far.text,
                remote_as=far.number,
                passive=True,
                hold_time=0,
                imports=("all",),
                exports=("all",),
                maximum_prefixes=most,
                restart_after=1.0,
                enforce_first_as=False,
            )
            for far in (WITNESS, *TARGETS)
        )
        settings = BgpSettings(
            LOCAL_AS, RouterId(1), neighbors=neighbors, networks=(ipv4_prefix(0x0A000100, 24),)
        )
        self.engine = BgpEngine(settings, random.Random(seed))
        self.solver = RouteSolver(NodeId(1), SolverSettings())
        """Of IPv4."""
        self.closed: set[StreamId] = set()
        self.streams: dict[str, StreamId] = {}
        self.sent = bytearray()
        """What the engine sent since it was emptied."""
        for at, far in enumerate((WITNESS, *TARGETS), 1):
            addresses = (
                InterfaceAddress(4, far.network + 1, 24),
                InterfaceAddress(6, (0xFD00 << 112) + (at << 64) + 1, 64),
                InterfaceAddress(6, (0xFE80 << 112) + at, 64),
            )
            link = Link(at, f"eth{at}", True, 1500, addresses, speed=1.25e9)
            self.tell(LinkChanged(link, BgpLinkSettings()))
        known = {one.name: one for one in self.engine.instance.neighbors.values()}
        self._neighbors = {far.name: known[far.text] for far in (WITNESS, *TARGETS)}
        for far in (WITNESS, *TARGETS):
            self.open(far)
        attributes = attributes_of([Origin(0), AsPath(sequence(WITNESS.number))])
        group = RouteGroup(BgpNextHop(4, WITNESS.network + 2), KEPT)
        for message in encode_message(Update((), (group,), attributes)):
            self.say(WITNESS, message)

    # -- driving ----------------------------------------------------------------------------

    def tell(self, event: Any) -> None:
        self.engine.handle(event, self.now)
        self._turn()

    def _turn(self) -> None:
        for _ in range(1000):
            while outputs := self.engine.take_outputs():
                for one in outputs:
                    if isinstance(one, CloseStream):
                        self.closed.add(one.stream)
                    elif isinstance(one, SendStream):
                        self.sent += one.data
                        self.engine.handle(StreamSent(one.stream, len(one.data)), self.now)
                    elif getattr(one, "family", None) == 4:
                        feed(self.solver, [one])
            due = self.engine.next_deadline()
            if due is None or due > self.now:
                return
            self.engine.tick(self.now)
        raise AssertionError("the engine does not come to rest")

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while (due := self.engine.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.engine.tick(self.now)
            self._turn()
        self.now = end

    def neighbor(self, far: Far) -> BgpSpeaker:
        return self._neighbors[far.name]

    def up(self, far: Far) -> bool:
        return self.neighbor(far).agreed is not None

    def open(self, far: Far) -> None:
        """Open the session with a neighbor, whatever was before."""
        if not self.connect(far):
            return
        number = far.number if far.wide else 0
        capabilities = [*map(multiprotocol, far.families), RouteRefreshCapability()]
        if number:
            wide = ExtendedNextHop((NextHopEncoding(1, 1, 2),))
            capabilities += [FourOctetAs(number), ExtendedMessage(), wide]
        hello = OpenMessage(far.number, 0, far.network + 2, tuple(capabilities))
        self.say(far, encode_open(hello))
        self.say(far, KEEPALIVE)

    def connect(self, far: Far) -> bool:
        """Open a stream; whether the engine took it."""
        self._opened += 1
        stream = StreamId(self.neighbor(far).number, passive=True, number=self._opened)
        self.streams[far.name] = stream
        self.tell(StreamOpened(stream, "", ""))
        return stream not in self.closed

    def say(self, far: Far, data: bytes) -> bool:
        """Have a neighbor send bytes; whether its stream is still open."""
        stream = self.streams[far.name]
        if stream not in self.closed:
            self.tell(StreamReceived(stream, data))
        return stream not in self.closed

    def lose(self, far: Far) -> None:
        """Lose all connections with a neighbor: of two, one may be behind the last one."""
        peer = self.neighbor(far).number
        for number in range(1, self._opened + 1):
            stream = StreamId(peer, passive=True, number=number)
            self.tell(StreamClosed(stream, "connection reset by peer"))

    def again(self, far: Far) -> None:
        """Bring a session up, whenever the engine takes it."""
        for _ in range(80):
            self.closed.clear()
            self.open(far)
            if self.up(far):
                return
            self.run(1.0)
        raise AssertionError(f"no session with {far.name}: {self.neighbor(far).session}")

    # -- what is asked ------------------------------------------------------------------------

    def witness_is_unharmed(self) -> bool:
        """Whether the witness is up, and all that it told is there."""
        number = self.neighbor(WITNESS).number
        return self.up(WITNESS) and self.told_by(number) == set(KEPT)

    def told_by(self, number: int) -> set[Prefix]:
        rib = self.engine.instance.ribs[4]
        return set(rib.table.announced(number)) if rib.knows(number) else set()

    def sizes(self) -> dict[str, int]:
        """What could grow."""
        instance = self.engine.instance
        found = {"told": len(instance.surroundings.told), "numbers": 0, "paths": 0}
        for rib in instance.ribs.values():
            found["numbers"] += len(rib.table.prefixes)
            found["paths"] += len(rib.table.paths)
        found["kinds of rejections"] = len(instance.process.counters.errors)
        return found


# -- seeds ------------------------------------------------------------------------------------


def seeds(far: Far) -> list[bytes]:
    """Messages that make sense from a neighbor, and those of the tests and of other people.

    ``FARED_TEST_CORPUS`` is a folder of files with messages in hex, one a line.
    """
    found = [bytes.fromhex(MARKER + text) for _, text in MESSAGES.values()]
    base: list[Any] = [Origin(0), AsPath(sequence(far.number, 65009))]
    if far.number == LOCAL_AS:
        base = [Origin(1), AsPath(()), LocalPref(100)]
    for at in range(12):
        four = tuple(ipv4_prefix((10 << 24) + (at << 16) + (n << 8), 24) for n in range(at + 1))
        six = tuple(Prefix(6, (0x2001 << 112) + (at << 80) + (n << 64), 64) for n in range(3))
        groups = [RouteGroup(BgpNextHop(4, far.network + 2), four)]
        if 6 in far.families and at % 2:
            groups.append(RouteGroup(BgpNextHop(6, (0xFE80 << 112) + 2), six))
        update = Update(four[:1] if at % 3 else (), tuple(groups), attributes_of(base))
        found += encode_message(update, far.coding)
    corpus = os.environ.get("FARED_TEST_CORPUS")
    for path in sorted(Path(corpus).glob("*.hex")) if corpus else ():
        found += [bytes.fromhex(line) for line in path.read_text().split()]
    return [one for one in found if len(one) >= 19]


def mutations(rng: random.Random, good: list[bytes]) -> Iterator[bytes]:
    """Yield messages whose header is right: of most, single attributes are damaged."""
    updates = [one for one in good if one[18] == _UPDATE and resets(one, (4, 6)) is not True]
    while True:
        if rng.random() < 0.7:
            yield _frame(_UPDATE, _damaged(rng.choice(updates)[19:], rng))
            continue
        data = rng.choice(good)
        for _ in range(rng.randint(1, 3)):
            data = mutate(data, rng, 16) or b"\0"
        kind = _UPDATE if rng.random() < 0.9 else rng.choice((1, 2, 3, 4, 5))
        yield _frame(kind, data[19:])


def _frame(kind: int, body: bytes) -> bytes:
    body = body[:4077].ljust(4, b"\0")
    return b"\xff" * 16 + (19 + len(body)).to_bytes(2, "big") + bytes((kind,)) + body


def _damaged(body: bytes, rng: random.Random) -> bytes:
    """Damage one or two attributes of an UPDATE; its prefixes remain where they are."""
    lost = 2 + int.from_bytes(body[:2], "big")
    end = lost + 2 + int.from_bytes(body[lost : lost + 2], "big")
    found = list(_attributes(body[lost + 2 : end]))
    for _ in range(rng.randint(1, 2) if found else 0):
        at = rng.randrange(len(found))
        flags, code, value = found[at]
        match rng.randrange(7):
            case 0:
                flags ^= 1 << rng.choice((5, 6, 7))
            case 1:
                code = rng.choice((*range(11), 14, 15, 16, 17, 18, 32, rng.randrange(256)))
            case 2:
                found.append(rng.choice(found))
            case 3:
                found.insert(0, (0xC0, rng.randrange(19, 256), rng.randbytes(rng.randrange(9))))
            case _:
                value = mutate(value, rng, 999) if value else rng.randbytes(3)
        found[at] = (flags, code, value)
    if rng.random() < 0.1 and found:
        del found[rng.randrange(len(found))]
    block = b"".join(_attribute(*one) for one in found) + b"\x40\x01" * (rng.random() < 0.05)
    return body[:lost] + len(block).to_bytes(2, "big") + block + body[end:]


def _attribute(flags: int, code: int, value: bytes) -> bytes:
    wide = len(value) > 255 or flags & 0x10
    size = len(value).to_bytes(2 if wide else 1, "big")
    return bytes((flags | 0x10 if wide else flags & ~0x10, code)) + size + value


# -- the rules, read again --------------------------------------------------------------------

_WELL_KNOWN = {1, 2, 3, 5, 6}
_OPTIONAL = 0x80


def resets(message: bytes, families: tuple[int, ...]) -> bool | None:
    """Whether an UPDATE breaks framing or NLRI (RFC 7606); None: attributes decide (§5.2).

    §5.2: if an attribute is malformed and there is no prefix, the session is reset.
    """
    body = message[19:]
    lost = int.from_bytes(body[:2], "big")
    at = 4 + lost
    end = at + int.from_bytes(body[at - 2 : at], "big")
    if at > len(body) or end > len(body):
        return True
    if not (_prefixes(body[2 : at - 2], 32) and _prefixes(body[end:], 32)):
        return True
    found = list(_attributes(body[at:end]))
    if any(_breaks(found, at, families) for at in range(len(found))):
        return True
    reached = (_has_prefixes(value, families) for _, code, value in found if code == 14)
    return False if end < len(body) or any(reached) else None


def _breaks(found: list[tuple[int, int, bytes]], at: int, families: tuple[int, ...]) -> bool:
    """Whether an attribute is such that a session ends (RFC 7606 §3 (g), RFC 4271 §6.3)."""
    flags, code, value = found[at]
    again = code in [one for _, one, _ in found[:at]]
    if code in (14, 15):
        return again or not (_reach if code == 14 else _unreach)(value, families)
    unknown = code not in _WELL_KNOWN and code not in _ELSEWHERE
    return not again and unknown and not flags & _OPTIONAL


_ELSEWHERE = {4, 7, 8, 9, 10, 14, 15, 16, 17, 18, 32}
"""Optional attributes that fared knows: their flags are checked, whatever they say."""


def _attributes(block: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield those that are whole; RFC 7606 §4: of the rest the routes are withdrawn."""
    at = 0
    while at + 3 <= len(block):
        head = 4 if block[at] & 0x10 else 3
        if at + head > len(block):
            return
        size = int.from_bytes(block[at + 2 : at + head], "big")
        if at + head + size > len(block):
            return
        yield block[at], block[at + 1], block[at + head : at + head + size]
        at += head + size


def _prefixes(data: bytes, bits: int) -> bool:
    at = 0
    while at < len(data):
        if data[at] > bits:
            return False
        at += 1 + (data[at] + 7) // 8
    return at == len(data)


def _family(value: bytes) -> int | None:
    """The family of a list of unicast prefixes: 0 if it is none of ours, None if it is cut."""
    if len(value) < 3:
        return None
    return {(1, 1): 4, (2, 1): 6}.get((int.from_bytes(value[:2], "big"), value[2]), 0)


def _unreach(value: bytes, families: tuple[int, ...]) -> bool:
    family = _family(value)
    if family is None or family not in families:
        return family is not None
    return _prefixes(value[3:], 32 if family == 4 else 128)


def _reach(value: bytes, families: tuple[int, ...]) -> bool:
    family = _family(value)
    if family is None or family not in families:
        return family is not None
    hop = value[3] if len(value) > 3 else 0
    if hop not in ((4, 16, 32) if family == 4 else (16, 32)) or len(value) < 5 + hop:
        return False
    return _prefixes(value[5 + hop :], 32 if family == 4 else 128)


def _has_prefixes(value: bytes, families: tuple[int, ...]) -> bool:
    return _family(value) in families and len(value) > 5 + value[3]
