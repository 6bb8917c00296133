"""Fixture documents: leaf L1 of a fabric with four spines, one link at a quarter capacity."""

from typing import Any

from fared.api.documents import DOCUMENTS, Document
from fared.api.schema import bfd, bier, ina, ospf, routes
from tests.api.sample import sample
from tests.api.schemas import schema_of

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

STATUS: Json = {
    "format": "fared-status/1",
    "version": "0.1.0",
    "router_id": "10.255.0.5",
    "hostname": "leaf1",
    "pid": 4242,
    "started_at": NOW - 93_784,
    "uptime": 93_784.2,
    "ready": True,
    "stage": "ready",
    "stages": [
        {"stage": "links-known", "seconds": 0.012},
        {"stage": "adjacencies-up", "seconds": 1.04},
        {"stage": "ready", "seconds": 1.21},
    ],
    "drained": False,
    "drained_by": None,
    "drained_reason": None,
    "weights": "capacity",
    "config": {
        "file": "/etc/fared/fared.yaml",
        "loaded_at": NOW - 600,
        "last_reload_ok": False,
        "last_reload_error": "/etc/fared/fared.yaml:3:1: unknown key",
        "unconfirmed_until": None,
    },
    "ospf": {
        "stub_router": False,
        "unauthenticated": 4,
        "flooding": {"reduction": "none", "delay": 0.2, "topologies": []},
        "areas": [
            {
                "area": "0.0.0.0",
                "type": "normal",
                "interfaces": 5,
                "neighbors": 4,
                "full": 4,
                "lsas": 76,
                "checksum": "0x0012a4f3",
            }
        ],
    },
    "isis": None,
    "spf": {"runs": 41, "backoff": "quiet", "last_at": NOW - 133, "last_duration": 0.00042},
    "routes": {
        "total": 12,
        "connected": 5,
        "redistributed": 0,
        "martians": 0,
        "weighted": 1,
        "protocols": {"ospf": 12},
        "families": {"ipv4": 12},
    },
    "fib": {
        "routes": 7,
        "groups": 2,
        "nexthops": 4,
        "drift": 0,
        "resyncs": 1,
        "foreign": [{"prefix": "10.0.2.0/24", "protocol": 3}],
        "foreign_total": 1,
    },
    "spraying": {
        "granularity": "packet",
        "groups": 3,
        "prefixes": 12,
        "drift": 0,
        "problem": "nft is missing: install nftables",
        "nexthops": [
            {"interface": "swp1", "address": "10.1.1.0", "packets": 1000, "bytes": 1500000},
            {"interface": "swp2", "address": None, "packets": 1, "bytes": 100},
        ],
    },
    "sysctls": [
        {
            "name": "net.ipv4.fib_multipath_hash_policy",
            "wanted": "1",
            "found": "0",
            "action": "left",
            "ok": False,
            "why": "ports must count",
        }
    ],
    "event_loop_lag": 0.0004,
}


def interface(name: str, index: int, **more: Any) -> Json:
    usual = {
        "interface": name,
        "ifindex": index,
        "up": True,
        "proto": "ospf",
        "area": "0.0.0.0",
        "network_type": "point-to-point",
        "state": "Point-to-Point",
        "priority": 1,
        "cost": 10,
        "mtu": 9216,
        "addresses": [f"10.128.0.{2 * index - 1}/31"],
        "bandwidth": 400 * GBIT,
        "bandwidth_source": "speed",
        "utilized": 123.4 * GBIT,
        "available": 276.6 * GBIT,
        "announced_available": 280 * GBIT,
        "health": None,
        "derated": [],
        "hello_interval": 1,
        "dead_interval": 4,
        "neighbors": 1,
        "full": 1,
        "ttl_security": "off",
    }
    return sample(ospf.InterfaceEntry, **(usual | more))


INTERFACES: Json = {
    "format": "fared-interfaces/1",
    "router_id": "10.255.0.5",
    "interfaces": [
        interface(
            "lo",
            1,
            network_type="loopback",
            state="Loopback",
            passive=True,
            bandwidth=None,
            bandwidth_source=None,
            utilized=None,
            available=None,
            announced_available=None,
            neighbors=0,
            full=0,
            cost=0,
            addresses=["10.255.0.5/32"],
        ),
        interface(
            "swp1",
            2,
            bandwidth=100 * GBIT,
            bandwidth_source="shaper",
            utilized=88 * GBIT,
            available=12 * GBIT,
            announced_available=12 * GBIT,
            flaps=3,
        ),
        interface("swp2", 3),
        interface(
            "swp3",
            4,
            up=False,
            state="Down",
            full=0,
            neighbors=0,
            utilized=0.0,
            available=400 * GBIT,
        ),
    ],
}

