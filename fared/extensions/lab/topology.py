"""Topology files in containerlab's format: reading and checking.

The same file runs under containerlab, with Docker, and under ``fared-lab``, without it. In
containerlab our nodes are of ``kind: linux`` with an image; here the label ``fared-lab.kind`` names
the program (``fared``, ``frr``, ``bird``; no label: a host). The literal kinds ``fared``, ``frr``
and ``bird`` are accepted too, for files that only the lab runs. Inheritance is that of
containerlab: defaults, then kind, then group, then the node; labels and ``sysctls`` are merged.
Of the latter, which containerlab sets too, the lab sets those of ``net.``, after its own.

The lab also reads these places, which containerlab leaves to the user:

- link ``vars``: ``rate`` (``100M``, ``none``), ``cost``, ``area`` (OSPF), ``level`` (IS-IS)
- label ``fared-lab.rate``: the default rate of a node's links to other routers
- label ``fared-lab.segmentation`` of a host: ``single`` segments leave one by one, as from a NIC;
  ``offload`` (the default): up to 64 KB of a TCP flow cross the fabric's veths as one packet
- label ``fared-lab.hello-interval``: seconds, 1 if not given; four without a hello end an adjacency
- label ``fared-lab.protocol``: ``ospf`` (the default) or ``isis``, which routes IPv6 too
- label ``fared-lab.bier``: ``on`` makes a router a BFR, and its hosts BFERs (``docs/bier.md``);
  ``php``: they get payloads without BIER header
- label ``fared-lab.ina``: ``on`` runs ``fared-ina`` in a router, which sums (``docs/ina.md``)
- labels ``fared-lab.isis-level`` (``level-2``) and ``fared-lab.isis-area`` (``49.0000``)
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pydantic
import yaml

from fared.core.ids import BACKBONE, AreaId, parse_area
from fared.core.units import BytesPerSecond, parse_bandwidth
from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.topology_file import File, LinkConfig, NodeConfig, TopologyConfig

ROUTER_KINDS = ("fared", "frr", "bird")
HOST_KIND = "linux"
KINDS = (*ROUTER_KINDS, HOST_KIND)
KIND_LABEL = "fared-lab.kind"
RATE_LABEL = "fared-lab.rate"
HELLO_LABEL = "fared-lab.hello-interval"
PROTOCOL_LABEL = "fared-lab.protocol"
LEVEL_LABEL = "fared-lab.isis-level"
AREA_LABEL = "fared-lab.isis-area"
OSPF, ISIS = "ospf", "isis"
SEGMENTATION_LABEL = "fared-lab.segmentation"
INA_LABEL = "fared-lab.ina"
BIER_LABEL = "fared-lab.bier"
PHP = "php"
ON, NOT = "on", "off"
SINGLE, OFFLOAD = "single", "offload"
LEVELS = ("level-1", "level-2", "level-1-2")
_DEFAULT_LEVEL = "level-2"
_DEFAULT_AREA = "49.0000"

_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")
_ISIS_AREA = re.compile(r"[0-9a-fA-F]{2}(?:\.?[0-9a-fA-F]{2}){0,12}")
_INTERFACE_NAME = re.compile(r"[^\s/:]{1,15}")
_SYSCTL = re.compile(r"net\.[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)+")
_SECONDS = re.compile(r"[1-9][0-9]{0,3}")
_UNSHAPED = ("none", "off")


@dataclass(frozen=True)
class Endpoint:
    """One end of a link, written ``node:interface`` in the file."""

    node: str
    interface: str

    def __str__(self) -> str:
        return f"{self.node}:{self.interface}"


@dataclass(frozen=True)
class LabLink:
    """A link between two nodes; ``rate`` overrides the nodes' own, ``shaped`` False means none."""

    ends: tuple[Endpoint, Endpoint]
    rate: BytesPerSecond | None = None
    shaped: bool = True
    area: AreaId | None = None
    cost: int = 10
    mtu: int = 1500
    level: str | None = None


@dataclass(frozen=True)
class LabNode:
    """A node with all inherited settings."""

    name: str
    kind: str
    labels: Mapping[str, str] = field(default_factory=dict)
    startup_config: Path | None = None
    rate: BytesPerSecond | None = None
    sysctls: Mapping[str, str] = field(default_factory=dict)

    @property
    def single_segments(self) -> bool:
        """Whether each TCP segment leaves it as a packet of its own."""
        return self.labels.get(SEGMENTATION_LABEL) == SINGLE

    @property
    def ina(self) -> bool:
        """Whether it sums packets of in-network aggregation."""
        return self.kind == "fared" and self.labels.get(INA_LABEL) == ON

    @property
    def bier(self) -> bool:
        """Whether it forwards BIER packets."""
        return self.kind == "fared" and self.labels.get(BIER_LABEL) in (ON, PHP)

    @property
    def bier_php(self) -> bool:
        """Whether its hosts get the payload of BIER packets without the header."""
        return self.bier and self.labels[BIER_LABEL] == PHP

    @property
    def hello_interval(self) -> int:
        """Its hello interval, seconds."""
        return int(self.labels.get(HELLO_LABEL, "1"))

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
        return self.labels.get(PROTOCOL_LABEL, OSPF)

    @property
    def isis_level(self) -> str:
        """The levels of an IS-IS router."""
        return self.labels.get(LEVEL_LABEL, _DEFAULT_LEVEL)

    @property
    def isis_area(self) -> str:
        """The area address of an IS-IS router."""
        return self.labels.get(AREA_LABEL, _DEFAULT_AREA)


