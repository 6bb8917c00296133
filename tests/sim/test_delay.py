"""Two ways between sites, of which one is longer: next hops by delay, over OSPF and IS-IS."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from msgspec import UNSET, to_builtins
from msgspec.structs import replace
from rich.console import Console

from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.generate.sites import Sites
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.topology import from_document
from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.network import link_events
from fared.management.documents.declare import Answer
from fared.management.documents.paper import Paper
from fared.management.documents.views import explain, graph, path, routes
from fared.management.documents.views import fabric as fabric_view
from fared.router.events import RouterSettingsApplied
from tests.api.seen import seen_from
from tests.offline import fabrics, isis_fabrics
from tests.sim.configured import lab_fabric

SETTLED = 90.0


@pytest.fixture(scope="module", params=["ospf", "isis"])
def fabric(request) -> Fabric:
    """Sites of two borders, a spine and a leaf; the way over the second borders takes 8 ms."""
    generator = Sites(
        2, borders=2, spines=1, leaves=1, wan="200M", area="one", protocol=request.param
    )
    document = yaml.safe_load(text(generator))
    _, second, *_ = document["topology"]["links"]
    second["vars"]["delay"] = "8ms"
    fabric = lab_fabric(make_plan(from_document(document, Path("sites.yml"), "fared")))
    fabric.network.start_all()
    fabric.network.run_until_quiet(SETTLED)
    return fabric


def reload(fabric: Fabric, **rule: float | None) -> None:
    """All routers reload a configuration with another rule."""
    for name, node in fabric.network.nodes.items():
        node.settings = replace(node.settings, solver=replace(node.settings.solver, **rule))
        fabric.network.input(name, RouterSettingsApplied(node.settings))
    fabric.network.run_until_quiet(SETTLED)


def delay(fabric: Fabric, tail: str, head: str, seconds: float) -> None:
    """Configure another delay of a link, in one direction."""
    port = fabric.network.find_port(tail, head)
    port.settings = {
        proto: replace(settings, delay=seconds) for proto, settings in port.settings.items()
    }
    node = fabric.network.nodes[tail]
    fabric.network.input(tail, *link_events(node, port))
    fabric.network.run_until_quiet(SETTLED)


def borders(fabric: Fabric, site: int) -> set[str]:
    """The borders that the spine of a site uses toward the leaf of the other one."""
    prefix = fabric.leaf_prefixes[f"s{3 - site}-L1"]
    return set(invariants.forwarding(fabric, prefix)[f"s{site}-S1"])


def printed(document: Answer) -> str:
    """A document as people read it."""
    out = Console(width=120, file=io.StringIO())
    document.show(Paper(out, 0.0))
    return out.file.getvalue()


def test_the_nearer_way_between_sites_is_used_while_it_is_there_and_nearer(fabric):
    both = {"s1-B1", "s1-B2"}
    assert borders(fabric, 1) == both
    reload(fabric, delay_margin=0.0)
    assert (borders(fabric, 1), borders(fabric, 2)) == ({"s1-B2"}, {"s2-B2"})
    delay(fabric, "s1-B2", "s2-B2", 0.04)  # that of the other direction stays
    assert (borders(fabric, 1), borders(fabric, 2)) == ({"s1-B1"}, {"s2-B2"})
    fabric.network.set_link("s1-B1", "s2-B1", up=False)
    fabric.network.run_until_quiet(SETTLED)
    assert borders(fabric, 1) == {"s1-B2"}, "the last path is never lost because of its delay"
    fabric.network.set_link("s1-B1", "s2-B1", up=True)
    fabric.network.run_until_quiet(SETTLED)
    reload(fabric, delay_margin=None, delay_bound=0.03)
    assert (borders(fabric, 1), borders(fabric, 2)) == ({"s1-B1"}, {"s2-B1", "s2-B2"})
    reload(fabric, delay_bound=None)
    assert borders(fabric, 1) == both
    delay(fabric, "s1-B2", "s2-B2", 0.008)


def test_documents_show_delays_and_what_is_not_used_because_of_them(fabric):
    """Seconds in JSON, which has no field for a link without a delay."""
    prefix = str(fabric.leaf_prefixes["s2-L1"])
    context = seen_from(fabric, "s1-S1")
    (area,) = graph.topology(context).areas
    names = {node.id: node.hostname for node in area.nodes}
    assert {
        (names[link.from_], names[link.to]): link.delay
        for link in area.links
        if link.delay is not UNSET
    } == {
        ("s1-B1", "s2-B1"): 0.02,
        ("s2-B1", "s1-B1"): 0.02,
        ("s1-B2", "s2-B2"): 0.008,
        ("s2-B2", "s1-B2"): 0.008,
    }
    found = fabric_view.fabric(context)
    rows = {node.hostname: node.links for node in found.nodes}
    assert sorted(rows["s1-B1"].delay, key=str) == [0.02, None]
    assert "delay" not in to_builtins(rows["s1-S1"])
    assert (found.longest.delay, found.longest.head[:2]) == (0.02, "s2")
    whole = path.path(context, "s1-L1", "s2-L1")
    assert whole.delay == 0.02
    assert "longest delay" in printed(found)
    assert "delay 20ms" in printed(whole)
    reload(fabric, delay_margin=0.005)
    context = seen_from(fabric, "s1-S1")
    explained = explain.explain(context, prefix)
    (hop,) = explained.nexthops
    assert (hop.hostname, hop.delay) == ("s1-B2", 0.008)
    line = "delay 20ms, 12ms above the lowest; not used"
    assert line in printed(explained)
    weights = printed(routes.weights(context, prefix))
    assert line in weights
    assert "next hops by path delay: at most 5ms above the lowest" in weights
    assert path.path(context, "s1-L1", "s2-L1").delay == 0.008
    reload(fabric, delay_margin=None)


def test_a_saved_database_gives_the_same_next_hops(fabric):
    isis = fabric.network.nodes["s1-S1"].running.instances.keys() == {"isis"}
    document = (isis_fabrics if isis else fabrics).saved(fabric, "s1-S1")
    prefix = str(fabric.leaf_prefixes["s2-L1"])
    found = fabrics.run_spf(document, "--delay-bound", "10ms", "--explain", prefix)
    assert found.exit_code == 0, found.output
    assert "s1-B1: delay 20ms, 12ms above the lowest; not used" in " ".join(found.output.split())
    refused = fabrics.run_spf(document, "--delay-bound", "10 miles")
    assert refused.exit_code == 2
    assert "--delay-bound: expected a duration such as 5ms" in refused.output
