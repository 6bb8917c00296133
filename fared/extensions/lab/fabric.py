"""A running fabric: namespaces, links, daemons, and the operations on them.

``with Fabric.from_file(path) as fabric:`` builds everything, starts the daemons and removes all at
the end; it requires a sandbox (or root). ``Fabric.attach`` operates on a fabric that another
process holds.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import fared
from fared.core.units import BytesPerSecond
from fared.extensions.lab import sandbox, topology
from fared.extensions.lab.addressing import AddressPlan, NodePlan, make_plan
from fared.extensions.lab.delay import DelayedLinks
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.kinds import NodeKind, kind_of
from fared.extensions.lab.kinds.base import Command
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.node import configure_interfaces, node_sysctls
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.processes import NodeProcess, end, send_signal, start_in_turn
from fared.extensions.lab.shaping import shape_command

STATE_FILE = "state.json"
STATE_FORMAT = "fared-lab/1"
_START_DEADLINE = 60.0
_START_DEADLINE_A_NODE = 1.0


@dataclass
class RunningNode:
    """A node of a fabric: its plan, namespace, files and processes."""

    plan: NodePlan
    kind: NodeKind
    netns: Netns
    directory: Path
    processes: list[NodeProcess] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.plan.name

    def call(self, arguments: Sequence[str]) -> int:
        """Run a program in the node on the caller's terminal; return its exit code."""
        with self.netns.entered():
            try:
                return subprocess.call(arguments)
            except OSError as error:
                raise LabError(f"{arguments[0]}: {error.strerror}") from error

    def cli(self, *arguments: str) -> str:
        """Run the node's own operator tool; return what it prints. Raises LabError."""
        return self.netns.run(self.kind.cli(self.directory, arguments)).stdout


