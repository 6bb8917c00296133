"""Simulated fabrics over IS-IS, their saved databases, and the routes of their routers."""

from __future__ import annotations

import json

from fared.core.ids import format_address, format_node, format_system_id
from fared.extensions.sim.fabric import Fabric
from fared.management.api.encode import encode
from fared.management.documents.views.isis_lsdb import isis_lsdb_document
from tests.offline.fabrics import Json, answer

FAMILIES = ("ipv4", "ipv6")
Table = dict[str, tuple[int, str, bool, list[tuple[str, str | None, int]]]]


def started(fabric: Fabric, *, quiet: float = 3.0) -> Fabric:
    """Start all routers and wait until nothing changes."""
    fabric.network.start_all()
    fabric.network.run_until_quiet(120, quiet=quiet)
    return fabric


def saved(fabric: Fabric, name: str) -> Json:
    """The output of ``show lsdb --json`` on one router."""
    network = fabric.network
    engine = network.nodes[name].running.instances["isis"].engine
    document = isis_lsdb_document(engine, network.now)
    found: Json = json.loads(encode(document))
    return found


def system(fabric: Fabric, name: str) -> str:
    """The system id of a router, as in documents."""
    return format_system_id(fabric.router_ids[name])


def table(document: Json, *, addresses: bool = True) -> Table:
    """Routes: metric, type, connected, and (neighbor, address, weight) of each hop."""
    return {
        route["prefix"]: (
            route["metric"],
            route["type"],
            route["connected"],
            sorted(
                (hop["neighbor"], hop["address"] if addresses else None, hop["weight"])
                for hop in route["nexthops"]
            ),
        )
        for route in document["routes"]
    }


def live(fabric: Fabric, name: str, af: str, *, addresses: bool = True) -> Table:
    """The same of a running router."""
    instance = fabric.network.nodes[name].running.instances["isis"]
    routes = instance.solvers[4 if af == "ipv4" else 6].routes
    return {
        str(prefix): (
            route.metric,
            route.path_type.label,
            route.nexthops is None,
            sorted(
                (
                    format_node(hop.neighbor),
                    format_address(hop.family, hop.gateway) if addresses else None,
                    hop.weight,
                )
                for hop in (route.nexthops.hops if route.nexthops else ())
            ),
        )
        for prefix, route in routes.items()
    }


def offline(document: Json, af: str, *args: str, addresses: bool = True) -> Table:
    """The result of the tool for one root."""
    return table(answer(document, "--af", af, *args), addresses=addresses)


def offline_all(document: Json, af: str, *args: str) -> dict[str, Table]:
    """The result of the tool for all roots, by system id, next hops by neighbor."""
    found = answer(document, "--all", "--af", af, *args)
    return {entry["root"]: table(entry, addresses=False) for entry in found["roots"]}
