"""What must be true of a fabric after a fault, of each of its protocols by an oracle of its own.

All are predicates of one moment: databases equal, routes of every daemon and kernel as networkx
computes them from the topology, kernels as their daemons planned, weights in proportion to path
capacities, adjacencies back, sysctls as before, no traceback in a log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import expected_shares, path_capacities
from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.kernel_view import KernelView, shares
from fared.extensions.lab.port import PortAddresses
from fared.management.api.client import DaemonRefusedError, DaemonUnreachableError
from tests.peers import isis_oracle, isis_peers, oracle
from tests.peers.agreement import await_agreement
from tests.peers.peers import fared, full_neighbors
from tests.peers.routes import await_computed, await_kernels, own_prefixes

SHARE_TOLERANCE = 0.01
SYSCTLS = (
    "ipv4/ip_forward",
    "ipv4/fib_multipath_hash_policy",
    "ipv4/fib_multipath_hash_seed",
    "ipv4/nexthop_compat_mode",
)
_SYSCTLS6 = ("ipv6/conf/all/forwarding", "ipv6/fib_multipath_hash_policy")
_MOST = 300
"""Characters of a reason."""
_TRACES = (b"Traceback (most recent call last)", b'"internal-error"')
NO_ANSWER = (
    AssertionError,
    DaemonRefusedError,
    DaemonUnreachableError,
    KeyError,
    LabError,
    OSError,
    ValueError,
)
"""A router that restarts answers nothing, half of it, or with an error."""

REFUSED = "hellos are accepted"
"""The check that fails while hellos are refused, and for a minute after."""
LINKS = "links have an adjacency"
"""The check that fails while a link is down."""


class Plane:
    """The part of a fabric that runs one protocol; no link leads out of it."""

    def __init__(self, fabric: Fabric, plan: AddressPlan) -> None:
        self.fabric, self.plan = fabric, plan
        self.isis = plan.routers[0].isis
        self._links = isis_oracle.link_locals(self) if self.isis else {}
        self._names = isis_peers.hostnames(plan) if self.isis else {}
        self._sysctls = {node.name: self._settings(node) for node in self.ours}

    def node(self, name: str) -> RunningNode:
        """As of the fabric."""
        return self.fabric.node(name)

    def view(self, name: str) -> KernelView:
        """As of the fabric."""
        return self.fabric.view(name)

    def views(self, plans: Sequence[NodePlan]) -> Mapping[str, KernelView]:
        """As of the fabric."""
        return self.fabric.views(plans)

    @property
    def ours(self) -> list[RunningNode]:
        """The routers that run fared."""
        return [self.node(p.name) for p in self.plan.routers if p.node.kind == "fared"]

    def kernels(self, down: Collection[PortAddresses], seconds: float) -> float | None:
        """Wait until every kernel has the oracle's routes; return when, None: not in time."""
        try:
            return await_kernels(self, self._wanted(down), seconds)
        except NO_ANSWER:
            return None

    def problem(
        self, down: Collection[PortAddresses] = (), excused: Collection[str] = ()
    ) -> str | None:
        """The first invariant that does not hold now, while these ports are set down.

        ``excused``: checks of the daemons that a fault makes fail on purpose.
        """
        for name, check in self.checks(down, excused):
            try:
                check()
            except NO_ANSWER as error:
                return f"{name}: {type(error).__name__} {error}"[:_MOST]
        return None

    def checks(
        self, down: Collection[PortAddresses], excused: Collection[str]
    ) -> tuple[tuple[str, Callable[[], object]], ...]:
        """The invariants, by name."""
        wanted = self._wanted(down)
        return (
            ("processes", self._alive),
            ("kernels", lambda: await_kernels(self, wanted, 0.0)),
            ("adjacencies", lambda: self._adjacent(down)),
            ("daemons' routes", lambda: self._computed(wanted)),
            ("databases", self._agree),
            ("plan", lambda: self._planned((*excused, LINKS) if down else excused)),
            ("weights", lambda: self._weighted(down)),
            ("sysctls", self._set),
        )

    def _wanted(self, down: Collection[PortAddresses]) -> dict[str, dict[str, Any]]:
        links = [frozenset((port.node, port.peer)) for port in down]
        if self.isis:
            return isis_oracle.routes(self.plan, self._links, links)
        # BIRD, without carrier, advertises the address of its end as a host route.
        far = [self._far(port) for port in down]
        return oracle.routes(self.plan, links, [port for port in far if self._kind(port) == "bird"])

    def _far(self, port: PortAddresses) -> PortAddresses:
        ports = self.plan.node(port.peer).ports
        return next(other for other in ports if other.name == port.peer_port)

    def _kind(self, port: PortAddresses) -> str:
        return self.plan.node(port.node).node.kind

    def _alive(self) -> None:
        for router in self.plan.routers:
            processes = self.node(router.name).processes
            ended = [process.name for process in processes if not process.alive()]
            assert processes, f"{router.name} runs nothing"
            assert not ended, f"{router.name}: {ended} ended: {processes[0].last_words(3)}"

    def _adjacent(self, down: Collection[PortAddresses]) -> None:
        lost = {(port.node, port.name) for port in down}
        lost |= {(port.peer, port.peer_port) for port in down}
        for router in self.plan.routers:
            node = self.node(router.name)
            live = [p for p in router.fabric_ports if (p.node, p.name) not in lost]
            if self.isis:
                found = set(isis_peers.adjacencies(node, self._names))
            else:
                found = set(full_neighbors(node))
            assert found == {port.name for port in live}, f"{router.name}: {sorted(found)}"

    def _computed(self, wanted: Mapping[str, Mapping[str, Any]]) -> None:
        if not self.isis:
            await_computed(self, wanted, 0.0)
            return
        isis_oracle.await_metrics(self, wanted, 0.0)
        for node in self.ours:
            own = own_prefixes(node.plan)
            rows = fared(node).request("show routes")["routes"]
            held = {
                row["prefix"]: isis_oracle.Route(
                    row["metric"],
                    frozenset((hop["interface"], hop["address"]) for hop in row["nexthops"]),
                )
                for row in rows
                if row["prefix"] not in own
            }
            table = {p: route for p, route in wanted[node.name].items() if p not in own}
            unlike = [p for p in held.keys() | table.keys() if held.get(p) != table.get(p)]
            assert not unlike, f"{node.name}: {[(p, held.get(p), table.get(p)) for p in unlike]}"

    def _agree(self) -> None:
        if self.isis:
            isis_peers.await_equal_databases(self, 0.0)
        else:
            await_agreement(self, 0.0)

    def _planned(self, excused: Collection[str]) -> None:
        for node in self.ours:
            found = fared(node).request("validate")
            failed = [
                check
                for check in found["checks"]
                if not check["ok"] and check["name"] not in excused
            ]
            assert not failed, f"{node.name}: {failed}"
            status = fared(node).request("show status")
            assert status["ready"], f"{node.name} is not ready"
            assert not status["fib"]["foreign"], f"{node.name}: {status['fib']['foreign']}"

    def _weighted(self, down: Collection[PortAddresses]) -> None:
        plan = _without(self.plan, down)
        for node in self.ours:
            routes = {**self.view(node.name).routes(), **self.view(node.name).routes6()}
            for leaf in plan.leaves:
                if leaf.name == node.name or plan.distances(leaf.name)[node.name] > 2:
                    continue
                wanted = self.shares(plan, node.name, leaf.name)
                for prefix in (*leaf.host_prefixes, *leaf.host_prefixes6):
                    held = shares(routes.get(str(prefix), ()))
                    assert held.keys() == wanted.keys(), f"{node.name} {prefix}: {held}"
                    off = max(abs(held[port] - share) for port, share in wanted.items())
                    assert off <= SHARE_TOLERANCE, f"{node.name} {prefix}: {held}, not {wanted}"

    def shares(self, plan: AddressPlan, source: str, target: str) -> dict[str, float]:
        """The share of each port toward a router.

        FRR advertises the configured rate. BIRD advertises none: that of the near end counts.
        """

        def rate(port: PortAddresses) -> float | None:
            told = self._far(port) if self._kind(port) == "bird" else port
            return self.fabric.rate(told) if self._kind(told) == "fared" else told.rate

        return expected_shares(path_capacities(plan, rate, source, target))

    def _set(self) -> None:
        for node in self.ours:
            found = self._settings(node)
            wrong = {k: v for k, v in found.items() if v != self._sysctls[node.name][k]}
            assert not wrong, f"{node.name}: {wrong}"

    def _settings(self, node: RunningNode) -> dict[str, str]:
        names = (*SYSCTLS, *(_SYSCTLS6 if self.isis else ()))
        with node.netns.entered():
            return {name: Path("/proc/sys/net", name).read_text("ascii") for name in names}


