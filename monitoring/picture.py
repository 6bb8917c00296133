"""Draws the board with real data: a lab with a failure and a degraded link, and a real Prometheus.

``python -m monitoring.picture docs/monitoring.png`` takes a minute; it needs Prometheus and
Matplotlib. The panels and their expressions are those of the Grafana board.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter
from matplotlib.figure import Figure

from fared.core.units import parse_bandwidth
from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.udp import Stream, send
from fared.extensions.lab.waiting import await_paths
from monitoring.scraping import Prometheus, board_expressions

TOPOLOGY = Path(__file__).parents[1] / "containerlab" / "clos3.clab.yml"
ROUTERS = ("S1", "L1")
"""Whose lines are drawn, where a panel has one for each router."""
_PHASE = 15.0
"""Seconds between two events of the run."""
_COLUMNS = 3
_RATE, _FLOWS = 3000, 64
"""Packets/s of 1000 bytes from h1 to h2, and how many flows they are."""
_MOST_LINES = 8
_JOBS = "fared_ina_"
"""Metrics of jobs that aggregate."""


def main() -> int:
    """Run the lab, and write the picture to the path that is given."""
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        return sandbox.run(lambda: _draw(target, Path(directory)))


def _draw(target: Path, directory: Path) -> int:
    with Fabric.from_file(TOPOLOGY, directory=directory / "lab") as fabric:
        if await_paths(fabric, 60.0) is None:
            sys.stderr.write("the fabric does not converge\n")
            return 1
        for name in ROUTERS:
            _watch_links(fabric, name)
        with Prometheus(fabric, directory) as prometheus:
            time.sleep(_PHASE)
            begin = time.time()
            _events(fabric)
            board(prometheus, begin, time.time()).savefig(target, dpi=90)
    return 0


def _watch_links(fabric: Fabric, name: str) -> None:
    node = fabric.node(name)
    config = yaml.safe_load((node.directory / "fared.yaml").read_text("utf-8"))
    config["link-health"] = {"interfaces": {"*": {"mode": "monitor"}}}
    (node.directory / "fared.yaml").write_text(yaml.safe_dump(config), "utf-8")
    node.cli("config", "reload")


def _events(fabric: Fabric) -> None:
    """Traffic, a weak link, one that fails, a route that another program deletes, a drain."""
    time.sleep(_PHASE)
    _, port = fabric.plan.leaf_of("h2")
    repeats = int(4 * _PHASE * _RATE / _FLOWS)
    stream = Stream(flows=_FLOWS, repeats=repeats, rate=_RATE, payload=1000)
    traffic = threading.Thread(target=send, args=(fabric.node("h1"), port.peer_address, stream))
    traffic.start()
    fabric.shape("S1", "L2", parse_bandwidth("25M"))
    time.sleep(_PHASE)
    fabric.fail("S2", "L1")
    time.sleep(_PHASE)
    fabric.heal("S2", "L1")
    fabric.node("L1").netns.ip("route", "del", "10.0.2.0/24", "proto", "201")
    time.sleep(_PHASE)
    fabric.node("L1").cli("drain", "interface", "S3", "--share", "50%")
    time.sleep(_PHASE)
    traffic.join()


def board(prometheus: Prometheus, begin: float, end: float) -> Figure:
    """Draw the panels of the board with the data between two times; there are no jobs here."""
    panels = {
        title: expressions
        for title, expressions in board_expressions().items()
        if not any(_JOBS in expression for expression, _ in expressions)
    }
    rows = -(-len(panels) // _COLUMNS)
    figure = Figure(figsize=(6 * _COLUMNS, 2.4 * rows), layout="constrained")
    axes = figure.subplots(rows, _COLUMNS).flat
    for axis, (title, expressions) in zip(axes, panels.items(), strict=False):
        axis.set_title(title, fontsize=10, loc="left")
        for expression, legend in expressions:
            _lines(axis, prometheus.history(expression, begin, end), legend)
        axis.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
        axis.tick_params(labelsize=7)
        axis.set_ylim(bottom=0, top=1.25 * axis.get_ylim()[1])
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=6, ncols=2, loc="upper left", framealpha=0.6)
    for axis in list(axes)[len(panels) :]:
        axis.axis("off")
    return figure


def _lines(axis: Axes, series: list[dict[str, Any]], legend: str) -> None:
    shown = [one for one in series if one["metric"].get("instance", ROUTERS[0]) in ROUTERS]
    for one in shown[:_MOST_LINES]:
        label = legend
        for name, value in one["metric"].items():
            label = label.replace(f"{{{{{name}}}}}", value)
        times = [datetime.fromtimestamp(at, UTC) for at, _ in one["values"]]
        axis.plot(times, [float(value) for _, value in one["values"]], label=label, linewidth=1)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
