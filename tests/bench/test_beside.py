"""The synthetic fabric of the benchmark behaves as a real one: speakers, LSAs, LSPs, events."""

import random
import time

import pytest

from bench.beside import _prepare
from bench.beside_fabric import AREA, RATE, Fabric
from bench.beside_speakers import IsisSpeaker, OspfSpeaker
from fared.core.ids import AreaId, RouterId, SystemId, ipv4_prefix
from fared.core.links import InterfaceAddress, Link
from fared.paths.fib.simulated import SimulatedFib
from fared.protocols.igp import events as igp
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings
from fared.router import events
from fared.router.router import Router
from fared.router.settings import RouterSettings

SPINES, LEAVES = 3, 5
CIRCUIT = CircuitSettings(levels=LevelSet.TWO, capacity=RATE)
LOOPBACK = CircuitSettings(kind=CircuitKind.LOOPBACK, levels=LevelSet.TWO, passive=True)


class Leaf:
    """Leaf 0, a real router, and speakers for all spines, on a clock of its own."""

    def __init__(self, protocol: str) -> None:
        self.protocol, self.now = protocol, 0.0
        self.fabric = Fabric(SPINES, LEAVES, te=True)
        self.fabric.originate()
        self.fabric.describe()
        self.inbox = []
        self.kernel = SimulatedFib()
        own = self.fabric.leaf(0)
        system = SystemId(self.fabric.system(own))
        settings = {
            "ospf": OspfSettings(RouterId(own), areas=(AreaSettings(AreaId(0)),)),
            "isis": IsisSettings(system, (AREA,), families=(4,)),
        }
        chosen = RouterSettings({protocol: settings[protocol]})
        self.router = Router(chosen, random.Random(1), 0.0, time.perf_counter)
        self.router.handle(events.FibAdopted(self.kernel.dump()), 0.0)
        self._link(Link(1, "lo", True, 65536, (InterfaceAddress(4, own, 32),), loopback=True))
        self.speakers = {10 + spine: self._speaker(spine) for spine in range(SPINES)}
        self.server = self.speakers[10]
        self.router.handle(events.LinksKnown(), 0.0)

    def _link(self, link: Link) -> None:
        area = AreaId(0)
        if self.protocol == "isis":
            change = igp.LinkChanged(link, LOOPBACK if link.loopback else CIRCUIT)
        elif link.loopback:
            loopback = InterfaceSettings(area, NetworkType.LOOPBACK, passive=True)
            change = igp.LinkChanged(link, loopback)
        else:
            change = igp.LinkChanged(link, InterfaceSettings(area, capacity=RATE))
        self.router.handle(events.To(self.protocol, change), 0.0)

    def _speaker(self, spine: int):
        ifindex, (theirs, mine) = 10 + spine, self.fabric.addresses((spine, 0))
        address = (InterfaceAddress(4, mine, 31),)
        self._link(Link(ifindex, f"s{spine}", True, 9000, address, hardware_address=ifindex))
        router, serves = self.fabric.spine(spine), spine == 0
        if self.protocol == "ospf":

            def send(raw: bytes) -> None:
                self.inbox.append(igp.PacketReceived(ifindex, theirs, 0xE0000005, raw, 1))

            speaker = OspfSpeaker(router, send, self.fabric.lsas, serves=serves)
        else:

            def send(raw: bytes) -> None:
                self.inbox.append(igp.PacketReceived(ifindex, 1, 0, raw))

            system = self.fabric.system(router)
            speaker = IsisSpeaker(system, theirs, 1, send, self.fabric.lsps, serves=serves)
        speaker.silent = False
        return speaker

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += 0.05
            for speaker in self.speakers.values():
                if round(self.now * 20) % 100 == 0:
                    speaker.hello()
                if speaker.pending:
                    speaker.push()
            arrived, self.inbox = self.inbox, []
            for event in arrived:
                self.router.handle(events.To(self.protocol, event), self.now)
            self.router.tick(self.now)
            while outputs := self.router.drain():
                for output in outputs:
                    self._carry_out(output)

    def _carry_out(self, output) -> None:
        match output:
            case events.From(_, igp.SendPacket(ifindex, _, payload)):
                self.speakers[ifindex].receive(payload)
            case events.ApplyFib():
                results = tuple(self.kernel.apply(output.operations))
                self.router.handle(events.FibApplied(output, results), self.now)

    def weights(self, leaf: int) -> dict[str, int]:
        """Next hops of the route to a leaf's network, with their weights."""
        prefix = ipv4_prefix(self.fabric.host_network(leaf), 24)
        nexthops = self.router.solver.routes[prefix].nexthops
        return {hop.interface: hop.weight for hop in nexthops.hops}

    def happens(self, kind: str, link: tuple[int, int]) -> None:
        _prepare(self, kind, link)()
        self.run(1)


@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_a_leaf_learns_the_fabric_and_follows_every_event(protocol):
    leaf = Leaf(protocol)
    leaf.run(16)
    assert all(speaker.full for speaker in leaf.speakers.values())
    even = leaf.weights(4)
    assert sorted(even) == ["s0", "s1", "s2"]
    assert len(set(even.values())) == 1

    leaf.happens("cut", (1, 4))
    assert sorted(leaf.weights(4)) == ["s0", "s2"]
    leaf.happens("restore", (1, 4))
    assert leaf.weights(4) == even
    leaf.happens("metric", (2, 4))
    assert sorted(leaf.weights(4)) == ["s0", "s1"]
    leaf.happens("metric back", (2, 4))
    leaf.happens("capacity", (1, 4))
    slow = leaf.weights(4)
    assert slow["s1"] * 2 == slow["s0"] == slow["s2"]
    assert leaf.weights(3) == even
    leaf.happens("capacity back", (1, 4))
    assert leaf.weights(4) == even
