"""The page of a leaf among 64 spines and 512 leaves: first drawing, updates, memory."""

import os
import random
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.page.browser import Page, browser, patience

ROOT = Path(__file__).resolve().parents[2]
FIRST = 3.0
UPDATE = 0.1
MEMORY = 20e6

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.alone]


class Daemon:
    """The process, and what it takes."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.page.large_daemon"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes)
        self.base = f"http://127.0.0.1:{int(self.process.stdout.readline())}/"

    def load(self, spine: int, leaf: int, part: float) -> None:
        self.process.stdin.write(f"{spine} {leaf} {part}\n")
        self.process.stdin.flush()

    def resident(self) -> int:
        """Bytes of memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.base + path, timeout=30) as answer:
            return answer.read()


@pytest.fixture
def daemon():
    made = Daemon()
    yield made
    made.process.stdin.close()
    made.process.wait(10)
    made.process.stdout.close()


def test_a_large_fabric_is_drawn_and_updated_in_time_and_costs_little_memory(daemon, tmp_path):
    """The HTTP server and other documents are loaded before, as when a router is scraped.

    A machine that has other things to do for a moment gets another chance.
    """
    for path in ("metrics", "api/v1/status", "api/v1/topology"):
        daemon.get(path)
    before = daemon.resident()
    with browser(daemon.base, tmp_path) as page:
        first = least(lambda: first_drawing(page), FIRST)
        assert page.js("return [fared.model.nodes.size, fared.model.links.size]") == [576, 32768]
        assert page.js("return fared.drawing.looks.size") == 32768
        update = least(lambda: usual_update(daemon, page), UPDATE)
        color = page.js("return tests.color('S1', 'L101')")
        assert color != page.js("return tests.color('S1', 'L102')")
        seen = daemon.resident() - before
        page.check_quiet()
    print(f"\nfirst drawing {first:.2f} s, updates {update:.3f} s, {seen / 1e6:.1f} MB")
    assert first < FIRST * patience()
    assert update < UPDATE * patience()
    assert seen < MEMORY


def least(measured: Callable[[], float], limit: float) -> float:
    """Measure until it is below the limit, five times at most."""
    found = [measured()]
    while min(found) >= limit and len(found) < 5:
        found.append(measured())
    return min(found)


def first_drawing(page: Page) -> float:
    page.open()
    return page.js("return fared.drawing.times.first") / 1000


def usual_update(daemon: Daemon, page: Page) -> float:
    updates = []
    for number in range(10):
        page.js("fared.drawing.times.update = null")
        part = 0.05 + random.random() / 100
        daemon.load(number, 100 + number, part)
        updates.append(page.until("return fared.drawing.times.update", "an update is drawn") / 1000)
    return statistics.median(updates)


def test_the_whole_is_painted_again_without_holding_up_the_page(daemon, tmp_path):
    """In slices of ten milliseconds, one a frame; by the page's clock a stroke takes three here."""
    with browser(daemon.base, tmp_path) as page:
        page.open()
        page.js(
            "let now = 0; performance.now = () => now;"
            "window.strokes = [0]; const frame = window.requestAnimationFrame;"
            "window.requestAnimationFrame = (f) => frame((t) => { strokes.push(0); f(t); });"
            "const stroke = fared.drawing.stroke; fared.drawing.stroke = function (...given) {"
            "now += 3; strokes[strokes.length - 1] += 1; stroke.apply(this, given); };"
            "fared.drawing.times.whole = null; fared.drawing.all();"
        )
        page.until("return fared.drawing.times.whole", "the whole is painted", 60)
        strokes = page.js("return strokes")
    assert max(strokes) <= 4
    assert sum(strokes) >= 32768 / 64
