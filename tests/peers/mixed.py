"""Fabrics of several implementations under link failures, compared with the oracle."""

from __future__ import annotations

import random
import time

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.port import PortAddresses
from tests.peers import oracle
from tests.peers.agreement import Part, await_agreement, read_by_bird, read_by_fared
from tests.peers.conftest import Peers
from tests.peers.peers import tell
from tests.peers.routes import await_computed, await_kernels
from tests.waiting import wait_for

_SOAK = (pytest.mark.soak, pytest.mark.timeout(900))
FAILURES = [(1, 3), *(pytest.param(seed, 20, marks=_SOAK) for seed in (3, 4, 5))]
"""Seeds, and how many failures: a short run always, long ones when asked for."""

_STEP_DEADLINE = 40.0
_BIRD_DEADLINE = 30.0
_MESSAGES = {"Hello", "DB Description", "LS Request", "LS Update", "LS Acknowledge"}


def await_as_it_should_be(fabric: Fabric, seconds: float) -> float:
    """Wait for the right routes in all routers, and for databases equal and decoded alike.

    Returns the time at which all kernels were right.
    """
    done = await_routes(fabric, None, seconds)
    await_agreement(fabric, seconds)
    await_read_alike(fabric, seconds)
    return done


def await_routes(
    fabric: Fabric, failed: PortAddresses | None, seconds: float = _STEP_DEADLINE
) -> float:
    """Wait until all kernels and daemons have the oracle's routes; return when the kernels did.

    ``failed`` is the port that was set down, if any. BIRD at the other end, without carrier,
    advertises its address there as a host route; other implementations do not.
    """
    if failed is None:
        wanted = oracle.routes(fabric.plan)
    else:
        far = _port(fabric, failed.peer, failed.peer_port)
        hosts = [far] if _kind(fabric, far.node) == "bird" else []
        wanted = oracle.routes(fabric.plan, [frozenset((failed.node, failed.peer))], hosts)
    for leaf in fabric.plan.leaves:  # one failure isolates no router
        for prefix in (f"{leaf.router_id}/32", *map(str, leaf.host_prefixes)):
            assert all(prefix in table for table in wanted.values()), prefix
    done = await_kernels(fabric, wanted, seconds)
    await_computed(fabric, wanted, seconds)
    return done


def await_read_alike(fabric: Fabric, seconds: float) -> None:
    """Wait until each BIRD decodes the LSAs of its area as a fared of that area does."""
    for plan in fabric.plan.routers:
        if plan.node.kind == "bird":
            peer = next(p.peer for p in plan.fabric_ports if _kind(fabric, p.peer) == "fared")
            bird, ours = fabric.node(plan.name), fabric.node(peer)
            wait_for(
                lambda b=bird, o=ours: _read_alike(read_by_bird(b), read_by_fared(o)),
                seconds,
                f"{plan.name} reads its database as {peer} does",
            )


_Reading = dict[str, dict[str, set[Part]]]


def _read_alike(bird: _Reading, fared: _Reading) -> bool:
    return all(fared[area] == routers for area, routers in bird.items())


def fail_and_heal(fabric: Fabric, seed: int, failures: int) -> None:
    """Set links down at one end, and up again, and wait each time for all routes.

    Links and ends are chosen at random. If one end is BIRD, the link is restored after BIRD has
    withdrawn it from its router LSA (see ``test_bird_beside_frr``).
    """
    ports = [port for router in fabric.plan.routers for port in router.fabric_ports]
    for port in random.Random(seed).choices(ports, k=failures):
        begun = time.monotonic()
        fabric.fail(port.node, port.peer)
        failed = await_routes(fabric, port) - begun
        await_bird_tells(fabric, port)
        begun = time.monotonic()
        fabric.heal(port.node, port.peer)
        healed = await_routes(fabric, None) - begun
        tell(f"{port.node}-{port.peer}: kernels right {failed:.2f} s, healed {healed:.2f} s")


def await_bird_tells(fabric: Fabric, port: PortAddresses) -> None:
    """Wait until BIRD at either end has withdrawn the link from its router LSA.

    BIRD originates at most once in five seconds (MinLSInterval), at a tick of one second.
    """
    for one, other in ((port.node, port.peer), (port.peer, port.node)):
        if _kind(fabric, one) == "bird":
            own, lost = (str(fabric.plan.node(name).router_id) for name in (one, other))
            wait_for(
                lambda n=one, o=own, m=lost: m not in _neighbors(fabric, n, o),
                _BIRD_DEADLINE,
                f"{one} tells that {other} is gone",
            )


def _neighbors(fabric: Fabric, name: str, router_id: str) -> set[str]:
    areas = read_by_bird(fabric.node(name)).values()
    parts = (part for routers in areas for part in routers.get(router_id, ()))
    return {part.target for part in parts if part.word == "router"}


def _port(fabric: Fabric, node: str, name: str) -> PortAddresses:
    return next(port for port in fabric.plan.node(node).fabric_ports if port.name == name)


def _kind(fabric: Fabric, name: str) -> str:
    return fabric.plan.node(name).node.kind


def judge_every_link(peers: Peers) -> None:
    """Check all packets of fared on every link, since the start, with Wireshark."""
    peers.recordings.stop()
    ours = [router for router in peers.fabric.plan.routers if router.node.kind == "fared"]
    assert peers.recordings.names() == sorted(router.name for router in ours)
    verdict = peers.recordings.judge(*peers.recordings.names())
    assert set(verdict.links) == {port.index for router in ours for port in router.fabric_ports}
    assert set(verdict.kinds) == _MESSAGES
    assert verdict.flawed == []
    assert verdict.bad_lsas == []
    tell(
        f"{sum(verdict.links.values())} packets on {len(verdict.links)} ports, {verdict.lsas} LSAs"
    )