SICK_INTERFACES: Json = INTERFACES | {
    "interfaces": [
        interface(
            "swp49",
            49,
            bandwidth=100 * GBIT,
            available=40 * GBIT,
            utilized=60 * GBIT,
            derated=[
                {"by": "anna", "share": 0.5, "at": NOW - 86_400, "reason": "optics are on order"},
                {
                    "by": "link-health",
                    "share": 0.25,
                    "at": NOW - 40,
                    "reason": "212 errors in 1904412 packets",
                },
            ],
            health={
                "mode": "act",
                "errors": 212,
                "packets": 1_904_412,
                "share": 0.25,
                "reason": "212 errors in 1904412 packets",
                "recovers_in": 58.0,
                "penalty": 2310.0,
                "suppressed": True,
                "reuse_in": 24.3,
            },
        )
    ]
}


def key(algorithm: str | None, key_id: int | None, *accepted: int, expired: bool = False) -> Json:
    return {
        "algorithm": algorithm,
        "key_id": key_id,
        "extended": False,
        "expired": expired,
        "accepted_key_ids": list(accepted),
    }


INTERFACES_LAN: Json = {
    "format": "fared-interfaces/1",
    "router_id": "10.255.0.5",
    "interfaces": [
        interface("swp1", 2, authentication=key("hmac-sha-256", 3, 2, 3), ttl_security="on"),
        interface("swp2", 3, authentication=key("hmac-sha-256", 3, 2, 3), ttl_security="on"),
        interface(
            "swp3",
            4,
            network_type="broadcast",
            state="DR Other",
            designated_router="10.192.1.4",
            designated_router_hostname="leaf4",
            backup_designated_router="10.192.1.3",
            full=2,
            neighbors=3,
            authentication=key("cleartext", 0, 0),
        ),
        interface(
            "swp4",
            5,
            network_type="broadcast",
            state="Waiting",
            priority=0,
            full=0,
            neighbors=0,
            authentication=key("md5", 1, 1, expired=True),
        ),
        interface(
            "swp5",
            6,
            full=0,
            neighbors=0,
            authentication=key(None, None),
            ttl_security="tx-only",
            prefix_suppression=True,
        ),
    ],
}


def neighbor(spine: int, **more: Any) -> Json:
    usual = {
        "proto": "ospf",
        "router_id": f"10.255.0.{spine}",
        "hostname": f"spine{spine}",
        "area": "0.0.0.0",
        "interface": f"swp{spine}",
        "address": f"10.128.0.{2 * spine - 2}",
        "state": "Full",
        "uptime": 93_700.0,
        "dead_in": 3.412,
        "priority": 1,
        "last_reason": "LoadingDone",
    }
    return sample(ospf.NeighborEntry, **(usual | more))


NEIGHBORS: Json = {
    "format": "fared-neighbors/1",
    "router_id": "10.255.0.5",
    "neighbors": [
        neighbor(1, bfd="Up"),
        neighbor(2, uptime=133.0, flaps=2, bfd="Up"),
        neighbor(3, state="ExStart", uptime=0.4, hostname=None, retransmission_list=3),
        neighbor(
            4,
            address="10.128.0.6",
            dead_in=0.2,
            state="ExStart",
            mtu_mismatch={"neighbor": 9000, "own": 1500},
        ),
        neighbor(5, state="2-Way", uptime=0.3, waits_for=8),
    ],
}


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
                    "transit": n != 2,
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

GRACEFUL_RESTART: Json = {
    "format": "fared-graceful-restart/1",
    "protocols": [
        {
            "proto": "ospf",
            "enabled": True,
            "restarting": {"planned": False, "since": 0.42, "remaining": 119.58},
            "restarted": {
                "planned": True,
                "duration": 0.713,
                "ended": 3600.0,
                "result": "completed",
            },
            "helper": True,
            "helping": [
                {
                    "interface": "swp1",
                    "router_id": "10.255.0.1",
                    "hostname": "spine1",
                    "reason": "software-restart",
                    "since": 2.31,
                    "remaining": 117.69,
                }
            ],
            "ended": [
                {
                    "interface": "swp2",
                    "router_id": "10.255.0.2",
                    "hostname": None,
                    "ended": 1200.0,
                    "result": "topology-change",
                },
                {
                    "interface": "swp1",
                    "router_id": "10.255.0.1",
                    "hostname": "spine1",
                    "ended": 61.0,
                    "result": "completed",
                },
            ],
        }
    ],
}

