"""Documents about routes: weights, next hops, the kernel, paths, convergence."""

from typing import Any

from fared.management.documents import routes
from tests.api.documents.common import DEGRADED, EQUAL, GBIT, NOW, Json
from tests.api.documents.databases import edge
from tests.api.documents.router import STATUS
from tests.api.sample import sample


def route(prefix: str, nexthops: list[Json], **more: Any) -> Json:
    usual = {
        "prefix": prefix,
        "protocol": "ospf",
        "preference": 110,
        "metric": 30,
        "type": "intra-area",
        "area": "0.0.0.0",
        "nexthops": nexthops,
    }
    return sample(routes.RouteEntry, **(usual | more))


ROUTES: Json = {
    "format": "fared-routes/1",
    "root": "10.255.0.5",
    "af": "ipv4",
    "routes": [
        route("10.0.1.0/24", [], metric=10, connected=True),
        route("10.0.0.0/16", [], metric=0, type="inter-area", discard=True),
        route("10.0.2.0/24", DEGRADED),
        route("10.0.3.0/24", EQUAL),
        route("0.0.0.0/0", EQUAL[:1], type="external-2", metric=1, area=None),
    ],
}


def member(base: Json, wanted: float) -> Json:
    return {
        **base,
        "wanted_share": wanted,
        "ecmp_share": 0.25,
        "error": base["share"] / wanted - 1,
    }


WEIGHTS: Json = {
    "format": "fared-weights/1",
    "root": "10.255.0.5",
    "metric": "capacity",
    "flows": None,
    "adaptation": None,
    "announcements": [
        {
            "protocol": "ospf",
            "area": "0.0.0.0",
            "budget": 500.0,
            "share": 3.906,
            "own_ends": 16,
            "all_ends": 2048,
            "threshold": 0.036,
            "averaging": 4.1,
            "deferred": 7,
            "announced": 1207,
            "joining": False,
        }
    ],
    "vectors": [
        {
            "protocol": "ospf",
            "af": "ipv4",
            "prefixes": 1,
            "examples": ["10.0.2.0/24"],
            "destinations": ["10.255.0.6"],
            "granularity": "flow",
            "quantization_error": 0.0,
            "members": [member(h, h["share"]) for h in DEGRADED],
            "adaptation": None,
        },
        {
            "protocol": "ospf",
            "af": "ipv4",
            "prefixes": 6,
            "examples": ["10.0.3.0/24", "10.0.4.0/24", "10.0.5.0/24"],
            "destinations": ["10.255.0.7", "10.255.0.8", "10.255.0.9"],
            "granularity": "packet",
            "quantization_error": 0.0012,
            "members": [member(h, 0.2497) for h in EQUAL],
            "adaptation": None,
        },
    ],
}

FIB: Json = {
    "format": "fared-fib/1",
    "table": 254,
    "protocol": 201,
    "metric": 20,
    "nexthops": [
        {
            "id": 262144000 + s,
            "interface": f"swp{s}",
            "address": f"10.128.0.{2 * s - 2}",
            "onlink": False,
            "discard": False,
        }
        for s in (1, 2, 3, 4)
    ]
    + [{"id": 262144005, "interface": "", "address": None, "onlink": False, "discard": True}],
    "groups": [
        {
            "id": 262668288,
            "type": "hash-threshold",
            "routes": 1,
            "members": [
                {
                    "nexthop_id": 262144000 + s,
                    "interface": f"swp{s}",
                    "address": f"10.128.0.{2 * s - 2}",
                    "weight": 1 if s == 1 else 4,
                }
                for s in (1, 2, 3, 4)
            ],
        }
    ],
    "routes": [{"prefix": "10.0.2.0/24", "nexthop_id": 262668288}],
}  # fmt: skip

