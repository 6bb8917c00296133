"""Documents that the page asks for."""

from typing import Any

from fared.management.documents import changed, fabric
from fared.management.documents.lost import MissingLink
from tests.api.documents.common import GBIT, NOW, Json
from tests.api.sample import sample

REASON = "25% of the 400G that are usual"


def _missing(a: int, b: int, **more: Any) -> Json:
    """The link between two routers of four spines and eight leaves."""
    usual = {
        "from": f"10.255.0.{a}",
        "to": f"10.255.0.{b}",
        "from_hostname": f"spine{a}",
        "to_hostname": f"leaf{b - 4}",
    }
    return sample(MissingLink, **(usual | more))


MISSING_LINKS = [
    _missing(3, 9, links=1, since=NOW - 7385, have=7, siblings=7, sibling_of="10.255.0.9"),
    _missing(4, 6, have=6, siblings=7, sibling_of="10.255.0.6"),
    *(_missing(n, 12, links=1, since=NOW - 60, alone="10.255.0.12") for n in range(1, 5)),
]


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
    missing=MISSING_LINKS,
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
    weakest={
        "from": "10.255.0.5",
        "from_hostname": "leaf1",
        "to": "10.255.0.6",
        "to_hostname": "leaf2",
        "capacity": 28_125_000.0,
        "usual": 50_000_000.0,
        "alike": 1,
        "pairs": 2,
        "unknown": 0,
    },
    oversubscription={"hosts": 75e9, "routers": 50e9, "ratio": 1.5},
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
