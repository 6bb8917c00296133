"""What fast paths are measured on: each function makes a ``Turn``, which does some work once.

A whole router without I/O (``leaf``) where the fast path is a part of it, else the solver or the
class alone.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from msgspec.structs import replace

from bench.compute import THREE
from bench.neighbors.fabric import Fabric
from bench.neighbors.leaf import Leaf
from bench.neighbors.lsas import announced, packet, updates
from bench.neighbors.lsps import LspContents
from bench.plan.plan import read
from bench.router import fabrics
from bench.router.changes import external, learnt
from bench.router.fabrics import Blocks
from fared.core.bfd import SessionSettings
from fared.core.ids import NodeId, parse_prefix
from fared.core.wire import Reader
from fared.extensions.ina.plan.planner import plan_job
from fared.extensions.ina.slots.aggregator import Aggregator
from fared.extensions.ina.slots.packet import Header, PacketKind, encode_header
from fared.extensions.ina.slots.setup import setup_of
from fared.extensions.offline.plan.failures import FailureSets
from fared.extensions.offline.plan.sweep import capacities, sweep
from fared.kernel.fibdump import FibReading, RoutePlace
from fared.kernel.isis_socket import IsisSockets, frame
from fared.kernel.rtnetlink import (
    ROUTE4_DUMPED,
    RTA_DST,
    RTA_NH_ID,
    RTA_PRIORITY,
    RTA_TABLE,
    RTM_NEWROUTE,
)
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.model import NodeBlock, PrefixReachability
from fared.protocols.bfd.messages import SessionKey
from fared.protocols.bfd.session import BfdSession
from fared.protocols.bfd.sessions import Sessions
from fared.protocols.igp.events import PacketsReceived, Received
from fared.protocols.isis.ids import ALL_ISS
from fared.protocols.ospf.packet.lsa import MAX_AGE, LsType, decode_lsa
from tests.bgp_rib.routers import Router, attributes, nets, peer
from tests.ina.fabrics import figure_1

_AREA = 0
_TRAIN = 19
_SERVING = 16
"""Leaves that advertise the same prefix."""
_NEIGHBORS, _WAVES, _OF_A_WAVE, _WAVE = 64, 5, 10, 0.01
"""Neighbors that all announce 1,000 changed bandwidths a second, as in ``scale``."""
_GROUPS, _FIRST_AS = 512, 100_000
_HELD = 1_000
_CHANGES = 40
"""Changed bandwidths in a second."""
Replaced = AbstractContextManager[object]
Turn = Callable[[Replaced], float]
"""Does some work once, within the context; returns the CPU ms of what matters in it."""


# -- the solver alone --------------------------------------------------------------------------


class _Solved:
    """The routes of a leaf."""

    def __init__(self, blocks: Blocks) -> None:
        root = fabrics.leaf(0)
        self._solver = RouteSolver(root, SolverSettings(max_paths=128))
        for node, block in blocks.items():
            self._solver.put_block(_AREA, node, block)
        self._solver.set_local_links(_AREA, fabrics.local_links(blocks[root]))
        self._solver.solve()

    def told(self, *news: NodeBlock) -> float:
        """Compute after each block; return the CPU ms."""
        begun = time.process_time()
        for block in news:
            self._solver.put_block(_AREA, block.node, block)
            self._solver.solve()
        return (time.process_time() - begun) * 1e3


def _lost(blocks: Blocks, ends: tuple[NodeId, NodeId]) -> Turn:
    solved, (far, end) = _Solved(blocks), ends

    def turn(replaced: Replaced) -> float:
        with replaced:
            spent = solved.told(
                fabrics.without(blocks[far], end), fabrics.without(blocks[end], far)
            )
        solved.told(blocks[far], blocks[end])
        return spent

    return turn


def lost_routes() -> Turn:
    """The solver of a leaf of 64x512 when both ends report a lost link, as in `compute`."""
    return _lost(fabrics.fabric(64, 512, slow=0.01), THREE)


def lost_unknown() -> Turn:
    """The solver of a leaf of 64x512 without capacities when both ends report a lost link."""
    blocks = fabrics.fabric(64, 512)
    for node, block in blocks.items():
        blocks[node] = replace(block, capacities=block.capacities * float("nan"))
    return _lost(blocks, THREE)


def lost_network() -> Turn:
    """The solver of a leaf of 64x512 when both ends report a lost link with its network."""
    blocks = fabrics.fabric(64, 512, link_prefixes=True)
    solved, (far, end) = _Solved(blocks), THREE
    ends = [blocks[far], blocks[end]]
    gone = [
        replace(fabrics.without(one, other.node), prefixes=_unshared(one, other))
        for one, other in (ends, ends[::-1])
    ]

    def turn(replaced: Replaced) -> float:
        with replaced:
            spent = solved.told(*gone)
        solved.told(*ends)
        return spent

    return turn


def _unshared(block: NodeBlock, other: NodeBlock) -> tuple[PrefixReachability, ...]:
    shared = {item.prefix for item in other.prefixes}
    return tuple(item for item in block.prefixes if item.prefix not in shared)


def anycast() -> Turn:
    """The solver of a leaf of 64x512 when a link is lost and 16 leaves serve a prefix."""
    blocks = fabrics.fabric(64, 512)
    served = PrefixReachability(parse_prefix("10.99.0.0/24"), 10)
    for number in range(_SERVING):
        block = blocks[fabrics.leaf(10 + number)]
        blocks[block.node] = replace(block, prefixes=(*block.prefixes, served))
    return _lost(blocks, THREE)


# -- OSPF --------------------------------------------------------------------------------------


def _joined(
    spines: int, leaves: int, *, te: bool, neighbors: int = 4, all_serve: bool = False
) -> Leaf:
    fabric = Fabric(spines, leaves, te=te)
    fabric.originate()
    leaf = Leaf(fabric, neighbors=neighbors, all_serve=all_serve)
    leaf.join(2 * (leaves - 1))
    return leaf


def lost_link() -> Turn:
    """A whole router of 64x512 whose far link is lost."""
    leaf = _joined(64, 512, te=True)
    fabric, numbers = leaf.fabric, itertools.count()

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


def bandwidth() -> Turn:
    """A whole router of 64x512 when spines announce 40 other available bandwidths in a second."""
    leaf = _joined(64, 512, te=True)
    fabric, dice, numbers = leaf.fabric, random.Random(3), itertools.count()

    def turn(replaced: Replaced) -> float:
        lsas = []
        for number in itertools.islice(numbers, _CHANGES):
            link = number % 64, 1 + number * 5 % 511
            lsas.append(announced(fabric.te_lsa(fabric.spine(link[0]), link).raw, dice))
        before = leaf.spent
        with replaced:
            for raw in lsas:
                leaf.speakers[10].flood([decode_lsa(Reader(raw))])()
                leaf.run(1 / _CHANGES)
        return (leaf.spent - before) * 1e3

    return turn


def join() -> Turn:
    """A whole router learns the database of 16x64 with TE."""
    fabric = Fabric(16, 64, te=True)
    fabric.originate()

    def turn(replaced: Replaced) -> float:
        leaf = Leaf(fabric)
        with replaced:
            while len(leaf.router.table.routes) < 2 * 63:
                leaf.run(0.1)
        return leaf.spent * 1e3

    return turn


def rejoin() -> Turn:
    """Four neighbors of a whole router of 32x64 with TE return, which know the same database."""
    leaf = _joined(32, 64, te=True, all_serve=True)

    def turn(replaced: Replaced) -> float:
        before = leaf.spent
        with replaced:
            for speaker in leaf.speakers.values():
                speaker.restart()
            while not all(speaker.full for speaker in leaf.speakers.values()):
                leaf.run(0.1)
        spent = leaf.spent - before
        leaf.run(3.0)
        return spent * 1e3

    return turn


def withdrawn() -> Turn:
    """A thousand externals are flushed."""
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


def _waves(leaf: Leaf, wave: Callable[[], list[Received]]) -> Turn:
    def turn(replaced: Replaced) -> float:
        waves = [wave() for _ in range(_WAVES)]
        before = leaf.spent
        with replaced:
            for packets in waves:
                leaf.receive(packets)
                leaf.run(_WAVE)
        spent = leaf.spent - before
        leaf.run(1.0)
        return spent * 1e3

    return turn


def copies() -> Turn:
    """Changed bandwidths that all of 64 neighbors flood in the same packets."""
    leaf = _joined(_NEIGHBORS, 64, te=True, neighbors=_NEIGHBORS)
    fabric, dice = leaf.fabric, random.Random(3)
    keys = [key for key in fabric.lsas if key.ls_type == LsType.OPAQUE_AREA]
    dice.shuffle(keys)
    turns = itertools.cycle(keys)

    def wave() -> list[Received]:
        lsas = []
        for key in itertools.islice(turns, _OF_A_WAVE):
            lsas.append(announced(fabric.lsas[key].raw, dice))
            fabric.lsas[key] = decode_lsa(Reader(lsas[-1]))
        return [
            leaf.packet(ifindex, packet(speaker.router_id, body))
            for body in updates(lsas)
            for ifindex, speaker in leaf.speakers.items()
        ]

    return _waves(leaf, wave)


def _hellos(leaf: Leaf) -> Turn:
    def turn(replaced: Replaced) -> float:
        before = leaf.spent
        with replaced:
            for speaker in leaf.speakers.values():
                speaker.hello()
                leaf.receive(leaf.taken())
        return (leaf.spent - before) * 1e3

    return turn


def hellos() -> Turn:
    """Each of 64 neighbors repeats its hello, one packet a wakeup."""
    return _hellos(_joined(_NEIGHBORS, 8, te=False, neighbors=_NEIGHBORS))


# -- IS-IS -------------------------------------------------------------------------------------


def _described(
    spines: int, leaves: int, *, te: bool, neighbors: int = 4
) -> tuple[Leaf, LspContents]:
    contents = LspContents(Fabric(spines, leaves, te=te))
    leaf = Leaf(contents.fabric, neighbors=neighbors, protocol="isis")
    leaf.join(2 * (leaves - 1))
    return leaf, contents


def isis_hellos() -> Turn:
    """Each of 64 IS-IS neighbors repeats its hello, one packet a wakeup."""
    return _hellos(_described(_NEIGHBORS, 8, te=False, neighbors=_NEIGHBORS)[0])


def isis_copies() -> Turn:
    """Changed fragments that all of 64 IS-IS neighbors flood, those of a neighbor together."""
    leaf, contents = _described(_NEIGHBORS, 64, te=True, neighbors=_NEIGHBORS)
    first, *others = leaf.speakers

    def wave() -> list[Received]:
        lsps = tuple([contents.announcement() for _ in range(_OF_A_WAVE)])
        packets: list[Received] = [leaf.packet(first, raw) for raw in lsps]
        for ifindex in others:
            one = leaf.packet(ifindex, b"")
            packets.append(PacketsReceived(ifindex, one.source, one.destination, lsps))
        return packets

    return _waves(leaf, wave)


def isis_bandwidth() -> Turn:
    """A whole IS-IS router of 64x512 when 40 fragments a second have other bandwidths."""
    leaf, contents = _described(64, 512, te=True)

    def turn(replaced: Replaced) -> float:
        lsps = [contents.announcement() for _ in range(_CHANGES)]
        before = leaf.spent
        with replaced:
            for raw in lsps:
                leaf.receive([leaf.packet(10, raw)])
                leaf.run(1 / _CHANGES)
        return (leaf.spent - before) * 1e3

    return turn


# -- around the engines ------------------------------------------------------------------------


def frames() -> Turn:
    """Sockets of 64 interfaces hold the same ten LSPs each."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.setblocking(False)
    sockets = IsisSockets(lambda *_: None, asyncio.new_event_loop())
    sockets._sockets = dict.fromkeys(range(_NEIGHBORS), (near,))  # noqa: SLF001 - without a network
    contents = LspContents(Fabric(_NEIGHBORS, 64, te=True))

    def turn(replaced: Replaced) -> float:
        lsps = [contents.announcement() for _ in range(_OF_A_WAVE)]
        spent = 0.0
        with replaced:
            for ifindex in range(_NEIGHBORS):
                for raw in lsps:
                    far.send(frame(bytes(5) + bytes([ifindex]), ALL_ISS, raw))
                begun = time.process_time()
                sockets._arrived(ifindex, near, 64)  # noqa: SLF001 - what the loop calls
                spent += time.process_time() - begun
        return spent * 1e3

    return turn


