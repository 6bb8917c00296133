"""A topology as the lab runs it: nodes with all that they inherit, and the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

from fared.core.ids import AreaId
from fared.core.units import BytesPerSecond
from fared.extensions.lab import labels
from fared.extensions.lab.labels import HOST_KIND, ROUTER_KINDS, SEGMENT_KIND


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

    ``delay``: seconds in each direction; ``mtu`` None: the file names none. ``addresses``: those of
    the ends, at a LAN segment of the one that is no bridge; None: the lab's. ``written``: its
    ``vars``, as in a file.
    """

    ends: tuple[Endpoint, Endpoint]
    rate: BytesPerSecond | None = None
    shaped: bool = True
    area: AreaId | None = None
    cost: int = 10
    mtu: int | None = None
    level: str | None = None
    delay: float = 0.0
    addresses: tuple[IPv4Interface, ...] | None = None
    written: Mapping[str, Any] = field(default_factory=dict)

    @property
    def entry(self) -> dict[str, Any]:
        """The link as in a topology file."""
        mtu = {} if self.mtu is None else {"mtu": self.mtu}
        written = {"vars": dict(self.written)} if self.written else {}
        return {"endpoints": [str(end) for end in self.ends], **mtu, **written}


@dataclass(frozen=True)
class LabNode:
    """A node with all inherited settings; ``startup_config`` is a text."""

    name: str
    kind: str
    labels: Mapping[str, str] = field(default_factory=dict)
    startup_config: str | None = None
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
    def keepalive_interval(self) -> int:
        """Its keepalive interval in BGP, seconds: 3, which is usual in data centers, or more."""
        return 3 * self.hello_interval

    @property
    def hold_time(self) -> int:
        """Its hold time in BGP, seconds: three keepalive intervals."""
        return 3 * self.keepalive_interval

    @property
    def is_router(self) -> bool:
        """Whether a routing daemon runs in it."""
        return self.kind in ROUTER_KINDS

    @property
    def is_host(self) -> bool:
        """Whether it is a host: it routes nothing."""
        return self.kind == HOST_KIND

    @property
    def is_segment(self) -> bool:
        """Whether it is a LAN segment, with the nodes that have links to it."""
        return self.kind == SEGMENT_KIND

    @property
    def loopback(self) -> IPv4Address | None:
        """The router id and loopback that it is given; None: the lab's."""
        return labels.LOOPBACK.of(self.labels)

    @property
    def entry(self) -> dict[str, Any]:
        """The node as in a topology file."""
        own = {"startup-config": self.startup_config} if self.startup_config is not None else {}
        return {
            "kind": self.kind,
            "labels": dict(self.labels),
            "sysctls": dict(self.sysctls),
            **own,
        }

    @property
    def protocol(self) -> str:
        """The protocol of its daemon."""
        return labels.PROTOCOL.of(self.labels)

    @property
    def bgp_sessions(self) -> str | None:
        """Which sessions a BGP router has, a word of ``labels.SESSIONS``; None: it has none."""
        speaks = self.is_router and self.protocol == labels.BGP
        return labels.BGP_SESSIONS.of(self.labels) if speaks else None

    @property
    def ipv6(self) -> bool:
        """Whether its daemon routes IPv6 too."""
        if self.bgp_sessions is not None:
            return self.bgp_sessions != labels.IPV4
        return self.is_router and self.protocol == labels.ISIS

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
    notes: tuple[str, ...] = ()
    """What of the file the lab does otherwise than containerlab, a line each."""

    @property
    def document(self) -> dict[str, Any]:
        """The topology as a file of the lab: nothing is inherited, and no other file is read."""
        nodes = {name: node.entry for name, node in self.nodes.items()}
        links = [link.entry for link in self.links]
        return {"name": self.name, "topology": {"nodes": nodes, "links": links}}
