"""Routes of other programs: which are redistributed, and when they are withdrawn."""

import asyncio
import socket

import pytest

from fared.core.ids import parse_dotted, parse_prefix
from fared.core.routes import LocalRoute, RouteSource
from fared.kernel.fib import KernelFib
from fared.kernel.monitor import KernelMonitor, LocalRoutesChanged, Overflow
from fared.kernel.netlink import attribute
from fared.kernel.routes import read_static
from fared.kernel.rtnetlink import RTA_DST
from fared.paths.fib.model import PutNextHop, PutRoute
from fared.paths.fib.settings import FibSettings
from tests.kernel.netns import inside, run
from tests.waiting import loop_until

pytestmark = pytest.mark.netns
BASE = FibSettings().id_base
GATEWAY = parse_dotted("10.0.0.2")


class Watched:
    """A namespace with e0 and e1 to another one, and what is known of its routes."""

    def __init__(self, namespaces) -> None:
        self.name, self.far = namespaces.add(), namespaces.add()
        self.e0, _ = namespaces.pair(self.name, self.far, "e0", 0)
        self.e1, _ = namespaces.pair(self.name, self.far, "e1", 1)
        self.routes = {}
        self.overflows = 0
        with inside(self.name):
            self.fib = KernelFib()
            self.monitor = KernelMonitor(self._event, fib_port=self.fib.port_id)
        self.monitor.start()

    def _event(self, event) -> None:
        self.overflows += event == Overflow("fib")
        if isinstance(event, LocalRoutesChanged):
            for key, route in event.changes.items():
                if route is None:
                    del self.routes[key]
                else:
                    self.routes[key] = route

    def static(self) -> dict:
        """Hops of the static routes that are known, by prefix."""
        return {
            str(prefix): route.hops
            for (source, prefix), route in self.routes.items()
            if source is RouteSource.STATIC
        }

    def connected(self) -> set[str]:
        return {
            str(prefix)
            for source, prefix in self.routes
            if source is RouteSource.CONNECTED and str(prefix) not in ("127.0.0.0/8", "::1/128")
        }

    async def ip(self, command: str, namespace: str | None = None) -> None:
        await asyncio.to_thread(run, f"ip {command}", namespace or self.name)

    def close(self) -> None:
        self.monitor.close()
        self.fib.close()


@pytest.fixture
async def idle(namespaces):
    made = Watched(namespaces)
    await loop_until(lambda: made.monitor.links[made.e0].up and made.monitor.links[made.e1].up)
    yield made
    made.close()


@pytest.fixture
def watched(idle):
    idle.monitor.watch_routes(wanted=True)
    return idle


async def test_routes_made_by_hand_and_marked_static_come_and_go(watched):
    """``ip route add`` makes protocol ``boot``; network managers mark theirs ``static``."""
    assert watched.static() == {}
    await watched.ip("route add 198.18.1.0/24 via 10.0.0.2")
    await watched.ip("route add 198.18.2.0/24 dev e1 proto static")
    both = {"198.18.1.0/24": ((watched.e0, GATEWAY),), "198.18.2.0/24": ((watched.e1, 0),)}
    await loop_until(lambda: watched.static() == both)
    await watched.ip("route del 198.18.1.0/24")
    await loop_until(lambda: list(watched.static()) == ["198.18.2.0/24"])
    await watched.ip("route replace 198.18.2.0/24 via 10.0.1.2 proto static")
    hops = ((watched.e1, parse_dotted("10.0.1.2")),)
    await loop_until(lambda: watched.static() == {"198.18.2.0/24": hops})


async def test_routes_of_other_daemons_of_dhcp_and_our_own_are_left_alone(watched):
    hop = (watched.e0, 4, GATEWAY, False)
    watched.fib.apply([PutNextHop(BASE, hop), PutRoute(parse_prefix("198.18.9.0/24"), BASE)])
    await watched.ip("route add 198.18.1.0/24 via 10.0.0.2 proto zebra")
    await watched.ip("route add 198.18.2.0/24 via 10.0.0.2 proto dhcp")
    await watched.ip("route add 198.18.3.0/24 via 10.0.0.2 proto 201")
    await watched.ip("route add 198.18.4.0/24 via 10.0.0.2 table 100")
    await watched.ip("route add 198.18.5.0/24 via 10.0.0.2 tos 0x20")
    await watched.ip("route add multicast 224.5.0.0/24 dev e0")
    await watched.ip("route add throw 198.18.6.0/24")
    await watched.ip("-6 route add 2001:db8:1::/48 dev e0 proto ra")
    await watched.ip("-6 route add 2001:db8:2::/48 dev e0 table 100")
    await watched.ip("-6 route add 2001:db8:3::/48 dev e0 proto zebra")
    await watched.ip("-6 route add multicast ff15:1::/32 dev e0")
    await watched.ip("-6 route add throw 2001:db8:4::/48")
    await watched.ip("route add 198.18.7.0/24 via 10.0.0.2")
    await loop_until(lambda: list(watched.static()) == ["198.18.7.0/24"])


