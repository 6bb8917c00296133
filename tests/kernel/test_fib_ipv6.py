"""IPv6 routes, and IPv4 routes over IPv6 next hops, against the real kernel.

``host`` --- ``router`` === four links === ``far``: no link has an IPv4 address, every far end is
fe80::2 there.
"""

import errno
import itertools
import socket
from collections import Counter

import pytest

from fared.core.ids import Prefix, parse_dotted, parse_prefix
from fared.kernel.fib import KernelFib
from fared.kernel.sysctl import SysctlMode, apply_sysctls, wanted_sysctls
from fared.paths.fib.model import (
    DeleteNextHop,
    FibState,
    Member,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.paths.fib.planner import FibPlanner
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import NextHop, NextHopSet, Route
from fared.paths.ted.model import PathType
from tests.fib.helpers import PlannerOfRoutes
from tests.kernel.netns import inside, run
from tests.waiting import wait_for

pytestmark = pytest.mark.netns
BASE = FibSettings().id_base
GROUP = FibSettings().group_base
FAR = parse_prefix("fe80::2/128").network
FOUR, SIX = parse_prefix("198.18.0.0/16"), parse_prefix("2001:db8:f::/48")
TARGETS = {4: "198.18.0.1", 6: "2001:db8:f::1"}
SOURCES = {4: "203.0.113.2", 6: "2001:db8:a::2"}
AF = {4: socket.AF_INET, 6: socket.AF_INET6}
PORT = 4791


class Box:
    """The three namespaces and the FIB of the one in the middle."""

    def __init__(self, namespaces) -> None:
        self.name, self.far, self.host = (namespaces.add() for _ in range(3))
        for name in (self.name, self.far):
            run("sysctl -qw net.ipv6.conf.default.accept_dad=0", name)
        pairs = [namespaces.pair(self.name, self.far, f"e{n}", None) for n in range(4)]
        self.ifindexes = [left for left, _ in pairs]
        for n in range(4):
            run(f"ip address add fe80::1/64 dev e{n} nodad", self.name)
            run(f"ip address add fe80::2/64 dev e{n} nodad", self.far)
        namespaces.pair(self.name, self.host, "h0", None)
        for name, host in ((self.name, 1), (self.host, 2)):
            run(f"ip address add 203.0.113.{host}/24 dev h0", name)
            run(f"ip address add 2001:db8:a::{host}/64 dev h0 nodad", name)
        run("ip route add default via 203.0.113.1", self.host)
        run("ip -6 route add default via 2001:db8:a::1", self.host)
        run(f"ip address add {TARGETS[4]} dev lo", self.far)
        run(f"ip address add {TARGETS[6]} dev lo nodad", self.far)  # else tentative at first
        with inside(self.name):
            wanted = wanted_sysctls(1, ["e0", "e1", "e2", "e3"], ipv6=True, unnumbered=True)
            apply_sysctls(SysctlMode.SET, wanted)
        self.fib = self.open()
        with inside(self.far):
            self.received = {family: self._listen(family) for family in (4, 6)}
        self._ports = itertools.count(10000)

    def _listen(self, family: int) -> socket.socket:
        sock = socket.socket(AF[family], socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        sock.bind((TARGETS[family], PORT))
        sock.settimeout(5)
        return sock

    def open(self, **options) -> KernelFib:
        with inside(self.name):
            return KernelFib(**options)

    def close(self) -> None:
        self.fib.close()
        for sock in self.received.values():
            sock.close()

    def hop(self, n: int):
        return (self.ifindexes[n], 6, FAR, False)

    def routes(self, prefixes, weights: dict[int, int]):
        hops = NextHopSet(
            tuple(
                NextHop(self.ifindexes[n], f"e{n}", 6, FAR, 1, None, None, weight)
                for n, weight in sorted(weights.items())
            )
        )
        return {p: Route(20, PathType.LEVEL_2, 2, hops, (1,)) for p in prefixes}

    def carry_out(self, planner: FibPlanner, operations):
        done = list(operations)
        while operations:
            results = self.fib.apply(operations)
            assert not any(errors(results)), results
            operations = planner.results(results, 0.0)
            done += operations
        return done

    def await_link(self, n: int) -> None:
        """Wait until the kernel accepts next hops over a link again."""
        probe = PutNextHop(BASE + 99, self.hop(n))
        wait_for(lambda: not any(errors(self.fib.apply([probe]))), 20, "the kernel to follow")
        self.fib.apply([DeleteNextHop(BASE + 99)])

    def send(self, family: int, flows: int) -> None:
        """One packet of each of so many flows, from the host."""
        with inside(self.host):
            for _ in range(flows):
                port = next(self._ports)
                with socket.socket(AF[family], socket.SOCK_DGRAM) as sock:
                    sock.bind((SOURCES[family], port))
                    sock.sendto(b"x", (TARGETS[family], PORT))

    def shares(self, family: int, flows: int) -> dict[str, float]:
        """Send packets of this many flows, wait for all; return the share of each link."""
        before = self._carried()
        self.send(family, flows)
        for _ in range(flows):
            self.received[family].recv(16)
        carried = self._carried()
        return {link: (carried[link] - before[link]) / flows for link in sorted(carried)}

    def _carried(self) -> Counter[str]:
        lines = run("cat /proc/net/dev", self.far).splitlines()[2:]
        rows = (line.replace(":", " ").split() for line in lines)
        return Counter({row[0]: int(row[2]) for row in rows if row[0].startswith("e")})


@pytest.fixture
def box(namespaces):
    made = Box(namespaces)
    yield made
    made.close()


def errors(results):
    return [r.error for r in results]


def about(wanted: dict[str, float]):
    """Within four standard deviations of 3000 flows, and a few packets of other senders."""
    return pytest.approx(wanted, abs=0.04)


def test_groups_of_link_local_gateways_and_routes_of_both_families_are_read_back(box):
    members = tuple(Member(BASE + n, w) for n, w in enumerate((1, 256, 1000, 65535)))
    routes = [FOUR, SIX, parse_prefix("::/0"), parse_prefix("0.0.0.0/0")]
    operations = [PutNextHop(BASE + n, box.hop(n)) for n in range(4)]
    operations += [PutGroup(GROUP, members, replace=False)]
    operations += [PutRoute(prefix, GROUP) for prefix in routes]
    assert not any(errors(box.fib.apply(operations)))
    state = box.fib.dump()
    assert state.nexthops == {BASE + n: box.hop(n) for n in range(4)}
    assert state.groups == {GROUP: members}
    assert state.routes == dict.fromkeys(routes, GROUP)
    text = run(f"ip -6 route show {SIX}", box.name)
    assert f"nhid {GROUP} " in text
    assert "proto 201 metric 20" in text


@pytest.mark.parametrize(
    ("options", "metric6"),
    [({"metric": 0}, 1024), ({"table": 1000, "metric": 7, "protocol": 99}, 7)],
)
def test_table_protocol_and_metric_are_those_asked_for_in_both_families(box, options, metric6):
    """Linux makes 1024 of metric 0 in an IPv6 route."""
    fib = box.open(**options)
    routes = {FOUR: BASE, SIX: BASE, parse_prefix("::/0"): BASE}
    puts = [PutRoute(prefix, target) for prefix, target in routes.items()]
    assert not any(errors(fib.apply([PutNextHop(BASE, box.hop(0)), *puts])))
    table, protocol = options.get("table", 254), options.get("protocol", 201)
    assert f"metric {metric6} " in run(
        f"ip -6 route show {SIX} table {table} proto {protocol}", box.name
    )
    assert fib.dump().routes == routes
    assert fib.leftovers == 0
    assert not any(errors(fib.apply(puts)))
    fib.clear()
    assert fib.dump() == FibState()
    fib.close()


def test_routes_of_another_metric_are_leftovers_in_both_families(box):
    box.fib.apply([PutNextHop(BASE, box.hop(0)), PutRoute(FOUR, BASE), PutRoute(SIX, BASE)])
    other = box.open(metric=30)
    assert other.dump().routes == {}
    assert other.remove_leftovers() == 2
    assert box.fib.dump().routes == {}
    other.close()


@pytest.mark.parametrize("resilient", [False, True])
@pytest.mark.parametrize("family", [4, 6])
def test_packets_are_forwarded_by_weight_over_links_without_ipv4_addresses(box, family, resilient):
    weights = {0: 100, 1: 100, 2: 200, 3: 400}
    members = tuple(Member(BASE + n, w) for n, w in weights.items())
    operations = [PutNextHop(BASE + n, box.hop(n)) for n in weights]
    operations += [PutGroup(GROUP, members, replace=False, resilient=resilient)]
    operations += [PutRoute(FOUR, GROUP), PutRoute(SIX, GROUP)]
    assert not any(errors(box.fib.apply(operations)))
    box.shares(family, 64)  # resolves neighbors
    wanted = about({"e0": 0.125, "e1": 0.125, "e2": 0.25, "e3": 0.5})
    assert box.shares(family, 3000) == wanted
    members = tuple(Member(BASE + n, 100) for n in (0, 1))
    box.fib.apply([PutGroup(GROUP, members, replace=True, resilient=resilient)])
    assert box.shares(family, 3000) == about({"e0": 0.5, "e1": 0.5, "e2": 0, "e3": 0})


def test_ipv4_packets_take_links_with_and_without_ipv4_addresses_at_once(box):
    run("ip address add 192.0.2.1/31 dev e0", box.name)
    run("ip address add 192.0.2.0/31 dev e0", box.far)
    hops = [(box.ifindexes[0], 4, parse_dotted("192.0.2.0"), False), box.hop(1)]
    members = (Member(BASE, 1), Member(BASE + 1, 3))
    operations = [PutNextHop(BASE + n, hop) for n, hop in enumerate(hops)]
    operations += [PutGroup(GROUP, members, replace=False), PutRoute(FOUR, GROUP)]
    assert not any(errors(box.fib.apply(operations)))
    assert box.fib.dump().nexthops == dict(enumerate(hops, BASE))
    box.shares(4, 64)
    assert box.shares(4, 3000) == about({"e0": 0.25, "e1": 0.75, "e2": 0, "e3": 0})


def test_the_kernel_bars_ipv4_next_hops_from_ipv6_routes_and_their_groups(box):
    """The simulated kernel has the same rule."""
    run("ip address add 192.0.2.1/31 dev e0", box.name)
    four = (box.ifindexes[0], 4, parse_dotted("192.0.2.0"), False)
    operations = [PutNextHop(BASE, box.hop(0)), PutNextHop(BASE + 1, four)]
    operations += [PutGroup(GROUP, (Member(BASE, 1),), replace=False), PutRoute(SIX, GROUP)]
    assert not any(errors(box.fib.apply(operations)))
    refused = [
        PutRoute(parse_prefix("2001:db8:e::/48"), BASE + 1),
        PutGroup(GROUP, (Member(BASE, 1), Member(BASE + 1, 1)), replace=True),
        PutNextHop(BASE, four),
    ]
    results = box.fib.apply(refused)
    assert errors(results) == [errno.EINVAL] * 3
    assert {r.message for r in results} == {"IPv6 routes can not use an IPv4 nexthop"}


def test_another_daemons_ipv6_route_of_the_same_metric_is_not_taken_over(box):
    run(f"ip -6 route add {SIX} via fe80::2 dev e3 proto 188 metric 20", box.name)
    results = box.fib.apply([PutNextHop(BASE, box.hop(0)), PutRoute(SIX, BASE)])
    assert errors(results) == [0, errno.EEXIST]
    assert "via fe80::2 dev e3" in run(f"ip -6 route show {SIX}", box.name)


def test_a_restart_adopts_both_families_and_withdraw_leaves_nothing(box):
    planner = PlannerOfRoutes()
    wanted = box.routes([FOUR, SIX, parse_prefix("::/0")], {0: 1000, 1: 7})
    stale = box.routes([parse_prefix("2001:db8:e::/48")], {2: 1})
    box.carry_out(planner, planner.update({**wanted, **stale}, 0.0))
    second = box.open()
    successor = PlannerOfRoutes()
    successor.adopt(second.dump())
    assert successor.update(wanted, 0.0) == []
    assert not any(errors(second.apply(successor.sweep(0.0))))
    assert second.dump().routes.keys() == wanted.keys()
    assert successor.reconcile(second.dump(), 0.0) == (0, [])
    assert not any(errors(second.apply(successor.withdraw())))
    assert second.dump() == FibState()
    second.close()


def test_what_others_delete_is_found_and_repaired_in_both_families(box):
    planner = PlannerOfRoutes()
    box.carry_out(planner, planner.update(box.routes([FOUR, SIX], {0: 1000, 1: 500}), 0.0))
    wanted = box.fib.dump()
    run(f"ip -6 route del {SIX} metric 20", box.name)
    run(f"ip route del {FOUR} metric 20", box.name)
    drift, operations = planner.reconcile(box.fib.dump(), 0.0)
    assert drift == 2
    box.carry_out(planner, operations)
    assert box.fib.dump() == wanted


def test_no_packet_is_lost_at_any_step_of_a_change(box):
    """Make before break, checked after each operation."""
    planner = PlannerOfRoutes()
    box.carry_out(planner, planner.update(box.routes([FOUR, SIX], {0: 4, 1: 4, 2: 1}), 0.0))
    for family in (4, 6):
        box.shares(family, 32)
    steps = [
        box.routes([FOUR, SIX], {0: 1}),
        box.routes([FOUR, SIX], {0: 1, 2: 9}),
        box.routes([SIX], {1: 1, 3: 1}),
        box.routes([FOUR], {3: 1}),
        box.routes([FOUR, SIX], {0: 4, 1: 4, 2: 1, 3: 8}),
    ]
    for step in steps:
        for operation in planner.update(step, 0.0):
            results = box.fib.apply([operation])
            assert errors(results) == [0]
            assert planner.results(results, 0.0) == []
            for family in (4, 6):
                box.shares(family, 8)


def test_a_lost_carrier_takes_both_families_silently_and_the_planner_follows(box):
    planner = PlannerOfRoutes()
    box.carry_out(planner, planner.update(box.routes([FOUR, SIX], {0: 10, 1: 5, 2: 2}), 0.0))
    lone = box.routes([parse_prefix("2001:db8:e::/48"), parse_prefix("198.19.0.0/16")], {2: 1})
    box.carry_out(planner, planner.update(lone, 0.0))
    full = box.fib.dump()
    run("ip link set e2 down", box.far)
    wait_for(lambda: not lone.keys() & box.fib.dump().routes.keys(), 20, "the kernel to follow")
    assert errors(box.fib.apply([PutNextHop(BASE + 99, box.hop(2))])) == [errno.ENETDOWN]
    assert planner.link_lost(box.ifindexes[2], 0.0) == []
    assert planner.reconcile(box.fib.dump(), 0.0) == (0, [])
    for family in (4, 6):
        assert box.shares(family, 200)["e2"] < 0.02
    run("ip link set e2 up", box.far)
    box.await_link(2)
    box.carry_out(planner, planner.link_restored(box.ifindexes[2], 0.0))
    assert box.fib.dump() == full


def test_a_link_taken_down_and_up_gets_its_next_hop_back_before_its_address(box):
    """Its link-local address is removed, and returns only after duplicate address detection."""
    run("sysctl -qw net.ipv6.conf.e2.accept_dad=1", box.name)
    planner = PlannerOfRoutes()
    box.carry_out(planner, planner.update(box.routes([FOUR, SIX], {0: 10, 2: 2}), 0.0))
    full = box.fib.dump()
    run("ip link set e2 down", box.name)
    assert len(box.fib.dump().nexthops) == 1
    assert "fe80" not in run("ip -6 address show dev e2", box.name)
    assert planner.link_lost(box.ifindexes[2], 0.0) == []
    run("ip link set e2 up", box.name)
    box.await_link(2)
    box.carry_out(planner, planner.link_restored(box.ifindexes[2], 0.0))
    assert box.fib.dump() == full


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("ip address flush dev e0", 0),
        ("sysctl -qw net.ipv6.conf.e0.disable_ipv6=1", errno.EACCES),
        ("ip link set e0 mtu 1279", errno.ENODEV),
    ],
)
def test_no_next_hop_goes_with_an_address_but_new_ones_may_be_refused(box, command, error):
    box.fib.apply([PutNextHop(BASE, box.hop(0)), PutRoute(FOUR, BASE), PutRoute(SIX, BASE)])
    before = box.fib.dump()
    run(command, box.name)
    assert box.fib.dump() == before
    assert errors(box.fib.apply([PutNextHop(BASE + 1, box.hop(0))])) == [error]


