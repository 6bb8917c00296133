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
  ``area`` (OSPF), ``level`` (IS-IS), ``addresses`` (of the ends, ``[10.1.0.1/30, 10.1.0.2/30]``)
- labels ``fared-lab.*`` of a node, which ``labels`` declares

Files that know nothing of the lab are read as well: ``clab`` finds what each node is.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Interface
from pathlib import Path

import pydantic

from fared.core.ids import BACKBONE, AreaId, parse_area
from fared.core.units import BytesPerSecond
from fared.extensions.lab import labels, sessions
from fared.extensions.lab.clab import addresses, ignored, roles, text, wires
from fared.extensions.lab.clab.faults import Faults
from fared.extensions.lab.clab.text import STDIN, FileLines
from fared.extensions.lab.model import Endpoint, LabLink, LabNode, LabTopology
from fared.extensions.lab.topology_file import File, NodeConfig, inherited

__all__ = ["STDIN", "Endpoint", "LabLink", "LabNode", "LabTopology", "from_document", "load"]

_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")
_SYSCTL = re.compile(r"net\.[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)+")
_LARGEST_CONFIG = 4 << 20


def load(path: Path, as_kind: str | None = None, *, keep_addresses: bool = False) -> LabTopology:
    """Read a topology file, or standard input. Raises TopologyError, listing every fault found."""
    document, lines = text.read(path, os.environ)
    return from_document(document, path, as_kind, lines=lines, keep_addresses=keep_addresses)


def from_document(
    document: object,
    origin: Path,
    as_kind: str | None = None,
    *,
    lines: FileLines | None = None,
    keep_addresses: bool = False,
) -> LabTopology:
    """Check a parsed file; ``as_kind`` runs every router as that kind instead of its own.

    Paths in it are relative to ``origin``; ``lines`` are for the messages. ``keep_addresses`` takes
    addresses from the file's own configuration. Raises TopologyError.
    """
    faults = Faults(origin, lines)
    file = _checked(document, faults)
    written = {name: inherited(name, file.topology) for name in file.topology.nodes}
    _check_groups(file, written, faults)
    found, left_out = wires.read(file.topology.links, written, faults)
    role = roles.decide(written, wires.neighbors(found, written), as_kind, faults)
    found, bridged = wires.joined(found, role.kinds, faults)
    found, called = wires.named(found)
    notes = [*role.notes, *left_out, *bridged, *called]
    kept = addresses.KeptAddresses()
    if keep_addresses:
        kept = addresses.kept(written, found, role.kinds, origin.parent)
        notes += kept.notes
    if not roles.labelled(written):
        notes += ignored.notes(file, written, role.own, keeps_addresses=keep_addresses)
    at_wires = {end.node for wire in found for end in wire.ends}
    nodes = {
        name: _node(name, node, role, kept, directory=origin.parent, faults=faults)
        for name, node in written.items()
        if role.kinds[name] != roles.OUTSIDE
        and (role.kinds[name] != labels.SEGMENT_KIND or name in at_wires)
    }
    links = tuple(_link(wire, kept.of(wire, role.kinds), faults) for wire in found)
    topology = LabTopology(file.name, nodes, links, origin, tuple(notes))
    _check_links(topology, found, faults)
    faults.report()
    return topology


def renamed(topology: LabTopology, name: str) -> LabTopology:
    """Return the topology as a lab of another name. Raises TopologyError for an invalid name."""
    made = from_document({**topology.document, "name": name}, topology.origin)
    return LabTopology(made.name, made.nodes, made.links, made.origin, topology.notes)


def with_kinds(topology: LabTopology, kinds: Mapping[str, str]) -> LabTopology:
    """Return the topology with other programs in some nodes, by name. Raises TopologyError."""
    nodes = {name: node.entry for name, node in topology.nodes.items()}
    for name, kind in kinds.items():
        told = {**nodes[name]["labels"], labels.KIND.key: kind}
        nodes[name] = {**nodes[name], "kind": kind, "labels": told}
    shape = {**topology.document["topology"], "nodes": nodes}
    made = from_document({**topology.document, "topology": shape}, topology.origin)
    return LabTopology(made.name, made.nodes, made.links, made.origin, topology.notes)


# -- checks ----------------------------------------------------------------------------------


def _checked(document: object, faults: Faults) -> File:
    """Return the file, if its shape is right. Raises TopologyError."""
    try:
        return File.model_validate(document)
    except pydantic.ValidationError as error:
        for fault in error.errors():
            place = fault["loc"]
            path = [int(p) if isinstance(p, int) else p for p in place]
            faults.add(f"{'.'.join(map(str, place)) or 'file'}: {fault['msg']}", *path)
    faults.report()
    raise AssertionError


def _check_groups(file: File, nodes: Mapping[str, NodeConfig], faults: Faults) -> None:
    """A group that is not declared is a name for drawings, unless it looks like one that is."""
    groups = file.topology.groups
    for name, node in nodes.items():
        near = labels.nearest(node.group or "", groups)
        if near and node.group not in groups:
            place = "topology", "nodes", name, "group"
            faults.add(f"node {name}: no group {node.group!r}{near}", *place)


