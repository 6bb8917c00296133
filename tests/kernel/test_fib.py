"""The planner against the real kernel, in network namespaces."""

import asyncio
import errno
import socket

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix, parse_dotted, parse_prefix
from fared.kernel.fib import KernelFib
from fared.kernel.fibdump import ExpectedRoutes, FibReading, RoutePlace, holder
from fared.kernel.requests import RequestSocket
from fared.paths.fib.model import (
    DeleteGroup,
    DeleteNextHop,
    DeleteRoute,
    FibState,
    Member,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.paths.fib.planner import FibPlanner
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import DISCARD, NextHop, NextHopSet, Route
from fared.paths.ted.model import PathType
from tests.fib.helpers import PlannerOfRoutes
from tests.kernel.netns import inside, run
from tests.waiting import wait_for

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
        return {p: Route(20, PathType.INTRA_AREA, 0, hops, (1,)) for p in prefixes}

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
    """iproute2 before 6.13 shows only the low byte of weights; the test reads the dump."""
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
def test_a_weight_that_the_kernel_cannot_hold_is_refused_not_changed(box, weight):
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
    """Another daemon's route of the same prefix and metric must not be replaced."""
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
    planner = PlannerOfRoutes()
    changed = box.routes(50, {0: 1000, 1: 1000, 2: 7})
    box.carry_out(planner, planner.update(changed, 0.0))
    second = box.open()
    successor = PlannerOfRoutes()
    successor.adopt(second.dump())
    assert successor.update(changed, 0.0) == []
    assert successor.sweep(0.0) == []
    # The places are its own: a changed route replaces the one that is there.
    assert not any(errors(second.apply([PutRoute(prefix, BASE) for prefix in changed])))
    assert set(second.dump().routes.values()) == {BASE}
    second.close()


def test_what_others_delete_is_found_and_repaired(box):
    planner = PlannerOfRoutes()
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


def test_the_kernel_removes_next_hops_of_a_failed_link_and_the_planner_follows(box):
    """The kernel sends no message for it, and refuses next hops on links without carrier."""
    planner = PlannerOfRoutes()
    box.carry_out(planner, planner.update(box.routes(20, {0: 1000, 1: 500, 2: 20}), 0.0))
    single = parse_prefix("203.0.113.0/24")
    lone = Route(20, PathType.INTRA_AREA, 0, box.hops({2: 1}), (1,))
    box.carry_out(planner, planner.update({single: lone}, 0.0))
    full = box.fib.dump()
    run("ip link set e2 down", box.far)
    wait_for(lambda: single not in box.fib.dump().routes, 10, "the kernel to follow")
    assert errors(box.fib.apply([PutNextHop(BASE + 99, box.hop(2))])) == [errno.ENETDOWN]
    assert planner.link_lost(box.ifindexes[2], 0.0) == []
    assert planner.reconcile(box.fib.dump(), 0.0) == (0, [])
    run("ip link set e2 up", box.far)
    wait_for(
        lambda: not any(errors(box.fib.apply([PutNextHop(BASE + 99, box.hop(2))]))),
        10,
        "the kernel to follow",
    )
    box.fib.apply([DeleteNextHop(BASE + 99)])
    box.carry_out(planner, planner.link_restored(box.ifindexes[2], 0.0))
    assert box.fib.dump() == full


def test_an_undetected_link_failure_affects_only_its_own_next_hop(box):
    run("ip link set e1 down", box.far)
    wait_for(
        lambda: any(errors(box.fib.apply([PutNextHop(BASE + 99, box.hop(1))]))),
        10,
        "the kernel to follow",
    )
    planner = PlannerOfRoutes()
    box.carry_out(planner, planner.update(box.routes(5, {0: 9, 1: 9, 3: 9}), 0.0))
    state = box.fib.dump()
    assert len(state.routes) == 5
    assert {state.nexthops[m.nexthop_id] for g in state.groups.values() for m in g} == {
        box.hop(0),
        box.hop(3),
    }
    assert planner.next_deadline() == 1.0


def test_a_discarding_route_is_a_blackhole_that_a_successor_adopts_and_sweeps(box):
    """This is an active area range in the kernel; more specific routes take precedence."""
    wide = parse_prefix("198.18.0.0/15")
    nowhere = {wide: Route(0, PathType.INTER_AREA, 0, DISCARD, (1,))}
    planner = PlannerOfRoutes()
    changed = {**box.routes(1, {0: 1, 1: 3}), **nowhere}
    box.carry_out(planner, planner.update(changed, 0.0))
    assert run("ip route show 198.18.0.0/15", box.name).startswith("blackhole")
    with inside(box.name), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("198.18.0.1", 9))
        with pytest.raises(OSError, match="Invalid argument"):
            sender.connect(("198.18.9.1", 9))
    run("ip link set e0 down", box.far)
    wait_for(lambda: len(box.fib.dump().nexthops) < 3, 10, "the kernel to follow")
    assert wide in box.fib.dump().routes
    second = box.open()
    successor = PlannerOfRoutes()
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


