"""The pages of live fabrics of five stages, as shipped: PoDs are areas, or levels.

A leaf knows its PoD, a super-spine its plane, and a spine, which is a border router, both.
"""

import json
from pathlib import Path

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from tests.page.browser import browser
from tests.page.fabrics import forwarded

DIRECTORY = Path(__file__).resolve().parents[2] / "containerlab"

ROLES = ("super-spine", "spine", "leaf")
CAPACITY = {
    "p1-L1": "Any two leaves have 400M.",
    "p1-S1": "Any two leaves have 400M.",
    "plane1-SS1": "Any two spines have 200M.",
}
WIDTH = "return fared.drawing.width"

pytestmark = [pytest.mark.netns, pytest.mark.slow]


@pytest.fixture(
    scope="module", params=["clos5", pytest.param("clos5-isis", marks=pytest.mark.soak)]
)
def fabric(request, tmp_path_factory):
    """24 daemons; ``api/test_fabric.py`` has levels in every run, simulated."""
    file = DIRECTORY / f"{request.param}.clab.yml"
    state = tmp_path_factory.mktemp(request.param) / "state"
    with Fabric.from_file(file, directory=state) as running:
        assert await_paths(running, 120.0) is not None
        yield running


def role_of(name):
    return "super-spine" if "SS" in name else "leaf" if "-L" in name else "spine"


def known_to(fabric, viewer):
    """The links between routers that a router knows of: those of its PoD, of its plane, or both."""
    pod, _, last = viewer.partition("-")
    number = pod[-1] if "SS" in last else last[-1]
    links = {frozenset((r.name, port.peer)) for r in fabric.plan.routers for port in r.ports}
    routers = {router.name for router in fabric.plan.routers}
    below = {ends for ends in links if all(name.startswith(f"{pod}-") for name in ends)}
    above = {ends for ends in links if any(f"plane{number}-" in name for name in ends)}
    found = {"leaf": below, "spine": below | above, "super-spine": above}[role_of(viewer)]
    return {ends for ends in found if ends <= routers}


@pytest.mark.parametrize(
    ("viewer", "frames"),
    [("p1-L1", []), ("p1-S1", ["plane", "pod", "another pod"]), ("plane1-SS1", [])],
)
def test_leaves_are_below_and_super_spines_on_top(fabric, tmp_path, viewer, frames):
    links = known_to(fabric, viewer)
    names = set().union(*links)
    with forwarded(fabric, viewer) as base, browser(base, tmp_path / "profile") as page:
        page.open()
        assert page.js("return tests.roles()") == {name: role_of(name) for name in names}
        drawn = page.js(
            "return [...fared.model.links.values()].map("
            "(link) => [fared.model.name(link.a), fared.model.name(link.b)])"
        )
        assert {frozenset(ends) for ends in drawn} == links
        ends = "spines" if "SS" in viewer else "leaves"
        assert f"Two {ends} show all paths" in page.text()
        page.until(f"return document.body.innerText.includes('{CAPACITY[viewer]}')", "capacity")
        # in rows, one for each tier
        places = page.js("return tests.places()")
        heights = [{places[n][1] for n in names if role_of(n) == role} for role in ROLES]
        rows = [height for (height,) in filter(None, heights)]
        assert rows == sorted(rows)
        assert len({(round(x), round(y)) for x, y in places.values()}) == len(names)
        assert not [name for name, (x, _) in places.items() if not 0 < x < page.js(WIDTH)]
        assert page.js("return [...fared.drawing.rows.keys()].every((y) => fared.drawing.named(y))")
        # the own PoD stands apart from the spines of others
        assert page.js("return fared.drawing.plan.groups.map((group) => group.label)") == frames
        if frames:
            own = [places[name][0] for name in names if name.startswith("p1-")]
            assert max(own) < places["p2-S1"][0]
            page.picture("page-spine.png")
        # two routers of the lowest row are a pair, with all paths between them
        pair = sorted(name for name, (_, y) in places.items() if y == rows[-1])[:2]
        for name in pair:
            page.click(name)
        page.until("return tests.rows('.paths > .scroll').length >= 4", "paths")
        page.check_quiet()


def test_every_router_shows_all_others_in_their_tiers(fabric):
    for router in fabric.plan.routers:
        document = json.loads(fabric.node(router.name).cli("show", "fabric", "--json"))
        found = {node["hostname"]: node["role"] for node in document["nodes"]}
        names = set().union(*known_to(fabric, router.name))
        assert found == {name: role_of(name) for name in names}
        assert document["missing"] == []
