"""What nftables of a router holds: by which shares packets to a prefix are sprayed."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_network

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.namespaces import Netns
from fared.kernel.nft import find_nft
from fared.kernel.spray import SprayTable


def sprayed(netns: Netns, prefix: str) -> list[float]:
    """Return the shares of packets to a prefix, ascending; empty if they are not sprayed.

    Raises LabError without nft.
    """
    program = find_nft()
    if program is None:
        raise LabError("nft is not installed (Debian package nftables)")
    with netns.entered():
        held, _ = SprayTable(program).read()
    network = ip_network(prefix)
    for block, group_id in held.blocks.items():
        if block.first <= int(network.network_address) <= block.last:
            order = held.rounds[group_id].order
            return sorted(count / len(order) for count in Counter(order).values())
    return []
