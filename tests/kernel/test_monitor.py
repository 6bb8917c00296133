"""Reports of the monitor on changes of interfaces, addresses, shapers and FIB objects."""

import asyncio
import contextlib
import fcntl
import shutil
import socket
import struct
import subprocess
import time

import pytest

from fared.core.ids import parse_dotted, parse_prefix
from fared.core.links import InterfaceAddress
from fared.kernel.fib import KernelFib
from fared.kernel.monitor import (
    ForeignFibChange,
    InterfaceChanged,
    InterfaceRemoved,
    KernelMonitor,
    Overflow,
)
from fared.paths.fib.model import PutNextHop, PutRoute
from fared.paths.fib.settings import FibSettings
from tests.kernel.netns import inside, run
from tests.waiting import loop_until

pytestmark = pytest.mark.netns
BASE = FibSettings().id_base
GBIT = 1e9 / 8
LATE = 0.5
"""Seconds: half of the kernel's own delay, of a second, where it delays the message."""
_TUNSETIFF, _IFF_TAP = 0x400454CA, 0x1002


class Watched:
    """Two namespaces joined by e0, the first one watched."""

    def __init__(self, namespaces) -> None:
        self.name, self.far = namespaces.add(), namespaces.add()
        self.ifindex, _ = namespaces.pair(self.name, self.far, "e0", 0)
        self.events = []
        with inside(self.name):
            self.fib = KernelFib()
            self.monitor = KernelMonitor(self.events.append, fib_port=self.fib.port_id)
        self.monitor.start()

    @property
    def link(self):
        return self.monitor.links[self.ifindex]

    async def run(self, command: str, namespace: str | None = None) -> None:
        await asyncio.to_thread(run, command, namespace or self.name)

    def close(self) -> None:
        self.monitor.close()
        self.fib.close()


@pytest.fixture
async def watched(namespaces):
    made = Watched(namespaces)
    yield made
    made.close()


async def test_links_are_known_from_the_start(watched):
    await loop_until(lambda: watched.link.up)
    assert watched.link.name == "e0"
    assert watched.link.mtu == 1500
    assert watched.link.ipv4() == (InterfaceAddress(4, parse_dotted("10.0.0.1"), 24),)
    assert watched.link.speed == 10 * GBIT
    assert watched.link.shaped is None
    loopback = watched.monitor.links[1]
    assert loopback.loopback
    assert loopback.up


async def test_a_lost_carrier_is_reported_and_so_is_its_return(watched):
    await loop_until(lambda: watched.link.up)
    watched.events.clear()
    await watched.run("ip link set e0 down", watched.far)
    await loop_until(lambda: not watched.link.up)
    changes = [e for e in watched.events if isinstance(e, InterfaceChanged)]
    assert changes[0].previous.up
    await watched.run("ip link set e0 up", watched.far)
    await loop_until(lambda: watched.link.up)
    assert watched.events[-1].link.speed == 10 * GBIT


async def test_losses_of_the_carrier_are_counted_even_where_the_kernel_reports_only_some(watched):
    await loop_until(lambda: watched.link.up)
    before = watched.link.carrier_losses
    for state in 4 * ("down", "up"):
        await watched.run(f"ip link set e0 {state}", watched.far)
    await loop_until(lambda: watched.link.up and watched.link.carrier_losses == before + 4)


async def test_a_lost_carrier_can_be_read_as_soon_as_the_kernel_has_removed_its_next_hops(watched):
    """A group rewritten just then is a new one, without its routes; no answer tells."""
    await loop_until(lambda: watched.link.up)
    hop = PutNextHop(BASE, (watched.ifindex, 4, parse_dotted("10.0.0.2"), False))
    assert [result.error for result in watched.fib.apply([hop])] == [0]
    run("ip link set e0 down", watched.far)
    deadline = time.monotonic() + 10
    while watched.fib.dump().nexthops:  # without a turn of the loop
        assert time.monotonic() < deadline
    assert watched.link.up
    watched.monitor.read_links()
    assert not watched.link.up


async def test_addresses_come_and_go_primary_first(watched):
    await watched.run("ip address add 10.0.0.7/24 dev e0")
    await loop_until(lambda: len(watched.link.ipv4()) == 2)
    assert [a.address & 0xFF for a in watched.link.ipv4()] == [1, 7]
    await watched.run("ip address add 10.9.0.1 peer 10.9.0.2/32 dev e0")
    peer = InterfaceAddress(4, parse_dotted("10.9.0.1"), 32, parse_dotted("10.9.0.2"))
    await loop_until(lambda: peer in watched.link.addresses)
    await watched.run("ip address del 10.0.0.7/24 dev e0")
    await loop_until(lambda: len(watched.link.ipv4()) == 2)


