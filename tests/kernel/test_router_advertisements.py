"""Router advertisements: what is sent, what is heard of those that come."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.kernel.router_advertisements import (
    ADVERTISEMENT,
    SOLICITATION,
    Heard,
    decode,
    message,
    opened,
    receive,
    send,
)
from tests.kernel.netns import inside
from tests.waiting import wait_for

HERE, MAC = 0xFE80 << 112 | 1, 0x0200_0000_0001
SOURCE = HERE.to_bytes(16, "big")


@pytest.mark.rfc("RFC 4861 §4.2")
def test_an_advertisement_makes_nobody_take_us_for_a_default_router():
    """It has lifetime 0, leaves all else open, and names the link-layer address of its sender."""
    assert message(ADVERTISEMENT, MAC).hex(" ", 1) == (
        "86 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 01 02 00 00 00 00 01"
    )
    assert len(message(ADVERTISEMENT, 0)) == 16


@pytest.mark.rfc("RFC 4861 §6.1.2")
def test_only_valid_advertisements_are_heard():
    good = message(ADVERTISEMENT, MAC)
    assert decode(good, SOURCE, 255) == Heard(ADVERTISEMENT, HERE, MAC)
    assert decode(message(ADVERTISEMENT, 0), SOURCE, 255) == Heard(ADVERTISEMENT, HERE, 0)
    prefix_option = bytes((3, 4)) + bytes(30)
    assert decode(good[:16] + prefix_option + good[16:], SOURCE, 255) == Heard(
        ADVERTISEMENT, HERE, MAC
    )
    for bad, source, hop_limit in [
        (good, SOURCE, 254),  # a router has forwarded it
        (good, socket.inet_pton(socket.AF_INET6, "fd00::1"), 255),
        (good[:15], SOURCE, 255),
        (good[:-1], SOURCE, 255),
        (good[:1] + b"\1" + good[2:], SOURCE, 255),
        (good[:16] + bytes(8), SOURCE, 255),  # an option of length 0
        (b"\x87" + good[1:], SOURCE, 255),
    ]:
        assert decode(bad, source, hop_limit) is None


@pytest.mark.rfc("RFC 4861 §4.1", "RFC 4861 §6.1.1")
def test_a_solicitation_may_come_from_a_host_without_an_address():
    asked = message(SOLICITATION, MAC)
    assert asked.hex(" ", 1) == "85 00 00 00 00 00 00 00 01 01 02 00 00 00 00 01"
    assert decode(asked, SOURCE, 255) == Heard(SOLICITATION, HERE, MAC)
    assert decode(message(SOLICITATION, 0), bytes(16), 255) == Heard(SOLICITATION, 0, 0)
    assert decode(asked, SOURCE, 64) is None


@given(st.binary(max_size=200), st.binary(min_size=16, max_size=16), st.integers(0, 255))
def test_any_bytes_are_an_advertisement_or_none(data, source, hop_limit):
    for one in (data, message(ADVERTISEMENT, 0) + data):
        found = decode(one, source, hop_limit)
        assert found is None or found.address == int.from_bytes(source, "big")


@pytest.mark.netns
@pytest.mark.rfc("RFC 4861 §6.1.2")
def test_the_kernel_adds_and_verifies_the_checksum_and_the_hop_limit(namespaces):
    left, right = namespaces.add(), namespaces.add()
    links = namespaces.pair(left, right, "e0", None)
    made = []
    for name, link, host in ((left, links[0], 1), (right, links[1], 2)):
        with inside(name):
            made.append(opened(socket.socket, link))
        namespaces_ip(name, host)
    here, there = made

    def heard():
        send(here, ADVERTISEMENT, links[0], HERE, MAC)
        return receive(there)[0]

    try:
        assert set(wait_for(heard, 10, "an advertisement")) == {Heard(ADVERTISEMENT, HERE, MAC)}
        with inside(left):
            forger = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
        with forger:
            for checksum, hop_limit in ((1, 255), (0, 64)):
                forged(forger, links[0], checksum, hop_limit)
        found = []

        def last():
            found.append(receive(there))
            return found[-1][1]

        # of these two the first, with a wrong checksum, does not come; the second is not valid
        wait_for(last, 10, "the advertisement that was forwarded")
        assert sum(bad for _, bad in found) == 1
        assert {one for some, _ in found for one in some} <= {Heard(ADVERTISEMENT, HERE, MAC)}
    finally:
        here.close()
        there.close()


def namespaces_ip(name: str, host: int) -> None:
    from fared.extensions.lab.namespaces import Netns

    Netns(name).ip("addr", "add", f"fe80::{host}/64", "dev", "e0", "nodad")


def forged(sock, ifindex: int, error: int, hop_limit: int) -> None:
    """Send an advertisement with its IPv6 header, and an ``error`` added to its checksum."""
    target = socket.inet_pton(socket.AF_INET6, "ff02::1")
    body = bytearray(message(ADVERTISEMENT, 0xBAD))
    pseudo = SOURCE + target + struct.pack("!II", len(body), socket.IPPROTO_ICMPV6)
    total = sum(struct.unpack(f"!{(len(pseudo) + len(body)) // 2}H", pseudo + bytes(body)))
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", body, 2, (~((total & 0xFFFF) + (total >> 16)) + error) & 0xFFFF)
    head = struct.pack("!IHBB", 6 << 28, len(body), socket.IPPROTO_ICMPV6, hop_limit)
    sock.sendto(head + SOURCE + target + bytes(body), ("ff02::1", 0, 0, ifindex))