@dataclass(frozen=True)
class LabTopology:
    """A checked topology: every endpoint names a node, no interface is used twice."""

    name: str
    nodes: Mapping[str, LabNode]
    links: tuple[LabLink, ...]
    origin: Path
    document: Mapping[str, Any]


def load(path: Path) -> LabTopology:
    """Read a topology file. Raises TopologyError, listing every fault found."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TopologyError(f"{path}: not YAML: {error}") from error
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
        faults.append(f"node {name}: no group {group!r}{_nearest(group, topology.groups)}")
    layers = [
        defaults,
        topology.kinds.get(kind) or NodeConfig(),
        (topology.groups.get(group) if group else None) or NodeConfig(),
        own,
    ]
    kind = next((layer.kind for layer in reversed(layers) if layer.kind), HOST_KIND)
    labels = {key: value for layer in layers for key, value in layer.labels.items()}
    if kind == HOST_KIND:
        kind = labels.get(KIND_LABEL, kind)
    if kind not in KINDS:
        faults.append(f"node {name}: kind {kind!r} is none of {', '.join(KINDS)}")
    if kind == "bird" and labels.get(PROTOCOL_LABEL) == ISIS:
        faults.append(f"node {name}: BIRD does not support IS-IS")
    if not _NODE_NAME.fullmatch(name):
        faults.append(f"node {name!r}: not a name (letters, digits, '-', '_', '.', at most 31)")
    faults.extend(f"node {name}: {fault}" for fault in _label_faults(labels))
    rate, _ = _rate(labels.get(RATE_LABEL), f"node {name}: label {RATE_LABEL}", faults)
    startup = next((s for layer in reversed(layers) if (s := layer.startup_config)), None)
    path = origin.parent / startup if startup else None
    if path is not None and not path.is_file():
        faults.append(f"node {name}: startup-config {startup}: no such file")
    sysctls = {key: value for layer in layers for key, value in layer.sysctls.items()}
    faults.extend(f"node {name}: {fault}" for fault in _sysctl_faults(sysctls))
    return LabNode(name, kind, labels, path, rate, sysctls)


def _sysctl_faults(sysctls: Mapping[str, str]) -> Iterator[str]:
    for key in sysctls:
        if key.startswith("net.") and not _SYSCTL.fullmatch(key):
            yield f"sysctls: {key!r} is not a name such as net.ipv4.tcp_reordering"


_CHOICES = (
    (PROTOCOL_LABEL, (OSPF, ISIS)),
    (LEVEL_LABEL, LEVELS),
    (SEGMENTATION_LABEL, (SINGLE, OFFLOAD)),
    (INA_LABEL, (ON, NOT)),
    (BIER_LABEL, (ON, PHP, NOT)),
)


def _label_faults(labels: Mapping[str, str]) -> Iterator[str]:
    for label, known in _CHOICES:
        value = labels.get(label)
        if value is not None and value not in known:
            yield f"label {label}: {value!r} is none of {', '.join(known)}{_nearest(value, known)}"
    area = labels.get(AREA_LABEL)
    if area is not None and not _ISIS_AREA.fullmatch(area):
        yield f"label {AREA_LABEL}: {area!r} is not an area address such as 49.0001"
    hello = labels.get(HELLO_LABEL, "1")
    if not _SECONDS.fullmatch(hello):
        yield f"label {HELLO_LABEL}: {hello!r} is not 1 to 9999 seconds"


def _rate(text: str | None, place: str, faults: list[str]) -> tuple[BytesPerSecond | None, bool]:
    """Return the rate, if given, and whether the link may be shaped at all."""
    if text is None:
        return None, True
    if text.lower() in _UNSHAPED:
        return None, False
    try:
        return parse_bandwidth(text), True
    except ValueError as error:
        faults.append(f"{place}: {error}")
        return None, True


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
    rate, shaped = _rate(raw.vars.rate, f"{place}: rate", faults)
    area: AreaId | None = None
    if raw.vars.area is not None:
        try:
            area = parse_area(raw.vars.area)
        except ValueError as error:
            faults.append(f"{place}: area {raw.vars.area!r}: {error}")
            area = BACKBONE
    if len(ends) != 2:
        return None
    return LabLink((ends[0], ends[1]), rate, shaped, area, raw.vars.cost, raw.mtu, raw.vars.level)


def _check_links(topology: LabTopology, faults: list[str]) -> None:
    used: dict[Endpoint, int] = {}
    host_links: dict[str, int] = {}
    for number, link in enumerate(topology.links, 1):
        for end in link.ends:
            if end.node not in topology.nodes:
                near = _nearest(end.node, topology.nodes)
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
        f"node {name}: a host has one link, this one {count}"
        for name, count in host_links.items()
        if count > 1
    )


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
