"""HTTP: metrics, health, the same documents as the control socket, and a page."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import asynccontextmanager

import pytest

from fared.daemon.people.http import HttpPort, Served
from fared.management.api.durations import Observed
from fared.management.api.http import ROOT, App
from fared.management.api.metrics import Metrics, counter, gauge
from fared.management.api.respond import Responder
from fared.management.documents.errors import CommandError
from tests.api.documents import ANSWERS
from tests.api.documents.routing import ROUTES
from tests.api.served import served


def families():
    """A few."""
    yield gauge("ready", "Whether", 1)
    yield counter(
        "packets",
        "How many",
        {("ospf", "received", "hello"): 12},
        ("proto", "direction", "type"),
    )
    yield gauge("link_capacity_bytes_per_second", "Capacity", {("swp1",): 5e10}, ("interface",))
    yield gauge("routes", "None yet", {}, ("proto",))


def answers(command, args):
    if command == "show log":
        raise RuntimeError("boom")
    if command == "explain" and "prefix" not in args:
        raise CommandError("bad-argument", "which prefix?")
    if command == "show spf":
        return {"format": "fared-spf/1", "args": args}
    return ANSWERS[command]


@asynccontextmanager
async def serving(*, ready=True, dispatcher=answers, on_error=None):
    app = App(
        Responder(dispatcher, on_error), Metrics(families, "0.2.0", Observed()), lambda: ready
    )
    async with served(app) as port:
        yield f"http://127.0.0.1:{port}"


def fetch(url, method="GET", seconds=10):
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


async def get(url, method="GET"):
    return await asyncio.to_thread(fetch, url, method)


async def test_metrics_in_the_exposition_format():
    """Labelled, with base units; families without values are there too."""
    async with serving() as base:
        status, headers, text = await get(base + "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain")
    assert 'fared_build_info{version="0.2.0"} 1.0' in text
    assert 'fared_packets_total{direction="received",proto="ospf",type="hello"} 12.0' in text
    assert 'fared_link_capacity_bytes_per_second{interface="swp1"} 5e+10' in text
    assert "# TYPE fared_routes gauge" in text
    assert "process_resident_memory_bytes" in text


def test_histograms_count_what_happened():
    """Durations of computations and of each convergence stage."""
    observed = Observed()
    observed.spf.observe(0.002)
    observed.convergence["total"].observe(0.03)
    text = Metrics(families, "0.2.0", observed).render().decode()
    assert 'fared_spf_duration_seconds_bucket{le="0.0025"} 1.0' in text
    assert "fared_spf_duration_seconds_count 1.0" in text
    assert 'fared_convergence_seconds_count{stage="total"} 1.0' in text


async def test_health_and_readiness():
    """Alive from the start, ready only when the kernel has the routes."""
    async with serving(ready=False) as base:
        assert (await get(base + "/healthz"))[0] == 200
        status, _, text = await get(base + "/readyz")
        assert (status, json.loads(text)) == (503, {"ready": False})
    async with serving() as base:
        assert (await get(base + "/readyz"))[0] == 200


async def test_the_documents_of_the_control_socket():
    """The same documents, with query parameters as arguments."""
    async with serving() as base:
        status, headers, text = await get(base + "/api/v1/routes")
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.loads(text) == ROUTES
        _, _, text = await get(base + "/api/v1/spf?log=true&x=10.0.0.0%2F8")
        assert json.loads(text)["args"] == {"log": True, "x": "10.0.0.0/8"}
        _, _, text = await get(base + "/api/v1/")
        assert "/api/v1/neighbors" in json.loads(text)
        _, _, text = await get(base + "/api/v1/isis/spf?log=true")
        assert json.loads(text)["args"] == {"log": True, "proto": "isis"}


@pytest.mark.parametrize(
    ("path", "method", "status", "code"),
    [
        ("/nothing", "GET", 404, "not-found"),
        ("/api/v1/nothing", "GET", 404, "unknown-command"),
        ("/api/v1/reload", "GET", 404, "unknown-command"),
        ("/api/v1/ina-create", "GET", 404, "unknown-command"),
        ("/api/v1/ina-delete?name=train", "GET", 404, "unknown-command"),
        ("/api/v1/isis/status", "GET", 404, "unknown-command"),
        ("/api/v1/rip/routes", "GET", 404, "unknown-command"),
        ("/api/v1/explain", "GET", 400, "bad-argument"),
        ("/api/v1/log", "GET", 500, "internal"),
        ("/api/v1/routes", "POST", 405, "bad-request"),
    ],
)
async def test_errors_are_json_with_the_fitting_status(path, method, status, code):
    """Nothing can be changed over HTTP, and failures say what is wrong."""
    seen = []
    async with serving(on_error=lambda *what: seen.append(what)) as base:
        found, _, text = await get(base + path, method)
    assert found == status
    assert json.loads(text)["error"]["code"] == code
    assert bool(seen) == (status == 500)


async def test_head_has_no_body():
    """Probes may use HEAD."""
    async with serving() as base:
        status, headers, text = await get(base + "/healthz", "HEAD")
    assert (status, text, headers["content-length"]) == (200, "", "11")


async def test_the_page_and_its_files_are_served_under_a_strict_policy():
    """No inline script or style, nothing from elsewhere; no other file of the package."""
    async with serving() as base:
        status, headers, text = await get(base + "/")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        files = re.findall(r'(?:src|href)="(/page/[^"]+)"', text)
        assert len(files) >= 5
        for file in files:
            status, found, _ = await get(base + file)
            assert status == 200
            assert found["content-type"].split(";")[0] in (
                "text/html", "text/javascript", "text/css", "image/svg+xml", "text/plain"
            )  # fmt: skip
        for path in ("/page/", "/page/../http.py", "/page/index.html", "/page/http.py"):
            assert (await get(base + path))[0] == 404
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<style" not in text
    assert not re.findall(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|https?://", text)


async def test_scripts_make_no_html_of_text_and_import_only_what_is_served():
    scripts = list(ROOT.glob("*.js"))
    for script in scripts:
        text = script.read_text()
        for name in re.findall(r'from "\./([^"]+)"', text):
            assert (ROOT / name).is_file()
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", text)
    assert scripts


async def test_a_taken_port_is_an_os_error():
    """uvicorn would leave the process; the daemon gets an exception to report."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        served = Served(Responder(answers), families, Observed(), lambda: True, tuple)
        with pytest.raises(OSError, match="in use"):
            HttpPort("127.0.0.1", taken.getsockname()[1], served).start()


async def test_the_server_is_loaded_for_the_first_client():
    """Until somebody asks the port is open and costs nothing; who asks first is answered."""
    loaded = []
    served = Served(Responder(answers), families, Observed(), lambda: True, tuple)
    port = HttpPort("127.0.0.1", 0, served, lambda: loaded.append(True))
    port.start()
    try:
        await asyncio.sleep(0)
        assert not loaded
        replies = await asyncio.gather(
            *(get(f"http://127.0.0.1:{port.port}/healthz") for _ in range(3))
        )
        assert [status for status, _, _ in replies] == [200] * 3
        assert loaded == [True]
    finally:
        await port.stop()


async def test_a_port_that_nobody_asked_is_closed_too():
    served = Served(Responder(answers), families, Observed(), lambda: True, tuple)
    port = HttpPort("127.0.0.1", 0, served)
    port.start()
    await port.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port.port)


def test_http_costs_nothing_when_it_is_off():
    """Neither uvicorn nor prometheus is imported by the control socket."""
    code = (
        "import sys, fared.management.api.control, fared.management.api.client;"
        "import fared.management.documents.registry;"
        "print([m for m in ('uvicorn', 'prometheus_client', 'h11') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
