"""The five-stage fabric in areas: each PoD is an area, and the planes are partitions of area 0.

Spine k of a PoD is the border router between that PoD and plane k. The planes are not connected to
each other: area 0 has as many partitions as there are planes, and every leaf still reaches every
other, over as many paths.
"""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from fared.core.ids import BACKBONE, AreaId
from fared.extensions.sim.fabric import Fabric, FabricBuilder, plane_names, pod_names
from fared.extensions.sim.network import Network
from fared.paths.rib.settings import SolverSettings
from fared.protocols.ospf.settings import AreaSettings, RangeSettings


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

    ``pod_area`` are the settings of all PoD areas; its area id is replaced. Loopbacks of spines
    belong to their PoD. ``summarized``: PoDs have address blocks, and their border routers
    advertise only these to the others (area ranges, RFC 2328 §3.5), not every host network and
    link.
    """
    builder = FabricBuilder(network or Network(), solver=solver)
    common = pod_area or AreaSettings(BACKBONE)
    planes = plane_names(spines, supers)
    builder.areas(BACKBONE)
    builder.routers(chain(*planes))
    for pod in range(1, pods + 1):
        area = replace(common, area=AreaId(pod))
        if summarized:
            blocks = builder.align(spines + leaves, spines * leaves, leaves)
            area = replace(area, ranges=tuple(RangeSettings(block) for block in blocks))
        spine_names, leaf_names = pod_names(pod, spines, leaves)
        builder.areas(area.area, area, AreaSettings(BACKBONE))
        builder.routers(spine_names)
        builder.areas(area.area, area)
        for leaf in leaf_names:
            builder.router(leaf)
            builder.leaf(leaf, spine_names)
        builder.areas(BACKBONE)
        builder.uplinks(spine_names, planes)
    return builder.fabric
