"""The address plan of a fabric, computed from the topology alone: the same in every run.

- router N (in the order of the file): router id and loopback 10.255.(N/256).(N%256)/32
- router to router links, in order: /31s from 10.128.0.0/16, the even address at the first end
- router to host links, in order: 10.(K/256).(K%256).0/24 from K = 1, the router .1, the host .2
- LAN segments, with the same numbers as hosts: routers from .1, in the order of their links, then
  hosts, whose gateway is the first router
- addresses that the file gives (``addresses`` of links, the label ``fared-lab.loopback``) take the
  place of these; subnets that overlap them are passed over
- where IS-IS runs, or BGP for IPv6, also fd00::N/128 on the loopback of router N, and
  2001:db8:K::/64 toward the host with the router ::1 and the host ::2; links between routers have
  link-local addresses only, and fd00:0:0:1::A.B.C.D/127 where sessions of BGP are ``dual``
- links of ``unnumbered`` sessions of BGP have no addresses but link-local ones
- AS numbers, where BGP runs: as ``systems`` says
- BFR-ids, where BIER runs: hosts from 1 in the order of their addresses, then routers
- interface indexes are distinct over the whole fabric: with equal indexes at both ends of a
  veth pair the kernel reports carrier loss up to a second late
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)

from fared.core.bier import LENGTHS
from fared.core.ids import BACKBONE, AreaId
from fared.extensions.lab.errors import LabError, TopologyError
from fared.extensions.lab.labels import DUAL, ISIS
from fared.extensions.lab.model import LabLink, LabNode, LabTopology
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.sessions import PeerPlan, bgp_peers, unnumbered
from fared.extensions.lab.subnets import Ends, SubnetPools
from fared.extensions.lab.systems import AsNumber, autonomous_systems

_LOOPBACKS = IPv4Network("10.255.0.0/16")
_HOSTS = IPv4Network("10.0.0.0/9")
_LOOPBACKS6 = IPv6Network("fd00::/64")
_FABRIC6 = IPv6Network("fd00:0:0:1::/96")
_HOSTS6 = IPv6Network("2001:db8::/32")
_HOST_BITS6 = 80  # 2001:db8:K::
SUB_DOMAIN = 1
"""The BIER sub-domain of a fabric."""
_FIRST_INDEX = 10
_HASH_SPREAD = 2654435761
_MTU = 1500


@dataclass(frozen=True)
class BfrPlan:
    """BIER on a router: its BFR-id, the length of bit strings, and its hosts' BFR-ids."""

    bfr_id: int
    length: int
    hosts: Mapping[IPv4Address, int]


