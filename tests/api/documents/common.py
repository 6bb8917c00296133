"""What documents of all subjects share: units, the time, next hops."""

from typing import Any

GBIT = 1e9 / 8

NOW = 1_790_000_000.0

Json = dict[str, Any]


def hop(spine: int, capacity: float | None, weight: int, share: float, **more: Any) -> Json:
    return {
        "interface": f"swp{spine}",
        "address": f"10.128.0.{2 * spine - 2}",
        "neighbor": f"10.255.0.{spine}",
        "hostname": f"spine{spine}",
        "bandwidth": 400 * GBIT,
        "capacity": capacity,
        "weight": weight,
        "share": share,
        **more,
    }


DEGRADED = [hop(1, 100 * GBIT, 1, 1 / 13)] + [hop(s, 400 * GBIT, 4, 4 / 13) for s in (2, 3, 4)]

EQUAL = [hop(s, 400 * GBIT, 1, 0.25) for s in (1, 2, 3, 4)]