BFD: Json = {
    "format": "fared-bfd/1",
    "process": {"pid": 4711, "priority": "real-time 10", "starts": 1, "reported": 2.2},
    "discarded": {"no-session": 2, "ttl": 1},
    "sessions": [
        sample(
            bfd.BfdSessionEntry,
            interface="swp1",
            neighbor="10.128.0.0",
            state="Up",
            since=93_700.0,
            transmit_interval=0.3,
            detection_time=0.9,
        ),
        sample(
            bfd.BfdSessionEntry,
            interface="swp2",
            neighbor="fe80::28a2:88ff:fe0f:5a66",
            state="Down",
            neighbor_state="Down",
            diagnostic="control detection time expired",
            neighbor_diagnostic="neighbor signaled session down",
            since=4.2,
            transmit_interval=1.0,
            detection_time=3.0,
            downs=1,
            late=3,
            worst_late=0.12,
            extended=2,
        ),
    ],
    "detail": False,
}
BFD_DETAIL: Json = {**BFD, "detail": True}


def _bfer(bfr_id: int, prefix: str, *tables: int, **more: Any) -> Json:
    hops = [
        sample(bier.BierNextHop, interface=f"swp{n}", neighbor=f"10.255.0.{n}", tables=count)
        for n, count in enumerate(tables, 1)
    ]
    return sample(bier.Bfer, bfr_id=bfr_id, prefix=prefix, bit=bfr_id - 1, nexthops=hops, **more)


def _mask(spine: int, f_bm: str, bfr_ids: str) -> Json:
    return sample(
        bier.BiftMask,
        interface=f"swp{spine}",
        neighbor=f"10.255.0.{spine}",
        hostname=f"spine{spine}",
        f_bm=f_bm,
        bfr_ids=bfr_ids,
    )


BIER: Json = {
    "format": "fared-bier/1",
    "enabled": True,
    "sub_domain": 1,
    "bfr_id": 33,
    "bit_string_length": 64,
    "problem": "",
    "by_process": False,
    "bfers": [
        _bfer(1, "10.0.1.2/32", 16, hostname="leaf1", host=True),
        _bfer(2, "10.0.2.2/32", 1, 5, 5, 5, hostname="leaf2"),
        _bfer(3, "10.0.3.2/32", 4, 4, 4, 4, hostname="leaf3"),
        _bfer(33, "10.255.0.5/32", hostname="leaf1", local=True),
        _bfer(34, "10.255.0.6/32", problem="BFR-id also of 10.255.0.7/32"),
    ],
    "neighbors": [
        sample(
            bier.BfrNeighborEntry,
            interface=f"swp{spine}",
            neighbor=f"10.255.0.{spine}",
            hostname=f"spine{spine}",
            bfr_ids="2-3",
            packets=1200 * spine,
            bytes=1_800_000 * spine,
        )
        for spine in (1, 2)
    ],
    "bifts": [
        {
            "set": 0,
            "bift_id": 0x10100,
            "entropy": "0",
            "local": "33",
            "masks": [_mask(1, f"{6:016x}", "2-3")],
        },
        {
            "set": 0,
            "bift_id": 0x10100,
            "entropy": "1-3",
            "local": "33",
            "masks": [_mask(1, f"{4:016x}", "3"), _mask(2, f"{2:016x}", "2")],
        },
    ],
    "packets": sample(bier.BierPackets, received=3611, delivered=7, unknown=2),
    "bift": False,
}
BIER_BIFT: Json = {**BIER, "bift": True}


def _direction(tail: str, head: str) -> Json:
    return sample(ina.InaDirection, tail="", tail_hostname=tail, head="", head_hostname=head)


