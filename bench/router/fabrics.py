"""Clos fabrics as router blocks for the benchmarks, and changes of them."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from fared.core.ids import NodeId, ipv4_prefix
from fared.paths.ted.model import LocalLink, NodeBlock, PrefixReachability

RATE = 50e9
COST = 10
SUPERS = 65536
"""Number of the first superspine."""
Blocks = dict[NodeId, NodeBlock]


def spine(number: int) -> NodeId:
    return NodeId((10 << 24) + (255 << 16) + number + 1)


def leaf(number: int) -> NodeId:
    return NodeId((10 << 24) + (254 << 16) + number + 1)


def make_block(
    node: NodeId,
    neighbors: list[NodeId],
    capacities: NDArray[np.float64],
    *,
    link_prefixes: bool = False,
) -> NodeBlock:
    """A router with one link to each neighbor, its loopback and optionally its link prefixes."""
    size = len(neighbors)
    ends = np.array(neighbors, np.int64)
    prefixes = [PrefixReachability(ipv4_prefix(node, 32), 0)]
    if node >> 16 & 255 == 254:
        prefixes.append(
            PrefixReachability(ipv4_prefix((100 << 24) + ((node & 0xFFFF) << 8), 24), COST)
        )
    if link_prefixes:
        for end in neighbors:
            low, high = sorted((int(node), int(end)))
            number = (low & 0xFFFF) * 4096 + (high & 0xFFFF)
            prefixes.append(PrefixReachability(ipv4_prefix((128 << 24) + number * 2, 31), COST))
    return NodeBlock(
        node=node,
        neighbors=ends,
        metrics=np.full(size, COST, np.int64),
        capacities=capacities,
        availables=np.full(size, np.nan),
        local_ids=ends + (1 << 20),
        remote_ids=np.full(size, int(node) + (1 << 20), np.int64),
        prefixes=tuple(prefixes),
    )


def fabric(spines: int, leaves: int, *, link_prefixes: bool = False, slow: float = 0.0) -> Blocks:
    """Three stages; ``slow`` of all links at half rate."""
    random = np.random.default_rng(7)

    def capacities(count: int) -> NDArray[np.float64]:
        return np.where(random.random(count) < slow, RATE / 2, RATE)

    ups, downs = [spine(s) for s in range(spines)], [leaf(k) for k in range(leaves)]
    made = [make_block(n, downs, capacities(leaves), link_prefixes=link_prefixes) for n in ups]
    made += [make_block(n, ups, capacities(spines), link_prefixes=link_prefixes) for n in downs]
    return {block.node: block for block in made}


def pods(count: int, leaves: int, planes: int, supers: int) -> Blocks:
    """Five stages: spine k of every pod connected to all superspines of plane k."""

    def made(node: NodeId, ends: list[NodeId]) -> NodeBlock:
        return make_block(node, ends, np.full(len(ends), RATE))

    found = []
    for k in range(planes):
        tops = [spine(SUPERS + k * supers + top) for top in range(supers)]
        middles = [spine(pod * planes + k) for pod in range(count)]
        found += [made(top, middles) for top in tops]
        for pod, middle in enumerate(middles):
            below = [leaf(pod * leaves + at) for at in range(leaves)]
            found.append(made(middle, below + tops))
    for pod in range(count):
        above = [spine(pod * planes + k) for k in range(planes)]
        found += [made(leaf(pod * leaves + at), above) for at in range(leaves)]
    return {block.node: block for block in found}


def stub_leaves(blocks: Blocks) -> Blocks:
    """The same with leaves that carry no transit traffic (overload bit)."""
    return {
        node: replace(block, transit=False) if node >> 16 & 255 == 254 else block
        for node, block in blocks.items()
    }


def local_links(block: NodeBlock) -> tuple[LocalLink, ...]:
    return tuple(
        LocalLink(
            ifindex=index + 2,
            interface=f"swp{index + 1}",
            neighbor=NodeId(int(neighbor)),
            gateway=int(neighbor) + (1 << 20),
            local_id=int(block.local_ids[index]),
            metric=int(block.metrics[index]),
            bandwidth=RATE,
        )
        for index, neighbor in enumerate(block.neighbors.tolist())
    )


def without(block: NodeBlock, neighbor: int) -> NodeBlock:
    """A block without its links to a neighbor."""
    keep = block.neighbors != neighbor
    names = (
        "neighbors",
        "metrics",
        "capacities",
        "availables",
        "local_ids",
        "remote_ids",
    )
    return replace(block, **{name: getattr(block, name)[keep] for name in names})


def with_capacity(block: NodeBlock, neighbor: int, rate: float) -> NodeBlock:
    """A block with another capacity toward a neighbor."""
    capacities = np.where(block.neighbors == neighbor, rate, block.capacities)
    return replace(block, capacities=capacities)


def odd_rates(count: int) -> list[float]:
    """Different capacities, none in a simple ratio to the others."""
    return [RATE * (0.3103 + 0.0137 * number) for number in range(count)]
