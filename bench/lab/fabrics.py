"""Common parts of the benchmarks on live fabrics: the 4x8 topology, changes of settings."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from bench import ROOT
from fared.extensions.lab import topology
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.reload import adapt
from fared.extensions.lab.topology import LabTopology

STARTING, SETTLED = '"starting"', '"views-loaded"'
TOPOLOGY = ROOT / "containerlab" / "clos3.clab.yml"
TOPOLOGY_ISIS = TOPOLOGY.with_name("clos3-isis.clab.yml")


def clos(
    rate: str = "100M",
    mtu: int = 1500,
    hosts: dict[str, Any] | None = None,
    file: Path = TOPOLOGY,
) -> LabTopology:
    """4 spines, 8 leaves, a host per leaf; links between routers have the given rate.

    ``hosts``: more settings of the hosts, as in the topology file; ``file``: ``TOPOLOGY_ISIS`` for
    IS-IS, with IPv6.
    """
    document: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    for group in ("spine", "leaf"):
        document["topology"]["groups"][group]["labels"]["fared-lab.rate"] = rate
    document["topology"]["groups"]["host"] |= hosts or {}
    for link in document["topology"]["links"]:
        link["mtu"] = mtu
    return topology.from_document(document, file)


def doubled(whole: LabTopology, a: str, b: str, rate: str) -> LabTopology:
    """Replace the link between a and b by two links of the given rate and of the same MTU."""
    document = copy.deepcopy(whole.document)
    pair = {a, b}
    links = document["topology"]["links"]
    between = [{end.partition(":")[0] for end in link["endpoints"]} == pair for link in links]
    mtu = max(link.get("mtu", 1500) for link, found in zip(links, between, strict=True) if found)
    links[:] = [link for link, found in zip(links, between, strict=True) if not found]
    for number in ("-1", "-2"):
        ends = [f"{a}:{b}{number}", f"{b}:{a}{number}"]
        links.append({"endpoints": ends, "mtu": mtu, "vars": {"rate": rate}})
    return topology.from_document(document, whole.origin)


def settle(fabric: Fabric, timeout: float = 60.0) -> None:
    """Wait until all daemons have completed their start: fared loads its views once idle.

    Raises TimeoutError.
    """
    logs = {
        process.log
        for plan in fabric.plan.routers
        for process in fabric.node(plan.name).processes
        if process.name == "fared"
    }
    await_views(logs, timeout)


def await_views(logs: Iterable[Path], timeout: float = 60.0) -> None:
    """Wait until the daemons with these logs have loaded their views. Raises TimeoutError."""
    deadline = time.monotonic() + timeout
    left = set(logs)
    while left := {log for log in left if not _is_settled(log.read_text("utf-8"))}:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {SETTLED} in {sorted(map(str, left))}")
        time.sleep(0.2)


def _is_settled(log: str) -> bool:
    """Examine the last start only: a restarted daemon appends to the log."""
    return log.rfind(SETTLED) > log.rfind(STARTING)


def configure(fabric: Fabric, adaptive: dict[str, Any]) -> None:
    """Replace the section ``adaptive`` in the configuration of every daemon, and reload it."""
    adapt(fabric, (router.name for router in fabric.plan.routers), adaptive)
