"""Documents of BGP: leaf1 of AS 65011, unnumbered below two spines, and a numbered neighbor."""

from typing import Any

from fared.management.documents import explain, routes
from fared.management.documents.bgp_routes import (
    AdvertisedTo,
    BgpPathEntry,
    BgpRouteEntry,
    BgpRoutes,
    SharedLimitEntry,
)
from fared.management.documents.bgp_summary import BgpSummary
from fared.management.documents.happened import WhatChanged
from fared.management.documents.interface import (
    BgpInterfaceEntry,
    InterfaceDetail,
    InterfaceNeighbor,
)
from fared.management.documents.interfaces import Interfaces
from fared.management.documents.neighbor import (
    BgpNeighborEntry,
    PathBandwidthUse,
    ProblemEntry,
    SessionFamily,
)
from fared.management.documents.neighbors import Neighbors
from fared.management.documents.packet_counts import PacketCounts, RejectedPackets
from fared.management.documents.protocol_status import BgpFamilyStatus, BgpStatus
from tests.api.documents.common import GBIT, NOW, Json
from tests.api.documents.links import MISSING
from tests.api.documents.router import STATUS
from tests.api.sample import sample

ROUTER = "10.255.0.11"


def session(number: int, **more: Any) -> Json:
    usual = {
        "router_id": f"10.255.0.{number}",
        "hostname": f"spine{number}",
        "interface": f"swp{number}",
        "peer": f"swp{number}",
        "address": f"fe80::200:{number}:1",
        "own_address": f"fe80::200:11:{number}",
        "state": "Established",
        "uptime": 93_700.0,
        "dead_in": 6.2,
        "remote_as": 65000,
        "external": True,
        "hold_time": 9.0,
        "keepalive": 3.0,
        "capabilities": ["ipv4", "ipv6", "four-octet AS", "route refresh", "extended next hop"],
        "families": [family("ipv4", 1024, 2, number), family("ipv6", 512, 2, number)],
        "updates_received": 812,
        "updates_sent": 4,
        "messages": messages(812),
        "imports": ["all"],
        "exports": ["own"],
        "maximum_prefixes": 100_000,
        "capacity": 400 * GBIT,
        "path_bandwidth": use(),
    }
    return sample(BgpNeighborEntry, **(usual | more))


def use(**more: Any) -> Json:
    usual = {"send": "transitive", "value": "path", "receive": True, "missing": "link"}
    return sample(PathBandwidthUse, **(usual | more))


def messages(updates: int, rejected: int = 0) -> list[Json]:
    kinds = {"OPEN": (1, 1, 0), "UPDATE": (4, updates, rejected), "KEEPALIVE": (31_232, 31_230, 0)}
    return [
        sample(PacketCounts, type=kind, sent=sent, received=received, rejected=bad)
        for kind, (sent, received, bad) in kinds.items()
    ]


def family(af: str, received: int, told: int, number: int, **more: Any) -> Json:
    hop = f"fe80::200:11:{number}"
    return sample(SessionFamily, af=af, received=received, advertised=told, next_hop=hop, **more)