def dump() -> Turn:
    """Ten thousand routes of ours, as the kernel dumps them."""
    place, settings = RoutePlace(254, 188, {4: 20, 6: 20}), FibSettings()
    bodies = [
        ROUTE4_DUMPED.pack(
            *(socket.AF_INET, 24, 0, 0, place.table, place.protocol, 0, 1, 0),
            *(8, RTA_TABLE, place.table, 8, RTA_DST, socket.htonl((20 << 24) + (number << 8))),
            *(8, RTA_PRIORITY, place.metrics[4], 8, RTA_NH_ID, settings.id_base + number % 9),
        )
        for number in range(10_000)
    ]

    def turn(replaced: Replaced) -> float:
        reading = FibReading(place, settings)
        begun = time.process_time()
        with replaced:
            for body in bodies:
                reading.take(RTM_NEWROUTE, body)
        return (time.process_time() - begun) * 1e3

    return turn


class _BfdPort:
    """Passes packets on to the other end."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, _: SessionKey, payload: bytes) -> None:
        self.sent.append(payload)

    def changed(self, key: SessionKey, session: BfdSession) -> None:
        """Nobody is told."""

    def closed(self, key: SessionKey) -> None:
        """Nobody is told."""

    def discarded(self, reason: str, ifindex: int, source: bytes, effect: str) -> None:
        """Nothing is discarded."""


def bfd() -> Turn:
    """A BFD session that is up receives a thousand packets."""
    key, settings = SessionKey(1, b"\x0a\0\0\1"), SessionSettings()
    ports = _BfdPort(), _BfdPort()
    ends = [Sessions(random.Random(seed), port) for seed, port in enumerate(ports)]
    for end in ends:
        end.open(key, settings, 0.0)
    now, packets = itertools.count(1), list[bytes]()
    while len(packets) < 100:  # the last ones are those of a session that is up
        at = next(now) * 0.05
        for end in ends:
            end.tick(at)
        packets += ports[1].sent
        for port, end in zip(ports, reversed(ends), strict=True):
            for payload in port.sent:
                end.receive(1, key.remote, payload, at)
            port.sent.clear()

    def turn(replaced: Replaced) -> float:
        at = next(now) * 0.05
        begun = time.process_time()
        with replaced:
            for _ in range(1000):
                ends[0].receive(1, key.remote, packets[-1], at)
        return (time.process_time() - begun) * 1e3

    return turn


# -- plans -------------------------------------------------------------------------------------


def equal_pairs() -> Turn:
    """All pairs of links of 4x8 fail."""
    network = read(fabrics.fabric(4, 8))
    healthy, pairs = capacities(network), FailureSets(links=False, nodes=False, classes=True)

    def turn(replaced: Replaced) -> float:
        begun = time.process_time()
        with replaced:
            (failures,) = pairs.of(network)
            sweep(network, failures, 0, len(failures), healthy)
        return (time.process_time() - begun) * 1e3

    return turn


# -- BGP --------------------------------------------------------------------------------------


def told_again() -> Turn:
    """One of 64 BGP neighbors tells 512 groups of prefixes again, with other bandwidths."""
    router, peers, prefixes = Router(), [peer(at) for at in range(1, 65)], nets(_GROUPS)
    for one in peers:
        router.add(one)
        for at, prefix in enumerate(prefixes):
            router.announce(one, [prefix], attributes(one.remote_as, _FIRST_AS + at, gbps=400))
    router.settle()
    rates = itertools.cycle((100, 200))

    def turn(replaced: Replaced) -> float:
        rate = next(rates)
        for at, prefix in enumerate(prefixes):
            told = attributes(peers[0].remote_as, _FIRST_AS + at, gbps=rate)
            router.announce(peers[0], [prefix], told)
        begun = time.process_time()
        with replaced:
            router.settle()
        return (time.process_time() - begun) * 1e3

    return turn


# -- aggregation -------------------------------------------------------------------------------


class _SilentPort:
    """Of a router whose sums nobody gets."""

    def up(self, *_: object) -> None:
        """Do not send to a parent."""

    down = disseminate = nack = up


def trains() -> Turn:
    """A router of in-network aggregation adds trains of 19 packets, from two routers below it."""
    setup = setup_of(
        plan_job(*figure_1("s1 s2 s5")), job_id=7, epoch=5, length=64, payload=1408, window=64
    )
    values, router, first = bytes(1408), Aggregator(5, _SilentPort()), itertools.count(0, _TRAIN)
    router.install(setup)
    like = Header(PacketKind.DATA, 7, 0, 5, 0, 0, len(values))

    def train(sequence: int, bits: int) -> bytes:
        headers = (like._replace(sequence=sequence + at, bits=bits) for at in range(_TRAIN))
        return b"".join(encode_header(header) + values for header in headers)

    def turn(replaced: Replaced) -> float:
        told = [
            (sender, train(sequence, bits))
            for sequence in itertools.islice(first, 50)
            for sender, bits in ((1, 0b0011), (2, 0b1100))
        ]
        begun = time.process_time()
        with replaced:
            for sender, data in told:
                router.receive_train(sender, data, len(data) // _TRAIN, 0.0)
        return (time.process_time() - begun) * 1e3

    return turn
