"""Figure 2 of draft-xu-lsr-fare: PoDs of leaves and spines, and planes of super-spines.

Each PoD is an area of OSPF or of level 1 of IS-IS; each plane joins the spines with one number, in
area 0 or level 2. The figure has 8 PoDs and 4 super-spines in each plane.
"""

from __future__ import annotations

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
)

POD, ONE = "pod", "one"
AREA = Option(click.Choice((POD, ONE)), "An area, or level, of each PoD, or one for all.")
_OSPF = (
    "PoD p is OSPF area p, with the loopbacks of its leaves; the planes, and the loopbacks of "
    "spines and super-spines, are area 0: the spines are area border routers."
)
_ISIS = (
    "PoD p is the level-1 area 49.000p, the planes are level 2. Spines are level-1-2 and leak the "
    "prefixes of other PoDs into their own, with their path capacity to each prefix."
)
_NAMES = (
    "p1-S1 is spine 1 of PoD 1, linked to every leaf of its PoD and to the super-spines of plane "
    "1, which are plane1-SS1 and so on."
)


@dataclass(frozen=True)
class Clos5(Generator):
    """A five-stage Clos fabric: PoDs of leaves and spines, joined by planes of super-spines.

    --pods 8 --supers 4 is all of the draft's Figure 2. Large fabrics whose containers all start at
    once, on few cores, require a longer hello interval, or starting daemons miss hellos.
    """

    pods: Annotated[int, Option(click.IntRange(2, 100), "Number of PoDs.")] = 2
    spines: Annotated[int, Option(SIZE, "Per PoD; also planes.")] = 4
    leaves: Annotated[int, Option(SIZE, "Per PoD.")] = 4
    supers: Annotated[int, Option(SIZE, "Per plane.")] = 2
    hosts: Annotated[int, Option(SIZE, "Hosts of each leaf.")] = 1
    area: Annotated[str, AREA] = POD

    def size(self) -> str:
        """Return the numbers of PoDs, planes and their routers."""
        return (
            f"{self.pods} PoDs of {self.spines} spines and {self.leaves} leaves, {self.spines} "
            f"planes of {self.supers} super-spines, {counted(self.hosts, 'host')} a leaf"
        )

    def remarks(self) -> str:
        """Return the areas, and what names mean."""
        areas = (_ISIS if self.isis else _OSPF) if self._divided else ""
        return f"{areas} {_NAMES}".strip()

    def all_nodes(self) -> Iterator[NodeEntry]:
        """Yield super-spines by plane, spines and leaves by PoD, and hosts."""
        for plane in count(self.spines):
            yield from (NodeEntry(f"plane{plane}-SS{n}", "super") for n in count(self.supers))
        for pod in count(self.pods):
            area = self._area(pod) or BACKBONE
            yield from (NodeEntry(f"p{pod}-S{n}", "spine", area) for n in count(self.spines))
            yield from (NodeEntry(f"p{pod}-L{n}", "leaf", area) for n in count(self.leaves))
        for pod in count(self.pods):
            yield from (NodeEntry(f"p{pod}-h{n}", HOST) for n in count(self.leaves * self.hosts))

    def all_links(self) -> Iterator[LinkEntry]:
        """Yield the links of planes, of PoDs and of hosts."""
        for plane in count(self.spines):
            for number in count(self.supers):
                for pod in count(self.pods):
                    ends = f"plane{plane}-SS{number}", f"p{pod}-S{plane}"
                    yield LinkEntry(*ends, f"plane {plane}", self._area(BACKBONE))
        for pod in count(self.pods):
            for leaf in count(self.leaves):
                for spine in count(self.spines):
                    ends = f"p{pod}-S{spine}", f"p{pod}-L{leaf}"
                    yield LinkEntry(*ends, f"PoD {pod}", self._area(pod))
        for pod in count(self.pods):
            yield from host_links(f"p{pod}-L", f"p{pod}-h", self.leaves, self.hosts)

    def _area(self, area: int) -> int | None:
        """The area of a link, unless there is only one."""
        return area if self._divided else None

    @property
    def _divided(self) -> bool:
        return self.area != ONE and not self.bgp


GENERATOR = Clos5
