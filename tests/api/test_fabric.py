"""The whole fabric as a document, and what changes of it."""

import ipaddress
from itertools import product

import pytest
from msgspec.structs import replace

from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, FabricBuilder, clos3, clos5
from fared.extensions.sim.levels import COMMON, clos3_isis, clos5_levels
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, OspfBuilder
from fared.management.api.encode import encode
from fared.management.api.fabric_changes import changed_links, changed_nodes, is_other
from fared.management.documents import lost
from fared.management.documents.each import views_of
from fared.management.documents.link import Derated
from fared.management.documents.views import fabric_image
from fared.management.documents.views.fabric import fabric
from fared.management.documents.views.graph import topology
from fared.management.documents.views.host_links import oversubscription
from fared.management.documents.views.path import path
from fared.router.events import RouterSettingsApplied
from tests.api.seen import seen_from


def image_of(context, before=None):
    return fabric_image.image_of(fabric_image.sight(context, before), before)


def started(made):
    made.network.start_all()
    made.network.run_until_quiet(60)
    return made


@pytest.fixture(scope="module")
def four_by_eight():
    return started(clos3(4, 8, network=Network(seed=1)))


def nodes(context):
    return {node.hostname: node for node in fabric(context).nodes}


def marks(context):
    found = {node.id: node.hostname for node in fabric(context).nodes}
    return {
        (name, found[mark.to]): (mark.state, mark.reason)
        for name, node in nodes(context).items()
        for mark in node.links.marks
    }


def changes(old, new):
    assert not is_other(old, new)
    return [row for node in changed_nodes(old, new) for row in changed_links(old, new, node)]


def test_routers_have_their_tiers_and_links(four_by_eight):
    document = fabric(seen_from(four_by_eight, "L1"))
    assert document.clos
    assert document.hostname == "L1"
    found = {node.hostname: node for node in document.nodes}
    assert sorted(found) == [*(f"L{n}" for n in range(1, 9)), *(f"S{n}" for n in range(1, 5))]
    assert {name for name, node in found.items() if node.here} == {"L1"}
    for name, node in found.items():
        assert node.role == ("leaf" if name.startswith("L") else "spine")
        assert len(node.links.to) == (4 if name.startswith("L") else 8)
        assert all(c == pytest.approx(DEFAULT_CAPACITY) for c in node.links.capacity)
        assert node.links.marks == []


def test_a_link_at_a_quarter_is_reduced_and_the_only_change(four_by_eight):
    network = four_by_eight.network
    before = image_of(seen_from(four_by_eight, "L1"))
    network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    network.run_until_quiet(60)
    context = seen_from(four_by_eight, "L1")
    assert marks(context) == {("S1", "L2"): ("reduced", "25% of the 400G that are usual")}
    after = image_of(context, before)
    (row,) = changes(before, after)
    assert (row.state, row.capacity) == ("reduced", pytest.approx(DEFAULT_CAPACITY / 4))
    network.set_capacity("S1", "L2", DEFAULT_CAPACITY)
    network.run_until_quiet(60)
    (row,) = changes(after, image_of(seen_from(four_by_eight, "L1"), after))
    assert (row.state, row.reason) == (None, None)


def test_the_weakest_pair_of_leaves_is_known_to_a_router_that_is_neither(four_by_eight):
    """And has what ``path`` says of it."""
    network = four_by_eight.network
    whole = fabric(seen_from(four_by_eight, "L1")).weakest
    assert (whole.capacity, whole.alike, whole.pairs) == (4 * DEFAULT_CAPACITY, 56, 56)
    damaged = [("S1", "L6"), ("L3", "S2")]
    for ends in damaged:
        network.set_capacity(*ends, DEFAULT_CAPACITY / 4)
    network.run_until_quiet(60)
    context = seen_from(four_by_eight, "L1")
    pair = fabric(context).weakest
    assert {pair.tail, pair.head} == {"L3", "L6"}
    assert (pair.capacity, pair.usual) == (2.5 * DEFAULT_CAPACITY, 4 * DEFAULT_CAPACITY)
    assert pair.capacity == pytest.approx(path(context, pair.tail, pair.head).capacity)
    for ends in damaged:
        network.set_capacity(*ends, DEFAULT_CAPACITY)
    network.run_until_quiet(60)