@dataclass(frozen=True)
class NodePlan:
    """The addresses and ports of one node. Hosts have no number and no loopback.

    ``system``: its AS, where BGP runs, ``bgp_peers`` its neighbors there.
    """

    node: LabNode
    number: int
    loopback: IPv4Address | None
    ports: tuple[PortAddresses, ...]
    bfr: BfrPlan | None = None
    system: AsNumber | None = None
    bgp_peers: tuple[PeerPlan, ...] = ()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def router_id(self) -> IPv4Address:
        """The router id. Raises LabError for a host."""
        if self.loopback is None:
            raise LabError(f"{self.name} is a host and has no router id")
        return self.loopback

    @property
    def isis(self) -> bool:
        """Whether IS-IS runs here."""
        return self.node.protocol == ISIS

    @property
    def loopback6(self) -> IPv6Address | None:
        """The IPv6 address of the loopback, where IPv6 is routed."""
        return _LOOPBACKS6[self.number] if self.node.ipv6 and self.number else None

    @property
    def net(self) -> str:
        """The network entity title; its system id has the digits of the router id."""
        digits = "".join(f"{int(byte):03d}" for byte in str(self.router_id).split("."))
        system = ".".join(digits[at : at + 4] for at in range(0, 12, 4))
        return f"{self.node.isis_area}.{system}.00"

    @property
    def hash_seed(self) -> int:
        """A multipath hash seed of its own: with equal seeds all tiers select alike."""
        return self.number * _HASH_SPREAD & 0xFFFFFFFF

    @property
    def home_area(self) -> AreaId:
        """The area of its loopback and hosts: that of all its fabric links, else 0."""
        areas = {port.area for port in self.ports if not port.to_host}
        return areas.pop() if len(areas) == 1 else BACKBONE

    @property
    def fabric_ports(self) -> tuple[PortAddresses, ...]:
        """The ports to other routers."""
        return tuple(port for port in self.ports if not port.to_host)

    @property
    def own_ports(self) -> tuple[PortAddresses, ...]:
        """The ports whose subnets a router tells others by BGP: those to hosts, and to LANs."""
        return tuple(port for port in self.ports if port.serves or port.lan)

    @property
    def own_prefixes(self) -> tuple[IPv4Network, ...]:
        """What a router tells others by BGP: its loopback, and the subnets of its own ports."""
        return (IPv4Network(self.router_id), *(port.address.network for port in self.own_ports))

    @property
    def own_prefixes6(self) -> tuple[IPv6Network, ...]:
        """The IPv6 prefixes of those, where it is routed."""
        loopback = () if self.loopback6 is None else (IPv6Network(self.loopback6),)
        return (*loopback, *(p.address6.network for p in self.own_ports if p.address6))

    @property
    def host_prefixes(self) -> tuple[IPv4Network, ...]:
        """The subnets of the hosts behind this router."""
        return tuple(port.address.network for port in self.ports if port.serves)

    @property
    def host_prefixes6(self) -> tuple[IPv6Network, ...]:
        """The IPv6 subnets of the hosts behind this router, where it is routed."""
        return tuple(p.address6.network for p in self.ports if p.serves and p.address6)


