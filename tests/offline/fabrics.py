"""Simulated fabrics, their saved databases, and the offline tool run on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from click.testing import CliRunner, Result

from fared.core.ids import Prefix, dotted
from fared.extensions.offline.cli.lsdb import lsdb
from fared.extensions.offline.cli.spf import spf
from fared.extensions.sim.fabric import Fabric, clos3
from fared.extensions.sim.network import Network
from fared.management.api.encode import encode
from fared.management.documents.views.ospf_lsdb import lsdb_document
from fared.paths.rib.model import Route

Json = dict[str, Any]
Table = dict[str, tuple[int, bool, list[tuple[str, str | None, int]]]]


def started(fabric: Fabric) -> Fabric:
    """Start all routers and wait until nothing changes."""
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


def clos(spines: int = 4, leaves: int = 8) -> Fabric:
    """A fabric of spines and leaves, converged."""
    return started(clos3(spines, leaves, network=Network(seed=1)))


def saved(fabric: Fabric, name: str = "L1") -> Json:
    """The output of ``show lsdb --json`` on one router."""
    network = fabric.network
    engine = network.nodes[name].running.instances["ospf"].engine
    document = lsdb_document(engine, network.now)
    return json.loads(encode(document))


def run_spf(document: Json | str | bytes, *args: str) -> Result:
    """Run ``spf --lsdb -`` on a document."""
    given = json.dumps(document) if isinstance(document, dict) else document
    return CliRunner().invoke(spf, ["--lsdb", "-", *args], input=given)


def run_lsdb(*args: str) -> Result:
    """Run ``lsdb``."""
    return CliRunner().invoke(lsdb, list(args))


def answer(document: Json, *args: str) -> Json:
    """The JSON output of ``spf``, which must succeed."""
    result = run_spf(document, "--json", *args)
    assert result.exit_code == 0, result.stderr
    found: Json = json.loads(result.stdout)
    return found


def table(document: Json) -> Table:
    """Routes of a document: metric, connected, and (neighbor, address, weight) of each hop."""
    return {
        route["prefix"]: (
            route["metric"],
            route["connected"],
            sorted((hop["neighbor"], hop["address"], hop["weight"]) for hop in route["nexthops"]),
        )
        for route in document["routes"]
    }


def live_table(fabric: Fabric, name: str) -> Table:
    """The same of a running router."""
    routes: Mapping[Prefix, Route] = fabric.network.nodes[name].running.solver.routes
    return {
        str(prefix): (
            route.metric,
            route.nexthops is None,
            sorted(
                (dotted(hop.neighbor), dotted(hop.gateway), hop.weight)
                for hop in (route.nexthops.hops if route.nexthops else ())
            ),
        )
        for prefix, route in routes.items()
    }


def live_tables(fabric: Fabric) -> dict[str, Table]:
    """The tables of all routers by router id."""
    return {dotted(rid): live_table(fabric, name) for name, rid in fabric.router_ids.items()}


def all_tables(document: Json, *args: str) -> dict[str, Table]:
    """The result of the tool for all roots, by router id."""
    return {entry["root"]: table(entry) for entry in answer(document, "--all", *args)["roots"]}


def weights(document: Json, prefix: str) -> list[int]:
    """The weights of one route in order of its next hops."""
    route = next(route for route in document["routes"] if route["prefix"] == prefix)
    return [hop["weight"] for hop in route["nexthops"]]
