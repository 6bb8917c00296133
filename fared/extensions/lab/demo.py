"""The demonstration: one slow link, one failed link, and the reaction of the fabric to each.

A Clos fabric is built with a real daemon in every router. Flows are sent from the first leaf's
host to another leaf's, and counted at the uplinks. Then one spine's link to that leaf drops to a
quarter of its rate, fails, and heals. In a five-stage fabric the other leaf is in another PoD:
where PoDs are areas of their own (of OSPF, or of IS-IS at level 1), the first leaf learns of the
slow link only by the path capacities that the routers between the areas advertise. Where IS-IS
runs, everything is shown and checked for IPv4 and IPv6 alike. Where FRR or BIRD run too, the link
is one that fared measures, and the leaves of fared are watched. Every claim is checked against the
kernels: weights are read from their tables, shares from their counters; a claim that fails ends the
demonstration with exit code 1.
"""

from __future__ import annotations

import time
from pathlib import Path

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.extensions.lab.acts.cast import SHARE_TOLERANCE, choose, measure, weighted
from fared.extensions.lab.acts.panels import Panel, share
from fared.extensions.lab.acts.stage import SETTLED, DemoError, DemoStage, perform
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.expected import known_rates, path_capacities
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.tables import shares_table
from fared.extensions.lab.topology import LabTopology
from fared.extensions.lab.traffic import TrafficReport
from fared.extensions.lab.waiting import interfaces

_CHANGE_DEADLINE, _CHANGE_DEADLINE_A_ROUTER = 15.0, 0.5
"""Seconds: a large fabric has few cores for each router."""
_SLOWED_TO = 4
_THEN_TO = 2


def run_demo(topology: LabTopology, as_kind: str | None = None, picture: Path | None = None) -> int:
    """Run the demonstration inside a sandbox; return 0, or 1 after reporting what failed."""
    return perform(topology, lambda stage: _Demo(stage).run(), as_kind, picture)


