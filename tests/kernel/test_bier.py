"""BIER through the real kernel: a router with three links, two hosts on one of them."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from fared.core.bier import bift_id
from fared.core.ids import ipv4_prefix
from fared.daemon.loop.defence import Defence
from fared.daemon.services.bier import BierService
from fared.extensions.lab.namespaces import Netns
from fared.kernel.bier import KernelBier, open_bier
from fared.kernel.bier_table import FAMILY, TABLE, chains_of, counter_of, transaction
from fared.kernel.nft import NftError, find_nft
from fared.paths.bier.bift import make_bifts
from fared.paths.bier.birt import BfrNeighbor, BirtEntry, make_birt
from fared.paths.bier.forwarding import forward
from fared.paths.bier.header import ETHERTYPE, BierHeader, decode_header, encode_header
from fared.paths.fib.bier import BierFib, BierPlanner, BierPort
from fared.router import events
from tests.kernel.netns import Namespaces, inside, run
from tests.waiting import loop_until, wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.skipif(find_nft() is None, reason="nftables is not installed"),
]

NEIGHBORS = 3
LINKS = [f"e{n}" for n in range(NEIGHBORS)]
SUB_DOMAIN = 1
OWN = 4
MTU = 3000


class Box:
    """A router; what its neighbors and itself receive. Host ids 60 and 61 share the link e2."""

    def __init__(self, namespaces: Namespaces, length: int) -> None:
        self.length = length
        self.router, self.far = namespaces.add(), namespaces.add()
        self.ends = [namespaces.pair(self.router, self.far, name, None, MTU) for name in LINKS]
        run("ip link set lo up", self.router)
        self.sockets = {name: _receiver(self.far, name) for name in LINKS}
        self.sockets["lo"] = _receiver(self.router, "lo")
        with Netns(self.router).socket(socket.AF_PACKET, socket.SOCK_RAW) as made:
            with inside(self.router):
                made.bind(("lo", 0))
            self.sender = made.dup()
        with inside(self.router):
            self.kernel: KernelBier = _opened()
        self.planner = BierPlanner(SUB_DOMAIN, length)
        self.planner.adopt(0)
        self.birt: dict[int, tuple[BirtEntry, ...]] = {}

    def way(self, n: int, address: int = 0) -> BfrNeighbor:
        return BfrNeighbor(self.ends[n][0], address or n + 1, LINKS[n])

    def bfer(self, bfr_id: int, *ways: tuple[BfrNeighbor, int]) -> BirtEntry:
        return BirtEntry(bfr_id, ipv4_prefix(bfr_id, 32), tuple(sorted(ways)))

    def plan(self, *entries: BirtEntry, ports: list[str] | None = None) -> BierFib:
        own = BirtEntry(OWN, ipv4_prefix(OWN, 32), local=True)
        self.birt = make_birt([own, *entries])
        self.bifts = make_bifts(self.birt, self.length)
        wanted = [BierPort(1, "lo", 0)]
        for name, (ifindex, _) in zip(LINKS, self.ends, strict=True):
            if ports is None or name in ports:
                wanted.append(BierPort(ifindex, name, 0x020000000000 | ifindex))
        self.planner.desire(self.bifts, wanted)
        state = self.planner.plan(0.0)
        assert state is not None
        self.planner.answered("", 0.0)
        return state

    def write(self, *entries: BirtEntry, ports: list[str] | None = None) -> None:
        state = self.plan(*entries, ports=ports)
        with inside(self.router):
            self.kernel.write(state)

    def frame(self, string, entropy=0, ttl=9, set_id=0, note=b"") -> bytes:
        number = bift_id(self.length, SUB_DOMAIN, set_id)
        header = BierHeader(number, string, self.length, entropy=entropy, ttl=ttl, bfir_id=7)
        return bytes(12) + ETHERTYPE.to_bytes(2, "big") + encode_header(header) + note

    def send(self, string: int, entropy: int = 0, ttl: int = 9, set_id: int = 0, note=b"") -> None:
        self.sender.send(self.frame(string, entropy, ttl, set_id, note))

    def received(self) -> Counter[tuple[str, int, int]]:
        """All that has arrived: interface, bit string and TTL."""
        found: Counter[tuple[str, int, int]] = Counter()
        for name, sock in self.sockets.items():
            for data in _queued(sock):
                header = decode_header(data, 14)
                found[name, header.bit_string, header.ttl] += 1
        return found

    def expected(self, string: int, entropy: int, set_id: int = 0) -> Counter[tuple[str, int, int]]:
        result = forward(self.bifts[set_id].table(entropy), string)
        found = Counter((n.interface, bits, 8) for n, bits in result.copies)
        if result.local:
            found["lo", result.local, 9] += 1
        return found


def _opened() -> KernelBier:
    found = open_bier()
    assert found is not None
    return found


def _receiver(namespace: str, interface: str) -> socket.socket:
    with Netns(namespace).socket(
        socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE)
    ) as made:
        with inside(namespace):
            made.bind((interface, ETHERTYPE))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        made.setblocking(False)
        return made.dup()


def _queued(sock: socket.socket) -> Iterator[bytes]:
    while True:
        try:
            yield sock.recv(MTU)
        except OSError:  # the interface may be gone
            return


@pytest.fixture(params=[64, 256, 4096])
def box(request, namespaces) -> Box:
    return Box(namespaces, request.param)


@pytest.fixture
def small(namespaces) -> Box:
    return Box(namespaces, 64)


def usual(box: Box, *, weights: tuple[int, int] = (1, 1)) -> list[BirtEntry]:
    """BFERs behind one neighbor, behind two, and two hosts; at both ends of the bit string."""
    a, b = zip((box.way(0), box.way(1)), weights, strict=True)
    last = box.length
    return [
        *(box.bfer(i, a) for i in (1, last)),
        *(box.bfer(i, a, b) for i in (2, 3, last - 1, last - 30)),
        *(box.bfer(i, (box.way(2, i), 1)) for i in (60, 61)),
    ]


def test_packets_are_forwarded_as_the_bift_says(box: Box):
    box.write(*usual(box, weights=(1, 3)))
    draw = random.Random(box.length)
    bits = [1 << i - 1 for i in box.birt]
    for entropy in range(32):
        string = sum(draw.sample(bits, draw.randint(0, len(bits))))
        box.send(string, entropy)
        assert box.received() == box.expected(string, entropy), (hex(string), entropy)


def test_copies_have_the_addresses_of_their_link(small: Box):
    small.write(*usual(small))
    small.send(1)
    (frame,) = _queued(small.sockets["e0"])
    assert frame[:12].hex() == "ffffffffffff" + f"02000000{small.ends[0][0]:04x}"
    assert decode_header(frame, 14).bfir_id == 7


def test_what_a_neighbor_sends_is_forwarded_too(small: Box):
    small.write(*usual(small))
    with Netns(small.far).socket(socket.AF_PACKET, socket.SOCK_RAW) as made:
        with inside(small.far):
            made.bind(("e1", 0))
        made.send(small.frame(0b0001))
    assert small.received() == Counter({("e0", 1, 8): 1})


def test_a_packet_with_ttl_1_is_delivered_but_not_forwarded(small: Box):
    small.write(*usual(small))
    small.send(0b1001, ttl=1)
    assert small.received() == Counter({("lo", 0b1000, 1): 1})
    assert counted(small, "expired") == 1


def test_unknown_sets_bits_and_headers_are_dropped_and_counted(small: Box):
    small.write(*usual(small))
    small.send(1, set_id=5)
    small.send(1 << 40)
    frame = bytearray(small.frame(1))
    frame[18] = 0x01  # another version
    small.sender.send(frame)
    assert small.received() == Counter()
    assert [counted(small, n) for n in ("received", "unknown", "malformed")] == [3, 1, 1]


def test_each_neighbor_has_a_counter_that_a_change_keeps(small: Box):
    small.write(*usual(small))
    for _ in range(3):
        small.send(0b1)
    small.write(*usual(small, weights=(1, 3)))
    small.send(0b1001)
    assert counted(small, counter_of(small.way(0))) == 4
    assert counted(small, "delivered") == 1


def counted(box: Box, name: str) -> int:
    with inside(box.router):
        box.kernel.intact()
    return box.kernel.counted[name].packets


def test_a_set_of_its_own_for_high_ids(small: Box):
    small.write(small.bfer(1, (small.way(0), 1)), small.bfer(130, (small.way(1), 1)))
    small.send(0b10, set_id=2)
    small.send(0b1)
    assert small.received() == Counter({("e1", 2, 8): 1, ("e0", 1, 8): 1})


def test_rewritten_tables_lose_and_double_nothing_under_traffic(small: Box):
    small.write(*usual(small))
    done = threading.Event()
    packets, end = 0, time.monotonic() + 60

    def rewrite() -> None:
        with inside(small.router):
            for at in range(1, 31):
                wait_for(lambda at=at: packets > 40 * at, 60, "packets between two changes")
                weights = ((1, 1), (1, 3), (3, 1))[at % 3]
                small.kernel.write(small.plan(*usual(small, weights=weights)))
        done.set()

    worker = threading.Thread(target=rewrite)
    worker.start()
    seen: Counter[tuple[int, int]] = Counter()
    while not done.is_set() and time.monotonic() < end:
        for _ in range(50):
            small.send(0b0111, entropy=packets % 16, note=packets.to_bytes(4, "big"))
            packets += 1
        _collect(small, seen)
    worker.join(60)
    assert done.is_set()
    assert small.planner.counters["changes"] == 31
    assert packets > 1000
    assert set(seen.values()) == {1}
    assert len(seen) == 3 * packets


def test_no_rule_looks_up_elements_that_a_change_replaces(small: Box):
    """The kernel finds elements of the new generation only, packets are still in former rules."""
    chains = chains_of(small.plan(*usual(small, weights=(1, 3))))
    looked_up = {rule for chain in chains.values() for rule in chain.rules if "map" in rule}
    assert {rule.split(" map ")[1].split()[0] for rule in looked_up} == {"@ttl"}
    assert not any("{" in rule for chain in chains.values() for rule in chain.rules)


def _collect(box: Box, seen: Counter[tuple[int, int]]) -> None:
    for name in LINKS:
        for data in _queued(box.sockets[name]):
            header = decode_header(data, 14)
            at = 14 + header.size
            number = int.from_bytes(data[at : at + 4], "big")
            seen.update((number, 1 << b) for b in range(3) if header.bit_string >> b & 1)


def test_the_next_process_takes_over_without_a_gap(small: Box):
    small.write(*usual(small))
    with inside(small.router):
        successor = _opened()
        highest = successor.adopt()
    assert highest == max(small.planner.desired.copies)
    small.kernel, small.planner = successor, BierPlanner(SUB_DOMAIN, 64)
    small.planner.adopt(highest)
    small.write(*usual(small, weights=(3, 1)))
    assert min(small.planner.desired.copies) > highest
    small.send(0b0110, 5)
    assert small.received() == small.expected(0b0110, 5)
    chains = {name for name in listed(small) if not name.startswith("out_")}
    assert chains == {n for n in chains_of(small.planner.desired) if not n.startswith("out_")}


def listed(box: Box) -> set[str]:
    found = json.loads(run(f"nft -j list table {FAMILY} {TABLE}", box.router))["nftables"]
    return {entry["chain"]["name"] for entry in found if "chain" in entry}


@pytest.mark.parametrize(
    "damage",
    [
        "flush chain netdev fared_bier packets",
        "add rule netdev fared_bier packets drop",
        "add chain netdev fared_bier stranger",
        "delete table netdev fared_bier",
        "delete element netdev fared_bier ttl { 9 }",
    ],
)
def test_what_others_change_is_noticed_and_repaired(small: Box, damage: str):
    small.write(*usual(small))
    with inside(small.router):
        assert small.kernel.intact()
    run(f"nft {damage}", small.router)
    with inside(small.router):
        assert not small.kernel.intact()
        small.kernel.write(small.planner.desired)
        assert small.kernel.intact()
    assert "stranger" not in listed(small)
    small.send(0b0111, 3)
    assert small.received() == small.expected(0b0111, 3)


class Serving:
    """The service of the daemon in the box, which writes states with both weights in turn."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.fed: list[object] = []
        self.service = BierService(self.fed.append, Log(), Defence(Log()))
        self.service.start()
        assert self.service._kernel is not None
        self.nft = self.service._kernel._nft

    async def idle(self) -> None:
        work = self.service._work
        await loop_until(lambda: not work.busy and work._timer is None, 30, "idle")

    async def write(self, *weights: int) -> list[object]:
        """What the router is told until all is at rest."""
        self.fed.clear()
        state = self.box.plan(*usual(self.box, weights=weights))
        self.service.apply(events.ApplyBier(state))
        await self.idle()
        return [*self.fed]


