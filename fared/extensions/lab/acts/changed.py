"""A topology with further settings for an act: labels of routers, settings of hosts, MTU."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from fared.extensions.lab import topology
from fared.extensions.lab.labels import PREFIX, SEGMENTATION, SINGLE
from fared.extensions.lab.topology import LabTopology

JUMBO = 9000
REORDERING_HOSTS: Mapping[str, Mapping[str, Any]] = {
    "labels": {SEGMENTATION.key: SINGLE},
    "sysctls": {"net.ipv4.tcp_min_rtt_wlen": 0, "net.ipv4.tcp_recovery": 5},
}
"""Hosts that accept packets out of order, as docs/hosts.md advises."""


def changed(
    source: LabTopology,
    *,
    adaptive: Mapping[str, object] | None = None,
    hosts: Mapping[str, Mapping[str, Any]] | None = None,
    mtu: int = JUMBO,
) -> LabTopology:
    """Return the topology with settings of ``adaptive:`` in routers, and more in hosts.

    Jumbo frames on all links by default: a third of the packets for the machine to move.
    """
    document = copy.deepcopy(dict(source.document))
    routers = {
        "labels": {f"{PREFIX}adaptive.{key}": value for key, value in (adaptive or {}).items()}
    }
    nodes = document["topology"]["nodes"]
    for name, node in source.nodes.items():
        if node.is_segment:
            continue
        own = nodes[name] = dict(nodes[name] or {})
        for part, added in (routers if node.is_router else hosts or {}).items():
            own[part] = {**(own.get(part) or {}), **added}
    for link in document["topology"].get("links", ()):
        link["mtu"] = mtu
    return topology.from_document(document, source.origin)
