"""Documents that the page asks for."""

from typing import Any

from fared.management.documents import changed, fabric
from tests.api.documents.common import GBIT, NOW, Json
from tests.api.sample import sample

REASON = "25% of the 400G that are usual"


def _router(n: int, name: str, role: str, far: list[int], **more: Any) -> Json:
    capacity = [100 * GBIT if {n, end} == {1, 6} else 400 * GBIT for end in far]
    usual = {
        "id": f"10.255.0.{n}",
        "ids": [f"10.255.0.{n}"],
        "hostname": name,
        "here": n == 5,
        "transit": True,
        "prefixes": 1 if role == "spine" else 2,
        "tier": int(role == "spine"),
        "role": role,
        "links": sample(
            fabric.LinkColumns,
            to=[f"10.255.0.{end}" for end in far],
            count=[1] * len(far),
            metric=[1] * len(far),
            capacity=capacity,
            available=[value * 0.75 for value in capacity],
            marks=[
                sample(fabric.LinkMark, to=f"10.255.0.{end}", state="reduced", reason=REASON)
                for end in far
                if {n, end} == {1, 6}
            ],
        ),
    }
    return sample(fabric.FabricNode, **(usual | more))


FABRIC: Json = sample(
    fabric.FabricDocument,
    router_id="10.255.0.5",
    hostname="leaf1",
    at=NOW,
    clos=True,
    nodes=[
        _router(1, "spine1", "spine", [5, 6]),
        _router(2, "spine2", "spine", [5, 6], last_resort=True),
        _router(5, "leaf1", "leaf", [1, 2]),
        _router(6, "leaf2", "leaf", [1, 2]),
    ],
    jobs=[
        {
            "name": "train",
            "leaves": ["10.255.0.5", "10.255.0.6"],
            "trees": [
                {
                    "root": "10.255.0.1",
                    "weight": 1,
                    "branches": [{"router": "10.255.0.1", "parent": None}],
                }
            ],
        }
    ],
)

CHANGED: Json = sample(
    changed.Changed,
    at=NOW - 133,
    causes=["router LSA of spine1 (10.255.0.1): link to leaf2 gone"],
    changed=3,
    later=1,
    routes=[
        {"prefix": "10.0.2.0/24", "present": True},
        {"prefix": "10.255.0.6/32", "present": False},
    ],
)
