"""The demonstration: one slow link, one failed link, and the reaction of the fabric to each.

A Clos fabric is built with a real daemon in every router. Flows are sent from the first leaf's
host to another leaf's, and counted at the uplinks. Then one spine's link to that leaf drops to a
quarter of its rate, fails, and heals. In a five-stage fabric the other leaf is in another PoD:
where PoDs are areas of their own (of OSPF, or of IS-IS at level 1), the first leaf learns of the
slow link only by the path capacities that the routers between the areas advertise. Where IS-IS
runs, everything is shown and checked for IPv4 and IPv6 alike. Every claim is checked against the
kernels: weights are read from their tables, shares from their counters; a claim that fails ends the
demonstration with exit code 1.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.extensions.lab import holder, traffic
from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import expected_shares, path_capacities
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView, shares
from fared.extensions.lab.tables import shares_table
from fared.extensions.lab.topology import LabTopology
from fared.extensions.lab.waiting import Accepts, has_all_paths, interfaces, wait_until

FLOWS = 20_000
SHARE_TOLERANCE = 0.02
_WEIGHT_TOLERANCE = 0.01
_READY_DEADLINE = 40.0
_READY_DEADLINE_A_ROUTER = 1.0
_CHANGE_DEADLINE = 15.0
_SETTLED = 0.5
_SLOWED_TO = 4
_THEN_TO = 2
_WIDTH = 80


class DemoError(LabError):
    """A claim of the demonstration failed."""


@dataclass(frozen=True)
class _Cast:
    """The nodes: flows go from source to target, and the link spine to target fails."""

    source: NodePlan
    source_host: str
    target: NodePlan
    target_host: str
    prefixes: tuple[str, ...]
    spine: NodePlan
    rate: BytesPerSecond

    @property
    def link(self) -> str:
        return f"{self.spine.name} > {self.target.name}"


def run_demo(topology: LabTopology, as_kind: str | None = None) -> int:
    """Run the demonstration inside a sandbox; return 0, or 1 after reporting what failed."""
    console = Console(width=min(_WIDTH, Console().width), highlight=False)
    fabric = Fabric.from_topology(topology, as_kind=as_kind)
    try:
        _Demo(fabric, console).run()
    except LabError as error:
        console.print(f"[bold red]failed[/]: {error}", soft_wrap=True)
        _keep_logs(fabric, console)
        return 1
    finally:
        fabric.stop()
    return 0


def _keep_logs(fabric: Fabric, console: Console) -> None:
    source = fabric.directory / "nodes"
    if source.is_dir():
        target = holder.base_directory() / f"{fabric.topology.name}-failed"
        shutil.rmtree(target, ignore_errors=True)
        ignored = shutil.ignore_patterns("*.sock", "*.vty", "zserv", "*.ctl")
        shutil.copytree(source, target, ignore=ignored)
        console.print(f"logs and configurations of all nodes: {target}", soft_wrap=True)


class _Demo:
    def __init__(self, fabric: Fabric, console: Console) -> None:
        self.fabric = fabric
        self.console = console
        self.cast = _choose(fabric)
        self.weighs = all(node.node.kind == "fared" for node in fabric.plan.routers)
        self.begun = time.monotonic()

    def run(self) -> None:
        """Run all acts."""
        self._build()
        self._whole()
        self._slow()
        self._dead()
        self._facts()

    # -- the acts --------------------------------------------------------------------------

    def _build(self) -> None:
        plan = self.fabric.plan
        links = len(self.fabric.topology.links)
        size = f"{len(plan.routers)} routers, {links} links"
        self._headline(f"{self.fabric.topology.name}: {size}, {_protocols(plan.routers)}")
        begun = time.monotonic()
        self.fabric.build()
        self._done(f"{len(plan.nodes)} namespaces and {links} links built", begun)
        started = time.monotonic()
        self.fabric.start()
        kinds = sorted({node.node.kind for node in plan.routers})
        self._done(f"{len(plan.routers)} daemons running ({', '.join(kinds)})", started)
        what = "routers have all paths"
        accepts = has_all_paths(self.fabric)
        patience = _READY_DEADLINE + _READY_DEADLINE_A_ROUTER * len(plan.routers)
        ready = self._await(plan.routers, accepts, patience, what, quiet=_SETTLED)
        every = len(plan.leaves) - 1
        self._done(
            f"every leaf's kernel reaches the {every} others over all spines", started, ready
        )

    def _whole(self) -> None:
        self._headline("All links work")
        self._flows()

    def _slow(self) -> None:
        cast = self.cast
        whole = cast.rate
        slow = format_bandwidth(whole / _SLOWED_TO)
        self._headline(f"{cast.link} drops to {slow} bit/s, a quarter")
        self._change_rate(whole / _SLOWED_TO)
        self._flows()
        if self.weighs:
            half = format_bandwidth(whole / _THEN_TO)
            self._headline(f"{cast.link} recovers to {half} bit/s, a half")
            self._change_rate(whole / _THEN_TO)

    def _change_rate(self, rate: BytesPerSecond) -> None:
        """Shape the link; if the daemons weight paths, wait for the weights and report them."""
        others = self._others()
        self._reset_writes()
        begun = time.monotonic()
        self.fabric.shape(self.cast.spine.name, self.cast.target.name, rate)
        if not self.weighs:
            self._note("these daemons do not weight paths: flows still split evenly")
            return
        what = "leaves weight the path by its capacity"
        done = self._await(others, self._weighted, _CHANGE_DEADLINE, what, quiet=_SETTLED)
        families = " for IPv4 and IPv6" if len(self.cast.prefixes) > 1 else ""
        told = f"{_leaves(others)} {self._ratio()} in the kernel{families}"
        self._done(told, begun, done)
        self._tell_writes()

    def _dead(self) -> None:
        cast = self.cast
        a, b = cast.spine.name, cast.target.name
        self._headline(f"The link between {a} and {b} fails, and heals")
        begun = time.monotonic()
        self.fabric.fail(a, b)
        done = self._await(self._others(), self._avoids, _CHANGE_DEADLINE, "leaves avoid the link")
        self._done(f"failed: no leaf sends to {b} over {a}", begun, done)
        begun = time.monotonic()
        self.fabric.heal(a, b)
        done = self._await(self._others(), self._uses, _CHANGE_DEADLINE, "leaves use the link")
        self._done("healed: every leaf sends over it again", begun, done)
        if self.weighs:
            done = self._await(
                self._others(), self._weighted, _CHANGE_DEADLINE, "leaves weight the slow path less"
            )
            self._done(f"with the weights {self._ratio()}", begun, done)

    def _facts(self) -> None:
        node = self.fabric.node(self.cast.source.name)
        resident = sum(process.resident_bytes() for process in node.processes)
        self._headline("Facts")
        self._note(f"memory of {node.name}'s daemon: {resident / 1e6:.1f} MB resident")
        before = time.monotonic()
        self.fabric.stop()
        self._done("everything stopped and removed", before)
        self._note(f"{time.monotonic() - self.begun:.1f} s in all")

    # -- conditions ----------------------------------------------------------------------------

    def _weighted(self, name: str, view: KernelView) -> bool:
        """Whether a leaf's weights toward the target match the capacities of its paths."""
        wanted = expected_shares(self._capacities(name))
        return all(
            wanted.keys() == held.keys()
            and all(abs(held[port] - share) <= _WEIGHT_TOLERANCE for port, share in wanted.items())
            for held in (shares(view.hops(prefix)) for prefix in self.cast.prefixes)
        )

    def _avoids(self, name: str, view: KernelView) -> bool:
        spine = self._toward_spine(name)
        return not any(spine & interfaces(view.hops(prefix)) for prefix in self.cast.prefixes)

    def _uses(self, name: str, view: KernelView) -> bool:
        spine = self._toward_spine(name)
        return all(spine <= interfaces(view.hops(prefix)) for prefix in self.cast.prefixes)

    def _toward_spine(self, name: str) -> set[str]:
        """Return the uplinks of a leaf whose shortest paths to the target pass the spine."""
        plan, target = self.fabric.plan, self.cast.target.name
        beyond = plan.distances(self.cast.spine.name)
        left = plan.distances(target)[name] - 2  # from the uplink's far end to the spine
        ports = plan.equal_cost_ports(name, target)
        return {port.name for port in ports if beyond[port.peer] == left}

    def _others(self) -> list[NodePlan]:
        leaves = self.fabric.plan.leaves
        return [leaf for leaf in leaves if leaf.name != self.cast.target.name]

    def _capacities(self, name: str) -> dict[str, BytesPerSecond]:
        plan = self.fabric.plan
        return path_capacities(plan, self.fabric.rate, name, self.cast.target.name)

    def _ratio(self) -> str:
        """The kernel's weights at the source, as ``1:4:4:4``."""
        view = self.fabric.view(self.cast.source.name)
        return ":".join(str(hop.weight) for hop in view.hops(self.cast.prefixes[0]))

    def _await(
        self,
        plans: Sequence[NodePlan],
        accepts: Accepts,
        timeout: float,
        what: str,
        *,
        quiet: float = 0.0,
    ) -> float:
        """Wait until all views are accepted, and show progress; return when that was.

        Raises DemoError.
        """
        views: Mapping[str, KernelView] = self.fabric.views(plans)
        with self.console.status(what) as status:
            seen = [0]

            def progress(done: int, total: int) -> None:
                seen[0] = done
                status.update(f"{done} of {total} {what}")

            finished = wait_until(views, accepts, timeout, progress, quiet=quiet)
        if finished is None:
            ended = [
                f"{node.name}: {process.name} has ended:\n{process.last_words()}"
                for node in self.fabric.nodes.values()
                for process in node.processes
                if not process.alive()
            ]
            after = f"after {timeout:.0f} s only {seen[0]} of {len(views)} {what}"
            raise DemoError("\n".join([after, *ended]))
        return finished

    # -- output --------------------------------------------------------------------------------

    def _flows(self) -> None:
        cast = self.cast
        ends = cast.source_host, cast.target_host
        with self.console.status(f"{FLOWS:,} flows from {ends[0]} to {ends[1]}"):
            reports = [
                traffic.measure(self.fabric, *ends, flows=FLOWS, ipv6=":" in prefix)
                for prefix in cast.prefixes
            ]
        self.console.print()
        capacities = self._capacities(cast.source.name)
        self.console.print(shares_table(*reports, capacities=capacities))
        for report in reports:
            if report.delivered < report.sent:
                lost = report.sent - report.delivered
                self._note(f"{lost:,} of {report.sent:,} packets to {report.prefix} were lost")
        # The path with the largest share of its capacity fills first.
        full_at = min(
            capacities[up.interface] / max(up.measured, 1e-9)
            for report in reports
            for up in report.uplinks
        )
        whole, first = (format_bandwidth(value) for value in (sum(capacities.values()), full_at))
        self._note(f"so split, the first path is full at {first} bit/s; all carry {whole}")
        worst = max(report.worst_error for report in reports)
        if worst > SHARE_TOLERANCE:
            raise DemoError(
                f"a measured share is {worst:.1%} off its weight, more than {SHARE_TOLERANCE:.0%}"
            )

    def _reset_writes(self) -> None:
        for view in self.fabric.views(self._others()).values():
            view.read_events()
            view.writes.reset()

    def _tell_writes(self) -> None:
        views = self.fabric.views(self._others()).values()
        for view in views:
            view.read_events()
        groups = sum(view.writes.next_hops for view in views)
        routes = sum(view.writes.routes for view in views)
        self._note(f"written to their kernels: {groups} next-hop groups, {routes} routes")

    def _headline(self, text: str) -> None:
        self.console.print(f"\n[bold]{text}[/]")

    def _done(self, text: str, begun: float, ended: float | None = None) -> None:
        seconds = (time.monotonic() if ended is None else ended) - begun
        time_text = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
        self.console.print(f"  {text:<64} {time_text:>9}")

    def _note(self, text: str) -> None:
        self.console.print(f"  {text}")


