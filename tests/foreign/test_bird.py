"""``bird.conf`` becomes a configuration of fared; each line that is not taken is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from fared.config import load_text
from fared.extensions.foreign.bird.parse import BirdError
from fared.extensions.foreign.bird.read import read_bird
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.write import write_draft


def imported(text: str, path: Path = Path("bird.conf")) -> Draft:
    draft = read_bird(text, path, lambda file: file.read_text())
    load_text(draft.settle(lambda: write_draft(draft, "bird.conf", "BIRD")))
    return draft


def ospf(inside: str, outside: str = "") -> Draft:
    return imported(f"{outside}\nprotocol ospf v2 {{\n{inside}\n}}\n")


def interface(options: str, outside: str = "") -> dict:
    draft = ospf(f'area 0 {{ interface "swp*" {{ {options} }}; }};', outside)
    found: dict = draft.tree["ospf"]["areas"]["0.0.0.0"]["interfaces"]["swp*"]
    return found


def test_what_bird_and_fared_have_different_defaults_of_is_written():
    assert interface("cost 5;") == {"network-type": "broadcast", "hello-interval": 10, "cost": 5}
    assert interface("type ptp; hello 2; dead count 5;") == {
        "network-type": "point-to-point",
        "hello-interval": 2,
        "dead-interval": 10,
    }
    assert interface("stub yes; cost 5; hello 7;") == {"passive": True, "cost": 5}


def test_areas_and_networks():
    draft = ospf(
        "area 0.0.0.1 { stub yes; summary no; default cost 7; nssa;\n"
        ' networks { 10.1.0.0/16; 10.2.0.0/16 hidden; }; interface "a" { }; };'
    )
    area = draft.tree["ospf"]["areas"]["0.0.0.1"]
    assert (area["type"], area["summary"], area["default-cost"]) == ("stub", False, 7)
    assert area["ranges"] == {"10.1.0.0/16": {}, "10.2.0.0/16": {"advertise": False}}
    assert ["no NSSA" in remark.reason for remark in draft.left] == [True]


def test_keys_of_an_interface():
    found = interface(
        'authentication cryptographic; password "one" { id 5; algorithm hmac sha256; };'
        ' password "two" { generate from "2027-01-31 00:00:00"; };'
    )
    one, two = found["authentication"]["keys"]
    assert one == {"key-id": 5, "key": "one", "algorithm": "hmac-sha-256"}
    assert (two["key-id"], two["algorithm"], two["send-start"][:4]) == (2, "md5", "2027")
    assert "authentication" not in interface('password "one";')


def test_bfd_has_the_options_of_its_protocol():
    outside = 'protocol bfd { interface "swp*" { interval 100 ms; multiplier 5; }; }'
    assert interface("bfd yes;", outside)["bfd"] == {
        "enabled": True,
        "min-rx": "100ms",
        "min-tx": "100ms",
        "multiplier": 5,
    }


def test_bird_uses_the_first_pattern_and_fared_the_most_exact():
    """What BIRD never comes to is left."""
    draft = ospf('area 0 { interface "swp*" { }; interface "swp1" { cost 7; }; };')
    assert list(draft.tree["ospf"]["areas"]["0.0.0.0"]["interfaces"]) == ["swp*"]
    assert "'swp*'" in draft.left[0].reason
    draft = ospf('area 0 { interface -"eth0", "*" { }; };')
    assert list(draft.tree["ospf"]["areas"]["0.0.0.0"]["interfaces"]) == ["*"]
    assert draft.left[0].reason.startswith("-eth0")


STATIC = "protocol static { ipv4; route 198.51.100.0/24 blackhole; }"


@pytest.mark.parametrize(
    ("export", "static"),
    [
        ("export where source = RTS_STATIC", {"metric": 10000, "metric-type": 2}),
        ("export all", {"metric": 10000, "metric-type": 2}),
        ('export where proto = "static1"', {"metric": 10000, "metric-type": 2}),
        (
            "export where source ~ [ RTS_STATIC, RTS_DEVICE ] && net ~ [ 10.0.0.0/8+ ]",
            {"metric": 10000, "metric-type": 2, "filter": "exported"},
        ),
        (
            "export filter { if source = RTS_STATIC then { ospf_metric1 = 5; accept; } reject; }",
            {"metric": 5, "metric-type": 1},
        ),
        ("export none", None),
    ],
)
def test_exports_become_redistribution(export: str, static: dict | None):
    draft = ospf(f'ipv4 {{ import all; {export}; }};\narea 0 {{ interface "a" {{ }}; }};', STATIC)
    assert draft.get(("ospf", "redistribute", "static")) == static


@pytest.mark.parametrize(
    ("export", "items"),
    [
        (
            "where net ~ [ 10.0.0.0/8{16,24}, 192.0.2.0/24 ]",
            ["10.0.0.0/8 ge 16 le 24", "192.0.2.0/24"],
        ),
        ("where net ~ 10.0.0.0/8", ["10.0.0.0/8 le 32"]),
        ("where net = 10.0.0.0/8", ["10.0.0.0/8"]),
        ("where net ~ [ 12.0.0.0/7{6,8} ]", ["12.0.0.0/6", "12.0.0.0/7 le 8"]),
        (
            "where net ~ 10.0.0.0/8 && net !~ [ 10.9.0.0/16+ ]",
            ["!10.9.0.0/16 le 32", "10.0.0.0/8 le 32"],
        ),
        (
            """filter { if net ~ [ 10.9.0.0/16+ ] then reject;
            if (source = RTS_STATIC || source = RTS_DEVICE) && net ~ 10.0.0.0/8 then accept; }""",
            ["!10.9.0.0/16 le 32", "10.0.0.0/8 le 32"],
        ),
    ],
)
def test_prefixes_become_a_filter_that_means_the_same(export: str, items: list[str]):
    draft = ospf(f'ipv4 {{ export {export}; }};\narea 0 {{ interface "a" {{ }}; }};', STATIC)
    wanted = [f"deny {item[1:]}" if item[0] == "!" else f"permit {item}" for item in items]
    assert draft.tree["filters"] == {"exported": wanted}
    assert draft.tree["ospf"]["redistribute"]["static"]["filter"] == "exported"


def test_a_filter_for_each_source_that_it_treats_otherwise():
    draft = ospf(
        "ipv4 { export filter { if source = RTS_DEVICE then accept;"
        " if net ~ [ 10.0.0.0/8+ ] then { ospf_metric2 = 10000; accept; } }; };"
        ' area 0 { interface "a" { }; };',
        f"protocol direct {{ ipv4; }}\n{STATIC}",
    )
    found = draft.tree["ospf"]["redistribute"]
    assert found["connected"] == {"metric": 10000, "metric-type": 2}
    assert found["static"] == {"metric": 10000, "metric-type": 2, "filter": "exported"}


@pytest.mark.parametrize(
    "export",
    [
        "where bgp_path.len > 3",
        "where source = RTS_STATIC || source = RTS_DEVICE && net ~ 10.0.0.0/8",
        "filter { if net ~ 10.0.0.0/8 then { ospf_metric1 = 5; accept; } accept; }",
    ],
)
def test_exports_that_are_not_expressed_are_left(export: str):
    draft = ospf(f"ipv4 {{\nexport {export};\n}};\narea 0 {{ }};", STATIC)
    assert 4 in [remark.source.number for remark in draft.left]
    assert "redistribute" not in draft.tree["ospf"]


def test_definitions_templates_and_includes(tmp_path: Path):
    (tmp_path / "ports.conf").write_text('area 0 { interface "swp*" { cost COST; }; };\nfrob 3;\n')
    text = """
