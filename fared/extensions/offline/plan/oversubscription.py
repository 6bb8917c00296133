"""Oversubscription of leaves: what their hosts send over the capacity of their links to routers.

No database has the links to hosts: their rate is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fared.core.units import BytesPerSecond
from fared.extensions.offline.plan.fabric import PlanError, PlanFabric

Json = dict[str, Any]


def oversubscription(
    fabric: PlanFabric, hosts: Sequence[str], rate: BytesPerSecond | None
) -> Json | None:
    """Return the worst of these routers (none: of all ends) and its ratio; None without a rate.

    ``rate``: what the hosts of each router send together. Raises PlanError.
    """
    if rate is None:
        return None
    unknown = [name for name in hosts if name not in fabric.names]
    if unknown:
        raise PlanError(f"no router {unknown[0]!r} in the database")
    nodes = [fabric.names.index(name) for name in hosts] or fabric.ends.tolist()
    links = np.zeros(len(fabric.names))
    np.add.at(links, fabric.graph.src, fabric.capacity)
    ratios = [rate / links[node] if links[node] else math.inf for node in nodes]
    worst = int(np.argmax(ratios))
    node = nodes[worst]
    found = {"router": fabric.names[node], "ratio": float(ratios[worst])}
    return found | {"hosts": rate, "links": float(links[node])}
