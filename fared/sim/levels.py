"""Fabrics over IS-IS: the three-stage one in level 2, the five-stage one in two levels.

In the five-stage fabric each PoD is a level-1 area of its own, the planes are level 2, and
spine k of a PoD joins that PoD to plane k. As over OSPF the planes do not touch each other.
"""

from __future__ import annotations

from dataclasses import replace

from fared.core.ids import SystemId
from fared.isis.ids import LevelSet
from fared.isis.settings import IsisSettings
from fared.rib.settings import SolverSettings
from fared.sim.fabric import Fabric, FabricBuilder, Levels, clos3
from fared.sim.network import Network

COMMON = IsisSettings(SystemId(1), (), level2_to_level1=True)
"""What all routers share; ids, areas and levels are each router's own."""


def clos3_isis(
    spines: int,
    leaves: int,
    *,
    network: Network | None = None,
    solver: SolverSettings | None = None,
    common: IsisSettings = COMMON,
    levels: Levels | None = None,
    ospf: bool = False,
) -> Fabric:
    """Build ``clos3`` over IS-IS, in level 2 unless ``levels`` says otherwise."""
    builder = FabricBuilder(network or Network(), solver=solver, ospf=ospf, isis=common)
    builder.levels = levels or Levels()
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
    builder = FabricBuilder(network or Network(), solver=solver, ospf=False, isis=common)
    planes = {k: [f"SS{k + 1}.{i + 1}" for i in range(supers)] for k in range(spines)}
    plane = builder.levels = Levels()
    for names in planes.values():
        for name in names:
            builder.router(name)
    for pod in range(1, pods + 1):
        area = bytes((0x49, pod >> 8, pod & 0xFF))
        inside = Levels(LevelSet.ONE, LevelSet.ONE, area)
        spine_names = [f"p{pod}.S{k + 1}" for k in range(spines)]
        builder.levels = replace(inside, router=LevelSet.BOTH)
        for name in spine_names:
            builder.router(name)
        builder.levels = inside
        for leaf in (f"p{pod}.L{i + 1}" for i in range(leaves)):
            builder.router(leaf)
            builder.hosts(leaf)
            for spine in spine_names:
                builder.link(leaf, spine)
        builder.levels = plane
        for k, spine in enumerate(spine_names):
            for top in planes[k]:
                builder.link(spine, top)
    return builder.fabric
