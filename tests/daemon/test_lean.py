"""Modules that a running daemon does not load, to save memory and start-up time."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEVER = (
    "networkx",
    "matplotlib",
    "rich",
    "pytest",
    "hypothesis",
    "dpkt",
    "pydantic",
    "typing_extensions",
    "_hashlib",
    "_lzma",
    "numpy.lib._iotools",
    "numpy.linalg._linalg",
    "numpy._typing",
    "fared.management.cli",
    "fared.extensions.offline",
    "fared.extensions.lab",
    "fared.extensions.sim",
)
"""Tools of operators and developers: never, whatever is asked of the daemon."""
LATE = (
    "ssl",
    "dataclasses",
    "click",
    "uvicorn",
    "h11",
    "prometheus_client",
    "fared.management.api.http",
    "fared.management.documents.views.routes",
)
"""Not before neighbors have heard of us: what people look through; HTTP when a client is there."""
WATCHED = (
    "fared.management.api.watch",
    "fared.management.api.what_if",
    "fared.management.api.fabric_changes",
    "fared.management.documents.views.fabric",
    "fared.paths.ted.tiers",
)
"""Not before somebody looks at the page, whatever else is asked over HTTP."""
AGGREGATION = ("fared.extensions.ina", "fared.extensions.ina.inad", "scipy")
"""Not if routers do not aggregate."""
PLATFORM = ("fared.sonic", "redis")
"""Not if the kernel knows all of the links."""
RECORDED = ("fared.management.recording", "cloudpickle")
"""Not if the router is not recorded."""
STREAMED = ("fared.daemon.loop.streams", "fared.kernel.tcp", "fared.kernel.router_advertisements")
"""Not if no protocol has neighbors over TCP."""
SPRAYED = ("fared.paths.fib.spray", "fared.kernel.nft", "fared.kernel.spray")
"""Not if packets follow their flow."""
START = """
import sys
from pathlib import Path
from fared.daemon.main import load_daemon, parser
from fared.config import load_runnable
parser()
load_daemon()
from fared.daemon.daemon import Daemon
from fared.daemon.change.settings import router_settings
from fared.router.router import Router
loaded = load_runnable(Path({config!r}))
config = loaded.config
Daemon({config!r}, loaded)
Router(router_settings(config, 1, "r"), __import__("random").Random(1), 0.0, lambda: 0.0)
"""
SERVE = """
import fared.management.api.http_server, fared.management.api.http
import fared.daemon.people.metrics, fared.management.documents.dispatch
fared.management.documents.dispatch.load(['ospf'])
"""
LOG = "log: {format: json}\n"
OSPF = LOG + "ospf:\n  areas:\n    0.0.0.0:\n      interfaces:\n        lo: {passive: true}\n"
ISIS = LOG + "isis:\n  net: 49.0001.0102.5500.0001.00\n  interfaces:\n    lo: {passive: true}\n"


def modules(code: str) -> set[str]:
    """The modules that an interpreter has loaded after it ran this code."""
    code += "print('\\n'.join(name for name, module in sys.modules.items() if module))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> dict[str, set[str]]:
    directory = tmp_path_factory.mktemp("lean")
    found = {}
    for name, text in (("ospf", OSPF), ("isis", ISIS)):
        file = directory / f"{name}.yaml"
        file.write_text(text)
        found[name] = modules(START.format(config=str(file)))
    found["served"] = modules(START.format(config=str(directory / "ospf.yaml")) + SERVE)
    return found


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_tools_are_never_loaded(loaded, when):
    assert not {name for name in loaded[when] if name.startswith(NEVER)}


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_without_bfd_nothing_of_it_is_loaded(loaded, when):
    """``fared.core.bfd`` has the settings, which the engines need."""
    assert "fared.core.bfd" in loaded[when] or when == "served"
    assert not {
        name
        for name in loaded[when]
        if name.startswith(("fared.protocols.bfd", "fared.daemon.services.bfd"))
    }


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_where_no_switch_chip_forwards_nothing_of_sonic_is_loaded(loaded, when):
    assert not {name for name in loaded[when] if name.startswith(PLATFORM)}


def test_looking_for_sonic_loads_nothing_where_it_is_not(tmp_path):
    code = (
        "import sys\nfrom fared.config.platform import Platform\n"
        "from fared.daemon.platform import chosen_platform\n"
        f"assert chosen_platform(Platform(databases={str(tmp_path / 'none')!r}), None) is None\n"
    )
    assert not {name for name in modules(code) if name.startswith(PLATFORM)}


@pytest.mark.parametrize("when", ["ospf", "isis"])
def test_views_and_http_are_loaded_later(loaded, when):
    assert not loaded[when] & set(LATE)


def test_the_engine_of_a_protocol_that_is_not_configured_is_not_loaded(loaded):
    assert "fared.protocols.ospf.engine" in loaded["ospf"]
    assert not loaded["ospf"] & {"fared.protocols.isis.engine", "fared.daemon.change.isis_settings"}
    assert "fared.protocols.isis.engine" in loaded["isis"]
    assert not loaded["isis"] & {"fared.protocols.ospf.engine", "fared.daemon.change.ospf_settings"}


def test_the_views_of_a_protocol_that_is_not_configured_are_not_loaded(loaded):
    """They import its codec: half of the modules that an OSPF router loads for its views."""
    assert "fared.management.documents.views.ospf" in loaded["served"]
    assert not {name for name in loaded["served"] if name.startswith("fared.protocols.isis.pdu")}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("difflib", "ndiff"),
        ("tokenize", "open"),
        ("inspect", "isclass"),
        ("platform", "uname"),
        ("pickle", "Pickler"),
        ("yaml.reader", "Reader"),
        ("yaml.representer", "Representer"),
        ("msgspec.inspect", "type_info"),
        ("msgspec._json_schema", "_type_repr"),
        ("structlog", "get_logger"),
        ("structlog.dev", "ConsoleRenderer"),
        ("structlog.tracebacks", "extract"),
    ],
)
def test_a_module_that_is_rarely_used_is_not_executed(tmp_path, module, name):
    """They correct misspelt words, show tracebacks, and serve other uses of libraries.

    Of YAML there are libyaml's parser and what makes values of its events, of structlog what logs
    JSON.
    """
    config = tmp_path / "fared.yaml"
    config.write_text(OSPF)
    code = START.format(config=str(config)) + f"print({name!r} in vars(sys.modules[{module!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_a_daemon_whose_packets_follow_their_flow_loads_nothing_that_sprays_them(loaded, when):
    assert "fared.router.spraying" in loaded[when]
    assert not {name for name in loaded[when] if name.startswith(SPRAYED)}


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_a_daemon_without_streams_loads_nothing_of_them(loaded, when):
    assert "fared.core.streams" in loaded[when]
    assert not {name for name in loaded[when] if name.startswith(STREAMED)}


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_a_daemon_that_is_not_recorded_loads_nothing_that_records(loaded, when):
    assert "fared.daemon.people.actions" in loaded[when]
    assert not {name for name in loaded[when] if name.startswith(RECORDED)}


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_a_daemon_whose_page_nobody_opens_loads_nothing_for_it(loaded, when):
    assert not {name for name in loaded[when] if name.startswith(WATCHED)}


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_a_daemon_without_bier_loads_nothing_of_it(loaded, when):
    """``fared.config.bier`` reads the section of the file."""
    assert "fared.router.multicast" in loaded[when]
    bier = {name for name in loaded[when] if "bier" in name}
    document = {"fared.management.documents.bier", "fared.management.documents.views.bier"}
    assert not bier - document - {"fared.config.bier"}


@pytest.mark.parametrize("when", ["ospf", "isis", "served"])
def test_a_daemon_that_does_not_aggregate_loads_nothing_of_it(loaded, when):
    assert not {name for name in loaded[when] if name.startswith(AGGREGATION)}


def test_what_reads_and_plans_jobs_of_aggregation_is_not_in_the_process_of_the_daemon():
    """Anybody can flood jobs, and hellos wait for whatever runs here."""
    service = "fared.extensions.ina.service"
    found = modules(f"import sys, {service}.jobs, {service}.requests\n")
    assert "fared.extensions.ina.service.process" in found
    assert not {
        name
        for name in found
        if name.startswith(("fared.extensions.ina.plan.planner", "fared.extensions.ina.jobd"))
    }
    assert "fared.extensions.ina.control.manager" not in found
