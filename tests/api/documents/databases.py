"""Documents about LSAs and the graph that SPF runs on."""

from typing import Any

from fared.management.documents import path, spf, topology
from fared.management.documents.database import DatabaseArea, DatabaseDocument, DatabaseLsa
from fared.management.documents.lsdb import LsdbArea, LsdbLsa, OspfLsdb
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
        "about": "2 links, 1 stub",
    }
    return sample(DatabaseLsa, **(usual | more))


def database(*lsas: Json) -> Json:
    area = sample(
        DatabaseArea, area="0.0.0.0", type="normal", checksum="0x0012a4f3", lsas=list(lsas)
    )
    return sample(DatabaseDocument, router_id="10.255.0.5", areas=[area])


DATABASE = database(
    lsa("router", "10.255.0.1", 1),
    lsa("router", "10.255.0.5", 5, age=3, length=132),
    lsa("te-link", "1.0.0.2", 1, about="spine1 > leaf1, 400G, 276.6G free"),
)

DATABASE_DETAIL = database(
    lsa(
        "router",
        "10.255.0.1",
        1,
        body={
            "flags": 0,
            "links": [{"type": 1, "id": "10.255.0.5", "data": "10.128.0.0", "metric": 10}],
        },
    )
)

DATABASE_WORDS = database(
    lsa(
        "router",
        "10.255.0.1",
        1,
        body={"flags": 0},
        words=[
            "link to another router (point-to-point): leaf1, from 10.128.0.0, metric 10",
            "stub network 10.0.2.0/24, metric 10",
        ],
    )
)

LSDB: Json = sample(
    OspfLsdb,
    proto="ospf",
    router_id="10.255.0.5",
    areas=[sample(LsdbArea, area="0.0.0.0", lsas=[sample(LsdbLsa, hex="00010001", age=1)])],
)


def ends(source: int, target: int, capacity: float) -> Json:
    rates = {"capacity": capacity, "available": capacity * 0.7}
    return {"from": f"10.255.0.{source}", "to": f"10.255.0.{target}", "metric": 10, **rates}


def edge(source: int, target: int, capacity: float, **more: Any) -> Json:
    return sample(path.PathEdge, **ends(source, target, capacity), **more)


def link(source: int, target: int, capacity: float, *, two_way: bool = True) -> Json:
    given = {"two_way": two_way, "families": ["ipv4"]}
    return sample(topology.TopologyLink, **ends(source, target, capacity), **given)


TOPOLOGY: Json = sample(
    topology.TopologyDocument,
    router_id="10.255.0.5",
    areas=[
        sample(
            topology.TopologyArea,
            lost=[],
            proto="ospf",
            area="0.0.0.0",
            nodes=[
                sample(
                    topology.TopologyNode,
                    id=f"10.255.0.{n}",
                    hostname=name,
                    transit=True,
                    last_resort=n == 2,
                    prefixes=1 if n < 5 else 2,
                )
                for n, name in [(1, "spine1"), (2, "spine2"), (5, "leaf1"), (6, None)]
            ],
            links=[
                link(1, 5, 400 * GBIT),
                link(1, 6, 100 * GBIT),
                link(5, 1, 400 * GBIT),
                link(6, 2, 400 * GBIT, two_way=False),
            ],
        )
    ],
)


def reached(id_: str, hostname: str | None, metric: int, *hops: int) -> Json:
    return sample(
        spf.SpfNode,
        id=id_,
        hostname=hostname,
        proto="ospf",
        families=["ipv4"],
        area="0.0.0.0",
        metric=metric,
        first_hops=[f"10.255.0.{hop}" for hop in hops],
    )


def computed(ago: int, causes: list[str], **more: Any) -> Json:
    return sample(spf.SpfRun, at=NOW - ago, causes=causes, nodes=12, edges=64, **more)


_SPF = {"root": "10.255.0.5", "backoff": "quiet"}

SPF: Json = sample(
    spf.Spf,
    **_SPF,
    nodes=[reached("10.255.0.1", "spine1", 10, 1), reached("10.255.0.6", None, 20, 1, 2, 3, 4)],
)

SPF_LOG: Json = sample(
    spf.Spf,
    **_SPF,
    log=[
        computed(
            133,
            ["router LSA of spine1 (10.255.0.1): link to leaf2 gone", "and 3 more"],
            changes=["leaf3 gone", "spine1-leaf2 gone"],
            spf_ran=True,
            routes=3,
            duration=0.00042,
            backoff="short-wait",
        ),
        computed(
            12,
            ["TE link LSA 1.0.0.2 of spine1"],
            changes=["spine1 > leaf2: 100G to 25G"],
            routes=1,
            duration=0.00006,
            backoff="quiet",
        ),
    ],
)

TOPOLOGY_NODE: Json = sample(
    topology.TopologyDocument,
    router_id="10.255.0.5",
    nodes=["10.255.0.1"],
    areas=[
        TOPOLOGY["areas"][0]
        | {
            "links": [
                link(1, 5, 400 * GBIT),
                link(5, 1, 100 * GBIT),
                link(1, 6, 400 * GBIT, two_way=False),
                link(2, 1, 400 * GBIT, two_way=False),
            ],
            "prefixes": [
                sample(topology.TopologyPrefix, prefix="10.0.1.0/24", type="intra-area", metric=10)
            ],
        }
    ],
)


def named(number: int, hostname: str | None) -> Json:
    return {"id": f"10.255.0.{number}", "hostname": hostname}


SPF_NODE: Json = sample(
    spf.Spf,
    root="10.255.0.5",
    paths=[
        sample(
            spf.SpfPaths,
            proto="ospf",
            area="0.0.0.0",
            families=["ipv4"],
            metric=20,
            first_hops=[named(1, "spine1"), named(2, "spine2")],
            parents=[named(1, "spine1"), named(2, "spine2")],
            paths=[
                [named(5, "leaf1"), named(1, "spine1"), named(6, None)],
                [named(5, "leaf1"), named(2, "spine2"), named(6, None)],
            ],
            number=18,
        )
    ],
)
