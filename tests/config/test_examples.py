"""The example files work as they are."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from fared.config import load
from fared.core.ids import format_system_id
from fared.daemon.change.isis_settings import circuit_settings, isis_settings
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import CircuitKind

EXAMPLES = sorted((Path(__file__).parents[2] / "config").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_loads(path):
    """Each example is a configuration that routes."""
    config = load(path)
    assert config.ospf is not None or config.isis is not None
    assert config.ospf is None or config.ospf_interface("lo")[1].passive
    assert config.isis is None or config.isis_interface("lo").passive


def test_the_isis_leaf_needs_no_more_than_its_title_and_interfaces():
    """Level 1 on its uplinks, both address families, point-to-point, a system id of its own."""
    path = next(path for path in EXAMPLES if path.name == "isis-leaf.yaml")
    settings = isis_settings(load(path), 1, "leaf")
    assert settings.levels is LevelSet.ONE
    assert settings.families == (4, 6)
    assert format_system_id(settings.system_id) == "0102.5500.1011"
    assert circuit_settings(load(path), "swp49").kind is CircuitKind.POINT_TO_POINT


def test_the_reference_states_the_defaults():
    """In fared.yaml every value that is written out is the default."""
    reference = load(next(path for path in EXAMPLES if path.name == "fared.yaml"))
    default = load('ospf: {areas: {0: {interfaces: {"swp*": {}}}}}')
    written, expected = reference.document(), default.document()
    lo = written["ospf"]["areas"]["0.0.0.0"]["interfaces"].pop("lo")
    expected["interfaces"] = {"*": {"bandwidth": "auto"}}
    assert written == expected
    assert lo["passive"] is True


def test_the_reference_mentions_every_key():
    """A setting that is not in the reference does not exist for its reader."""
    text = next(path for path in EXAMPLES if path.name == "fared.yaml").read_text()
    document = load("""
ospf: {areas: {0: {interfaces: {x: {}}}}}
isis: {net: 49.0102.5500.0001.00, interfaces: {x: {}}}
router-id: 1.1.1.1
hostname: x
""").document()
    interface = document["ospf"]["areas"].pop("0.0.0.0")["interfaces"]["x"]
    circuit = document["isis"]["interfaces"].pop("x")
    sections = [document, *(value for value in document.values() if isinstance(value, dict))]
    inner = (interface, circuit, document["ospf"]["spf"], document["isis"]["spf"])
    keys = {key for section in (*sections, *inner) for key in section}
    assert not [key for key in keys if f"{key}:" not in text]


@pytest.mark.skipif(
    importlib.util.find_spec("fared.daemon.main") is None, reason="the daemon is not there yet"
)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_daemon_accepts_an_example(path):
    """fared --check says what ExecStartPre will say."""
    command = [sys.executable, "-m", "fared.daemon.main", "-c", str(path), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
