"""Fixture documents of IS-IS: the spine S1 of a PoD, level 1 below it and level 2 above."""

from typing import Any

from fared.management.documents import routes
from fared.management.documents.database import DatabaseDocument, DatabaseLevel, DatabaseLsp
from fared.management.documents.interface import InterfaceDetail, IsisInterfaceEntry, Lan
from fared.management.documents.interfaces import Interfaces
from fared.management.documents.lsdb import IsisLsdb, IsisLsdbLsp
from fared.management.documents.neighbor import FloodingSpeed, IsisNeighborEntry
from fared.management.documents.neighbors import Neighbors
from fared.management.documents.timers import PendingTimer, Timers
from tests.api.documents.common import GBIT, NOW
from tests.api.documents.databases import DATABASE, SPF, TOPOLOGY
from tests.api.documents.links import INTERFACES, NEIGHBORS, UNKNOWN, key
from tests.api.documents.router import STATUS, TIMERS
from tests.api.documents.routing import WEIGHTS
from tests.api.sample import sample

Json = dict[str, Any]
SYSTEM = "0102.5500.0005"


def system(number: int) -> str:
    return f"0102.5500.{number:04d}"


def name(number: int) -> str | None:
    return {1: "super1", 2: "super2", 5: "spine1", 6: "leaf1", 7: "leaf2"}.get(number)


LEVELS: Json = {
    "system_id": SYSTEM,
    "areas": ["49.0001"],
    "families": ["ipv4", "ipv6"],
    "overloaded": True,
    "unauthenticated": 1,
    "attached": True,
    "flooding": {"reduction": "leaf", "delay": 0.2, "topologies": []},
    "levels": [
        {
            "level": "level-1",
            "interfaces": 3,
            "neighbors": 2,
            "up": 1,
            "lsps": 4,
            "checksum": "0x0001a179",
        },
        {
            "level": "level-2",
            "interfaces": 2,
            "neighbors": 1,
            "up": 1,
            "lsps": 3,
            "checksum": "0x0000effc",
        },
    ],
}
ISIS_STATUS: Json = {
    **STATUS,
    "hostname": "spine1",
    "router_id": SYSTEM,
    "drained": True,
    "drained_by": "anna",
    "drained_reason": "optics of swp49",
    "config": {**STATUS["config"], "last_reload_ok": True, "last_reload_error": None},
    "spraying": {
        "granularity": "flow",
        "groups": 0,
        "prefixes": 0,
        "drift": 0,
        "problem": None,
        "nexthops": [],
    },
    "sysctls": [],
    "ospf": None,
    "isis": LEVELS,
}
BOTH_STATUS: Json = {**ISIS_STATUS, "router_id": "10.255.0.5", "ospf": STATUS["ospf"]}


def circuit(interface: str, index: int, *levels: int, **more: Any) -> Json:
    usual = {
        "interface": interface,
        "ifindex": index,
        "up": True,
        "area": f"level-{'-'.join(map(str, levels))}",
        "levels": list(levels),
        "network_type": "point-to-point",
        "state": "Point-to-point",
        "priority": 64,
        "circuit_id": index,
        "cost": 10,
        "mtu": 9216,
        "addresses": ["fe80::200:0:2/64"],
        "unnumbered": True,
        "bandwidth": 400 * GBIT,
        "bandwidth_source": "speed",
        "utilized": 123.4 * GBIT,
        "available": 276.6 * GBIT,
        "announced_available": 280 * GBIT,
        "delay": None,
        "hello_interval": 1.0,
        "hello_multiplier": 4,
        "dead_interval": 4.0,
        "retransmit_interval": 5.0,
        "hello_in": 0.4,
        "neighbors": 1,
        "full": 1,
    }
    return sample(IsisInterfaceEntry, **(usual | more))


