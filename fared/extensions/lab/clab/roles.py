"""What each node is in the lab: a router of a kind, a host, or a LAN segment.

Linux stands in for any router: ``--as`` names the daemon that routes in place of an image that
does not run in a network namespace. A node is a router if

- a label or its kind says so, or its image is one of FRR, BIRD or fared, which run as they are
- its kind, or its image, is a vendor's
- it is of kind ``linux`` and forwards: by a sysctl, by a command, or because it has several links
  of which one leads to another host
- it is of a kind that the lab does not know, and has several links

A node of kind ``linux`` whose commands make a bridge of its links is a LAN segment, as are those of
kind ``bridge``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fared.extensions.lab.clab.faults import Faults
from fared.extensions.lab.clab.ignored import listed
from fared.extensions.lab.labels import HOST_KIND, KIND, ROUTER_KINDS, SEGMENT_KIND, nearest
from fared.extensions.lab.topology_file import NodeConfig

_SEGMENTS: Final = (SEGMENT_KIND, "ovs-bridge")
_HOSTS: Final = (
    *(HOST_KIND, "vr_linux", "vr-linux", "generic_vm", "freebsd", "openbsd"),
    *("k8s-kind", "ext-container", "keysight_ixia-c-one", "ixia-c-one"),
)
OUTSIDE: Final = "host"
"""containerlab's kind for the machine itself: its links are left out."""
_STANDS_IN: Final = "?"
_VENDORS: Final = re.compile(
    r"(?:6wind|arista|arrcus|aruba|checkpoint|ciena|cisco|cumulus|dell|f5|fdio|fortinet|huawei"
    r"|ipinfusion|juniper|keysight_(?!ixia)|mikrotik|nokia|openwrt|paloalto|sonic|vyos|vr)[-_].*"
    r"|ceos|crpd|cvx|rare|srl|srsim|vyos|xrd|dnos|cjunosevolved|vr-.*"
)
_VENDOR_IMAGES: Final = re.compile(
    r"srlinux|ceos|crpd|xrd|vrnetlab|vyos|sonic|cumulus|routeros|vjunos|freertr|rare|holo|gobgp"
    r"|openbgpd|quagga"
)
_FORWARDS: Final = re.compile(r"\bnet[./]ipv[46][./](?:ip_forward|conf[./]all[./]forwarding)\b")
_BRIDGE: Final = re.compile(r"\bip link add\b.*\btype bridge\b")
_MEMBER: Final = re.compile(r"\bip link set\b.*\bmaster\b")
_SWITCHED_ON: Final = re.compile(_FORWARDS.pattern + r"\s*=\s*\"?'?1")


@dataclass
class Roles:
    """The kind of each node in the lab, and what people are told of it, a line each."""

    kinds: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    """Routers that run the program of their file, and take its configuration."""
    notes: list[str] = field(default_factory=list)


def decide(
    nodes: Mapping[str, NodeConfig],
    neighbors: Mapping[str, Sequence[str]],
    as_kind: str | None,
    faults: Faults,
) -> Roles:
    """Return what each node is; ``as_kind`` routes in every router.

    A router whose image does not run here is a fault without ``as_kind``.
    """
    told = labelled(nodes)
    found = {
        name: _kind(name, node, len(neighbors[name]), faults, told=told)
        for name, node in nodes.items()
    }
    between = [] if told else _between(found, neighbors)
    found.update(dict.fromkeys(between, _STANDS_IN))
    routers = {name: kind for name, kind in found.items() if kind in (*ROUTER_KINDS, _STANDS_IN)}
    runs = {name: as_kind or kind for name, kind in routers.items()}
    replaced: dict[str, list[str]] = {}
    for name, kind in routers.items():
        if _STANDS_IN in (kind, runs[name]) or runs[name] != kind:
            what = "kind linux between hosts" if name in between else _written(nodes[name])
            replaced.setdefault(what, []).append(name)
    if as_kind is None:
        _refuse(replaced, faults)
        runs = {n: ROUTER_KINDS[0] if kind == _STANDS_IN else kind for n, kind in runs.items()}
    roles = Roles({**found, **runs}, {name for name, kind in routers.items() if runs[name] == kind})
    if as_kind is not None and not told:
        roles.notes += [
            f"{as_kind} in place of {what}: {listed(n)}" for what, n in replaced.items()
        ]
    roles.notes += _other_notes(nodes, roles.kinds)
    return roles


