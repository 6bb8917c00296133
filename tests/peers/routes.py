"""The routes of each implementation, in its daemon and in its kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

import pytest

from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.waiting import wait_until
from tests.peers.oracle import Route
from tests.peers.peers import fared, gateways, vtysh_json
from tests.waiting import wait_for

_FRR_KINDS = {"N": "intra-area", "N IA": "inter-area", "N E1": "external-1", "N E2": "external-2"}
_BIRD_KINDS = {"I": "intra-area", "IA": "inter-area", "E1": "external-1", "E2": "external-2"}
_BIRD_ROUTE = re.compile(r"^(\S+/\d+) .*\* (\w+) \(\d+/(\d+)[/)]")
_BIRD_HOP = re.compile(r"^\tvia (\S+) on (\S+)")

Table = dict[str, Route]

_SHOWN = 5


def computed(node: RunningNode) -> Table:
    """The routes that the daemon of a router reports."""
    readers = {"fared": _of_fared, "frr": _of_frr, "bird": _of_bird}
    return readers[node.plan.node.kind](node)


def _of_fared(node: RunningNode) -> Table:
    return {
        row["prefix"]: Route(
            row["type"],
            row["metric"],
            frozenset((hop["interface"], hop["address"]) for hop in row["nexthops"]),
        )
        for row in fared(node).request("show routes")["routes"]
    }


def _of_frr(node: RunningNode) -> Table:
    return {
        prefix: Route(
            _FRR_KINDS[row["routeType"].strip()],
            row["cost"],
            frozenset((hop["via"], hop["ip"]) for hop in row["nexthops"] if "via" in hop),
        )
        for prefix, row in vtysh_json(node, "show ip ospf route").items()
        if not row["routeType"].startswith("R")  # routers, not networks
    }


def _of_bird(node: RunningNode) -> Table:
    table: Table = {}
    prefix = ""
    for line in node.cli("show", "route", "protocol", "fabric").splitlines():
        if head := _BIRD_ROUTE.match(line):
            prefix = head[1]
            table[prefix] = Route(_BIRD_KINDS[head[2]], int(head[3]), frozenset())
        elif hop := _BIRD_HOP.match(line):
            kind, metric, known = table[prefix]
            table[prefix] = Route(kind, metric, known | {(hop[2], hop[1])})
    return table


def await_computed(fabric: Fabric, wanted: Mapping[str, Table], seconds: float = 10.0) -> None:
    """Wait until every daemon has exactly the routes wanted: kind, metric and next hops."""
    for name, table in wanted.items():
        node = fabric.node(name)
        wait_for(
            lambda n=node, t=table: computed(n) == t,
            seconds,
            lambda n=node, t=table: f"{n.name}, (is, should): {_unlike(computed(n), t)}",
            pause=0.1,
        )


class Reached(Protocol):
    """An oracle's route to a prefix: its next hops, (interface, address)."""

    @property
    def gateways(self) -> frozenset[tuple[str, str | None]]: ...


def await_kernels(
    fabric: Fabric, wanted: Mapping[str, Mapping[str, Reached]], seconds: float
) -> float:
    """Wait until every kernel has exactly the next hops wanted to all prefixes of the fabric.

    A router's own prefixes are not compared; there must be no routes to unreachable prefixes.
    Returns the time of the last kernel, by ``time.monotonic()``.
    """
    routers = [fabric.plan.node(name) for name in wanted]
    networks = {
        str(port.address.network) for router in fabric.plan.routers for port in router.ports
    }
    everywhere = networks.union(*wanted.values())  # networks of links that are down too
    expected = {
        router.name: {
            prefix: route.gateways if (route := wanted[router.name].get(prefix)) else frozenset()
            for prefix in everywhere - own_prefixes(router)
        }
        for router in routers
    }

    def differing(name: str, view: KernelView) -> dict[str, tuple[object, object]]:
        held = {**view.routes(), **view.routes6()}
        return {
            prefix: (hops, should)
            for prefix, should in expected[name].items()
            if (hops := gateways(held.get(prefix, ()))) != should
        }

    views = fabric.views(routers)
    done = wait_until(views, lambda name, view: not differing(name, view), seconds)
    wrong = {} if done else {name: differing(name, view) for name, view in views.items()}
    assert done is not None, {
        f"{name}, {len(found)} (is, should)": list(found.items())[:_SHOWN]
        for name, found in wrong.items()
        if found
    }
    return done


def await_shares(
    view: KernelView, prefixes: list[str], wanted: Mapping[str, int], seconds: float = 30.0
) -> None:
    """Wait until a kernel's weights toward all prefixes have this proportion, within 1 %."""

    def accepts(_: str, view: KernelView) -> bool:
        for prefix in prefixes:
            weights = {hop.interface: hop.weight for hop in view.hops(prefix)}
            if weights.keys() != wanted.keys():
                return False
            unit = sum(weights.values()) / sum(wanted.values())
            if weights != pytest.approx({k: unit * n for k, n in wanted.items()}, rel=0.01):
                return False
        return True

    done = wait_until({"": view}, accepts, seconds)
    assert done is not None, [view.hops(prefix) for prefix in prefixes]


def own_prefixes(router: NodePlan) -> set[str]:
    """The networks and addresses of a router itself, of both families."""
    networks = {str(port.address.network) for port in router.ports}
    networks |= {str(port.address6.network) for port in router.ports if port.address6}
    addresses = {f"{port.address.ip}/32" for port in router.ports}
    return networks | addresses | {f"{router.router_id}/32", f"{router.loopback6}/128"}


def _unlike(held: Table, wanted: Table) -> dict[str, tuple[Route | None, Route | None]]:
    return {
        prefix: (held.get(prefix), wanted.get(prefix))
        for prefix in sorted(held.keys() | wanted.keys())
        if held.get(prefix) != wanted.get(prefix)
    }
