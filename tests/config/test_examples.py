"""The example files work as they are, and fared.yaml agrees with the fields of the sections."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import NODEFAULT, structs

from deb import sample
from fared.config import load
from fared.config.reading import Reading
from fared.config.section import Section
from fared.config.shapes import Field, fields_of
from fared.core.ids import format_system_id
from fared.daemon.change.isis_settings import circuit_settings, isis_settings
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import CircuitKind
from tests.config.links import named

EXAMPLES = sorted((Path(__file__).parents[2] / "config").glob("*.yaml"))
REFERENCE = next(path for path in EXAMPLES if path.name == "fared.yaml").read_text()
SHOWN = list(sample.shown(REFERENCE))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_loads(path):
    """Each example is a configuration that routes."""
    config = load(path)
    assert config.protocols
    for section in config.protocols.values():
        assert section.interface("lo") is not None
        assert not section.interface("lo")[1].expects_neighbors


def test_the_isis_leaf_needs_no_more_than_its_title_and_interfaces():
    """Level 1 on its uplinks, both address families, point-to-point, a system id of its own."""
    path = next(path for path in EXAMPLES if path.name == "isis-leaf.yaml")
    settings = isis_settings(load(path), 1, "leaf")
    assert settings.levels is LevelSet.ONE
    assert settings.families == (4, 6)
    assert format_system_id(settings.system_id) == "0102.5500.1011"
    assert circuit_settings(load(path), named("swp49")).kind is CircuitKind.POINT_TO_POINT


def test_the_reference_states_the_defaults():
    """In fared.yaml every value that is written out is the default."""
    reference = load(REFERENCE)
    default = load('ospf: {areas: {0: {interfaces: {"swp*": {}}}}}')
    written, expected = reference.document(), default.document()
    lo = written["ospf"]["areas"]["0.0.0.0"]["interfaces"].pop("lo")
    expected["interfaces"] = {"*": {"bandwidth": "auto", "delay": "none"}}
    assert written == expected
    assert lo["passive"] is True


def shown(section: type[Section], key: str) -> list[sample.Shown]:
    """What the reference shows of a setting, in its section or in another that inherits it too."""
    shared = set(section.__mro__) - set(Section.__mro__)
    return [one for one in SHOWN if one.field.key == key and shared & set(one.section.__mro__)]


def test_the_reference_shows_every_setting_with_its_default():
    """A setting that is not in the reference does not exist for its reader.

    What has no default is shown by an example. A list of sections stands on lines of its own.
    """
    for section in sample.sections():
        defaults = {known.name: known for known in structs.fields(section)}
        for key, field in fields_of(section).items():
            found = [one.value for one in shown(section, key)]
            assert found, f"{section.__name__}: {key}"
            default = defaults[field.name].default
            if default_of := defaults[field.name].default_factory:
                default = default if default_of is NODEFAULT else default_of()
            plain = default not in (None, NODEFAULT, {}) and not isinstance(default, Section)
            if plain and any(value is not None for value in found):
                assert default in [read(field, value) for value in found], f"{section}: {key}"


def read(field: Field, value: object) -> object:
    reading = Reading()
    result = field.shape.read(value, (), reading)
    assert not reading.problems, f"{field.key}: {value!r} is not {reading.problems[0].reason}"
    return result


@pytest.mark.parametrize("one", SHOWN, ids=lambda one: f"{one.section.__name__}.{one.field.key}")
def test_the_values_in_the_reference_are_valid_and_so_are_the_ranges_in_its_comments(one):
    """Also of settings that are off. Key files are those of the reader."""
    if one.value is not None and "key-file" not in f"{one.field.key} {one.value}":
        read(one.field, one.value)
    for limits in re.findall(r"\b\d+\.\.\d+|\b\d+m?s to \d+[hs]\b", " ".join(one.help)):
        assert limits in one.field.shape.words


def test_the_reference_names_every_choice():
    choices = {
        choice
        for section in sample.sections()
        for field in fields_of(section).values()
        for choice in re.findall(r"'([^']+)'", field.shape.words)
    }
    assert len(choices) > 40
    assert not [choice for choice in choices if choice not in REFERENCE]


@pytest.mark.skipif(
    importlib.util.find_spec("fared.daemon.main") is None, reason="the daemon is not there yet"
)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_daemon_accepts_an_example(path):
    """fared --check says what ExecStartPre will say."""
    command = [sys.executable, "-m", "fared.daemon.main", "-c", str(path), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