async def test_routes_that_are_there_at_start_are_reported(idle):
    await idle.ip("route add 198.18.1.0/24 via 10.0.0.2")
    await idle.ip("route add default via 10.0.1.2")
    assert idle.routes == {}
    idle.monitor.watch_routes(wanted=True)
    assert set(idle.static()) == {"198.18.1.0/24", "0.0.0.0/0"}
    idle.monitor.watch_routes(wanted=False)
    assert idle.routes == {}


async def test_a_discarding_route_needs_no_interface(watched):
    """An aggregate is advertised by means of a discard route."""
    await watched.ip("route add blackhole 198.18.0.0/16")
    await watched.ip("route add unreachable 198.19.0.0/16")
    await loop_until(lambda: watched.static() == {"198.18.0.0/16": (), "198.19.0.0/16": ()})


@pytest.mark.parametrize(("where", "state"), [("far", "carrier lost"), ("near", "set down")])
async def test_a_route_goes_with_its_interface(watched, where, state):
    """Set down, the kernel removes the route without a message; without carrier it keeps it."""
    await watched.ip("route add 198.18.1.0/24 via 10.0.0.2")
    await watched.ip("route add 198.18.2.0/24 nexthop via 10.0.0.2 nexthop via 10.0.1.2")
    await loop_until(lambda: len(watched.static()) == 2)
    other = (watched.e1, parse_dotted("10.0.1.2"))
    namespace = watched.far if where == "far" else watched.name
    await watched.ip("link set e0 down", namespace)
    await loop_until(lambda: "198.18.1.0/24" not in watched.static())
    assert watched.static().get("198.18.2.0/24", (other,)) == (other,)
    assert "10.0.0.0/24" not in watched.connected()
    await watched.ip("link set e0 up", namespace)
    await loop_until(lambda: "10.0.0.0/24" in watched.connected())
    kept = where == "far"
    await loop_until(lambda: ("198.18.1.0/24" in watched.static()) == kept)


async def test_of_several_routes_to_a_prefix_the_one_that_forwards_counts(watched):
    await watched.ip("route add 198.18.1.0/24 via 10.0.1.2 metric 50")
    await watched.ip("route add 198.18.1.0/24 via 10.0.0.2 metric 10")
    await loop_until(lambda: watched.static() == {"198.18.1.0/24": ((watched.e0, GATEWAY),)})
    await watched.ip("link set e0 down", watched.far)
    await loop_until(lambda: watched.static()["198.18.1.0/24"][0][0] == watched.e1)


async def test_a_route_over_a_next_hop_object_goes_with_the_object(watched):
    await watched.ip("nexthop add id 7 via 10.0.0.2 dev e0")
    await watched.ip("route add 198.18.1.0/24 nhid 7")
    await loop_until(lambda: list(watched.static()) == ["198.18.1.0/24"])
    await watched.ip("nexthop del id 7")
    await loop_until(lambda: watched.static() == {})


async def test_networks_of_addresses_are_connected_host_addresses_too(watched):
    """For a point-to-point address, the peer address is the connected one."""
    await loop_until(lambda: watched.connected() == {"10.0.0.0/24", "10.0.1.0/24"})
    await watched.ip("address add 198.18.5.1/32 dev lo")
    await watched.ip("address add 10.9.0.1 peer 10.9.0.2/32 dev e1")
    wanted = {"10.0.0.0/24", "10.0.1.0/24", "198.18.5.1/32", "10.9.0.2/32"}
    await loop_until(lambda: watched.connected() == wanted)
    await watched.ip("address del 198.18.5.1/32 dev lo")
    await loop_until(lambda: "198.18.5.1/32" not in watched.connected())
    key = (RouteSource.CONNECTED, parse_prefix("10.0.0.0/24"))
    assert watched.routes[key] == LocalRoute(((watched.e0, 0),))


