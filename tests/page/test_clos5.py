"""The page of a live fabric of five stages in one area."""

import re
from pathlib import Path

import pytest

from fared.extensions.lab import topology
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from tests.page.browser import browser
from tests.page.fabrics import forwarded

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "containerlab" / "clos5.clab.yml"

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.soak]


@pytest.fixture
def fabric(tmp_path):
    """The fabric of the file, all of it area 0: otherwise a leaf knows its pod only."""
    file = tmp_path / FILE.name
    file.write_text(re.sub(r"area: \"?\d+\"?", "area: 0", FILE.read_text()))
    source = topology.load(file)
    with Fabric.from_topology(source, directory=tmp_path / "state") as running:
        assert await_paths(running, 120.0) is not None
        yield running


def test_pods_and_planes_are_drawn_with_all_links(fabric, tmp_path):
    with forwarded(fabric, "p1-L1") as base, browser(base, tmp_path / "profile") as page:
        page.open()
        roles = page.js("return tests.roles()")
        for name, role in roles.items():
            assert role == ("super-spine" if "SS" in name else "leaf" if "-L" in name else "spine")
        assert len(roles) == 24
        links = [(r.name, port.peer) for r in fabric.plan.routers for port in r.ports]
        between = {frozenset(ends) for ends in links if set(ends) <= roles.keys()}
        drawn = page.js(
            "return [...fared.model.links.values()].map("
            "(link) => [fared.model.name(link.a), fared.model.name(link.b)])"
        )
        assert {frozenset(ends) for ends in drawn} == between
        assert page.js("return fared.drawing.looks.size") == len(between)
        labels = page.js("return fared.drawing.plan.groups.map((group) => group.label)")
        assert {"pod 1", "pod 2", "plane 1", "plane 4"} <= set(labels)
        page.check_quiet()