def test_all_routes_of_a_group_become_discards_and_return(box):
    planner = PlannerOfRoutes()
    changed = box.routes(2, {0: 1, 1: 3})
    box.carry_out(planner, planner.update(changed, 0.0))
    nowhere = {p: replace(route, nexthops=DISCARD) for p, route in changed.items()}
    box.carry_out(planner, planner.update(nowhere, 0.0))
    assert planner.reconcile(box.fib.dump(), 0.0) == (0, [])
    with inside(box.name), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        with pytest.raises(OSError, match="Invalid argument"):
            sender.connect(("198.18.0.1", 9))
        box.carry_out(planner, planner.update(changed, 0.0))
        sender.connect(("198.18.0.1", 9))
    assert planner.reconcile(box.fib.dump(), 0.0) == (0, [])


def test_withdraw_leaves_nothing(box):
    planner = PlannerOfRoutes()
    box.carry_out(planner, planner.update(box.routes(5, {0: 9, 3: 9}), 0.0))
    assert not any(errors(box.fib.apply(planner.withdraw())))
    assert box.fib.dump() == FibState()


def test_what_a_run_with_another_metric_left_is_removed_on_request(box):
    planner = PlannerOfRoutes()
    box.carry_out(planner, planner.update(box.routes(5, {0: 9, 3: 9}), 0.0))
    other = box.open(metric=30)
    other.dump()
    assert other.leftovers == 5
    assert other.remove_leftovers() == 5
    assert box.fib.dump().routes == {}
    other.close()


async def test_a_large_table_is_read_in_slices_between_which_the_loop_goes_on(box, monkeypatch):
    """Regression: decoding 10,000 routes and 512 groups blocked the loop."""
    members = [(Member(BASE, n + 1), Member(BASE + 1, 1)) for n in range(512)]
    operations = [PutNextHop(BASE + n, box.hop(n)) for n in range(2)]
    operations += [PutGroup(GROUP + n, m, replace=False) for n, m in enumerate(members)]
    prefixes = [Prefix(4, 0x0B000000 + n, 32) for n in range(10_000)]
    operations += [PutRoute(p, GROUP + n % 512) for n, p in enumerate(prefixes)]
    assert not any(errors(box.fib.apply(operations)))
    turns = [0]

    async def next_turn() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(0)

    take = FibReading.take

    def counted(reading, kind, body) -> None:
        turns[-1] += 1
        take(reading, kind, body)

    monkeypatch.setattr(FibReading, "take", counted)
    turning = asyncio.create_task(next_turn())
    reading = await box.fib.read()
    turning.cancel()
    assert max(turns) < 1000  # what 32 KB hold
    assert reading.whole
    assert box.fib.accept(reading) == box.fib.dump()
    assert len(reading.state.routes) == 10_000
    assert len(reading.state.groups) == 512


def _many_routes(box) -> dict[Prefix, int]:
    """Routes of both families that are in the kernel, several to one network."""
    run("ip address add fd00::1/64 dev e0 nodad", box.name)
    six = (box.ifindexes[0], 6, int.from_bytes(bytes.fromhex("fd" + "00" * 14 + "02")), False)
    routes = {Prefix(4, 0x0B000000 + (n << 8), 24): BASE for n in range(2000)}
    routes |= {Prefix(6, (0xFD01 << 112) + (n << 64), 64): BASE + 1 for n in range(2000)}
    routes |= {Prefix(4, 0x0B000000, n): BASE for n in (8, 16, 25, 32)}
    routes |= {Prefix(6, 0xFD01 << 112, n): BASE + 1 for n in (16, 48, 96, 128)}
    routes |= {Prefix(4, 0, 0): BASE, Prefix(6, 0, 0): BASE + 1}
    hops = [PutNextHop(BASE, box.hop(0)), PutNextHop(BASE + 1, six)]
    done = box.fib.apply([*hops, *(PutRoute(at, of) for at, of in routes.items())])
    assert not any(errors(done))
    return routes


async def test_routes_that_are_as_expected_are_not_stored_again(box):
    expected = _many_routes(box)
    reading = await box.fib.read(expected)
    assert reading.state.routes is expected
    assert box.fib.accept(reading) == box.fib.dump()