def _choose(fabric: Fabric) -> _Cast:
    """Choose leaves, hosts and the link that is slowed down: the first leaf, and the farthest one.

    Raises LabError.
    """
    plan = fabric.plan
    source, target = map(plan.node, plan.farthest_leaves())
    uplinks = plan.equal_cost_ports(source.name, target.name)
    if len(uplinks) < 2:
        raise DemoError(f"{source.name} has only one shortest path to {target.name}")
    spine = plan.node(uplinks[0].peer)
    while (onward := plan.equal_cost_ports(spine.name, target.name))[0].peer != target.name:
        spine = plan.node(onward[0].peer)
    rate = fabric.rate(onward[0])
    if rate is None:
        raise DemoError(f"the link {spine.name}-{target.name} has no rate to reduce")
    host = {leaf.name: next(p.peer for p in leaf.ports if p.to_host) for leaf in (source, target)}
    return _Cast(
        source=source,
        source_host=host[source.name],
        target=target,
        target_host=host[target.name],
        prefixes=tuple(
            str(prefix) for prefix in (target.host_prefixes[0], *target.host_prefixes6[:1])
        ),
        spine=spine,
        rate=rate,
    )


def _leaves(plans: Sequence[NodePlan]) -> str:
    return "1 leaf holds" if len(plans) == 1 else f"{len(plans)} leaves hold"


def _protocols(routers: Sequence[NodePlan]) -> str:
    """The protocols in use, and their address families."""
    spoken = {router.isis for router in routers}
    names = {False: "OSPFv2 for IPv4", True: "IS-IS for IPv4 and IPv6"}
    return " and ".join(names[isis] for isis in sorted(spoken))
