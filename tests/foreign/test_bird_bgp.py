"""``protocol bgp`` of BIRD becomes the bgp section; each line that is not taken is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fared.config import load_text
from fared.config.model import Config
from fared.core.filters import Filter
from fared.core.ids import ADDRESS_BITS, Prefix
from fared.extensions.foreign.bird.read import read_bird
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.read import read_frr
from fared.extensions.foreign.write import write_draft
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.kinds import bird, frr
from tests.lab import two_leaves

LEAF = """define SPINES = 65001;
router id 10.255.0.3;
protocol kernel { ipv4 { export all; }; merge paths yes limit 32; }
protocol direct own { ipv4; interface "lo", "h2"; }
filter pods { if net ~ [ 10.0.0.0/8{16,24} ] then accept; reject; }
template bgp fabric {
  local as 65004;
  hold time 9; keepalive time 3; graceful restart on; bfd { interval 100 ms; }; ttl security on;
  ipv4 { import filter pods; export where source = RTS_BGP || proto = "own"; };
}
protocol bgp 'S1' from fabric {
  local 10.128.0.5 as 65004;
  neighbor 10.128.0.4 as SPINES;
  description "first"; password "s3cret";
  ipv4 { import limit 500 action restart; };
}
protocol bgp 'S2' from fabric { neighbor fe80::1%swp2 as SPINES; disabled; ipv6 { import all; }; }
"""
EXPECTED = """
bgp:
  as: 65004
  max-paths: 32
  graceful-restart: {enabled: true}
  networks: [lo, h2]
  neighbors:
    10.128.0.4:
      address-families: [ipv4]
      remote-as: 65001
      hold-time: 9
      keepalive: 3
      bfd: {enabled: true, min-rx: 100ms, min-tx: 100ms}
      ttl-security: true
      local-address: 10.128.0.5
      description: first
      authentication: {key: s3cret}
      maximum-prefixes: 500
      connect-retry: 120                  # BIRD's default
      enforce-first-as: false             # BIRD's default
      import: all
      filter: {import: pods}
      export: [own, bgp]
    swp2:
      remote-as: 65001
      hold-time: 9
      keepalive: 3
      bfd: {enabled: true, min-rx: 100ms, min-tx: 100ms}
      ttl-security: true
      shutdown: true
      connect-retry: 120                  # BIRD's default
      maximum-prefixes: none              # BIRD's default
      enforce-first-as: false             # BIRD's default
      import: all
      filter: {import: pods-2, export: exported}
      export: [own, bgp]
"""


def imported(text: str) -> tuple[Config, Draft, str]:
    draft = read_bird(text, Path("bird.conf"), lambda _: "")
    written = draft.settle(lambda: write_draft(draft, "bird.conf", "BIRD"))
    return load_text(written), draft, written


def neighbor(inside: str, outside: str = "", channel: str = "import all; export all;") -> Draft:
    """A neighbor of another AS with these lines, and what is not taken."""
    own = f"local as 65004; neighbor 10.9.1.2 as 65001; ipv4 {{ {channel} }};"
    return imported(f"{outside}\nprotocol bgp {{ {own}\n{inside}\n}}")[1]


def left(draft: Draft) -> list[str]:
    return [remark.reason for remark in draft.left if not remark.source.text.startswith("protocol")]


def settings(draft: Draft) -> dict:
    found: dict = draft.tree["bgp"]["neighbors"]["10.9.1.2"]
    return found


def test_a_leaf_with_a_template():
    config, draft, written = imported(LEAF)
    assert EXPECTED in written
    assert config.bgp is not None
    assert [str(one) for one in config.bgp.networks] == ["lo", "h2"]
    assert left(draft) == []


def test_defaults_that_differ_are_written():
    draft = neighbor("", channel="")
    assert settings(draft) == {
        "remote-as": 65001,
        "hold-time": 240,
        "keepalive": 80,
        "connect-retry": 120,
        "maximum-prefixes": "none",
        "enforce-first-as": False,
    }
    assert draft.tree["bgp"]["max-paths"] == 1
    assert ["RFC 8212" in remark.reason for remark in draft.differs] == [True, True]
    assert settings(neighbor("hold time 30;"))["keepalive"] == 10


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("allow local as 2;", "give each leaf an AS of its own"),
        ("multihop 2;", "no multihop"),
        ("rr client;", "no route reflection"),
        ("rr cluster id 1.1.1.1;", "no route reflection"),
        ("confederation 65000;", "no confederations"),
        ("rs client;", "no route server"),
        ("ipv4 { add paths on; };", "no ADD-PATH"),
        ("ipv4 { next hop keep; };", "the next hop that neighbors are told is this router"),
        ("ipv4 { import table on; };", "asked for again"),
        ("ipv4 { import limit 10 action warn; };", "fared ends the session"),
        ("long lived graceful restart on;", "no long-lived"),
        ("default bgp_local_pref 50;", "all paths of equal length"),
        ("prefer older on;", "RFC 4271 §9.1.2"),
        ("vpn4 mpls { };", "no such setting"),
        ("ipv4 mpls { };", "IPv4 and IPv6 unicast"),
        ("strict bind on;", "always off"),
        ("frobnicate 7;", "no such setting"),
        ("hold time soon;", "expected a number"),
    ],
)
def test_what_fared_has_not_is_refused_with_its_line(line: str, reason: str):
    (found,) = left(neighbor(line))
    assert reason in found


@pytest.mark.parametrize(
    "line",
    [
        "check link on;",
        "disable after error off;",
        "ipv4 { extended next hop on; gateway direct; add paths off; };",
        "enable extended messages off;",
        "free bind no;",
    ],
)
def test_what_fared_does_anyhow_needs_no_remark(line: str):
    assert left(neighbor(line)) == []


def test_neighbors_that_cannot_be_are_left_out():
    draft = imported(
        """
