"""Thousands of mutated IS-IS PDUs, purges and forged LSPs on a neighbor's link."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from fared.protocols.isis.ids import format_lsp_id
from fared.protocols.isis.pdu.codec import decode_pdu
from fared.protocols.isis.pdu.header import checksum_of, with_checksum
from fared.protocols.isis.pdu.model import Lsp, PduType
from tests.live import storms
from tests.live.daemons import LINKS, Live
from tests.live.isis_daemons import (
    LEFT_SYSTEM,
    RIGHT_SYSTEM,
    IsisPair,
    adjacencies,
    running_isis_pair,
)
from tests.live.storms import (
    COUNTS,
    IN_ITS_NAME,
    Storm,
    assert_weathered,
    report,
)
from tests.packets.forged import mutate
from tests.packets.forged_isis import (
    CHECKSUM,
    HELLOS,
    LIFETIME,
    LSP_ID,
    LSPS,
    SOURCE,
    mutated,
    signed,
    stranger,
    whole,
)
from tests.packets.recorded import ISIS, load
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

PURGES = 2_000
FILLING = 20_000
"""Mutations after which the database holds an LSP of nearly every id that they may have."""
ALL_IDS = 64 * 2 * 2
"""Systems, pseudonodes and fragments of forged LSPs."""
SEED = 20_261_121
FAR_FUTURE = 0xFFFF_FF00
HEAL = 30.0
"""Seconds within which everything is right again; a purged LSP is kept for a minute."""
_LLC = b"\xfe\xfe\x03"
_ALL_ISS = bytes.fromhex("09002b000005")
Database = dict[str, tuple[int, int]]


class Shot(NamedTuple):
    """One frame to send: from a MAC address, a PDU."""

    source: bytes
    payload: bytes


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IsisPair]:
    with running_isis_pair("i", tmp_path_factory.mktemp("storm")) as made:
        yield made


@pytest.fixture
def victim(pair: IsisPair) -> Live:
    pair.await_routes()
    return pair.left


@pytest.fixture(scope="module")
def corpus(pair: IsisPair) -> list[bytes]:
    """Recorded PDUs, and those of this very session: the victim's neighbor starts again."""
    heard = storms.heard_at_a_restart(
        pair, 4, lambda frame: frame[3:] if frame.startswith(_LLC + b"\x83") else None
    )
    kinds = {PduType(pdu[4] & 0x1F) for pdu in heard}
    assert {PduType.P2P_HELLO, PduType.L2_LSP, PduType.L2_CSNP} <= kinds
    return [recorded.payload for recorded in load(*ISIS)] + heard


def mac_of(daemon: Live) -> bytes:
    """The address of its end of the first link."""
    words = daemon.netns.ip("-o", "link", "show", "dev", LINKS[0]).split()
    return bytes.fromhex(words[words.index("link/ether") + 1].replace(":", ""))


def broken(rng: random.Random, corpus: list[bytes], neighbor: bytes, count: int) -> Iterator[Shot]:
    """Mutations as they come; hellos have no checksum, so these are never the neighbor's own."""
    for _ in range(count):
        data = bytearray(mutate(rng, corpus).ljust(SOURCE + 6, b"\0"))
        data[0] = 0x83  # all else the kernel drops
        kind = data[4] & 0x1F
        if kind in HELLOS:
            data[SOURCE : SOURCE + 6] = stranger(rng)
        elif kind in LSPS and len(data) > CHECKSUM + 1:
            with contextlib.suppress(Exception):
                if int.from_bytes(data[CHECKSUM : CHECKSUM + 2], "big") == checksum_of(bytes(data)):
                    data[CHECKSUM] ^= 0x55
            data[LIFETIME] |= 1  # a purge would need no checksum
        yield Shot(source(rng, neighbor), bytes(data))


def repaired(
    rng: random.Random, corpus: list[bytes], neighbor: bytes, count: int
) -> Iterator[Shot]:
    """Mutations that reach the parts behind: hellos and LSPs of strangers, any SNPs."""
    for _ in range(count):
        data = whole(rng, mutate(rng, corpus))
        kind = data[4]
        if kind in HELLOS:
            data[SOURCE : SOURCE + 6] = stranger(rng)
        elif kind in LSPS:
            data[LSP_ID : LSP_ID + 8] = stranger(rng) + bytes((rng.randrange(2), rng.randrange(2)))
        yield Shot(source(rng, neighbor), signed(data))


def in_its_name(
    rng: random.Random, corpus: list[bytes], neighbor: bytes, count: int
) -> Iterator[Shot]:
    """Mutations that nothing tells from the neighbor's own PDUs: the worst there is."""
    systems = [bytes.fromhex(name.replace(".", "")) for name in (LEFT_SYSTEM, RIGHT_SYSTEM)]
    for _ in range(count):
        yield Shot(neighbor, mutated(rng, mutate(rng, corpus), systems[1], systems))


def source(rng: random.Random, neighbor: bytes) -> bytes:
    """The neighbor's address every other time."""
    return neighbor if rng.random() < 0.5 else b"\x02" + rng.randbytes(5)


def fire(pair: IsisPair, shots: Iterator[Shot]) -> Storm:
    """Send all over the first link."""
    with pair.right.netns.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((LINKS[0], 0))

        def send(shot: Shot) -> None:
            length = (len(_LLC) + len(shot.payload)).to_bytes(2, "big")
            raw.send(_ALL_ISS + shot.source + length + _LLC + shot.payload)

        return storms.fire(pair.left, storms.ISIS, shots, send)


def routes(pair: IsisPair) -> object:
    """What the victim's kernel holds in both families."""
    return pair.view.routes(), pair.view.routes6()


