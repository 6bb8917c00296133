"""``fared-lab status``: the nodes of a lab, and the processes that it has started."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.processes import NodeProcess
from fared.extensions.lab.sessions import unnumbered

_RIGHT: Final = ("AS", "neighbors", "links", "memory")
_BGP_PORT, _ESTABLISHED = 179, "01"


def show_status(fabric: Fabric) -> int:
    """Print the table; return 1 if a process has ended."""
    bgp = any(node.plan.system for node in fabric.nodes.values())
    table = Table(title=f"lab {fabric.topology.name}", box=None)
    of_bgp = ("AS", "neighbors") if bgp else ()
    for heading in ("node", "kind", "router id", *of_bgp, "links", "processes", "memory"):
        table.add_column(heading, justify="right" if heading in _RIGHT else "left")
    for node in fabric.nodes.values():
        plan = node.plan
        told = (node.name, plan.node.kind, str(plan.loopback or ""))
        peering = _peering(node) if bgp else ()
        table.add_row(*told, *peering, str(len(plan.ports)), *_processes(node.processes))
    delayed, processes = list(fabric.delayed_links()), fabric.delayed.processes
    if delayed:
        empty = ("", "", *("" for _ in of_bgp))
        table.add_row(fabric.delayed.name, *empty, str(len(delayed)), *_processes(processes))
    Console().print(table)
    everything = [one for node in fabric.nodes.values() for one in node.processes]
    return 0 if all(one.alive() for one in (*everything, *processes)) else 1


def connected(netns: Netns) -> set[IPv4Address | IPv6Address]:
    """Return the far ends of connections of BGP, as the kernel has them, whatever daemon runs."""
    with netns.entered():
        files = (Path(f"/proc/thread-self/net/{name}") for name in ("tcp", "tcp6"))
        lines = [line for file in files for line in file.read_text("ascii").splitlines()[1:]]
    return set(_far_ends(lines))


def _far_ends(lines: Sequence[str]) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the addresses of lines ``N: LOCAL:PORT REMOTE:PORT STATE ...``.

    Words of addresses are in the machine's byte order; in tcp6 IPv4 is the last one of four.
    """
    for line in lines:
        _, local, remote, state, *_ = line.split()
        ports = (int(end.partition(":")[2], 16) for end in (local, remote))
        if state == _ESTABLISHED and _BGP_PORT in ports:
            digits = remote.partition(":")[0]
            words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
            content = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
            address = ip_address(content)
            yield getattr(address, "ipv4_mapped", None) or address


def _peering(node: RunningNode) -> tuple[str, str]:
    """Return the AS of a router, and how many of its neighbors it has a connection with."""
    if not node.plan.system:
        return "", ""
    peers, found = node.plan.bgp_peers, connected(node.netns)
    wanted = {end for peer in peers for end in (peer.address, peer.address6) if end is not None}
    up, sessions = len(wanted & found), len(wanted)
    if unnumbered(node.plan.node):
        up, sessions = sum(far.is_link_local for far in found), len(peers)
    return str(node.plan.system), f"{up} of {sessions}"


def _processes(processes: Sequence[NodeProcess]) -> tuple[str, str]:
    """Return the processes with their ids, and the memory of those that run."""
    running = [process for process in processes if process.alive()]
    words = (f"{one.name} {one.pid if one in running else 'ended'}" for one in processes)
    memory = sum(process.resident_bytes() for process in running)
    return ", ".join(words), f"{memory / 1e6:.1f} MB" if running else ""