ISIS_INTERFACES: Json = sample(
    Interfaces,
    router_id=SYSTEM,
    interfaces=[
        circuit(
            "lo",
            1,
            1,
            2,
            state="Loopback",
            network_type="loopback",
            passive=True,
            **UNKNOWN,
            neighbors=0,
            full=0,
        ),
        circuit("swp1", 2, 2),
        circuit("swp2", 3, 1, flaps=2, full=0, prefix_suppression=True),
        circuit(
            "swp3",
            4,
            1,
            2,
            network_type="broadcast",
            state="DIS",
            neighbors=4,
            full=4,
            lans=[
                sample(Lan, level=1, dis=f"{SYSTEM}.04", hostname="spine1", is_dis=True),
                sample(Lan, level=2),
            ],
            authentication=key("hmac-sha-256", 3, 2, 3),
        ),
    ],
)
ISIS_INTERFACE: Json = sample(
    Interfaces,
    router_id=SYSTEM,
    interfaces=[
        ISIS_INTERFACES["interfaces"][0] | {"hello_in": None},
        ISIS_INTERFACES["interfaces"][3],
    ],
    detail=[
        sample(InterfaceDetail, proto="isis", interface="lo"),
        sample(InterfaceDetail, proto="isis", interface="swp3"),
    ],
)
BOTH_INTERFACES: Json = {
    **INTERFACES,
    "interfaces": INTERFACES["interfaces"] + ISIS_INTERFACES["interfaces"][:2],
}


def adjacency(number: int, interface: str, *levels: int, **more: Any) -> Json:
    usual = {
        "router_id": system(number),
        "system_id": system(number),
        "hostname": name(number),
        "area": f"level-{'-'.join(map(str, levels))}",
        "levels": list(levels),
        "interface": interface,
        "address": f"10.128.0.{number}",
        "addresses": [f"10.128.0.{number}", f"fe80::200:{number}:2"],
        "snpa": f"02:00:00:00:{number:02x}:02",
        "areas": ["49.0001"],
        "state": "Up",
        "uptime": 93_700.0,
        "holding_time": 4.0,
        "dead_in": 3.412,
        "priority": 64,
        "topologies": [0, 2],
        "extended_circuit_id": 2,
        "flooding": sample(
            FloodingSpeed,
            burst_size=20,
            transmission_interval=250,
            lsps_per_psnp=90,
            psnp_interval=100,
            receive_window=200,
        ),
        "last_reason": "neighbor in three-way state Up",
        "own_address": "10.128.0.0/31, fe80::200:5:2/64",
        "network_type": "point-to-point",
        "mtu": 9216,
        "own_mtu": 9216,
        "hello_interval": 1.0,
        "dead_interval": 4.0,
    }
    return sample(IsisNeighborEntry, **(usual | more))


ISIS_NEIGHBORS: Json = sample(
    Neighbors,
    router_id=SYSTEM,
    neighbors=[
        adjacency(
            1, "swp1", 2, bfd={"ipv4": "Up", "ipv6": "Down"}, areas=["49.0000", "49.0000.00ff"]
        ),
        adjacency(6, "swp2", 1, state="Initializing", uptime=None, hostname=None, flaps=2),
        adjacency(7, "swp3", 1, 2, addresses=["fe80::200:7:2"], dead_in=0.2),
    ],
)
ISIS_NEIGHBOR: Json = sample(
    Neighbors,
    router_id=SYSTEM,
    detail=True,
    neighbors=[
        ISIS_NEIGHBORS["neighbors"][0],
        adjacency(7, "swp3", 1, 2, network_type="broadcast", dis="0102.5500.0007.04", mtu=0),
    ],
)
BOTH_NEIGHBORS: Json = {
    **NEIGHBORS,
    "neighbors": NEIGHBORS["neighbors"][:2] + ISIS_NEIGHBORS["neighbors"][:1],
}


def lsp(number: int, pseudonode: int = 0, fragment: int = 0, **more: Any) -> Json:
    usual = {
        "type": "pseudonode" if pseudonode else "lsp",
        "lsp_id": f"{system(number)}.{pseudonode:02x}-{fragment:02x}",
        "hostname": name(number),
        "seq": 7,
        "lifetime": 1098,
        "checksum": 0xA4F3,
        "length": 360,
        "self_originated": number == 5,
    }
    return sample(DatabaseLsp, **(usual | more))


