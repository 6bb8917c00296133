"""Draws the board with real data: a lab with failures and a degraded link, and a real Prometheus.

``python -m monitoring.picture docs/monitoring.png`` takes two minutes; it needs Prometheus and
Matplotlib. Panels, expressions and units are those of the Grafana board, as far as ``drawing``
draws them.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

import yaml

from fared.core.units import parse_bandwidth
from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.udp import Stream, send
from fared.extensions.lab.waiting import await_paths
from monitoring.drawing import draw
from monitoring.scraping import Prometheus

TOPOLOGY = Path(__file__).parents[1] / "containerlab" / "clos3.clab.yml"
ROUTERS = ("S1", "L1")
"""Whose lines are drawn, where a panel has one for each router."""
_PHASE = 15.0
"""Seconds between two events of the run."""
_RATE, _FLOWS = 3000, 64
"""Packets/s of 1000 bytes from h1 to h2, and how many flows they are."""


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
            draw(prometheus, begin, time.time(), ROUTERS).savefig(target, dpi=80)
    return 0


def _watch_links(fabric: Fabric, name: str) -> None:
    node = fabric.node(name)
    config = yaml.safe_load((node.directory / "fared.yaml").read_text("utf-8"))
    config["link-health"] = {"interfaces": {"*": {"mode": "monitor"}}}
    (node.directory / "fared.yaml").write_text(yaml.safe_dump(config), "utf-8")
    node.cli("config", "reload")


def _events(fabric: Fabric) -> None:
    """Traffic, a weak link, one that fails and heals, a route deleted, a drain, a failure."""
    time.sleep(_PHASE)
    _, port = fabric.plan.leaf_of("h2")
    repeats = int(5 * _PHASE * _RATE / _FLOWS)
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
    fabric.fail("S1", "L5")
    time.sleep(_PHASE)
    traffic.join()


if __name__ == "__main__":
    sys.exit(main())
