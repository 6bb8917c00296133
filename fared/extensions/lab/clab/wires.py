"""Links as containerlab writes them: brief and extended, to other nodes and to elsewhere.

Links that leave the lab (to the machine, its management network, a VXLAN) are left out. A bridge is
a LAN segment of all nodes at it: with two nodes it is a link, with more a node of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fared.extensions.lab.clab import names
from fared.extensions.lab.clab.faults import Faults
from fared.extensions.lab.clab.roles import OUTSIDE
from fared.extensions.lab.labels import HOST_KIND, SEGMENT_KIND, nearest
from fared.extensions.lab.topology_file import EndpointConfig, LinkConfig, NodeConfig

_ELSEWHERE = {"host", "mgmt-net", "macvlan", "macvtap", "container", "dummy", "vxlan"}
"""Ends of brief links that are no nodes, and types of extended ones."""


@dataclass(frozen=True)
class WireEnd:
    """One end of a wire: the interface is that of the file, ``here`` its name in the lab."""

    node: str
    interface: str
    here: str = ""

    def __str__(self) -> str:
        return f"{self.node}:{self.interface}"


@dataclass(frozen=True)
class Wire:
    """A link between two nodes; ``number`` is that of the link in the file, from 1."""

    number: int
    ends: tuple[WireEnd, WireEnd]
    config: LinkConfig

    @property
    def path(self) -> tuple[str | int, ...]:
        """Where it is in the document."""
        return "topology", "links", self.number - 1


def read(
    links: Iterable[LinkConfig], nodes: Mapping[str, NodeConfig], faults: Faults
) -> tuple[list[Wire], list[str]]:
    """Return the links between nodes, and a line for each that is left out."""
    wires, notes = [], []
    for number, link in enumerate(links, 1):
        left_out = _elsewhere(link, nodes)
        if left_out is not None:
            notes.append(f"left out: link {number}: {left_out}")
        elif (ends := _ends(number, link, nodes, faults)) is not None:
            wires.append(Wire(number, ends, link))
    return wires, notes


def _elsewhere(link: LinkConfig, nodes: Mapping[str, NodeConfig]) -> str | None:
    if link.type != "veth" or link.endpoints is None:
        ends = ([link.endpoint] if link.endpoint else []) + (link.endpoints or [])
        return f"{ends[0] if ends else 'it'} leads out of the lab (type {link.type})"
    for end, other in (link.endpoints, link.endpoints[::-1]):
        node = nodes.get(end.node)
        if (node is None and end.node in _ELSEWHERE) or (node and node.kind == OUTSIDE):
            return f"{other} leads out of the lab (to {end})"
    return None


def _ends(
    number: int, link: LinkConfig, nodes: Mapping[str, NodeConfig], faults: Faults
) -> tuple[WireEnd, WireEnd] | None:
    place = "topology", "links", number - 1
    given = link.endpoints or []
    for end in given:
        if not end.node or not end.interface:
            faults.add(f"link {number}: endpoint {str(end)!r} is not node:interface", *place)
        elif end.node not in nodes:
            faults.add(f"link {number}: no node {end.node!r}{nearest(end.node, nodes)}", *place)
    if not all(end.interface and end.node in nodes for end in given):
        return None
    first, second = (WireEnd(end.node, end.interface) for end in given)
    return first, second


def neighbors(wires: Iterable[Wire], nodes: Iterable[str]) -> dict[str, list[str]]:
    """Return the far ends of the links of each node."""
    found: dict[str, list[str]] = {name: [] for name in nodes}
    for wire in wires:
        for end, other in (wire.ends, wire.ends[::-1]):
            found[end.node].append(other.node)
    return found


# -- LAN segments ----------------------------------------------------------------------------------


def joined(
    wires: Sequence[Wire], kinds: Mapping[str, str], faults: Faults
) -> tuple[list[Wire], list[str]]:
    """Return the wires with bridges of two nodes as links, and lines about those left out.

    Bridges that are linked to each other are one segment, under the name of the first.
    """
    home = _segments(wires, kinds)
    members: dict[str, list[Wire]] = {name: [] for name in home.values()}
    result, notes = [], []
    for wire in wires:
        bridges = [end.node for end in wire.ends if end.node in home]
        if not bridges:
            result.append(wire)
        elif len(bridges) == 1:
            members[home[bridges[0]]].append(wire)
    for bridge, ports in members.items():
        if len(ports) > 2:
            result += _segment(bridge, ports, kinds, faults)
        elif len(ports) == 2:
            result.append(_link(ports, home))
            notes.append(f"bridge {bridge} is a link: {' and '.join(map(str, result[-1].ends))}")
        else:
            notes.append(f"left out: bridge {bridge}: no two nodes are at it")
    return sorted(result, key=lambda wire: wire.number), notes


def _segments(wires: Iterable[Wire], kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the first bridge of the segment of each bridge."""
    home = {name: name for name, kind in kinds.items() if kind == SEGMENT_KIND}
    order = list(home)
    for wire in wires:
        a, b = (home.get(end.node) for end in wire.ends)
        if a is not None and b is not None and a != b:
            first, second = sorted((a, b), key=order.index)
            home = {name: first if into == second else into for name, into in home.items()}
    return home


def _member(wire: Wire, bridges: Mapping[str, str]) -> WireEnd:
    return wire.ends[0] if wire.ends[1].node in bridges else wire.ends[1]


def _link(ports: Sequence[Wire], bridges: Mapping[str, str]) -> Wire:
    first, second = ports
    told = second if second.config.vars.model_fields_set else first
    return Wire(first.number, (_member(first, bridges), _member(second, bridges)), told.config)


def _segment(
    bridge: str, ports: Sequence[Wire], kinds: Mapping[str, str], faults: Faults
) -> list[Wire]:
    bridges = {name: name for name, kind in kinds.items() if kind == SEGMENT_KIND}
    members = [_member(wire, bridges) for wire in ports]
    place = "topology", "nodes", bridge
    if all(kinds[end.node] == HOST_KIND for end in members):
        faults.add(f"bridge {bridge} connects hosts only; a host requires a router", *place)
    known: set[str] = set()
    for end in members:
        if end.node in known:
            faults.add(f"bridge {bridge}: {end.node} is at it with several links", *place)
        known.add(end.node)
    return [
        replace(wire, ends=(end, WireEnd(bridge, f"p{number}")))
        for number, (wire, end) in enumerate(zip(ports, members, strict=True), 1)
    ]


# -- names of interfaces ---------------------------------------------------------------------------


def named(wires: Sequence[Wire]) -> tuple[list[Wire], list[str]]:
    """Return the wires with names of interfaces that Linux takes, and a line for what changes."""
    own: dict[str, list[str]] = {}
    for wire in wires:
        for end in wire.ends:
            own.setdefault(end.node, []).append(end.interface)
    here = {node: names.mapped(interfaces) for node, interfaces in own.items()}
    changed = dict.fromkeys(
        f"{old} is {new}" for mapping in here.values() for old, new in mapping.items() if old != new
    )
    called = []
    for wire in wires:
        first, second = (replace(end, here=here[end.node][end.interface]) for end in wire.ends)
        called.append(replace(wire, ends=(first, second)))
    return called, [f"interfaces: {', '.join(changed)}"] if changed else []


def given_ipv4(config: LinkConfig) -> tuple[str | None, str | None]:
    """Return the addresses that a link itself gives its ends."""
    ends: list[EndpointConfig] = config.endpoints or []
    brief = [*config.ipv4, "", ""]
    first, second = ((end.ipv4 or brief[at] or None) for at, end in enumerate(ends[:2]))
    return first, second