def _tree(spine: int, weight: int, seen: float, **more: Any) -> Json:
    node = sample(
        ina.InaNode,
        router=f"10.255.0.{spine}",
        hostname=f"spine{spine}",
        ranks=[0, 1, 2],
        bits=f"{7:016x}",
    )
    return sample(
        ina.InaTree,
        tree=spine - 1,
        root=f"10.255.0.{spine}",
        hostname=f"spine{spine}",
        kind="star",
        weight=weight,
        window=4 * weight,
        planned=weight * 12.5e6 / 8,
        seen=seen,
        nodes=[node],
        **more,
    )


def _worker(rank: int, **more: Any) -> Json:
    return sample(
        ina.InaWorker,
        rank=rank,
        address=f"10.0.{rank + 1}.2",
        port=54201,
        router=f"10.255.0.{rank + 5}",
        hostname=f"leaf{rank + 1}",
        **more,
    )


INA: Json = {
    "format": "fared-ina/1",
    "enabled": True,
    "what": "",
    "name": "",
    "process": sample(
        ina.InaProcessFacts,
        address="10.255.0.5",
        port=54200,
        memory=297_000,
        memory_limit=64 << 20,
        job_limit=16,
    ),
    "routers": [
        sample(
            ina.SummingRouter,
            router=f"10.255.0.{n}",
            hostname=f"spine{n}",
            address=f"10.255.0.{n}",
            memory=64 << 20,
        )
        for n in (1, 2)
    ],
    "jobs": [
        sample(
            ina.InaJob,
            name="train",
            epoch=2,
            reason="no link to 10.255.0.3",
            head="10.255.0.5",
            head_hostname="leaf1",
            payload=8192,
            planned=62.5e6 / 8,
            seen=58.1e6 / 8,
            waits_for=[1],
            repeated=12,
            workers=[_worker(0, state="joined", repeated=12), _worker(1), _worker(2)],
            trees=[
                _tree(1, 1, 11.8e6 / 8, limits=[_direction("leaf2", "spine1")]),
                _tree(
                    2,
                    4,
                    46.3e6 / 8,
                    limits=[_direction("spine2", f"leaf{n}") for n in (1, 2, 3)],
                    here=sample(
                        ina.InaTreeSlots, slots=33, open=5, waits_for=[1], sums=40210, repeated=3
                    ),
                ),
            ],
            others=[
                sample(
                    ina.InaNoRoot,
                    router="10.255.0.3",
                    hostname="spine3",
                    reason="has no link to leaf2",
                ),
                sample(ina.InaNoRoot, router="10.255.0.4", reason="does not sum"),
            ],
            here=sample(
                ina.InaHere,
                epoch=2,
                trees=1,
                memory=297_000,
                slots=33,
                open_slots=5,
                waits_for=[1],
                wait=1.25,
                counters={"added": 120_630, "duplicate": 3},
                workers={"0": "joined", "1": "absent", "2": "absent"},
            ),
        )
    ],
}
INA_JOB: Json = {**INA, "what": "job", "name": "train"}
INA_JOBS: Json = {**INA, "what": "jobs"}
INA_SLOTS: Json = {**INA, "what": "slots"}

TIMERS: Json = {
    "format": "fared-timers/1",
    "timers": [
        {"timer": "hello", "proto": "ospf", "subject": "swp1", "due_in": 0.31},
        {"timer": "inactivity", "proto": "ospf", "subject": "spine1 on swp1", "due_in": 3.4},
        {"timer": "refresh", "proto": "ospf", "subject": "router 10.255.0.5", "due_in": 1402.0},
    ],
}

COUNTERS: Json = {
    "format": "fared-counters/1",
    "counters": [
        {"proto": "ospf", "group": "packets", "name": "hello received", "value": 374_802},
        {"proto": "ospf", "group": "packets", "name": "ls-update sent", "value": 91},
        {"proto": "ospf", "group": "errors", "name": "checksum", "value": 0},
    ],
}

LOG: Json = {
    "format": "fared-log/1",
    "lines": [
        {
            "time": NOW - 133,
            "level": "warning",
            "event": "neighbor-changed",
            "fields": {"interface": "swp1", "previous": "Full", "state": "Down"},
        },
        {"time": NOW - 12, "level": "info", "event": "reloaded", "fields": {"changes": 1}},
    ],
}

CONFIG: Json = {
    "format": "fared-config/1",
    "saved": False,
    "file": "/etc/fared/fared.yaml",
    "loaded_at": NOW - 600,
    "config": {
        "router-id": "10.255.0.5",
        "ospf": {"areas": {"0.0.0.0": {"type": "normal"}}, "max-paths": 64},
        "fib": {"table": "main"},
    },
}