define COST = 7;
template ospf v2 base { ecmp yes limit 8; }
protocol ospf v2 fabric from base {
  include "ports.conf";
}
"""
    draft = imported(text, tmp_path / "bird.conf")
    assert draft.tree["ospf"]["max-paths"] == 8
    assert draft.tree["ospf"]["areas"]["0.0.0.0"]["interfaces"]["swp*"]["cost"] == 7
    assert [remark.source.place for remark in draft.left] == ["ports.conf:2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('include "missing.conf";', "line 1: include 'missing.conf': no such file"),
        ("protocol ospf v2 {", "line 1: a { that is not closed"),
        ("\n}", "line 2: a } without a {"),
        ("protocol ospf v2 from none { }", "no template 'none'"),
        ("a {" * 40, "too many braces"),
    ],
)
def test_a_file_that_bird_would_refuse_is_refused_with_its_place(text, words, tmp_path):
    with pytest.raises(BirdError, match=words.replace("{", r"\{")):
        imported(text, tmp_path / "bird.conf")


def test_files_that_include_each_other_end(tmp_path: Path):
    (tmp_path / "a.conf").write_text('include "a.conf";')
    with pytest.raises(BirdError, match="too many files"):
        imported('include "a.conf";', tmp_path / "bird.conf")


def test_what_fared_does_not_have():
    draft = imported(
        'protocol ospf v3 six { area 0 { interface "a" { }; }; }\n'
        'protocol bgp { neighbor 10.0.0.1 as 65000;\n password "s3cret"; }\n'
        'protocol ospf v2 { area 0 { interface "a" { }; }; }\n'
        "protocol ospf v2 { area 0 { }; }\n"
    )
    reasons = {remark.source.number: remark.reason for remark in draft.left}
    assert "OSPFv3" in reasons[1]
    assert "no 'local as'" in reasons[2]
    assert "one instance" in reasons[5]
    assert "s3cret" not in "".join(map(str, draft.left))
