"""Fabrics for the virtual clock: the seed's figures at any size, addressed like the lab's.

A router's id is 10.255.0.N on its loopback, a link is a /31 out of 10.128.0.0/9, and each leaf
owns 10.x.y.0/24 behind a passive interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec

from fared.core.ids import AreaId, Prefix, ipv4_prefix
from fared.core.links import InterfaceAddress
from fared.extensions.sim.network import Network
from fared.extensions.sim.port import Port
from fared.extensions.sim.protocols import BuildScope, Levels, OspfBuilder, ProtocolBuilder, Purpose
from fared.paths.rib.settings import SolverSettings
from fared.protocols.ospf.settings import AreaSettings
from fared.router.settings import RouterSettings

LOOPBACKS = 0x0AFF0000
LINKS = 0x0A800000
LANS = 0x0AC00000
HOSTS = 0x0A000000
LOOPBACKS6 = 0xFD00 << 112
HOSTS6 = 0x2001_0DB8 << 96
GIGABIT = 125e6
DEFAULT_CAPACITY = 400 * GIGABIT


class Fabric(msgspec.Struct):
    """A network, with the names, ids and prefixes that tests use."""

    network: Network
    router_ids: dict[str, int] = msgspec.field(default_factory=dict)
    leaf_prefixes: dict[str, Prefix] = msgspec.field(default_factory=dict)
    leaf_prefixes6: dict[str, Prefix] = msgspec.field(default_factory=dict)
    """The IPv6 networks of the leaves, where a protocol routes IPv6."""
    links: list[tuple[str, str]] = msgspec.field(default_factory=list)

    def name_of(self, router_id: int) -> str:
        """Return the name of a router. Raises KeyError."""
        return next(name for name, value in self.router_ids.items() if value == router_id)


class FabricBuilder:
    """Adds routers, links and leaf prefixes one by one and assigns addresses."""

    def __init__(
        self,
        network: Network,
        *,
        solver: SolverSettings | None = None,
        start_deadline: float = 5.0,
        protocols: Sequence[ProtocolBuilder] = (OspfBuilder(),),
        prefix_suppression: bool = False,
    ) -> None:
        """``protocols``: the protocols that all routers run.

        ``prefix_suppression``: the networks between routers are not advertised, by any protocol.
        """
        self.fabric = Fabric(network)
        self._solver = solver or SolverSettings()
        self._start_deadline = start_deadline
        self._protocols = protocols
        self._ipv6 = any(protocol.ipv6 for protocol in protocols)
        self._scope = BuildScope(prefix_suppression=prefix_suppression)
        self._lans = 0
        self._routers = self._links = self._leaves = 0

    def areas(self, area: AreaId, *settings: AreaSettings) -> None:
        """Add to ``area`` from now on; new routers have these settings of areas."""
        self._scope.area, self._scope.areas = area, settings

    def speak(self, *protocols: ProtocolBuilder) -> None:
        """Add routers and links with these protocols from now on."""
        self._protocols = protocols

    def levels(self, levels: Levels) -> None:
        """Add to these levels from now on."""
        self._scope.levels = levels

    def align(self, routers: int, links: int, leaves: int) -> tuple[Prefix, Prefix, Prefix]:
        """Let the next loopbacks, links and hosts, so many of each, share a prefix."""
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
        settings = RouterSettings(
            {each.proto: each.router(self._scope, name, router_id) for each in self._protocols},
            solver=self._solver,
            start_deadline=self._start_deadline,
        )
        network.add_node(name, settings)
        network.add_port(
            name,
            router_id,
            32,
            self._settings(Purpose.LOOPBACK),
            interface="lo",
            loopback=True,
            global6=self._global6(LOOPBACKS6 | router_id, 128),
        )

    def _settings(self, purpose: Purpose) -> dict[str, Any]:
        """Settings of an interface, by protocol."""
        return {each.proto: each.port(self._scope, purpose) for each in self._protocols}

    def _global6(self, address: int, length: int) -> InterfaceAddress | None:
        return InterfaceAddress(6, address, length) if self._ipv6 else None

    def _port(
        self, name: str, address: int, length: int, interface: str, capacity: float | None
    ) -> Port:
        """Return a port toward another router, for all running protocols."""
        return self.fabric.network.add_port(
            name,
            address if self._scope.levels.numbered else 0,
            length,
            self._settings(Purpose.LINK),
            interface=interface,
            capacity=capacity,
        )

    def link(self, a: str, b: str, capacity: float | None = DEFAULT_CAPACITY) -> None:
        """Connect two routers by a /31; repeated calls make parallel links."""
        base = LINKS + 2 * self._links
        self._links += 1
        suffix = self.fabric.links.count((a, b))
        names = (b, a) if suffix == 0 else (f"{b}.{suffix}", f"{a}.{suffix}")
        left = self._port(a, base, 31, names[0], capacity)
        right = self._port(b, base + 1, 31, names[1], capacity)
        self.fabric.network.connect(left, right)
        self.fabric.links.append((a, b))

    def lan(self, *names: str, capacity: float | None = DEFAULT_CAPACITY) -> None:
        """Connect routers to one segment, a /24 of 10.192.0.0/10; the interface is ``lanK``."""
        self._lans += 1
        base = LANS + (self._lans << 8)
        lan, interface = self._settings(Purpose.LAN), f"lan{self._lans}"
        ports = [
            self.fabric.network.add_port(
                name, base + number, 24, lan, interface=interface, capacity=capacity
            )
            for number, name in enumerate(names, start=1)
        ]
        self.fabric.network.join(ports)

    def hosts(self, name: str) -> None:
        """Add a /24 with the hosts of a leaf behind a passive interface."""
        self._leaves += 1
        number = self._leaves
        prefix = ipv4_prefix(HOSTS + (number << 8), 24)
        prefix6 = Prefix(6, HOSTS6 | number << 64, 64)
        self.fabric.network.add_port(
            name,
            prefix.network + 1,
            24,
            self._settings(Purpose.HOSTS),
            interface="host",
            global6=self._global6(prefix6.network + 1, 64),
        )
        self.fabric.leaf_prefixes[name] = prefix
        if self._ipv6:
            self.fabric.leaf_prefixes6[name] = prefix6

    def leaf(self, name: str, spines: Iterable[str]) -> None:
        """Add hosts behind a router and connect it to all spines."""
        self.hosts(name)
        for spine in spines:
            self.link(name, spine)

    def uplinks(self, spines: Iterable[str], planes: Iterable[Iterable[str]]) -> None:
        """Connect each spine of a PoD to all routers of its plane."""
        for spine, tops in zip(spines, planes, strict=True):
            for top in tops:
                self.link(spine, top)

    def routers(self, names: Iterable[str]) -> None:
        """Add routers without links."""
        for name in names:
            self.router(name)


def plane_names(planes: int, supers: int) -> list[list[str]]:
    """Return the superspines of each plane: SS1.1, SS1.2..."""
    return [[f"SS{k + 1}.{i + 1}" for i in range(supers)] for k in range(planes)]


def pod_names(pod: int, spines: int, leaves: int) -> tuple[list[str], list[str]]:
    """Return the spines and the leaves of a PoD: p1.S1..., p1.L1..."""
    return (
        [f"p{pod}.S{k + 1}" for k in range(spines)],
        [f"p{pod}.L{i + 1}" for i in range(leaves)],
    )


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
    builder.routers([*spine_names, *leaf_names])
    for leaf in leaf_names:
        builder.leaf(leaf, spine_names)
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
    planes = plane_names(spines, supers)
    builder.routers(chain(*planes))
    for pod in range(1, pods + 1):
        spine_names, leaf_names = pod_names(pod, spines, leaves)
        builder.routers([*spine_names, *leaf_names])
        for leaf in leaf_names:
            builder.leaf(leaf, spine_names)
        builder.uplinks(spine_names, planes)
    return builder.fabric


def _next_block(number: int, size: int) -> int:
    """Return the first multiple of ``size`` from ``number`` on."""
    return -(-number // size) * size
