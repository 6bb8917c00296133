"""Router advertisements of unnumbered links: when they go out, and what engines hear of others."""

from __future__ import annotations

import pytest

from fared.core.streams import AdvertiseRouter, RouterHeard
from fared.daemon.loop.streams import advertising
from fared.kernel import router_advertisements as advertisements
from tests.daemon.stream_ends import End
from tests.waiting import loop_until

pytestmark = pytest.mark.netns

LINK_LOCAL = 0xFE80 << 112


def advertise(end: End, host: int, *, mac: int = 0) -> None:
    (index,) = end.links
    end.do(AdvertiseRouter(index, "e0", LINK_LOCAL + host, mac))


def state(end: End) -> advertising._UnnumberedLink:
    (link,) = end.edge._advertising._links.values()
    return link


async def beat(end: End) -> None:
    """Let the time to the next advertisement pass."""
    state(end).due = 0.0
    end.edge._advertising._beat()


@pytest.mark.rfc("RFC 4861 §6.2.4")
async def test_each_end_hears_the_other_and_is_told_once(ends):
    left, right = ends.left, ends.right
    advertise(left, 1, mac=0x02_0000_0000_01)
    advertise(right, 2)
    for _ in range(3):
        await beat(left)
        await beat(right)
    received = "advertisements-received"
    await loop_until(lambda: min(e.edge.counters[received] for e in (left, right)) >= 2)
    assert left.heard == [RouterHeard(11, LINK_LOCAL + 2)]
    assert right.heard == [RouterHeard(12, LINK_LOCAL + 1, 0x02_0000_0000_01)]
    advertise(right, 2)  # from the start: the next one is told again
    await beat(left)
    await loop_until(lambda: len(right.heard) == 2)
    assert right.heard[0] == right.heard[1]


@pytest.mark.rfc("RFC 4861 §6.2.4")
async def test_three_follow_each_other_and_others_share_their_wakeups(ends):
    left = ends.left
    loop = left.edge._loop
    advertise(left, 1)
    gaps = []
    for _ in range(4):
        gaps.append(round(state(left).due - loop.time(), 1))
        await beat(left)
    assert gaps == [1.0, 1.0, 10.0, 10.0]
    state(left).due, state(left).sent_at = loop.time() + 0.5, loop.time() - 9.5
    left.edge._advertising._beat()
    assert state(left).due > loop.time() + 9, "a little early, with those of another link"
    left.do(AdvertiseRouter(11, "e0", None))
    assert not left.edge._advertising._links
    left.edge._advertising._beat()
    assert left.edge._advertising._timer is None


async def test_frr_is_answered_when_it_begins(ends):
    """It sends its first ones close together, and takes no connection before it hears us."""
    left, right = ends.left, ends.right
    sent = "advertisements-sent"
    lifetime = bytes.fromhex("86 00 0000 40 00 001e 00000000 00000000")
    heard = 0

    async def hear(message: bytes) -> float:
        """Send one of the neighbor; return in how many seconds the next of ours is due."""
        nonlocal heard
        heard += 1
        sock.sendto(message, ("ff02::1", 0, 0, 12))
        await loop_until(lambda: left.edge.counters["advertisements-received"] == heard)
        return state(left).due - left.edge._loop.time()

    with advertisements.opened(right.netns.socket, 12) as sock:
        advertise(left, 1)
        for _ in range(2):
            await beat(left)
        ours = advertisements.message(advertisements.ADVERTISEMENT, 0)
        assert min(await hear(ours), await hear(ours), await hear(ours)) > 5
        assert await hear(lifetime) <= 1
        state(left).sent_at -= 1
        assert await hear(lifetime) > 5
        assert left.edge.counters[sent] == 4
        state(left).heard_at -= 10
        assert await hear(lifetime) > 5, "as seldom as it does later"


