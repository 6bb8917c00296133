"""Addresses that a file gives its nodes, for ``--keep-addresses``.

They are those of FRR's configuration (``frr.conf`` or ``zebra.conf``, bound or as
``startup-config``), of ``ip address add`` in ``exec``, and of links (``ipv4``). A link keeps its
addresses if all its ends have one in the same subnet; the lab gives it others otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

from fared.extensions.foreign.frr.lines import interface_addresses, read_statements
from fared.extensions.lab.clab.ignored import listed
from fared.extensions.lab.clab.wires import Wire, WireEnd, given_ipv4
from fared.extensions.lab.labels import ROUTER_KINDS, SEGMENT_KIND
from fared.extensions.lab.topology_file import NodeConfig

_FRR = "/etc/frr"
_FILES = ("frr.conf", "zebra.conf")
_LARGEST = 1 << 20
_ADD = re.compile(r"\bip\s+(?:-4\s+)?a(?:ddr(?:ess)?)?\s+(?:add|replace)\s+([^;&|\"']+)")
_LOOPBACKS = {"lo", "lo0", "lo1", "dummy0"}
_HOST_BITS = 32


@dataclass
class KeptAddresses:
    """Addresses by interface, as named in the file, and loopbacks of routers, which are ids too."""

    interfaces: dict[tuple[str, str], IPv4Interface] = field(default_factory=dict)
    loopbacks: dict[str, IPv4Address] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def of(self, wire: Wire, kinds: Mapping[str, str]) -> tuple[IPv4Interface, ...] | None:
        """Return the addresses of the ends of a wire; None if an end has none."""
        ends = [end for end in wire.ends if kinds[end.node] != SEGMENT_KIND]
        found = [self.interfaces.get((end.node, end.interface)) for end in ends]
        return tuple(address for address in found if address is not None) if all(found) else None


def kept(
    nodes: Mapping[str, NodeConfig],
    wires: Iterable[Wire],
    kinds: Mapping[str, str],
    directory: Path,
) -> KeptAddresses:
    """Read what the nodes, and files in ``directory``, give."""
    found = KeptAddresses()
    missing: list[str] = []
    for name, node in nodes.items():
        if kinds[name] in ROUTER_KINDS:
            for text in _configurations(name, node, directory, missing):
                _read_frr(name, text, found)
        for command in node.exec_:
            for interface, address in _added(command):
                _keep(name, interface, address, found)
    if missing:
        found.notes.append(f"addresses: not read: {listed(missing)}")
    links = list(wires)
    for wire in links:
        for end, given in zip(wire.ends, given_ipv4(wire.config), strict=True):
            if given is not None and (own := _address(given)) is not None:
                _keep(end.node, end.interface, own, found)
    found.loopbacks = {n: a for n, a in found.loopbacks.items() if kinds.get(n) in ROUTER_KINDS}
    _check(links, kinds, found)
    return found


def _keep(node: str, interface: str, address: IPv4Interface, found: KeptAddresses) -> None:
    if interface in _LOOPBACKS:
        if not address.ip.is_loopback:
            found.loopbacks.setdefault(node, address.ip)
    elif address.network.prefixlen < _HOST_BITS:
        found.interfaces.setdefault((node, interface), address)


# -- what gives addresses --------------------------------------------------------------------------


def _configurations(
    name: str, node: NodeConfig, directory: Path, missing: list[str]
) -> Iterator[str]:
    """Yield the texts of FRR's configuration of a node; note which files cannot be read."""
    startup = node.startup_config
    if startup is not None and "\n" in startup:
        yield startup
    paths = [startup] if startup is not None and "\n" not in startup else []
    for bind in node.binds:
        source, _, target = bind.partition(":")
        target = target.partition(":")[0].rstrip("/")
        if target == _FRR:
            paths += [f"{source}/{file}" for file in _FILES if (directory / source / file).exists()]
        elif target in {f"{_FRR}/{file}" for file in _FILES}:
            paths.append(source)
    for path in (written.replace("__clabNodeName__", name) for written in paths):
        try:
            with (directory / path).open("rb") as file:
                yield file.read(_LARGEST).decode("utf-8", "replace")
        except OSError as error:
            missing.append(f"{path} ({error.strerror})")


def _read_frr(node: str, text: str, found: KeptAddresses) -> None:
    """Read addresses of interfaces, and the router id where the loopback has none."""
    statements = read_statements(text)
    for interface, address, _ in interface_addresses(statements):
        if isinstance(address, IPv4Interface):
            _keep(node, interface, address, found)
    for statement in (*statements, *(line for head in statements for line in head.inside)):
        match statement.words:
            case [*_, "router-id", word] if (identity := _address(word)) is not None:
                found.loopbacks.setdefault(node, identity.ip)


def _added(command: str) -> Iterator[tuple[str, IPv4Interface]]:
    for added in _ADD.finditer(command):
        words = added[1].split()
        addresses = [address for word in words if (address := _address(word)) is not None]
        if "dev" in words[:-1] and addresses:
            yield words[words.index("dev") + 1], addresses[0]


def _address(text: str) -> IPv4Interface | None:
    try:
        return IPv4Interface(text)
    except ValueError:
        return None


# -- which links keep theirs -----------------------------------------------------------------------


def _check(wires: list[Wire], kinds: Mapping[str, str], found: KeptAddresses) -> None:
    """Drop addresses of links whose ends do not agree; note what is kept."""
    lans: dict[str, list[Wire]] = {}
    for wire in wires:
        bridge = next((end.node for end in wire.ends if kinds[end.node] == SEGMENT_KIND), None)
        lans.setdefault(bridge or f"{wire.ends[0]} to {wire.ends[1]}", []).append(wire)
    others = []
    for name, parts in lans.items():
        ends = [e for wire in parts for e in wire.ends if kinds[e.node] != SEGMENT_KIND]
        if not _agree(ends, found):
            others.append(name)
            for end in ends:
                found.interfaces.pop((end.node, end.interface), None)
    found.notes.append(f"addresses: kept on {len(lans) - len(others)} of {len(lans)} links")
    if others:
        found.notes.append(
            "addresses of the lab, since the file gives none of one subnet to all ends:"
            f" {listed(others)}"
        )


def _agree(ends: Iterable[WireEnd], found: KeptAddresses) -> bool:
    given = [found.interfaces.get((end.node, end.interface)) for end in ends]
    addresses = [address for address in given if address is not None]
    return (
        len(addresses) == len(given)
        and len({address.network for address in addresses}) == 1
        and len({address.ip for address in addresses}) == len(addresses)
    )