async def test_ipv6_routes_come_and_go_like_those_of_ipv4(watched):
    """Over a link-local gateway, through an interface, discarding, and the default route."""
    gateway = parse_prefix("fe80::2/128").network
    await watched.ip("-6 route add 2001:db8:1::/48 via fe80::2 dev e0")
    await watched.ip("-6 route add 2001:db8:2::/48 dev e1 proto static")
    await watched.ip("-6 route add blackhole 2001:db8:3::/48")
    await watched.ip("-6 route add default via fe80::2 dev e1")
    wanted = {
        "2001:db8:1::/48": ((watched.e0, gateway),),
        "2001:db8:2::/48": ((watched.e1, 0),),
        "2001:db8:3::/48": (),
        "::/0": ((watched.e1, gateway),),
    }
    await loop_until(lambda: watched.static() == wanted)
    await watched.ip("link set e1 down", watched.far)
    await loop_until(lambda: set(watched.static()) == {"2001:db8:1::/48", "2001:db8:3::/48"})
    await watched.ip("-6 route del 2001:db8:1::/48")
    await watched.ip("-6 route del blackhole 2001:db8:3::/48")
    await loop_until(lambda: watched.static() == {})


async def test_of_several_ipv6_routes_to_a_prefix_all_that_forward_count(watched):
    """What is appended becomes one more next hop; another metric is another route."""
    await watched.ip("-6 route add 2001:db8:1::/48 via fe80::2 dev e0 metric 9")
    await watched.ip("-6 route append 2001:db8:1::/48 via fe80::2 dev e1 metric 9")
    await watched.ip("-6 route add 2001:db8:1::/48 via fe80::3 dev e1 metric 10")
    gateway = parse_prefix("fe80::2/128").network
    both = ((watched.e0, gateway), (watched.e1, gateway))
    await loop_until(lambda: watched.static() == {"2001:db8:1::/48": both})
    await watched.ip("link set e0 down", watched.far)
    await loop_until(lambda: watched.static() == {"2001:db8:1::/48": both[1:]})


async def test_networks_of_global_ipv6_addresses_are_connected(watched):
    """Link-local ones are on every interface and not told."""
    before = {"10.0.0.0/24", "10.0.1.0/24"}
    await loop_until(lambda: watched.connected() == before)
    await watched.ip("address add 2001:db8:5::1/64 dev e0 nodad")
    await watched.ip("address add fd00:5::1/128 dev lo nodad")
    await loop_until(lambda: watched.connected() == {*before, "2001:db8:5::/64", "fd00:5::1/128"})
    await watched.ip("link set e0 down", watched.far)
    await loop_until(lambda: watched.connected() == {"10.0.1.0/24", "fd00:5::1/128"})


async def test_after_an_overflow_the_routes_are_read_again(watched):
    """The queue is made tiny, and routes change while nobody reads."""
    watched.monitor._fib_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    for n in range(40):  # no await: the loop does not run
        run(f"ip route add 198.18.{n}.0/24 via 10.0.0.2", watched.name)
    await loop_until(lambda: watched.overflows > 0)
    await loop_until(lambda: len(watched.static()) == 40)
    await watched.ip("route flush proto boot")
    await loop_until(lambda: watched.static() == {})


async def test_a_thousand_routes_in_one_go_are_read_a_few_times(watched, tmp_path):
    """Each read is followed by a pause of ten times as long."""
    reads = []
    local = watched.monitor._local_routes
    plain = local._all
    local._all = lambda: reads.append(1) or plain()
    batch = tmp_path / "batch"
    batch.write_text(
        "".join(f"route add 198.18.{n >> 8}.{n & 255}/32 via 10.0.0.2\n" for n in range(1000))
    )
    await watched.ip(f"-batch {batch}")
    await loop_until(lambda: len(watched.static()) == 1000)
    assert len(reads) < 100


@pytest.mark.parametrize("network", ["", "0a", "0a00010000"])
def test_a_route_whose_destination_has_another_size_is_no_route(network: str):
    head = bytes.fromhex("02180000fe04fd01") + bytes(4)
    assert read_static(head + attribute(RTA_DST, bytes.fromhex("0a000100"))) is not None
    assert read_static(head + attribute(RTA_DST, bytes.fromhex(network))) is None


@pytest.mark.parametrize("length", range(0, 40, 3))
def test_bytes_that_make_no_sense_are_no_route(length):
    """Truncated anywhere, a message is left out or read without what is missing."""
    whole = bytes.fromhex("02180000fe04fd01") + bytes(4) + bytes.fromhex("080001000a010000") * 4
    found = read_static(whole[:length])
    assert found is None or found[1] == 0