@pytest.mark.parametrize(
    "change",
    [
        "route del 11.0.7.0/24",
        "-6 route del fd01::/96",
        f"route replace 11.0.7.0/24 metric 20 protocol 201 nhid {BASE + 1}",
        f"route add 11.0.7.1/32 metric 20 protocol 201 nhid {BASE}",
        "route replace 11.0.7.0/24 metric 20 protocol 201 via 10.0.1.2",
        "route replace blackhole 11.0.7.0/24 metric 20 protocol 188",
        f"nexthop del id {BASE}",
    ],
)
async def test_an_audit_finds_what_a_whole_reading_finds(box, change):
    expected = _many_routes(box)
    kept = dict(expected)
    run(f"ip {change}", box.name)
    state = box.fib.accept(await box.fib.read(expected))
    assert state.routes != expected
    assert state == box.fib.accept(await box.fib.read())
    assert expected == kept


async def test_a_route_that_is_lost_is_found_though_another_is_there_twice(box):
    expected = _many_routes(box)
    run("ip route del 11.0.7.0/24", box.name)
    run(f"ip route append 11.0.8.0/24 metric 20 protocol 201 nhid {BASE + 1}", box.name)
    state = box.fib.accept(await box.fib.read(expected))
    assert parse_prefix("11.0.7.0/24") not in state.routes


def test_an_expected_route_counts_once():
    below, network = Prefix(6, (1 << 128) - 1, 128), Prefix(6, 0xFF << 120, 8)
    prefixes = [Prefix(4, 0, 0), Prefix(4, 1 << 24, 25), Prefix(4, 1 << 24, 8), below, network]
    expected = ExpectedRoutes(dict.fromkeys(prefixes, BASE))
    again = [prefix for prefix in prefixes for _ in range(2)]
    assert [expected.finds(at, BASE) for at in again] == [True, False] * 5
    assert not expected.finds(
        Prefix(4, 1 << 24, 25), BASE
    )  # not in the order of the kernel's dumps
    assert expected.found == 5


async def test_a_route_that_is_taken_while_the_table_is_read_stays_expected(box):
    expected = _many_routes(box)
    reading = await box.fib.read(expected)
    run("ip route replace blackhole 11.0.7.0/24 metric 20", box.name)
    assert box.fib.taken(_route_message(box.name, "11.0.7.0/24"))
    prefix = parse_prefix("11.0.7.0/24")
    assert prefix not in box.fib.accept(reading).routes
    assert prefix in expected


def test_our_route_replaced_by_another_program_is_restored(box):
    """It was replaced, or is hidden by a route inserted before it."""
    prefix = parse_prefix("198.18.0.0/24")
    operations = [PutNextHop(BASE, box.hop(0)), PutRoute(prefix, BASE)]
    assert errors(box.fib.apply(operations)) == [0, 0]
    for how in ("replace", "prepend"):
        run(f"ip route {how} blackhole 198.18.0.0/24 metric 20", box.name)
        assert box.fib.taken(_route_message(box.name, "198.18.0.0/24"))
        assert box.fib.foreign == {prefix: 3}
        state = box.fib.dump()
        assert prefix not in state.routes
        assert state.taken == {prefix}
        assert errors(box.fib.apply([PutRoute(prefix, BASE)])) == [0]
        assert run("ip route show 198.18.0.0/24", box.name).count("198.18.0.0/24") == 1
        assert box.fib.dump().routes == {prefix: BASE}
        assert box.fib.foreign == {}


def _route_message(namespace: str, prefix: str) -> bytes:
    """The kernel's message of the first route to a prefix, without its header."""
    with inside(namespace):
        requests = RequestSocket()
    wanted = parse_prefix(prefix)
    for _, body in requests.dump(24 + 2, bytes([socket.AF_INET]) + bytes(11)):
        found = holder(body, RoutePlace(254, 201, {4: 20, 6: 20}))
        if found is not None and found[0] == wanted:
            requests.close()
            return body
    raise AssertionError(f"no route to {prefix}")


async def test_a_route_of_another_program_that_was_there_first_is_named_and_left(box):
    run("ip route add blackhole 198.18.0.0/24 metric 20 protocol 188", box.name)
    prefix = parse_prefix("198.18.0.0/24")
    results = box.fib.apply([PutNextHop(BASE, box.hop(0)), PutRoute(prefix, BASE)])
    assert errors(results) == [0, errno.EEXIST]
    assert box.fib.foreign == {prefix: None}
    box.fib.accept(await box.fib.read())
    assert box.fib.foreign == {prefix: 188}
    assert "blackhole" in run("ip route show 198.18.0.0/24", box.name)
    run("ip route del blackhole 198.18.0.0/24 metric 20", box.name)
    assert errors(box.fib.apply([PutRoute(prefix, BASE)])) == [0]
    assert box.fib.foreign == {}
