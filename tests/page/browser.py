"""A real browser: Debian's chromium with its driver, and what it did."""

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.waiting import wait_for

_HELPERS = Path(__file__).with_name("helpers.js").read_text()
_PICTURES = Path(__file__).resolve().parents[2] / "docs"
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
_SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
)


class Page:
    """The page of a router in a browser."""

    def __init__(self, driver, base: str) -> None:
        self.driver = driver
        self.base = base

    def js(self, code: str, *arguments):
        return self.driver.execute_script(code, *arguments)

    def open(self) -> None:
        """Load it, and wait until the fabric is drawn."""
        self.driver.get(self.base)
        wait_for(
            lambda: self.js("return document.getElementById('stage')?.dataset.drawn") == "true",
            60,
            "the fabric is drawn",
        )
        self.js(_HELPERS)

    def size(self, name: str) -> None:
        width, height = SIZES[name]
        values = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", values | {"mobile": name == "phone"}
        )

    def scheme(self, name: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": name}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def text(self, selector: str = "#shown") -> str:
        return self.js("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def until(self, code: str, what: str, seconds: float = 20.0):
        """Wait for a truthy value of JavaScript; return it."""
        found = []

        def seen():
            found[:] = [self.js(code)]
            return found[0]

        wait_for(seen, seconds, lambda: f"{what}; the panel has {self.text()!r}")
        return found[0]

    def click(self, *names: str) -> None:
        """Click a router, or the middle of a link between two, where it is drawn."""
        x, y = self.js("return tests.at(...arguments)", *names)
        for kind in ("mousePressed", "mouseReleased"):
            values = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", values)

    def keys(self, *keys: str) -> None:
        """Press keys by name, or type text."""
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            active = self.driver.switch_to.active_element
            active.send_keys(getattr(Keys, key, key))

    def picture(self, name: str) -> None:
        """Take a picture; with UPDATE_PICTURES=1 it is the one of the documents."""
        self.until("return !document.querySelector('[aria-busy]')", "all is there")
        self.js("document.activeElement?.blur()")
        text = self.driver.get_screenshot_as_png()
        assert len(text) > 20_000
        if os.environ.get("UPDATE_PICTURES"):
            (_PICTURES / name).write_bytes(text)
        assert (_PICTURES / name).is_file()

    def requests(self) -> list[str]:
        """The addresses that were requested since the last call."""
        events = (json.loads(e["message"])["message"] for e in self.driver.get_log("performance"))
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
            and event["params"].get("documentURL", "").startswith(self.base)
        ]

    def complaints(self) -> list[str]:
        """Errors on the console since the last call."""
        found = self.driver.get_log("browser")
        return [entry["message"] for entry in found if entry["level"] == "SEVERE"]

    def check_quiet(self) -> None:
        """No error on the console, no request to elsewhere."""
        complaints = self.complaints()
        assert complaints == [], complaints
        ours = urlsplit(self.base).netloc
        found = {urlsplit(url).netloc for url in self.requests()}
        assert found <= {ours}, found

    def faults(self, axe: str) -> list[str]:
        """Serious faults that axe finds."""
        self.js(axe)
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then((found) => done(found.violations))"
        )
        return [
            f"{fault['id']}: {fault['help']}: {node['html']}"
            for fault in found
            if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"]
        ]


@contextmanager
def browser(base: str, directory):
    """Start a browser with a profile of its own."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("no browser: apt install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for switch in (*_SWITCHES, f"--user-data-dir={directory}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(60)
    try:
        page = Page(driver, base)
        page.size("desktop")
        yield page
    finally:
        driver.quit()


def patience() -> float:
    """A factor for limits of time on a busy machine; 1 on one that is not."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
