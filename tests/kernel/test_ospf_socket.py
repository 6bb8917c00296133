"""OSPF datagrams between two namespaces, and what is done with broken ones."""

import select
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import parse_dotted
from fared.kernel.ospf_socket import (
    ALL_DR_ROUTERS,
    ALL_SPF_ROUTERS,
    OspfSockets,
    strip_ipv4_header,
)
from tests.kernel.netns import inside, run
from tests.kernel.waiting import until


@pytest.fixture
async def ends(namespaces):
    """Sockets at both ends of two links, and what each received."""
    left, right = namespaces.add(), namespaces.add()
    links = [namespaces.pair(left, right, f"e{n}", n) for n in range(2)]
    made = []
    for side, name in enumerate((left, right)):
        got = []
        sockets = OspfSockets(lambda *datagram, got=got: got.append(datagram))
        with inside(name):
            for link in links:
                sockets.open(link[side])
        made.append((sockets, got))
    yield made, links, (left, right)
    for sockets, _ in made:
        sockets.close_all()


@pytest.mark.netns
async def test_multicast_arrives_at_the_other_end_of_its_link_only(ends):
    ((a, a_got), (b, b_got)), ((a0, b0), (a1, b1)), _ = ends
    payload = bytes(range(256)) * 5
    await until(lambda: a.send(a1, ALL_SPF_ROUTERS, payload) or b_got)
    assert b_got[0] == (b1, parse_dotted("10.0.1.1"), ALL_SPF_ROUTERS, payload)
    b.send(b0, ALL_DR_ROUTERS, b"x")
    await until(lambda: a_got)
    assert a_got == [(a0, parse_dotted("10.0.0.2"), ALL_DR_ROUTERS, b"x")]
    assert {got[0] for got in b_got} == {b1}


@pytest.mark.netns
async def test_unicast_arrives_and_many_packets_are_drained(ends):
    ((a, _), (_, b_got)), ((a0, _), _), _ = ends
    for n in range(200):
        a.send(a0, parse_dotted("10.0.0.2"), struct.pack("!I", n))
    await until(lambda: len(b_got) == 200)
    assert [struct.unpack("!I", got[3])[0] for got in b_got] == list(range(200))
    assert a.counters["sent"] == 200


@pytest.mark.netns
async def test_nothing_of_another_link_arrives_while_the_socket_opens(namespaces, monkeypatch):
    """A raw socket hears all interfaces until it is bound to its own; none of that is passed on.

    A hello taken for one of this link would make a neighbor that is not there, and turn the real
    one away until the dead interval has passed.
    """
    left, right = namespaces.add(), namespaces.add()
    (a0, b0), (a1, b1) = [namespaces.pair(left, right, f"e{n}", n) for n in range(2)]
    b = OspfSockets(lambda *_: None)
    with inside(right):
        b.open(b0)
        b.open(b1)
    got = []
    a = OspfSockets(lambda *datagram: got.append(datagram))

    class Unlucky(socket.socket):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            for _ in range(3):
                b.send(b0, ALL_SPF_ROUTERS, b"for the first link")
            assert select.select([self], [], [], 5.0)[0]

    with inside(left):
        a.open(a0)
        monkeypatch.setattr("fared.kernel.ospf_socket.socket.socket", Unlucky)
        a.open(a1)
    b.send(b1, ALL_SPF_ROUTERS, b"for the second")
    await until(lambda: len(got) >= 4)
    assert [(index, payload) for index, _, _, payload in got if index == a1] == [
        (a1, b"for the second")
    ]
    for sockets in (a, b):
        sockets.close_all()


@pytest.mark.netns
async def test_a_failure_to_send_is_counted_not_raised(ends):
    ((a, _), _), ((a0, _), _), (left, _) = ends
    a.send(999, ALL_SPF_ROUTERS, b"")
    run("ip link set e0 down", left)
    a.send(a0, ALL_SPF_ROUTERS, b"x")
    assert a.counters["send-error-ENOTCONN"] == 1
    assert sum(n for key, n in a.counters.items() if key.startswith("send-error")) == 2


@pytest.mark.netns
async def test_opening_on_a_vanished_interface_is_counted(namespaces):
    name = namespaces.add()
    sockets = OspfSockets(lambda *_: None)
    with inside(name):
        sockets.open(4242)
    assert sockets.counters["open-error-ENODEV"] == 1


def header(length: int, total: int, protocol: int = 89) -> bytes:
    words = bytes(length - 20)
    return (
        struct.pack("!BBHHHBBHII", 0x40 | length // 4, 0, total, 0, 0, 1, protocol, 0, 1, 2) + words
    )


def test_the_ip_header_is_removed_with_its_options_and_the_padding_behind():
    found = strip_ipv4_header(header(24, 27) + b"abc" + b"padding")
    assert (found.source, found.destination, found.payload) == (1, 2, b"abc")


@pytest.mark.parametrize("data", [b"", header(20, 19), header(20, 90), header(20, 20, 6)])
def test_lengths_that_do_not_add_up_are_refused(data):
    assert strip_ipv4_header(data) is None


@given(st.binary(max_size=80))
def test_no_bytes_break_the_header_check(data):
    strip_ipv4_header(data)