def test_a_neighbor_that_did_not_answer_for_some_time_is_used_again(box):
    """A member with a failed neighbor entry gets no packets that would resolve it again."""
    run("sysctl -qw net.ipv6.neigh.e1.retrans_time_ms=20", box.name)
    # A host sends router solicitations, which resolve it.
    run("sysctl -qw net.ipv6.conf.all.forwarding=1", box.far)
    run("ip address flush dev e1", box.far)
    operations = [PutNextHop(BASE + n, box.hop(n)) for n in (0, 1)]
    members = (Member(BASE, 1), Member(BASE + 1, 1))
    operations += [PutGroup(GROUP, members, replace=False), PutRoute(SIX, GROUP)]
    assert not any(errors(box.fib.apply(operations)))
    wait_for(lambda: "FAILED" in neighbor(box, "e1"), 20, "the kernel to follow")
    wait_for(lambda: "REACHABLE" in neighbor(box, "e0"), 20, "the kernel to follow")
    assert box.shares(6, 200)["e1"] < 0.1
    run("ip address add fe80::2/64 dev e1 nodad", box.far)
    wait_for(lambda: "lladdr" in neighbor(box, "e1"), 20, "the kernel to follow")
    assert box.shares(6, 3000) == about({"e0": 0.5, "e1": 0.5, "e2": 0, "e3": 0})


