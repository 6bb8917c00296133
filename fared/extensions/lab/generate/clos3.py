"""Figure 1 of draft-xu-lsr-fare: leaves, each linked to all spines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fared.extensions.lab.generate.model import (
    HOST,
    SIZE,
    Generator,
    LinkEntry,
    NodeEntry,
    Option,
    count,
    counted,
    host_links,
)


@dataclass(frozen=True)
class Clos3(Generator):
    """A three-stage Clos fabric: every leaf is linked to every spine.

    The default is Figure 1 of the draft.
    """

    spines: Annotated[int, Option(SIZE, "Number of spines.")] = 4
    leaves: Annotated[int, Option(SIZE, "Number of leaves.")] = 8
    hosts: Annotated[int, Option(SIZE, "Hosts of each leaf.")] = 1

    def size(self) -> str:
        """Return the numbers of spines, leaves and hosts."""
        return f"{self.spines} spines, {self.leaves} leaves, {counted(self.hosts, 'host')} a leaf"

    def all_nodes(self) -> Iterator[NodeEntry]:
        """Yield spines, leaves and hosts."""
        yield from (NodeEntry(f"S{n}", "spine") for n in count(self.spines))
        yield from (NodeEntry(f"L{n}", "leaf") for n in count(self.leaves))
        yield from (NodeEntry(f"h{n}", HOST) for n in count(self.leaves * self.hosts))

    def all_links(self) -> Iterator[LinkEntry]:
        """Yield the links of each leaf to all spines, and those of hosts."""
        for leaf in count(self.leaves):
            yield from (LinkEntry(f"S{spine}", f"L{leaf}") for spine in count(self.spines))
        yield from host_links("L", "h", self.leaves, self.hosts)


GENERATOR = Clos3