async def test_ipv6_addresses_appear_when_they_may_be_used(watched):
    await watched.run("ip address add fd00::5/64 dev e0")
    wanted = parse_prefix("fd00::5/128").network
    await loop_until(lambda: any(a.address == wanted for a in watched.link.addresses))


async def test_the_hardware_address_is_known_and_its_change_reported(watched):
    await watched.run("ip link set e0 address 02:00:00:00:00:07")
    await loop_until(lambda: watched.link.hardware_address == 0x020000000007)
    assert watched.monitor.links[1].hardware_address == 0


async def test_a_link_local_address_is_reported_when_duplicate_detection_is_over(watched):
    """The kernel reports it once, 1 to 2 s after the link came up; the test shortens that."""
    await watched.run("ip link set e0 down")
    await loop_until(lambda: watched.link.link_local() is None)
    await watched.run("sysctl -qw net.ipv6.conf.e0.dad_transmits=1")
    await watched.run("sysctl -qw net.ipv6.neigh.e0.retrans_time_ms=100")
    watched.events.clear()
    await watched.run("ip link set e0 up")
    await loop_until(lambda: watched.link.link_local() is not None)
    addressed = [e for e in watched.events if e.link.link_local() is not None]
    assert all(e.link.up for e in addressed)
    await watched.run("ip link set e0 down", watched.far)
    await loop_until(lambda: not watched.link.up)
    assert watched.link.link_local() is not None  # a lost carrier takes no address away
    await watched.run("ip link set e0 down")
    await loop_until(lambda: watched.link.link_local() is None)


async def test_an_address_that_somebody_else_has_is_never_reported(watched):
    await loop_until(lambda: watched.link.link_local() is not None)
    await watched.run("ip address add fd00::5/64 dev e0 nodad", watched.far)
    await watched.run("ip address add fd00::5/64 dev e0")
    await watched.run("ip address add fd00::6/64 dev e0")
    six = parse_prefix("fd00::6/128").network
    await loop_until(lambda: any(a.address == six for a in watched.link.addresses))
    text = await asyncio.to_thread(run, "ip -6 address show dev e0", watched.name)
    assert "dadfailed" in text
    assert not any(a.address == six - 1 for a in watched.link.addresses)


async def test_a_shaper_at_the_root_changes_capacity_at_once(watched):
    await watched.run("tc qdisc add dev e0 root handle 1: tbf rate 200mbit burst 64k latency 50ms")
    await loop_until(lambda: watched.link.shaped == 0.2 * GBIT)
    assert watched.link.capacity == 0.2 * GBIT
    await watched.run("tc qdisc change dev e0 root handle 1: tbf rate 40gbit burst 9m latency 50ms")
    await loop_until(lambda: watched.link.shaped == 40 * GBIT)
    assert watched.link.capacity == 10 * GBIT
    await watched.run("tc qdisc del dev e0 root")
    await loop_until(lambda: watched.link.shaped is None)


async def test_htb_classes_at_the_top_add_up(watched):
    await watched.run("tc qdisc add dev e0 root handle 1: htb default 10")
    await watched.run("tc class add dev e0 parent 1: classid 1:10 htb rate 100mbit")
    await loop_until(lambda: watched.link.shaped == 0.1 * GBIT)
    await watched.run("tc class add dev e0 parent 1: classid 1:20 htb rate 300mbit")
    await watched.run("tc class add dev e0 parent 1:20 classid 1:21 htb rate 50mbit")
    await loop_until(lambda: watched.link.shaped == 0.4 * GBIT)
    watched.monitor.resync()
    assert watched.link.shaped == 0.4 * GBIT
    await watched.run("tc class change dev e0 parent 1: classid 1:10 htb rate 200mbit")
    await loop_until(lambda: watched.link.shaped == 0.5 * GBIT)
    await watched.run(
        "tc qdisc replace dev e0 root handle 2: tbf rate 50mbit burst 9k latency 50ms"
    )
    await loop_until(lambda: watched.link.shaped == 0.05 * GBIT)


async def test_a_shaper_that_is_there_at_start_is_read(watched):
    await watched.run("tc qdisc add dev e0 root handle 1: tbf rate 200mbit burst 64k latency 50ms")
    with inside(watched.name):
        second = KernelMonitor(lambda _: None)
    assert second.links[watched.ifindex].shaped == 0.2 * GBIT
    second.close()


