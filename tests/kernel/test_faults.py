"""Every netlink call fails once, in every possible way: nothing ends, and the next attempt
succeeds."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from typing import Any

import pytest

from fared.core.ids import parse_dotted, parse_prefix
from fared.kernel import monitor as monitor_module
from fared.kernel import netconf, subscription
from fared.kernel.counters import LoadSource
from fared.kernel.fib import KernelFib
from fared.kernel.monitor import (
    InterfaceChanged,
    InterfaceRemoved,
    KernelMonitor,
    NotRead,
    Overflow,
)
from fared.kernel.netconf import SettingsWatch
from fared.kernel.routes import LocalRoutesChanged
from fared.paths.fib.model import FibState, Member, PutGroup, PutNextHop, PutRoute
from fared.paths.fib.settings import FibSettings
from tests.kernel.netns import Namespaces, inside, run
from tests.kernel.saboteur import FAULTS, Fault, Saboteur
from tests.waiting import loop_until

pytestmark = pytest.mark.netns
BASE, GROUP = FibSettings().id_base, FibSettings().group_base
PREFIXES = [parse_prefix(f"198.18.{n}.0/24") for n in range(3)]
MOST_CALLS = 40


class World:
    """A namespace with two links that are up, one of them shaped, and a static route."""

    def __init__(self) -> None:
        self.namespaces = Namespaces()
        self.name, far = self.namespaces.add(), self.namespaces.add()
        run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1", self.name)
        links = [self.namespaces.pair(self.name, far, f"e{n}", n)[0] for n in range(2)]
        self.hops = [(link, 4, parse_dotted(f"10.0.{n}.2"), False) for n, link in enumerate(links)]
        run("tc qdisc add dev e1 root handle 1: htb default 1", self.name)
        run("tc class add dev e1 parent 1: classid 1:1 htb rate 100mbit", self.name)
        run("ip route add 198.51.100.0/24 via 10.0.0.2", self.name)

    @property
    def operations(self) -> list[Any]:
        members = tuple(Member(BASE + n, n + 1) for n in range(2))
        return [
            *(PutNextHop(BASE + n, hop) for n, hop in enumerate(self.hops)),
            PutGroup(GROUP, members, replace=False),
            *(PutRoute(prefix, GROUP) for prefix in PREFIXES),
        ]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    yield made
    made.namespaces.close()


@pytest.fixture
def here(world: World) -> Iterator[World]:
    """The namespace, entered, so that sockets opened again are in it."""
    with inside(world.name):
        yield world


@pytest.fixture
def saboteur(monkeypatch: pytest.MonkeyPatch) -> Saboteur:
    return Saboteur(monkeypatch, subscription, netconf)


def each_call(saboteur: Saboteur, fault: Fault) -> Iterator[int]:
    """Arm the fault for the first call, the second, and so on, until an attempt has fewer calls."""
    for at in range(MOST_CALLS):
        saboteur.arm(fault, at)
        yield at
        reached = saboteur.struck
        saboteur.disarm()
        if not reached:
            assert at or fault.where == "interrupted", "the fault never struck"
            return
    raise AssertionError("calls without end")


def whole(world: World, state: FibState) -> bool:
    hops = {BASE + n: hop for n, hop in enumerate(world.hops)}
    return state.nexthops == hops and state.routes == dict.fromkeys(PREFIXES, GROUP)


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_operations_are_all_answered_and_can_be_done_again(here, saboteur, fault):
    """In the end, the neighbor entries of next hops exist too."""
    fib = KernelFib()
    try:
        for _ in each_call(saboteur, fault):
            results = fib.apply(here.operations)
            assert [result.operation for result in results] == here.operations
            saboteur.fault = None
            again = fib.apply(here.operations)
            assert [result.error for result in again] == [0] * len(again)
            assert whole(here, fib.dump())
            assert run("ip neigh show").count("managed") == len(here.hops)
            fib.clear()
            run("ip neigh flush all nud all")
    finally:
        saboteur.disarm()
        fib.clear()
        fib.close()


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_tables_that_cannot_be_read_are_read_the_next_time(here, saboteur, fault):
    """At once and in slices; only OSError is raised."""
    fib = KernelFib()
    fib.apply(here.operations)
    try:
        for _ in each_call(saboteur, fault):
            try:
                assert whole(here, fib.dump())
            except OSError:
                saboteur.fault = None
                assert whole(here, fib.dump())
        for _ in each_call(saboteur, fault):
            try:
                assert whole(here, fib.accept(await fib.read()))
            except OSError:
                saboteur.fault = None
                assert whole(here, fib.accept(await fib.read()))
    finally:
        saboteur.disarm()
        fib.clear()
        fib.close()


async def test_a_table_that_always_changes_is_accepted_when_two_dumps_agree(here, saboteur):
    """Constant changes by another program must not prevent audits of our routes."""
    fib = KernelFib()
    fib.apply(here.operations)
    (interrupted,) = [fault for fault in FAULTS if fault.where == "interrupted"]
    saboteur.arm(interrupted, 0)
    assert whole(here, fib.accept(await fib.read()))
    assert whole(here, fib.dump())
    saboteur.disarm()
    fib.clear()
    fib.close()


class Watcher:
    """A monitor and what it reported."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.monitor = KernelMonitor(self.events.append)
        self.monitor.start()
        self.monitor.watch_routes(wanted=True)
        self.links = dict(self.monitor.links)
        self.events.clear()

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_links_stay_as_they_were_until_they_can_be_read_again(
    here, saboteur, fault, monkeypatch
):
    """A failed dump loses no link, address, shaper or speed; it is repeated."""
    monkeypatch.setattr(monitor_module, "_FIRST_PAUSE", 0.001)
    watcher = Watcher()
    try:
        for _ in each_call(saboteur, fault):
            watcher.monitor.resync()
            assert watcher.monitor.links == watcher.links
            saboteur.fault = None
            await loop_until(lambda: watcher.of(Overflow))
            assert watcher.monitor.links == watcher.links
            assert not watcher.of(InterfaceChanged)
            assert not watcher.of(InterfaceRemoved)
            assert len(watcher.of(NotRead)) <= 1
            watcher.events.clear()
    finally:
        saboteur.disarm()
        watcher.monitor.close()


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_speeds_and_routes_stay_as_they_were_until_they_can_be_read_again(
    here, saboteur, fault
):
    watcher = Watcher()
    try:
        for _ in each_call(saboteur, fault):
            watcher.monitor.refresh()
            await asyncio.sleep(0.0)  # routes are read in the next turn
            saboteur.fault = None
            await loop_until(lambda: watcher.monitor._local_routes._timer is None)
            assert watcher.monitor.links == watcher.links
            assert watcher.events == []
        run("ip route replace 203.0.113.0/24 via 10.0.0.2")
        await loop_until(lambda: watcher.of(LocalRoutesChanged))
    finally:
        saboteur.disarm()
        watcher.monitor.close()
        run("ip route flush 203.0.113.0/24")


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.where == "recv"], ids=repr)
async def test_an_error_of_a_multicast_socket_is_treated_as_lost_messages(here, saboteur, fault):
    """Links and settings are read again; EAGAIN only means that there is no message."""
    watcher = Watcher()
    touched: list[list[str] | None] = []
    watch = SettingsWatch(touched.append, lambda: watcher.monitor.links)
    watch.start()
    try:
        saboteur.arm(fault, 0)
        watcher.monitor.read_links()
        saboteur.disarm()
        assert bool(watcher.of(Overflow)) is (fault.error != errno.EAGAIN)
        assert watcher.monitor.links == watcher.links
        saboteur.arm(fault, 0)
        watch._readable()
        saboteur.disarm()
        assert touched == ([None] if fault.error != errno.EAGAIN else [])
        watcher.events.clear()
        await asyncio.to_thread(run, "ip link set e0 mtu 1400", here.name)
        await loop_until(lambda: watcher.of(InterfaceChanged))
    finally:
        saboteur.disarm()
        await asyncio.to_thread(run, "ip link set e0 mtu 1500", here.name)
        watch.close()
        watcher.monitor.close()


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_loads_that_cannot_be_measured_are_measured_the_next_time(here, saboteur, fault):
    loads = LoadSource()
    loads.measure(0.0)
    now = 1.0
    try:
        for _ in each_call(saboteur, fault):
            now += 1
            try:
                loads.measure(now)
            except OSError:
                saboteur.fault = None
                now += 1
                assert {hop[0] for hop in here.hops} <= loads.measure(now).keys()
    finally:
        saboteur.disarm()
        loads.close()
