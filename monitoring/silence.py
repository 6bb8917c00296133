"""Runs a healthy fabric beside a real Prometheus, with the alerts as they are, and counts them.

``python -m monitoring.silence containerlab/clos5-isis.clab.yml 10`` takes ten minutes. It prints
which alerts were pending or fired after the routers were ready, and which series each rule read,
and returns 1 if an alert fired.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from monitoring.scraping import Prometheus, rule_expressions

_PERIOD = 15.0
"""Seconds between two looks: as often as rules are evaluated."""


def main() -> int:
    """Run the lab of a file for some minutes."""
    topology, minutes = Path(sys.argv[1]), float(sys.argv[2])
    with tempfile.TemporaryDirectory() as directory:
        return sandbox.run(lambda: _watch(topology, minutes, Path(directory)))


def _watch(topology: Path, minutes: float, directory: Path) -> int:
    with Fabric.from_file(topology, directory=directory / "lab") as fabric:
        if await_paths(fabric, 90.0) is None:
            sys.stderr.write("the fabric does not converge\n")
            return 1
        with Prometheus(fabric, directory, brief=False) as prometheus:
            seen: Counter[tuple[str, str]] = Counter()
            end = time.monotonic() + 60 * minutes
            looks = 0
            while time.monotonic() < end:
                time.sleep(_PERIOD)
                looks += 1
                for state in ("pending", "firing"):
                    seen.update((state, _named(labels)) for labels in prometheus.alerts(state))
            _report(prometheus, topology.name, minutes, looks, seen)
    return int(any(state == "firing" for state, _ in seen))


def _named(labels: dict[str, str]) -> str:
    kept = ("alertname", "instance", "interface", "proto", "area", "lowest")
    return " ".join(labels[name] for name in kept if name in labels)


def _report(
    prometheus: Prometheus, name: str, minutes: float, looks: int, seen: Counter[tuple[str, str]]
) -> None:
    routers = prometheus.value("count(fared_ready == 1)")
    sys.stdout.write(f"{name}: {minutes:g} minutes, {looks} looks, {routers[0]:g} routers ready\n")
    for expression in (
        "count(fared_link_up == 1)",
        "count(fared_neighbor_up == 1)",
        "count(fared:databases:count)",
        "max(fared:databases:count)",
        "count by (area) (fared:databases:count)",
        'count by (area) (count_values by (proto, area) ("checksum", fared_lsdb_checksum))',
    ):
        values = " ".join(
            f"{one['metric'].get('area', '')} {one['value'][1]}".strip()
            for one in prometheus.query(expression)
        )
        sys.stdout.write(f"  {expression}: {values}\n")
    alerts = [rule for rule in rule_expressions() if not rule.startswith("fared:")]
    fired = {text for state, text in seen if state == "firing"}
    sys.stdout.write(f"  {len(alerts)} alerts, fired: {sorted(fired) or 'none'}\n")
    for (state, text), times in sorted(seen.items()):
        sys.stdout.write(f"  {state} at {times} looks: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
