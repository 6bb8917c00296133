"""Documents about routes: weights, next hops, the kernel, paths, convergence."""

from typing import Any

from fared.management.documents import convergence, explain, fib, path, routes, validate, weights
from fared.management.documents.facts import NamedNode
from fared.management.documents.happened import WhatChanged
from tests.api.documents.common import DEGRADED, EQUAL, GBIT, NOW, Json
from tests.api.documents.databases import edge
from tests.api.documents.router import STATUS
from tests.api.sample import sample


def route(prefix: str, nexthops: list[Json], **more: Any) -> Json:
    usual = {"protocol": "ospf", "preference": 110, "metric": 30, "type": "intra-area"}
    given = {"area": "0.0.0.0", "nexthops": nexthops, **usual, **more}
    return sample(routes.RouteEntry, prefix=prefix, **given)


def live(prefix: str, nexthops: list[Json], **more: Any) -> Json:
    """A route of a router that runs."""
    return route(prefix, nexthops, **({"changed_at": NOW - 93_700, "installed": True} | more))


ROUTES: Json = sample(
    routes.Routes,
    root="10.255.0.5",
    af="ipv4",
    routes=[
        live("10.0.1.0/24", [], metric=10, connected=True, installed=False),
        live("10.0.0.0/16", [], metric=0, type="inter-area", discard=True),
        live("10.0.2.0/24", DEGRADED, changed_at=NOW - 192),
        live("10.0.3.0/24", EQUAL),
        live("0.0.0.0/0", EQUAL[:1], type="external-2", metric=1, area=None, changed_at=None),
    ],
)

ROUTES_OFFLINE: Json = sample(
    routes.Routes, root="10.255.0.5", af="ipv4", routes=[route("10.0.2.0/24", DEGRADED)]
)

ROUTES_SUMMARY: Json = sample(
    routes.Routes,
    root="10.255.0.5",
    af="ipv4",
    summary=[
        sample(routes.RouteCount, protocol="ospf", af="ipv4", type=kind, routes=n, installed=m)
        | {"weighted": w}
        for kind, n, m, w in (("connected", 9, 0, 0), ("intra-area", 45, 44, 7))
    ],
)


def vector(prefixes: int, hops: list[Json], wanted: list[float], **more: Any) -> Json:
    """The weights of so many routes, to leaves from the second on."""
    members = [
        sample(weights.WeightMember, **hop, wanted_share=want, ecmp_share=1 / len(hops))
        | {"error": hop["share"] / want - 1}
        for hop, want in zip(hops, wanted, strict=True)
    ]
    usual = {"protocol": "ospf", "af": "ipv4", "granularity": "flow"}
    return sample(
        weights.WeightVector, **(usual | {"prefixes": prefixes, "members": members} | more)
    )


WEIGHTS: Json = sample(
    weights.Weights,
    root="10.255.0.5",
    metric="capacity",
    announcements=[
        sample(
            weights.AnnounceState,
            protocol="ospf",
            area="0.0.0.0",
            budget=500.0,
            share=3.906,
            own_ends=16,
            all_ends=2048,
            threshold=0.036,
            averaging=4.1,
            deferred=7,
            announced=1207,
        )
    ],
    vectors=[
        vector(1, DEGRADED, [hop["share"] for hop in DEGRADED], examples=["10.0.2.0/24"]),
        vector(
            6,
            EQUAL,
            [0.2497] * 4,
            examples=["10.0.3.0/24", "10.0.4.0/24", "10.0.5.0/24"],
            granularity="packet",
            quantization_error=0.0012,
        ),
    ],
)

_TABLE = {"table": 254, "protocol": 201, "metric": 20}
_FIRST, _GROUP = 262144000, 262668288
"""Ids of next hops, and of groups, begin with these."""

FIB: Json = sample(
    fib.FibDocument,
    **_TABLE,
    nexthops=[
        sample(
            fib.FibNextHop,
            id=_FIRST + n,
            interface=hop["interface"],
            address=hop["address"],
        )
        for n, hop in enumerate(DEGRADED, 1)
    ]
    + [sample(fib.FibNextHop, id=_FIRST + 5, discard=True)],
    groups=[
        sample(
            fib.FibGroup,
            id=_GROUP,
            type="hash-threshold",
            routes=1,
            members=[
                sample(fib.FibMember, interface=hop["interface"], weight=hop["weight"])
                for hop in DEGRADED
            ],
        )
    ],
    routes=[sample(fib.FibRoute, prefix="10.0.2.0/24", nexthop_id=_GROUP)],
)


def difference(kind: str, key: str, wanted: str, found: str | None) -> Json:
    return sample(fib.FibDifference, object=kind, key=key, wanted=wanted, found=found)


