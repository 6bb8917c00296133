"""What a running daemon does not load: memory and start-up time of every router in a lab."""

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
    "fared.cli",
    "fared.lab",
    "fared.sim",
    "fared.ted.export",
)
"""Tools of operators and developers: never, whatever is asked of the daemon."""
LATE = ("uvicorn", "prometheus_client", "fared.api.views.routes")
"""Not before neighbors have heard of us: what people look through."""
START = """
import sys
from pathlib import Path
import fared.daemon.main
from fared.config import load_runnable
from fared.daemon.daemon import Daemon
from fared.daemon.settings import router_settings
from fared.router.router import Router
config = load_runnable(Path({config!r}))
Daemon({config!r}, config)
Router(router_settings(config, 1, "r"), __import__("random").Random(1), 0.0, lambda: 0.0)
"""
SERVE = """
import fared.api.http, fared.daemon.scrape, fared.daemon.metrics, fared.daemon.commands
"""
OSPF = "ospf:\n  areas:\n    0.0.0.0:\n      interfaces:\n        lo: {passive: true}\n"
ISIS = "isis:\n  net: 49.0001.0102.5500.0001.00\n  interfaces:\n    lo: {passive: true}\n"


def modules(code: str) -> set[str]:
    """What a fresh interpreter has loaded after it ran this."""
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


@pytest.mark.parametrize("when", ["ospf", "isis"])
def test_what_people_look_through_is_loaded_later(loaded, when):
    assert not loaded[when] & set(LATE)


def test_the_engine_of_a_protocol_not_spoken_is_not_loaded(loaded):
    assert "fared.ospf.engine" in loaded["ospf"]
    assert "fared.isis.engine" not in loaded["ospf"]
    assert "fared.isis.engine" in loaded["isis"]
    assert "fared.ospf.engine" not in loaded["isis"]


def test_the_views_of_a_protocol_not_spoken_are_not_loaded(loaded):
    """They bring its codec: half of what an OSPF router loads for those who look."""
    assert "fared.api.views.ospf" in loaded["served"]
    assert not {name for name in loaded["served"] if name.startswith("fared.isis.pdu")}
