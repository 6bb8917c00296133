"""Topology files in containerlab's format: reading and checking.

The same file runs under containerlab, with Docker, and under ``fared-lab``, without it. In
containerlab our nodes are of ``kind: linux`` with an image; here the label ``fared-lab.kind`` names
the program (``fared``, ``frr``, ``bird``; no label: a host). The literal kinds ``fared``, ``frr``
and ``bird`` are accepted too, for files that only the lab runs. Inheritance is that of
containerlab: defaults, then kind, then group, then the node; labels and ``sysctls`` are merged.
Of the latter, which containerlab sets too, the lab sets those of ``net.``, after its own.

Links of a host go to routers. Several are the NICs of a server, one a GPU (``ranks``).

The lab also reads these places, which containerlab leaves to the user:

- link ``vars``: ``rate`` (``100M``, ``none``), ``delay`` (``20ms``, in each direction), ``cost``,
  ``area`` (OSPF), ``level`` (IS-IS)
- labels ``fared-lab.*`` of a node, which ``labels`` declares
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pydantic
import yaml

from fared.core.ids import BACKBONE, AreaId, parse_area
from fared.core.units import BytesPerSecond
from fared.extensions.lab import labels
from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.labels import HOST_KIND, ROUTER_KINDS, nearest
from fared.extensions.lab.topology_file import File, LinkConfig, NodeConfig, TopologyConfig

STDIN = Path("-")
"""Names standard input."""

_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")
_INTERFACE_NAME = re.compile(r"[^\s/:]{1,15}")
_SYSCTL = re.compile(r"net\.[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)+")


@dataclass(frozen=True)
class Endpoint:
    """One end of a link, written ``node:interface`` in the file."""

    node: str
    interface: str

    def __str__(self) -> str:
        return f"{self.node}:{self.interface}"


@dataclass(frozen=True)
class LabLink:
    """A link between two nodes; ``rate`` overrides the nodes' own, ``shaped`` False means none.

    ``delay``: seconds in each direction.
    """

    ends: tuple[Endpoint, Endpoint]
    rate: BytesPerSecond | None = None
    shaped: bool = True
    area: AreaId | None = None
    cost: int = 10
    mtu: int = 1500
    level: str | None = None
    delay: float = 0.0


@dataclass(frozen=True)
class LabNode:
    """A node with all inherited settings."""

    name: str
    kind: str
    labels: Mapping[str, str] = field(default_factory=dict)
    startup_config: Path | None = None
    sysctls: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> BytesPerSecond | None:
        """The rate of its links to other routers, None if they are not shaped."""
        return labels.RATE.of(self.labels)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The sections of fared's configuration that its labels set, as in the file."""
        return labels.settings(self.labels)

    @property
    def single_segments(self) -> bool:
        """Whether each TCP segment leaves it as a packet of its own."""
        return labels.SEGMENTATION.of(self.labels) == labels.SINGLE

    @property
    def ina(self) -> bool:
        """Whether it sums packets of in-network aggregation."""
        return self.kind == "fared" and labels.INA.of(self.labels) == labels.ON

    @property
    def tree(self) -> str | None:
        """The tree that the demonstration of aggregation shows beside the planned one."""
        return labels.TREE.of(self.labels) if self.ina else None

    @property
    def worker(self) -> bool:
        """Whether the demonstration of aggregation has a worker in this host."""
        return self.kind == HOST_KIND and labels.INA.of(self.labels) == labels.ON

    @property
    def bier(self) -> bool:
        """Whether it forwards BIER packets."""
        return self.kind == "fared" and labels.BIER.of(self.labels) != labels.OFF

    @property
    def bier_php(self) -> bool:
        """Whether its hosts get the payload of BIER packets without the header."""
        return self.bier and labels.BIER.of(self.labels) == labels.PHP

    @property
    def hello_interval(self) -> int:
        """Its hello interval, seconds."""
        return labels.HELLO.of(self.labels)

    @property
    def dead_interval(self) -> int:
        """Its dead interval, seconds."""
        return 4 * self.hello_interval

    @property
    def is_router(self) -> bool:
        """Whether a routing daemon runs in it."""
        return self.kind in ROUTER_KINDS

    @property
    def protocol(self) -> str:
        """The protocol of its daemon."""
        return labels.PROTOCOL.of(self.labels)

    @property
    def isis_level(self) -> str:
        """The levels of an IS-IS router."""
        return labels.LEVEL.of(self.labels)

    @property
    def isis_area(self) -> str:
        """The area address of an IS-IS router."""
        return labels.AREA.of(self.labels)


