"""The page of a router of BGP: what neighbors announce for a destination, and who limits it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from fared.extensions.sim.fabric import clos3
from tests.api.test_bgp import seen
from tests.bgp.fabrics import clos5, slow, speakers, started
from tests.page.browser import browser
from tests.page.test_look import fits, served

AXE = (Path(__file__).parent / "axe.min.js").read_text()
GOAL, OTHER = "10.0.2.0/24", "10.0.3.0/24"
ALL_THERE = "return !document.querySelector('[aria-busy]')"

pytestmark = [pytest.mark.netns, pytest.mark.slow]


def router(fabric, name):
    """What serves the page of a simulated router."""
    return SimpleNamespace(context=lambda: seen(fabric, name))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """That of a leaf below four spines, of which S1 announces 25G of 400G toward L2."""
    fabric = started(clos3(4, 4, builder=speakers()))
    slow(fabric, "S1", "L2", 25.0)
    fabric.network.run_for(1.0)
    profile = tmp_path_factory.mktemp("profile")
    with served(router(fabric, "L1")) as base, browser(base, profile) as opened:
        yield opened


@pytest.fixture(autouse=True)
def fresh(page):
    page.size("desktop")
    page.scheme("light")
    page.open()
    page.until("return fared.panel.bgp", "the state of the router")
    yield
    page.check_quiet()


def choose(page, prefix):
    page.js("fared.choose({ prefix: arguments[0] })", prefix)
    page.until("return fared.drawing.selected.beyond", "what is announced")


def clipped(page):
    """The tables that are wider than the panel, and tabs."""
    return page.js(
        "return [...document.querySelectorAll('#shown .scroll, #tabs')]"
        ".filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText)"
    )


def test_of_a_destination_each_neighbor_has_its_link_and_what_it_announces(page):
    choose(page, GOAL)
    assert page.js("return tests.lead()") == "1.225T of 1.6T: S1 announces 25G of 400G."
    first, second, *_ = page.js("return tests.rows('.announced')")
    assert first.split("\t")[1:] == ["400G", "25G", "2.0%"]
    assert "limited by what it announces" in first
    assert "its link is the limit" in second
    assert page.text(".announced tr:nth-child(1) strong") == "25G"
    drawn = page.js(
        "return fared.drawing.selected.beyond.ways.map((way) =>"
        "[fared.model.name(way.id), Math.round(way.carries * 8e-9), way.limited])"
    )
    assert drawn == [["S1", 25, True], *([f"S{n}", 400, False] for n in (2, 3, 4))]
    choose(page, OTHER)
    assert "no neighbor announces less than its link" in page.js("return tests.lead()")


def test_the_line_of_a_neighbor_that_limits_has_the_color_of_what_is_reduced(page):
    """Half way between the name of the neighbor and the destination."""
    choose(page, GOAL)
    found = "return ['S1', 'S4'].map((name) => tests.above(name, ['reduced', 'accent']))"
    assert page.js(found) == [[True, False], [False, True]]


def test_an_own_link_lists_what_its_neighbor_announces_the_least_first(page):
    page.js("fared.choose({ link: tests.link('S1', 'L1') })")
    page.until("return tests.rows('[aria-label^=What]').length", "what S1 announces")
    first, second, *_ = page.js("return tests.rows('[aria-label^=What]')")
    assert first.split("\n")[0] == GOAL
    assert first.split("\t")[1:] == ["25G", "25G", "limit"]
    assert second.split("\t")[1:] == ["400G", "400G", ""]
    page.complaints()  # a simulated router measures no load


def test_the_overview_counts_the_routes_that_neighbors_limit(page):
    page.until("return document.querySelectorAll('.tile').length === 4", "the tiles")
    tiles = page.js("return tests.texts('.tile')")
    assert tiles[0] == "4 of 4\nsessions up here"
    assert tiles[-1] == "4\nroutes that neighbors limit"
    page.js("document.querySelector('.prefixes .go').click()")
    page.until("return tests.lead().startsWith('1.225T')", "its paths")


def test_any_prefix_or_address_is_found_by_typing_it(page):
    """In the field of routers, and in that of the table, which has the first of each kind only."""
    page.js("document.getElementById('name').focus()")
    page.keys("10.0.2.77", "ENTER")
    page.until("return tests.lead().startsWith('1.225T')", "the paths of its prefix")
    assert page.js("return fared.drawing.selected.beyond.name") == GOAL
    page.js("fared.panel.open('routes')")
    page.until("return tests.rows('#shown').length === 12", "all groups of routes")
    page.js("document.getElementById('filter').focus()")
    page.keys("10.0.4.1", "ENTER")
    page.until("return fared.drawing.selected.beyond?.name === '10.0.4.0/24'", "its paths")
    page.js("fared.choose({ prefix: '10.0.1.0/24' })")
    page.until("return tests.lead().includes('a network of this router')", "an own network")
    rows = page.js("return tests.rows('.announced')")
    assert [row.split("\t")[0] for row in rows] == ["S1", "S2", "S3", "S4"]


def test_what_paths_share_is_not_counted_twice(tmp_path):
    """Five stages: four superspines announce the same slow downlink of a spine of another pod."""
    fabric = started(clos5(speakers(), (2, 1, 2, 4)))
    slow(fabric, "p2.S1", "p2.L1", 25.0)
    fabric.network.run_for(1.0)
    with served(router(fabric, "p1.S1")) as base, browser(base, tmp_path) as page:
        page.open()
        page.until("return fared.panel.bgp", "the state of the router")
        choose(page, str(fabric.leaf_prefixes["p2.L1"]))
        lead = page.js("return tests.lead()")
        assert lead.startswith("25G of 1.6T: ")
        assert "which they share, carries 25G" in lead
        page.check_quiet()


@pytest.mark.parametrize(
    ("size", "scheme"), [("desktop", "light"), ("desktop", "dark"), ("phone", "light")]
)
def test_nothing_is_clipped_and_axe_finds_no_serious_fault(page, size, scheme):
    page.size(size)
    page.scheme(scheme)
    page.open()
    page.until("return fared.panel.bgp", "the state of the router")
    views = {
        "overview": "fared.choose({})",
        "routes": "fared.panel.open('routes')",
        "router": "fared.choose({ nodes: [tests.id('L1')] })",
        "prefix": "fared.choose({ prefix: '2001:db8:0:2::/64' })",
    }
    for name, code in views.items():
        page.js(code)
        page.until(ALL_THERE, "all is there")
        assert fits(page), name
        assert clipped(page) == [], name
        faults = page.faults(AXE)
        assert faults == [], (name, faults)
    if (size, scheme) == ("desktop", "light"):
        page.js("fared.choose({ prefix: '10.0.2.0/24' })")
        page.picture("page-bgp.png")