def level(number: int, checksum: str, *lsps: Json) -> Json:
    return sample(DatabaseLevel, level=f"level-{number}", checksum=checksum, lsps=list(lsps))


ISIS_DATABASE: Json = sample(
    DatabaseDocument,
    router_id=SYSTEM,
    levels=[
        level(
            1,
            "0x0001a179",
            lsp(5, attached=True, overload=True),
            lsp(5, 4, length=67),
            lsp(6, fragment=1, length=1492, lifetime=612),
            lsp(9, purged=True, lifetime=0, length=27),
        ),
        level(2, "0x0000effc", lsp(1), lsp(5)),
    ],
)
BOTH_DATABASE: Json = {**DATABASE, "levels": ISIS_DATABASE["levels"][1:]}

ISIS_DATABASE_DETAIL: Json = {
    **ISIS_DATABASE,
    "levels": [
        level(
            1,
            "0x0001a179",
            lsp(
                6,
                body={
                    "pdu": "l1-lsp",
                    "tlvs": {
                        "area_addresses": ["49.0001"],
                        "protocols": [204, 142],
                        "hostname": "leaf1",
                        "ext_is_reach": [
                            {
                                "neighbor": f"{SYSTEM}.00",
                                "metric": 10,
                                "sub": {
                                    "local_identifier": 2,
                                    "remote_identifier": 3,
                                    "unreserved_bandwidth": [400 * GBIT] * 8,
                                    "residual_bandwidth": 100 * GBIT,
                                },
                            }
                        ],
                        "ipv6_reach": [
                            {"prefix": "2001:db8:0:6::/64", "metric": 10, "down": False}
                        ],
                    },
                },
            ),
        )
    ],
}

ISIS_LSDB: Json = sample(
    IsisLsdb,
    proto="isis",
    system_id=SYSTEM,
    levels=[1, 2],
    lsps=[sample(IsisLsdbLsp, level=2, hex="831b0100")],
)

BOTH = ["ipv4", "ipv6"]


def link(tail: int, head: int, capacity: float, families: list[str]) -> Json:
    return {
        "from": system(tail),
        "to": system(head),
        "metric": 10,
        "capacity": capacity,
        "available": capacity,
        "two_way": True,
        "families": families,
    }


ISIS_TOPOLOGY: Json = {
    "format": "fared-topology/1",
    "router_id": SYSTEM,
    "areas": [
        {
            "proto": "isis",
            "area": "level-1",
            "nodes": [
                {
                    "id": system(number),
                    "hostname": name(number),
                    "network": False,
                    "transit": number != 5,
                    "last_resort": False,
                    "prefixes": 6,
                }
                for number in (5, 6, 7)
            ],
            "links": [
                link(5, 6, 100 * GBIT, BOTH),
                link(6, 5, 400 * GBIT, BOTH),
                link(5, 7, 400 * GBIT, ["ipv4"]),
            ],
            "lost": [],
        }
    ],
}
BOTH_TOPOLOGY: Json = {**TOPOLOGY, "areas": TOPOLOGY["areas"] + ISIS_TOPOLOGY["areas"]}


def reached(number: int, level: str, metric: int, *hops: int, **more: Any) -> Json:
    return {
        "id": system(number),
        "hostname": name(number),
        "proto": "isis",
        "families": BOTH,
        "area": level,
        "metric": metric,
        "first_hops": [system(hop) for hop in hops],
        **more,
    }


ISIS_SPF: Json = {
    "format": "fared-spf/1",
    "root": SYSTEM,
    "backoff": "quiet",
    "nodes": [
        reached(5, "level-1", 0),
        reached(6, "level-1", 10, 6),
        reached(7, "level-1", 10, 7, families=["ipv4"]),
        reached(7, "level-1", 20, 6, families=["ipv6"]),
        reached(1, "level-2", 10, 1),
    ],
}
BOTH_SPF: Json = {**SPF, "nodes": SPF["nodes"] + ISIS_SPF["nodes"][-1:]}