FAILED = session(
    3,
    peer="10.9.1.2",
    router_id="10.9.1.2",
    hostname=None,
    interface="eth3",
    address="10.9.1.2",
    own_address="10.9.1.1",
    state="Active",
    problem=sample(ProblemEntry, cause="session", text="connection refused"),
    last_reason="connection refused",
    uptime=12.0,
    dead_in=None,
    remote_as=65100,
    hold_time=None,
    keepalive=None,
    capabilities=[],
    families=[],
    updates_received=0,
    updates_sent=0,
    messages=[],
    flaps=2,
    imports=None,
    exports=["own", "igp"],
    export_filter="servers",
    authenticated=True,
    ttl_security=True,
    description="firewall of pod 2",
    bfd="Down",
    capacity=25 * GBIT,
    path_bandwidth=use(send="none", receive=False),
    min_path_bandwidth=10 * GBIT,
)
RESTARTING = session(
    2,
    helped=96.0,
    families=[family("ipv4", 1024, 0, 2, stale=96.0), family("ipv6", 512, 2, 2, waiting=1)],
    updates_rejected=2,
    messages=messages(812, 2),
    rejected=[sample(RejectedPackets, reason="attributes", packets=2)],
)
BGP_NEIGHBORS: Json = sample(
    Neighbors, router_id=ROUTER, neighbors=[session(1), RESTARTING, FAILED]
)
BGP_NEIGHBOR: Json = {**BGP_NEIGHBORS, "detail": True}
OF_BGP: Json = sample(
    BgpStatus,
    local_as=65011,
    router_id=ROUTER,
    neighbors=3,
    established=2,
    unauthenticated=2,
    graceful_shutdown=True,
    families=[
        sample(
            BgpFamilyStatus,
            af="ipv4",
            prefixes=1030,
            own=2,
            redistributed=4,
            received=2048,
            groups=34,
        ),
        sample(BgpFamilyStatus, af="ipv6", prefixes=514, own=2, received=1024, groups=33),
    ],
)
BGP_SUMMARY: Json = sample(
    BgpSummary,
    router_id=ROUTER,
    status=OF_BGP,
    neighbors=[session(1), RESTARTING, FAILED, session(4, shutdown=True, state="Idle")],
)
_SAID = {"no hello has arrived": "no router advertisement of it has been heard"}
MISSING_SESSIONS = [
    each | {"proto": "bgp", "text": _SAID.get(each["text"], each["text"])} for each in MISSING
]
BGP_STATUS: Json = STATUS | {
    "ospf": None,
    "bgp": OF_BGP,
    "links": {"total": 8, "missing": MISSING_SESSIONS},
}


def link(name: str, index: int, **more: Any) -> Json:
    usual = {
        "interface": name,
        "ifindex": index,
        "state": "Up",
        "up": True,
        "mtu": 9216,
        "addresses": [f"fe80::200:11:{index}/64"],
        "unnumbered": True,
        "bandwidth": 400 * GBIT,
        "bandwidth_source": "speed",
        "utilized": 123.4 * GBIT,
        "available": 276.6 * GBIT,
        "neighbors": 1,
        "full": 1,
    }
    return sample(BgpInterfaceEntry, **(usual | more))


HOSTS = link(
    "vlan10",
    9,
    passive=True,
    unnumbered=False,
    addresses=["10.0.2.1/24", "2001:db8:0:2::1/64"],
    announced=["10.0.2.0/24", "2001:db8:0:2::/64"],
    neighbors=0,
    full=0,
)
BGP_INTERFACES: Json = sample(
    Interfaces, router_id=ROUTER, interfaces=[link("swp1", 2), link("swp2", 3, full=0), HOSTS]
)
BGP_INTERFACE: Json = sample(
    Interfaces,
    router_id=ROUTER,
    interfaces=[link("swp1", 2), HOSTS],
    detail=[
        sample(
            InterfaceDetail,
            proto="bgp",
            interface="swp1",
            neighbors=[
                sample(
                    InterfaceNeighbor,
                    id="10.255.0.1",
                    hostname="spine1",
                    address="fe80::200:1:1",
                    state="Established",
                    uptime=93_700.0,
                    cost=1,
                )
            ],
            packets=messages(812),
        ),
        sample(InterfaceDetail, proto="bgp", interface="vlan10"),
    ],
)


def heard(number: int, told: float | None, **more: Any) -> Json:
    known = 400 * GBIT if told is None else min(told, 400 * GBIT)
    usual = {
        "neighbor": f"swp{number}",
        "router_id": f"10.255.0.{number}",
        "used": True,
        "as_path": "65000 65012",
        "origin": "igp",
        "next_hop": f"fe80::200:{number}:1",
        "bandwidth": told,
        "link": 400 * GBIT,
        "carries": known,
    }
    return sample(BgpPathEntry, **(usual | more))


def limit(number: int, carries: int, reach: int | None) -> Json:
    return sample(
        SharedLimitEntry,
        router_id=f"10.255.0.{number}",
        hostname=f"spine{number}" if number < 9 else None,
        remote_as=65000 + number,
        carries=carries * GBIT,
        reach=None if reach is None else reach * GBIT,
    )