@dataclass(frozen=True)
class AddressPlan:
    """The addresses of the whole fabric."""

    nodes: Mapping[str, NodePlan]

    @property
    def routers(self) -> tuple[NodePlan, ...]:
        """The nodes with a daemon, in the order of the file."""
        return tuple(node for node in self.nodes.values() if node.node.is_router)

    @property
    def hosts(self) -> tuple[NodePlan, ...]:
        """The nodes without a daemon, LAN segments aside."""
        return tuple(node for node in self.nodes.values() if node.node.is_host)

    @property
    def leaves(self) -> tuple[NodePlan, ...]:
        """The routers with hosts."""
        return tuple(node for node in self.routers if node.host_prefixes)

    def farthest_leaves(self) -> tuple[str, str]:
        """Return the first leaf, and the first of those farthest from it. Raises LabError."""
        if len(self.leaves) < 2:
            raise LabError("there are no two leaves with hosts")
        first, *others = (leaf.name for leaf in self.leaves)
        far = self.distances(first)
        return first, max(others, key=lambda name: far.get(name, 0))

    def node(self, name: str) -> NodePlan:
        """Return a node. Raises LabError if there is none of that name."""
        try:
            return self.nodes[name]
        except KeyError:
            known = ", ".join(self.nodes)
            raise LabError(f"no node {name!r}; there are {known}") from None

    def ports_between(self, a: str, b: str) -> tuple[PortAddresses, ...]:
        """Return the ports of ``a`` toward ``b``. Raises LabError if they are not neighbors."""
        self.node(b)
        ports = tuple(port for port in self.node(a).ports if port.peer == b)
        if not ports:
            peers = ", ".join(sorted({port.peer for port in self.node(a).ports}))
            raise LabError(f"no link between {a} and {b}; {a} is linked to {peers or 'nothing'}")
        return ports

    def without(self, a: str, b: str) -> AddressPlan:
        """Return the plan without the links between two nodes."""
        kept = {
            one: tuple(port for port in self.nodes[one].ports if port.peer != other)
            for one, other in ((a, b), (b, a))
        }
        less = {name: replace(self.nodes[name], ports=ports) for name, ports in kept.items()}
        return AddressPlan({**self.nodes, **less})

    def distances(self, *targets: str) -> dict[str, int]:
        """Return the hops from every router to the nearest target, by breadth-first search.

        A LAN segment is no hop of its own: it is as far as the nearest router at it.
        """
        found = dict.fromkeys(targets, 0)
        queue = deque(targets)
        while queue:
            name = queue.popleft()
            for port in self.nodes[name].fabric_ports:
                if port.peer in found:
                    continue
                far = self.nodes[port.peer].node.is_segment
                found[port.peer] = found[name] + (0 if far else 1)
                (queue.appendleft if far else queue.append)(port.peer)
        return found

    def onward(self, name: str, far: Mapping[str, int]) -> tuple[PortAddresses, ...]:
        """Return the ports of a node on shortest paths, by the ``distances`` of all nodes."""
        node = self.nodes[name]
        near = far.get(name, 0) - (0 if node.node.is_segment else 1)
        return tuple(port for port in node.fabric_ports if far.get(port.peer) == near)

    def equal_cost_ports(self, source: str, *targets: str) -> tuple[PortAddresses, ...]:
        """Return the ports of ``source`` on shortest paths to ``targets``, for equal link costs."""
        return self.onward(source, self.distances(*targets))

    def destinations(self, *, loopbacks: bool) -> dict[str, tuple[str, ...]]:
        """Return the prefixes that all routers need, with the routers that have them.

        These are the subnets of hosts, and, if asked for, the loopbacks.
        """
        found: dict[str, list[str]] = {}
        for leaf in self.leaves:
            for prefix in (*leaf.host_prefixes, *leaf.host_prefixes6):
                found[str(prefix)] = [leaf.name]
        for router in self.routers:
            for port in router.ports:
                for address in (port.address, port.address6):
                    owners = found.get(str(address and address.network), [router.name])
                    if router.name not in owners:
                        owners.append(router.name)
            if loopbacks:
                found[f"{router.router_id}/32"] = [router.name]
                if router.loopback6 is not None:
                    found[f"{router.loopback6}/128"] = [router.name]
        return {prefix: tuple(owners) for prefix, owners in found.items()}


def make_plan(topology: LabTopology) -> AddressPlan:
    """Assign addresses to all nodes. Raises TopologyError if the pools are too small."""
    loopbacks = _numbers(topology)
    ports: dict[str, list[PortAddresses]] = {name: [] for name in topology.nodes}
    subnets = SubnetPools(topology)
    index = _FIRST_INDEX
    for link in topology.links:
        for mine, addresses in enumerate(subnets.of(link)):
            port = _port(topology, link, mine, addresses, index)
            ports[port.node].append(port)
            index += 1
    plans = {}
    for name, node in topology.nodes.items():
        number = loopbacks.get(name, 0)
        loopback = (node.loopback or _LOOPBACKS[number]) if number else None
        plans[name] = NodePlan(node, number, loopback, tuple(ports[name]))
    _check_distinct(topology, plans.values())
    plans = {name: _with_home_area(plan) for name, plan in plans.items()}
    systems = autonomous_systems(topology)
    for name, system in systems.items():
        peers = tuple(bgp_peers(name, ports, systems))
        plans[name] = replace(plans[name], system=system, bgp_peers=peers)
    return AddressPlan({**plans, **_with_bfr_ids(plans)})


def _check_distinct(topology: LabTopology, plans: Iterable[NodePlan]) -> None:
    """Raise TopologyError for an address that two nodes have; a file can give such."""
    known: dict[IPv4Address, str] = {}
    for plan in plans:
        if plan.node.is_segment:
            continue
        own = [port.address.ip for port in plan.ports if port.numbered]
        for address in (*own, *([plan.loopback] if plan.loopback else [])):
            other = known.setdefault(address, plan.name)
            if other != plan.name:
                told = f"{address} is an address of {other} and of {plan.name}"
                raise TopologyError(f"{topology.origin}: {told}")


