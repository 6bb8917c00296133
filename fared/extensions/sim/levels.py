"""Fabrics over IS-IS: the three-stage one in level 2, the five-stage one in two levels.

In the five-stage fabric each PoD is a level-1 area, the planes are level 2, and spine k of a PoD
connects that PoD to plane k. As over OSPF the planes are not connected to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec.structs import replace

from fared.core.ids import SystemId
from fared.extensions.sim.fabric import Fabric, FabricBuilder, clos3, plane_names, pod_names
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, Levels, ProtocolBuilder
from fared.paths.rib.settings import SolverSettings
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import IsisSettings

COMMON = IsisSettings(SystemId(1), (), level2_to_level1=True)
"""The common settings of all routers; ids, areas and levels are each router's own."""


def clos3_isis(
    spines: int,
    leaves: int,
    *,
    network: Network | None = None,
    solver: SolverSettings | None = None,
    common: IsisSettings = COMMON,
    levels: Levels | None = None,
    beside: Sequence[ProtocolBuilder] = (),
) -> Fabric:
    """Build ``clos3`` over IS-IS, in level 2 unless ``levels`` says otherwise.

    ``beside``: protocols that all routers run before IS-IS.
    """
    protocols = (*beside, IsisBuilder(common))
    builder = FabricBuilder(network or Network(), solver=solver, protocols=protocols)
    builder.levels(levels or Levels())
    return clos3(spines, leaves, builder=builder)


def clos5_levels(
    pods: int,
    leaves: int,
    spines: int,
    supers: int,
    *,
    network: Network | None = None,
    solver: SolverSettings | None = None,
    common: IsisSettings = COMMON,
) -> Fabric:
    """Build the seed's Figure 2 with PoD n as area 49.n in level 1; names as in ``clos5``."""
    protocols = (IsisBuilder(common),)
    builder = FabricBuilder(network or Network(), solver=solver, protocols=protocols)
    planes = plane_names(spines, supers)
    plane = Levels()
    builder.levels(plane)
    builder.routers(chain(*planes))
    for pod in range(1, pods + 1):
        area = bytes((0x49, pod >> 8, pod & 0xFF))
        inside = Levels(LevelSet.ONE, LevelSet.ONE, area)
        spine_names, leaf_names = pod_names(pod, spines, leaves)
        builder.levels(replace(inside, router=LevelSet.BOTH))
        builder.routers(spine_names)
        builder.levels(inside)
        for leaf in leaf_names:
            builder.router(leaf)
            builder.leaf(leaf, spine_names)
        builder.levels(plane)
        builder.uplinks(spine_names, planes)
    return builder.fabric
