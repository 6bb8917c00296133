"""A whole router without I/O, on the virtual clock: leaf 0 of a fabric, and scripted spines.

A simulated kernel takes its writes. ``spent`` counts the CPU time of the router's own calls.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from typing import Any

from bench.neighbors.fabric import AREA, RATE, Fabric
from bench.neighbors.isis import IsisSpeaker
from bench.neighbors.lsas import MTU, FabricLsas
from bench.neighbors.lsps import Lsps
from bench.neighbors.ospf import OspfSpeaker
from fared.core.ids import AreaId, RouterId, SystemId, ipv4_prefix
from fared.core.links import InterfaceAddress, Link
from fared.paths.fib.simulated import SimulatedFib
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.igp import events as igp
from fared.protocols.isis.ids import ALL_ISS, LevelSet
from fared.protocols.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.protocols.ospf.packet.lsa import Lsa
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings
from fared.router import events
from fared.router.router import Router
from fared.router.settings import RouterSettings

NEIGHBORS = 4
ALL_SPF = 0xE0000005
_BACKBONE = AreaId(0)
_SETTLE = 1.0
CALM = 30.0
"""Until weights have followed the loads of all links."""
TICK = 0.02
_LOOPBACK: dict[str, Any] = {
    "ospf": InterfaceSettings(_BACKBONE, NetworkType.LOOPBACK, passive=True),
    "isis": CircuitSettings(kind=CircuitKind.LOOPBACK, levels=LevelSet.TWO, passive=True),
}
_LINK: dict[str, Any] = {
    "ospf": InterfaceSettings(_BACKBONE, capacity=RATE),
    "isis": CircuitSettings(levels=LevelSet.TWO, capacity=RATE),
}


class Leaf:
    """Leaf 0 and its neighbors, ``speakers`` by ifindex; the first, ``server``, sends the database.

    So do the others if ``all_serve``. ``fabric`` has originated LSAs, or described LSPs.
    """

    def __init__(
        self,
        fabric: Fabric,
        mode: WeightMode = WeightMode.AVAILABLE,
        neighbors: int = NEIGHBORS,
        protocol: str = "ospf",
        *,
        all_serve: bool = False,
    ) -> None:
        self.fabric, self.protocol, self.now, self.spent = fabric, protocol, 0.0, 0.0
        self._inbox: list[igp.PacketReceived] = []
        self._kernel = SimulatedFib()
        own = fabric.leaf(0)
        settings = {
            "ospf": OspfSettings(RouterId(own), areas=(AreaSettings(_BACKBONE),)),
            "isis": IsisSettings(SystemId(fabric.system(own)), (AREA,), families=(4,)),
        }
        chosen = RouterSettings({protocol: settings[protocol]}, SolverSettings(mode=mode))
        self.router = Router(chosen, random.Random(1), 0.0, time.perf_counter)
        self._handle(events.FibAdopted(self._kernel.dump()))
        lo = Link(1, "lo", True, 65536, (InterfaceAddress(4, own, 32),), loopback=True)
        self._handle(events.To(protocol, igp.LinkChanged(lo, _LOOPBACK[protocol])))
        self.speakers = {
            10 + spine: self._neighbor(spine, serves=all_serve or not spine)
            for spine in range(neighbors)
        }
        self.server = self.speakers[10]
        self._handle(events.LinksKnown())

    def _neighbor(self, spine: int, *, serves: bool) -> Any:  # noqa: ANN401 - a speaker of either protocol
        ifindex, (theirs, mine) = 10 + spine, self.fabric.addresses((spine, 0))
        address = (InterfaceAddress(4, mine, 31),)
        link = Link(ifindex, f"s{spine}", True, MTU, address, hardware_address=ifindex)
        self._handle(events.To(self.protocol, igp.LinkChanged(link, _LINK[self.protocol])))

        def send(raw: bytes) -> None:
            self._inbox.append(self.packet(ifindex, raw))

        fabric = self.fabric
        router, device = fabric.spine(spine), fabric.leaf(0)
        speaker: Any
        if self.protocol == "ospf":
            speaker = OspfSpeaker(router, device, send, FabricLsas(fabric, serves=serves))
        else:
            ends = fabric.system(router), fabric.system(device)
            speaker = IsisSpeaker(ends, theirs, 1, send, Lsps(fabric.lsps, serves=serves))
        speaker.silent = False
        return speaker

    def packet(self, ifindex: int, raw: bytes) -> igp.PacketReceived:
        """Return a packet as received from a neighbor."""
        if self.protocol == "ospf":
            source = self.fabric.addresses((ifindex - 10, 0))[0]
            return igp.PacketReceived(ifindex, source, ALL_SPF, raw, 1)
        return igp.PacketReceived(ifindex, (1 << 40) + ifindex, ALL_ISS, raw)

    def _handle(self, event: events.Event) -> None:
        begun = time.process_time()
        self.router.handle(event, self.now)
        self.spent += time.process_time() - begun

    def run(self, seconds: float) -> None:
        """Advance the clock; hellos every five seconds."""
        until = self.now + seconds
        while self.now < until:
            self.now += TICK
            for speaker in self.speakers.values():
                if int(self.now / 5) != int((self.now - TICK) / 5):
                    speaker.hello()
                if speaker.pending:
                    speaker.push()
                speaker.burst_over()
            for packet in self.taken():  # each is a burst of its own: nothing is saved by batches
                self._handle(events.To(self.protocol, packet))
                self._take_outputs()
            begun = time.process_time()
            self.router.tick(self.now)
            self.spent += time.process_time() - begun
            self._take_outputs()

    def taken(self) -> list[igp.PacketReceived]:
        """Return what the neighbors have sent since the last time."""
        arrived, self._inbox = self._inbox, []
        return arrived

    def receive(self, packets: Sequence[igp.Received]) -> None:
        """Process packets that arrived together."""
        begun = time.process_time()
        self.router.receive(self.protocol, iter(packets), self.now)
        self.spent += time.process_time() - begun
        self._take_outputs()

    def _take_outputs(self) -> None:
        while True:
            begun = time.process_time()
            outputs = self.router.take_outputs()
            self.spent += time.process_time() - begun
            if not outputs:
                return
            for output in outputs:
                match output:
                    case events.From(_, igp.SendPacket(ifindex, _, payload)):
                        self.speakers[ifindex].receive(payload)
                    case events.ApplyFib():
                        results = tuple(self._kernel.apply(output.operations))
                        self._handle(events.FibApplied(output, results))

    def join(self, routes: int) -> float:
        """Bring up all adjacencies and learn the database; return the CPU seconds."""
        for _ in range(300):
            self.run(1.0)
            if len(self.router.table.routes) >= routes:
                break
        else:
            raise RuntimeError(f"{len(self.router.table.routes)} routes of {routes}")
        spent = self.spent
        self.run(CALM)
        return spent

    def flood(self, news: Iterable[Lsa] | Iterable[bytes]) -> float:
        """Receive LSAs, or LSPs, from the first neighbor; return the CPU ms of the router."""
        before = self.spent
        self.server.flood(news)()
        self.run(_SETTLE)
        return (self.spent - before) * 1e3

    def weights(self, leaf: int) -> dict[str, int]:
        """Next hops of the route to a leaf's network, with their weights."""
        prefix = ipv4_prefix(self.fabric.host_network(leaf), 24)
        nexthops = self.router.solver.routes[prefix].nexthops
        return {hop.interface: hop.weight for hop in nexthops.hops}
