"""The planes of a fabric that runs: its routers and hosts, by protocol."""

from __future__ import annotations

from bench.chaos.bgp_plane import BGP, BgpPlane
from bench.chaos.checks import Plane
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.fabric import Fabric


def planes(fabric: Fabric) -> list[Plane]:
    """Return the planes of a fabric, those of link state first."""
    found = []
    for protocol in ("ospf", "isis", BGP):
        names = {plan.name for plan in fabric.plan.routers if plan.node.protocol == protocol}
        nodes = {
            name: node
            for name, node in fabric.plan.nodes.items()
            if name in names or any(port.peer in names for port in node.ports)
        }
        if names:
            made = BgpPlane if protocol == BGP else Plane
            found.append(made(fabric, AddressPlan(nodes)))
    return found
