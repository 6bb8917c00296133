"""The page of a leaf of a live fabric, in a browser."""

import json
import re
from pathlib import Path

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from fared.extensions.offline.cli.what_if import MOST_ROUTES
from tests.page.browser import browser, patience
from tests.page.fabrics import forwarded
from tests.waiting import seconds_until, wait_for

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "containerlab" / "clos3.clab.yml"
AXE = (Path(__file__).parent / "axe.min.js").read_text()
QUARTER = 25e6 / 8

pytestmark = [pytest.mark.netns, pytest.mark.slow]


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    directory = tmp_path_factory.mktemp("clos3")
    with Fabric.from_file(FILE, directory=directory / "state") as running:
        assert await_paths(running, 60.0) is not None
        yield running


@pytest.fixture(scope="module")
def page(fabric, tmp_path_factory):
    """One browser for all tests of the module."""
    profile = tmp_path_factory.mktemp("profile")
    with forwarded(fabric, "L1") as base, browser(base, profile) as opened:
        yield opened


@pytest.fixture(autouse=True)
def at_rest(fabric, page):
    page.scheme("light")
    page.size("desktop")
    page.open()
    yield
    fabric.shape("S1", "L2", 100e6 / 8)
    page.until("return fared.model.unusual().length === 0", "the fabric is whole again")
    page.check_quiet()


def test_all_routers_and_links_are_drawn_in_their_tiers(page):
    roles, heights = page.js("return [tests.roles(), tests.heights()]")
    spines = {name for name, role in roles.items() if role == "spine"}
    leaves = {name for name, role in roles.items() if role == "leaf"}
    assert spines == {"S1", "S2", "S3", "S4"}
    assert spines | leaves == roles.keys() == heights.keys()
    drawn = page.js("return [fared.model.links.size, fared.drawing.looks.size]")
    assert drawn == [len(spines) * len(leaves)] * 2
    assert len(set(heights.values())) == 2
    assert heights["S1"] < heights["L1"]
    assert page.js("return tests.pixel('S1', 'L1')")[3] > 0
    # the state of this router comes by itself
    facts = "document.querySelector('#facts').innerText"
    page.until(f"return {facts}.includes('ready')", "the state of the router")


def test_names_are_drawn_where_they_have_room(page):
    named = "return ['S1', 'L1'].map((name) => fared.drawing.named(tests.place(name).y))"
    page.size("phone")
    page.open()
    assert page.js(named) == [True, True]
    leaves = "fared.drawing.rows.get(fared.drawing.row(tests.place('L1').y))"
    assert page.js(f"{leaves}.widest = {leaves}.room; {named}") == [True, False]


def test_a_link_at_a_quarter_changes_color_and_shares_within_two_seconds(fabric, page):
    page.click("L1")
    page.click("L2")
    equal = "const rows = tests.rows('.paths > .scroll'); return rows.length === 8 && rows.every("
    page.until(equal + "(row) => row.includes('25%'))", "eight equal shares")
    usual = page.js("return tests.color('S1', 'L2')")
    other = page.js("return tests.pixel('S3', 'L2')")

    def changed():
        color, rows = page.js("return [tests.color('S1', 'L2'), tests.rows('.paths > .scroll')]")
        return color != usual and any("7.7%" in row for row in rows)

    taken = []
    while not taken or (taken[-1] >= 2 and len(taken) < 4):  # the machine may be busy for a moment
        fabric.shape("S1", "L2", 4 * QUARTER)
        page.until(equal + "(row) => row.includes('25%'))", "eight equal shares")
        fabric.shape("S1", "L2", QUARTER)
        taken.append(seconds_until(changed, 20, "the link and the shares change"))
    assert min(taken) < 2 * patience()
    assert "reduced" in page.text("#legend")
    # it is the weakest of all pairs, also seen from a router that is neither end
    page.js("fared.choose({})")
    page.until("return document.querySelector('.overview')", "the overview")
    least = "document.querySelector('.tile:last-child').innerText"
    page.until(f"return {least}.startsWith('325M')", "the weakest pair")
    assert "325M of 400M; most have 400M." in page.text()
    page.js("fared.choose({ nodes: ['L1', 'L2'].map((name) => tests.id(name)) })")
    # one sentence, and no link is called the limit: all are full at once
    page.until("return tests.lead().includes('325M of 400M')", "what the pair has")
    assert "325M of 400M: S1 > L2 carries 25M of 100M." in page.text()
    assert "limit" not in page.text(".paths > .scroll").split()
    assert page.js("return tests.color('S1', 'L2')") == page.js(
        "return fared.drawing.style.reduced"
    )
    assert page.js("return tests.pixel('S3', 'L2')") == other


