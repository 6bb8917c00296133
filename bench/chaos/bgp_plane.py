"""What must be true of a plane of BGP: leaves of one AS each, all spines in one (RFC 7938 §5.2).

A leaf reaches another by each spine that has links to both; a spine reaches a leaf by its link
alone, since it accepts no path with its own AS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bench.chaos.checks import LINKS, NO_ANSWER, Plane
from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.expected import expected_shares, path_capacities
from fared.extensions.lab.fabric import RunningNode
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.waiting import interfaces, wait_until
from tests.peers.peers import fared, vtysh_json

BGP = "bgp"
ESTABLISHED = "sessions are established"
"""A check that fails while a link is down, as does that of its carrier."""
_UP = re.compile(r"^\w+ +BGP .* Established", re.MULTILINE)


class BgpPlane(Plane):
    """The part of a fabric that runs BGP."""

    def kernels(self, down: Collection[PortAddresses], seconds: float) -> float | None:
        """Wait until every kernel has all routes; return when, None: not in time."""
        wanted = self._wanted(down)

        def accepts(name: str, view: KernelView) -> bool:
            return not _wrong(view, wanted[name])

        try:
            return wait_until(self.views(self.plan.routers), accepts, seconds)
        except NO_ANSWER:
            return None

    def checks(
        self, down: Collection[PortAddresses], excused: Collection[str]
    ) -> tuple[tuple[str, Callable[[], object]], ...]:
        """The invariants, by name."""
        wanted = self._wanted(down)
        return (
            ("processes", self._alive),
            ("kernels", lambda: self._routed(wanted)),
            ("sessions", lambda: self._sessions(down)),
            ("plan", lambda: self._planned((*excused, ESTABLISHED, LINKS) if down else excused)),
            ("weights", lambda: self._weighted(down)),
            ("sysctls", self._set),
        )

    def _wanted(self, down: Collection[PortAddresses]) -> dict[str, dict[str, Any]]:
        """The interfaces by which each router reaches the prefixes of leaves."""
        lost = {frozenset((port.node, port.peer)) for port in down}
        return {
            router.name: {
                str(prefix): self._hops(router, leaf, lost)
                for leaf in self.plan.leaves
                if leaf != router
                for prefix in leaf.host_prefixes
            }
            for router in self.plan.routers
        }

    def _hops(
        self, router: NodePlan, leaf: NodePlan, lost: Collection[frozenset[str]]
    ) -> frozenset[str]:
        def linked(a: str, b: str) -> bool:
            return frozenset((a, b)) not in lost

        found = [port for port in router.fabric_ports if linked(port.node, port.peer)]
        if router in self.plan.leaves:
            return frozenset(port.name for port in found if linked(port.peer, leaf.name))
        return frozenset(port.name for port in found if port.peer == leaf.name)

    def _routed(self, wanted: Mapping[str, Mapping[str, frozenset[str]]]) -> None:
        for name, table in wanted.items():
            found = _wrong(self.view(name), table)
            assert not found, f"{name} {found}"

    def _sessions(self, down: Collection[PortAddresses]) -> None:
        lost = {frozenset((port.node, port.peer)) for port in down}
        for router in self.plan.routers:
            ports = router.fabric_ports
            expected = sum(frozenset((port.node, port.peer)) not in lost for port in ports)
            found = self._established(self.node(router.name))
            assert found == expected, f"{router.name}: {found} sessions of {expected}"

    @staticmethod
    def _established(node: RunningNode) -> int:
        match node.plan.node.kind:
            case "fared":
                neighbors = fared(node).request("show bgp-summary")["neighbors"]
                return sum(one["state"] == "Established" for one in neighbors)
            case "bird":
                return len(_UP.findall(node.cli("show", "protocols")))
            case _:
                peers = vtysh_json(node, "show bgp ipv4 unicast summary")["peers"]
                return sum(one["state"] == "Established" for one in peers.values())

    def shares(self, plan: AddressPlan, source: str, target: str) -> dict[str, float]:
        """The share of each port toward a router.

        Peers pass on what a leaf told them; fared tells the lesser of that and its own link.
        """

        def rate(port: PortAddresses) -> float | None:
            ends = [end for end in (port, self._far(port)) if self._kind(end) == "fared"]
            known = [self.fabric.rate(end) for end in ends]
            return min([one for one in known if one is not None], default=None)

        return expected_shares(path_capacities(plan, rate, source, target))


def _wrong(view: KernelView, table: Mapping[str, frozenset[str]]) -> str:
    """Say which route of a kernel has other interfaces; empty: all are as they should be."""
    routes = view.routes()
    for prefix, hops in table.items():
        held = frozenset(interfaces(routes.get(prefix, ())))
        if held != hops:
            return f"{prefix}: {sorted(held)}, not {sorted(hops)}"
    return ""