DAMAGE = "flush chain netdev fared_bier packets"


async def test_our_own_changes_cause_no_reading(small: Box):
    with inside(small.router):
        serving = Serving(small)
        await serving.idle()
        assert await serving.write(1, 1) == [events.BierApplied()]
        assert await serving.write(1, 3) == [events.BierApplied()]
        await serving.service.stop(remove=True)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
async def test_what_others_change_while_we_write_is_not_taken_for_ours(small: Box, *, before: bool):
    """Between our transaction and the listing that later ones are compared with, or just before."""
    with inside(small.router):
        serving = Serving(small)
        await serving.write(1, 1)
        execute = serving.nft.execute

        def meddled(text: str) -> None:
            serving.nft.execute = execute
            if not before:
                execute(text)
            run(f"nft {DAMAGE}", small.router)
            if before:
                execute(text)

        serving.nft.execute = meddled
        assert await serving.write(1, 3) == [events.BierApplied(), events.BierAudited(intact=False)]
        serving.service.apply(events.ApplyBier(small.planner.desired))
        await serving.idle()
        small.send(0b0111, 3)
        assert small.received() == small.expected(0b0111, 3)
        await serving.service.stop(remove=True)


def test_an_interface_that_vanished_is_refused_and_the_rest_is_written_then(small: Box):
    small.write(*usual(small))
    run("ip link delete e1", small.router)
    with inside(small.router):
        assert not small.kernel.intact()
        with pytest.raises(NftError):
            small.kernel.write(small.planner.desired)
    left = [small.bfer(i, (small.way(0), 1)) for i in (1, 2, 3)]
    small.write(*left, ports=["e0", "e2"])
    small.send(0b0111)
    assert small.received() == small.expected(0b0111, 0)


