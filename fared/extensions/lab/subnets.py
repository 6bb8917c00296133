"""The subnets of links and LAN segments, in the order of the file, as ``addressing`` says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network

from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.model import Endpoint, LabLink, LabTopology

_FABRIC = IPv4Network("10.128.0.0/16")
_HOSTS = IPv4Network("10.0.0.0/9")


@dataclass(frozen=True)
class Ends:
    """The address of one end of a link, and of its far end: of a host at a LAN, its gateway.

    ``nodes`` are all that share the subnet, ``hosts`` whether hosts are among them. Of a router,
    ``to_host``: it is the only one; ``serves``: it is the gateway of hosts.
    """

    address: IPv4Interface
    far: IPv4Interface
    nodes: tuple[str, ...]
    hosts: bool
    to_host: bool
    serves: bool
    lan: bool = False
    gateway: Endpoint | None = None


class SubnetPools:
    """Gives links their addresses, in the order in which they are asked for."""

    def __init__(self, topology: LabTopology) -> None:
        """Prepare the pools: what the file gives is not given again."""
        self._topology = topology
        given = {a.network for link in topology.links for a in link.addresses or ()}
        self._fabric = _free(_FABRIC, 31, given)
        self._hosts = _free(_HOSTS, 24, given)
        self._members: dict[str, list[tuple[Endpoint, LabLink]]] = {}
        for link in topology.links:
            for end, far in (link.ends, link.ends[::-1]):
                if topology.nodes[far.node].is_segment:
                    self._members.setdefault(far.node, []).append((end, link))
        self._segments: dict[str, dict[Endpoint, IPv4Interface]] = {}

    def of(self, link: LabLink) -> tuple[Ends, Ends]:
        """Return both ends of a link. Raises TopologyError if the pools are too small."""
        for end, far in (link.ends, link.ends[::-1]):
            if self._topology.nodes[far.node].is_segment:
                member, bridge = self._at_segment(far.node, end)
                return (member, bridge) if end is link.ends[0] else (bridge, member)
        return self._between(link)

    def _between(self, link: LabLink) -> tuple[Ends, Ends]:
        names = tuple(end.node for end in link.ends)
        routers = [self._topology.nodes[name].is_router for name in names]
        if link.addresses is not None:
            first, second = link.addresses
        else:
            subnet = self._next(self._fabric if all(routers) else self._hosts)
            at = (0, 1) if all(routers) else (1, 2) if routers[0] else (2, 1)
            first, second = (IPv4Interface((subnet[n], subnet.prefixlen)) for n in at)
        hosts = not all(routers)
        return (
            Ends(first, second, names, hosts, not routers[1], not routers[1]),
            Ends(second, first, names, hosts, not routers[0], not routers[0]),
        )

    def _at_segment(self, bridge: str, end: Endpoint) -> tuple[Ends, Ends]:
        nodes = self._topology.nodes
        if bridge not in self._segments:
            self._segments[bridge] = self._assigned(bridge)
        known = self._segments[bridge]
        routers = [member for member in known if nodes[member.node].is_router]
        names = tuple(member.node for member in known)
        gateway, hosts, alone = routers[0], len(routers) < len(known), len(routers) == 1
        is_router = nodes[end.node].is_router
        member = Ends(
            address=known[end],
            far=known[gateway if not is_router else next(m for m in known if m != end)],
            nodes=names,
            hosts=hosts,
            to_host=is_router and alone,
            serves=hosts and end == gateway,
            lan=is_router,
            gateway=gateway,
        )
        network = known[end].network
        none = IPv4Interface((network.network_address, network.prefixlen))
        return member, Ends(none, known[end], (), hosts=False, to_host=not is_router, serves=False)

    def _assigned(self, bridge: str) -> dict[Endpoint, IPv4Interface]:
        """Give the members of a segment their addresses: routers first, as the file has them."""
        nodes = self._topology.nodes
        members = sorted(self._members[bridge], key=lambda it: not nodes[it[0].node].is_router)
        given = [link.addresses for _, link in members]
        if any(given):
            found = {end: own[0] for (end, _), own in zip(members, given, strict=True) if own}
            if len(found) < len(members) or len({a.network for a in found.values()}) > 1:
                told = f"bridge {bridge}: expected addresses of one subnet for all nodes at it"
                raise TopologyError(f"{self._topology.origin}: {told}")
            return found
        subnet = self._next(self._hosts)
        if len(members) > subnet.num_addresses - 2:
            raise TopologyError(f"{self._topology.origin}: bridge {bridge}: more than 254 nodes")
        return {
            end: IPv4Interface((subnet[number], subnet.prefixlen))
            for number, (end, _) in enumerate(members, 1)
        }

    def _next(self, pool: Iterator[IPv4Network]) -> IPv4Network:
        subnet = next(pool, None)
        if subnet is None:
            raise TopologyError(f"{self._topology.origin}: more links than addresses")
        return subnet


def _free(pool: IPv4Network, length: int, given: Iterable[IPv4Network]) -> Iterator[IPv4Network]:
    """Yield the subnets of a pool that overlap none of those that the file gives."""
    taken = [network for network in given if network.overlaps(pool)]
    subnets = pool.subnets(new_prefix=length)
    if length < 31:
        next(subnets)  # subnets of hosts count from 10.0.1.0/24
    return (net for net in subnets if not any(net.overlaps(other) for other in taken))
