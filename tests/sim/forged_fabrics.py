"""The fabrics in which packets are forged in a neighbor's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from fared.core.bier import BierSettings
from fared.core.ids import BACKBONE, AreaId, ipv4_prefix
from fared.core.routes import LocalRoute
from fared.extensions.sim.fabric import Fabric, FabricBuilder
from fared.extensions.sim.levels import COMMON
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, Levels
from fared.protocols.igp.database_limit import LimitSettings
from fared.protocols.igp.reduction import Reduction, ReductionSettings
from fared.protocols.isis.ids import LevelSet
from fared.protocols.ospf.settings import AreaSettings, GracefulRestartSettings
from tests.sim.externals import OUTSIDE, configure, static

VICTIM, NEIGHBOR = "L", "R"


class Scenario(msgspec.Struct, frozen=True):
    """A fabric with a router L, and R, its neighbor, in whose name packets come."""

    proto: str
    build: Callable[[Network], Fabric]
    victim: str = VICTIM
    neighbor: str = NEIGHBOR
    cut: tuple[str, str] | None = ("L", "R")
    """A link that fails after all."""


def _row(builder: FabricBuilder) -> None:
    """A - L = R - B, each with hosts."""
    for name in ("A", "L", "R", "B"):
        builder.router(name)
        builder.hosts(name)
    for a, b in (("A", "L"), ("L", "R"), ("L", "R"), ("R", "B")):
        builder.link(a, b)


def _single(builder: FabricBuilder) -> None:
    """A - L - R: what comes to L in R's name does not come back to R."""
    for name in ("A", "L", "R"):
        builder.router(name)
        builder.hosts(name)
    builder.link("A", "L")
    builder.link("L", "R")


def _lan(builder: FabricBuilder) -> None:
    """Three routers on a LAN; B hangs on two of them."""
    for name in ("A", "L", "R", "B"):
        builder.router(name)
        builder.hosts(name)
    builder.lan("A", "L", "R")
    builder.link("L", "B")
    builder.link("R", "B")


def _ring(builder: FabricBuilder) -> None:
    """Five routers, of which every one is reached over two ways."""
    for name in ("A", "L", "R", "B", "C"):
        builder.router(name)
        builder.hosts(name)
    for a, b in (("L", "A"), ("L", "R"), ("A", "B"), ("R", "B"), ("L", "C"), ("R", "C")):
        builder.link(a, b)


def _areas(builder: FabricBuilder) -> None:
    """A in area 1, two links to L, a border router, and two more to R in the backbone."""
    one = AreaSettings(AreaId(1))
    builder.areas(AreaId(1), one)
    builder.router("A")
    builder.hosts("A")
    builder.areas(AreaId(1), one, AreaSettings(BACKBONE))
    builder.router("L")
    builder.link("A", "L")
    builder.link("A", "L")
    builder.areas(BACKBONE)
    for name in ("R", "B"):
        builder.router(name)
        builder.hosts(name)
    builder.link("L", "R")
    builder.link("L", "R")
    builder.link("R", "B")


def _levels(builder: FabricBuilder) -> None:
    """A in level 1, two links to L of both levels, and two more to R of level 2."""
    builder.levels(Levels(LevelSet.ONE, LevelSet.ONE))
    builder.router("A")
    builder.hosts("A")
    builder.levels(Levels(LevelSet.BOTH, LevelSet.ONE))
    builder.router("L")
    builder.link("A", "L")
    builder.link("A", "L")
    builder.levels(Levels(LevelSet.TWO, LevelSet.TWO, b"\x49\0\1"))
    for name in ("R", "B"):
        builder.router(name)
        builder.hosts(name)
    builder.link("L", "R")
    builder.link("L", "R")
    builder.link("R", "B")


def _both_levels(builder: FabricBuilder) -> None:
    """The row, in which every link is of both levels."""
    builder.levels(Levels(LevelSet.BOTH, LevelSet.BOTH))
    _row(builder)


def _numbers(network: Network) -> None:
    """Give every router a BFR-id."""
    for number, node in enumerate(network.nodes.values(), 1):
        bier = BierSettings(1, number, 64, ())
        parts = {p: replace(part, bier=bier) for p, part in node.settings.protocols.items()}
        node.settings = replace(node.settings, protocols=parts, bier=bier)


def _externals(network: Network) -> None:
    """R and B redistribute a route, over a gateway among their hosts and one that nobody knows."""
    for name in ("R", "B"):
        node = network.nodes[name]
        host = next(port for port in node.ports.values() if port.name == "host")
        configure(Fabric(network), name, static())
        for number in range(3):
            gateway = host.address + 9 if number else 0
            ifindex = host.ifindex if number else 99
            route = LocalRoute(((ifindex, gateway),))
            prefix = ipv4_prefix(OUTSIDE.network + (number << 8), 24)
            network.set_local_route(name, prefix, route)