def hop(number: int, capacity: float, weight: int, share: float, address: str) -> Json:
    return {
        "interface": f"swp{number}",
        "address": address,
        "neighbor": system(number),
        "hostname": name(number),
        "bandwidth": 400 * GBIT,
        "capacity": capacity,
        "weight": weight,
        "share": share,
    }


def route(prefix: str, level: int, nexthops: list[Json], **more: Any) -> Json:
    usual = {
        "prefix": prefix,
        "protocol": "isis",
        "preference": 115,
        "metric": 30,
        "type": f"level-{level}",
        "area": f"level-{level}",
        "nexthops": nexthops,
    }
    return sample(routes.RouteEntry, **(usual | more))


VIA4 = [hop(1, 100 * GBIT, 1, 0.2, "10.128.0.1"), hop(2, 400 * GBIT, 4, 0.8, "fe80::200:2:2")]
VIA6 = [hop(1, 100 * GBIT, 1, 0.2, "fe80::1"), hop(9, 400 * GBIT, 4, 0.8, "fe80::200:9:2")]
ISIS_ROUTES: Json = {
    "format": "fared-routes/1",
    "root": SYSTEM,
    "af": "both",
    "routes": [
        route("10.0.1.0/24", 1, [], metric=10, connected=True),
        route("10.0.2.0/24", 2, VIA4),
        route("2001:db8:0:1::/64", 1, [], metric=10, connected=True),
        route("2001:db8:0:2::/64", 2, VIA6),
    ],
}

ISIS_EXPLAIN: Json = {
    "format": "fared-explain/1",
    "root": SYSTEM,
    "prefix": "2001:db8:0:2::/64",
    "protocol": "isis",
    "preference": 115,
    "metric": 30,
    "type": "level-2",
    "area": "level-2",
    "connected": False,
    "discard": False,
    "destinations": [{"id": system(8), "hostname": None}],
    "nexthops": [
        {**entry, "ecmp_share": 0.5, "limiting_link": None, "reason": "its own link"}
        for entry in VIA6
    ],
    "weights": "capacity",
    "granularity": "flow",
    "summary": "2001:db8:0:2::/64 is behind 0102.5500.0008, 2 next hops at metric 30.",
    "missing": [],
    "withheld": [],
    "last_change": {
        "at": NOW - 12,
        "causes": [f"lsp {system(1)}.00-00 seq 0x00000004"],
        "changes": ["spine1 > leaf2: 100G to 25G"],
    },
}

ISIS_PATH_BEYOND: Json = {
    "format": "fared-path/1",
    "protocol": "isis",
    "af": "ipv6",
    "prefix": "2001:db8:0:2::/64",
    "source": system(2),
    "source_hostname": "super2",
    "destination": system(8),
    "destination_hostname": None,
    "metric": 40,
    "capacity": None,
    "edges": [],
}

ISIS_WEIGHTS: Json = {
    **WEIGHTS,
    "announcements": [
        WEIGHTS["announcements"][0] | {"protocol": "isis", "area": "level-2", "averaging": 0.0}
    ],
    "vectors": [
        {
            "protocol": "isis",
            "af": "ipv6",
            "prefixes": 2,
            "examples": ["2001:db8:0:2::/64", "fd00::aff:8/128"],
            "destinations": [system(8)],
            "granularity": "flow",
            "quantization_error": 0.0,
            "adaptation": None,
            "members": [
                {**entry, "wanted_share": entry["share"], "ecmp_share": 0.5, "error": 0.0}
                for entry in VIA6
            ],
        }
    ],
}

BOTH_TIMERS: Json = sample(
    Timers,
    timers=[
        sample(PendingTimer, timer="hello", proto="isis", subject="swp1", due_in=0.21),
        *TIMERS["timers"],
        sample(PendingTimer, timer="fib-housekeeping", due_in=1500.0),
    ],
)