def test_nothing_remains_after_removal(small: Box):
    small.write(*usual(small))
    with inside(small.router):
        small.kernel.remove()
        small.kernel.remove()
        assert small.kernel.adopt() == 0
    assert TABLE not in run("nft list tables", small.router)


def test_a_change_of_one_weight_rewrites_only_what_differs(small: Box):
    first = small.plan(*usual(small))
    second = small.plan(*usual(small, weights=(1, 3)))
    with inside(small.router):
        small.kernel.write(first)
        found = small.kernel._listed
    text = transaction(second, chains_of(first), found)
    assert " in_" not in text
    assert " packets " not in text
    assert "counter" not in text.replace("counter name", "")


def test_64_neighbors_are_written_in_a_moment(namespaces):
    """A spine of 64 leaves, one table for all entropies."""
    name = namespaces.add()
    for n in range(64):
        run(f"ip link add d{n} index {200 + n} type veth peer name o{n}", name)
    birt = make_birt(
        BirtEntry(n + 1, ipv4_prefix(n + 1, 32), ((BfrNeighbor(200 + n, n, f"d{n}"), 1),))
        for n in range(64)
    )
    planner = BierPlanner(SUB_DOMAIN, 64)
    planner.adopt(0)
    planner.desire(make_bifts(birt, 64), [BierPort(200 + n, f"d{n}", n) for n in range(64)])
    with inside(name):
        kernel = _opened()
        kernel.write(planner.desired)
        assert kernel.intact()
    assert len(chains_of(planner.desired)) == 64 * 3 + 3


