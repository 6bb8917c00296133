"""How the page looks, in which sizes, and whether everybody can use it: axe, keyboard, pictures."""

import asyncio
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from bench.router import fabrics
from fared.core.ids import BACKBONE, NodeId, format_node
from fared.core.units import MIN_CAPACITY
from fared.management.documents.fabric import DrawnBranch, DrawnJob, DrawnTree
from fared.management.documents.link import Derated
from fared.router.lost import LostLink
from tests.api.watched import TedRouter, serving
from tests.page.browser import browser

AXE = (Path(__file__).parent / "axe.min.js").read_text()
PODS, LEAVES, PLANES, SUPERS = 3, 4, 4, 2

pytestmark = [pytest.mark.netns, pytest.mark.slow]


def name_of(node: int) -> str:
    """p1-L2, p1-S3, plane4-SS1: three pods of four leaves and four spines."""
    if node < fabrics.spine(0):
        number = node - fabrics.leaf(0)
        return f"p{number // LEAVES + 1}-L{number % LEAVES + 1}"
    number = node - fabrics.spine(0)
    if number < fabrics.SUPERS:
        return f"p{number // PLANES + 1}-S{number % PLANES + 1}"
    plane, top = divmod(number - fabrics.SUPERS, SUPERS)
    return f"plane{plane + 1}-SS{top + 1}"


def without(blocks, *lost):
    """The blocks without the links between pairs of routers."""
    for ends in lost:
        for node, far in (ends, ends[::-1]):
            rest = [NodeId(end) for end in blocks[node].neighbors.tolist() if end != far]
            blocks[node] = fabrics.make_block(node, rest, np.full(len(rest), fabrics.RATE))
    return blocks


class Loaded(TedRouter):
    """Five stages under load, with a slow, a drained, a sick and a missing link."""

    def __init__(self) -> None:
        blocks = fabrics.pods(PODS, LEAVES, PLANES, SUPERS)
        named = {name_of(node): node for node in blocks}
        lost = named["p2-S3"], named["p2-L4"]
        super().__init__(without(blocks, lost), fabrics.leaf(0), name_of)
        self.lose(*lost)
        self.named = named
        random = Random(4)
        for node, block in list(self.blocks.items()):
            for end in block.neighbors.tolist():
                busy = {name_of(node)[:2], name_of(end)[:2]} & {"p1", "p3"}
                load = random.uniform(0.45, 0.97) if busy else random.uniform(0.02, 0.35)
                self.load(node, NodeId(end), fabrics.RATE * (1 - load), fabrics.RATE)
        reduced = (("p3-S2", "p3-L3"), 0.25), (("p2-S4", "p2-L2"), 1e-9), (("p1-L1", "p1-S3"), 0.5)
        for ends, part in reduced:
            a, b = (self.named[name] for name in ends)
            rate = max(fabrics.RATE * part, MIN_CAPACITY)
            self.load(a, b, rate / 2, rate)
            self.load(b, a, rate / 2, rate)
        self.solve()
        names = ("p2-S1", "p2-L1", "p1-L2", "plane1-SS1", "p1-S1")
        root, *others, top, far = (format_node(self.named[name]) for name in names)
        nodes = [(top, None), (root, top), (far, top)]
        branches = [DrawnBranch(router=node, parent=parent) for node, parent in nodes]
        tree = DrawnTree(root=top, weight=2, branches=branches)
        self.job = DrawnJob(name="train", leaves=sorted(others), trees=[tree])

    def lose(self, a, b):
        """It is known that a link went three minutes ago."""
        names = name_of(a), name_of(b)
        since = time.monotonic() - 180
        low, high = sorted((a, b))
        link = LostLink("ospf", BACKBONE, low, high, links=1, since=since, names=names)
        self.router.changes.lost.lose(link, network=False)

    def context(self):
        found = super().context()
        why = Derated(
            by="link-health",
            share=0.5,
            at=found.wall,
            reason="212 of 90,000 packets were damaged",
        )
        found.plugged = {"ina": SimpleNamespace(drawn=lambda: [self.job])}
        found.derated = lambda interface: [why] if interface == "swp3" else []
        return found