def test_what_did_not_change_is_kept_and_costs_nothing(four_by_eight):
    before = image_of(seen_from(four_by_eight, "L1"))
    after = image_of(seen_from(four_by_eight, "L1"), before)
    assert after.seen.hosts is before.seen.hosts
    assert all(after.vertices[n] is before.vertices[n] for n in before.vertices)
    assert after.shape is before.shape
    assert changes(before, after) == []


def test_a_failed_link_is_lost_in_both_directions():
    made = started(clos3(3, 4, network=Network(seed=2)))
    before = image_of(seen_from(made, "L1"))
    made.network.set_link("S1", "L2", up=False)
    made.network.run_until_quiet(60)
    ids = {node.hostname: node.id for node in fabric(seen_from(made, "L1")).nodes}
    after = image_of(seen_from(made, "L1"), before)
    lost = {(ids["S1"], ids["L2"]), (ids["L2"], ids["S1"])}
    assert set(changes(before, after)) == lost
    assert nodes(seen_from(made, "L1"))["L2"].role == "leaf"


def test_own_links_say_why_they_are_derated(four_by_eight):
    context = seen_from(four_by_eight, "L1")
    before = image_of(context)
    context.derated = lambda name: (
        [Derated(by="link-health", share=0.5, at=0.0, reason="12 errors")] if name == "S2" else []
    )
    assert marks(context) == {
        ("L1", "S2"): ("sick", "S2 is derated to 50% by link-health: 12 errors")
    }
    (row,) = changes(before, image_of(context, before))
    assert row.state == "sick"


def test_a_link_that_another_router_drained_is_drained():
    made = started(clos3(2, 3, network=Network(seed=3)))
    made.network.set_share("L1", "S2", 0.0)
    made.network.run_until_quiet(60)
    assert marks(seen_from(made, "L2"))["L1", "S2"][0] == "drained"


@pytest.mark.parametrize(
    ("build", "transit", "why"),
    [
        (clos3, True, "paths cross S2 where there is no other way"),
        (clos3_isis, False, "paths may end at S2, not cross it"),
    ],
)
def test_a_drained_router_is_the_last_resort_of_ospf_and_bars_transit_in_isis(build, transit, why):
    made = started(build(2, 2, network=Network(seed=3)))
    settings = made.network.nodes["S2"].settings.drain()
    made.network.input("S2", RouterSettingsApplied(settings))
    made.network.run_until_quiet(60)
    context = seen_from(made, "L1")
    spine = nodes(context)["S2"]
    assert (spine.transit, spine.last_resort) == (transit, transit)
    assert {end: mark for end, mark in marks(context).items() if "S2" in end} == dict.fromkeys(
        [("L1", "S2"), ("L2", "S2"), ("S2", "L1"), ("S2", "L2")], ("drained", why)
    )


def test_five_stages_have_pods_and_planes():
    made = started(clos5(2, 2, 2, 2, network=Network(seed=1)))
    found = nodes(seen_from(made, "p1.L1"))
    assert {n.pod for name, n in found.items() if name.startswith("p1.")} == {found["p1.L1"].pod}
    assert {n.role for n in found.values()} == {"leaf", "spine", "super-spine"}
    assert len({n.plane for n in found.values() if n.plane}) == 2


@pytest.fixture(scope="module", params=[clos5_areas, clos5_levels])
def in_areas(request):
    """Five stages: each PoD is an area, or level 1; the planes are the backbone, or level 2."""
    return started(request.param(2, 3, 4, 2, network=Network(seed=1)))


def role_of(name):
    return "super-spine" if name.startswith("SS") else "leaf" if "L" in name else "spine"


