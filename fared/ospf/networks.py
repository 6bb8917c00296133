"""From network LSAs to the TED: one ``NodeBlock`` for each transit network (RFC 2328 §12.4.2).

A network is a vertex of its own, named by the address of its designated router. Its links cost
nothing and limit nothing: what a router can send into the network is the router's to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fared.core.ids import NETWORK_NODE, AreaId, NodeId, ipv4_prefix, mask_length
from fared.ospf.events import TedUpdated
from fared.ospf.packet.bodies import NetworkLsa
from fared.ospf.packet.lsa import LsaKey
from fared.ted.model import NodeBlock, PrefixAttachment


@dataclass(slots=True)
class _Network:
    """What is said of one network; more than one router says it only while one is outdated."""

    bodies: dict[LsaKey, NetworkLsa] = field(default_factory=dict)
    emitted: NetworkLsa | None = None
    cause: str = ""
    since: float = 0.0


class NetworkTable:
    """The transit networks of all areas."""

    def __init__(self) -> None:
        self._networks: dict[tuple[AreaId, int], _Network] = {}
        self._dirty: dict[tuple[AreaId, int], _Network] = {}

    def put(
        self, area: AreaId, key: LsaKey, body: NetworkLsa | None, *, cause: str, now: float
    ) -> None:
        """Take note of a network LSA; ``body`` None: it is gone."""
        where = (area, key.link_state_id)
        network = self._networks.setdefault(where, _Network())
        if body is None:
            network.bodies.pop(key, None)
        else:
            network.bodies[key] = body
        if where not in self._dirty:
            network.cause, network.since = cause, now
            self._dirty[where] = network

    def updates(self) -> list[TedUpdated]:
        """What changed since the last call."""
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
            found.append(
                TedUpdated(
                    area, node, block, topology=True, cause=network.cause, since=network.since
                )
            )
        return found

    def withdrawals(self, cause: str, now: float) -> list[TedUpdated]:
        """Say that no network is known any more."""
        return [
            TedUpdated(area, network_node(address), None, topology=True, cause=cause, since=now)
            for (area, address), network in self._networks.items()
            if network.emitted is not None
        ]


def network_node(address: int) -> NodeId:
    """The vertex of the network whose designated router has this address."""
    return NodeId(NETWORK_NODE | address)


def network_block(node: NodeId, body: NetworkLsa) -> NodeBlock:
    """The vertex of a network: a link to each attached router, and its prefix."""
    count = len(body.attached_routers)
    unlimited, nothing = np.full(count, np.inf), np.zeros(count, np.int64)
    length = mask_length(body.network_mask)
    prefixes = () if length is None else (PrefixAttachment(ipv4_prefix(node, length), 0),)
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
    """Of several routers that claim the same address the highest; the others are outdated."""
    return bodies[max(bodies)] if bodies else None
