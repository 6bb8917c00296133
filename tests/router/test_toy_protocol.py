"""A third protocol is plugged into router, runner, views and simulator without a change to them.

What it needs is in ``toy``: an engine, its settings, and the ``RoutingProtocol`` that names them.
The simulator is told besides what carries its packets and how its routers are configured.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from fared.core.ids import Prefix, ipv4_prefix
from fared.core.links import InterfaceAddress, Link
from fared.daemon.loop.burst import Burst
from fared.daemon.loop.portions import Portion
from fared.daemon.loop.runner import Runner
from fared.daemon.people.counters import counters_of
from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import Fabric, FabricBuilder, clos3
from fared.extensions.sim.network import Network
from fared.extensions.sim.port import LAYERS, over_ipv4
from fared.extensions.sim.protocols import BuildScope, OspfBuilder, Purpose
from fared.paths.fib.simulated import SimulatedFib
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.protocols import PROTOCOLS
from fared.router.router import Router
from fared.router.settings import RouterSettings
from tests.api.answers import run_view
from tests.api.seen import seen_from
from tests.router.toy import DEAD, TOY, ToySettings

SPEAKABLE = {**PROTOCOLS, "toy": TOY}
CARRIED = {**LAYERS, "toy": over_ipv4(TOY, cost=lambda _: 1)}
A, B, C = "A", "B", "C"


class ToyBuilder:
    """How a fabric's builder configures it: every router has a /24, links have no settings."""

    proto = "toy"
    ipv6 = False

    def router(self, _scope: BuildScope, name: str, router_id: int) -> ToySettings:
        return ToySettings(router_id, 0xC0A80000 | (router_id & 0xFF) << 8, hostname=name)

    def port(self, _scope: BuildScope, _purpose: Purpose) -> None:
        return None