class Complaints:
    """The logs of all fared: what was written since the last look, and must never be written."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._read: dict[Path, int] = {}

    def new(self) -> list[str]:
        """Errors in lines since the last call."""
        found = []
        for plan in self._fabric.plan.routers:
            if plan.node.kind != "fared":
                continue
            log = self._fabric.node(plan.name).directory / "fared.log"
            with log.open("rb") as file:
                file.seek(self._read.get(log, 0))
                text = file.read()
            self._read[log] = self._read.get(log, 0) + len(text)
            lines = [line for line in text.splitlines() if any(mark in line for mark in _TRACES)]
            found += [f"{plan.name}: {_short(line)}" for line in lines]
        return found


def _without(plan: AddressPlan, down: Collection[PortAddresses]) -> AddressPlan:
    """The plan without the links of these ports."""
    lost = {(port.node, port.name) for port in down} | {(p.peer, p.peer_port) for p in down}

    def live(node: NodePlan) -> Iterator[PortAddresses]:
        return (port for port in node.ports if (port.node, port.name) not in lost)

    return AddressPlan(
        {
            name: NodePlan(node.node, node.number, node.loopback, tuple(live(node)))
            for name, node in plan.nodes.items()
        }
    )


def _short(line: bytes) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return line.decode("utf-8", "replace")[:_MOST]
    return str(record.get("exception") or record)[-_MOST:]