@dataclass(frozen=True)
class LabTopology:
    """A checked topology: every endpoint names a node, no interface is used twice."""

    name: str
    nodes: Mapping[str, LabNode]
    links: tuple[LabLink, ...]
    origin: Path
    document: Mapping[str, Any]


def load(path: Path) -> LabTopology:
    """Read a topology file, or standard input. Raises TopologyError, listing every fault found."""
    try:
        document = yaml.safe_load(sys.stdin if path == STDIN else path.read_text("utf-8"))
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TopologyError(f"{path}: not YAML: {error}") from error
    if document is None:
        raise TopologyError(f"{path}: is empty")
    return from_document(document, path)


def from_document(document: object, origin: Path, as_kind: str | None = None) -> LabTopology:
    """Check a parsed file; ``as_kind`` runs every router as that kind instead of its own.

    Paths in it are relative to ``origin``. Raises TopologyError.
    """
    try:
        file = File.model_validate(document)
    except pydantic.ValidationError as error:
        raise TopologyError(_listing(origin, map(_pydantic_fault, error.errors()))) from error
    faults: list[str] = []
    nodes = {name: _node(name, file.topology, origin, faults) for name in file.topology.nodes}
    links = [_link(number, raw, faults) for number, raw in enumerate(file.topology.links, 1)]
    topology = LabTopology(
        file.name,
        {name: _as(node, as_kind) for name, node in nodes.items()},
        tuple(link for link in links if link is not None),
        origin,
        document if isinstance(document, dict) else {},
    )
    _check_links(topology, faults)
    if faults:
        raise TopologyError(_listing(origin, faults))
    return topology


def renamed(topology: LabTopology, name: str) -> LabTopology:
    """Return the topology as a lab of another name. Raises TopologyError for an invalid name."""
    return from_document({**topology.document, "name": name}, topology.origin)


def _as(node: LabNode, kind: str | None) -> LabNode:
    if kind is None or not node.is_router or node.kind == kind:
        return node
    return replace(node, kind=kind, startup_config=None)


# -- checks ----------------------------------------------------------------------------------


def _pydantic_fault(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place or 'file'}: {error['msg']}"


def _listing(origin: Path, faults: Iterable[str]) -> str:
    listed = list(faults)
    if len(listed) == 1:
        return f"{origin}: {listed[0]}"
    return "\n".join([f"{origin}: {len(listed)} faults", *(f"  {fault}" for fault in listed)])