def _with_bfr_ids(plans: Mapping[str, NodePlan]) -> dict[str, NodePlan]:
    """Number the hosts of BFRs from 1, then the BFRs: all in one bit string, if it can be."""
    bfrs = {name: plan for name, plan in plans.items() if plan.node.bier}
    hosts = [port.peer_address for plan in bfrs.values() for port in plan.ports if port.to_host]
    ids = {address: number for number, address in enumerate(sorted(hosts), 1)}
    length = next((n for n in LENGTHS if n >= len(hosts) + len(bfrs)), LENGTHS[-1])
    found = {}
    for number, (name, plan) in enumerate(bfrs.items(), len(hosts) + 1):
        own = {p.peer_address: ids[p.peer_address] for p in plan.ports if p.to_host}
        found[name] = replace(plan, bfr=BfrPlan(number, length, own))
    return found


def _numbers(topology: LabTopology) -> dict[str, int]:
    routers = [name for name, node in topology.nodes.items() if node.is_router]
    if len(routers) > 60000:
        raise TopologyError(f"{topology.origin}: {len(routers)} routers are more than 60000")
    return {name: number for number, name in enumerate(routers, 1)}


def _port(
    topology: LabTopology,
    link: LabLink,
    mine: int,
    ends: Ends,
    index: int,
) -> PortAddresses:
    here, there = link.ends[mine], link.ends[1 - mine]
    node = topology.nodes[here.node]
    peer = ends.gateway if node.is_host and ends.gateway is not None else there
    rate = link.rate
    if rate is None and link.shaped and node.is_router and not ends.to_host:
        rate = node.rate
    six = _addresses6(topology, ends)
    return PortAddresses(
        node=here.node,
        name=here.interface,
        index=index,
        address=ends.address,
        peer=peer.node,
        peer_port=peer.interface,
        peer_address=ends.far.ip,
        to_host=ends.to_host,
        rate=rate,
        area=BACKBONE if link.area is None else link.area,
        cost=link.cost,
        mtu=_MTU if link.mtu is None else link.mtu,
        mtu_given=link.mtu is not None,
        level=link.level or node.isis_level,
        delay=link.delay,
        address6=six and six[0],
        peer_address6=six and six[1].ip,
        lan=ends.lan,
        serves=ends.serves,
        numbered=not all(unnumbered(topology.nodes[name]) for name in (here.node, there.node)),
    )


def _addresses6(topology: LabTopology, ends: Ends) -> tuple[IPv6Interface, IPv6Interface] | None:
    """The IPv6 addresses of a subnet, derived from the IPv4 ones.

    None without IPv6, and where link-local addresses suffice: between routers, unless sessions of
    BGP are with addresses.
    """
    nodes = [topology.nodes[name] for name in ends.nodes]
    dual = any(node.bgp_sessions == DUAL for node in nodes)
    if not (dual or (ends.hosts and any(node.ipv6 for node in nodes))):
        return None
    both = ends.address, ends.far
    if not ends.hosts and not ends.lan:
        base = int(_FABRIC6.network_address)
        length = _FABRIC6.prefixlen + ends.address.network.prefixlen
        mine, far = (IPv6Interface((base | int(a.ip), length)) for a in both)
        return mine, far
    network = int(ends.address.network.network_address)
    first = network >> 24
    base = int(_HOSTS6.network_address) | (network >> 8 & 0xFFFF) << _HOST_BITS6
    if first != int(_HOSTS.network_address) >> 24:
        base |= first << _HOST_BITS6 - 16
    mine, far = (IPv6Interface((base | int(a.ip) & 0xFF, 64)) for a in both)
    return mine, far


def _with_home_area(plan: NodePlan) -> NodePlan:
    """Put the host ports of a router into its home area."""
    home = plan.home_area
    ports = tuple(replace(port, area=home) if port.to_host else port for port in plan.ports)
    return replace(plan, ports=ports)
