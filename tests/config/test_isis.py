"""The isis section: what people write, and the settings the engine gets of it."""

from __future__ import annotations

import pytest

from fared.config import Config, diff, load_text
from fared.config.convert import circuit_settings, to_isis_settings
from fared.config.isis import parse_net
from fared.core.keys import Algorithm
from fared.isis.ids import LevelSet
from fared.isis.settings import CircuitKind

TEXT = """
isis:
  net: 49.0001.0102.5500.0001.00
  level: level-1-2
  inter-level-propagation-policies: {level2-to-level1: true}
  level-2: {authentication: {algorithm: hmac-md5, key: "domain"}}
  interfaces:
    lo: {passive: true}
    "swp*": {level: level-1, metric: 20, authentication: {algorithm: hmac-sha-256, key-id: 300, key: k}}
    swp9: {network-type: broadcast, level: level-2}
"""


@pytest.mark.parametrize(
    ("text", "area"),
    [
        ("49.0001.0102.5500.0001.00", "490001"),
        ("49.0102.5500.0001.00", "49"),
        ("47.0005.80ff.f800.0000.0001.0001.0102.5500.0001.00", "47000580fff800000000010001"),
        ("490001010255000001.00", "490001"),
    ],
)
def test_titles_are_read_with_areas_of_one_to_thirteen_bytes(text, area):
    """The last byte is the selector, the six before it the system id, the rest the area."""
    net = parse_net(text)
    assert net.area.hex() == area
    assert net.system_id == 0x010255000001


def test_a_title_is_written_the_usual_way():
    """What the daemon prints is again a title."""
    assert str(parse_net("490001010255000001.00")) == "49.0001.0102.5500.0001.00"
    assert str(parse_net(str(parse_net("49.0102.5500.0001.00")))) == "49.0102.5500.0001.00"


def test_the_engine_gets_typed_settings():
    """Levels as sets, areas as bytes, keys as rings."""
    settings = to_isis_settings(load_text(TEXT), 0x0AFF0001, "leaf1")
    assert settings.system_id == 0x010255000001
    assert settings.areas == (bytes.fromhex("490001"),)
    assert settings.levels is LevelSet.BOTH
    assert settings.families == (4, 6)
    assert settings.level2_to_level1
    assert settings.lsp_keys(1) == ()
    assert settings.lsp_keys(2)[0].key.algorithm is Algorithm.MD5


def test_circuits_get_the_most_exact_entry_within_the_levels_of_the_router():
    """An exact name before a glob; what the router does not run, no circuit runs."""
    config = load_text(TEXT)
    assert circuit_settings(config, "eth0") is None
    loopback = circuit_settings(config, "lo")
    assert (loopback.kind, loopback.passive) == (CircuitKind.LOOPBACK, True)
    leaf = circuit_settings(config, "swp1")
    assert (leaf.levels, leaf.metric) == (LevelSet.ONE, 20)
    assert leaf.authentication[0].key.key_id == 300
    lan = circuit_settings(config, "swp9")
    assert (lan.kind, lan.levels) == (CircuitKind.BROADCAST, LevelSet.TWO)
    only_two = load_text(TEXT.replace("level-1-2", "level-2"))
    assert circuit_settings(only_two, "swp1").levels is LevelSet.NONE


def test_a_printed_configuration_is_a_configuration():
    """The document form reads back as the same thing, keys aside."""
    config = load_text(TEXT.replace('authentication: {algorithm: hmac-md5, key: "domain"}', ""))
    plain = load_text(TEXT.split("  level-2:", maxsplit=1)[0])
    assert Config.model_validate(plain.document()) == plain
    assert config.document()["isis"]["net"] == "49.0001.0102.5500.0001.00"


def test_what_a_reload_disturbs_is_told():
    """Metrics change in place, levels of a circuit bounce it, a title needs a restart."""
    old = load_text(TEXT)
    for before, after, action in (
        ("metric: 20", "metric: 30", "update-in-place"),
        ("level: level-1,", "level: level-2,", "bounce-adjacency"),
        ("49.0001", "49.0002", "restart-required"),
    ):
        (change,) = diff(old, load_text(TEXT.replace(before, after)))
        assert change.action.value == action
