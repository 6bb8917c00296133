"""The planner against the real kernel, in network namespaces."""

import dataclasses
import errno
import socket
import time

import pytest

from fared.core.ids import Prefix, parse_dotted, parse_prefix
from fared.fib.model import (
    DeleteGroup,
    DeleteNextHop,
    DeleteRoute,
    FibState,
    Member,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.fib.planner import FibPlanner
from fared.fib.settings import FibSettings
from fared.kernel.fib import KernelFib
from fared.rib.model import DISCARD, NextHop, NextHopSet, Route
from fared.ted.model import PathType
from tests.kernel.netns import inside, run

pytestmark = pytest.mark.netns
BASE = FibSettings().id_base
GROUP = FibSettings().group_base


class Box:
    """A namespace with four links, each with a neighbour at .2, and its FIB."""

    def __init__(self, namespaces, **options) -> None:
        self.name, self.far = namespaces.add(), namespaces.add()
        pairs = [namespaces.pair(self.name, self.far, f"e{n}", n) for n in range(4)]
        self.ifindexes = [left for left, _ in pairs]
        self.fib = self.open(**options)

    def open(self, **options) -> KernelFib:
        with inside(self.name):
            return KernelFib(**options)

    def hop(self, n: int):
        return (self.ifindexes[n], 4, parse_dotted(f"10.0.{n}.2"), False)

    def hops(self, weights: dict[int, int]) -> NextHopSet:
        return NextHopSet(
            tuple(
                NextHop(i, "e", family, gateway, 1, None, None, weight)
                for (i, family, gateway, _), weight in sorted(
                    (self.hop(n), w) for n, w in weights.items()
                )
            )
        )

    def routes(self, count: int, weights: dict[int, int]):
        hops = self.hops(weights)
        prefixes = [Prefix(4, 0xC6120000 + (n << 8), 24) for n in range(count)]
        return {p: Route(p, 20, PathType.INTRA_AREA, 0, hops, (1,)) for p in prefixes}

    def carry_out(self, planner: FibPlanner, operations, fib=None):
        done = list(operations)
        while operations:
            operations = planner.results((fib or self.fib).apply(operations), 0.0)
            done += operations
        return done


@pytest.fixture
def box(namespaces):
    made = Box(namespaces)
    yield made
    made.fib.close()


def errors(results):
    return [r.error for r in results]


def test_what_is_written_is_read_back_with_16_bit_weights(box):
    """iproute2 before 6.13 shows only the low byte of weights, so the dump is the witness."""
    members = tuple(Member(BASE + n, w) for n, w in enumerate((1, 256, 1000, 65535)))
    prefix = parse_prefix("198.18.0.0/24")
    operations = [PutNextHop(BASE + n, box.hop(n)) for n in range(4)]
    operations += [PutGroup(GROUP, members, replace=False), PutRoute(prefix, GROUP)]
    assert errors(box.fib.apply(operations)) == [0] * 6
    state = box.fib.dump()
    assert state.nexthops == {BASE + n: box.hop(n) for n in range(4)}
    assert state.groups == {GROUP: members}
    assert state.routes == {prefix: GROUP}
    assert "proto 201 metric 20" in run("ip route show 198.18.0.0/24", box.name)


@pytest.mark.parametrize("weight", [0, -1, 65536, 70000])
def test_a_weight_the_kernel_cannot_hold_is_refused_not_bent(box, weight):
    nexthop = PutNextHop(BASE, box.hop(0))
    results = box.fib.apply([nexthop, PutGroup(GROUP, (Member(BASE, weight),), replace=False)])
    assert errors(results) == [0, errno.EINVAL]
    assert "weight" in results[1].message


def test_resilient_groups_are_created_and_rewritten_in_place(box):
    nexthops = [PutNextHop(BASE + n, box.hop(n)) for n in range(2)]
    first = (Member(BASE, 3), Member(BASE + 1, 1))
    second = (Member(BASE, 3), Member(BASE + 1, 300))
    create = PutGroup(GROUP, first, replace=False, resilient=True)
    replace = PutGroup(GROUP, second, replace=True, resilient=True)
    assert errors(box.fib.apply([*nexthops, create, replace])) == [0] * 4
    state = box.fib.dump()
    assert state.groups == {GROUP: second}
    assert state.resilient == {GROUP}
    text = run(f"ip nexthop show id {GROUP}", box.name)
    assert "buckets 512 idle_timer 0 unbalanced_timer 0" in text


def test_ipv6_routes_and_routes_in_a_numbered_table(box):
    fib = box.open(table=1000, metric=7)
    run("ip address add fd00::1/64 dev e0 nodad", box.name)
    hop = (box.ifindexes[0], 6, int.from_bytes(bytes.fromhex("fd" + "00" * 14 + "02")), False)
    operations = [
        PutNextHop(BASE, hop),
        PutRoute(parse_prefix("fd01::/64"), BASE),
        PutRoute(parse_prefix("0.0.0.0/0"), BASE),
    ]
    results = fib.apply(operations)
    assert errors(results) == [0, 0, 0]
    assert fib.dump().routes == {
        parse_prefix("fd01::/64"): BASE,
        parse_prefix("0.0.0.0/0"): BASE,
    }
    fib.clear()
    assert fib.dump() == FibState()
    fib.close()


def test_an_error_belongs_to_its_operation_and_does_not_stop_the_rest(box):
    good, bad = parse_prefix("198.18.1.0/24"), parse_prefix("198.18.2.0/24")
    results = box.fib.apply(
        [
            PutNextHop(BASE, box.hop(0)),
            PutGroup(GROUP, (Member(BASE + 9, 1),), replace=False),
            PutRoute(bad, GROUP),
            PutRoute(good, BASE),
            DeleteRoute(bad),
            DeleteGroup(GROUP),
            DeleteNextHop(BASE + 5),
        ]
    )
    assert errors(results) == [
        0,
        errno.EINVAL,
        errno.EINVAL,
        0,
        errno.ESRCH,
        errno.ENOENT,
        errno.ENOENT,
    ]
    assert "exist" in results[2].message
    assert box.fib.dump().routes == {good: BASE}


def test_routes_and_next_hops_of_others_are_neither_read_nor_touched(box):
    """Another daemon's route of the same prefix and metric must not be taken over."""
    run("ip route add 198.18.0.0/24 via 10.0.0.2 proto 188 metric 20", box.name)
    run(f"ip nexthop add id {BASE} via 10.0.0.2 dev e0 proto 188", box.name)
    run("ip nexthop add id 5 via 10.0.0.2 dev e0 proto 188", box.name)
    state = box.fib.dump()
    assert state == FibState(reserved={BASE})
    prefix = parse_prefix("198.18.0.0/24")
    results = box.fib.apply([PutNextHop(BASE + 1, box.hop(1)), PutRoute(prefix, BASE + 1)])
    assert errors(results) == [0, errno.EEXIST]
    assert "via 10.0.0.2" in run("ip route show 198.18.0.0/24", box.name)


def test_ten_thousand_routes_in_one_call(box):
    prefixes = [Prefix(4, 0x0B000000 + n, 32) for n in range(10_000)]
    operations = [PutNextHop(BASE, box.hop(0)), *(PutRoute(p, BASE) for p in prefixes)]
    assert not any(errors(box.fib.apply(operations)))
    assert box.fib.dump().routes == dict.fromkeys(prefixes, BASE)
    again = [PutRoute(p, BASE) for p in prefixes]
    assert not any(errors(box.fib.apply(again)))
    assert not any(errors(box.fib.apply([DeleteRoute(p) for p in prefixes])))
    assert box.fib.dump().routes == {}


def test_a_second_process_adopts_and_writes_nothing(box):
    planner = FibPlanner()
    changed = box.routes(50, {0: 1000, 1: 1000, 2: 7})
    box.carry_out(planner, planner.update(changed, 0.0))
    second = box.open()
    successor = FibPlanner()
    successor.adopt(second.dump())
    assert successor.update(changed, 0.0) == []
    assert successor.sweep(0.0) == []
    second.close()


def test_what_others_delete_is_found_and_repaired(box):
    planner = FibPlanner()
    box.carry_out(planner, planner.update(box.routes(20, {0: 1000, 1: 500}), 0.0))
    wanted = box.fib.dump()
    assert planner.reconcile(wanted, 0.0) == (0, [])
    run("ip route del 198.18.3.0/24 metric 20", box.name)
    drift, operations = planner.reconcile(box.fib.dump(), 0.0)
    assert drift == 1
    box.carry_out(planner, operations)
    assert box.fib.dump() == wanted
    run("ip nexthop flush proto 201", box.name)
    drift, operations = planner.reconcile(box.fib.dump(), 0.0)
    assert drift == 23
    box.carry_out(planner, operations)
    repaired = box.fib.dump()
    assert repaired.routes.keys() == wanted.routes.keys()
    assert list(repaired.groups.values()) == list(wanted.groups.values())


def test_the_kernel_forgets_a_dead_link_and_the_planner_follows(box):
    """Kernel, silently: next hop gone, groups shrunk; refused while the carrier is down."""
    planner = FibPlanner()
    box.carry_out(planner, planner.update(box.routes(20, {0: 1000, 1: 500, 2: 20}), 0.0))
    single = parse_prefix("203.0.113.0/24")
    lone = Route(single, 20, PathType.INTRA_AREA, 0, box.hops({2: 1}), (1,))
    box.carry_out(planner, planner.update({single: lone}, 0.0))
    full = box.fib.dump()
    run("ip link set e2 down", box.far)
    _until(lambda: single not in box.fib.dump().routes)
    assert errors(box.fib.apply([PutNextHop(BASE + 99, box.hop(2))])) == [errno.ENETDOWN]
    assert planner.link_lost(box.ifindexes[2], 0.0) == []
    assert planner.reconcile(box.fib.dump(), 0.0) == (0, [])
    run("ip link set e2 up", box.far)
    _until(lambda: not any(errors(box.fib.apply([PutNextHop(BASE + 99, box.hop(2))]))))
    box.fib.apply([DeleteNextHop(BASE + 99)])
    box.carry_out(planner, planner.link_restored(box.ifindexes[2], 0.0))
    assert box.fib.dump() == full


def test_a_link_that_died_unnoticed_costs_only_its_own_next_hop(box):
    run("ip link set e1 down", box.far)
    _until(lambda: any(errors(box.fib.apply([PutNextHop(BASE + 99, box.hop(1))]))))
    planner = FibPlanner()
    box.carry_out(planner, planner.update(box.routes(5, {0: 9, 1: 9, 3: 9}), 0.0))
    state = box.fib.dump()
    assert len(state.routes) == 5
    assert {state.nexthops[m.nexthop_id] for g in state.groups.values() for m in g} == {
        box.hop(0),
        box.hop(3),
    }
    assert planner.next_deadline() == 1.0


def test_a_discarding_route_is_a_blackhole_that_a_successor_adopts_and_sweeps(box):
    """What an active area range is in the kernel: more specific routes still count."""
    wide = parse_prefix("198.18.0.0/15")
    nowhere = {wide: Route(wide, 0, PathType.INTER_AREA, 0, DISCARD, (1,))}
    planner = FibPlanner()
    changed = {**box.routes(1, {0: 1, 1: 3}), **nowhere}
    box.carry_out(planner, planner.update(changed, 0.0))
    assert run("ip route show 198.18.0.0/15", box.name).startswith("blackhole")
    with inside(box.name), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("198.18.0.1", 9))
        with pytest.raises(OSError, match="Invalid argument"):
            sender.connect(("198.18.9.1", 9))
    run("ip link set e0 down", box.far)
    _until(lambda: len(box.fib.dump().nexthops) < 3)
    assert wide in box.fib.dump().routes
    second = box.open()
    successor = FibPlanner()
    successor.adopt(second.dump())
    assert successor.update(nowhere, 0.0) == []
    box.carry_out(successor, successor.sweep(0.0), second)
    state = second.dump()
    assert list(state.nexthops.values()) == [(0, 4, 0, False)]
    assert list(state.routes) == [wide]
    assert successor.reconcile(state, 0.0) == (0, [])
    box.carry_out(successor, successor.update({wide: None}, 0.0), second)
    box.carry_out(successor, successor.tick(60.0), second)
    assert second.dump() == FibState()
    second.close()