def ospf(
    shape: Callable[[FabricBuilder], None],
    then: Callable[[Network], None] | None = None,
    **changes: Any,
) -> Callable[[Network], Fabric]:
    def build(network: Network) -> Fabric:
        builder = FabricBuilder(network)
        shape(builder)
        return _changed(builder.fabric, "ospf", then, changes)

    return build


def isis(
    shape: Callable[[FabricBuilder], None],
    then: Callable[[Network], None] | None = None,
    **changes: Any,
) -> Callable[[Network], Fabric]:
    def build(network: Network) -> Fabric:
        builder = FabricBuilder(network, protocols=(IsisBuilder(COMMON),))
        shape(builder)
        return _changed(builder.fabric, "isis", then, changes)

    return build


def _changed(
    fabric: Fabric, proto: str, then: Callable[[Network], None] | None, changes: dict[str, Any]
) -> Fabric:
    for node in fabric.network.nodes.values():
        node.settings = node.settings.with_protocol(proto, **changes)
    if then is not None:
        then(fabric.network)
    return fabric


_HELPS = GracefulRestartSettings(enabled=True, helper=True)
_LIMIT = LimitSettings(most=40, of_originator=20)
_PREFIX_LIMIT = LimitSettings(most=200, of_originator=20)
"""There is room for all that is forged: it would keep the places of prefixes that are purged."""
_DYNAMIC = ReductionSettings(Reduction.DYNAMIC)
_LEAF = ReductionSettings(Reduction.LEAF)
SCENARIOS = {
    "ospf-row": Scenario("ospf", ospf(_row)),
    "ospf-row-end": Scenario("ospf", ospf(_row), victim="R", neighbor="L"),
    "ospf-single": Scenario("ospf", ospf(_single), cut=None),
    "ospf-ring": Scenario("ospf", ospf(_ring)),
    "ospf-lan": Scenario("ospf", ospf(_lan), cut=("L", "B")),
    "ospf-lan-dr": Scenario("ospf", ospf(_lan), victim="R", neighbor="L", cut=("L", "B")),
    "ospf-areas": Scenario("ospf", ospf(_areas)),
    "ospf-areas-inside": Scenario("ospf", ospf(_areas), victim="A", neighbor="L", cut=("A", "L")),
    "ospf-areas-border": Scenario("ospf", ospf(_areas), victim="L", neighbor="A", cut=("A", "L")),
    "ospf-externals": Scenario("ospf", ospf(_row, _externals)),
    "ospf-externals-areas": Scenario("ospf", ospf(_areas, _externals)),
    "ospf-helper": Scenario("ospf", ospf(_row, graceful_restart=_HELPS)),
    "ospf-bier": Scenario("ospf", ospf(_ring, _numbers)),
    "ospf-dynamic": Scenario("ospf", ospf(_ring, reduction=_DYNAMIC)),
    "ospf-leaf": Scenario("ospf", ospf(_ring, reduction=_LEAF)),
    "ospf-limits": Scenario("ospf", ospf(_row, limit=_LIMIT, prefix_limit=_PREFIX_LIMIT)),
    "isis-row": Scenario("isis", isis(_row)),
    "isis-row-end": Scenario("isis", isis(_row), victim="R", neighbor="L"),
    "isis-single": Scenario("isis", isis(_single), cut=None),
    "isis-ring": Scenario("isis", isis(_ring)),
    "isis-both": Scenario("isis", isis(_both_levels)),
    "isis-levels": Scenario("isis", isis(_levels)),
    "isis-levels-inside": Scenario("isis", isis(_levels), victim="A", neighbor="L", cut=("A", "L")),
    "isis-levels-border": Scenario("isis", isis(_levels), victim="L", neighbor="A", cut=("A", "L")),
    "isis-lan": Scenario("isis", isis(_lan), cut=("L", "B")),
    "isis-lan-dis": Scenario("isis", isis(_lan), victim="R", neighbor="L", cut=("L", "B")),
    "isis-helper": Scenario("isis", isis(_row, restart_helper=True, restarts=True)),
    "isis-bier": Scenario("isis", isis(_ring, _numbers)),
    "isis-dynamic": Scenario("isis", isis(_ring, reduction=_DYNAMIC)),
    "isis-leaf": Scenario("isis", isis(_ring, reduction=_LEAF)),
    "isis-limits": Scenario("isis", isis(_row, limit=_LIMIT, prefix_limit=_PREFIX_LIMIT)),
    "isis-topologies": Scenario("isis", isis(_row, multi_topology=True)),
}