VALIDATE: Json = {
    "format": "fared-validate/1",
    "ok": False,
    "checks": [
        {"name": "database", "ok": True, "detail": "76 LSAs, all checksums right"},
        {"name": "kernel", "ok": False, "detail": "route 10.0.2.0/24 is missing"},
    ],
}

CONFIG_DIFF: Json = {
    "format": "fared-config-diff/1",
    "changes": [
        {
            "path": "ospf.areas[0.0.0.0].interfaces.swp1.cost",
            "old": 10,
            "new": 20,
            "action": "update-in-place",
        },
        {
            "path": "router-id",
            "old": "10.255.0.5",
            "new": "10.255.0.9",
            "action": "restart-required",
        },
    ],
}  # fmt: skip

RELOAD: Json = {
    "format": "fared-reload/1",
    "applied": True,
    "changes": CONFIG_DIFF["changes"][:1],
    "errors": [],
    "warnings": [],
}

CONFIG_CHANGE: Json = {
    "format": "fared-config-change/1",
    "applied": True,
    "confirmed": False,
    "confirm_within": 300.0,
    "changes": CONFIG_DIFF["changes"][:1],
    "errors": [],
    "warnings": [],
}
CONFIRMED = CONFIG_CHANGE | {"confirmed": True, "confirm_within": None, "changes": []}

CONFIG_HISTORY: Json = {
    "format": "fared-config-history/1",
    "unconfirmed_until": NOW + 272,
    "entries": [
        {
            "back": back,
            "at": NOW - 28 - 86_400 * back,
            "how": how,
            "user": user,
            "comment": comment,
            "changes": changes,
            "state": state,
        }
        for back, (how, user, comment, changes, state) in enumerate(
            [
                ("apply", "anna", "more weight for pod 2", 3, "unconfirmed"),
                ("reload", "SIGHUP", "", 1, "final"),
                ("start", "fared", "", 0, "final"),
            ]
        )
    ],
}


DRAIN: Json = {
    "format": "fared-drain/1",
    "drained": True,
    "interface": None,
    "share": None,
    "reason": "",
}
DRAIN_LINK = DRAIN | {"interface": "swp49", "share": 0.25, "reason": "optics"}


def _table(
    table: str,
    proto: str | None,
    area: str | None,
    entries: int,
    *,
    limit: int | None = None,
    state: str | None = None,
    ignored: int = 0,
    full: int = 0,
) -> Json:
    sizes = {"table": table, "proto": proto, "area": area, "entries": entries, "limit": limit}
    return sizes | {"state": state, "ignored": ignored, "times_full": full}


LOAD: Json = {
    "format": "fared-load/1",
    "router_id": "10.255.0.1",
    "period": 1.0,
    "interfaces": [
        {
            "interface": name,
            "bandwidth": bandwidth,
            "ages": [float(age) for age in range(89, -1, -1)],
            "loads": [
                part * 12.5e6 * (at % period < period / 2) + 1e5 * (at % 7) for at in range(90)
            ],
        }
        for name, bandwidth, part, period in (
            ("S1", 12.5e6, 0.95, 30),
            ("S2", 12.5e6, 0.6, 24),
            ("S3", None, 0.2, 90),
        )
    ],
}

MEMORY: Json = {
    "format": "fared-memory/1",
    "cpu": 41.3,
    "resident": 98 << 20,
    "peak_resident": 121 << 20,
    "descriptors": 61,
    "client_descriptors": 49152,
    "descriptor_limit": 65536,
    "event_loop_lag": 0.0004,
    "tables": [
        _table("lsdb", "ospf", "0.0.0.0", 76, limit=150_000, state="room"),
        _table("lsdb", "ospf", "as", 10_000, limit=8_000, state="full", ignored=2_310, full=2),
        _table("ted", "ospf", "0.0.0.0", 12),
        _table("prefixes", "ospf", None, 10_030, limit=600_000, state="room"),
        _table("rib", "ospf", None, 10_012),
        _table("routes", None, None, 10_007),
        _table("log", None, None, 1000),
    ],
}


