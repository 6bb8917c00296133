"""IS-IS databases and adjacencies of each implementation, from its own tool.

FRR's JSON of the database has duplicate keys; its text output is parsed instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import networkx as nx

from fared.core.ids import format_system_id
from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.fabric import RunningNode
from fared.extensions.lab.port import PortAddresses
from fared.protocols.isis.ids import format_lsp_id
from fared.protocols.isis.pdu.codec import decode_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import IsReachability, of_type
from tests.peers.peers import fared, vtysh
from tests.waiting import wait_for

_FRR_LEVEL = re.compile(r"^IS-IS Level-([12]) link-state database:")
_FRR_LSP = re.compile(
    r"^(\S+)\.([0-9a-f]{2})-([0-9a-f]{2}) +\*? +\d+ +0x([0-9a-f]{8}) +0x([0-9a-f]{4}) +(\(?)(\d+)"
)
_FRR_NEIGHBOR = re.compile(r"^ (\S+) +(\S+) +([123]) +(\S+) ")
LEVELS = (1, 2)


class LspInstance(NamedTuple):
    """The identity of an instance of an LSP."""

    lsp_id: str
    sequence_number: int
    checksum: int


Database = frozenset[LspInstance]
Adjacencies = dict[str, tuple[str, frozenset[int]]]
"""By interface: the neighbor's system id and the levels at which it is up."""


def system_id(plan: NodePlan) -> str:
    """The system id in the usual notation."""
    return plan.net[-17:-3]


def lsps(node: RunningNode) -> dict[int, dict[str, Lsp]]:
    """The decoded LSPs of a fared node, without purges, by level and id."""
    found: dict[int, dict[str, Lsp]] = {}
    document = fared(node).request("show lsdb")
    for level in document["levels"]:
        found[level] = {}
    for row in document["lsps"]:
        pdu = decode_pdu(bytes.fromhex(row["hex"]))
        assert isinstance(pdu, Lsp)
        if pdu.remaining_lifetime:
            found[row["level"]][format_lsp_id(pdu.lsp_id)] = pdu
    return found


def databases(node: RunningNode, names: Mapping[str, str]) -> dict[int, Database]:
    """The LSPs that a router reports, without purges, by level; ``names``: ids by hostname."""
    if node.plan.node.kind == "fared":
        return {
            level: frozenset(
                LspInstance(name, lsp.sequence_number, lsp.checksum) for name, lsp in held.items()
            )
            for level, held in lsps(node).items()
        }
    found: dict[int, set[LspInstance]] = {}
    for level, lsp in _of_frr(node, names):
        found.setdefault(level, set()).add(lsp)
    return {level: frozenset(held) for level, held in found.items()}


def _of_frr(node: RunningNode, names: Mapping[str, str]) -> Iterator[tuple[int, LspInstance]]:
    level = 0
    for line in vtysh(node, "show isis database").splitlines():
        if head := _FRR_LEVEL.match(line):
            level = int(head[1])
        elif row := _FRR_LSP.match(line):
            name, pseudonode, fragment, sequence, checksum, purged, _ = row.groups()
            if not purged:  # LSPs about to be removed are in parentheses
                lsp_id = f"{names.get(name, name)}.{pseudonode}-{fragment}"
                yield level, LspInstance(lsp_id, int(sequence, 16), int(checksum, 16))


def hostnames(plan: AddressPlan) -> dict[str, str]:
    """The system id of each router by name."""
    return {router.name: system_id(router) for router in plan.routers}


def await_equal_databases(fabric: Any, seconds: float = 15.0) -> dict[int, Database]:
    """Wait until all routers of each partition of a level have the same LSPs.

    Returns the LSPs by level; those of a partitioned level are the union of its partitions.
    """
    names = hostnames(fabric.plan)
    found: dict[int, Database] = {}

    def differing() -> dict[str, list[LspInstance]]:
        held = {r.name: databases(fabric.node(r.name), names) for r in fabric.plan.routers}
        found.clear()
        result = {}
        for level, members in pieces(fabric.plan):
            copies = {name: held[name].get(level, frozenset()) for name in members}
            common = frozenset.intersection(*copies.values())
            found[level] = found.get(level, frozenset()) | common
            for name, copy in copies.items():
                if copy != common or not common:
                    result[f"{name} level {level}"] = sorted(copy - common)
        return result

    wait_for(
        lambda: not differing(), seconds, lambda: f"equal databases, but {differing()}", pause=0.2
    )
    return found


def pieces(plan: AddressPlan) -> Iterator[tuple[int, set[str]]]:
    """Yield the routers of each partition of each level."""
    for level in LEVELS:
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(r.name for r in plan.routers if runs(r.node.isis_level, level))
        graph.add_edges_from(
            (port.node, port.peer)
            for router in plan.routers
            for port in router.fabric_ports
            if level in link_levels(plan, port)
        )
        for members in nx.connected_components(graph):
            yield level, members


def link_levels(plan: AddressPlan, port: PortAddresses) -> set[int]:
    """The levels at which the two ends of a link become neighbors: level 1 needs one area."""
    ends = [plan.node(name).node for name in (port.node, port.peer)]
    wanted = [level for level in LEVELS if runs(port.level, level)]
    common = {level for level in wanted if all(runs(end.isis_level, level) for end in ends)}
    return common if ends[0].isis_area == ends[1].isis_area else common - {1}


def runs(levels: str, level: int) -> bool:
    """Whether ``level-1-2`` and the like include a level."""
    return str(level) in levels


def adjacencies(node: RunningNode, names: Mapping[str, str]) -> Adjacencies:
    """The adjacent neighbors that a router reports, by interface."""
    if node.plan.node.kind == "fared":
        found: Adjacencies = {}
        for interface in fared(node).request("show lsdb")["interfaces"]:
            for row in interface["adjacencies"]:
                _, levels = found.get(interface["name"], ("", frozenset()))
                known = (row["neighbor"], levels | {row["level"]})
                found[interface["name"]] = known
        return found
    rows = map(_FRR_NEIGHBOR.match, vtysh(node, "show isis neighbor").splitlines())
    usable = {"1": {1}, "2": {2}, "3": {1, 2}}
    return {
        row[2]: (names.get(row[1], row[1]), frozenset(usable[row[3]]))
        for row in rows
        if row and row[4] == "Up"
    }


def neighbors_announced(lsp: Lsp) -> set[str]:
    """The neighbors in an LSP, pseudonodes included: ``0102.5500.0001.00``."""
    return {
        f"{format_system_id(entry.neighbor >> 8)}.{entry.neighbor & 0xFF:02x}"
        for tlv in of_type(lsp.tlvs, IsReachability)
        for entry in tlv.neighbors
    }
