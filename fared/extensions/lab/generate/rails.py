"""The rail-optimized topology of draft-xu-lsr-fare: a network for the GPUs of each number.

A server has a NIC for each GPU; rail r joins the r-th NICs of all servers, so that collectives
between GPUs of one number stay inside it. A rail is a PoD of leaves and spines, an area of OSPF or
of level 1 of IS-IS, as in ``clos5``; planes of super-spines join the rails, which exchange less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import click

from fared.core.ids import BACKBONE
from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.generate.model import (
    HOST,
    SIZE,
    Generator,
    LinkEntry,
    NodeEntry,
    Option,
    count,
)
from fared.extensions.lab.labels import PREFIX

ALL, LEAVES, NONE = "all", "leaves", "none"
_WEIGHING = {ALL: ("leaf", "spine", "super"), LEAVES: ("leaf",), NONE: ()}
_EVEN: Mapping[str, str] = {f"{PREFIX}adaptive.enabled": "false"}
"""Labels of routers that split flows evenly."""


@dataclass(frozen=True)
class Rails(Generator):
    """A rail-optimized fabric: servers with a NIC in each rail, and planes between the rails.

    g1.3 is GPU 3 of server 1, whose NIC is in rail 3; with more GPUs than rails, GPU 1 of the next
    round is in rail 1 again. A rail of one leaf needs no spines of its own: then the spines join
    the rails. --weights leaves is what the draft says suffices.
    """

    servers: Annotated[int, Option(SIZE, "Number of servers.")] = 4
    gpus: Annotated[int, Option(SIZE, "Of each server, each with a NIC.")] = 4
    rails: Annotated[int, Option(click.IntRange(1, 100), "Number of rails.")] = 4
    leaves: Annotated[int, Option(SIZE, "Per rail.")] = 2
    spines: Annotated[int, Option(SIZE, "Per rail; also planes.")] = 2
    supers: Annotated[int, Option(SIZE, "Per plane.")] = 2
    weights: Annotated[
        str, Option(click.Choice(tuple(_WEIGHING)), "Routers that weight paths.")
    ] = ALL

    def __post_init__(self) -> None:
        """Refuse what makes no rails. Raises TopologyError."""
        if self.gpus % self.rails:
            raise TopologyError(f"{self.gpus} GPUs a server cannot be dealt to {self.rails} rails")
        if self.servers < self.leaves:
            raise TopologyError(f"{self.servers} servers leave one of {self.leaves} leaves empty")

    def size(self) -> str:
        """Return the numbers of servers and GPUs, rails and planes, and their routers."""
        servers = f"{self.servers} servers with {self.gpus} GPUs, {self.rails} rails"
        if self._single:
            return f"{servers} of one leaf, {self.spines} spines"
        return (
            f"{servers} of {self.spines} spines and {self.leaves} leaves, {self.spines} planes of "
            f"{self.supers} super-spines"
        )

    def remarks(self) -> str:
        """Return what names and areas mean, and who weights paths."""
        place = "r1-L1 is the leaf of rail 1, linked to NIC 1 of every server and to every spine."
        if not self._single:
            area = "the level-1 area 49.000r" if self.isis else "OSPF area r"
            areas = f"Rail r is {area}, the planes are {'level 2' if self.isis else 'area 0'}. "
            place = (
                f"{'' if self.bgp else areas}r1-L1 is leaf 1 of rail 1, linked to the first NICs "
                "of its servers and to the spines of its rail; r1-S1 is linked to the super-spines "
                "of plane 1, plane1-SS1 and so on."
            )
        weighing = {
            ALL: "",
            LEAVES: "Only leaves weight paths, as the draft says.",
            NONE: "No router weights paths.",
        }
        return f"GPU 3 of server 1 is g1.3, its third link. {place} {weighing[self.weights]}"

    def labels(self, group: str) -> Mapping[str, str]:
        """Return that a group does not weight paths."""
        return {} if group == HOST or group in _WEIGHING[self.weights] else _EVEN

    def all_nodes(self) -> Iterator[NodeEntry]:
        """Yield the routers between the rails, those of each rail, and servers."""
        if self._single:
            yield from (NodeEntry(f"S{n}", "spine") for n in count(self.spines))
        else:
            for plane in count(self.spines):
                yield from (NodeEntry(f"plane{plane}-SS{n}", "super") for n in count(self.supers))
        for rail in count(self.rails):
            if not self._single:
                yield from (NodeEntry(f"r{rail}-S{n}", "spine", rail) for n in count(self.spines))
            area = BACKBONE if self._single else rail
            yield from (NodeEntry(f"r{rail}-L{n}", "leaf", area) for n in count(self.leaves))
        yield from (NodeEntry(f"g{n}", HOST) for n in count(self.servers))

    def all_links(self) -> Iterator[LinkEntry]:
        """Yield the links between rails, those of each rail, and NICs server by server."""
        yield from self._between_rails()
        for rail in count(0 if self._single else self.rails):
            for leaf in count(self.leaves):
                for spine in count(self.spines):
                    yield LinkEntry(f"r{rail}-S{spine}", f"r{rail}-L{leaf}", f"rail {rail}", rail)
        for server in count(self.servers):
            leaf = (server - 1) * self.leaves // self.servers + 1
            for gpu in range(self.gpus):
                yield LinkEntry(
                    f"r{gpu % self.rails + 1}-L{leaf}", f"g{server}", f"server {server}"
                )

    def _between_rails(self) -> Iterator[LinkEntry]:
        for number in count(self.spines):
            for rail in count(self.rails):
                if self._single:
                    yield LinkEntry(f"S{number}", f"r{rail}-L1", f"spine {number}")
                    continue
                for upper in count(self.supers):
                    ends = f"plane{number}-SS{upper}", f"r{rail}-S{number}"
                    yield LinkEntry(*ends, f"plane {number}", BACKBONE)

    @property
    def _single(self) -> bool:
        return self.leaves == 1


GENERATOR = Rails