PATHS = [
    heard(1, 25 * GBIT, best=True, limits=[limit(1, 25, None), limit(9, 25, 100)]),
    heard(
        2,
        400 * GBIT,
        med=7,
        available=300 * GBIT,
        communities=["65000:77", "graceful-shutdown", "65000:1:2"],
        extended_communities=["RT:65000:7"],
    ),
    heard(
        4,
        None,
        used=False,
        as_path="65000 65013 65012",
        origin="incomplete",
        why_not="its AS path is longer: 3, not 2",
    ),
]
BGP_ROUTES: Json = sample(
    BgpRoutes,
    router_id=ROUTER,
    local_as=65011,
    routes=[
        sample(
            BgpRouteEntry,
            prefix="10.0.2.0/24",
            paths=[
                sample(
                    BgpPathEntry,
                    neighbor="own",
                    used=True,
                    best=True,
                    origin="igp",
                    bandwidth=100 * GBIT,
                    carries=100 * GBIT,
                )
            ],
        ),
        sample(BgpRouteEntry, prefix="10.0.3.0/24", carries=425 * GBIT, paths=PATHS),
        sample(BgpRouteEntry, prefix="2001:db8:0:3::/64", carries=425 * GBIT, paths=PATHS[:2]),
    ],
)
BGP_ROUTE: Json = sample(
    BgpRoutes,
    router_id=ROUTER,
    local_as=65011,
    routes=[
        sample(
            BgpRouteEntry,
            prefix="10.0.3.0/24",
            carries=425 * GBIT,
            paths=PATHS,
            advertised_to=[
                sample(
                    AdvertisedTo,
                    neighbor="10.9.1.2",
                    bandwidth=25 * GBIT,
                    limits=[limit(9, 25, 100)],
                )
            ],
        )
    ],
)


def hop(number: int, weight: int, capacity: float) -> Json:
    return {
        "interface": f"swp{number}",
        "address": f"fe80::200:{number}:1",
        "neighbor": f"10.255.0.{number}",
        "hostname": f"spine{number}",
        "bandwidth": 400 * GBIT,
        "capacity": capacity,
        "weight": weight,
        "share": weight / 17,
    }


BGP_WEIGHTED: Json = sample(
    routes.Routes,
    root=ROUTER,
    af="ipv4",
    routes=[
        sample(
            routes.RouteEntry,
            prefix="10.0.3.0/24",
            protocol="bgp",
            preference=20,
            metric=2,
            type="bgp",
            nexthops=[
                sample(routes.RouteNextHop, **hop(1, 1, 25 * GBIT)),
                sample(routes.RouteNextHop, **hop(2, 16, 400 * GBIT)),
            ],
            changed_at=NOW - 12,
            installed=True,
        )
    ],
)
BGP_EXPLAIN: Json = sample(
    explain.Explain,
    root=ROUTER,
    prefix="10.0.3.0/24",
    protocol="bgp",
    preference=20,
    metric=2,
    type="bgp",
    area="unicast",
    weights="capacity",
    granularity="flow",
    nexthops=[
        sample(
            explain.ExplainNextHop,
            **hop(1, 1, 25 * GBIT),
            ecmp_share=0.5,
            limiting_link={
                "from": "10.255.0.1",
                "from_hostname": "spine1",
                "to": "10.0.3.0/24",
                "to_hostname": None,
                "capacity": 25 * GBIT,
            },
            reason="carries 25G, limited by what spine1 announces (25G)",
        ),
        sample(
            explain.ExplainNextHop,
            **hop(2, 16, 400 * GBIT),
            ecmp_share=0.5,
            reason="carries 400G, limited by its own link, leaf1 > spine2 (400G)",
        ),
    ],
    summary="10.0.3.0/24 is advertised by spine1 and spine2, 2 next hops. Together they"
    " carry 425G, plain ECMP could use only 50G.",
    last_change=sample(WhatChanged, at=NOW - 12, causes=["UPDATE of swp1"]),
)
