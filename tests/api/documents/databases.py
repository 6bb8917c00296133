"""Documents about LSAs and the graph that SPF runs on."""

from typing import Any

from fared.management.documents.schema import ospf
from tests.api.documents.common import GBIT, NOW, Json
from tests.api.sample import sample


def lsa(kind: str, id_: str, router: int, **more: Any) -> Json:
    usual = {
        "type": kind,
        "id": id_,
        "adv_router": f"10.255.0.{router}",
        "hostname": f"spine{router}" if router < 5 else "leaf1",
        "seq": 0x80000007,
        "age": 812,
        "checksum": 0xA4F3,
        "length": 108,
        "self_originated": router == 5,
    }
    return sample(ospf.DatabaseLsa, **(usual | more))


DATABASE: Json = {
    "format": "fared-database/1",
    "router_id": "10.255.0.5",
    "areas": [
        {
            "area": "0.0.0.0",
            "type": "normal",
            "checksum": "0x0012a4f3",
            "lsas": [
                lsa("router", "10.255.0.1", 1),
                lsa("router", "10.255.0.5", 5, age=3, length=132),
                lsa("te-link", "1.0.0.2", 1),
            ],
        }
    ],
    "as_scope": [],
    "levels": [],
}

DATABASE_DETAIL: Json = {
    **DATABASE,
    "areas": [
        {
            **DATABASE["areas"][0],
            "lsas": [
                lsa(
                    "router",
                    "10.255.0.1",
                    1,
                    body={
                        "flags": 0,
                        "links": [
                            {"type": 1, "id": "10.255.0.5", "data": "10.128.0.0", "metric": 10}
                        ],
                    },
                )
            ],
        }
    ],
}

LSDB: Json = {
    "format": "fared-lsdb/1",
    "proto": "ospf",
    "router_id": "10.255.0.5",
    "interfaces": [],
    "areas": [{"area": "0.0.0.0", "stub": False, "lsas": [{"hex": "00010001", "age": 1}]}],
    "as": [],
}


def edge(source: int, target: int, capacity: float, **more: Any) -> Json:
    return {
        "from": f"10.255.0.{source}",
        "to": f"10.255.0.{target}",
        "metric": 10,
        "capacity": capacity,
        "available": capacity * 0.7,
        **more,
    }


TOPOLOGY: Json = {
    "format": "fared-topology/1",
    "router_id": "10.255.0.5",
    "areas": [
        {
            "proto": "ospf",
            "area": "0.0.0.0",
            "nodes": [
                {
                    "id": f"10.255.0.{n}",
                    "hostname": name,
                    "network": False,
                    "transit": True,
                    "last_resort": n == 2,
                    "prefixes": 1 if n < 5 else 2,
                }
                for n, name in [(1, "spine1"), (2, "spine2"), (5, "leaf1"), (6, None)]
            ],
            "links": [
                edge(1, 5, 400 * GBIT, two_way=True, families=["ipv4"]),
                edge(1, 6, 100 * GBIT, two_way=True, families=["ipv4"]),
                edge(5, 1, 400 * GBIT, two_way=True, families=["ipv4"]),
                edge(6, 2, 400 * GBIT, two_way=False, families=["ipv4"]),
            ],
        }
    ],
}

SPF: Json = {
    "format": "fared-spf/1",
    "root": "10.255.0.5",
    "backoff": "quiet",
    "nodes": [
        {
            "id": "10.255.0.1",
            "hostname": "spine1",
            "proto": "ospf",
            "families": ["ipv4"],
            "area": "0.0.0.0",
            "metric": 10,
            "first_hops": ["10.255.0.1"],
        },
        {
            "id": "10.255.0.6",
            "hostname": None,
            "proto": "ospf",
            "families": ["ipv4"],
            "area": "0.0.0.0",
            "metric": 20,
            "first_hops": [f"10.255.0.{n}" for n in (1, 2, 3, 4)],
        },
    ],
}

SPF_LOG: Json = {
    "format": "fared-spf/1",
    "root": "10.255.0.5",
    "backoff": "quiet",
    "log": [
        {
            "at": NOW - 133,
            "causes": ["router LSA of spine1 (10.255.0.1): link to leaf2 gone", "and 3 more"],
            "spf_ran": True,
            "nodes": 12,
            "edges": 64,
            "routes": 3,
            "duration": 0.00042,
            "backoff": "short-wait",
        },
        {
            "at": NOW - 12,
            "causes": ["TE link LSA 1.0.0.2 of spine1"],
            "spf_ran": False,
            "nodes": 12,
            "edges": 64,
            "routes": 1,
            "duration": 0.00006,
            "backoff": "quiet",
        },
    ],
}