protocol bgp one { local as 65004; neighbor 10.9.1.2 as 65001; ipv4 { }; }
protocol bgp two { local as 65005; neighbor 10.9.1.4 as 65001; ipv4 { }; }
protocol bgp three { local as 65004; neighbor 10.9.1.2 as 65002; ipv4 { }; }
protocol bgp four { local as 65004; neighbor range 10.9.2.0/24 as 65002; ipv4 { }; }
protocol bgp five { local as 65004; neighbor 10.9.1.6; ipv4 { }; }
protocol bgp six { local as 65004; neighbor 10.9.1.8 as 65001; }
protocol bgp seven { local as 65004; vrf "red"; neighbor 10.9.1.9 as 65001; ipv4 { }; }
"""
    )[1]
    assert list(draft.tree["bgp"]["neighbors"]) == ["10.9.1.2"]
    told = {remark.source.number: remark.reason for remark in draft.left}
    for number, words in (
        (3, "no second AS"),
        (4, "10.9.1.2 is a neighbor already"),
        (5, "has no 'neighbor'"),
        (6, "AS of the neighbor"),
        (7, "no channel"),
        (8, "no VRFs"),
    ):
        assert words in told[number]


NETWORKS = """
protocol static nets { ipv4; route 10.40.0.0/16 blackhole; route 10.41.0.0/16 unreachable; }
protocol static more { ipv4; route 10.50.0.0/16 via 10.9.1.2; }
protocol direct all { ipv4; }
"""


def exported(*policies: str) -> tuple[dict, list[dict], Draft]:
    neighbors = "".join(
        f"protocol bgp {{ local as 65004; neighbor 10.9.{n}.2 as 65001;"
        f" ipv4 {{ import all; export {policy} }}; }}\n"
        for n, policy in enumerate(policies, 1)
    )
    draft = imported(NETWORKS + neighbors)[1]
    return draft.tree["bgp"], list(draft.tree["bgp"]["neighbors"].values()), draft


def test_static_networks_are_announced_and_others_redistributed():
    bgp, (one,), draft = exported('where proto = "nets";')
    assert bgp["networks"] == ["10.40.0.0/16", "10.41.0.0/16"]
    assert (one["export"], "redistribute" in bgp) == ("own", False)
    taken = [remark.source.text for remark in draft.left if "nets" in remark.source.text]
    assert taken == []
    bgp, (one,), draft = exported("all;")
    assert (one["export"], bgp["redistribute"]) == (
        ["own", "igp", "bgp"],
        {"static": {}, "connected": {}},
    )
    assert any("ip route add" in remark.reason for remark in draft.differs)
    bgp, (one,), _ = exported("none;")
    assert (one["export"], "networks" in bgp) == ("none", False)


def test_neighbors_that_are_told_other_networks_are_refused():
    _, (one, two, three), draft = exported(
        'where proto = "nets";', "where source = RTS_STATIC;", "where source = RTS_BGP;"
    )
    assert ["export" in each for each in (one, two, three)] == [False, True, True]
    assert ["other neighbors" in reason for reason in left(draft)] == [True]


def test_a_filter_that_sets_attributes_is_refused():
    for inside in (
        "bgp_local_pref = 200; accept;",
        "if net ~ 10.0.0.0/8 then { bgp_med = 5; accept; } reject;",
        "if bgp_path ~ [= * 65001 * =] then accept; reject;",
        "if source = RTS_STATIC then accept; if net ~ 10.0.0.0/8 then accept; reject;",
    ):
        draft = exported(f"filter {{ {inside} }};")[2]
        assert any("export is left out" in reason for reason in left(draft)), inside


def test_ospf_wins_as_in_bird():
    config, _, _ = imported(
        "protocol ospf v2 { area 0 { }; }\n"
        "protocol bgp { local as 65004; neighbor 10.9.1.2 as 65001; ipv4 { }; }"
    )
    assert config.ospf is not None
    assert config.bgp is not None
    assert config.ospf.preference < config.bgp.preference < config.bgp.internal_preference


@pytest.mark.parametrize("sessions", ["ipv4", "dual", "unnumbered"])
def test_a_router_of_the_lab_is_the_same_imported_from_both_makes(sessions: str):
    """But for what differs by default: the order of AS paths, and whose AS is first."""
    more = {"bgp-sessions": sessions}
    text = two_leaves.topology("x", protocol="bgp", more=more, **dict.fromkeys(("S1", "L1"), "frr"))
    source = topology.from_document(yaml.safe_load(text), Path("x"))
    plan = make_plan(source).node("L1")
    of_frr = read_frr("\n".join(frr._bgpd(plan)), {}).tree["bgp"]
    of_bird = imported("\n".join(bird._config(plan)))[1].tree["bgp"]
    assert of_frr["as"] == of_bird["as"] == 65003
    assert of_frr["max-paths"] == of_bird["max-paths"] == 64
    assert list(of_frr["neighbors"]) == list(of_bird["neighbors"])
    for name, theirs in of_frr["neighbors"].items():
        mine = of_bird["neighbors"][name]
        both = {"remote-as", "address-families", "hold-time", "connect-retry", "import"}
        assert {key: theirs.get(key) for key in both} == {key: mine.get(key) for key in both} | {
            "hold-time": theirs.get("hold-time"),
            "import": "all",
        }


# -- filters decide as BIRD does -------------------------------------------------------------------

BITS = 3
FAMILY = st.sampled_from([4, 6])


def universe(family: int) -> list[Prefix]:
    """All prefixes of so many bits."""
    bits = ADDRESS_BITS[family]
    return [
        Prefix(family, number << (bits - length), length)
        for length in range(BITS + 1)
        for number in range(1 << length)
    ]


class Pattern:
    """A prefix of a set of BIRD, with its lengths: ``+``, ``-``, ``{least, most}``, or itself."""

    def __init__(self, prefix: Prefix, least: int, most: int, form: str) -> None:
        self.prefix = prefix
        own = prefix.length
        self.least, self.most = {
            "+": (own, ADDRESS_BITS[prefix.family]),
            "-": (0, own),
            "{}": (least, most),
            "": (own, own),
        }[form]
        self.text = f"{prefix}{f'{{{least},{most}}}' if form == '{}' else form}"

    def matches(self, net: Prefix) -> bool:
        """As BIRD's manual: the first bits are equal, as many as the shorter one has."""
        shared = min(net.length, self.prefix.length)
        drop = ADDRESS_BITS[net.family] - shared
        equal = net.network >> drop == self.prefix.network >> drop
        return equal and self.least <= net.length <= self.most


