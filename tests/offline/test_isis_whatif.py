"""The result of a "what if" over IS-IS is that of the same change on the routers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric
from fared.extensions.sim.levels import COMMON, clos3_isis, clos5_levels
from fared.protocols.igp import events as igp
from fared.protocols.isis.ids import LevelSet
from fared.router.events import To
from tests.offline.isis_fabrics import (
    FAMILIES,
    live,
    offline,
    offline_all,
    saved,
    started,
    system,
)
from tests.sim.test_isis_redistribution import OUTSIDE, announce, configure

QUARTER = f"{DEFAULT_CAPACITY * 8 / 4 / 1e9:g}G"


def flat() -> Fabric:
    return started(clos3_isis(3, 4))


def levels() -> Fabric:
    return started(clos5_levels(2, 2, 2, 2))


def fail(fabric: Fabric, a: str, b: str) -> None:
    fabric.network.set_link(a, b, up=False)


def fail_node(fabric: Fabric, name: str) -> None:
    """All links of a router fail, and so does the router."""
    for port in list(fabric.network.nodes[name].ports.values()):
        if port.peer is not None:
            fabric.network.set_link(name, port.peer.node, up=False)


def set_cost(fabric: Fabric, a: str, b: str, metric: int) -> None:
    port = fabric.network.find_port(a, b)
    port.settings["isis"] = replace(port.settings["isis"], metric=metric)
    fabric.network.input(a, To("isis", igp.LinkChanged(port.link(), port.settings["isis"])))


def overload(fabric: Fabric, name: str) -> None:
    settings = fabric.network.nodes[name].settings.protocols["isis"]
    assert settings is not None
    changed = replace(settings, overload=True)
    fabric.network.nodes[name].running.instances["isis"].engine.handle(
        igp.SettingsApplied(changed), fabric.network.now
    )
    fabric.network._settle(fabric.network.nodes[name])


IN_ONE_LEVEL: list[tuple[tuple[str, ...], Callable[[Fabric], None]]] = [
    (("--fail-link", "L1,S1"), lambda f: fail(f, "L1", "S1")),
    (
        ("--set-bandwidth", f"S1,L2={QUARTER}"),
        lambda f: f.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4),
    ),
    (("--set-cost", "L1,S1=25"), lambda f: set_cost(f, "L1", "S1", 25)),
    (("--overload", "S1"), lambda f: overload(f, "S1")),
]


@pytest.mark.parametrize(("args", "happen"), IN_ONE_LEVEL)
def test_in_one_level_seen_from_everywhere(args, happen):
    fabric = flat()
    document = saved(fabric, "L1")
    happen(fabric)
    fabric.network.run_until_quiet(120, quiet=4)
    for af in FAMILIES:
        found = offline_all(document, af, *args)
        for name in fabric.router_ids:
            assert found[system(fabric, name)] == live(fabric, name, af, addresses=False), name


def test_a_router_that_fails_takes_its_links_along():
    fabric = flat()
    document = saved(fabric, "L1")
    fail_node(fabric, "S2")
    fabric.network.run_until_quiet(120, quiet=4)
    for af in FAMILIES:
        assert offline(document, af, "--fail-node", "S2") == live(fabric, "L1", af)


def test_overload_in_a_topology_of_its_own():
    """RFC 5120 §4: each topology has its own bit, and the router sets all of them."""
    fabric = started(clos3_isis(3, 4, common=replace(COMMON, multi_topology=True)))
    document = saved(fabric, "L1")
    overload(fabric, "S1")
    fabric.network.run_until_quiet(120, quiet=4)
    for af in FAMILIES:
        assert offline(document, af, "--overload", "S1") == live(fabric, "L1", af)


ACROSS_LEVELS: list[tuple[tuple[str, ...], Callable[[Fabric], None]]] = [
    (("--fail-link", "p1.L1,p1.S1"), lambda f: fail(f, "p1.L1", "p1.S1")),
    (("--fail-link", "p1.S1,SS1.1"), lambda f: fail(f, "p1.S1", "SS1.1")),
    (
        ("--fail-link", "p1.S1,SS1.1", "--fail-link", "p1.S1,SS1.2"),
        lambda f: (fail(f, "p1.S1", "SS1.1"), fail(f, "p1.S1", "SS1.2")),
    ),
    (
        ("--set-bandwidth", f"p1.S1,p1.L1={QUARTER}"),
        lambda f: f.network.set_capacity("p1.S1", "p1.L1", DEFAULT_CAPACITY / 4),
    ),
    (("--set-cost", "p1.S1,p1.L2=40"), lambda f: set_cost(f, "p1.S1", "p1.L2", 40)),
    (("--overload", "p1.S1"), lambda f: overload(f, "p1.S1")),
    (
        ("--overload", "p1.S1", "--overload", "p1.S2"),
        lambda f: (overload(f, "p1.S1"), overload(f, "p1.S2")),
    ),
]


@pytest.mark.parametrize(("args", "happen"), ACROSS_LEVELS)
def test_across_levels_border_routers_leak_what_then_is(args, happen):
    """The database of a border router has both levels, so the leaking of its spines follows."""
    fabric = levels()
    document = saved(fabric, "p1.S1")
    happen(fabric)
    fabric.network.run_until_quiet(120, quiet=4)
    for af in FAMILIES:
        for name in ("p1.S1", "p1.L1", "p1.L2", "SS1.1", "SS1.2"):
            root = system(fabric, name)
            found = offline(document, af, "--root", root, *args, addresses=False)
            assert found == live(fabric, name, af, addresses=False), name


def test_a_prefix_that_a_border_router_redistributes_into_level_1_stays_leaked():
    fabric = clos5_levels(2, 1, 2, 1)
    configure(fabric, "p1.S1", LevelSet.ONE)
    announce(fabric, "p1.S1")
    document = saved(started(fabric), "p1.S1")
    for af, prefix in zip(FAMILIES, OUTSIDE, strict=True):
        before = offline(document, af, "--root", "SS1.1")
        after = offline(document, af, "--root", "SS1.1", "--fail-link", "p1.S1,p1.L1")
        assert after[str(prefix)] == before[str(prefix)]
