"""The ``bfd`` sections: profiles, overrides, what is refused, what is warned of."""

import pytest

from fared.config import ConfigErrors, load_text
from fared.config.load import load_runnable
from fared.core.bfd import BfdSettings, SessionSettings, Sha1Key
from fared.daemon.change.isis_settings import circuit_settings
from fared.daemon.change.ospf_settings import interface_settings
from tests.config.links import named

BASE = """
bfd:
  profiles:
    fast: {{min-tx: 50ms, min-rx: 60ms, multiplier: 5, hold-time: 2s}}
ospf: {{areas: {{0: {{interfaces: {{"e*": {{bfd: {0}}}}}}}}}}}
isis: {{net: 49.0102.5500.0001.00, interfaces: {{"e*": {{bfd: {0}}}}}}}
"""


def found(section: str) -> BfdSettings | None:
    config = load_text(BASE.format(section))
    settings = interface_settings(config, named("e1")).bfd
    assert circuit_settings(config, named("e1")).bfd == settings
    return settings


def test_bfd_is_off_by_default():
    assert found("{}") is None
    assert found("{profile: fast}") is None


def test_an_interface_without_a_profile_has_the_defaults():
    assert found("{enabled: true}") == BfdSettings(SessionSettings(300_000, 300_000, 3))


def test_keys_of_an_interface_override_its_profile():
    settings = found("{enabled: true, profile: fast, min-rx: 100ms, strict: true}")
    session = SessionSettings(50_000, 100_000, 5)
    assert settings == BfdSettings(session, strict=True, hold_time=2.0)


def test_authentication_is_meticulous_by_default():
    settings = found("{enabled: true, authentication: {key-id: 7, key: secret}}")
    assert settings.session.key == Sha1Key(7, b"secret", meticulous=True)
    settings = found("{enabled: true, authentication: {algorithm: keyed-sha-1, key: secret}}")
    assert settings.session.key == Sha1Key(1, b"secret", meticulous=False)


def test_keys_are_hidden():
    config = load_text(BASE.format("{authentication: {key: secret}}"))
    assert "secret" not in str(config.document())
    assert "secret" not in repr(config)


@pytest.mark.parametrize(
    ("section", "where", "words"),
    [
        ("{profile: slow}", "bfd.profile", "profile in bfd: profiles"),
        ("{min-tx: 5ms}", "bfd.min-tx", "10ms to 1h"),
        ("{multiplier: 0}", "bfd.multiplier", "1..255"),
        ("{multiplier: 256}", "bfd.multiplier", "1..255"),
        ("{strict: maybe}", "bfd.strict", "true or false"),
        ("{authentication: {}}", "bfd.authentication.key", "a key, or a key-file"),
        ("{authentication: {key: 123456789012345678901}}", "authentication", "key"),
        (
            '{authentication: {key: "123456789012345678901"}}',
            "bfd.authentication.key",
            "at most 20 bytes",
        ),
        ("{authentication: {key: a, key-id: 256}}", "key-id", "0..255"),
        ("{echo: true}", "bfd", "unknown key"),
    ],
)
def test_wrong_values_are_refused_with_their_place(section, where, words):
    with pytest.raises(ConfigErrors) as caught:
        load_text(BASE.format(section))
    text = str(caught.value)
    assert where in text
    assert words in text


def test_strict_mode_with_extended_sequence_numbers_is_warned_of(tmp_path):
    keys = "authentication: {algorithm: hmac-sha-256, extended-sequence: true, key-id: 1, key: a}"
    file = tmp_path / "fared.yaml"
    text = "ospf: {areas: {0: {interfaces: {e1: {%s, bfd: {enabled: true, strict: true}}}}}}"
    file.write_text(text % keys)
    loaded = load_runnable(file)
    (warning,) = loaded.warnings
    assert "not strict" in str(warning)
    assert interface_settings(loaded.config, named("e1")).bfd == BfdSettings()
    file.write_text(text % keys.replace("extended-sequence: true, ", ""))
    loaded = load_runnable(file)
    assert not loaded.warnings
    assert interface_settings(loaded.config, named("e1")).bfd == BfdSettings(strict=True)
