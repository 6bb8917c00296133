"""Two domains, OSPF and IS-IS, and borders between them that redistribute in both directions.

x1 - a - x2            x1, x2, a: OSPF
 |  \\ /  |
 b1     b2             both protocols
 |  / \\  |
y1 - c - y2            y1, y2, c: IS-IS

A third border, b3, is linked to a, x1, c and y2.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from fared.core.ids import Prefix
from fared.core.routes import ORIGIN_TAGS, RouteSource
from fared.extensions.sim.fabric import GIGABIT, Fabric, FabricBuilder
from fared.extensions.sim.levels import COMMON
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, OspfBuilder
from fared.protocols.isis import settings as isis
from fared.protocols.isis.ids import LevelSet
from fared.protocols.ospf import settings as ospf
from fared.router.events import RouterSettingsApplied

OSPF_ROUTERS, BORDERS, ISIS_ROUTERS = ("a", "x1", "x2"), ("b1", "b2", "b3"), ("c", "y1", "y2")
OSPF_LINKS = (("x1", "a"), ("x2", "a"), ("b1", "x1"), ("b1", "x2"), ("b2", "x1"), ("b2", "x2"))
OSPF_LINKS += (("b3", "a"), ("b3", "x1"))
ISIS_LINKS = (("y1", "c"), ("y2", "c"), ("b1", "y1"), ("b1", "y2"), ("b2", "y1"), ("b2", "y2"))
ISIS_LINKS += (("b3", "c"), ("b3", "y2"))
REFUSED_BY_OSPF = (ORIGIN_TAGS[RouteSource.OSPF],)
REFUSED_BY_ISIS = (ORIGIN_TAGS[RouteSource.ISIS],)
INTO_OSPF = ospf.Redistribution(tag=None, refused=REFUSED_BY_OSPF)
STATIC_IN_OSPF = ospf.Redistribution()
STATIC_IN_ISIS = isis.Redistribution(LevelSet.TWO)
INTO_ISIS = isis.Redistribution(LevelSet.TWO, tag=None, refused=REFUSED_BY_ISIS)


def two_domains(
    seed: int = 1,
    *,
    preferences: Iterable[dict[str, int]] = ({}, {}),
    capacity: float = 100 * GIGABIT,
) -> Fabric:
    """The fabric, not started; every router has a leaf network behind a passive interface.

    ``preferences`` are those of each border, of which there are as many. Static routes are
    redistributed everywhere.
    """
    builder, preferred = FabricBuilder(Network(seed=seed)), [*preferences]
    borders = BORDERS[: len(preferred)]
    both = OspfBuilder(), IsisBuilder(COMMON)
    for protocols, names in (
        (both[:1], OSPF_ROUTERS),
        (both, borders),
        (both[1:], ISIS_ROUTERS),
    ):
        builder.speak(*protocols)
        for name in names:
            builder.router(name)
    for protocol, links in zip(both, (OSPF_LINKS, ISIS_LINKS), strict=True):
        builder.speak(protocol)
        for ends in links:
            if builder.fabric.network.nodes.keys() >= {*ends}:
                builder.link(*ends, capacity)
        for name in OSPF_ROUTERS if protocol is both[0] else ISIS_ROUTERS:
            builder.leaf(name, ())
    fabric = builder.fabric
    for name, known in zip(borders, preferred, strict=True):
        node = fabric.network.nodes[name]
        node.settings = replace(node.settings, preferences=known)
        configure(fabric, name, INTO_OSPF, INTO_ISIS)
    for name in OSPF_ROUTERS:
        _static(fabric, name, "ospf", ospf.RedistributeSettings(static=STATIC_IN_OSPF))
    for name in ISIS_ROUTERS:
        _static(fabric, name, "isis", isis.RedistributeSettings(static=STATIC_IN_ISIS))
    return fabric


def _static(fabric: Fabric, name: str, proto: str, settings: object) -> None:
    node = fabric.network.nodes[name]
    node.settings = node.settings.with_protocol(proto, redistribute=settings)


def configure(
    fabric: Fabric,
    name: str,
    into_ospf: ospf.Redistribution | None,
    into_isis: isis.Redistribution | None,
) -> None:
    """What a border redistributes, before or after its start."""
    node = fabric.network.nodes[name]
    node.settings = node.settings.with_protocol(
        "ospf", redistribute=ospf.RedistributeSettings(static=STATIC_IN_OSPF, isis=into_ospf)
    ).with_protocol(
        "isis", redistribute=isis.RedistributeSettings(static=STATIC_IN_ISIS, ospf=into_isis)
    )
    if node.router is not None:
        fabric.network.input(name, RouterSettingsApplied(node.settings))


def started(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    quiet(fabric)
    return fabric


def quiet(fabric: Fabric) -> None:
    """Wait longer than any throttle. Raises TimeoutError if it does not become quiet."""
    fabric.network.run_until_quiet(60, quiet=6.0)


def hops(fabric: Fabric, name: str, prefix: Prefix) -> dict[str, int] | None:
    """Whom a router sends to, with weights, as the kernel has it; None without a route."""
    node = fabric.network.nodes[name]
    route = node.running.table.routes.get(prefix)
    if route is None or route.nexthops is None:
        return None if route is None else {}
    return {node.ports[hop.ifindex].peer.node: hop.weight for hop in route.nexthops.hops}


def walks(fabric: Fabric, start: str, prefix: Prefix) -> Iterable[tuple[str, ...]]:
    """Yield each way of a packet to its end: where no next hop follows, or a router again."""
    ways = [(start,)]
    while ways:
        way = ways.pop()
        following = hops(fabric, way[-1], prefix)
        if not following or way[-1] in way[:-1]:
            yield way
        else:
            ways += [(*way, name) for name in following]
