"""The isis section: what people write, and the settings the engine gets of it."""

from __future__ import annotations

import json

import pytest
import yaml

from fared.config import ConfigErrors, diff, load_text
from fared.config.isis import parse_net
from fared.core.filters import within
from fared.core.ids import parse_prefix
from fared.daemon.change.isis_settings import circuit_settings, isis_settings
from fared.protocols.igp.keys import Algorithm
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import CircuitKind, RedistributeSettings, Redistribution
from tests.config.links import named

TEXT = """
isis:
  net: 49.0001.0102.5500.0001.00
  level: level-1-2
  inter-level-propagation-policies: {level2-to-level1: true}
  level-2: {authentication: {algorithm: hmac-md5, key: "domain"}}
  interfaces:
    lo: {passive: true}
    "swp*": {level: level-1, metric: 20,
             authentication: {algorithm: hmac-sha-256, key-id: 300, key: k}}
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
    settings = isis_settings(load_text(TEXT), 0x0AFF0001, "leaf1")
    assert settings.system_id == 0x010255000001
    assert settings.areas == (bytes.fromhex("490001"),)
    assert settings.levels is LevelSet.BOTH
    assert settings.families == (4, 6)
    assert settings.level2_to_level1
    assert settings.lsp_keys(1) == ()
    assert settings.lsp_keys(2)[0].key.algorithm is Algorithm.MD5


def test_circuits_use_the_most_specific_entry_within_the_levels_of_the_router():
    """An exact name before a glob; what the router does not run, no circuit runs."""
    config = load_text(TEXT)
    assert circuit_settings(config, named("eth0")) is None
    loopback = circuit_settings(config, named("lo"))
    assert (loopback.kind, loopback.passive) == (CircuitKind.LOOPBACK, True)
    leaf = circuit_settings(config, named("swp1"))
    assert (leaf.levels, leaf.metric) == (LevelSet.ONE, 20)
    assert leaf.authentication[0].key.key_id == 300
    lan = circuit_settings(config, named("swp9"))
    assert (lan.kind, lan.levels) == (CircuitKind.BROADCAST, LevelSet.TWO)
    only_two = load_text(TEXT.replace("level-1-2", "level-2"))
    assert circuit_settings(only_two, named("swp1")).levels is LevelSet.NONE


def test_prefix_suppression_spares_passive_interfaces_unless_set_for_them():
    """By default the prefixes of all are; passive ones lose theirs only by name."""
    entries = """
  interfaces:
    lo: {passive: true}
    host: {passive: true}
    hidden: {passive: true, prefix-suppression: true}
    shown: {prefix-suppression: false}
    link: {}
"""
    for line, suppressed in (
        ("advertise-passive-only: true", ["hidden", "link"]),
        ("", ["hidden"]),
    ):
        config = load_text(f"isis:\n  net: 49.0001.0102.5500.0001.00\n  {line}{entries}")
        names = ("lo", "host", "hidden", "shown", "link")
        found = [n for n in names if circuit_settings(config, named(n)).prefix_suppression]
        assert found == suppressed


def test_a_printed_configuration_is_a_configuration():
    """The document form reads back as the same thing, keys aside."""
    config = load_text(TEXT.replace('authentication: {algorithm: hmac-md5, key: "domain"}', ""))
    plain = load_text(TEXT.split("  level-2:", maxsplit=1)[0])
    assert load_text(json.dumps(plain.document())) == plain
    assert config.document()["isis"]["net"] == "49.0001.0102.5500.0001.00"


def test_each_change_reports_its_effect_on_circuits():
    """Metrics change in place, levels of a circuit bounce it, a title needs a restart."""
    old = load_text(TEXT)
    for before, after, action in (
        ("metric: 20", "metric: 30", "update-in-place"),
        ("level: level-1,", "level: level-2,", "bounce-adjacency"),
        ("49.0001", "49.0002", "restart-required"),
    ):
        (change,) = diff(old, load_text(TEXT.replace(before, after)))
        assert change.action.value == action


def test_sources_that_are_named_are_redistributed_in_the_highest_level():
    """As in FRR metric 0; in level 2 where the router takes part in it, or as it is told."""
    net = "net: 49.0001.0000.0000.0001.00"
    sources = "{static: {tag: 7, prefixes: [2001:db8::/32, 10.0.0.0/8]}, connected: }"

    def settings(level: str, sources: str) -> RedistributeSettings:
        text = f"isis: {{{net}, level: {level}, redistribute: {sources}}}"
        config = load_text(text)
        assert load_text(yaml.safe_dump(config.document())) == config
        return isis_settings(config, 1, None).redistribute

    inside = (within((parse_prefix("10.0.0.0/8"), parse_prefix("2001:db8::/32"))),)
    for name, levels in (
        ("level-1", LevelSet.ONE),
        ("level-2", LevelSet.TWO),
        ("level-1-2", LevelSet.TWO),
    ):
        wanted = RedistributeSettings(
            connected=Redistribution(levels), static=Redistribution(levels, 0, 7, inside)
        )
        assert settings(name, sources) == wanted
    told = settings("level-1-2", "{default: {level: level-1, metric: 5, always: true}}")
    assert told == RedistributeSettings(
        default=Redistribution(LevelSet.ONE, 5), default_always=True
    )
    both = settings("level-1-2", "{static: {level: level-1-2}}")
    assert both.static == Redistribution(LevelSet.BOTH)
    assert settings("level-2", "") == RedistributeSettings()


@pytest.mark.parametrize(
    ("sources", "where", "what"),
    [
        ("{static: {level: level-1}}", "isis.redistribute", "level-2"),
        ("{static: {level: both}}", "isis.redistribute.static.level", "level-1"),
        ("{static: {metric-type: 1}}", "isis.redistribute.static", "metric-type"),
        ("{connected: {metric: 4261412865}}", "isis.redistribute.connected.metric", "4261412864"),
        ("{static: {prefixes: [10]}}", "isis.redistribute.static.prefixes[0]", "2001:db8::/32"),
        ("{default: {prefixes: []}}", "isis.redistribute.default.prefixes", ""),
    ],
)
def test_invalid_sources_of_redistribution_are_refused_with_their_place(sources, where, what):
    text = f"isis: {{net: 49.0001.0000.0000.0001.00, redistribute: {sources}}}"
    with pytest.raises(ConfigErrors) as caught:
        load_text(text)
    assert where in str(caught.value)
    assert what in str(caught.value)
