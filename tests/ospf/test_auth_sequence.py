"""Cryptographic sequence numbers increase with every packet, and across restarts."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import ipv4_prefix, parse_dotted
from fared.core.routes import LocalRoute, RouteSource
from fared.protocols.igp.events import ExternalRoutes, LinkRemoved, SettingsApplied
from fared.protocols.igp.keys import AuthKey
from fared.protocols.ospf.auth.sequence import AuthSequences, clock_number
from fared.protocols.ospf.processing import authenticate
from fared.protocols.ospf.settings import (
    AreaSettings,
    OspfSettings,
    RedistributeSettings,
    Redistribution,
)
from tests.igp.strict import refuse_equal_numbers
from tests.ospf.harness import BACKBONE, Network, router_id
from tests.ospf.test_authentication import EXTENDED, A, B, errors, keyed, losses, sequences

WALL = 1_800_000_000.0
DAY = 86_400.0
DEAD = 4.0
END = 0xFFFFFFFF
REDISTRIBUTE = RedistributeSettings(static=Redistribution())
times = st.floats(0, 2.2e9)


# -- the numbers -----------------------------------------------------------------------------


@pytest.mark.rfc("RFC 2328 §D.3")
@given(st.lists(st.tuples(st.integers(1, 3), times), max_size=50))
def test_numbers_of_an_interface_rise_whatever_the_clock_does(packets):
    sequences = AuthSequences()
    last: dict[int, int] = {}
    for ifindex, wall in packets:
        number = sequences.next_32(ifindex, wall)
        assert last.get(ifindex, 0) < number <= END
        assert number >= clock_number(wall)
        last[ifindex] = number


@pytest.mark.rfc("RFC 2328 §D.3")
def test_numbers_follow_the_clock_where_that_is_ahead():
    sequences = AuthSequences()
    assert [sequences.next_32(1, WALL + second) - clock_number(WALL) for second in range(4)] == [
        0,
        5,
        10,
        15,
    ]
    assert sequences.next_32(2, WALL) == clock_number(WALL), "the other interface has its own"


def test_packets_are_accepted_after_an_upgrade_from_numbers_in_seconds():
    """Numbers in seconds, as sent before and by other routers, were less already in 2025."""
    for day in ("2025-07-01", "2026-11-22", "2041-07-01"):
        wall = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
        assert wall < clock_number(wall) <= END


@pytest.mark.rfc("RFC 2328 §D.3")
def test_past_the_end_of_32_bits_numbers_begin_again_at_the_clock():
    """In 2041, or if the clock is set beyond it: neighbors accept them after RouterDeadInterval."""
    sequences = AuthSequences()
    ahead = 1_400_000_000 + END / 5
    assert sequences.next_32(1, ahead) == END
    assert sequences.next_32(1, WALL) == clock_number(WALL)
    assert clock_number(ahead + 1) < 10
    assert clock_number(0.0) == 0


def test_an_interface_that_comes_back_goes_on_where_it_was():
    sequences = AuthSequences()
    sent = [sequences.next_32(7, WALL) for _ in range(100)]
    sequences.closed(7)
    assert sequences.next_32(7, WALL) > sent[-1]


@pytest.mark.rfc("RFC 7474 §3.1")
def test_64_bit_numbers_begin_at_the_boot_count_and_carry_into_it():
    """RFC 7474 §3.1: when the lower half wraps, the upper half counts on."""
    sequences = AuthSequences()
    assert [sequences.next_64(3), sequences.next_64(3)] == [(3 << 32) + 1, (3 << 32) + 2]
    sequences._long = (4 << 32) - 1
    assert sequences.next_64(3) == 4 << 32
    assert sequences.boot_count == 4
    assert sequences.next_64(9) == (9 << 32) + 1, "a reload may bring the count"


# -- a receiver that rejects equal numbers ---------------------------------------------------


@pytest.fixture
def strict(monkeypatch):
    """Let all routers reject a number equal to the last one."""
    monkeypatch.setattr(authenticate, "sequence_problem", refuse_equal_numbers)


def announce(net: Network, packets: int, seconds: float) -> None:
    """Router 1 has another external route of its own at even paces, each in a packet of its own."""
    for _ in range(packets):
        net.routes += 1
        prefix = ipv4_prefix(parse_dotted("203.0.0.0") + net.routes, 32)
        net.input(1, ExternalRoutes({(RouteSource.STATIC, prefix): LocalRoute()}))
        net.run(seconds / packets)


def keyed_pair(key: AuthKey) -> Network:
    """Two routers after their first start; router 1 redistributes."""
    net = Network(1)
    net.add(1, epoch=WALL, boot_count=1, redistribute=REDISTRIBUTE)
    net.add(2, epoch=WALL, boot_count=1)
    net.join(1, 2, keyed(key))
    net.routes = 0
    return net


def restart(net: Network, boot_count: int, wall: float = WALL) -> float:
    """Kill router 1 and start it, half a second later; return seconds from the start to Full.

    ``wall``: what its clock would have said at time 0 of the run.
    """
    link, settings = net.nodes[1].links[2]
    net.stop(1)
    net.run(0.5)
    net.add(1, epoch=wall, boot_count=boot_count, redistribute=REDISTRIBUTE)
    net.link(1, link, settings)
    begun = net.now
    return net.until(lambda: net.all_full() and net.in_sync()) - begun


@pytest.mark.parametrize("key", [A, B, EXTENDED], ids=repr)
def test_a_receiver_that_refuses_equal_numbers_takes_200_packets_a_second(strict, key):
    """Full in round trips, databases equal, nothing refused at either end.

    A router killed in quiet is heard at once: the clock is ahead of all it has sent. Killed after
    200 packets in a second, which are 40 seconds of that clock, it is heard when its neighbors
    have forgotten; with a boot count at once.
    """
    net = keyed_pair(key)
    assert net.until(lambda: net.all_full() and net.in_sync()) < 0.020
    net.run(10.0)
    assert restart(net, 2) < 0.1
    begun, before = net.now, len(sequences(net, 1))
    announce(net, 200, 1.0)
    sent = sequences(net, 1)
    assert net.now - begun < 1.01
    assert len(sent) - before >= 200
    net.until(net.in_sync)
    assert errors(net, 2) == errors(net, 1) == {}
    assert all(a < b for a, b in pairwise(sent))
    assert restart(net, 3) < (0.1 if key is EXTENDED else DEAD + 1)
    assert losses(net) == 2, "one each restart, at the neighbor"


@pytest.mark.rfc("RFC 7474 §2")
@pytest.mark.parametrize("key", [A, B, EXTENDED], ids=repr)
def test_a_clock_a_day_behind_after_a_restart(strict, key):
    """64-bit numbers have the boot count; 32-bit ones wait until neighbors forgot the old ones."""
    net = keyed_pair(key)
    net.until(net.all_full)
    net.run(10.0)
    assert restart(net, 2, WALL - DAY) < (0.1 if key is EXTENDED else DEAD + 1)
    net.run(10.0)
    assert net.all_full()


@pytest.mark.parametrize("key", [A, B], ids=repr)
def test_a_clock_set_back_during_operation_has_no_effect(strict, key):
    """Numbers continue from the last one, independently of the clock."""
    net = keyed_pair(key)
    net.until(net.all_full)
    net.run(5.0)
    before = sequences(net, 1)[-1]
    settings = OspfSettings(router_id(1), areas=(AreaSettings(BACKBONE),), epoch=WALL - DAY)
    net.input(1, SettingsApplied(settings))
    net.run(20.0)
    assert sequences(net, 1)[-1] < before + 30
    assert losses(net) == 0
    assert errors(net, 2) == {}


def test_an_interface_disabled_and_enabled_again_is_accepted_at_once(strict):
    """Its numbers are ahead of the clock, and its neighbor still has the last one."""
    net = keyed_pair(B)
    net.until(net.all_full)
    announce(net, 100, 0.5)
    link, settings = net.nodes[1].links[2]
    net.input(1, LinkRemoved(2))
    net.run(0.5)
    net.link(1, link, settings)
    begun = net.now
    assert net.until(net.all_full) - begun < 0.1
    assert errors(net, 2) == {}
