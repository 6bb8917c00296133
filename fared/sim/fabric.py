"""Fabrics for the virtual clock: the seed's figures at any size, addressed like the lab's.

A router's id is 10.255.0.N on its loopback, a link is a /31 out of 10.128.0.0/9, and each leaf
owns 10.x.y.0/24 behind a passive interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from fared.core.ids import AreaId, Prefix, RouterId, SystemId, ipv4_prefix
from fared.core.links import InterfaceAddress
from fared.isis.ids import LevelSet
from fared.isis.settings import CircuitSettings, IsisSettings
from fared.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings
from fared.rib.settings import SolverSettings
from fared.router.settings import RouterSettings
from fared.sim.network import Network, Port

LOOPBACKS = 0x0AFF0000
LINKS = 0x0A800000
LANS = 0x0AC00000
HOSTS = 0x0A000000
LOOPBACKS6 = 0xFD00 << 112
HOSTS6 = 0x2001_0DB8 << 96
GIGABIT = 125e6
DEFAULT_CAPACITY = 400 * GIGABIT


@dataclass(slots=True)
class Fabric:
    """A network with the facts a test wants to know of it."""

    network: Network
    router_ids: dict[str, int] = field(default_factory=dict)
    leaf_prefixes: dict[str, Prefix] = field(default_factory=dict)
    leaf_prefixes6: dict[str, Prefix] = field(default_factory=dict)
    """Where IS-IS runs: the IPv6 networks of the leaves."""
    links: list[tuple[str, str]] = field(default_factory=list)

    def name_of(self, router_id: int) -> str:
        """The name of a router. Raises KeyError."""
        return next(name for name, value in self.router_ids.items() if value == router_id)


@dataclass(frozen=True, slots=True)
class Levels:
    """How IS-IS runs on routers and links added from now on."""

    router: LevelSet = LevelSet.TWO
    link: LevelSet = LevelSet.TWO
    area: bytes = b"\x49\x00\x00"
    numbered: bool = True
    """Whether links have IPv4 addresses; else IPv4 goes over IPv6 next hops."""


class FabricBuilder:
    """Adds routers, links and leaf prefixes one by one and hands out addresses."""

    def __init__(
        self,
        network: Network,
        *,
        solver: SolverSettings | None = None,
        interface: Callable[[AreaId], InterfaceSettings] | None = None,
        start_deadline: float = 5.0,
        ospf: bool = True,
        isis: IsisSettings | None = None,
    ) -> None:
        """``isis``: speak IS-IS; each router gets these settings with ids and levels of its own."""
        self.fabric = Fabric(network)
        self._solver = solver or SolverSettings()
        self._interface = interface or _fabric_interface
        self._start_deadline = start_deadline
        self._area = AreaId(0)
        self._lans = 0
        self._routers = self._links = self._leaves = 0
        self._areas: tuple[AreaSettings, ...] = ()
        self._ospf = ospf
        self._isis = isis
        self.levels = Levels()

    def areas(self, area: AreaId, *settings: AreaSettings) -> None:
        """From now on add to ``area``; new routers know these settings of areas."""
        self._area, self._areas = area, settings

    def align(self, routers: int, links: int, leaves: int) -> tuple[Prefix, Prefix, Prefix]:
        """Let so many of each that come next share a prefix: loopbacks, links, hosts."""
        sizes = [1 << (count - 1).bit_length() for count in (routers, links, leaves)]
        self._routers = _next_block(self._routers + 1, sizes[0]) - 1
        self._links = _next_block(self._links, sizes[1])
        self._leaves = _next_block(self._leaves + 1, sizes[2]) - 1
        bits = [size.bit_length() - 1 for size in sizes]
        return (
            ipv4_prefix(LOOPBACKS + self._routers + 1, 32 - bits[0]),
            ipv4_prefix(LINKS + 2 * self._links, 31 - bits[1]),
            ipv4_prefix(HOSTS + (self._leaves + 1 << 8), 24 - bits[2]),
        )

    def router(self, name: str) -> None:
        """Add a router with its loopback."""
        network = self.fabric.network
        self._routers += 1
        router_id = LOOPBACKS + self._routers
        self.fabric.router_ids[name] = router_id
        ospf = OspfSettings(RouterId(router_id), hostname=name, areas=self._areas)
        settings = RouterSettings(
            ospf=ospf if self._ospf else None,
            isis=self._isis and self._isis_settings(self._isis, name, router_id),
            solver=self._solver,
            start_deadline=self._start_deadline,
        )
        network.add_node(name, settings)
        passive = InterfaceSettings(
            self._area, network_type=NetworkType.LOOPBACK, passive=True, cost=0
        )
        network.add_port(
            name,
            router_id,
            32,
            passive if self._ospf else None,
            interface="lo",
            loopback=True,
            circuit=self._circuit(passive=True, levels=self.levels.router),
            global6=self._global6(LOOPBACKS6 | router_id, 128),
        )

    def _isis_settings(self, common: IsisSettings, name: str, router_id: int) -> IsisSettings:
        return replace(
            common,
            system_id=SystemId(router_id),
            areas=(self.levels.area,),
            levels=self.levels.router,
            hostname=name,
            router_id=router_id,
        )

    def _circuit(self, *, passive: bool, levels: LevelSet) -> CircuitSettings | None:
        if self._isis is None:
            return None
        return CircuitSettings(
            levels=levels, hello_interval=1.0, hello_multiplier=4, passive=passive
        )

    def _global6(self, address: int, length: int) -> InterfaceAddress | None:
        return None if self._isis is None else InterfaceAddress(6, address, length)

    def _port(
        self, name: str, address: int, length: int, interface: str, capacity: float | None
    ) -> Port:
        """A port toward another router, of whatever protocols run."""
        return self.fabric.network.add_port(
            name,
            address if self.levels.numbered else 0,
            length,
            self._interface(self._area) if self._ospf else None,
            interface=interface,
            capacity=capacity,
            circuit=self._circuit(passive=False, levels=self.levels.link),
        )

    def link(self, a: str, b: str, capacity: float | None = DEFAULT_CAPACITY) -> None:
        """Wire two routers with a /31; call again for parallel links."""
        base = LINKS + 2 * self._links
        self._links += 1
        suffix = self.fabric.links.count((a, b))
        names = (b, a) if suffix == 0 else (f"{b}.{suffix}", f"{a}.{suffix}")
        left = self._port(a, base, 31, names[0], capacity)
        right = self._port(b, base + 1, 31, names[1], capacity)
        self.fabric.network.connect(left, right)
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
        self._leaves += 1
        number = self._leaves
        prefix = ipv4_prefix(HOSTS + (number << 8), 24)
        prefix6 = Prefix(6, HOSTS6 | number << 64, 64)
        self.fabric.network.add_port(
            name,
            prefix.network + 1,
            24,
            InterfaceSettings(self._area, passive=True) if self._ospf else None,
            interface="host",
            circuit=self._circuit(passive=True, levels=self.levels.router),
            global6=self._global6(prefix6.network + 1, 64),
        )
        self.fabric.leaf_prefixes[name] = prefix
        if self._isis is not None:
            self.fabric.leaf_prefixes6[name] = prefix6


def clos3(
    spines: int,
    leaves: int,
    *,
    network: Network | None = None,
    solver: SolverSettings | None = None,
    builder: FabricBuilder | None = None,
) -> Fabric:
    """Build the seed's Figure 1 at any size: leaves L1.., spines S1.., one link a pair."""
    builder = builder or FabricBuilder(network or Network(), solver=solver)
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


def _next_block(number: int, size: int) -> int:
    """The first multiple of ``size`` from ``number`` on."""
    return -(-number // size) * size


def _tiers(builder: FabricBuilder, names: Iterable[str]) -> None:
    for name in names:
        builder.router(name)


def _fabric_interface(area: AreaId) -> InterfaceSettings:
    return InterfaceSettings(area, hello_interval=1, router_dead_interval=4, rxmt_interval=1.0)
