"""Storms of packets forged in a neighbor's name, on the virtual clock, and the recovery after."""

from __future__ import annotations

import random
from functools import cache
from ipaddress import IPv4Address

import msgspec

from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.network import Network, Node
from fared.extensions.sim.port import Port
from fared.protocols.igp import events as igp
from fared.router import events
from tests.packets import forged_isis, forged_ospf
from tests.packets.forged import mutate
from tests.packets.recorded import ISIS, OSPF, load
from tests.sim.as_before import Seen, differences, seen
from tests.sim.forged_fabrics import SCENARIOS, Scenario

PATIENCE = 60.0
"""Seconds after the last packet within which everything is as before."""
_ALL_ROUTERS = int(IPv4Address("224.0.0.5"))
_ALL_ISS = 0x09002B000005


class Storm(msgspec.Struct, frozen=True):
    """What comes, and when: ``count`` packets, so many at a time, with gaps of this many seconds.

    ``forged``: the part that are forged LSAs and LSPs, of all others bytes are mutated.
    ``early``: it begins when the routers start.
    """

    count: int
    at_once: int
    gap: float
    forged: float
    early: bool


def storm_of(seed: int) -> Storm:
    """The storm of a seed."""
    rng = random.Random(seed)
    at_once = rng.choice((1, 8, 64))
    return Storm(
        rng.choice((10, 30, 100, 300, 1000)),
        at_once,
        at_once * rng.choice((0.00005, 0.0005, 0.002)),
        rng.choice((0.0, 0.5, 1.0)),
        rng.random() < 0.3,
    )


class Reference(msgspec.Struct):
    """What a scenario is without a storm: the state, what was heard, and the state after a cut."""

    before: Seen
    corpus: list[bytes]
    units: list[bytes]
    """The LSAs, or the LSPs, among these."""
    ids: list[int]
    cut: Seen


@cache
def reference(name: str) -> Reference:
    """Run a scenario without a storm: once, with a restart of R, and a cut."""
    scenario = SCENARIOS[name]
    fabric = scenario.build(Network(seed=1))
    network = fabric.network
    heard: set[bytes] = set()
    send = network._send

    def listen(node: Node, proto: str, sent: igp.SendPacket) -> None:
        heard.add(sent.payload)
        send(node, proto, sent)

    network._send = listen  # type: ignore[method-assign]
    network.start_all()
    settle(network)
    before = seen(fabric)
    network.kill(scenario.neighbor)
    network.run_for(0.5)
    network.start(scenario.neighbor)
    settle(network)
    cut(scenario, fabric)
    settle(network)
    units_of = forged_ospf.lsas_of if scenario.proto == "ospf" else forged_isis.lsps_of
    recorded = [packet.payload for packet in load(*(OSPF if scenario.proto == "ospf" else ISIS))]
    addresses = [port.address for node in network.nodes.values() for port in node.ports.values()]
    ids = [*fabric.router_ids.values(), *sorted({address for address in addresses if address})]
    corpus = recorded + sorted(heard)
    return Reference(before, corpus, units_of(corpus), ids, seen(fabric))


def settle(network: Network) -> None:
    """Wait until nothing changes any more."""
    network.run_until_quiet(120, quiet=6.0)


def cut(scenario: Scenario, fabric: Fabric) -> None:
    """A link fails."""
    if scenario.cut is not None:
        fabric.network.set_link(*scenario.cut, up=False)


class Attack:
    """One storm in one fabric."""

    def __init__(self, name: str, seed: int, storm: Storm | None = None) -> None:
        self.scenario = SCENARIOS[name]
        self.reference = reference(name)
        self.storm = storm or storm_of(seed)
        self.fabric = self.scenario.build(Network(seed=seed))
        self.network = self.fabric.network
        self.rng = random.Random(seed * 7919)
        layer = self.network.layers[self.scenario.proto]
        here = self._port(self.scenario.victim, self.scenario.neighbor)
        there = self._port(self.scenario.neighbor, self.scenario.victim)
        self._here, self._layer = here, layer
        self._source = layer.address(there)
        self._ids = self.fabric.router_ids
        self._neighbor = self._ids[self.scenario.neighbor]

    def _port(self, name: str, toward: str) -> Port:
        return self.network.find_port(name, toward)

    def run(self) -> tuple[float, list[str]]:
        """Let it pass; return the seconds until all is as before, and what is not."""
        self.network.start_all()
        if self.storm.early:
            self.network.run_for(self.rng.uniform(0.1, 3.0))
        else:
            settle(self.network)
        self.fire()
        seconds, problems = self.recovery(self.reference.before)
        if not problems:
            cut(self.scenario, self.fabric)
            _, problems = self.recovery(self.reference.cut)
            problems = [f"after a cut: {problem}" for problem in problems]
        return seconds, problems

    def fire(self) -> None:
        """Send the packets of the storm."""
        for _ in range(0, self.storm.count, self.storm.at_once):
            packets = [self.packet() for _ in range(self.storm.at_once)]
            self.network.input(self.scenario.victim, *packets)
            self.network.run_for(self.storm.gap)

    def recovery(self, before: Seen) -> tuple[float, list[str]]:
        """Wait until all is as before, and stays so for some seconds."""
        began, since = self.network.now, None
        problems: list[str] = []
        while self.network.now - began < PATIENCE:
            self.network.run_for(1.0)
            problems = differences(seen(self.fabric), before)
            if problems:
                since = None
            elif since is None:
                since = self.network.now
            elif self.network.now - since >= 5.0:
                return since - began, []
        return PATIENCE, problems

    def packet(self) -> events.To:
        proto = self.scenario.proto
        data = self._ospf() if proto == "ospf" else self._isis()
        group = _ALL_ROUTERS if proto == "ospf" else _ALL_ISS
        if self._here.segment and proto == "ospf" and self.rng.random() < 0.5:
            group = self.rng.choice((self._here.address, _ALL_ROUTERS + 1))
        return events.To(
            proto, igp.PacketReceived(self._here.ifindex, self._source, group, data, 1)
        )

    def _ospf(self) -> bytes:
        corpus, rng = self.reference.corpus, self.rng
        area = self._here.settings["ospf"].area
        if rng.random() < self.storm.forged:
            data = forged_ospf.forge(rng, self.reference.units, self.reference.ids)
        else:
            data = forged_ospf.repair(rng, mutate(rng, corpus))
            area = area if data[1] < 6 and rng.random() < 0.9 else None
        return forged_ospf.sent_by(self._neighbor.to_bytes(4, "big"), data, area)

    def _isis(self) -> bytes:
        corpus, rng = self.reference.corpus, self.rng
        systems = [value.to_bytes(6, "big") for value in self._ids.values()]
        sender = self._neighbor.to_bytes(6, "big")
        if rng.random() < self.storm.forged:
            return forged_isis.forge(rng, self.reference.units, systems, sender)
        return forged_isis.mutated(rng, mutate(rng, corpus), sender, systems)
