"""A k-ary fat tree (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008): a five-stage Clos fabric.

k PoDs have k/2 leaves and k/2 spines, and each leaf k/2 hosts; there are k/2 planes of k/2
super-spines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import click

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.generate.clos5 import AREA, ONE, Clos5
from fared.extensions.lab.generate.model import Generator, LinkEntry, NodeEntry, Option


@dataclass(frozen=True)
class FatTree(Generator):
    """A fat tree: switches of k ports for k^3/4 hosts, without oversubscription.

    It is the five-stage fabric whose routers all have k ports.
    """

    ports: Annotated[
        int, Option(click.IntRange(4, 16), "Ports of each router, an even number.")
    ] = 4
    area: Annotated[str, AREA] = ONE

    def size(self) -> str:
        """Return k, and what follows from it."""
        return f"routers of {self.ports} ports, {self._clos.size()}"

    def remarks(self) -> str:
        """Return those of the five-stage fabric."""
        return self._clos.remarks()

    def all_nodes(self) -> Iterator[NodeEntry]:
        """Yield those of the five-stage fabric."""
        return self._clos.all_nodes()

    def all_links(self) -> Iterator[LinkEntry]:
        """Yield those of the five-stage fabric."""
        return self._clos.all_links()

    @property
    def _clos(self) -> Clos5:
        if self.ports % 2:
            raise LabError(f"routers of a fat tree have an even number of ports, not {self.ports}")
        half = self.ports // 2
        return Clos5(self.ports, half, half, half, half, self.area, protocol=self.protocol)


GENERATOR = FatTree
