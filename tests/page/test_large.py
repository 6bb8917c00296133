"""The page of a leaf among 64 spines and 512 leaves: first drawing, updates, memory."""

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.page.browser import browser, patience

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
    """The HTTP server and other documents are loaded before, as when a router is scraped."""
    for path in ("metrics", "api/v1/status", "api/v1/topology"):
        daemon.get(path)
    before = daemon.resident()
    with browser(daemon.base, tmp_path) as page:
        page.open()
        first = page.js("return fared.drawing.times.first") / 1000
        assert page.js("return [fared.model.nodes.size, fared.model.links.size]") == [576, 32768]
        assert page.js("return fared.drawing.looks.size") == 32768
        updates = []
        for number in range(10):
            page.js("fared.drawing.times.update = null")
            daemon.load(number, 100 + number, 0.05)
            code = "return fared.drawing.times.update"
            updates.append(page.until(code, "an update is drawn") / 1000)
        color = page.js("return tests.color('S1', 'L101')")
        assert color != page.js("return tests.color('S1', 'L102')")
        seen = daemon.resident() - before
        page.check_quiet()
    print(f"\nfirst drawing {first:.2f} s, updates {sorted(updates)[5]:.3f} s, {seen / 1e6:.1f} MB")
    assert first < FIRST * patience()
    assert sorted(updates)[len(updates) // 2] < UPDATE * patience()
    assert seen < MEMORY


def test_the_whole_is_painted_again_without_holding_up_the_page(daemon, tmp_path):
    """In slices: no task of the page takes long."""
    with browser(daemon.base, tmp_path) as page:
        page.open()
        page.js(
            "window.longest = 0; let before = performance.now();"
            "const tick = () => { const now = performance.now();"
            "window.longest = Math.max(window.longest, now - before);"
            "before = now; requestAnimationFrame(tick); }; requestAnimationFrame(tick);"
            "fared.drawing.times.whole = null; fared.drawing.all();"
        )
        began = time.monotonic()
        page.until("return fared.drawing.times.whole", "the whole is painted")
        assert time.monotonic() - began < 3 * patience()
        assert page.js("return window.longest") < 250 * patience()