class _Demo:
    def __init__(self, stage: DemoStage) -> None:
        self.stage, self.fabric = stage, stage.fabric
        self.cast = choose(self.fabric)
        self.weighs = self.cast.source.node.kind == "fared"
        rate = self.fabric.rate
        self.rates = known_rates(self.fabric.plan, rate) if self.weighs else rate
        routers = len(self.fabric.plan.routers)
        self.patience = _CHANGE_DEADLINE + _CHANGE_DEADLINE_A_ROUTER * routers

    def run(self) -> None:
        """Run all acts."""
        self.stage.build()
        self._whole()
        self._slow()
        self._dead()
        self._facts()

    # -- the acts --------------------------------------------------------------------------

    def _whole(self) -> None:
        self.stage.headline("All links work")
        self._flows()

    def _slow(self) -> None:
        cast = self.cast
        whole = cast.rate
        slow = format_bandwidth(whole / _SLOWED_TO)
        self.stage.headline(f"{cast.link} drops to {slow} bit/s, a quarter")
        if self.weighs and cast.tail is cast.source:
            self.stage.note(f"FRR and BIRD measure no link of theirs; {cast.tail.name} does")
        self._change_rate(whole / _SLOWED_TO)
        self._flows()
        if self.weighs:
            half = format_bandwidth(whole / _THEN_TO)
            self.stage.headline(f"{cast.link} recovers to {half} bit/s, a half")
            self._change_rate(whole / _THEN_TO)

    def _change_rate(self, rate: BytesPerSecond) -> None:
        """Shape the link; if the daemons weight paths, wait for the weights and report them."""
        cast = self.cast
        self._reset_writes()
        begun = time.monotonic()
        self.fabric.shape(cast.tail.name, cast.head.name, rate)
        if not self.weighs:
            self.stage.note("these daemons do not weight paths: flows still split evenly")
            return
        done = self._await_weights("leaves weight the path by its capacity")
        families = " for IPv4 and IPv6" if len(cast.prefixes) > 1 else ""
        told = f"{cast.held} {self._ratio()} in the kernel{families}"
        self.stage.done(told, begun, done)
        self._tell_writes()

    def _await_weights(self, what: str) -> float:
        accepts = weighted(self.fabric.plan, self.cast, self.rates)
        return self.stage.wait(self.cast.watched, accepts, self.patience, what, quiet=SETTLED)

    def _dead(self) -> None:
        cast, stage = self.cast, self.stage
        a, b = cast.tail.name, cast.head.name
        at_source = cast.tail is cast.source
        stage.headline(f"The link between {a} and {b} fails, and heals")
        begun = time.monotonic()
        self.fabric.fail(a, b)
        what = "leaves avoid the link"
        done = stage.wait(cast.watched, self._avoids, self.patience, what)
        over, who = (b, a) if at_source else (a, "no leaf")
        sends = f"{who} sends nothing" if at_source else f"{who} sends"
        stage.done(f"failed: {sends} to {cast.target.name} over {over}", begun, done)
        begun = time.monotonic()
        self.fabric.heal(a, b)
        done = stage.wait(cast.watched, self._uses, self.patience, "leaves use the link")
        every = a if at_source else "every leaf"
        stage.done(f"healed: {every} sends over it again", begun, done)
        if self.weighs:
            done = self._await_weights("leaves weight the slow path less")
            stage.done(f"with the weights {self._ratio()}", begun, done)

    def _facts(self) -> None:
        node = self.fabric.node(self.cast.source.name)
        resident = sum(process.resident_bytes() for process in node.processes)
        self.stage.headline("Facts")
        self.stage.note(f"memory of {node.name}'s daemon: {resident / 1e6:.1f} MB resident")
        self.stage.finish()

    # -- conditions ----------------------------------------------------------------------------

    def _avoids(self, name: str, view: KernelView) -> bool:
        cast = self.cast
        return self._forwards(self.fabric.plan.without(cast.tail.name, cast.head.name), name, view)

    def _uses(self, name: str, view: KernelView) -> bool:
        return self._forwards(self.fabric.plan, name, view)

    def _forwards(self, plan: AddressPlan, name: str, view: KernelView) -> bool:
        """Whether a leaf uses all shortest paths to the target, and no others."""
        ports = {port.name for port in plan.equal_cost_ports(name, self.cast.target.name)}
        return all(interfaces(view.hops(prefix)) == ports for prefix in self.cast.prefixes)

    def _capacities(self, name: str) -> dict[str, BytesPerSecond]:
        return path_capacities(self.fabric.plan, self.rates, name, self.cast.target.name)

    def _ratio(self) -> str:
        """The kernel's weights at the source, as ``1:4:4:4``."""
        view = self.fabric.view(self.cast.source.name)
        return ":".join(str(hop.weight) for hop in view.hops(self.cast.prefixes[0]))

    # -- output --------------------------------------------------------------------------------

    def _flows(self) -> None:
        cast = self.cast
        reports = [measure(self.stage, cast, ipv6=":" in prefix) for prefix in cast.prefixes]
        capacities = self._capacities(cast.source.name)
        drawn = [self._panel(report) for report in reports]
        self.stage.show(shares_table(*reports, capacities=capacities), *drawn)
        for report in reports:
            if report.delivered < report.sent:
                lost = report.sent - report.delivered
                self.stage.note(f"{lost:,} of {report.sent:,} packets to {report.prefix} were lost")
        # The path with the largest share of its capacity fills first.
        full_at = min(
            capacities[up.interface] / max(up.measured, 1e-9)
            for report in reports
            for up in report.uplinks
        )
        whole, first = (format_bandwidth(value) for value in (sum(capacities.values()), full_at))
        self.stage.note(f"so split, the first path is full at {first} bit/s; all carry {whole}")
        worst = max(report.worst_error for report in reports)
        if worst > SHARE_TOLERANCE:
            raise DemoError(
                f"a measured share is {worst:.1%} off its weight, more than {SHARE_TOLERANCE:.0%}"
            )

    def _panel(self, report: TrafficReport) -> Panel:
        capacities = self._capacities(self.cast.source.name)
        rows = [
            f"{up.interface}: {format_bandwidth(capacities.get(up.interface))}, weight {up.weight}"
            for up in report.uplinks
        ]
        bars = {
            "by weight": [up.expected for up in report.uplinks],
            "measured": [up.measured for up in report.uplinks],
        }
        return Panel(f"{report.leaf} to {report.prefix}: {self.stage.title}", rows, bars, share)

    def _reset_writes(self) -> None:
        for view in self.fabric.views(self.cast.watched).values():
            view.read_events()
            view.writes.reset()

    def _tell_writes(self) -> None:
        views = self.fabric.views(self.cast.watched).values()
        for view in views:
            view.read_events()
        groups = sum(view.writes.next_hops for view in views)
        routes = sum(view.writes.routes for view in views)
        self.stage.note(f"written to their kernels: {groups} next-hop groups, {routes} routes")
