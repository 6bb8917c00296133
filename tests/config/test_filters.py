"""``filters``: their items, the places that name them, and what ``--check`` says of both."""

import pytest
import yaml

from fared.config import ConfigErrors, load_text
from fared.config.load import load_runnable
from fared.core.filters import Filter, parse_item
from fared.daemon.change.isis_settings import isis_settings
from fared.daemon.change.ospf_settings import ospf_settings

TEXT = """
filters:
  servers:
    - deny 10.9.0.0/16 le 32
    - permit 10.0.0.0/8 ge 24
  marked: [permit any tag 77]
ospf:
  areas:
    0: {interfaces: {a: {}}}
    1: {filter: {in: servers}, interfaces: {b: {}}}
  redistribute: {static: {filter: servers, prefixes: [10.0.0.0/9]}}
isis:
  net: 49.0001.0000.0000.0001.00
  level: level-1-2
  interfaces: {b: {}}
  inter-level-propagation-policies:
    level2-to-level1: true
    filter: {level2-to-level1: marked}
"""
NO_TAGS = "prefixes have no tags here"
SERVERS = Filter(
    "servers", tuple(map(parse_item, ("deny 10.9.0.0/16 le 32", "permit 10.0.0.0/8 ge 24")))
)


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        load_text(text, "f.yaml")
    return [str(error) for error in caught.value.errors]


def warnings(text: str, tmp_path) -> list[str]:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    return [f"{w.line}: {w.path}: {w.message}" for w in load_runnable(file).warnings]


def test_a_filter_is_a_list_of_items_that_places_name():
    config = load_text(TEXT)
    ospf, isis = ospf_settings(config, 1, None), isis_settings(config, 1, None)
    assert [(a.filter_in, a.filter_out) for a in ospf.areas] == [(None, None), (SERVERS, None)]
    assert (isis.filter_up, isis.filter_down.name) == (None, "marked")


def test_of_prefixes_and_a_filter_both_must_permit():
    """``prefixes`` is the short form of a filter of its own."""
    static = ospf_settings(load_text(TEXT), 1, None).redistribute.static
    assert [found.name for found in static.filters] == ["", "servers"]


def test_a_printed_configuration_has_the_same_filters():
    config = load_text(TEXT)
    written = config.document()
    assert written["filters"]["servers"] == ["deny 10.9.0.0/16 le 32", "permit 10.0.0.0/8 ge 24"]
    assert written["ospf"]["areas"]["0.0.0.1"]["filter"] == {"in": "servers", "out": None}
    assert load_text(yaml.safe_dump(written)) == config


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("filters: {a: []}", "1:14: filters.a: expected at least one item"),
        ("filters: {a: [permit 10.0.0.0/8 le 4]}", "lengths 8 <= ge <= le <= 32"),
        ("filters: {a: [10.0.0.0/8]}", "(permit or deny first)"),
        ("filters: {1a: [permit any]}", "expected a name of a letter and up to 63"),
        (
            "filters: {servers: [permit any]}\nospf: {areas: {1: {filter: {out: server}}}}",
            "2:34: ospf.areas[1].filter.out: expected the name of a filter in filters: (servers)",
        ),
        (
            "filters: {servers: [permit any]}\nospf: {areas: {1: {filter: {out: server}}}}",
            "got \"server\"; did you mean 'servers'?",
        ),
        ("ospf: {redistribute: {static: {filter: a}}}", "filters: (there is none)"),
    ],
)
def test_an_error_has_its_place_and_what_was_expected(text: str, expected: str):
    (found,) = errors(text)
    assert expected in found


def test_items_that_decide_nothing_and_names_that_nothing_uses_are_warnings(tmp_path):
    assert warnings(TEXT, tmp_path) == []
    text = TEXT.replace("permit 10.0.0.0/8 ge 24", "permit 10.9.1.1/24 ge 24 tag 7")
    text = text.replace("    level2-to-level1: true\n", "").replace("filter: servers, ", "")
    text = text.replace("ospf:", "  unused: [permit any]\nospf:", 1)
    leaking = "18: isis.inter-level-propagation-policies.filter.level2-to-level1"
    assert warnings(text, tmp_path) == [
        "5: filters.servers[1]: never reached: item 1 (deny 10.9.0.0/16 le 32) matches all of it",
        "5: filters.servers[1]: bits of a host are ignored: 10.9.1.0/24 is used",
        "7: filters.unused: no setting uses this filter",
        f"11: ospf.areas[1].filter.in: item 2 of servers matches nothing: {NO_TAGS}",
        f"{leaking}: ignored: level2-to-level1 is off, or the level is not level-1-2",
    ]