def test_a_link_shows_why_it_is_slow_and_what_if_equals_the_offline_solver(fabric, page, tmp_path):
    fabric.shape("S1", "L2", QUARTER)
    page.until("return fared.model.unusual().length === 1", "the link is reduced")
    page.click("S1", "L2")
    page.until("return document.querySelector('#shown h2')?.innerText.includes('S1')", "the link")
    assert "25% of the 100M that are usual" in page.text()
    page.js("document.querySelectorAll('.ask')[0].click()")
    page.until("return document.querySelector('.question table')", "an answer", 60)
    ids = page.js("return ['S1', 'L2'].map((name) => fared.model.find(name))")
    told = page.js("return fared.panel.answer")
    leaf = fabric.node("L1")
    file = tmp_path / "db.json"
    file.write_text(leaf.cli("show", "lsdb", "--json"))
    for root in told["roots"][:3]:
        command = ["spf", "--lsdb", str(file), "--root", root["root"], "--diff", "--json"]
        expected = json.loads(leaf.cli(*command, "--fail-link", ",".join(ids)))
        assert root["changed"] == len(expected["routes"])
        assert root["routes"] == expected["routes"][:MOST_ROUTES]
    shown = page.text(".question")
    assert all(root["hostname"] in shown for root in told["roots"])
    # the conclusion first; routes that change alike are one row
    first, *_ = page.text(".question").splitlines()
    assert first.startswith("If S1-L2 failed, no route would be lost")
    assert re.search(r"; at worst \w+ would keep \S+ of \S+ toward a destination\.$", first)
    rows = page.js("return tests.rows('.question')")
    assert any(re.match(r"\d+ routes\tS1 25% to none, others 25% to 33%", row) for row in rows), (
        rows
    )
    assert told["changes"] == [f"fail-link {','.join(ids)}"]


def test_the_last_changes_show_the_routes_that_they_changed(fabric, page):
    fabric.shape("S1", "L2", QUARTER)
    page.until("return fared.model.unusual().length === 1", "the link is reduced")
    page.js("fared.panel.open('changes')")
    page.until("return document.querySelector('.change')", "a change")
    assert "S1 > L2: 100M to 25M" in page.text(".change")
    page.js("document.querySelector('.change').click()")
    page.until("return tests.rows('.routes').length", "its routes")
    assert "10.0.2.0/24" in page.text(".routes")
    newest = page.text(".change")
    fabric.shape("S2", "L3", QUARTER)
    try:
        wait_for(lambda: page.text(".change") != newest, 20.0, "a later change is the first")
        assert "10.0.2.0/24" in page.js("return tests.rows('.routes').join()")
    finally:
        fabric.shape("S2", "L3", 4 * QUARTER)
    faults = page.faults(AXE)
    assert faults == [], faults


def test_the_load_of_an_own_link_is_the_measured_one(page):
    page.click("S1", "L1")
    page.until("return document.querySelector('.plot canvas')", "the chart")
    assert "Measured load of S1" in page.text(".chart")
    page.js("document.querySelector('.chart details').open = true")
    assert page.js("return tests.rows('.chart').length") > 0


def facts(page):
    page.until("return tests.texts('#facts').join().includes('ready')", "the status")
    return page.text("#facts").split("\n")


def test_without_a_fault_the_overview_says_so_in_one_sentence(page):
    page.until("return !document.querySelector('[aria-busy]')", "all is there")
    page.until("return document.querySelector('.tile')?.innerText.includes('of 4')", "the status")
    whole = "no link is down, drained, or slower than its siblings"
    assert facts(page) == ["ready", "12 routers", "32 links", whole]
    text = page.text()
    assert "No link is down, drained, or slower than its siblings." in text
    tiles = page.js("return [...document.querySelectorAll('.tile')].map((one) => one.innerText)")
    assert tiles == [
        "4 of 4\nadjacencies up here",
        "0\nlinks are missing",
        "0\nlinks are unusual",
        "400M\nbetween any two leaves",
    ]
    assert "Any two leaves have 400M." in text
    assert "of all 56 pairs of leaves that L1 knows; each direction is one." in text
    assert "Two leaves show all paths between them." in text
    assert "announced in steps of 25%" in page.text("#legend")
    # of a fabric too large to compare all pairs, what this router has computed anyway
    page.js("fared.model.weakest = null; fared.panel.renew()")
    own = "L1 has 400M to each other leaf."
    page.until(f"return document.querySelector('#shown').innerText.includes('{own}')", "own")
    assert "from this router only: two others may have less" in page.text()


