"""Authentication in the file: how keys are written, checked, compared, and never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fared.config import ConfigErrors, Reload, diff, json_schema, load_text
from fared.config.secrets import HIDDEN
from fared.daemon.change.ospf_settings import interface_settings
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from tests.config.links import named

SECRET = "s3cr3t-w0rd"
ONE = f"{{algorithm: hmac-sha-256, key-id: 1, key: {SECRET}}}"
MD5 = "algorithm: md5, key-id: 1"
PAST = "2026-01-01T00:00:00Z"


def text_of(authentication: str) -> str:
    return (
        "ospf:\n  areas:\n    0:\n      interfaces:\n        swp1:\n"
        f"          authentication: {authentication}\n"
    )


def keyring(authentication: str) -> tuple[TimedKey, ...]:
    settings = interface_settings(load_text(text_of(authentication)), named("swp1"))
    assert settings is not None
    return settings.authentication


def errors_of(authentication: str) -> list:
    with pytest.raises(ConfigErrors) as caught:
        load_text(text_of(authentication), "fared.yaml")
    return list(caught.value.errors)


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_a_key_without_lifetime_is_always_valid(algorithm: Algorithm):
    """The short form: one mapping, no times."""
    number = "" if algorithm is Algorithm.CLEARTEXT else "key-id: 7, "
    (timed,) = keyring(f"{{algorithm: {algorithm.value}, {number}key: secret}}")
    assert timed == TimedKey(AuthKey(algorithm, 7 if number else 0, b"secret"))


def test_several_keys_have_lifetimes_of_their_own():
    """Times have their zone; quoted or not they mean the same."""
    first, second = keyring("""
            keys:
              - {algorithm: md5, key-id: 1, key: old, accept-end: 2027-02-01T00:00:00Z}
              - algorithm: hmac-sha-512
                key-id: 70000
                extended-sequence: true
                key: new
                send-start: "2027-01-31T01:00:00+01:00"
                send-end: 2027-01-31T00:00:10Z
                accept-start: 2027-01-31 00:00:00Z
""")
    assert first == TimedKey(AuthKey(Algorithm.MD5, 1, b"old"), accept_end=1801440000.0)
    key = AuthKey(Algorithm.HMAC_SHA_512, 70000, b"new", extended=True)
    begin = 1801353600.0
    assert second == TimedKey(key, send_start=begin, send_end=begin + 10, accept_start=begin)


def test_no_authentication_is_the_default():
    assert keyring("null") == ()
    assert keyring(ONE) != ()


def test_a_key_is_read_from_a_file(tmp_path: Path):
    """Its first line; so the configuration itself may be read by anybody."""
    file = tmp_path / "ospf.key"
    file.write_text("from the file\nnot this\n")
    (timed,) = keyring(f"{{{MD5}, key-file: {file}}}")
    assert timed.key.key == b"from the file"
    shown = load_text(text_of(f"{{{MD5}, key-file: {file}}}")).document()
    assert "from the file" not in json.dumps(shown)
    assert str(file) in json.dumps(shown)


@pytest.mark.parametrize(
    ("authentication", "where", "word"),
    [
        ("{key-id: 1, key: a}", "algorithm", "hmac-sha-256"),
        ("{algorithm: md6, key-id: 1, key: a}", "algorithm", "hmac-sha-256"),
        ("{algorithm: md5, key: a}", "key-id", "0..255"),
        ("{algorithm: md5, key-id: 256, key: a}", "key-id", "0..255, got 256"),
        ("{algorithm: md5, key-id: -1, key: a}", "key-id", "an integer"),
        ("{algorithm: cleartext, key-id: 1, key: a}", "key-id", "no key-id"),
        (f"{{{MD5}}}", "key", "a key, or a key-file"),
        (f"{{{MD5}, key: ''}}", "key", "not empty"),
        (f"{{{MD5}, key: 12345}}", "key", "quotes"),
        (f"{{{MD5}, key: '{HIDDEN}'}}", "key", "show config hides it"),
        (f"{{{MD5}, key: {'x' * 17}}}", "key", "at most 16 bytes"),
        ("{algorithm: cleartext, key: ninebytes}", "key", "at most 8 bytes"),
        (f"{{{MD5}, key: a, key-file: /dev/null}}", "key-file", "it is a device"),
        (f"{{{MD5}, key-file: /nowhere/at/all}}", "key-file", "No such file"),
        (f"{{{MD5}, key-file: relative}}", "key-file", "an absolute path"),
        (f"{{{MD5}, key: a, extended-sequence: true}}", "extended-sequence", "HMAC"),
        (f"{{{MD5}, key: a, send-start: 2027-01-31T12:00:00}}", "send-start", "Z is missing"),
        (f"{{{MD5}, key: a, send-start: 2027-01-31}}", "send-start", "with its zone"),
        (f"{{{MD5}, key: a, send-start: tomorrow}}", "send-start", "with its zone"),
        (
            f"{{{MD5}, key: a, accept-start: 2027-01-31T12:00:00Z, accept-end: {PAST}}}",
            "accept-end",
            "a time after accept-start",
        ),
        (f"{{keys: [{{{MD5}, key: a}}], key-id: 3}}", "key-id", "either keys or"),
        ("{keys: []}", "keys", "at least one key"),
        ("{keys: a}", "keys", "a list"),
        (f"{{keys: [{{{MD5}, key: a}}, {{{MD5}, key: b}}]}}", "keys", "1 is there twice"),
        (f"{{keys: [{{{MD5}, key: a}}, {{{MD5}, kye: b}}]}}", "keys[1].kye", "mean 'key'"),
        (f"{{keys: [{{{MD5}, key: a}}, {{algorithm: md5, key: b}}]}}", "keys[1].key-id", "0..255"),
    ],
)
def test_invalid_keys_are_refused_with_their_place(authentication: str, where: str, word: str):
    error = errors_of(authentication)[0]
    assert error.path == f"ospf.areas[0].interfaces.swp1.authentication.{where}"
    assert word in str(error)
    assert error.line == 6


def test_each_key_of_a_list_has_its_own_line_and_column():
    errors = errors_of(f"""
            keys:
              - {{{MD5}, key: a}}
              - {{algorithm: md5, key-id: 300, key: b}}
              - algorithm: md5
                key-id: 3
                key: 4