def _node(
    name: str,
    node: NodeConfig,
    role: roles.Roles,
    kept: addresses.KeptAddresses,
    *,
    directory: Path,
    faults: Faults,
) -> LabNode:
    kind, own_labels = role.kinds[name], dict(node.labels)
    if name in kept.loopbacks:
        own_labels.setdefault(labels.LOOPBACK.key, str(kept.loopbacks[name]))
    wrong = list(labels.faults(own_labels))
    if kind == "bird" and own_labels.get(labels.PROTOCOL.key) == labels.ISIS:
        wrong.append("BIRD does not support IS-IS")
    startup = None
    linux = kind == labels.HOST_KIND and node.kind in (None, labels.HOST_KIND)
    if node.startup_config is not None and (name in role.own or linux):
        startup = _startup(node.startup_config, directory, wrong)
    wrong.extend(_sysctl_faults(node.sysctls))
    if not _NODE_NAME.fullmatch(name):
        told = f"node {name!r}: not a name (letters, digits, '-', '_', '.', at most 31)"
        faults.add(told, "topology", "nodes", name)
    for fault in wrong:
        faults.add(f"node {name}: {fault}", "topology", "nodes", name)
    return LabNode(name, kind, own_labels, startup, dict(node.sysctls))


def _startup(written: str, directory: Path, wrong: list[str]) -> str | None:
    """Return a configuration: a text of several lines is itself one, as in containerlab."""
    if "\n" in written:
        return written
    try:
        with (directory / written).open("rb") as file:
            content = file.read(_LARGEST_CONFIG + 1)
        if len(content) <= _LARGEST_CONFIG:
            return content.decode("utf-8").rstrip("\n") + "\n"
        wrong.append(f"startup-config {written}: larger than {_LARGEST_CONFIG >> 20} MiB")
    except FileNotFoundError:
        wrong.append(f"startup-config {written}: no such file")
    except OSError as error:
        wrong.append(f"startup-config {written}: {error.strerror}")
    except UnicodeDecodeError:
        wrong.append(f"startup-config {written}: not UTF-8")
    return None


def _sysctl_faults(sysctls: Mapping[str, str]) -> Iterator[str]:
    for key in sysctls:
        if key.startswith("net.") and not _SYSCTL.fullmatch(key):
            yield f"sysctls: {key!r} is not a name such as net.ipv4.tcp_reordering"


def _link(wire: wires.Wire, kept: tuple[IPv4Interface, ...] | None, faults: Faults) -> LabLink:
    told = wire.config.vars
    place, at = f"link {wire.number}", (*wire.path, "vars")
    rate: BytesPerSecond | None = None
    try:
        rate = None if told.rate is None else labels.read_rate(told.rate)
    except ValueError as error:
        faults.add(f"{place}: rate: {error}", *at, "rate")
    delay = 0.0
    try:
        delay = 0.0 if told.delay is None else labels.read_delay(told.delay)
    except ValueError as error:
        faults.add(f"{place}: delay: {error}", *at, "delay")
    area: AreaId | None = None
    if told.area is not None:
        try:
            area = parse_area(told.area)
        except ValueError as error:
            faults.add(f"{place}: area {told.area!r}: {error}", *at, "area")
            area = BACKBONE
    given = kept if told.addresses is None else tuple(told.addresses)
    written = told.model_dump(mode="json", exclude_unset=True)
    if given is not None:
        written["addresses"] = [str(address) for address in given]
    first, second = (Endpoint(end.node, end.here) for end in wire.ends)
    return LabLink(
        ends=(first, second),
        rate=rate,
        shaped=told.rate is None or rate is not None,
        area=area,
        cost=told.cost,
        mtu=wire.config.mtu,
        level=told.level,
        delay=delay,
        addresses=given,
        written=written,
    )


def _check_links(topology: LabTopology, found: Sequence[wires.Wire], faults: Faults) -> None:
    used: dict[Endpoint, int] = {}
    for wire, link in zip(found, topology.links, strict=True):
        for fault in (*_end_faults(link, used), *_link_faults(topology, link)):
            faults.add(f"link {wire.number}: {fault}", *wire.path)
        used |= {end: wire.number for end in link.ends if end not in used}
    ends = (end.node for link in topology.links for end in link.ends)
    nics = Counter(name for name in ends if topology.nodes[name].is_host)
    for name, count in nics.items():
        for number in range(1, count + 1):
            if count > 1 and f"{name}.{number}" in topology.nodes:
                told = f"node {name}.{number}: this is the name of NIC {number} of host {name}"
                faults.add(told, "topology", "nodes", f"{name}.{number}")


def _end_faults(link: LabLink, used: Mapping[Endpoint, int]) -> Iterator[str]:
    for end in link.ends:
        if end.interface == "lo":
            yield f"{end}: lo is the loopback"
        if end in used:
            yield f"{end} is used by link {used[end]} already"


def _link_faults(topology: LabTopology, link: LabLink) -> Iterator[str]:
    a, b = (topology.nodes[end.node] for end in link.ends)
    if a.name == b.name:
        yield f"both ends are at {a.name}"
    elif a.is_host and b.is_host:
        yield f"connects two hosts; a host requires a router ({a.name} and {b.name})"
    yield from sessions.faults(topology, link)
    for fault in _address_faults(link, segment=a.is_segment or b.is_segment):
        yield f"addresses: {fault}"


def _address_faults(link: LabLink, *, segment: bool) -> Iterator[str]:
    given = link.addresses
    if given is None:
        return
    ends = 1 if segment else 2
    if len(given) != ends:
        yield f"expected {ends}, such as 10.1.0.1/30, of each end that is no bridge"
    elif len({address.network for address in given}) > 1:
        yield f"{' and '.join(map(str, given))} are not of one subnet"
    elif len({address.ip for address in given}) < ends:
        yield f"{given[0]} is at both ends"
