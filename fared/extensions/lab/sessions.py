"""The sessions of BGP in a fabric: with the router at the end of a link, with all others at a LAN.

``ipv4`` and ``dual`` have neighbors by address, ``unnumbered`` by interface (RFC 8950): links
between routers then have link-local addresses only. Both ends of a link must have the same kind of
session; a LAN has neighbors by address. BIRD 2 does not look for neighbors on a link: it waits
until one connects, so that two of it would wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from fared.extensions.lab.labels import UNNUMBERED
from fared.extensions.lab.model import LabLink, LabNode, LabTopology
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.systems import AsNumber


@dataclass(frozen=True)
class PeerPlan:
    """A neighbor: where it is, its AS, and the addresses of both ends; IPv6 in ``dual`` alone.

    ``name`` is a word for the session: the interface, or, at a LAN, the interface and the neighbor.
    """

    name: str
    peer: str
    system: AsNumber
    interface: str
    local: IPv4Address
    address: IPv4Address
    local6: IPv6Address | None
    address6: IPv6Address | None


def unnumbered(node: LabNode) -> bool:
    """Whether a router has its neighbors in BGP by interface."""
    return node.bgp_sessions == UNNUMBERED


def bgp_peers(
    name: str, ports: Mapping[str, Sequence[PortAddresses]], systems: Mapping[str, AsNumber]
) -> Iterator[PeerPlan]:
    """Yield the neighbors of a router, in the order of its links."""
    for port in ports[name]:
        ends = [(port.peer, port.peer_port)]
        if port.lan:  # the far ends of the bridge's ports are the members
            ends = [(one.peer, one.peer_port) for one in ports[port.peer] if one.peer != name]
        for peer, interface in ends:
            if peer in systems:
                far = next(end for end in ports[peer] if end.name == interface)
                yield PeerPlan(
                    name=f"{port.name}-{peer}" if port.lan else port.name,
                    peer=peer,
                    system=systems[peer],
                    interface=port.name,
                    local=port.address.ip,
                    address=far.address.ip,
                    local6=port.address6 and port.address6.ip,
                    address6=far.address6 and far.address6.ip,
                )


def faults(topology: LabTopology, link: LabLink) -> Iterator[str]:
    """Yield why no session of BGP can run over a link, if both ends want one."""
    a, b = (topology.nodes[end.node] for end in link.ends)
    for router, far in ((a, b), (b, a)):
        if far.is_segment and unnumbered(router):
            yield f"{far.name} is a LAN, and unnumbered sessions run over links between two routers"
    if a.bgp_sessions is None or b.bgp_sessions is None:
        return
    if a.bgp_sessions != b.bgp_sessions:
        told = " and ".join(f"{node.name} has {node.bgp_sessions}" for node in (a, b))
        yield f"sessions of BGP differ: {told}"
    elif unnumbered(a) and a.kind == b.kind == "bird":
        yield f"BIRD waits for unnumbered neighbors to connect: {a.name} and {b.name} both would"
