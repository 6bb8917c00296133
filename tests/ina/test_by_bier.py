"""Results by BIER: their packets, and when they go by unicast nevertheless."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.bier import bift_id
from fared.core.wire import DecodeError
from fared.extensions.ina.by_bier import GROUP, PORT, BierWay, unwrapped
from fared.extensions.ina.inad.jobs import RunningJob
from fared.extensions.ina.messages import Install
from fared.extensions.ina.service.by_bier import results_way
from fared.extensions.ina.slots.packet import Flag, Header, PacketKind, encode_header
from fared.extensions.ina.slots.setup import SetupError
from fared.paths.bier.header import PROTO_IPV4, decode_header
from tests.ina.live import ROOT, host, job
from tests.sim.test_bier import HOSTS, build

SOURCE = ("10.9.255.1", 54200)
WAY = BierWay(1, 64, {1: 5, 2: 6, 3: 9, 4: 64})


def test_a_result_is_udp_in_ip_in_bier_with_the_bits_of_its_workers():
    frame = WAY.frame(0b1011, 100, SOURCE, 3) + bytes(100)
    header = decode_header(frame, 14)
    assert frame[:14].hex() == 12 * "00" + "ab37"
    assert (header.bift_id, header.proto, header.entropy) == (bift_id(64, 1, 0), PROTO_IPV4, 3)
    assert header.bit_string == 1 << 4 | 1 << 5 | 1 << 63
    inner = frame[14 + header.size :]
    assert (inner[0], inner[8], inner[9]) == (0x45, 64, socket.IPPROTO_UDP)
    assert inner[12:20] == socket.inet_aton(SOURCE[0]) + socket.inet_aton(GROUP)
    assert struct.unpack_from("!H", inner, 2) == (128,)
    assert struct.unpack_from("!4H", inner, 20) == (SOURCE[1], PORT, 108, 0)
    total = sum(struct.unpack_from("!10H", inner))  # RFC 791: with the checksum it is all ones
    assert total % 0xFFFF == 0 < total


def test_workers_in_two_sets_have_no_packet():
    with pytest.raises(ValueError, match="workers in 2 sets"):
        BierWay(1, 64, {1: 64, 2: 65}).frame(0b11, 8, SOURCE, 0)
    (bfr_id,) = BierWay(1, 64, {1: 65}).bfr_ids.values()
    assert decode_header(BierWay(1, 64, {1: bfr_id}).frame(1, 8, SOURCE, 0), 14).bit_string == 1


def test_a_worker_reads_what_has_its_bit():
    packet = memoryview((WAY.frame(0b11, 8, SOURCE, 0) + b"a result")[14:])
    assert unwrapped(packet, 5) == (SOURCE, b"a result")
    assert unwrapped(memoryview(bytes(packet) + b"padding"), 6) == (SOURCE, b"a result")
    with pytest.raises(DecodeError, match="another host"):
        unwrapped(packet, 9)


@given(st.binary(max_size=80), st.integers(0, 60))
def test_any_bytes_are_a_result_or_an_error(noise, at):
    good = (WAY.frame(0b11, 8, SOURCE, 0) + b"a result")[14:]
    for data in (noise, good[:at] + noise, good[:at] + noise + good[at + len(noise) :]):
        try:
            (address, port), result = unwrapped(memoryview(data), 5)
        except DecodeError:
            continue
        assert len(result) <= len(data)
        assert 0 <= port < 1 << 16
        assert address.count(".") == 3


def test_a_job_has_a_bfr_id_for_each_worker_or_none():
    assert job("all", 1, bier=WAY).checked().bier == WAY
    with pytest.raises(SetupError, match="without a BFR-id"):
        job("some", 1, bier=BierWay(1, 64, {1: 5})).checked()


# -- when ------------------------------------------------------------------------------------


class Results:
    """Notes what goes by BIER."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, bool]] = []

    def send(self, bits, data, addresses, way) -> bool:
        assert addresses[-1] == (host(1), 54300)
        self.sent.append((bits, way is not None))
        return way is not None


class Sender:
    def send(self, data, address) -> None:
        raise AssertionError("nothing goes up from the root")


def running(way: BierWay | None) -> tuple[RunningJob, Results]:
    results = Results()
    made = RunningJob(ROOT, Sender(), results)
    made.install(Install(job("job", 7, bier=way), ROOT).job, None)
    return made, results


def packet(kind=PacketKind.RESULT, flags=0) -> bytes:
    return encode_header(Header(kind, 7, 0, 1, 0, 15, 0, flags=flags))


def test_the_first_packet_of_a_result_goes_by_bier_and_everything_else_by_unicast():
    made, results = running(WAY)
    made.disseminate(15, packet())
    made.disseminate(1, packet(flags=Flag.AGAIN))
    made.disseminate(3, packet(PacketKind.LACKING))
    made.disseminate(15, packet(PacketKind.SYNC_RESULT))
    assert results.sent == [(15, True), (1, False), (3, False), (15, False)]
    made, results = running(None)
    made.disseminate(15, packet())
    assert results.sent == [(15, False)]


def test_bier_that_loses_half_of_the_results_is_given_up_until_the_next_epoch():
    """Workers without raw sockets at a leaf that pops no headers, for example."""
    made, results = running(WAY)
    for _ in range(63):
        made.disseminate(15, packet())
        made.disseminate(1, packet(flags=Flag.AGAIN))
    made.disseminate(15, packet())
    assert results.sent[-1] == (15, True)
    made.disseminate(1, packet(flags=Flag.AGAIN))
    made.disseminate(15, packet())
    assert results.sent[-1] == (15, False)
    assert made.aggregator.counters["bier-given-up"] == 1
    made.install(job("job", 7, epoch=2, bier=WAY), None)
    made.disseminate(15, packet())
    assert results.sent[-1] == (15, True)


def test_bier_that_loses_little_is_kept():
    made, results = running(WAY)
    for number in range(2000):
        made.disseminate(15, packet())
        if number % 10 == 0:
            made.disseminate(1, packet(flags=Flag.AGAIN))
    assert Counter(by_bier for _, by_bier in results.sent) == {True: 2000, False: 200}


@pytest.mark.parametrize("kind", ["clos5-areas", "clos5-levels-isis"])
def test_a_leaf_has_the_bfr_ids_of_workers_in_other_areas_or_levels(kind: str):
    """Border routers copy or leak them with the /32 of a host (RFC 8444 §2.5, RFC 8401 §5)."""
    fabric = build(kind)
    head, prefixes = next(iter(fabric.leaf_prefixes)), fabric.leaf_prefixes.values()
    hosts = [str(IPv4Address(prefix.network + 10)) for prefix in prefixes]
    found = results_way(fabric.network.nodes[head].running.multicast.bier, hosts, wish=True)
    assert isinstance(found, BierWay)
    assert [*found.bfr_ids.values()] == [HOSTS + at for at in range(len(hosts))]