""")
    places = [(error.line, error.column, error.path.partition("keys")[2]) for error in errors]
    assert places == [(9, 42, "[1].key-id"), (12, 22, "[2].key")]


@pytest.mark.parametrize(
    "authentication",
    [
        SECRET,
        f"[{SECRET}]",
        f"{{keys: {SECRET}}}",
        f"{{keys: [{SECRET}]}}",
        f"{{{MD5}, key: [{SECRET}]}}",
        f"{{{MD5}, key: {SECRET * 2}}}",
        f"{{{MD5}, key:{SECRET}}}",
        f"{{{MD5}, key:{SECRET}, key:{SECRET}}}",
        f"{{{MD5}, key: *{SECRET}}}",
        f"{{{MD5}, key: !{SECRET} a}}",
        f"{{algorithm: {SECRET}, key-id: 1, key: md5}}",
        f"{{algorithm: md5, key-id: {SECRET}, key: a}}",
        f"{{{MD5}, key-file: {SECRET}}}",
        f"{{{MD5}, key: a, send-start: {SECRET}}}",
        f"{{{MD5}, key: {SECRET}, send-start: now}}",
    ],
)
def test_no_error_repeats_what_may_be_a_secret(authentication: str):
    """Whatever is wrong, and wherever the key ended up by a slip of the pen."""
    errors = errors_of(authentication)
    assert not [str(error) for error in errors if SECRET in str(error) + repr(error)]
    assert all(error.line == 6 for error in errors)


def test_a_secret_is_not_in_the_document_nor_in_any_representation():
    config = load_text(text_of(f"{{keys: [{ONE}]}}"))
    settings = interface_settings(config, named("swp1"))
    for text in (json.dumps(config.document()), repr(config), str(config), repr(settings)):
        assert SECRET not in text
    (shown,) = config.document()["ospf"]["areas"]["0.0.0.0"]["interfaces"]["swp1"][
        "authentication"
    ]["keys"]
    assert shown == {"algorithm": "hmac-sha-256", "key-id": 1, "key": HIDDEN}


def test_a_key_with_id_0_is_printed_with_its_id():
    """0 is a number of a key, and not the lack of one."""
    config = load_text(text_of("{algorithm: md5, key-id: 0, key: a}"))
    interface = config.document()["ospf"]["areas"]["0.0.0.0"]["interfaces"]["swp1"]
    assert interface["authentication"] == {"algorithm": "md5", "key-id": 0, "key": HIDDEN}


def test_a_changed_secret_is_a_change_without_a_bounce_and_without_the_secret():
    old, new = (load_text(text_of(ONE.replace(SECRET, key))) for key in (SECRET, SECRET + "2"))
    (change,) = diff(old, new)
    assert change.path[-2:] == ("authentication", "key")
    assert (change.old, change.new, change.action) == (HIDDEN, HIDDEN, Reload.UPDATE)
    assert diff(old, old) == []


def test_a_changed_key_file_is_a_change(tmp_path: Path):
    file = tmp_path / "ospf.key"
    text = text_of(f"{{{MD5}, key-file: {file}}}")
    file.write_text("one")
    old = load_text(text)
    file.write_text("two")
    (change,) = diff(old, load_text(text))
    assert (change.path[-1], change.old, change.new) == ("key-file", str(file), str(file))


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ("null", ONE, [""]),
        (ONE, "null", [""]),
        (f"{{keys: [{ONE}]}}", f"{{keys: [{ONE}, {{{MD5[:-1]}2, key: {SECRET}}}]}}", [".keys.1"]),
        (f"{{keys: [{ONE}, {{{MD5[:-1]}2, key: {SECRET}}}]}}", f"{{keys: [{ONE}]}}", [".keys.1"]),
        (
            f"{{keys: [{ONE}]}}",
            f"{{keys: [{ONE[:-1]}, send-end: 2027-01-31T12:00:00Z}}]}}",
            [".keys.0.send-end"],
        ),
    ],
)
def test_keys_are_added_and_removed_without_a_bounce(old: str, new: str, paths: list[str]):
    """A reload says so, bounces nothing, and shows no key."""
    changes = diff(load_text(text_of(old)), load_text(text_of(new)))
    prefix = "ospf.areas.0.0.0.0.interfaces.swp1.authentication"
    assert [".".join(change.path) for change in changes] == [prefix + path for path in paths]
    assert {change.action for change in changes} == {Reload.UPDATE}
    assert SECRET not in repr(changes)


def test_the_schema_for_editors_knows_the_section():
    definitions = json_schema()["$defs"]
    assert "key-file" in definitions["OspfKey"]["properties"]
    assert "keys" in definitions["OspfAuthentication"]["properties"]