def test_a_group_whose_users_all_come_to_discard_and_back(box):
    planner = FibPlanner()
    changed = box.routes(2, {0: 1, 1: 3})
    box.carry_out(planner, planner.update(changed, 0.0))
    nowhere = {p: dataclasses.replace(route, nexthops=DISCARD) for p, route in changed.items()}
    box.carry_out(planner, planner.update(nowhere, 0.0))
    assert planner.reconcile(box.fib.dump(), 0.0) == (0, [])
    with inside(box.name), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        with pytest.raises(OSError, match="Invalid argument"):
            sender.connect(("198.18.0.1", 9))
        box.carry_out(planner, planner.update(changed, 0.0))
        sender.connect(("198.18.0.1", 9))
    assert planner.reconcile(box.fib.dump(), 0.0) == (0, [])


def test_withdraw_leaves_nothing(box):
    planner = FibPlanner()
    box.carry_out(planner, planner.update(box.routes(5, {0: 9, 3: 9}), 0.0))
    assert not any(errors(box.fib.apply(planner.withdraw())))
    assert box.fib.dump() == FibState()


def test_what_a_run_with_another_metric_left_is_removed_on_request(box):
    planner = FibPlanner()
    box.carry_out(planner, planner.update(box.routes(5, {0: 9, 3: 9}), 0.0))
    other = box.open(metric=30)
    other.dump()
    assert other.leftovers == 5
    assert other.remove_leftovers() == 5
    assert box.fib.dump().routes == {}
    other.close()


def _until(condition) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not happen within 10 s"