class Fabric:
    """All nodes of a topology."""

    def __init__(self, source: topology.LabTopology, directory: Path) -> None:
        """Plan the fabric without building it. State and logs go to ``directory``."""
        self.topology = source
        self.directory = directory
        self.plan: AddressPlan = make_plan(source)
        self.nodes: dict[str, RunningNode] = {
            name: RunningNode(
                plan, kind_of(plan.node.kind), Netns(name), directory / "nodes" / name
            )
            for name, plan in self.plan.nodes.items()
        }
        self._built: list[RunningNode] = []
        self.delayed = DelayedLinks(directory)
        self._views: dict[str, KernelView] = {}
        self._rates: dict[tuple[str, str], BytesPerSecond | None] = {}

    # -- making one ------------------------------------------------------------------------

    @classmethod
    def from_file(
        cls, path: Path | str, *, as_kind: str | None = None, directory: Path | None = None
    ) -> Fabric:
        """Read a topology file; ``as_kind`` makes all routers that kind. Raises TopologyError."""
        source = topology.load(Path(path), as_kind)
        return cls.from_topology(source, directory=directory)

    @classmethod
    def from_topology(
        cls,
        source: topology.LabTopology,
        *,
        as_kind: str | None = None,
        directory: Path | None = None,
    ) -> Fabric:
        """Plan a topology that is already read."""
        if as_kind is not None:
            source = topology.from_document(source.document, source.origin, as_kind)
        return cls(source, directory or Path("/run/fared-lab") / source.name)

    @classmethod
    def attach(cls, directory: Path) -> Fabric:
        """Attach to a fabric that another process holds, by its state directory."""
        state = json.loads((directory / STATE_FILE).read_text("utf-8"))
        if state.get("format") != STATE_FORMAT:
            raise LabError(f"{directory}: written by another version of fared-lab")
        source = topology.from_document(state["topology"], Path(state["origin"]), state["as_kind"])
        fabric = cls(source, directory)
        for name, processes in state["processes"].items():
            fabric.nodes[name].processes = _read_processes(processes)
        fabric.delayed.processes = _read_processes(state.get("delay", ()))
        return fabric

    def write_state(self, as_kind: str | None = None, **more: object) -> None:
        """Write the state that ``attach`` reads to the state directory, and ``more``."""
        state = {
            "format": STATE_FORMAT,
            "name": self.topology.name,
            "origin": str(self.topology.origin.resolve()),
            "topology": self.topology.document,
            "as_kind": as_kind,
            "processes": {
                name: _written_processes(node.processes) for name, node in self.nodes.items()
            },
            "delay": _written_processes(self.delayed.processes),
            **more,
        }
        path = self.directory / STATE_FILE
        part = path.with_suffix(".part")
        part.write_text(json.dumps(state, indent=1), "utf-8")
        part.replace(path)

    def __enter__(self) -> Self:
        """Build and start the fabric; after a failure nothing remains."""
        try:
            self.build()
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the daemons and remove the namespaces."""
        self.stop()

    # -- up and down -----------------------------------------------------------------------

    def build(self) -> None:
        """Make namespaces, links, addresses and rates. Raises LabError."""
        if not sandbox.inside() and os.geteuid() != 0:
            raise LabError("a fabric requires a sandbox, or root")
        self._check_programs()
        self.directory.mkdir(parents=True, exist_ok=True)
        for node in self.nodes.values():
            Netns.create(node.netns.name)
            self._built.append(node)
            for key, value in node_sysctls(node.kind, node.plan).items():
                node.netns.sysctl(key, value)
        if self._built:
            self._built[0].netns.batch("ip", self._link_commands())
        self._make_delayed_links()
        for node in self.nodes.values():
            configure_interfaces(node.netns, node.plan)

    def start(self) -> None:
        """Write the configurations and start all daemons. Raises LabError."""
        if any(node.plan.node.kind == "fared" for node in self.nodes.values()):
            _compile()
        self._start(list(self.nodes.values()))

    def start_node(self, name: str) -> None:
        """Start the daemons of one node again, with its present configuration."""
        self._start([self.node(name)], write=False)

    def stop_node(self, name: str, *, kill: bool = False) -> None:
        """Stop the daemons of one node, or, with ``kill``, kill them as in a crash."""
        node = self.node(name)
        if kill:
            for process in node.processes:
                send_signal(process, signal.SIGKILL)
        end(node.processes)
        node.processes.clear()

    def become(self, kinds: Mapping[str, str]) -> None:
        """Stop the daemons of routers, and start those of other kinds in their place.

        Links, addresses and everything else keep running. Raises LabError.
        """
        end([process for name in kinds for process in self.node(name).processes])
        self.topology = topology.with_kinds(self.topology, kinds)
        self.plan = make_plan(self.topology)
        for name, node in self.nodes.items():
            node.plan = self.plan.node(name)
        changed = [self.nodes[name] for name in kinds]
        for node in changed:
            node.processes.clear()
            node.kind = kind_of(node.plan.node.kind)
        self._check_programs()
        for node in changed:
            for key, value in node_sysctls(node.kind, node.plan).items():
                node.netns.sysctl(key, value)
        self._start(changed)

    def _start(self, nodes: Sequence[RunningNode], *, write: bool = True) -> None:
        """Start the daemons of all nodes in step: the first of each, then the second."""
        queues: dict[str, list[Command]] = {}
        for node in nodes:
            node.directory.mkdir(parents=True, exist_ok=True)
            if write:
                for file, text in node.kind.files(node.plan, node.directory).items():
                    (node.directory / file).write_text(text, "utf-8")
            queues[node.name] = list(node.kind.commands(node.plan, node.directory))
        deadline = time.monotonic() + _START_DEADLINE + _START_DEADLINE_A_NODE * len(nodes)
        while any(queues.values()):
            step = [(self.nodes[name], queue.pop(0)) for name, queue in queues.items() if queue]
            start_in_turn(step, deadline)

    def stop(self) -> None:
        """Stop the daemons, first by SIGTERM, then by SIGKILL, and delete the namespaces."""
        for view in self._views.values():
            view.close()
        self._views.clear()
        processes = [process for node in self.nodes.values() for process in node.processes]
        end(processes)
        for node in self.nodes.values():
            node.processes.clear()
        self.delayed.stop()
        for node in self._built:
            node.netns.delete()
        self._built.clear()
        shutil.rmtree(self.directory / "nodes", ignore_errors=True)

    def _check_programs(self) -> None:
        lacking = {
            f"kind {node.plan.node.kind}: {missing} not installed"
            for node in self.nodes.values()
            if (missing := node.kind.missing()) is not None
        }
        lacking |= {f"{tool} not installed" for tool in ("ip", "tc") if shutil.which(tool) is None}
        if lacking:
            raise LabError("; ".join(sorted(lacking)))

    def _link_commands(self) -> Iterator[str]:
        for a, b in self._links():
            if a.delay:
                continue
            yield (
                f"link add name {a.name} index {a.index} mtu {a.mtu} netns {a.node} type veth "
                f"peer name {b.name} index {b.index} mtu {b.mtu} netns {b.node}"
            )

    def _make_delayed_links(self) -> None:
        links = list(self.delayed_links())
        self.delayed.start(links)
        for node in self.nodes.values():
            mine = [port for ends in links for port in ends if port.node == node.name]
            node.netns.batch("ip", [f"link set dev {port.name} mtu {port.mtu}" for port in mine])

    def delayed_links(self) -> Iterator[tuple[PortAddresses, PortAddresses]]:
        """Yield both ends of each link with a delay."""
        return (ends for ends in self._links() if ends[0].delay)

    def _links(self) -> Iterator[tuple[PortAddresses, PortAddresses]]:
        for link in self.topology.links:
            a, b = link.ends
            yield self._port(a), self._port(b)

    def _port(self, end: topology.Endpoint) -> PortAddresses:
        ports = self.plan.node(end.node).ports
        return next(port for port in ports if port.name == end.interface)

    # -- operations --------------------------------------------------------------------------

    def node(self, name: str) -> RunningNode:
        """Return a node. Raises LabError."""
        self.plan.node(name)
        return self.nodes[name]

    def view(self, name: str) -> KernelView:
        """Return the contents of the node's kernel, read without the daemon."""
        if name not in self._views:
            node = self.node(name)
            self._views[name] = KernelView(node.netns)
        return self._views[name]

    def views(self, plans: Sequence[NodePlan]) -> Mapping[str, KernelView]:
        """Return the kernels of several nodes."""
        return {plan.name: self.view(plan.name) for plan in plans}

    def fail(self, a: str, b: str) -> None:
        """Set the links between two nodes down at ``a``: both ends lose carrier."""
        self._set_links(a, b, "down")

    def heal(self, a: str, b: str) -> None:
        """Set the links between two nodes up again, at both ends."""
        self._set_links(a, b, "up")
        self._set_links(b, a, "up")

    def _set_links(self, a: str, b: str, state: str) -> None:
        for port in self.plan.ports_between(a, b):
            self.node(a).netns.ip("link", "set", "dev", port.name, state)

    def shape(
        self, a: str, b: str, rate: BytesPerSecond | None, queue: float | None = None
    ) -> None:
        """Set the rate from ``a`` toward ``b``, bytes/s for each link; None removes the limit.

        ``queue``: how many seconds of traffic wait at most; None: as the MTU requires.
        """
        for port in self.plan.ports_between(a, b):
            command = shape_command(port, rate, queue).split()
            self.node(a).netns.run(["tc", *command], check=rate is not None)
            self._rates[a, port.name] = rate

    def rate(self, port: PortAddresses) -> BytesPerSecond | None:
        """Return the rate of a port as last set through this object, bytes/s; None is unlimited."""
        return self._rates.get((port.node, port.name), port.rate)


def _written_processes(processes: Iterable[NodeProcess]) -> list[dict[str, Any]]:
    return [{"name": p.name, "pid": p.pid, "log": str(p.log)} for p in processes]


def _read_processes(written: Iterable[Mapping[str, Any]]) -> list[NodeProcess]:
    return [NodeProcess(p["name"], p["pid"], Path(p["log"])) for p in written]


def _compile() -> None:
    """Compile our modules where that has not been done, once for all daemons.

    A source tree that was edited, or is run with PYTHONDONTWRITEBYTECODE, costs each daemon 200 ms
    otherwise. Where it cannot be written to, nothing happens.
    """
    compileall.compile_dir(str(Path(fared.__file__).parent), quiet=2)
