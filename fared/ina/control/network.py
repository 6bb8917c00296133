"""The network as jobs see it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fared.core.ids import NodeId
from fared.ina.plan.model import Direction


class JobNetwork(msgspec.Struct, frozen=True):
    """The network: capacities of links (bytes/s), and the routers that are reachable."""

    links: Mapping[Direction, float]
    reachable: frozenset[NodeId]
