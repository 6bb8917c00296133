"""What topologies without switches share: every node runs the daemon, and has one host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from fared.extensions.lab.generate.model import HOST, Generator, Link, Node


@dataclass(frozen=True)
class Direct(Generator):
    """Nodes, named n and more, that forward for each other, one host a node, named h and more."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the nodes."""

    @abstractmethod
    def between(self) -> Iterator[Link]:
        """Yield the links between nodes."""

    def all_nodes(self) -> Iterator[Node]:
        """Yield nodes and hosts."""
        yield from (Node(name, "node") for name in self.names())
        yield from (Node(_host(name), HOST) for name in self.names())

    def all_links(self) -> Iterator[Link]:
        """Yield the links between nodes, and those of hosts."""
        yield from self.between()
        yield from (Link(name, _host(name), "hosts") for name in self.names())


def _host(name: str) -> str:
    return f"h{name[1:]}"