def settled(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(30)
    return fabric


@pytest.fixture
def line() -> Fabric:
    """Three routers in a row."""
    builder = FabricBuilder(Network(layers=CARRIED), protocols=[ToyBuilder()])
    for name in (A, B, C):
        builder.router(name)
    builder.link(A, B)
    builder.link(B, C)
    return settled(builder.fabric)


def prefix(fabric: Fabric, name: str) -> Prefix:
    """The network that a router advertises."""
    return ipv4_prefix(0xC0A80000 | (fabric.router_ids[name] & 0xFF) << 8, 24)


def hops(fabric: Fabric, name: str, to: str) -> set[str] | None:
    """The neighbors that the kernel of one router sends to what is for another."""
    return {*invariants.forwarding(fabric, prefix(fabric, to)).get(name, ())} or None


def test_its_routes_reach_the_kernel_across_a_router(line):
    assert hops(line, A, C) == {B}
    assert hops(line, C, A) == {B}
    assert all(router.startup.ready for router in line.network.routers())


def test_a_lost_link_withdraws_them(line):
    line.network.set_link(B, C, up=False)
    line.network.run_until_quiet(30)
    assert hops(line, C, A) is None
    assert hops(line, A, C) is None
    assert hops(line, A, B) == {B}


def test_so_does_a_silent_neighbor(line):
    line.network.kill(C)
    line.network.run_for(DEAD + 1)
    assert hops(line, A, C) is None


def test_malformed_packets_are_counted_and_logged_by_the_process(line):
    bad = igp.PacketReceived(2, 0, 0, b"?" * 3, 1)
    line.network.input(A, *[events.To("toy", bad)] * 5)
    node = line.network.nodes[A]
    assert node.running.instances["toy"].engine.counters.errors == {"malformed": 5}
    assert [record.event for record in node.logs] == ["toy-rejected"]


def test_all_paths_of_a_fabric_are_used():
    builder = FabricBuilder(Network(layers=CARRIED), protocols=[ToyBuilder()])
    fabric = settled(clos3(2, 3, builder=builder))
    networks = {leaf: prefix(fabric, leaf) for leaf in fabric.leaf_prefixes}
    assert invariants.shortest_path_forwarding(fabric, networks) == []
    share = Fraction(1, 2)
    assert invariants.forwarding(fabric, networks["L2"])["L1"] == {"S1": share, "S2": share}


def test_it_runs_beside_ospf_and_each_takes_what_it_is_preferred_for():
    """Its preference is 90, that of OSPF 110; only OSPF knows the networks of hosts."""
    builder = FabricBuilder(Network(layers=CARRIED), protocols=[OspfBuilder(), ToyBuilder()])
    fabric = settled(clos3(1, 2, builder=builder))
    router = fabric.network.nodes["L1"].running
    assert router.preferences == {"ospf": 110, "toy": TOY.preference}
    assert router.table.source(prefix(fabric, "L2")) == "toy"
    assert router.table.source(fabric.leaf_prefixes["L2"]) == "ospf"
    assert invariants.forwarding(fabric, fabric.leaf_prefixes["L2"])["L1"] == {"S1": 1}


def test_the_views_show_it(line):
    here = seen_from(line, A)
    there = str(prefix(line, C))

    def shown(command: str, **arguments: str) -> Any:
        return run_view(here, command, arguments)

    routes = {row["prefix"]: row for row in shown("show routes")["routes"]}
    assert (routes[there]["protocol"], routes[there]["area"]) == ("toy", "net-0")
    assert shown("show topology", proto="toy")["areas"][0]["area"] == "net-0"
    assert shown("explain", prefix=there)["protocol"] == "toy"
    assert {row["proto"] for row in shown("show timers")["timers"]} >= {"toy"}
    assert shown("show neighbors")["neighbors"] == []
    edges = shown("path", source="10.255.0.1", destination="10.255.0.3")["edges"]
    assert [(edge["from"], edge["to"]) for edge in edges] == [
        ("10.255.0.1", "10.255.0.2"),
        ("10.255.0.2", "10.255.0.3"),
    ]
    counters = counters_of(here.router, sockets={}, operations={}, loads=Counter(), edge={})
    assert counters["toy"]["advertisements"]["installed"] > 0
    assert shown("show status")["routes"]["total"] == 3


def network(number: int) -> Prefix:
    return ipv4_prefix(0xC0A80000 | number << 8, 24)


def link(number: int) -> Link:
    addresses = (InterfaceAddress(4, 0x0A000000 | number, 30),)
    return Link(1, "e1", up=True, mtu=1500, addresses=addresses, speed=1e9)


class Io:
    """Sockets of one router: what is sent comes out of the peer's, a turn of the loop later."""

    def __init__(self, take: Any) -> None:
        self.open_on: set[int] = set()
        self.take = take
        self.peer: Io | None = None

    def open(self, ifindex: int, _unicasts: object = None) -> None:
        self.open_on.add(ifindex)

    def close(self, ifindex: int) -> None:
        self.open_on.discard(ifindex)

    def __contains__(self, ifindex: object) -> bool:
        return ifindex in self.open_on

    def send(self, packet: igp.SendPacket) -> None:
        assert self.peer is not None
        received = igp.PacketReceived(1, 0x0A000000, packet.destination, packet.payload, packet.ttl)
        asyncio.get_running_loop().call_soon(self.peer.take, received)


def arrive(burst: Burst, packet: igp.PacketReceived) -> None:
    """Pass on one packet, as when its socket alone is readable."""
    burst.take("toy", packet)
    burst.end()


async def test_the_runner_carries_its_packets_and_logs_its_neighbors():
    lines: list[tuple[str, dict[str, Any]]] = []

    def say(event: str, **fields: Any) -> None:
        lines.append((event, fields))

    log = SimpleNamespace(debug=say, info=say, warning=say, error=say)
    arrived = asyncio.Event()
    kernels: list[SimulatedFib] = []
    runners: dict[int, Runner] = {}
    ios: list[Io] = []

    def hand_on(number: int, portions: list[Portion], read_at: float) -> None:
        runners[number].receive(portions, read_at)
        if kernels[0].path(network(2)) and kernels[1].path(network(1)):
            arrived.set()

    for number in (1, 2):
        settings = RouterSettings({"toy": ToySettings(number, network(number).network)})
        router = Router(settings, random.Random(number), 0.0, lambda: 0.0, SPEAKABLE)
        burst = Burst(partial(hand_on, number))
        ios.append(Io(partial(arrive, burst)))
        burst.io = {"toy": ios[-1]}
        kernels.append(SimulatedFib())
        runners[number] = Runner(router, kernels[-1], {"toy": ios[-1]}, log)
    ios[0].peer, ios[1].peer = ios[1], ios[0]
    for number, runner in runners.items():
        known = events.To("toy", igp.LinkChanged(link(number), None))
        runner.feed(known, events.LinksKnown())
    async with asyncio.timeout(30):
        await arrived.wait()
    assert [io.open_on for io in ios] == [{1}, {1}]
    up = [fields for event, fields in lines if event == "neighbor-changed"]
    assert [(f["proto"], f["neighbor"], f["state"]) for f in up] == [
        ("toy", "0.0.0.1", "Up"),
        ("toy", "0.0.0.2", "Up"),
    ]
    for runner in runners.values():
        runner.stop()