def test_neighbors_are_kept_as_long_as_a_next_hop_needs_them(box):
    box.fib.apply([PutNextHop(BASE + n, box.hop(n)) for n in (0, 1)])
    box.fib.apply([PutNextHop(BASE + 7, box.hop(0))])
    assert "managed" in neighbor(box, "e0")
    assert "proto 201" in neighbor(box, "e0")
    second = box.open()
    second.dump()
    second.apply([DeleteNextHop(BASE)])
    assert "managed" in neighbor(box, "e0")
    second.apply([DeleteNextHop(BASE + 7)])
    assert "managed" not in neighbor(box, "e0")
    assert "managed" in neighbor(box, "e1")
    second.close()


def test_ipv4_neighbors_are_resolved_again_as_well(box):
    """A numbered IPv4 link whose far end did not answer for some time gets its share again."""
    for n in (0, 1):
        run(f"ip address add 10.0.{n}.1/24 dev e{n}", box.name)
        run(f"sysctl -qw net.ipv4.neigh.e{n}.retrans_time_ms=20", box.name)
    run("ip address add 10.0.0.2/24 dev e0", box.far)
    # Hosts answer on any interface unless they are told not to.
    run("sysctl -qw net.ipv4.conf.all.arp_ignore=1", box.far)
    hops = [(box.ifindexes[n], 4, parse_dotted(f"10.0.{n}.2"), False) for n in (0, 1)]
    operations = [PutNextHop(BASE + n, hop) for n, hop in enumerate(hops)]
    members = (Member(BASE, 1), Member(BASE + 1, 1))
    operations += [PutGroup(GROUP, members, replace=False), PutRoute(FOUR, GROUP)]
    assert not any(errors(box.fib.apply(operations)))
    wait_for(lambda: "FAILED" in neighbor(box, "e1", "10.0.1.2"), 20, "the kernel to follow")
    wait_for(lambda: "REACHABLE" in neighbor(box, "e0", "10.0.0.2"), 20, "the kernel to follow")
    assert "managed" in neighbor(box, "e0", "10.0.0.2")
    assert box.shares(4, 200)["e1"] < 0.1
    run("ip address add 10.0.1.2/24 dev e1", box.far)
    wait_for(lambda: "lladdr" in neighbor(box, "e1", "10.0.1.2"), 20, "the kernel to follow")
    assert box.shares(4, 3000) == about({"e0": 0.5, "e1": 0.5, "e2": 0, "e3": 0})
    box.fib.apply([PutRoute(FOUR, BASE + 1), DeleteNextHop(BASE)])
    assert "managed" not in neighbor(box, "e0", "10.0.0.2")


def neighbor(box, interface: str, address: str = "fe80::2") -> str:
    return run(f"ip neighbor show to {address} dev {interface}", box.name)


def test_ten_thousand_ipv6_routes_in_one_call(box):
    prefixes = [Prefix(6, (0x20010DB8 << 96) + (n << 64), 64) for n in range(10_000)]
    operations = [PutNextHop(BASE, box.hop(0)), *(PutRoute(p, BASE) for p in prefixes)]
    assert not any(errors(box.fib.apply(operations)))
    assert box.fib.dump().routes == dict.fromkeys(prefixes, BASE)
    box.fib.clear()
    assert box.fib.dump() == FibState()