FIB_DIFF: Json = {
    "format": "fared-fib/1",
    "table": 254,
    "protocol": 201,
    "metric": 20,
    "diff": [
        {"object": "route", "key": "10.0.2.0/24", "wanted": "262668288", "found": None},
        {
            "object": "group",
            "key": "262668288",
            "wanted": "swp1:1 swp2:4",
            "found": "swp1:1 swp2:1",
        },
    ],
}  # fmt: skip

EXPLAIN: Json = {
    "format": "fared-explain/1",
    "root": "10.255.0.5",
    "prefix": "10.0.2.0/24",
    "protocol": "ospf",
    "preference": 110,
    "metric": 30,
    "type": "intra-area",
    "area": "0.0.0.0",
    "connected": False,
    "discard": False,
    "destinations": [{"id": "10.255.0.6", "hostname": "leaf2"}],
    "nexthops": [
        {
            **h,
            "ecmp_share": 0.25,
            "limiting_link": {
                "from": h["neighbor"],
                "from_hostname": h["hostname"],
                "to": "10.255.0.6",
                "to_hostname": "leaf2",
                "capacity": 100 * GBIT,
            }
            if h["weight"] == 1
            else None,
            "reason": "the link spine1 to leaf2 carries 100G, a quarter of the others"
            if h["weight"] == 1
            else "nothing on the way carries less than the local link, 400G",
        }
        for h in DEGRADED
    ],
    "weights": "capacity",
    "granularity": "packet",
    "summary": "Four equal-cost paths through spine1 to spine4; spine1 gets 7.7% instead of 25%"
    " because its link to leaf2 is down to 100G.",
    "last_change": {"at": NOW - 12, "causes": ["TE link LSA 1.0.0.2 of spine1"]},
}

PATH: Json = {
    "format": "fared-path/1",
    "protocol": "ospf",
    "af": "ipv4",
    "prefix": "10.255.0.6/32",
    "source": "10.255.0.5",
    "source_hostname": "leaf1",
    "destination": "10.255.0.6",
    "destination_hostname": "leaf2",
    "metric": 20,
    "capacity": 1300 * GBIT,
    "edges": [
        edge(5, 1, 400 * GBIT, from_hostname="leaf1", to_hostname="spine1", share=1 / 13),
        edge(5, 2, 400 * GBIT, from_hostname="leaf1", to_hostname="spine2", share=4 / 13),
        edge(1, 6, 100 * GBIT, from_hostname="spine1", to_hostname="leaf2", share=1 / 13),
        edge(2, 6, 400 * GBIT, from_hostname="spine2", to_hostname="leaf2", share=4 / 13),
    ],
}

CONVERGENCE: Json = {
    "format": "fared-convergence/1",
    "stages": STATUS["stages"],
    "changes": [
        {
            "at": NOW - 133,
            "causes": ["router LSA of spine1 (10.255.0.1): link to leaf2 gone"],
            "spf_ran": True,
            "routes": 3,
            "operations": 5,
            "detected": 0.00008,
            "originated": 0.00031,
            "flooded": 0.00009,
            "waited": 0.0,
            "computed": 0.00042,
            "spf": 0.00025,
            "weighed": 0.00017,
            "planned": 0.00011,
            "programmed": 0.00035,
            "total": 0.00091,
        },
        {
            "at": NOW - 12,
            "causes": ["TE link LSA 1.0.0.2 of spine1"],
            "spf_ran": False,
            "routes": 1,
            "operations": 1,
            "detected": 0.00002,
            "originated": 0.00011,
            "flooded": 0.00004,
            "waited": 0.05,
            "computed": 0.00006,
            "spf": 0.00001,
            "weighed": 0.00005,
            "planned": 0.00002,
            "programmed": 0.00011,
            "total": 0.0503,
        },
    ],
}

VALIDATE: Json = {
    "format": "fared-validate/1",
    "ok": False,
    "checks": [
        {"name": "database", "ok": True, "detail": "76 LSAs, all checksums right"},
        {"name": "kernel", "ok": False, "detail": "route 10.0.2.0/24 is missing"},
    ],
}
