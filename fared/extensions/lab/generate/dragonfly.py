"""A dragonfly (Kim, Dally, Scott, Abts, ISCA 2008): groups that are full meshes, joined pairwise.

Each router has links to all others of its group, and global links to other groups. Port k of a
group leads to the group that is k + 1 further, so that all pairs of groups have as many links.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import click

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.generate.model import (
    HOST,
    Generator,
    LinkEntry,
    NodeEntry,
    Option,
    count,
    counted,
    host_links,
)


@dataclass(frozen=True)
class Dragonfly(Generator):
    """A dragonfly: groups of routers, full meshes inside, with links between all groups."""

    groups: Annotated[int, Option(click.IntRange(2, 64), "Number of groups.")] = 5
    routers: Annotated[int, Option(click.IntRange(2, 16), "Routers of each group.")] = 4
    global_links: Annotated[
        int, Option(click.IntRange(1, 16), "Links of each router to other groups, at most.")
    ] = 1
    hosts: Annotated[int, Option(click.IntRange(1, 16), "Hosts of each router.")] = 1

    def size(self) -> str:
        """Return the numbers of groups, routers and global links."""
        return (
            f"{self.groups} groups of {self.routers} routers, "
            f"{counted(self._links_of_a_pair(), 'link')} between any two groups, "
            f"{counted(self.hosts, 'host')} a router"
        )

    def remarks(self) -> str:
        """Return what names mean."""
        return "g1-r1 is router 1 of group 1."

    def all_nodes(self) -> Iterator[NodeEntry]:
        """Yield routers and hosts by group."""
        for group in count(self.groups):
            yield from (NodeEntry(f"g{group}-r{n}", "router") for n in count(self.routers))
        for group in count(self.groups):
            yield from (NodeEntry(f"g{group}-h{n}", HOST) for n in count(self.routers * self.hosts))

    def all_links(self) -> Iterator[LinkEntry]:
        """Yield the links of each group, those between groups, and those of hosts."""
        for group in count(self.groups):
            for one, other in itertools.combinations(count(self.routers), 2):
                yield LinkEntry(f"g{group}-r{one}", f"g{group}-r{other}", f"group {group}")
        for ends in self._global_links():
            yield LinkEntry(*ends, "between groups")
        for group in count(self.groups):
            yield from host_links(f"g{group}-r", f"g{group}-h", self.routers, self.hosts)

    def _global_links(self) -> Iterator[tuple[str, str]]:
        others = self.groups - 1
        for turn in range(self._links_of_a_pair()):
            for group, further in itertools.product(range(self.groups), range(others)):
                far = (group + further + 1) % self.groups
                if group < far:
                    back = others - 1 - further
                    yield (
                        self._port(group, further + turn * others),
                        self._port(far, back + turn * others),
                    )

    def _port(self, group: int, port: int) -> str:
        return f"g{group + 1}-r{port // self.global_links + 1}"

    def _links_of_a_pair(self) -> int:
        """Return how many links two groups have. Raises LabError."""
        ports = self.routers * self.global_links
        if ports < self.groups - 1:
            raise LabError(
                f"{ports} global links of a group reach {ports} others, not {self.groups - 1}: "
                "fewer groups, or more global links"
            )
        return ports // (self.groups - 1)


GENERATOR = Dragonfly