def database(daemon: Live) -> Database:
    """The live LSPs of the two routers: sequence number and checksum by id."""
    found = {}
    for row in daemon.show("lsdb")["lsps"]:
        lsp = decode_pdu(bytes.fromhex(row["hex"]))
        assert isinstance(lsp, Lsp)
        name = format_lsp_id(lsp.lsp_id)
        if lsp.remaining_lifetime and name[:14] in (LEFT_SYSTEM, RIGHT_SYSTEM):
            found[name] = (lsp.sequence_number, lsp.checksum)
    return found


def unharmed(pair: IsisPair, storm: Storm, before: object, **growth: float) -> None:
    """What holds after any storm; ``growth`` as in ``assert_weathered``."""
    assert_weathered(pair.left, storm, 32 << 20, **growth)
    assert pair.right.complaints() == []
    healed(pair, before)


def healed(pair: IsisPair, before: object) -> None:
    """Adjacencies, routes of both families and the databases of both ends are right again."""
    pair.await_routes()
    wait_for(lambda: routes(pair) == before, HEAL, "the routes are what they were")
    wait_for(lambda: database(pair.left) == database(pair.right), HEAL, "equal databases")


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_pdus_change_no_state(
    pair: IsisPair, victim: Live, corpus: list[bytes], count: int
):
    """Every one that is wrong is counted by its reason; the adjacency does not notice."""
    before = routes(pair)
    storm = fire(pair, broken(random.Random(SEED), corpus, mac_of(pair.right), count))
    report("broken", storm)
    unharmed(pair, storm, before)
    assert storm.transitions == 0
    assert {"checksum", "length", "type", "second-neighbor"} <= set(storm.errors)
    assert victim.alive()


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_pdus_with_valid_checksums_leave_the_adjacency_up(
    pair: IsisPair, victim: Live, corpus: list[bytes], count: int
):
    """LSPs of routers that nobody leads to fill the database, and change no route."""
    before, neighbor = routes(pair), mac_of(pair.right)
    # from here on the database holds as many LSPs as after the storm: what else stays, shows
    fire(pair, repaired(random.Random(SEED + 3), corpus, neighbor, FILLING))
    held = len(victim.show("lsdb")["lsps"])
    storm = fire(pair, repaired(random.Random(SEED + 1), corpus, neighbor, count))
    report(f"repaired, {held} LSPs before", storm)
    unharmed(pair, storm, before)
    assert storm.transitions == 0
    assert adjacencies(victim) == len(LINKS)
    now = len(victim.show("lsdb")["lsps"])
    assert min(held, now) > 0.9 * ALL_IDS, "but for those that were purged last"


@pytest.mark.parametrize("count", IN_ITS_NAME)
def test_packets_forged_in_the_name_of_the_neighbor_do_no_lasting_harm(
    pair: IsisPair, victim: Live, corpus: list[bytes], count: int
):
    """Without authentication nobody can tell; but neither daemon trips, and both recover."""
    before = routes(pair)
    storm = fire(pair, in_its_name(random.Random(SEED + 2), corpus, mac_of(pair.right), count))
    report("in the neighbor's name", storm)
    unharmed(pair, storm, before)
    assert victim.alive()


def own_lsps(pair: IsisPair) -> list[Lsp]:
    """What both ends have originated, as the victim holds it."""
    rows = pair.left.show("lsdb")["lsps"]
    found = [decode_pdu(bytes.fromhex(row["hex"])) for row in rows]
    ours = [lsp for lsp in found if isinstance(lsp, Lsp) and lsp.remaining_lifetime]
    return [lsp for lsp in ours if format_lsp_id(lsp.lsp_id)[:14] in (LEFT_SYSTEM, RIGHT_SYSTEM)]


def forged(lsp: Lsp, sequence_number: int, lifetime: int) -> bytes:
    """An LSP of the same id that says nothing."""
    header = bytes((0x83, 27, 1, 0, PduType.L2_LSP, 1, 0, 0)) + (27).to_bytes(2, "big")
    numbers = sequence_number.to_bytes(4, "big") + bytes(2)
    lsp_id = lsp.lsp_id.to_bytes(8, "big")
    raw = header + lifetime.to_bytes(2, "big") + lsp_id + numbers + bytes((0x03,))
    return with_checksum(raw, checksum_of(raw)) if lifetime else raw


def test_a_storm_of_purges_does_no_lasting_harm(pair: IsisPair, victim: Live):
    """Both routers outbid whoever purges their LSPs; when he stops all is as it was."""
    before, lsps = routes(pair), own_lsps(pair)
    neighbor = mac_of(pair.right)

    def purges() -> Iterator[Shot]:
        for number in range(PURGES):
            for lsp in lsps:
                yield Shot(neighbor, forged(lsp, lsp.sequence_number + number // 10, 0))

    storm = fire(pair, purges())
    report("purges", storm)
    begun = time.monotonic()
    unharmed(pair, storm, before)
    assert time.monotonic() - begun < HEAL
    assert storm.transitions == 0
    assert victim.alive()


def test_a_forged_lsp_with_a_high_sequence_number_is_superseded(pair: IsisPair, victim: Live):
    """An empty LSP of each router near the end of the numbers: its owner takes the next."""
    before, lsps = routes(pair), own_lsps(pair)
    neighbor = mac_of(pair.right)
    fire(pair, iter([Shot(neighbor, forged(lsp, FAR_FUTURE, 1200)) for lsp in lsps]))
    numbers = {format_lsp_id(lsp.lsp_id) for lsp in lsps}

    def outbidden() -> bool:
        held = database(victim)
        return all(held.get(name, (0, 0))[0] > FAR_FUTURE for name in numbers)

    wait_for(outbidden, HEAL, f"higher numbers: {database(victim)}")
    healed(pair, before)
    assert victim.complaints() == []
