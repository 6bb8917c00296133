"""Fabrics for the virtual clock: the seed's figures at any size, addressed like the lab's.

A router's id is 10.255.0.N on its loopback, a link is a /31 out of 10.128.0.0/9, and each leaf
owns 10.x.y.0/24 behind a passive interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from fared.core.ids import AreaId, Prefix, RouterId, ipv4_prefix
from fared.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings
from fared.rib.settings import SolverSettings
from fared.router.settings import RouterSettings
from fared.sim.network import Network

LOOPBACKS = 0x0AFF0000
LINKS = 0x0A800000
LANS = 0x0AC00000
HOSTS = 0x0A000000
GIGABIT = 125e6
DEFAULT_CAPACITY = 400 * GIGABIT


@dataclass(slots=True)
class Fabric:
    """A network with the facts a test wants to know of it."""

    network: Network
    router_ids: dict[str, int] = field(default_factory=dict)
    leaf_prefixes: dict[str, Prefix] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)

    def name_of(self, router_id: int) -> str:
        """The name of a router. Raises KeyError."""
        return next(name for name, value in self.router_ids.items() if value == router_id)


class FabricBuilder:
    """Adds routers, links and leaf prefixes one by one and hands out addresses."""

    def __init__(
        self,
        network: Network,
        *,
        solver: SolverSettings | None = None,
        interface: Callable[[AreaId], InterfaceSettings] | None = None,
        start_deadline: float = 5.0,
    ) -> None:
        self.fabric = Fabric(network)
        self._solver = solver or SolverSettings()
        self._interface = interface or _fabric_interface
        self._start_deadline = start_deadline
        self._area = AreaId(0)
        self._lans = 0
        self._areas: tuple[AreaSettings, ...] = ()

    def areas(self, area: AreaId, *settings: AreaSettings) -> None:
        """From now on add to ``area``; new routers know these settings of areas."""
        self._area, self._areas = area, settings

    def router(self, name: str) -> None:
        """Add a router with its loopback."""
        network = self.fabric.network
        router_id = LOOPBACKS + len(self.fabric.router_ids) + 1
        self.fabric.router_ids[name] = router_id
        settings = RouterSettings(
            ospf=OspfSettings(RouterId(router_id), hostname=name, areas=self._areas),
            solver=self._solver,
            start_deadline=self._start_deadline,
        )
        network.add_node(name, settings)
        passive = InterfaceSettings(
            self._area, network_type=NetworkType.LOOPBACK, passive=True, cost=0
        )
        network.add_port(name, router_id, 32, passive, interface="lo", loopback=True)

    def link(self, a: str, b: str, capacity: float | None = DEFAULT_CAPACITY) -> None:
        """Wire two routers with a /31; call again for parallel links."""
        network, settings = self.fabric.network, self._interface(self._area)
        base = LINKS + 2 * len(self.fabric.links)
        suffix = self.fabric.links.count((a, b))
        names = (b, a) if suffix == 0 else (f"{b}.{suffix}", f"{a}.{suffix}")
        left = network.add_port(a, base, 31, settings, interface=names[0], capacity=capacity)
        right = network.add_port(b, base + 1, 31, settings, interface=names[1], capacity=capacity)
        network.connect(left, right)
        self.fabric.links.append((a, b))

    def lan(self, *names: str, capacity: float | None = DEFAULT_CAPACITY) -> None:
        """Put routers on one segment, a /24 out of 10.192.0.0/10; the interface is ``lanK``."""
        self._lans += 1
        base = LANS + (self._lans << 8)
        settings = replace(self._interface(self._area), network_type=NetworkType.BROADCAST)
        ports = [
            self.fabric.network.add_port(
                name, base + number, 24, settings, interface=f"lan{self._lans}", capacity=capacity
            )
            for number, name in enumerate(names, start=1)
        ]
        self.fabric.network.join(ports)

    def hosts(self, name: str) -> None:
        """Put a /24 with the hosts of a leaf behind a passive interface."""
        number = len(self.fabric.leaf_prefixes) + 1
        prefix = ipv4_prefix(HOSTS + (number << 8), 24)
        settings = InterfaceSettings(self._area, passive=True)
        self.fabric.network.add_port(name, prefix.network + 1, 24, settings, interface="host")
        self.fabric.leaf_prefixes[name] = prefix


def clos3(
    spines: int,
    leaves: int,
    *,
    network: Network | None = None,
    solver: SolverSettings | None = None,
) -> Fabric:
    """Build the seed's Figure 1 at any size: leaves L1.., spines S1.., one link a pair."""
    builder = FabricBuilder(network or Network(), solver=solver)
    spine_names = [f"S{i + 1}" for i in range(spines)]
    leaf_names = [f"L{i + 1}" for i in range(leaves)]
    _tiers(builder, [*spine_names, *leaf_names])
    for leaf in leaf_names:
        builder.hosts(leaf)
        for spine in spine_names:
            builder.link(leaf, spine)
    return builder.fabric


def clos5(
    pods: int,
    leaves: int,
    spines: int,
    supers: int,
    *,
    network: Network | None = None,
    solver: SolverSettings | None = None,
) -> Fabric:
    """Build the seed's Figure 2 in one flat area: spine k of each pod meets plane k."""
    builder = FabricBuilder(network or Network(), solver=solver)
    planes = {k: [f"SS{k + 1}.{i + 1}" for i in range(supers)] for k in range(spines)}
    _tiers(builder, [name for names in planes.values() for name in names])
    for pod in range(1, pods + 1):
        spine_names = [f"p{pod}.S{k + 1}" for k in range(spines)]
        leaf_names = [f"p{pod}.L{i + 1}" for i in range(leaves)]
        _tiers(builder, [*spine_names, *leaf_names])
        for leaf in leaf_names:
            builder.hosts(leaf)
            for spine in spine_names:
                builder.link(leaf, spine)
        for k, spine in enumerate(spine_names):
            for top in planes[k]:
                builder.link(spine, top)
    return builder.fabric


def _tiers(builder: FabricBuilder, names: Iterable[str]) -> None:
    for name in names:
        builder.router(name)


def _fabric_interface(area: AreaId) -> InterfaceSettings:
    return InterfaceSettings(area, hello_interval=1, router_dead_interval=4, rxmt_interval=1.0)
