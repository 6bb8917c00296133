"""A network on the virtual clock whose routers are on tape, each in a directory of its own."""

from __future__ import annotations

import random
from pathlib import Path

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric
from fared.extensions.sim.network import Network, Node
from fared.management.recording.digests import databases_text, routes_text
from fared.management.recording.files import SegmentRing
from fared.management.recording.recording import Recording
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.router import Router
from fared.runtime import state_directory

LIMIT = 1 << 28


class TapedNetwork(Network):
    """Records every router from its first call on, or ``only`` one."""

    def __init__(self, directory: Path, seed: int, only: str | None = None) -> None:
        super().__init__(seed)
        self.directory = directory
        self.only = only
        self.recordings: dict[str, Recording] = {}

    def new_router(self, node: Node, seed: str) -> Router:
        router = super().new_router(node, seed)
        if self.only not in (None, node.name):
            return router
        ring = SegmentRing(
            self.directory / node.name, LIMIT, 100, state_directory.of_this_machine()
        )
        recording = Recording(ring, lambda: self.now)
        self.recordings[node.name] = recording
        return recording.begin_new(router, seed, self.now, 0.0)

    def kill(self, name: str) -> None:
        super().kill(name)
        self.recordings[name].ring.close()

    def next_segment(self, name: str) -> None:
        """Begin another segment of a router's recording, with its state."""
        recording = self.recordings[name]
        recording.next_segment(self.now, 0.0)
        recording.keep_state()

    def end(self) -> None:
        """End all recordings."""
        for node in self.nodes.values():
            if node.router is not None and node.name in self.recordings:
                node.router = self.recordings[node.name].end(self.now)

    def texts(self) -> dict[str, list[str]]:
        """What each router knows: databases and routes."""
        return {
            name: [databases_text(node.running, self.now), routes_text(node.running)]
            for name, node in self.nodes.items()
        }


def random_failures(fabric: Fabric, dice: random.Random, count: int) -> None:
    """Links, capacities, loads, routers and settings change at random, often close together."""
    network = fabric.network
    assert isinstance(network, TapedNetwork)
    names = list(network.nodes)
    for _ in range(count):
        a, b = dice.choice(fabric.links)
        what = dice.randrange(8)
        port = network.find_port(a, b)
        running = network.nodes[a].router is not None
        if what < 3:
            network.set_link(a, b, up=not port.admin_up)
        elif what == 3:
            network.set_capacity(a, b, DEFAULT_CAPACITY / dice.choice((1, 2, 4, 8)))
        elif what == 4 and running:
            load = DEFAULT_CAPACITY * dice.random()
            network.input(a, igp.LoadsMeasured({port.ifindex: load}))
        elif what == 5 and running:
            settings = network.nodes[a].settings
            drained = settings.drain() if dice.random() < 0.5 else settings
            network.input(a, events.RouterSettingsApplied(drained))
        elif what == 6:
            name = dice.choice(names)
            network.kill(name)
            network.run_for(dice.choice((0.0, 0.5)))
            network.start(name)
        elif what == 7:
            name = dice.choice(names)
            network.next_segment(name)
        network.run_for(dice.choice((0.0, 0.001, 0.02, 0.3, 1.5)))
    for a, b in fabric.links:
        if dice.random() < 0.8:
            network.set_link(a, b, up=True)
    network.run_for(2)