@pytest.mark.rfc("RFC 4861 §6.2.6")
async def test_who_solicits_is_answered_once_a_second(ends):
    """A router that has been restarted asks, and need not wait for the next advertisement."""
    left, right = ends.left, ends.right
    sock = advertisements.opened(right.netns.socket, 12)
    sent, solicited = "advertisements-sent", "solicitations-received"

    async def solicit(number: int) -> None:
        advertisements.send(sock, advertisements.SOLICITATION, 12, LINK_LOCAL + 2, 0)
        await loop_until(lambda: left.edge.counters[solicited] == number)

    with sock:
        advertise(left, 1)
        for _ in range(2):
            await beat(left)
        await solicit(1)
        assert left.edge.counters[sent] == 3
        assert state(left).due <= left.edge._loop.time() + 1
        state(left).sent_at -= 1
        await solicit(2)
        assert left.edge.counters[sent] == 4
        assert state(left).due > left.edge._loop.time() + 5


async def test_the_first_ones_ask_for_those_of_the_neighbor(ends):
    left, right = ends.left, ends.right
    with advertisements.opened(right.netns.socket, 12) as sock:
        kinds: list[int] = []

        def heard(number: int) -> bool:
            kinds.extend(one.kind for one in advertisements.receive(sock)[0])
            return len(kinds) >= number

        advertise(left, 1)
        await loop_until(lambda: heard(2))
        advertisements.send(sock, advertisements.ADVERTISEMENT, 12, LINK_LOCAL + 2, 0)
        await loop_until(lambda: left.heard)
        await beat(left)
        await loop_until(lambda: heard(3))
    asks, tells = advertisements.SOLICITATION, advertisements.ADVERTISEMENT
    assert kinds == [tells, asks, tells]


async def test_an_address_that_is_not_there_yet_is_tried_again(ends):
    left, right = ends.left, ends.right
    advertise(right, 2)
    advertise(left, 7)
    await loop_until(lambda: any("advertisement-error" in name for name in left.edge.counters))
    assert state(left).sent == 0
    assert state(left).due <= left.edge._loop.time() + 1
    left.netns.ip("addr", "add", "fe80::7/64", "dev", "e0", "nodad")
    await beat(left)
    await loop_until(lambda: right.heard == [RouterHeard(12, LINK_LOCAL + 7)])


async def test_of_neighbors_that_change_all_the_time_one_a_second_is_told(ends, monkeypatch):
    """A host on the link that pretends to be ever new neighbors costs the engine nothing more."""
    left, right = ends.left, ends.right
    monkeypatch.setattr(advertising, "_LEAST_GAP", 1000.0)
    left.netns.batch("ip", [f"addr add fe80::{n:x}/64 dev e0 nodad" for n in range(0x100, 0x114)])
    advertise(right, 2)
    for n in range(20):
        advertise(left, 0x100 + n)
    await loop_until(lambda: right.edge.counters["advertisements-received"] == 20)
    state(right).told_at -= 1000
    advertise(left, 0x100)
    await loop_until(lambda: right.edge.counters["advertisements-received"] == 21)
    assert len(right.heard) == 2


async def test_a_link_without_ipv6_is_opened_later_and_reported(ends, monkeypatch):
    left = ends.left
    original, reports = advertising.opened, []
    left.edge._advertising._again._report = lambda *what: reports.append(what)

    def missing(*_: object) -> object:
        raise OSError(19, "No such device")

    monkeypatch.setattr(advertising, "opened", missing)
    advertise(left, 1)
    assert (reports[0][0], reports[0][1].strerror) == (11, "No such device")
    monkeypatch.setattr(advertising, "opened", original)
    await loop_until(lambda: state(left).sent)
    assert reports[1:] == [(11, None)]


async def test_hosts_that_accept_advertisements_change_nothing(ends):
    """Neither their default route nor their hop limit."""
    left, right = ends.left, ends.right
    conf = "/proc/sys/net/ipv6/conf/e0"
    right.netns.run(["sh", "-c", f"echo 2 > {conf}/accept_ra; echo 77 > {conf}/hop_limit"])
    advertise(right, 2)
    advertise(left, 1)
    await loop_until(lambda: right.heard)
    assert "default" not in right.netns.ip("-6", "route")
    assert right.netns.run(["cat", f"{conf}/hop_limit"]).stdout == "77\n"
