"""The five-stage fabric in areas: each PoD an area of its own, the planes pieces of area 0.

Spine k of a PoD is the border router between that PoD and plane k. The planes do not touch
each other: area 0 is in as many pieces as there are planes, and every leaf still reaches every
other, over as many ways.
"""

from __future__ import annotations

from dataclasses import replace

from fared.core.ids import BACKBONE, AreaId
from fared.ospf.settings import AreaSettings, RangeSettings
from fared.rib.settings import SolverSettings
from fared.sim.fabric import Fabric, FabricBuilder
from fared.sim.network import Network


def clos5_areas(
    pods: int,
    leaves: int,
    spines: int,
    supers: int,
    *,
    network: Network | None = None,
    solver: SolverSettings | None = None,
    pod_area: AreaSettings | None = None,
    summarized: bool = False,
) -> Fabric:
    """Build the seed's Figure 2 with PoD n as area n; names as in ``clos5``.

    ``pod_area`` holds what all PoD areas have in common; its area id is replaced. Loopbacks of
    spines belong to their PoD. ``summarized``: PoDs are addressed in blocks, and their border
    routers tell the others of these only (area ranges, §3.5), not of every host network and link.
    """
    builder = FabricBuilder(network or Network(), solver=solver)
    common = pod_area or AreaSettings(BACKBONE)
    planes = {k: [f"SS{k + 1}.{i + 1}" for i in range(supers)] for k in range(spines)}
    builder.areas(BACKBONE)
    for names in planes.values():
        for name in names:
            builder.router(name)
    for pod in range(1, pods + 1):
        area = replace(common, area=AreaId(pod))
        if summarized:
            blocks = builder.align(spines + leaves, spines * leaves, leaves)
            area = replace(area, ranges=tuple(RangeSettings(block) for block in blocks))
        spine_names = [f"p{pod}.S{k + 1}" for k in range(spines)]
        leaf_names = [f"p{pod}.L{i + 1}" for i in range(leaves)]
        builder.areas(area.area, area, AreaSettings(BACKBONE))
        for name in spine_names:
            builder.router(name)
        builder.areas(area.area, area)
        for leaf in leaf_names:
            builder.router(leaf)
            builder.hosts(leaf)
            for spine in spine_names:
                builder.link(leaf, spine)
        builder.areas(BACKBONE)
        for k, spine in enumerate(spine_names):
            for top in planes[k]:
                builder.link(spine, top)
    return builder.fabric
