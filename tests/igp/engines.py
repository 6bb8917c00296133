"""Engines of one protocol on virtual links: no sockets, no sleeps, no threads."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from fared.core.links import Link
from fared.extensions.sim.wire import Cable, End, Frame, VirtualWire


def all_outputs(engine: Any) -> Iterator[Any]:
    """All outputs of an engine, in order."""
    while outputs := engine.take_outputs():
        yield from outputs


class Clocked:
    """One engine whose test advances the clock; subclasses say what becomes of its outputs."""

    now: float
    engine: Any

    @abstractmethod
    def take_outputs(self) -> None:
        """Take the outputs of the engine."""

    def at(self, now: float) -> None:
        """Advance the clock, with a tick at each deadline."""
        while (due := self.engine.next_deadline()) is not None and due <= now:
            self.now = max(self.now, due)
            self.engine.tick(self.now)
            self.take_outputs()
        self.now = now


@dataclass
class Node:
    """One engine and all its outputs."""

    name: int
    engine: Any
    seed: int
    settings: Any
    outputs: list[tuple[float, Any]] = field(default_factory=list)
    links: dict[int, tuple[Link, Any]] = field(default_factory=dict)
    stopped: bool = False

    def said(self, kind: type) -> list:
        """All outputs of one type."""
        return [output for _, output in self.outputs if isinstance(output, kind)]


class EngineNetwork(VirtualWire[Frame]):
    """Engines and links; ``run`` advances the clock. Subclasses define frames and events."""

    max_steps = 1_000_000
    link_event: type
    send_event: type
    kind_at: int
    kind_mask = 0xFF
    """Where in a payload the kind of packet stands, and in which bits."""

    def __init__(self, seed: int = 1, now: float = 0.0) -> None:
        super().__init__(seed, now)
        self.nodes: dict[int, Node] = {}
        self.sent: Counter[int] = Counter()
        self.trace: list[tuple[float, int, Any]] = []
        self.subnets = 0

    @abstractmethod
    def frame(self, node: Node, output: Any) -> Frame:
        """The frame on the link for an output of a node."""

    @abstractmethod
    def received(self, end: End, frame: Frame) -> Any:
        """The input event for a frame that arrives."""

    @abstractmethod
    def add(self, number: int, **settings: Any) -> Node:
        """Add a router by its number, with default settings."""

    def add_missing(self, *numbers: int) -> None:
        """Add, with default settings, the routers that do not exist yet."""
        for number in numbers:
            if number not in self.nodes:
                self.add(number)

    def link(self, number: int, link: Link, settings: Any) -> None:
        """Report a link to a node."""
        if settings is not None:
            self.nodes[number].links[link.ifindex] = (link, settings)
        self.input(number, self.link_event(link, settings))

    def change(self, number: int, ifindex: int, **changes) -> None:
        """Change the settings of an interface."""
        link, settings = self.nodes[number].links[ifindex]
        self.link(number, link, replace(settings, **changes))

    def stop(self, number: int) -> None:
        """Stop a node; it sends nothing more."""
        self.nodes[number].stopped = True

    def live(self) -> list[int]:
        """The nodes that are not stopped."""
        return [number for number, node in self.nodes.items() if not node.stopped]

    def set_up(self, cable: Cable, up: bool) -> None:
        """Set the carrier at both ends."""
        cable.cut = not up
        for number, ifindex in cable.ends:
            link, settings = self.nodes[number].links[ifindex]
            if not self.nodes[number].stopped:
                self.link(number, replace(link, up=up), settings)

    def input(self, number: int, event: Any) -> None:
        """Pass an event to a node now, and transmit the packets that it sends."""
        node = self.nodes[number]
        node.engine.handle(event, self.now)
        self.transmit(node)

    def transmit(self, node: Node) -> None:
        """Transmit what a node sends."""
        for output in all_outputs(node.engine):
            node.outputs.append((self.now, output))
            if isinstance(output, self.send_event):
                self.sent[output.payload[self.kind_at] & self.kind_mask] += 1
                self.trace.append((self.now, node.name, output))
                self.carry((node.name, output.ifindex), self.frame(node, output))

    def deliver(self, end: End, frame: Frame) -> None:
        """Deliver a frame; a stopped node receives nothing."""
        if not self.nodes[end[0]].stopped:
            self.input(end[0], self.received(end, frame))

    def deadlines(self) -> Iterator[float]:
        """The deadlines of running engines."""
        for node in self.nodes.values():
            if not node.stopped and (at := node.engine.next_deadline()) is not None:
                yield at

    def fire(self) -> None:
        """Tick the engines whose deadline has passed."""
        for node in self.nodes.values():
            at = node.engine.next_deadline()
            if at is not None and at <= self.now and not node.stopped:
                node.engine.tick(self.now)
                self.transmit(node)

    def ends_up(self) -> Counter[int]:
        """The number of neighbors that each node should have: one for each link with carrier."""
        expected: Counter[int] = Counter()
        for cable in self.cables:
            ends = [end for end in cable.ends if not self.nodes[end[0]].stopped]
            if not cable.cut and len(ends) > 1:
                expected.update(number for number, _ in ends)
        return expected