@contextmanager
def served(router):
    """Serve the page of a router from a thread; yield its address."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    ports = []

    async def serve() -> None:
        async with serving(router.context) as port:
            ports.append(port)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield f"http://127.0.0.1:{ports[0]}/"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    profile = tmp_path_factory.mktemp("profile")
    with served(Loaded()) as base, browser(base, profile) as opened:
        yield opened


@pytest.fixture(autouse=True)
def fresh(page):
    page.size("desktop")
    page.scheme("light")
    yield
    page.check_quiet()


def select(page, *names):
    nodes = "arguments[0].map((name) => fared.model.find(name))"
    page.js(f"fared.choose({{ nodes: {nodes} }})", list(names))


def fits(page):
    """Nothing is wider than the window."""
    width = "return [document.documentElement.scrollWidth, window.innerWidth]"
    found, window = page.js(width)
    return found <= window


def test_the_page_in_the_light(page):
    page.open()
    states = page.js("return fared.model.unusual().map((link) => link.state)")
    assert states == ["lost", "sick", "drained", "reduced"]
    page.until("return !document.querySelector('[aria-busy]')", "all is there")
    assert "212 of 90,000 packets" in page.text()
    assert fits(page)
    assert (
        page.js("return [...fared.drawing.rows.keys()].map((y) => fared.drawing.named(y))")
        == [True] * 3
    )
    page.picture("page-light.png")


def test_all_paths_in_the_dark(page):
    page.scheme("dark")
    page.open()
    select(page, "p1-L1", "p3-L3")
    page.until("return tests.rows('.paths > .scroll').length > 8", "the paths")
    assert fits(page)
    page.picture("page-dark.png")


def test_a_router_on_a_phone(page):
    page.size("phone")
    page.open()
    select(page, "p3-L3")
    assert "Neighbors" in page.text()
    assert fits(page)
    page.picture("page-phone.png")


@pytest.mark.parametrize(
    ("size", "scheme"), [("desktop", "light"), ("desktop", "dark"), ("phone", "light")]
)
def test_axe_finds_no_serious_fault(page, size, scheme):
    """In each view, of what the page shows at that time."""
    page.size(size)
    page.scheme(scheme)
    page.open()
    link = "fared.choose({ link: tests.link('p3-S2', 'p3-L3') })"
    views = {
        "overview": "fared.choose({})",
        "router": "fared.choose({ nodes: [tests.id('p1-L1')] })",
        "pair": "fared.choose({ nodes: [tests.id('p1-L1'), tests.id('p3-L3')] })",
        "link": link,
        **{tab: f"fared.panel.open('{tab}')" for tab in ("changes", "routers", "links", "jobs")},
    }
    for name, code in views.items():
        page.js(code)
        page.until("return !document.querySelector('[aria-busy]')", "all is there")
        faults = page.faults(AXE)
        assert faults == [], (name, faults)


def test_the_keyboard_reaches_a_router_and_the_paths_to_another(page):
    page.open()
    keys = page.keys
    page.js("document.getElementById('tab-overview').focus()")
    keys("ARROW_RIGHT", "ARROW_RIGHT")
    assert page.js("return document.activeElement.id") == "tab-routers"
    keys("TAB", "TAB")
    assert page.js("return document.activeElement.id") == "filter"
    keys("p3-L3", "ENTER")
    page.until("return document.querySelector('#shown h2')?.innerText === 'p3-L3'", "the router")
    page.js("document.getElementById('to').focus()")
    keys("p1-L2")
    keys("ENTER")
    page.until("return tests.rows('.paths > .scroll').length > 8", "the paths")
    keys("ESCAPE")
    page.until("return fared.panel.selected.nodes.length === 0", "nothing is selected")


def test_what_is_drawn_is_in_a_table(page):
    """All routers and links, by name."""
    page.open()
    page.js("fared.panel.open('routers')")
    rows = page.js("return tests.rows('#shown')")
    assert len(rows) == page.js("return fared.model.nodes.size")
    page.js("fared.panel.open('links')")
    rows = page.js("return tests.rows('#shown')")
    assert len(rows) == page.js("return fared.model.links.size")
    assert "p2-S3" in rows[0]
    assert "gone since" in rows[0]
    assert "p3-S2" in rows[3]
    assert "25% of the 400G" in rows[3]


@pytest.mark.parametrize("name", ["plane2-SS1", "p2-S3", "p3-L2"])
def test_a_router_that_left_has_its_place_by_its_neighbors(page, name):
    """For whoever opens the page later: in its tier, pod and plane, and among its siblings."""
    page.open()
    code = "tests.whenGone(arguments[0]).then(arguments[1])"
    found = page.driver.execute_async_script(code, name)
    assert found["guessed"] == found["known"]
    assert found["missing"] == found["had"]
    assert found["same"]


def test_of_parallel_links_one_may_be_missing(page):
    """The pair is not as usual, though both ends list each other."""
    page.open()
    found = page.js(
        "const link = tests.link('p3-S1', 'p3-L1'); const usual = link.state;"
        "link.missing = { links: 1, since: 0, have: null };"
        "const found = [usual, link.present, link.state, link.reason]; link.missing = null;"
        "return found"
    )
    assert found[:3] == [None, True, "reduced"]
    assert found[3].startswith("gone since ")


def test_a_chart_of_one_moment_shows_the_minute_before(page):
    page.open()
    code = "import('/page/chart.js').then((chart) => arguments[1](chart.span(arguments[0])))"
    span = page.driver.execute_async_script
    assert span(code, [1000]) == [940, 1000]
    assert span(code, [400, 1000]) == [400, 1000]


def test_nothing_is_called_whole_before_a_router_is_known(page):
    page.open()
    page.js("fared.model.read({ nodes: [], missing: [], jobs: [], clos: false })")
    page.until("return !document.querySelector('#facts').innerText.includes('71')", "the facts")
    assert "no link is down" not in page.text("body").lower()
    assert "The fabric is not known yet." in page.text()


def test_trees_of_aggregation_are_drawn(page):
    page.open()
    page.js("fared.panel.open('jobs')")
    page.js("document.querySelector('#shown .go').click()")
    drawn = page.js("return fared.drawing.selected.tree.map((link) => link.key)")
    assert len(drawn) == 4
    assert "train" in page.text()


def test_names_of_neighbors_are_text(tmp_path):
    """A hostname cannot become part of the page."""
    evil = "<img src=x onerror=window.stolen=1>"
    router = TedRouter(fabrics.fabric(2, 3), fabrics.leaf(0), lambda node: f"{evil}{node & 255}")
    with served(router) as base, browser(base, tmp_path) as page:
        page.open()
        for tab in ("routers", "links", "overview"):
            page.js("fared.panel.open(arguments[0])", tab)
            assert page.js("return document.querySelectorAll('img').length") == 0
        page.js("fared.choose({ nodes: [...fared.model.nodes.keys()].slice(0, 1) })")
        assert evil in page.text("h2")
        assert page.js("return window.stolen") is None
        page.check_quiet()


def test_what_is_beside_the_tiers_is_drawn_near_its_neighbors(tmp_path):
    """A host behind a leaf below it; a link between two leaves as an arc over their row."""
    beside = NodeId((10 << 24) + 99)
    ends = {beside: fabrics.leaf(1), fabrics.leaf(2): fabrics.leaf(3)}
    blocks = fabrics.fabric(4, 8)
    ends |= {far: node for node, far in ends.items()}
    for node, far in ends.items():
        known = [] if node == beside else blocks[node].neighbors.tolist()
        links = [NodeId(end) for end in (*known, far)]
        blocks[node] = fabrics.make_block(node, links, np.full(len(links), fabrics.RATE))
    names = {fabrics.leaf(n): f"L{n + 1}" for n in range(8)} | {beside: "host"}
    router = TedRouter(blocks, fabrics.leaf(0), lambda n: names.get(n, f"S{n & 255}"))
    with served(router) as base, browser(base, tmp_path) as page:
        page.open()
        assert page.js("return tests.roles()")["host"] is None
        places = page.js("return tests.places()")
        assert len({places[f"L{n}"][1] for n in range(1, 9)}) == 1
        assert places["host"][1] > places["L2"][1] > places["S1"][1]
        assert places["host"][0] == pytest.approx(places["L2"][0])
        (x, y), (end, _) = places["L3"], places["L4"]
        near = "return fared.model.title(fared.drawing.pointer.linkNear(...arguments, 4))"
        depth = min(42, (end - x) * 0.35) * 0.75
        assert page.js(near, (x + end) / 2, y - depth) == "L3-L4"
        page.check_quiet()


def test_links_are_listed_by_name_and_numbers_in_it(tmp_path):
    """The upper end first: not as ids sort as text, where 10.255.0.10 is before 10.255.0.2."""
    router = TedRouter(
        fabrics.fabric(2, 12),
        fabrics.leaf(0),
        lambda node: f"{'L' if node >> 16 & 255 == 254 else 'S'}{node & 0xFFFF}",
    )
    with served(router) as base, browser(base, tmp_path) as page:
        page.open()
        page.js("fared.panel.open('links')")
        rows = page.js("return tests.rows('#shown').map((row) => row.split(/\\t|\\n/)[0].trim())")
        assert rows == [f"S{s}-L{n}" for s in (1, 2) for n in range(1, 13)]
        page.js("fared.panel.open('routers')")
        rows = page.js("return tests.rows('#shown').map((row) => row.split(/\\t|\\n/)[0].trim())")
        assert rows == ["S1", "S2", *(f"L{n}" for n in range(1, 13))]


def test_a_ring_is_laid_out_by_force(tmp_path):
    """No tiers: all routers have a place of their own inside the drawing."""
    size = 9
    ends = {n: [fabrics.leaf((n + step) % size) for step in (1, -1)] for n in range(size)}
    blocks = {
        fabrics.leaf(n): fabrics.make_block(fabrics.leaf(n), far, np.full(2, fabrics.RATE))
        for n, far in ends.items()
    }
    router = TedRouter(blocks, fabrics.leaf(0), lambda node: f"r{node & 255}")
    with served(router) as base, browser(base, tmp_path) as page:
        page.open()
        assert set(page.js("return Object.values(tests.roles())")) == {None}
        width, height, places = page.js(
            "const { width, height, plan } = fared.drawing;"
            "return [width, height, [...plan.places.values()].map(({ x, y }) => [x, y])]"
        )
        assert len({(round(x), round(y)) for x, y in places}) == size
        assert all(0 < x < width and 0 < y < height for x, y in places)
        page.click("r2")
        page.until("return tests.rows('#shown').length === 2", "two neighbors")
        page.check_quiet()