def test_a_failed_link_is_missing_for_whoever_opens_the_page_later_and_is_back_live(fabric, page):
    fabric.fail("S3", "L5")
    fabric.fail("S1", "L1")
    try:
        page.until("return fared.model.missing().links.length === 2", "the links are missing")
        page.until("return fared.model.unusual().every((link) => link.missing)", "since when")
        page.open()
        page.until("return fared.model.missing().links.length === 2", "they are in the document")
        page.until(
            "return document.querySelector('.tile.bad')?.innerText.includes('3 of 4')", "status"
        )
        assert facts(page) == ["ready", "12 routers", "30 links", "2 missing"]
        text = page.text()
        assert "Down at L1: 1 of 4 links" in text
        (down,) = page.js("return tests.rows('.overview [aria-label^=Down]')")
        assert re.match(r"S1\t\d+ s\tcarrier lost$", down), down
        rows = page.js("return tests.rows('.overview [aria-label^=Missing]')")
        why = r"missing\tgone since \d\d:\d\d:\d\d; all (3|7) siblings of [SL]\d have it"
        assert re.match(rf"S1-L1\t{why}", rows[0])
        assert re.match(rf"S3-L5\t{why}", rows[1])
        pair = r"The weakest pair is L[15] > L[15]: 200M of 400M; most have 400M\."
        assert re.search(pair, text), text
        assert "2 have this capacity" in text
        assert "S3-L5 gone" in page.js("return tests.rows('.overview [aria-label^=Last]').join()")
        assert page.js("return fared.drawing.plan.places.size") == 12
        page.js("fared.choose({ link: tests.link('S3', 'L5') })")
        assert "gone since" in page.text()
        assert "What if" not in page.text(), "it cannot fail again"
        page.js("fared.choose({})")
        page.picture("page-missing.png")
        page.js("fared.choose({ nodes: [tests.id('L2'), tests.id('L5')] })")
        page.until("return tests.lead().includes('of')", "what the pair has")
        assert "300M of 400M: S3-L5 is missing." in page.text()
    finally:
        fabric.heal("S3", "L5")
        fabric.heal("S1", "L1")
    page.until("return fared.model.odd.size === 0", "they are back, without a reload")


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_router_that_left_is_drawn_gray_where_it_was(fabric, page, kill):
    """One that was killed is in the database for up to an hour: its links are one way."""
    place = page.js("return tests.place('S3')")
    fabric.stop_node("S3", kill=kill)
    try:
        page.until("return fared.model.missing().routers.length === 1", "S3 is missing", 60)
        page.open()
        page.until("return fared.model.missing().routers.length === 1", "the document has it")
        assert page.js("return tests.place('S3')") == pytest.approx(place)
        assert facts(page)[1:] == ["11 routers", "1 missing", "24 links", "8 missing"]
        page.until("return !document.querySelector('[aria-busy]')", "all is there")
        (row, *others) = page.js("return tests.rows('.overview [aria-label^=Missing]')")
        assert re.match(r"S3\tmissing\tall of its 8 links are gone since \d\d:\d\d:\d\d", row)
        assert ("what it said last is still known" in row) == kill
        assert others == []
        if not kill:
            page.scheme("dark")
            page.picture("page-router.png")
        page.click("S3")
        page.until("return document.querySelector('#shown h2')?.innerText === 'S3'", "the router")
        assert len(page.js("return tests.rows('#shown')")) == 8
    finally:
        fabric.start_node("S3")
    page.until(
        "return fared.model.odd.size === 0 && fared.model.links.size === 32", "S3 is back", 60
    )


def test_tables_sort_numbers_as_numbers(page):
    page.js("fared.panel.open('routers')")
    head = (
        "[...document.querySelectorAll('#shown th button')].find((one) => one.innerText === 'Id')"
    )
    page.js(f"{head}.click()")
    ids = page.js("return tests.rows('#shown').map((row) => row.split('\\t')[1])")
    assert ids == sorted(ids, key=lambda text: [int(part) for part in text.split(".")])
    page.js(f"{head}.click()")
    assert page.js("return tests.rows('#shown').map((row) => row.split('\\t')[1])") == ids[::-1]
    assert page.js(f"return {head}.parentElement.getAttribute('aria-sort')") == "descending"


def test_the_documents_are_a_list_with_links(page):
    page.driver.get(page.base + "page/documents.html")
    page.until("return document.querySelectorAll('.documents a').length > 10", "the list")
    assert {"status", "fabric", "convergence"} <= set(page.text(".documents").split())
    assert page.faults(AXE) == []
    page.open()
