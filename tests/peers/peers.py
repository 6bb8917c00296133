"""Databases, neighbors and routes of FRR, BIRD and fared, from their own tools.

Functions query each router with its own tool, and return one form for all implementations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.kernel_view import Hop
from fared.extensions.lab.waiting import has_all_paths, wait_until
from fared.management.api.client import ControlClient
from tests.waiting import wait_for

AREA = "0.0.0.0"
MAX_AGE = 3600
OPAQUE_AREA, OPAQUE_AS = 10, 11
AS_SCOPE = "AS"

_FRR_AREA_LISTS = {
    "routerLinkStates": 1,
    "networkLinkStates": 2,
    "summaryLinkStates": 3,
    "asbrSummaryLinkStates": 4,
    "areaLocalOpaqueLsa": OPAQUE_AREA,
}
_FRR_AS_LISTS = {"asExternalLinkStates": 5, "asExternalOpaqueLsa": OPAQUE_AS}
_FARED_TYPES = {
    "router": 1,
    "network": 2,
    "summary-network": 3,
    "summary-asbr": 4,
    "as-external": 5,
    "nssa-external": 7,
}
_BIRD_AREA = re.compile(r"^Area (\S+)$")
_BIRD_LSA = re.compile(r"^ ([0-9a-f]{4})\s+(\S+)\s+(\S+)\s+([0-9a-f]{8})\s+(\d+)\s+([0-9a-f]{4})$")
_BIRD_TYPE = 0x1F  # the bits above are the scope, in BIRD's numbering


class LsaId(NamedTuple):
    """The identity of an instance of an LSA."""

    ls_type: int
    link_state_id: str
    advertising_router: str
    sequence_number: int
    checksum: int


Database = frozenset[LsaId]


def tell(text: str) -> None:
    """Print a figure: pytest shows it with -rA or -s, and when a test fails."""
    print(text)  # noqa: T201


def fared(node: RunningNode) -> ControlClient:
    """The control socket of a node that runs fared."""
    return ControlClient(str(node.directory / "fared.sock"))


def vtysh(node: RunningNode, *commands: str) -> str:
    """Run commands in an FRR node, in order."""
    return node.cli(*(word for command in commands for word in ("-c", command)))


def vtysh_json(node: RunningNode, command: str) -> dict[str, Any]:
    """Run one show command in an FRR node; return its JSON."""
    found: dict[str, Any] = json.loads(vtysh(node, f"{command} json"))
    return found


def database(node: RunningNode) -> Database:
    """All LSAs that a router reports, without those at MaxAge."""
    return frozenset().union(*databases(node).values())


def databases(node: RunningNode) -> dict[str, Database]:
    """The LSAs that a router reports, without those at MaxAge, by area, and those of AS scope."""
    readers = {"fared": _fared_lsas, "frr": _frr_lsas, "bird": _bird_lsas}
    found: dict[str, set[LsaId]] = {AS_SCOPE: set()}
    for scope, age, lsa in readers[node.plan.node.kind](node):
        held = found.setdefault(scope, set())
        if age < MAX_AGE:
            held.add(lsa)
    return {scope: frozenset(lsas) for scope, lsas in found.items()}


def _fared_lsas(node: RunningNode) -> Iterator[tuple[str, int, LsaId]]:
    document = fared(node).request("show database")
    scopes = [(area["area"], area["lsas"], OPAQUE_AREA) for area in document["areas"]]
    for scope, lsas, opaque in [*scopes, (AS_SCOPE, document["as_scope"], OPAQUE_AS)]:
        for lsa in lsas:
            number = _FARED_TYPES.get(lsa["type"], opaque)
            identity = (lsa["id"], lsa["adv_router"], lsa["seq"], lsa["checksum"])
            yield scope, lsa["age"], LsaId(number, *identity)


def _frr_lsas(node: RunningNode) -> Iterator[tuple[str, int, LsaId]]:
    document = vtysh_json(node, "show ip ospf database")
    scopes = [(area, lists, _FRR_AREA_LISTS) for area, lists in document.get("areas", {}).items()]
    for scope, lists, numbers in [*scopes, (AS_SCOPE, document, _FRR_AS_LISTS)]:
        for key, number in numbers.items():
            for lsa in lists.get(key, ()):
                instance = (int(lsa["sequenceNumber"], 16), int(lsa["checksum"], 16))
                identity = (lsa["lsId"], lsa["advertisedRouter"], *instance)
                yield scope, lsa["lsaAge"], LsaId(number, *identity)


def _bird_lsas(node: RunningNode) -> Iterator[tuple[str, int, LsaId]]:
    scope = AS_SCOPE
    for line in node.cli("show ospf lsadb").splitlines():
        if area := _BIRD_AREA.match(line):
            scope = area[1]
        elif line == "Global":
            scope = AS_SCOPE
        elif lsa := _BIRD_LSA.match(line):
            kind, identity, router, sequence, age, checksum = lsa.groups()
            instance = (int(sequence, 16), int(checksum, 16))
            yield scope, int(age), LsaId(int(kind, 16) & _BIRD_TYPE, identity, router, *instance)


def differences(fabric: Fabric) -> dict[str, list[LsaId]]:
    """The LSAs of each router that others lack; empty when all databases are equal."""
    databases = {plan.name: database(fabric.node(plan.name)) for plan in fabric.plan.routers}
    common = frozenset.intersection(*databases.values())
    return {name: sorted(held - common) for name, held in databases.items() if held != common}


def await_equal_databases(fabric: Fabric, seconds: float = 40.0) -> Database:
    """Wait until all routers have the same LSAs; return these."""
    wait_for(
        lambda: not differences(fabric), seconds, f"equal databases, but {differences(fabric)}"
    )
    return database(fabric.node(fabric.plan.routers[0].name))


_CONFIGURATIONS = {"fared": "fared.yaml", "bird": "bird.conf"}


@contextmanager
def reconfigured(fabric: Fabric, lines: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    """Insert lines in the configurations of fared and BIRD nodes for a block.

    ``lines``: by kind, a text and the lines to insert after it. All nodes of these kinds are
    reloaded at the beginning and at the end.
    """
    nodes = [fabric.node(plan.name) for plan in fabric.plan.routers if plan.node.kind in lines]
    files = {node.name: node.directory / _CONFIGURATIONS[node.plan.node.kind] for node in nodes}
    plain = {name: file.read_text() for name, file in files.items()}
    for node in nodes:
        before, more = lines[node.plan.node.kind]
        assert before in plain[node.name]
        files[node.name].write_text(plain[node.name].replace(before, before + more, 1))
        _reload(node)
    try:
        yield
    finally:
        for node in nodes:
            files[node.name].write_text(plain[node.name])
            _reload(node)


def _reload(node: RunningNode) -> None:
    if node.plan.node.kind == "bird":
        node.cli("configure")
    else:
        assert fared(node).request("reload")["applied"]


def links_routed(fabric: Fabric, name: str) -> int:
    """The number of networks between two other routers to which a kernel has a route."""
    known = fabric.view(name).routes()
    ports = [port for plan in fabric.plan.routers for port in plan.fabric_ports]
    others = {str(port.address.network) for port in ports if name not in (port.node, port.peer)}
    return len(others & known.keys())


def full_neighbors(node: RunningNode) -> dict[str, str]:
    """The router ids of fully adjacent neighbors, by interface."""
    kind = node.plan.node.kind
    if kind == "fared":
        rows = fared(node).request("show neighbors")["neighbors"]
        return {row["interface"]: row["router_id"] for row in rows if row["state"] == "Full"}
    if kind == "frr":
        found = vtysh_json(node, "show ip ospf neighbor")["neighbors"]
        return {
            row["ifaceName"].partition(":")[0]: router_id
            for router_id, rows in found.items()
            for row in rows
            if row["nbrState"].startswith("Full/")
        }
    lines = [line.split() for line in node.cli("show ospf neighbors").splitlines()]
    return {words[4]: words[0] for words in lines if len(words) == 6 and words[2] == "Full/PtP"}


def wanted_neighbors(fabric: Fabric, name: str) -> dict[str, str]:
    """The result of ``full_neighbors`` when all links are up."""
    plan = fabric.plan
    ports = plan.node(name).fabric_ports
    return {port.name: str(plan.node(port.peer).router_id) for port in ports}


def wanted_gateways(fabric: Fabric, name: str, target: str) -> set[tuple[str, str]]:
    """The (interface, gateway) pairs of all shortest paths from one router to another."""
    ports = fabric.plan.equal_cost_ports(name, target)
    return {(port.name, str(port.peer_address)) for port in ports}


def gateways(hops: tuple[Hop, ...]) -> set[tuple[str, str | None]]:
    """The (interface, gateway) pairs of a route in the kernel."""
    return {(hop.interface, hop.gateway) for hop in hops}


def await_all_paths(fabric: Fabric, seconds: float = 40.0) -> float:
    """Wait until every kernel has all paths to all hosts; return the time of the last one."""
    plan = fabric.plan
    views = fabric.views(plan.routers)
    accepts = has_all_paths(fabric)
    done = wait_until(views, accepts, seconds)
    assert done is not None, {
        name: {
            str(prefix): view.hops(prefix) for leaf in plan.leaves for prefix in leaf.host_prefixes
        }
        for name, view in views.items()
        if not accepts(name, view)
    }
    return done


def await_whole(fabric: Fabric, seconds: float = 60.0) -> float:
    """Wait for all paths and equal databases; return the time at which all paths existed."""
    done = await_all_paths(fabric, seconds)
    await_equal_databases(fabric, seconds)
    return done


def await_hops(fabric: Fabric, name: str, prefix: str, wanted: set[str], seconds: float) -> float:
    """Wait until a kernel's route to the prefix uses these interfaces; return the time."""

    def accepts(_: str, view: Any) -> bool:
        return {hop.interface for hop in view.hops(prefix)} == wanted

    done = wait_until({name: fabric.view(name)}, accepts, seconds)
    assert done is not None, f"{name}: {prefix} over {fabric.view(name).hops(prefix)}"
    return done
