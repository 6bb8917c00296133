"""Capacities and workers from a saved database."""

from __future__ import annotations

import ipaddress
import math

from fared.core.ids import NodeId
from fared.extensions.ina.plan.model import Capacities, Direction
from fared.extensions.offline.world import World


def capacities(world: World) -> Capacities:
    """Return the capacities of all links that both ends advertise; every router can sum.

    Parallel links add up. A link of unknown bandwidth is unlimited, as in path capacity.
    """
    links: dict[Direction, float] = {}
    for blocks in world.blocks.values():
        for node, block in blocks.items():
            for far, capacity in zip(
                block.neighbors.tolist(), block.capacities.tolist(), strict=True
            ):
                there = blocks.get(NodeId(far))
                if there is None or node not in there.neighbors.tolist():
                    continue
                known = links.get((node, far), 0.0)
                links[node, far] = known + (math.inf if math.isnan(capacity) else capacity)
    return Capacities(links, frozenset(world.routers))


def router_of_host(world: World, text: str) -> NodeId | None:
    """Return the router that advertises the longest prefix of a host's address, None if none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    width = address.max_prefixlen
    found: tuple[int, NodeId] | None = None
    for node in world.routers:
        for block in world.described(node):
            for reachable in block.prefixes:
                prefix = reachable.prefix
                shift = width - prefix.length
                same = int(address) >> shift == prefix.network >> shift
                if prefix.family == address.version and same and prefix.length > 0:
                    found = max(found or (0, node), (prefix.length, node))
    return found[1] if found else None
