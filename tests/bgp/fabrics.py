"""Fabrics of BGP speakers on the virtual clock, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from fared.core.ids import Prefix, format_address
from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import Fabric, FabricBuilder, plane_names, pod_names
from fared.extensions.sim.levels import COMMON
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import BgpBuilder, IsisBuilder, OspfBuilder
from fared.protocols.bgp.engine import BgpEngine
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.settings import BgpLinkSettings, BgpNeighborSettings, BgpSettings
from fared.router.events import From, RouterSettingsApplied

GBPS = 125e6
NEIGHBOR = BgpNeighborSettings(imports=("all",), exports=("all",), connect_retry=0.5)


def speakers(seed: int = 1, igps: bool = False, **common: Any) -> FabricBuilder:
    """A builder of routers that run BGP, and with ``igps`` OSPF and IS-IS beside it."""
    settings = replace(BgpBuilder().common, **common)
    bgp = BgpBuilder(NEIGHBOR, settings)
    others = [OspfBuilder(), IsisBuilder(COMMON)] if igps else []
    return FabricBuilder(Network(seed=seed), protocols=[*others, bgp])


def clos5(
    builder: FabricBuilder,
    sizes: tuple[int, int, int, int],
    rate: Callable[[], float] = lambda: 400,
) -> Fabric:
    """Five stages: spine k of each pod meets the superspines of plane k. Rates are Gbit/s.

    Sizes: pods, their leaves and spines, superspines of a plane.
    """
    pods, leaves, spines, supers = sizes
    planes = plane_names(spines, supers)
    for plane in planes:
        builder.routers(plane)
    for pod in range(1, pods + 1):
        names = pod_names(pod, spines, leaves)
        builder.routers([*names[0], *names[1]])
        for leaf in names[1]:
            builder.hosts(leaf)
            for spine in names[0]:
                builder.link(leaf, spine, rate() * GBPS)
        for spine, plane in zip(names[0], planes, strict=True):
            for top in plane:
                builder.link(spine, top, rate() * GBPS)
    return builder.fabric


def started(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


def engine(fabric: Fabric, name: str) -> BgpEngine:
    found = fabric.network.nodes[name].running.instances["bgp"].engine
    assert isinstance(found, BgpEngine)
    return found


def emitted(fabric: Fabric, name: str) -> list[Any]:
    """What the engine of a router wants from now on."""
    router, found = fabric.network.nodes[name].running, []
    take = router.take_outputs

    def noting() -> list[Any]:
        outputs = take()
        found.extend([one.event for one in outputs if isinstance(one, From)])
        return outputs

    router.take_outputs = noting  # type: ignore[method-assign]
    return found


def neighbor(fabric: Fabric, name: str, toward: str) -> BgpSpeaker:
    """The first neighbor of a router on a link to another one."""
    port = fabric.network.find_port(name, toward)
    found = engine(fabric, name).instance.neighbors.values()
    return next(one for one in found if one.ifindex == port.ifindex)


def shares(fabric: Fabric, source: str, toward: str) -> dict[str, Fraction]:
    """The shares of next hops in a kernel, for the hosts of a leaf."""
    return invariants.forwarding(fabric, fabric.leaf_prefixes[toward]).get(source, {})


def ratio(parts: dict[str, int]) -> dict[str, Fraction]:
    total = sum(parts.values())
    return {name: Fraction(part, total) for name, part in parts.items()}


def slow(fabric: Fabric, a: str, b: str, gbps: float) -> None:
    """Both directions of a link carry so much."""
    fabric.network.set_capacity(a, b, gbps * GBPS)
    fabric.network.set_capacity(b, a, gbps * GBPS)


def weights(fabric: Fabric, name: str, proto: str, prefix: Prefix) -> dict[str, int] | None:
    """The weights of next hops by interface, as one protocol computed them."""
    route = fabric.network.nodes[name].running.instances[proto].routes.get(prefix)
    if route is None or route.nexthops is None:
        return None
    return {hop.interface: hop.weight for hop in route.nexthops.hops}


def apply(fabric: Fabric, name: str, **changes: Any) -> None:
    """Apply other settings of the engine of a router."""
    node = fabric.network.nodes[name]
    node.settings = node.settings.with_protocol("bgp", **changes)
    fabric.network.input(name, RouterSettingsApplied(node.settings))


def apply_neighbor(fabric: Fabric, name: str, toward: Iterable[str], **changes: Any) -> None:
    """Apply other settings of the neighbors on links of a router."""
    network = fabric.network
    for other in toward:
        port = network.find_port(name, other)
        link = port.settings["bgp"]
        assert link.neighbor is not None
        port.settings["bgp"] = replace(link, neighbor=replace(link.neighbor, **changes))
        network._notify(port)


def settings_of(fabric: Fabric, name: str) -> BgpSettings:
    found = fabric.network.nodes[name].settings.protocols["bgp"]
    assert isinstance(found, BgpSettings)
    return found


def numbered(fabric: Fabric, **changes: Any) -> Fabric:
    """Have each neighbor by its IPv4 address, instead of by the link; before the start."""
    for node in fabric.network.nodes.values():
        found = []
        for port in node.ports.values():
            if port.settings["bgp"].neighbor is None or port.peer is None:
                continue
            address = format_address(4, port.peer.address)
            found.append(replace(NEIGHBOR, address=address, **changes))
            port.settings["bgp"] = BgpLinkSettings()
        node.settings = node.settings.with_protocol("bgp", neighbors=tuple(found))
    return fabric


def in_one_as(fabric: Fabric, *names: str) -> Fabric:
    """Put routers into one AS; before the start."""
    for name in names:
        node = fabric.network.nodes[name]
        node.settings = node.settings.with_protocol("bgp", local_as=65000)
        for port in node.ports.values():
            link = port.settings["bgp"]
            if port.peer is not None and link.neighbor is not None and port.peer.node in names:
                port.settings["bgp"] = replace(
                    link, neighbor=replace(link.neighbor, remote_as="internal")
                )
    return fabric