FIB_FPM: Json = {
    **FIB,
    "routes": [
        sample(fib.FibRoute, prefix="10.0.2.0/24", nexthop_id=_GROUP, offloaded=True),
        sample(fib.FibRoute, prefix="10.0.3.0/24", nexthop_id=_GROUP, offloaded=False),
    ],
    "fpm": sample(
        fib.FibFpm,
        address="127.0.0.1:2620",
        state="up",
        since=None,
        announced=2,
        waiting=1,
        withheld=["10.0.3.0/24"],
        too_long=[],
        warm_restart="restored",
    ),
}
FIB_DIFF: Json = sample(
    fib.FibDocument,
    **_TABLE,
    diff=[
        difference("route", "10.0.2.0/24", str(_GROUP), None),
        difference("group", str(_GROUP), "swp1:1 swp2:4", "swp1:1 swp2:1"),
    ],
)


def explained(hop: Json) -> Json:
    """A next hop with its reason: the one with weight 1 is limited at its spine."""
    given = {**hop, "ecmp_share": 0.25}
    if hop["weight"] > 1:
        reason = "nothing on the way carries less than the local link, 400G"
        return sample(explain.ExplainNextHop, **given, reason=reason)
    limit = {"from": hop["neighbor"], "from_hostname": hop["hostname"], "capacity": 100 * GBIT}
    return sample(
        explain.ExplainNextHop,
        **given,
        limiting_link=sample(explain.ExplainedLimit, **limit, to="10.255.0.6", to_hostname="leaf2"),
        reason="the link spine1 to leaf2 carries 100G, a quarter of the others",
    )


EXPLAIN: Json = sample(
    explain.Explain,
    root="10.255.0.5",
    prefix="10.0.2.0/24",
    protocol="ospf",
    metric=30,
    type="intra-area",
    area="0.0.0.0",
    destinations=[sample(NamedNode, id="10.255.0.6", hostname="leaf2")],
    nexthops=[explained(hop) for hop in DEGRADED],
    weights="capacity",
    granularity="packet",
    summary="Four equal-cost paths through spine1 to spine4; spine1 gets 7.7% instead of 25%"
    " because its link to leaf2 is down to 100G.",
    missing=[
        sample(
            explain.MissingHop,
            id="10.255.0.5",
            hostname="spine5",
            link="spine5-leaf2",
            since=NOW - 7385,
        )
    ],
    withheld=[
        sample(
            explain.WithheldPrefix,
            where="summaries of area 0.0.0.1",
            reason="filter servers, item 2: deny 10.0.2.0/24",
        )
    ],
    last_change=sample(
        WhatChanged,
        at=NOW - 12,
        causes=["TE link LSA 1.0.0.2 of spine1"],
        changes=["spine1 > leaf2: 100G to 25G"],
    ),
)

PATH: Json = sample(
    path.PathDocument,
    protocol="ospf",
    af="ipv4",
    prefix="10.255.0.6/32",
    source="10.255.0.5",
    source_hostname="leaf1",
    destination="10.255.0.6",
    destination_hostname="leaf2",
    metric=20,
    capacity=1300 * GBIT,
    edges=[
        edge(5, 1, 400 * GBIT, from_hostname="leaf1", to_hostname="spine1", share=1 / 13),
        edge(5, 2, 400 * GBIT, from_hostname="leaf1", to_hostname="spine2", share=4 / 13),
        edge(1, 6, 100 * GBIT, from_hostname="spine1", to_hostname="leaf2", share=1 / 13),
        edge(2, 6, 400 * GBIT, from_hostname="spine2", to_hostname="leaf2", share=4 / 13),
    ],
)

CONVERGENCE: Json = sample(
    convergence.Convergence,
    stages=STATUS["stages"],
    changes=[
        sample(
            convergence.ConvergenceChange,
            at=NOW - 133,
            causes=["router LSA of spine1 (10.255.0.1): link to leaf2 gone"],
            changes=["spine1-leaf2 gone"],
            spf_ran=True,
            routes=3,
            operations=5,
            detected=0.00008,
            originated=0.00031,
            flooded=0.00009,
            computed=0.00042,
            spf=0.00025,
            weighed=0.00017,
            planned=0.00011,
            programmed=0.00035,
            total=0.00091,
        ),
        sample(
            convergence.ConvergenceChange,
            at=NOW - 12,
            causes=["TE link LSA 1.0.0.2 of spine1"],
            changes=["spine1 > leaf2: 100G to 25G"],
            routes=1,
            operations=1,
            detected=0.00002,
            originated=0.00011,
            flooded=0.00004,
            waited=0.05,
            computed=0.00006,
            spf=0.00001,
            weighed=0.00005,
            planned=0.00002,
            programmed=0.00011,
            total=0.0503,
        ),
    ],
)

VALIDATE: Json = sample(
    validate.Validate,
    checks=[
        sample(validate.SelfCheck, name="database", ok=True, detail="76 LSAs, all checksums right"),
        sample(validate.SelfCheck, name="kernel", detail="route 10.0.2.0/24 is missing"),
    ],
)