@st.composite
def filters(draw: st.DrawFn) -> tuple[int, list[tuple[list[Pattern], bool, bool]], bool]:
    """A family, steps of patterns, whether negated and accepted, and the end."""
    family = draw(FAMILY)

    def pattern() -> Pattern:
        least = draw(st.integers(0, BITS))
        most = draw(st.integers(least, BITS))
        form = draw(st.sampled_from(["+", "-", "{}", ""]))
        return Pattern(draw(st.sampled_from(universe(family))), least, most, form)

    steps = [
        (
            [pattern() for _ in range(draw(st.integers(1, 2)))],
            draw(st.booleans()),
            draw(st.booleans()),
        )
        for count in draw(st.lists(st.integers(1, 2), max_size=3))
    ]
    return family, steps, draw(st.booleans())


@given(filters(), st.sampled_from(["import", "export"]))
def test_a_filter_of_a_neighbor_decides_every_prefix_as_in_bird(
    found: tuple[int, list[tuple[list[Pattern], bool, bool]], bool], word: str
):
    family, steps, end = found
    lines = [
        f"if net {'!~' if negated else '~'} [ {', '.join(each.text for each in patterns)} ] then"
        f" {'accept' if accepted else 'reject'};"
        for patterns, negated, accepted in steps
    ]
    body = " ".join([*lines, "accept;" if end else "reject;"])
    other = "export" if word == "import" else "import"
    config, draft, _ = imported(
        f"protocol bgp {{ local as 65004; neighbor 10.9.1.2 as 65001;"
        f" ipv{family} {{ {other} all; {word} filter {{ {body} }}; }}; }}"
    )
    assert left(draft) == []
    assert config.bgp is not None
    (one,) = config.bgp.neighbors.values()
    words = one.import_ if word == "import" else one.export
    name = one.filter.import_ if word == "import" else one.filter.export
    for net in universe(family):
        decided = (
            accepted
            for patterns, negated, accepted in steps
            if any(each.matches(net) for each in patterns) != negated
        )
        passes = bool(words) and (
            name is None or Filter(name, tuple(config.filters[name])).permits(net)
        )
        assert passes == next(decided, end), net