async def test_interfaces_appear_and_disappear(watched):
    await watched.run("ip link add d0 index 77 type veth peer name d1")
    await loop_until(lambda: 77 in watched.monitor.links)
    await watched.run("ip link set d0 mtu 9000")
    await loop_until(lambda: watched.monitor.links[77].mtu == 9000)
    await watched.run("ip link del d0")
    await loop_until(lambda: 77 not in watched.monitor.links)
    assert any(isinstance(e, InterfaceRemoved) and e.link.name == "d0" for e in watched.events)


async def test_own_changes_of_the_fib_are_not_reported_those_of_others_are(watched):
    hop = (watched.ifindex, 4, parse_dotted("10.0.0.2"), False)
    await loop_until(lambda: watched.link.up)
    results = watched.fib.apply(
        [PutNextHop(BASE, hop), PutRoute(parse_prefix("198.18.0.0/24"), BASE)]
    )
    assert [r.error for r in results] == [0, 0]
    await watched.run("ip route add 198.18.1.0/24 via 10.0.0.2")
    await watched.run("ip route del 198.18.0.0/24 metric 20")
    await loop_until(lambda: any(isinstance(e, ForeignFibChange) for e in watched.events))
    assert [e for e in watched.events if isinstance(e, ForeignFibChange)] == [ForeignFibChange(1)]


async def test_after_an_overflow_everything_is_read_again(watched):
    """The queue is made tiny, and events are sent while nobody reads."""
    watched.monitor._link_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    await loop_until(lambda: watched.link.up)
    for n in range(30):  # no await: the loop does not run
        run(f"ip link add x{n} index {500 + n} type veth peer name y{n}", watched.name)
    await loop_until(lambda: Overflow("links") in watched.events)
    assert all(500 + n in watched.monitor.links for n in range(30))
    await watched.run("ip link del x3")
    await loop_until(lambda: 503 not in watched.monitor.links)


async def test_a_lost_carrier_reaches_the_callback_at_once(watched):
    """The best of five, since the machine may be busy."""
    await loop_until(lambda: watched.link.up)
    best = LATE
    for _ in range(5):
        seen = []
        watched.monitor._callback = lambda _, seen=seen: seen.append(time.perf_counter())
        done = []

        def fail(done=done):
            command = ["ip", "netns", "exec", watched.far, "ip", "link", "set", "e0", "down"]
            subprocess.run(command, check=True, timeout=10)
            done.append(time.perf_counter())

        await asyncio.to_thread(fail)
        await loop_until(lambda: not watched.link.up)
        best = min(best, seen[0] - done[0])
        await watched.run("ip link set e0 up", watched.far)
        await loop_until(lambda: watched.link.up)
    assert best < LATE


async def test_speeds_are_asked_for_again_on_request(watched):
    await watched.run("ip tuntap add mode tap name t0")
    await loop_until(lambda: any(link.name == "t0" for link in watched.monitor.links.values()))
    watched.monitor.refresh()
    assert watched.link.speed == 10 * GBIT


@contextlib.contextmanager
def tap(namespace: str, name: str):
    """A tap device with carrier, for as long as its file is open; its speed can be set."""
    with inside(namespace), open("/dev/net/tun", "r+b", buffering=0) as device:  # noqa: PTH123
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP))
        run(f"ip link set {name} up", namespace)
        yield


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="needs ethtool")
async def test_a_speed_that_is_set_is_noticed_at_once(watched):
    """The kernel reports it by ethtool netlink, not by rtnetlink; nothing is polled here."""
    with tap(watched.name, "t1"):
        await loop_until(lambda: _named(watched, "t1")["up"])
        await watched.run("ethtool -s t1 speed 40000 duplex full autoneg off")
        await loop_until(lambda: _named(watched, "t1")["speed"] == 40 * GBIT)
        await watched.run("ethtool -s t1 speed 100000 duplex full autoneg off")
        await loop_until(lambda: _named(watched, "t1")["speed"] == 100 * GBIT)
    last = [e for e in watched.events if isinstance(e, InterfaceChanged) and e.link.name == "t1"]
    assert [e.link.speed for e in last if e.link.up][-1] == 100 * GBIT


def _named(watched, name: str) -> dict[str, object]:
    links = [link for link in watched.monitor.links.values() if link.name == name]
    return {"up": links[0].up, "speed": links[0].speed} if links else {"up": False, "speed": None}


async def test_after_a_link_went_all_speeds_are_asked_for_again(watched):
    """The speed of a bond above it has changed, which the kernel does not report."""
    asked = []
    known = watched.monitor._speeds.all
    watched.monitor._speeds.all = lambda: asked.append(True) or known()
    await watched.run("ip link set e0 down")
    await loop_until(lambda: asked)
    assert not watched.link.up
    assert watched.link.speed == 10 * GBIT