async def test_without_nft_the_process_forwards_by_the_same_tables(
    box: Box, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("fared.daemon.services.bier.open_bier", lambda: None)
    fed: list[object] = []
    service = BierService(fed.append, Log(), Defence(Log()))
    draw = random.Random(box.length)
    with inside(box.router):
        service.start()
        service.apply(events.ApplyBier(box.plan(*usual(box, weights=(1, 3)))))
        await asyncio.sleep(0)
        assert fed == [events.BierAdopted(), events.BierApplied()]
        bits = [1 << i - 1 for i in box.birt]
        for entropy in range(16):
            string = sum(draw.sample(bits, draw.randint(1, len(bits))))
            wanted = {at: n for at, n in box.expected(string, entropy).items() if at[0] != "lo"}
            box.send(string, entropy)
            seen: Counter[tuple[str, int, int]] = Counter()
            async with asyncio.timeout(20):
                while {at for at in seen if at[0] != "lo"} != wanted.keys():
                    await asyncio.sleep(0.005)
                    seen += box.received()
            assert {at: n for at, n in seen.items() if at[0] != "lo"} == wanted
        box.send(bits[0], ttl=1)
        await loop_until(lambda: service.counted["expired"].packets == 1)
        assert service.counted["received"].packets == 17
        assert {name for name, _, _ in box.received()} <= {"lo"}
        await service.stop(remove=True)
        box.send(bits[0])
        await asyncio.sleep(0.05)
        assert {name for name, _, _ in box.received()} <= {"lo"}


class Log:
    """Takes records."""

    def warning(self, event: str, **fields: object) -> None:
        self.last = event, fields
