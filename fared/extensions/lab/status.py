"""``fared-lab status``: the nodes of a lab, and the processes that it has started."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.processes import NodeProcess


def show_status(fabric: Fabric) -> int:
    """Print the table; return 1 if a process has ended."""
    table = Table(title=f"lab {fabric.topology.name}", box=None)
    for heading in ("node", "kind", "router id", "links", "processes", "memory"):
        table.add_column(heading, justify="right" if heading in ("links", "memory") else "left")
    for node in fabric.nodes.values():
        plan = node.plan
        told = (node.name, plan.node.kind, str(plan.loopback or ""), str(len(plan.ports)))
        table.add_row(*told, *_processes(node.processes))
    delayed, processes = list(fabric.delayed_links()), fabric.delayed.processes
    if delayed:
        table.add_row(fabric.delayed.name, "", "", str(len(delayed)), *_processes(processes))
    Console().print(table)
    everything = [one for node in fabric.nodes.values() for one in node.processes]
    return 0 if all(one.alive() for one in (*everything, *processes)) else 1


def _processes(processes: Sequence[NodeProcess]) -> tuple[str, str]:
    """Return the processes with their ids, and the memory of those that run."""
    running = [process for process in processes if process.alive()]
    words = (f"{one.name} {one.pid if one in running else 'ended'}" for one in processes)
    memory = sum(process.resident_bytes() for process in running)
    return ", ".join(words), f"{memory / 1e6:.1f} MB" if running else ""
