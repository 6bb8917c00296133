"""Hosts on networks of this router, which are next hops of externals with a forwarding address.

On a network to which a router is attached directly, the next hop is the address itself (RFC 2328
§16.1.1), whether a router has it or a host that speaks no OSPF. The database does not describe
hosts. So each area gets a second one beside it, in which this router has a link to each host that
is such a next hop: then routes toward hosts are computed, weighted and joined like all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from fared.core.ids import HOST_NODE, HOSTS_AREA, NodeId, ipv4_prefix
from fared.paths.ted.model import LocalLink, NodeBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fared.core.ids import Prefix
    from fared.paths.rib.area import AreaDelta, AreaSolver
    from fared.paths.rib.prefixes import Advertiser
    from fared.paths.rib.settings import SolverSettings
    from fared.paths.ted.model import LocalNetwork

_ADDRESS = 0xFFFFFFFF


class OwnHosts:
    """The networks of this router by area, and the areas of the hosts that are next hops."""

    def __init__(self, root: NodeId, area: Callable[[int], AreaSolver]) -> None:
        """``area`` returns the solver of an area, a new one if there is none."""
        self._root = root
        self._area = area
        self._networks: dict[int, tuple[LocalNetwork, ...]] = {}
        self._by_prefix: dict[Prefix, list[tuple[int, LocalNetwork]]] | None = None
        """The networks with their areas, those of the longest prefix first; made when needed."""
        self._placed: dict[int, dict[NodeId, LocalNetwork]] = {}
        """The network of each host, by the area of hosts."""
        self.stale = False
        """Whether networks have changed since the last ``place``."""

    def set_networks(self, area: int, networks: tuple[LocalNetwork, ...]) -> bool:
        """Set the networks of this router in an area; return whether they were others."""
        if self._networks.get(area, ()) == networks:
            return False
        self._networks[area] = networks
        self.stale = True
        self._by_prefix = None
        return True

    def find(self, address: int) -> tuple[Advertiser, int] | None:
        """Return the vertex of a host, and the cost of its network; None on no own network."""
        found = self._find(address)
        if found is None:
            return None
        area, network = found
        return (HOSTS_AREA | area, NodeId(HOST_NODE | address)), network.metric

    def _find(self, address: int) -> tuple[int, LocalNetwork] | None:
        """Return the network of an address, of several the nearest, and its area."""
        if self._by_prefix is None:
            self._by_prefix = self._indexed()
        for length in dict.fromkeys(prefix.length for prefix in self._by_prefix):
            for area, network in self._by_prefix.get(ipv4_prefix(address, length), ()):
                if address not in network.refused:
                    return area, network
        return None

    def _indexed(self) -> dict[Prefix, list[tuple[int, LocalNetwork]]]:
        known = [(at, network) for at, found in self._networks.items() for network in found]
        known.sort(key=lambda one: (-one[1].prefix.length, one[1].metric, one[0], one[1].ifindex))
        found: dict[Prefix, list[tuple[int, LocalNetwork]]] = {}
        for at, network in known:
            found.setdefault(network.prefix, []).append((at, network))
        return found

    def place(self, hosts: Iterable[Advertiser], settings: SolverSettings) -> dict[int, AreaDelta]:
        """Let these hosts be vertices, and no others; return what changed, by area of hosts."""
        self.stale = False
        wanted: dict[int, dict[NodeId, LocalNetwork]] = {area: {} for area in self._placed}
        for area, node in hosts:
            found = self._find(node & _ADDRESS)
            if found is not None:
                wanted.setdefault(area, {})[node] = found[1]
        deltas = {}
        for area, placed in wanted.items():
            if placed != self._placed.get(area):
                delta = self._put(area, placed).update(settings)
                if delta is not None:
                    deltas[area] = delta
        self._placed = wanted
        return deltas

    def _put(self, area: int, placed: dict[NodeId, LocalNetwork]) -> AreaSolver:
        solver, before = self._area(area), self._placed.get(area, {})
        for node in before.keys() - placed.keys():
            solver.ted.remove(node)
        links = tuple([_link(node, network) for node, network in sorted(placed.items())])
        solver.ted.put(_block(self._root, links))
        for link in links:
            if link.neighbor not in before:
                solver.ted.put(_block(link.neighbor, (replace(link, neighbor=self._root),)))
        solver.links = links
        return solver


def _link(node: NodeId, network: LocalNetwork) -> LocalLink:
    """The link to a host; the metric of the network counts from the host on (``find``)."""
    address = node & _ADDRESS
    return LocalLink(
        ifindex=network.ifindex,
        interface=network.interface,
        neighbor=node,
        gateway=address,
        local_id=address,
        metric=0,
        bandwidth=network.bandwidth,
        onlink=network.onlink,
    )


def _block(node: NodeId, links: Sequence[LocalLink]) -> NodeBlock:
    """The links of this router to hosts, or of a host to this router, as a router lists them."""
    capacities = np.array([np.nan if k.bandwidth is None else k.bandwidth for k in links])
    ids = np.array([link.local_id for link in links], np.int64)
    return NodeBlock(
        node=node,
        neighbors=np.array([link.neighbor for link in links], np.int64),
        metrics=np.zeros(len(links), np.int64),
        capacities=capacities,
        availables=np.full(len(links), np.nan),
        local_ids=ids,
        remote_ids=ids,
    )