def _router(n: int, name: str, role: str, far: list[int], **more: Any) -> Json:
    capacity = [100 * GBIT if {n, end} == {1, 6} else 400 * GBIT for end in far]
    usual = {
        "id": f"10.255.0.{n}",
        "ids": [f"10.255.0.{n}"],
        "hostname": name,
        "network": False,
        "here": n == 5,
        "transit": True,
        "prefixes": 1 if role == "spine" else 2,
        "tier": int(role == "spine"),
        "role": role,
        "pod": None,
        "plane": None,
        "links": {
            "to": [f"10.255.0.{end}" for end in far],
            "count": [1] * len(far),
            "metric": [1] * len(far),
            "capacity": capacity,
            "available": [value * 0.75 for value in capacity],
            "marks": [
                {
                    "to": f"10.255.0.{end}",
                    "state": "reduced",
                    "reason": "25% of the 400G that are usual",
                }
                for end in far
                if {n, end} == {1, 6}
            ],
        },
    }
    return usual | more


FABRIC: Json = {
    "format": "fared-fabric/1",
    "router_id": "10.255.0.5",
    "hostname": "leaf1",
    "at": NOW,
    "clos": True,
    "nodes": [
        _router(1, "spine1", "spine", [5, 6]),
        _router(2, "spine2", "spine", [5, 6], transit=False),
        _router(5, "leaf1", "leaf", [1, 2]),
        _router(6, "leaf2", "leaf", [1, 2]),
    ],
    "jobs": [
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
}

CHANGED: Json = {
    "format": "fared-changed/1",
    "at": NOW - 133,
    "causes": ["router LSA of spine1 (10.255.0.1): link to leaf2 gone"],
    "changed": 3,
    "later": 1,
    "routes": [
        {"prefix": "10.0.2.0/24", "present": True},
        {"prefix": "10.255.0.6/32", "present": False},
    ],
}

RECORD: Json = {
    "format": "fared-record/1",
    "recording": True,
    "directory": "/var/lib/fared/recording",
    "since": NOW - 5_000,
    "segments": 7,
    "calls": 214_733,
    "size": 47 << 20,
    "limit": 64 << 20,
    "failure": None,
}
RECORD_FAILED = RECORD | {"recording": False, "failure": "No space left on device"}

REPLAY: Json = {
    "format": "fared-replay/1",
    "directory": "/tmp/recording",
    "version": "0.1.0",
    "python": "3.11",
    "recorded_at": NOW - 5_000,
    "begins": "state",
    "segment": 7,
    "calls": 31_204,
    "seconds": 812.5,
    "until": "neighbor-changed:2",
    "reached": True,
    "equal": True,
    "confirmed": True,
    "difference": None,
    "raised": [],
    "events": {"packet-received": 9_313, "computed": 14, "neighbor-changed": 2},
    "router_id": "10.255.0.1",
    "hostname": "L1",
    "neighbors": 4,
    "routes": 31,
    "databases_digest": "8a1f0c99d2b7e4a05c3d11f0",
    "routes_digest": "04be77213fa9d6c8e21b5a90",
    "test": "/tmp/test_fault.recording",
}
REPLAY_DIFFERS = REPLAY | {
    "until": None,
    "reached": None,
    "equal": False,
    "confirmed": False,
    "raised": ["KeyError: 7"],
    "test": None,
    "difference": {
        "segment": 3,
        "call": 1_290,
        "now": 881.25,
        "what": "1 outputs, were 2",
        "outputs": ["From(proto='ospf', event=CloseInterface(ifindex=3))"],
    },
}

SHOWN = [
    value for name, value in list(globals().items()) if name.isupper() and isinstance(value, dict)
]


def answer(entry: Document) -> Json:
    """The answer of a daemon: the first document above of that format, or a schema sample."""
    blank = sample(schema_of(entry)) | {"format": entry.format}
    return next((shown for shown in SHOWN if shown["format"] == entry.format), blank)


ANSWERS: dict[str, Json] = {entry.command: answer(entry) for entry in DOCUMENTS} | {
    "config-diff": CONFIG_DIFF,
    "config-apply": CONFIG_CHANGE,
    "config-confirm": CONFIRMED,
    "config-rollback": CONFIG_CHANGE,
    "config-history": CONFIG_HISTORY,
    "reload": RELOAD,
    "drain": DRAIN,
    "undrain": DRAIN | {"drained": False},
    "restart": {"format": "fared-restart/1", "announced": True},
    "clear-limits": {"format": "fared-limits/1", "cleared": True},
    "record-start": RECORD,
    "record-stop": RECORD | {"recording": False},
    "record-status": RECORD,
}
