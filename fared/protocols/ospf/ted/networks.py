"""From network LSAs to the TED: one ``NodeBlock`` for each transit network (RFC 2328 §12.4.2).

A network is a vertex, identified by the address of its designated router (RFC 2328 §16.1). Its
links have metric 0 (§A.4.3) and unlimited capacity: only the links of routers into it count.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from fared.core.ids import NETWORK_NODE, AreaId, NodeId, ipv4_prefix, mask_length
from fared.paths.ted.events import TedUpdated
from fared.paths.ted.model import NodeBlock, PrefixReachability
from fared.protocols.ospf.packet.bodies import NetworkLsa
from fared.protocols.ospf.packet.lsa import LsaKey

_HOST_LENGTH = 32


class _TransitNetwork(msgspec.Struct):
    """The network LSAs with one link state id; several while an outdated one is not flushed."""

    bodies: dict[LsaKey, NetworkLsa] = msgspec.field(default_factory=dict)
    emitted: NetworkLsa | None = None
    cause: str = ""
    since: float = 0.0


class NetworkTable:
    """The transit networks of all areas."""

    def __init__(self) -> None:
        self._networks: dict[tuple[AreaId, int], _TransitNetwork] = {}
        self._dirty: dict[tuple[AreaId, int], _TransitNetwork] = {}

    def put(
        self, area: AreaId, key: LsaKey, body: NetworkLsa | None, *, cause: str, now: float
    ) -> None:
        """Store a network LSA; ``body`` None: it was flushed."""
        where = (area, key.link_state_id)
        network = self._networks.setdefault(where, _TransitNetwork())
        if body is None:
            network.bodies.pop(key, None)
        else:
            network.bodies[key] = body
        if where not in self._dirty:
            network.cause, network.since = cause, now
            self._dirty[where] = network

    def updates(self) -> Iterable[TedUpdated]:
        """The changes since the last call."""
        if not self._dirty:
            return ()
        dirty, self._dirty = self._dirty, {}
        found = []
        for (area, address), network in dirty.items():
            body = _chosen(network.bodies)
            if not network.bodies:
                del self._networks[area, address]
            if body == network.emitted:
                continue
            network.emitted = body
            node = network_node(address)
            block = None if body is None else network_block(node, body)
            found.append(TedUpdated(area, node, block, network.cause, network.since))
        return found


def network_node(address: int) -> NodeId:
    """The vertex of the network whose designated router has this address."""
    return NodeId(NETWORK_NODE | address)


def network_block(node: NodeId, body: NetworkLsa) -> NodeBlock:
    """The block of a network: a link to each attached router, its prefix (§16.1 (4))."""
    count = len(body.attached_routers)
    unlimited, nothing = np.full(count, np.inf), np.zeros(count, np.int64)
    length = mask_length(body.network_mask)
    # RFC 6860 §2.2: no route to a network with the mask of a host, which is hidden
    if length is None or length == _HOST_LENGTH:
        prefixes: tuple[PrefixReachability, ...] = ()
    else:
        prefixes = (PrefixReachability(ipv4_prefix(node, length), 0),)
    return NodeBlock(
        node=node,
        neighbors=np.array(body.attached_routers, dtype=np.int64),
        metrics=nothing,
        capacities=unlimited,
        availables=unlimited,
        local_ids=nothing,
        remote_ids=nothing,
        prefixes=prefixes,
        network=True,
    )


def _chosen(bodies: dict[LsaKey, NetworkLsa]) -> NetworkLsa | None:
    """Of several LSAs for one address, that of the highest router id (RFC 2328 §13.4: rare)."""
    return bodies[max(bodies)] if bodies else None
