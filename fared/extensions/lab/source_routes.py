"""Routes of a host: what it sends from the address of a NIC leaves by that NIC.

A host with one link needs a default route only. With several, each NIC has a routing table of its
own with that NIC's default route, and a rule that selects it by the source address; what has no
source address yet leaves by the first NIC. Rules and tables have the number 1000 + N for NIC N.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.port import PortAddresses

_FIRST = 1000
"""Above the tables that iproute2 names, before the rule of the main table."""


def routed_by_source(plan: NodePlan) -> bool:
    """Whether a node is a host with several links."""
    return plan.node.is_host and len(plan.ports) > 1


def host_routes(plan: NodePlan) -> Iterator[str]:
    """Yield the idempotent ``ip`` commands of a host's routes; none for a router."""
    if not plan.node.is_host:
        return
    for number, port in enumerate(plan.ports, 1):
        tables = [""] if number == 1 else []
        if routed_by_source(plan):
            tables.append(f" table {_FIRST + number}")
        for table in tables:
            yield f"route replace default via {port.peer_address} dev {port.name}{table}"
            if port.peer_address6 is not None:
                yield f"route replace ::/0 via {port.peer_address6} dev {port.name}{table}"


def set_rules(netns: Netns, plan: NodePlan) -> None:
    """Give a host with several links its rules, in place of those of a former run."""
    if not routed_by_source(plan):
        return
    for family in ("-4", "-6"):
        known = json.loads(netns.ip("-j", family, "rule", "show") or "[]")
        mine = range(_FIRST + 1, _FIRST + len(plan.ports) + 1)
        former = [rule["priority"] for rule in known if rule["priority"] in mine]
        netns.batch("ip", _rules(plan, family, former), family)


def _rules(plan: NodePlan, family: str, former: list[int]) -> Iterator[str]:
    yield from (f"rule del priority {priority}" for priority in former)
    for number, port in enumerate(plan.ports, _FIRST + 1):
        source = _source(port, family)
        if source is not None:
            yield f"rule add from {source} priority {number} lookup {number}"


def _source(port: PortAddresses, family: str) -> str | None:
    if family == "-4":
        return str(port.address.ip)
    return None if port.address6 is None else str(port.address6.ip)
