"""The least fabric with two paths: spines S1 and S2, leaves L1 and L2, hosts h1 and h2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml

from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.labels import PREFIX

ROUTERS = ("S1", "S2", "L1", "L2")
WAYS = (("h1", "h2"), ("h2", "h1"))
"""Traffic in both directions."""


def topology(
    name: str,
    *,
    protocol: str = "ospf",
    rate: str | None = None,
    more: Mapping[str, str] | None = None,
    **kinds: str,
) -> str:
    """Return its file. ``rate`` is that of the routers' ports; ``kinds``: routers of other makes.

    ``more``: labels of all nodes, without the prefix of the lab's.

    ``topology("mixed", S1="frr")`` has a spine of FRR.
    """
    told = {"protocol": protocol, **(more or {})}
    defaults = {f"{PREFIX}{key}": value for key, value in told.items()}
    labels = {} if rate is None else {"labels": {"fared-lab.rate": rate}}
    routers = {router: {"kind": kinds.get(router, "fared"), **labels} for router in ROUTERS}
    cables = (("S1", "L1"), ("S1", "L2"), ("S2", "L1"), ("S2", "L2"), ("L1", "h1"), ("L2", "h2"))
    document = {
        "defaults": {"labels": defaults},
        "nodes": {**routers, "h1": {}, "h2": {}},
        "links": [{"endpoints": [f"{a}:{b}", f"{b}:{a}"]} for a, b in cables],
    }
    return yaml.safe_dump({"name": name, "topology": document}, sort_keys=False)


def patient(text: str) -> str:
    """The same topology with a dead interval of 12 s: a daemon starts within it on any machine."""
    document = yaml.safe_load(text)
    defaults = document["topology"].setdefault("defaults", {})
    defaults.setdefault("labels", {})["fared-lab.hello-interval"] = 3
    return yaml.safe_dump(document, sort_keys=False)


def rewrite_config(node: RunningNode, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the configuration file of a router; its daemon does not notice yet."""
    file = node.directory / "fared.yaml"
    config = yaml.safe_load(file.read_text())
    change(config)
    file.write_text(yaml.safe_dump(config))


def help_restarts(fabric: Fabric, protocol: str) -> None:
    """Let all routers restart gracefully, and help each other."""
    restart = {"enabled": True, "helper": True}
    for plan in fabric.plan.routers:
        node = fabric.node(plan.name)
        rewrite_config(node, lambda config: config[protocol].update({"graceful-restart": restart}))
        node.cli("config", "reload")
