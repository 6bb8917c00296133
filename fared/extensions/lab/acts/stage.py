"""Where acts of the demonstration are played: a fabric, and what is told of it in 80 columns.

``perform`` builds nothing itself. It runs an act inside a sandbox, and removes everything after it;
a claim that fails ends the act with the reason, exit code 1, and the logs of all nodes kept.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console, RenderableType

from fared.extensions.lab import holder
from fared.extensions.lab.acts import panels
from fared.extensions.lab.acts.panels import Panel
from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.labels import BGP, ISIS, OSPF
from fared.extensions.lab.topology import LabTopology
from fared.extensions.lab.waiting import Accepts, has_all_paths, wait_until

SETTLED = 0.5
"""Seconds for which what was awaited must last."""
_READY_DEADLINE = 40.0
_READY_DEADLINE_A_ROUTER = 1.0
_WIDTH = 80
_NAMES = {OSPF: "OSPFv2", ISIS: "IS-IS", BGP: "BGP"}


class DemoError(LabError):
    """A claim of the demonstration failed."""


def perform(
    topology: LabTopology,
    play: Callable[[DemoStage], None],
    as_kind: str | None = None,
    picture: Path | None = None,
) -> int:
    """Play an act inside a sandbox; return 0, or 1 after reporting what failed.

    What it measured is drawn in ``picture``.
    """
    console = Console(width=min(_WIDTH, Console().width), highlight=False)
    fabric = Fabric.from_topology(topology, as_kind=as_kind)
    stage = DemoStage(fabric, console)
    try:
        play(stage)
        if picture is not None:
            panels.draw(topology.name, stage.panels, picture)
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


class DemoStage:
    """A fabric on which an act is played, and the console that tells of it."""

    def __init__(self, fabric: Fabric, console: Console) -> None:
        """Set the stage, without building anything."""
        self.fabric, self.console = fabric, console
        self.panels: list[Panel] = []
        self.title = ""
        self.begun = time.monotonic()

    # -- the fabric ----------------------------------------------------------------------------

    def build(self) -> None:
        """Build the fabric, and wait until every router has all paths. Raises LabError."""
        plan = self.fabric.plan
        links = len(self.fabric.topology.links)
        size = f"{len(plan.routers)} routers, {links} links"
        self.headline(f"{self.fabric.topology.name}: {size}, {_protocols(plan.routers)}")
        begun = time.monotonic()
        self.fabric.build()
        self.done(f"{len(plan.nodes)} namespaces and {links} links built", begun)
        started = time.monotonic()
        self.fabric.start()
        kinds = sorted({node.node.kind for node in plan.routers})
        self.done(f"{len(plan.routers)} daemons running ({', '.join(kinds)})", started)
        what = "routers have all paths"
        patience = _READY_DEADLINE + _READY_DEADLINE_A_ROUTER * len(plan.routers)
        ready = self.wait(plan.routers, has_all_paths(self.fabric), patience, what, quiet=SETTLED)
        near = plan.distances(plan.leaves[0].name)
        whole = all(leaf.name in near for leaf in plan.leaves)
        others = f"the {len(plan.leaves) - 1} others" if whole else "those of its plane"
        self.done(f"every leaf's kernel reaches {others} over all paths", started, ready)

    def wait(
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

    def finish(self) -> None:
        """Stop and remove everything, and tell how long all took."""
        before = time.monotonic()
        self.fabric.stop()
        self.done("everything stopped and removed", before)
        self.note(f"{time.monotonic() - self.begun:.1f} s in all")

    # -- output --------------------------------------------------------------------------------

    def headline(self, text: str) -> None:
        """Begin a part."""
        self.title = text
        self.console.print(f"\n[bold]{text}[/]")

    def done(self, text: str, begun: float, ended: float | None = None) -> None:
        """Tell what happened, and how long it took."""
        seconds = (time.monotonic() if ended is None else ended) - begun
        time_text = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
        self.console.print(f"  {text:<64} {time_text:>9}")

    def note(self, text: str) -> None:
        """Tell a fact."""
        self.console.print(f"  {text}")

    def show(self, what: RenderableType, *drawn: Panel) -> None:
        """Show a table, and keep what a picture has of it."""
        self.console.print()
        self.console.print(what)
        self.panels += drawn

    def claim(self, text: str, *, holds: bool) -> None:
        """Tell a claim that holds. Raises DemoError if it does not."""
        if not holds:
            raise DemoError(f"this does not hold: {text}")
        self.console.print(f"  [green]✓[/] {text}")


def _protocols(routers: Sequence[NodePlan]) -> str:
    """The protocols in use, and their address families."""
    told = []
    for protocol, name in _NAMES.items():
        nodes = [router.node for router in routers if router.node.protocol == protocol]
        six = " and IPv6" if any(node.ipv6 for node in nodes) else ""
        told += [f"{name} for IPv4{six}"] if nodes else []
    return " and ".join(told)