@pytest.mark.parametrize(
    ("viewer", "leaves", "spines", "supers"),
    [("p1.L1", 3, 4, 0), ("p1.S1", 3, 5, 2), ("SS1.1", 0, 2, 2)],
)
def test_each_router_of_areas_sees_its_own_ones_the_right_way_up(
    in_areas, viewer, leaves, spines, supers
):
    """A spine sees its PoD and its plane; border routers advertise the most prefixes."""
    found = nodes(seen_from(in_areas, viewer))
    assert {name: node.role for name, node in found.items()} == {n: role_of(n) for n in found}
    counts = [sum(node.tier == tier for node in found.values()) for tier in range(3)]
    assert counts == [leaves, spines, supers]
    pods = {name for name, node in found.items() if node.pod is not None}
    assert pods == ({n for n in found if n.startswith("p1.")} if leaves and supers else set())


@pytest.mark.parametrize(
    ("viewer", "pairs", "capacity"), [("p1.L1", 6, 4), ("p1.S1", 6, 4), ("SS1.1", 2, 2)]
)
def test_pairs_of_leaves_are_those_of_the_own_areas(in_areas, viewer, pairs, capacity):
    """Leaves of another PoD are in no database here; of a plane alone, its spines are compared."""
    found = fabric(seen_from(in_areas, viewer)).weakest
    assert (found.pairs, found.alike, found.unknown) == (pairs, pairs, 0)
    assert found.capacity == pytest.approx(capacity * DEFAULT_CAPACITY)


@pytest.mark.parametrize("build", [clos5_areas, clos5_levels])
def test_a_spine_without_links_to_its_leaves_sees_what_it_had_the_right_way_up(build):
    """Its PoD stays in its database for a while: two parts without a link between them."""
    made = started(build(2, 3, 4, 2, network=Network(seed=1)))
    for leaf in ("p1.L1", "p1.L2", "p1.L3"):
        made.network.set_link("p1.S1", leaf, up=False)
    made.network.run_until_quiet(60)
    for viewer, count in (("p1.S1", 10), ("p1.L1", 7), ("p1.S2", 10), ("SS1.1", 4)):
        found = nodes(seen_from(made, viewer))
        assert {name: node.role for name, node in found.items() if node.links.to} == {
            name: role_of(name) for name, node in found.items() if node.links.to
        }
        assert sum(bool(node.links.to) for node in found.values()) == count


@pytest.mark.parametrize("failed", ["S2", "L3"])
def test_a_router_that_failed_keeps_its_place(failed):
    """Its LSA is in the databases of the others for up to an hour, and lists its links."""
    made = started(clos3(3, 5, network=Network(seed=2)))
    for spine, leaf in product(("S1", "S2", "S3"), ("L1", "L2", "L3", "L4", "L5")):
        made.network.set_link(spine, leaf, up=failed not in (spine, leaf))
    made.network.run_until_quiet(60)
    context = seen_from(made, "L1")
    found = nodes(context)
    assert len(found) == 8
    assert {name: node.role for name, node in found.items()} == {n: role_of(n) for n in found}
    assert {(near, state) for (near, _), (state, _) in marks(context).items()} == {
        (failed, "one-way")
    }


def test_a_router_that_becomes_a_border_router_changes_the_places():
    """The links are the same: it tells its other area, in its router LSA."""
    made = started(clos3(2, 3, network=Network(seed=1)))
    before = image_of(seen_from(made, "L1"))
    assert before.seen.heights == {}
    seen = replace(before.seen, heights=dict.fromkeys(before.vertices, 1))
    after = fabric_image.image_of(seen, before)
    assert after.shape is not before.shape
    assert after.shape.places == before.shape.places


def test_a_router_of_both_protocols_is_one():
    made = started(clos3_isis(2, 2, network=Network(seed=1), beside=[OspfBuilder()]))
    document = fabric(seen_from(made, "L1"))
    found = document.nodes
    assert document.weakest.pairs == 2
    assert sorted(node.hostname for node in found) == ["L1", "L2", "S1", "S2"]
    assert {len(node.ids) for node in found} == {2}
    assert {len(node.links.to) for node in found} == {2}


def test_the_document_has_no_numbers_that_json_lacks(four_by_eight):
    assert b"NaN" not in encode(fabric(seen_from(four_by_eight, "L1")))