def _node(name: str, topology: TopologyConfig, origin: Path, faults: list[str]) -> LabNode:
    own = topology.nodes[name] or NodeConfig()
    defaults = topology.defaults
    kind = own.kind or defaults.kind or HOST_KIND
    group = own.group or defaults.group
    if group is not None and topology.groups and group not in topology.groups:
        faults.append(f"node {name}: no group {group!r}{nearest(group, topology.groups)}")
    layers = [
        defaults,
        topology.kinds.get(kind) or NodeConfig(),
        (topology.groups.get(group) if group else None) or NodeConfig(),
        own,
    ]
    kind = next((layer.kind for layer in reversed(layers) if layer.kind), HOST_KIND)
    own_labels = {key: value for layer in layers for key, value in layer.labels.items()}
    wrong = list(labels.faults(own_labels))
    if kind not in (*ROUTER_KINDS, HOST_KIND):
        wrong.append(f"kind {kind!r} is none of {', '.join((*ROUTER_KINDS, HOST_KIND))}")
    kind = own_labels.get(labels.KIND.key, kind) if kind == HOST_KIND else kind
    if kind == "bird" and own_labels.get(labels.PROTOCOL.key) == labels.ISIS:
        wrong.append("BIRD does not support IS-IS")
    if not _NODE_NAME.fullmatch(name):
        faults.append(f"node {name!r}: not a name (letters, digits, '-', '_', '.', at most 31)")
    startup = next((s for layer in reversed(layers) if (s := layer.startup_config)), None)
    path = origin.parent / startup if startup else None
    if path is not None and not path.is_file():
        wrong.append(f"startup-config {startup}: no such file")
    sysctls = {key: value for layer in layers for key, value in layer.sysctls.items()}
    wrong.extend(_sysctl_faults(sysctls))
    faults.extend(f"node {name}: {fault}" for fault in wrong)
    return LabNode(name, kind, own_labels, path, sysctls)


def _sysctl_faults(sysctls: Mapping[str, str]) -> Iterator[str]:
    for key in sysctls:
        if key.startswith("net.") and not _SYSCTL.fullmatch(key):
            yield f"sysctls: {key!r} is not a name such as net.ipv4.tcp_reordering"


def _link(number: int, raw: LinkConfig, faults: list[str]) -> LabLink | None:
    place = f"link {number}"
    ends = []
    for text in raw.endpoints:
        node, colon, interface = text.partition(":")
        if not colon or not node or not _INTERFACE_NAME.fullmatch(interface):
            faults.append(
                f"{place}: endpoint {text!r} is not node:interface"
                " (interface of 1 to 15 characters)"
            )
        else:
            ends.append(Endpoint(node, interface))
    rate: BytesPerSecond | None = None
    try:
        rate = None if raw.vars.rate is None else labels.read_rate(raw.vars.rate)
    except ValueError as error:
        faults.append(f"{place}: rate: {error}")
    shaped = raw.vars.rate is None or rate is not None
    delay = 0.0
    try:
        delay = 0.0 if raw.vars.delay is None else labels.read_delay(raw.vars.delay)
    except ValueError as error:
        faults.append(f"{place}: delay: {error}")
    area: AreaId | None = None
    if raw.vars.area is not None:
        try:
            area = parse_area(raw.vars.area)
        except ValueError as error:
            faults.append(f"{place}: area {raw.vars.area!r}: {error}")
            area = BACKBONE
    if len(ends) != 2:
        return None
    return LabLink(
        (ends[0], ends[1]), rate, shaped, area, raw.vars.cost, raw.mtu, raw.vars.level, delay
    )


def _check_links(topology: LabTopology, faults: list[str]) -> None:
    used: dict[Endpoint, int] = {}
    host_links: dict[str, int] = {}
    for number, link in enumerate(topology.links, 1):
        for end in link.ends:
            if end.node not in topology.nodes:
                near = nearest(end.node, topology.nodes)
                faults.append(f"link {number}: no node {end.node!r}{near}")
                continue
            if end.interface == "lo":
                faults.append(f"link {number}: {end}: lo is the loopback")
            if end in used:
                faults.append(f"link {number}: {end} is used by link {used[end]} already")
            used.setdefault(end, number)
            if not topology.nodes[end.node].is_router:
                host_links[end.node] = host_links.get(end.node, 0) + 1
        if link.ends[0].node == link.ends[1].node:
            faults.append(f"link {number}: both ends are at {link.ends[0].node}")
        elif all(e.node in topology.nodes and e.node in host_links for e in link.ends):
            faults.append(f"link {number}: connects two hosts; a host requires a router")
    faults.extend(
        f"node {name}.{number}: this is the name of NIC {number} of host {name}"
        for name, count in host_links.items()
        for number in range(1, count + 1)
        if count > 1 and f"{name}.{number}" in topology.nodes
    )
