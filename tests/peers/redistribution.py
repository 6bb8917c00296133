"""Redistributed prefixes, and queries of FRR, BIRD and the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from fared.extensions.lab.fabric import Fabric, RunningNode
from tests.peers.peers import vtysh_json


def redistribute(node: Any, sources: Mapping[str, Any], protocol: str = "ospf") -> None:
    """Write the sources to the node's file, and reload it."""
    file = node.directory / "fared.yaml"
    document = yaml.safe_load(file.read_text())
    document[protocol]["redistribute"] = dict(sources)
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    said = node.cli("config", "reload")
    assert "refused" not in said


def installed(fabric: Fabric, name: str, prefix: str) -> set[str]:
    return {hop.interface for hop in fabric.view(name).hops(prefix)}


def frr_route(node: RunningNode, prefix: str) -> dict[str, Any]:
    return dict(vtysh_json(node, "show ip ospf route").get(prefix, {}))


def bird_route(node: RunningNode, prefix: str) -> str:
    return str(node.cli(f"show route {prefix} all"))
