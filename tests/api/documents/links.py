"""Documents about interfaces, neighbors and BFD sessions."""

from typing import Any

from fared.management.documents import bfd
from fared.management.documents.interface import (
    AuthenticationStatus,
    InterfaceDetail,
    InterfaceNeighbor,
    OspfInterfaceEntry,
    PacketCounts,
    RejectedPackets,
)
from fared.management.documents.interfaces import Interfaces
from fared.management.documents.link import Derated, LinkHealthStatus
from fared.management.documents.missing import MissingAdjacency
from fared.management.documents.neighbor import (
    MtuMismatch,
    OspfNeighborEntry,
    ProblemEntry,
    RefusedHelloEntry,
)
from fared.management.documents.neighbors import Neighbors
from tests.api.documents.common import GBIT, NOW, Json
from tests.api.sample import sample


def interface(name: str, index: int, **more: Any) -> Json:
    usual = {
        "interface": name,
        "ifindex": index,
        "up": True,
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
        "delay": None,
        "hello_interval": 1,
        "dead_interval": 4,
        "retransmit_interval": 5,
        "hello_in": 0.4,
        "neighbors": 1,
        "full": 1,
        "ttl_security": "off",
    }
    return sample(OspfInterfaceEntry, **(usual | more))


MISSING = [
    sample(
        MissingAdjacency,
        proto="ospf",
        interface="swp3",
        neighbor="10.255.0.3",
        hostname="spine3",
        since=NOW - 192,
        cause="carrier",
        text="carrier lost",
    ),
    sample(
        MissingAdjacency,
        proto="ospf",
        interface="swp7",
        cause="silent",
        text="no hello has arrived",
    ),
]

UNKNOWN = dict.fromkeys(
    ("bandwidth", "bandwidth_source", "utilized", "available", "announced_available")
)
"""The capacity of a loopback."""

INTERFACES: Json = sample(
    Interfaces,
    missing=MISSING,
    router_id="10.255.0.5",
    interfaces=[
        interface(
            "lo",
            1,
            network_type="loopback",
            state="Loopback",
            passive=True,
            **UNKNOWN,
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
            utilized=None,
            available=None,
        ),
    ],
)

ERRORS = "212 errors in 1904412 packets"

SICK_INTERFACES: Json = INTERFACES | {
    "interfaces": [
        interface(
            "swp49",
            49,
            bandwidth=100 * GBIT,
            available=40 * GBIT,
            utilized=60 * GBIT,
            derated=[
                sample(
                    Derated, by="anna", share=0.5, at=NOW - 86_400, reason="optics are on order"
                ),
                sample(Derated, by="link-health", share=0.25, at=NOW - 40, reason=ERRORS),
            ],
            health=sample(
                LinkHealthStatus,
                mode="act",
                errors=212,
                share=0.25,
                reason=ERRORS,
                recovers_in=58.0,
                penalty=2310.0,
                suppressed=True,
                reuse_in=24.3,
            ),
        )
    ]
}


def key(algorithm: str | None, key_id: int | None, *accepted: int, expired: bool = False) -> Json:
    return sample(
        AuthenticationStatus,
        algorithm=algorithm,
        key_id=key_id,
        expired=expired,
        accepted_key_ids=list(accepted),
    )


INTERFACES_LAN: Json = sample(
    Interfaces,
    router_id="10.255.0.5",
    interfaces=[
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
)


INTERFACE: Json = sample(
    Interfaces,
    router_id="10.255.0.5",
    interfaces=[INTERFACES["interfaces"][1], INTERFACES_LAN["interfaces"][2]],
    detail=[
        sample(
            InterfaceDetail,
            proto="ospf",
            interface="swp1",
            packets=[
                sample(PacketCounts, type="hello", sent=93_722, received=93_718, rejected=34),
                sample(PacketCounts, type="database-description", sent=9, received=8, rejected=0),
                sample(PacketCounts, type="ls-update", sent=1_207, received=1_316, rejected=0),
                sample(PacketCounts, type="ls-ack", sent=870, received=911, rejected=0),
            ],
            rejected=[
                sample(RejectedPackets, reason="auth-digest", packets=3),
                sample(RejectedPackets, reason="hello-interval-mismatch", packets=31),
            ],
            neighbors=[
                sample(
                    InterfaceNeighbor,
                    id="10.255.0.1",
                    hostname="spine1",
                    address="10.128.0.0",
                    state="Full",
                    uptime=93_700.0,
                    cost=10,
                    capacity=400 * GBIT,
                    available=276.6 * GBIT,
                )
            ],
        ),
        sample(InterfaceDetail, proto="ospf", interface="swp3"),
    ],
)


def neighbor(spine: int, **more: Any) -> Json:
    usual = {
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
        "own_address": f"10.128.0.{2 * spine - 1}",
        "network_type": "point-to-point",
        "mtu": 9216,
        "own_mtu": 9216,
        "hello_interval": 1.0,
        "dead_interval": 4.0,
        "options": ["E", "O"],
    }
    return sample(OspfNeighborEntry, **(usual | more))


NEIGHBORS: Json = sample(
    Neighbors,
    router_id="10.255.0.5",
    neighbors=[
        neighbor(1, bfd="Up"),
        neighbor(2, uptime=133.0, flaps=2, bfd="Up"),
        neighbor(3, state="ExStart", uptime=0.4, hostname=None, retransmission_list=3),
        neighbor(
            4,
            address="10.128.0.6",
            dead_in=0.2,
            state="ExStart",
            mtu_mismatch=sample(MtuMismatch, neighbor=9000, own=1500),
            problem=sample(
                ProblemEntry,
                cause="mtu-mismatch",
                text="its MTU differs: 9000, ours 1500, its descriptions are refused",
            ),
        ),
        neighbor(5, state="2-Way", uptime=0.3, waits_for=8),
    ],
)

NEIGHBOR: Json = sample(
    Neighbors,
    router_id="10.255.0.5",
    detail=True,
    neighbors=[
        NEIGHBORS["neighbors"][0],
        neighbor(
            9,
            interface="swp9",
            network_type="broadcast",
            designated_router="10.192.1.4",
            helped=41.0,
            flaps=1,
            retransmission_list=3,
            hostname=None,
            last_reason=None,
        ),
        NEIGHBORS["neighbors"][3],
    ],
)

REFUSED: Json = sample(
    Neighbors,
    router_id="10.255.0.5",
    missing=MISSING,
    refused=[
        sample(
            RefusedHelloEntry,
            proto="ospf",
            interface="swp6",
            source="10.128.0.10",
            router_id="10.255.0.6",
            cause="hello-interval-mismatch",
            text="its hello interval differs: 10, ours 1",
            last=2.2,
            times=31,
        ),
        sample(
            RefusedHelloEntry,
            proto="ospf",
            interface="swp7",
            source="10.128.0.12",
            cause="auth-digest",
            text="its digest is wrong",
            last=61.0,
            times=1,
        ),
    ],
)

BFD: Json = {
    "format": "fared-bfd/1",
    "process": {
        "pid": 4711,
        "spare": 4712,
        "priority": "real-time 10",
        "starts": 1,
        "reported": 2.2,
    },
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