def labelled(nodes: Mapping[str, NodeConfig]) -> bool:
    """Whether a file says with labels what runs in its nodes of kind ``linux``."""
    return any(KIND.key in node.labels for node in nodes.values())


def _between(found: Mapping[str, str], neighbors: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the hosts that have several links of which one leads to another host."""
    hosts = {name for name, kind in found.items() if kind == HOST_KIND}
    return [
        name
        for name in found
        if name in hosts and len(neighbors[name]) > 1 and not hosts.isdisjoint(neighbors[name])
    ]


def _refuse(replaced: Mapping[str, Sequence[str]], faults: Faults) -> None:
    for what, names in replaced.items():
        faults.add(
            f"{listed(names)}: {what} does not run in a network namespace;"
            " `--as fared` routes with fared in its place",
            *("topology", "nodes", names[0]),
        )


def _kind(name: str, node: NodeConfig, links: int, faults: Faults, *, told: bool) -> str:
    kind = node.kind or HOST_KIND
    if kind == HOST_KIND:
        return _linux(node, told=told)
    if kind in (*ROUTER_KINDS, OUTSIDE):
        return kind
    if kind in _SEGMENTS:
        return SEGMENT_KIND
    if kind in _HOSTS:
        return HOST_KIND
    near = "" if _VENDORS.fullmatch(kind) else nearest(kind, (*ROUTER_KINDS, HOST_KIND))
    if near:
        known = ", ".join((*ROUTER_KINDS, HOST_KIND))
        place = "topology", "nodes", name, "kind"
        faults.add(f"node {name}: kind {kind!r} is none of {known}{near}", *place)
    return _STANDS_IN if _VENDORS.fullmatch(kind) or links > 1 else HOST_KIND


def _linux(node: NodeConfig, *, told: bool) -> str:
    """Return what a node of kind ``linux`` is: by its label, or by image and what it does."""
    label = node.labels.get(KIND.key, HOST_KIND)
    if told:
        return label if label in ROUTER_KINDS else HOST_KIND
    if kind := _of_image(node):
        return kind
    if _forwards(node):
        return _STANDS_IN
    return SEGMENT_KIND if _bridges(node) else HOST_KIND


def _of_image(node: NodeConfig) -> str | None:
    image = (node.image or "").lower()
    for kind in ROUTER_KINDS:
        if kind in image:
            return kind
    return _STANDS_IN if _VENDOR_IMAGES.search(image) else None


def _forwards(node: NodeConfig) -> bool:
    by_sysctl = any(_FORWARDS.fullmatch(key) and on == "1" for key, on in node.sysctls.items())
    return by_sysctl or any(_SWITCHED_ON.search(command) for command in node.exec_)


def _bridges(node: NodeConfig) -> bool:
    """Whether commands of a node make a bridge of its links."""
    return any(_BRIDGE.search(command) for command in node.exec_) and any(
        _MEMBER.search(command) for command in node.exec_
    )


def _written(node: NodeConfig) -> str:
    """Return what a router says that it is."""
    kind = node.kind or HOST_KIND
    if kind != HOST_KIND:
        return f"kind {kind}"
    return f"image {node.image}" if _of_image(node) else "kind linux that forwards"


def _other_notes(nodes: Mapping[str, NodeConfig], kinds: Mapping[str, str]) -> Iterator[str]:
    by_kind: dict[str, list[str]] = {}
    switches = []
    for name, node in nodes.items():
        if kinds[name] == HOST_KIND and node.kind not in (None, HOST_KIND):
            by_kind.setdefault(node.kind or "", []).append(name)
        if kinds[name] == SEGMENT_KIND and node.kind not in _SEGMENTS:
            switches.append(name)
    for kind, names in by_kind.items():
        yield f"hosts, with no program: {listed(names)} (kind {kind})"
    if switches:
        yield f"LAN segments, without VLANs: {listed(switches)} (bridges, by their commands)"