@pytest.mark.parametrize("build", [clos3, clos3_isis], ids=["ospf", "isis"])
def test_a_lost_link_is_missing_for_whoever_looks_later_and_for_a_router_that_has_restarted(build):
    made = started(build(3, 4, network=Network(seed=1)))
    network = made.network
    assert fabric(seen_from(made, "L1")).missing == []
    network.set_link("S3", "L4", up=False)
    network.run_for(240.0)
    context = seen_from(made, "L1")
    (found,) = fabric(context).missing
    assert (found.name, found.links, found.alone) == ("S3-L4", 1, None)
    assert 200.0 < context.wall - found.since <= 240.0
    assert lost.why(found) == "it was there; all 3 siblings of L4 have it"
    (area,) = topology(context).areas
    assert [each.name for each in area.lost] == ["S3-L4"]
    network.kill("L1")
    network.run_for(5.0)
    network.start("L1")
    network.run_until_quiet(network.now + 60.0)
    (found,) = fabric(seen_from(made, "L1")).missing
    assert (found.name, found.links, found.since) == ("S3-L4", None, None)
    assert lost.why(found) == "all 3 siblings of L4 have it"
    network.set_link("S3", "L4", up=True)
    network.run_until_quiet(network.now + 60.0)
    assert fabric(seen_from(made, "L1")).missing == []


def test_a_router_that_is_gone_is_missing_with_all_its_links():
    made = started(clos3(3, 4, network=Network(seed=1)))
    made.network.kill("L4")
    made.network.run_for(100.0)
    missing = fabric(seen_from(made, "L1")).missing
    assert [each.name for each in missing] == ["S1-L4", "S2-L4", "S3-L4"]
    assert {each.end(each.alone) for each in missing} == {"L4"}


@pytest.mark.parametrize("protocol", [OspfBuilder(), IsisBuilder(COMMON)], ids=["ospf", "isis"])
def test_networks_of_two_routers_are_drawn_as_links(protocol):
    """The network type that nobody sets is broadcast: each cable has a node of its own."""
    builder = FabricBuilder(Network(seed=1), protocols=(protocol,))
    spines, leaves = ["S1", "S2", "S3"], ["L1", "L2", "L3", "L4"]
    builder.routers([*spines, *leaves])
    for leaf in leaves:
        builder.hosts(leaf)
        for spine in spines:
            builder.lan(leaf, spine)
    made = builder.fabric
    made.network.start_all()
    made.network.run_for(120.0)
    document = fabric(seen_from(made, "L1"))
    roles = {made.name_of(node_of(entry)): entry.role for entry in document.nodes}
    assert roles == {**dict.fromkeys(spines, "spine"), **dict.fromkeys(leaves, "leaf")}
    before = image_of(seen_from(made, "L1"))
    made.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    made.network.run_for(60.0)
    context = seen_from(made, "L1")
    (row,) = changes(before, image_of(context, before))
    assert (row.state, row.capacity) == ("reduced", pytest.approx(DEFAULT_CAPACITY / 4))
    made.network.set_link("S2", "L3", up=False)
    made.network.run_for(60.0)
    (missing,) = fabric(seen_from(made, "L1")).missing
    assert (missing.links, missing.have, missing.siblings) == (1, 3, 3)


def node_of(entry) -> int:
    """The router id of an entry; a system id of the simulator is the router id."""
    if ":" in entry.id or entry.id.count(".") != 2:
        return int(ipaddress.IPv4Address(entry.id))
    return int(entry.id.replace(".", ""), 16)


def test_a_leaf_compares_its_links_to_hosts_with_those_to_routers(four_by_eight):
    """Links that are down carry nothing; where hosts have links of unknown capacity, nothing."""
    context = seen_from(four_by_eight, "L1")
    [census] = [views.census(context) for _, views in views_of(context)]
    assert oversubscription(context, [census]) is None
    host = next(number for number, link in context.links.items() if link.name == "host")
    census.capacities.append((host, "host", 4 * DEFAULT_CAPACITY))
    found = oversubscription(context, [census, census])
    assert (found.hosts, found.routers, found.ratio) == (4 * DEFAULT_CAPACITY,) * 2 + (1.0,)
    context.links[next(n for n, link in context.links.items() if link.name == "S1")].up = False
    assert oversubscription(context, [census]).ratio == pytest.approx(4 / 3)
