"""What topologies without switches share: every node runs the daemon, and has one host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from fared.extensions.lab.generate.model import HOST, Generator, LinkEntry, NodeEntry


@dataclass(frozen=True)
class Direct(Generator):
    """Nodes, named n and more, that forward for each other, one host a node, named h and more."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the nodes."""

    @abstractmethod
    def between(self) -> Iterator[LinkEntry]:
        """Yield the links between nodes."""

    def all_nodes(self) -> Iterator[NodeEntry]:
        """Yield nodes and hosts."""
        yield from (NodeEntry(name, "node") for name in self.names())
        yield from (NodeEntry(_host(name), HOST) for name in self.names())

    def all_links(self) -> Iterator[LinkEntry]:
        """Yield the links between nodes, and those of hosts."""
        yield from self.between()
        yield from (LinkEntry(name, _host(name), "hosts") for name in self.names())


def _host(name: str) -> str:
    return f"h{name[1:]}"
