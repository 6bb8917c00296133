"""Data centers joined by long, narrow links, as in draft-aft-ai-traffic (§2, §4.1).

Each site is a three-stage Clos fabric with border routers above its spines: an area of OSPF, or of
level 1 of IS-IS. The links between borders, the WAN, are area 0 or level 2, and have a delay.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import click

from fared.core.ids import BACKBONE
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
    rate,
    spoken_rate,
)
from fared.extensions.lab.labels import read_delay

MESH, RING = "mesh", "ring"
SITE, ONE = "site", "one"


def _delay(text: str) -> str:
    """Check a delay, which remains text. Raises BadParameter."""
    try:
        read_delay(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return text


@dataclass(frozen=True)
class Sites(Generator):
    """Sites joined by a WAN: small Clos fabrics, and links with a delay between border routers.

    Border b of a site is linked to border b of the others, of all or of its neighbors in a ring.
    """

    sites: Annotated[int, Option(click.IntRange(2, 100), "Number of sites.")] = 3
    wan: Annotated[str, Option(rate, "Of each link between sites, bit/s.")] = "50M"
    delay: Annotated[str, Option(_delay, "Of each link between sites, in each direction.")] = "20ms"
    shape: Annotated[
        str, Option(click.Choice((MESH, RING)), "Which sites are linked: all, or neighbors.")
    ] = MESH
    borders: Annotated[int, Option(SIZE, "Border routers per site.")] = 2
    spines: Annotated[int, Option(SIZE, "Per site.")] = 2
    leaves: Annotated[int, Option(SIZE, "Per site.")] = 2
    hosts: Annotated[int, Option(SIZE, "Hosts of each leaf.")] = 1
    area: Annotated[
        str, Option(click.Choice((SITE, ONE)), "An area, or level, of each site, or one for all.")
    ] = SITE

    def size(self) -> str:
        """Return the number of sites, their routers, and how they are joined."""
        borders = counted(self.borders, "border router")
        return (
            f"{self.sites} sites of {borders}, {self.spines} spines and {self.leaves} leaves, "
            f"{counted(self.hosts, 'host')} a leaf, joined to a {self.shape}"
        )

    def links(self) -> str:
        """Return the rates of sites and WAN, and the delay."""
        wan = f"links between sites {spoken_rate(self.wan)} and {self.delay}"
        return f"{wan}, every other link {spoken_rate(self.rate)}"

    def remarks(self) -> str:
        """Return the areas, and what names mean."""
        names = "s1-B1, s1-S1, s1-L1 and s1-h1 are the first border, spine, leaf, host of site 1."
        if not self._divided:
            return names
        site, wan = ("the level-1 area 49.000s", "level 2") if self.isis else ("area s", "area 0")
        return f"Site s is {site}, the links between sites are {wan}. {names}"

    def all_nodes(self) -> Iterator[NodeEntry]:
        """Yield the routers of each site, then the hosts."""
        for site in count(self.sites):
            area = self._area(site) or BACKBONE
            for letter, group, number in (
                ("B", "border", self.borders),
                ("S", "spine", self.spines),
                ("L", "leaf", self.leaves),
            ):
                yield from (NodeEntry(f"s{site}-{letter}{n}", group, area) for n in count(number))
        for site in count(self.sites):
            yield from (NodeEntry(f"s{site}-h{n}", HOST) for n in count(self.leaves * self.hosts))

    def all_links(self) -> Iterator[LinkEntry]:
        """Yield the links between sites, those in each, and those of hosts."""
        values = {"rate": self.wan, "delay": self.delay}
        for border in count(self.borders):
            for one, other in self._pairs():
                ends = f"s{one}-B{border}", f"s{other}-B{border}"
                yield LinkEntry(*ends, "between sites", self._area(BACKBONE), values)
        for site in count(self.sites):
            for spine in count(self.spines):
                for letter, number in (("B", self.borders), ("L", self.leaves)):
                    for n in count(number):
                        ends = f"s{site}-S{spine}", f"s{site}-{letter}{n}"
                        yield LinkEntry(*ends, f"site {site}", self._area(site))
        for site in count(self.sites):
            yield from host_links(f"s{site}-L", f"s{site}-h", self.leaves, self.hosts)

    def _pairs(self) -> list[tuple[int, int]]:
        """The sites that are linked."""
        if self.shape == MESH or self.sites == 2:
            return list(itertools.combinations(count(self.sites), 2))
        return [(site, site % self.sites + 1) for site in count(self.sites)]

    def _area(self, area: int) -> int | None:
        """The area of a link, unless there is only one."""
        return area if self._divided else None

    @property
    def _divided(self) -> bool:
        return self.area != ONE and not self.bgp


GENERATOR = Sites
