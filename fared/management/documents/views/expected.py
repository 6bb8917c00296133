"""Links and neighbors that the configuration expects: those that are there, and those that are not.

A protocol expects an interface to be up and to have a neighbor if its section names it, or a glob
there selects it, and it is neither passive nor a loopback. A neighbor whose adjacency has ended is
expected until another one is adjacent, on a point-to-point link; on a LAN, where routers come and
go, for a day. An interface that only a glob selects and the kernel no longer has is expected for a
day, too. All end when the configuration no longer selects the interface.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import msgspec

from fared.core.ids import format_node
from fared.core.lost_neighbors import LostNeighbor
from fared.management.documents.census import Census
from fared.management.documents.context import ViewContext
from fared.management.documents.views.missing import absent

DAY = 86_400.0


class ExpectedNeighbor(msgspec.Struct, frozen=True):
    """``neighbor``: router id or system id; empty: none was met since the start."""

    interface: str
    neighbor: str
    proto: str
    up: bool


class Expected(msgspec.Struct, frozen=True):
    """``links``: whether each is up, by name."""

    links: Mapping[str, bool]
    neighbors: tuple[ExpectedNeighbor, ...]


def expected(context: ViewContext, censuses: Mapping[str, Census]) -> Expected:
    """Return what the protocols expect, each with its census."""
    up = {link.name: link.up for link in context.links.values()}
    lost = context.runtime.lost_neighbors.by_place()
    links: dict[str, bool] = {}
    neighbors: list[ExpectedNeighbor] = []
    for proto, census in censuses.items():
        gone = {name: known for (of, name), known in lost.items() if of == proto}
        removed = _removed(context, proto, census, gone)
        for name in dict.fromkeys(chain(census.links, absent(context, proto), removed)):
            links[name] = up.get(name, False)
            known = {**_lost(context, census, name, gone.get(name, [])), **census.on(name)}
            neighbors += [
                ExpectedNeighbor(name, neighbor, proto, adjacent)
                for neighbor, adjacent in (known or {"": False}).items()
            ]
    return Expected(links, tuple(neighbors))


def _removed(
    context: ViewContext, proto: str, census: Census, gone: Mapping[str, list[LostNeighbor]]
) -> Iterator[str]:
    """Yield the interfaces that a glob selects and that the kernel lost with their neighbor."""
    section = context.config.protocols.get(proto)
    for name, known in gone.items():
        selected = None if section is None else section.interface(name)
        lately = context.wall - known[-1].at < DAY
        if lately and selected and selected[1].expects_neighbors and name not in census.others:
            yield name


def _lost(
    context: ViewContext, census: Census, name: str, gone: list[LostNeighbor]
) -> dict[str, bool]:
    """Return the neighbors that have left an interface and are still expected there."""
    if name in census.links and census.links[name].broadcast:
        return {format_node(one.node): False for one in gone if context.wall - one.at < DAY}
    if not gone or any(census.on(name).values()):
        return {}
    return {format_node(gone[-1].node): False}
