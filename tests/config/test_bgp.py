"""The bgp section: what people write, the settings the engine gets of it, and what is refused."""

from __future__ import annotations

import ipaddress

import pytest
import yaml
from msgspec.structs import replace

from fared.config import ConfigErrors, Reload, diff, load_runnable, load_text
from fared.core.filters import within
from fared.core.ids import parse_prefix
from fared.core.links import InterfaceAddress, Link
from fared.core.streams import StreamKey
from fared.daemon.change.bgp_settings import bgp_settings, link_settings
from fared.daemon.change.settings import router_settings
from fared.protocols.bgp.settings import BgpSettings, PathBandwidthSettings
from tests.config.links import named

TEXT = """
filters: {pods: [permit 10.0.0.0/8 le 24], ours: [permit any]}
isis: {net: 49.0001.0102.5500.0001.00, interfaces: {swp7: {}}}
bgp:
  as: 4200000001
  path-bandwidth: {send: both, missing: ecmp, demand: 6.4T}
  networks: [10.0.2.0/24, lo, "vlan*"]
  redistribute: {isis: {prefixes: [10.0.0.0/8], tag: 77, med: 5}}
  neighbors:
    "swp*": {import: all, export: [own, igp], description: a spine}
    swp9: {remote-as: internal, shutdown: true}
    10.9.1.2:
      remote-as: 65100
      authentication: {key: secret}
      bfd: true
      import: [all]
      export: none
      filter: {import: pods, export: ours}
      hold-time: 30
      path-bandwidth: {receive: false, value: share}
"""


def bgp(text: str, router_id: int = 1) -> BgpSettings:
    return bgp_settings(load_text(text), router_id, "leaf1")


def link(name: str, *addresses: str) -> Link:
    found = [ipaddress.ip_interface(text) for text in addresses]
    own = [InterfaceAddress(a.version, int(a.ip), a.network.prefixlen) for a in found]
    return replace(named(name), addresses=tuple(own))


def test_a_neighbor_by_address_is_a_setting_of_the_engine():
    """With the settings of the router where it has none of its own."""
    (found,) = bgp(TEXT).neighbors
    assert (found.address, found.remote_as, found.key) == ("10.9.1.2", 65100, StreamKey(b"secret"))
    assert (found.hold_time, found.keepalive) == (30, 10.0)
    assert (found.imports, found.exports) == (("all",), ())
    assert [each.name for each in found.import_filters + found.export_filters] == ["pods", "ours"]
    assert found.path_bandwidth == PathBandwidthSettings(
        "both", receive=False, missing="ecmp", value="share"
    )
    assert found.bfd is not None


def test_the_router_has_its_networks_and_what_it_redistributes():
    """Interfaces among the networks come with the settings of their links."""
    settings = bgp(TEXT)
    assert settings.local_as == 4200000001
    assert settings.demand == 800e9
    assert settings.networks == (parse_prefix("10.0.2.0/24"),)
    isis = settings.redistribute["isis"]
    assert (isis.med, isis.tag) == (5, 77)
    assert isis.filters == (within((parse_prefix("10.0.0.0/8"),)),)


def test_only_the_families_that_it_names_are_routed():
    assert bgp("bgp: {as: 1}").families == (4, 6)
    assert bgp("bgp: {as: 1, address-families: [ipv4]}").families == (4,)


def test_a_start_waits_for_neighbors_as_long_as_a_silent_one_lives():
    """Also for those that no interface is named of."""
    config = load_text("bgp: {as: 1, neighbors: {10.0.0.1: {hold-time: 30}, swp1: {}}}")
    assert router_settings(config, 1, "leaf1").start_deadline == 30.0


def test_its_router_id_can_differ_from_the_routers():
    assert bgp("bgp: {as: 65001}", 7).router_id == 7
    assert bgp("bgp: {as: 65001, router-id: 0.0.0.9}", 7).router_id == 9


def test_an_unnumbered_neighbor_comes_with_its_link():
    """To an interface the most exact key applies, as everywhere."""
    config = load_text(TEXT)
    spine = link_settings(config, named("swp1"))
    assert spine is not None
    assert spine.neighbor is not None
    assert (spine.neighbor.exports, spine.neighbor.enabled) == (("own", "igp"), True)
    assert spine.neighbor.path_bandwidth == PathBandwidthSettings("both", missing="ecmp")
    other = link_settings(config, named("swp9"), share=0.25)
    assert other is not None
    assert other.neighbor is not None
    assert (other.neighbor.remote_as, other.neighbor.enabled, other.share) == ("internal", 0, 0.25)


@pytest.mark.parametrize(
    ("at", "known", "advertised"),
    [
        (named("lo"), True, True),
        (named("vlan10"), True, True),
        (link("eth5", "10.9.1.1/30"), True, False),
        (link("eth5", "10.0.2.1/24"), True, False),
        (link("eth5", "10.0.2.1/25"), False, False),
        (named("eth5"), False, False),
    ],
    ids=lambda value: value.name if isinstance(value, Link) else "",
)
def test_links_count_that_lead_to_a_neighbor_or_are_announced(at, known, advertised):
    """By name, by the network with a neighbor's address, and as a network that is listed."""
    found = link_settings(load_text(TEXT), at)
    assert (found is not None) is known
    if found is not None:
        assert (found.neighbor, found.advertise) == (None, advertised)


def test_a_glob_means_no_neighbor_on_a_loopback():
    config = load_text('bgp: {as: 65001, neighbors: {"*": {}}}')
    assert link_settings(config, named("lo")) is None
    assert link_settings(config, named("eth1")) is not None


def test_bgp_alone_is_a_configuration(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text("bgp: {as: 65001, neighbors: {swp1: {import: all, export: all}}}")
    loaded = load_runnable(file)
    assert list(loaded.config.protocols) == ["bgp"]
    assert not loaded.warnings


def test_what_the_daemon_prints_is_a_configuration_again():
    """Words alone become lists, short forms are written out, and the key is hidden."""
    document = load_text(TEXT).document()
    neighbor = document["bgp"]["neighbors"]["10.9.1.2"]
    assert (neighbor["import"], neighbor["export"]) == (["all"], [])
    assert neighbor["authentication"]["key"] == "<hidden>"
    neighbor["authentication"]["key"] = "secret"
    assert load_text(yaml.safe_dump(document)) == load_text(TEXT)


def changed(before: str, after: str) -> list[tuple[str, Reload]]:
    old, new = (load_text(f"bgp: {{as: 1, {text}}}") for text in (before, after))
    return [(".".join(change.path), change.action) for change in diff(old, new)]


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        ("neighbors: {swp1: {}}", "neighbors: {swp1: {import: all}}", Reload.UPDATE),
        ("neighbors: {swp1: {}}", "neighbors: {swp1: {remote-as: internal}}", Reload.BOUNCE),
        ("neighbors: {swp1: {}}", "neighbors: {}", Reload.BOUNCE),
        ("neighbors: {}", "neighbors: {swp1: {}}", Reload.UPDATE),
        ("neighbors: {10.9.1.2: {}}", "neighbors: {}", Reload.BOUNCE),
        (
            'neighbors: {"swp*": {}}',
            'neighbors: {"swp*": {}, swp1: {hold-time: 30}}',
            Reload.BOUNCE,
        ),
        (
            'neighbors: {"swp*": {}}',
            'neighbors: {"swp*": {}, swp1: {export: all}}',
            Reload.UPDATE,
        ),
        ("networks: []", "networks: [lo]", Reload.UPDATE),
        ("router-id: 0.0.0.1", "router-id: 0.0.0.2", Reload.RESTART),
    ],
)
def test_a_change_says_if_it_ends_a_session(before, after, action):
    ((_, found),) = changed(before, after)
    assert found is action


WRONG = [
    ("bgp: {}", "bgp.as", "the number of this AS"),
    ("bgp:", "bgp.as", "the number of this AS"),
    ("bgp: {as: 0}", "bgp.as", "1..4294967294"),
    ("bgp: {as: 23456}", "bgp.as", "RFC 6793"),
    ("bgp: {as: 1.10}", "bgp.as", "64086 * 65536"),
    ("bgp: {as: 1, neighbors: {swp1: {remote-as: extern}}}", "remote-as", "external, internal"),
    ("bgp: {as: 1, neighbors: {fe80::1: {}}}", "[fe80::1]", "its interface"),
    ("bgp: {as: 1, neighbors: {10.0.0.256: {}}}", "[10.0.0.256]", "the address of a neighbor"),
    (
        "bgp: {as: 1, neighbors: {swp1: {hold-time: 2}}}",
        "hold-time",
        "0, or whole seconds 3..65535",
    ),
    ("bgp: {as: 1, neighbors: {swp1: {keepalive: 9}}}", "keepalive", "less than hold-time"),
    ("bgp: {as: 1, neighbors: {swp1: {export: [mine]}}}", "export[0]", "'own', 'igp', 'bgp' or"),
    ("bgp: {as: 1, neighbors: {swp1: {import: [own]}}}", "import[0]", "'all'"),
    ("bgp: {as: 1, neighbors: {swp1: {filter: {import: x}}}}", "filter.import", "in filters:"),
    ("bgp: {as: 1, neighbors: {swp1: {bfd: {profile: x}}}}", "bfd.profile", "a profile in bfd"),
    ("bgp: {as: 1, networks: [10.0.0.0/33]}", "networks[0]", "a prefix such as"),
    (
        "bgp: {as: 1, path-bandwidth: {value: share}}",
        "path-bandwidth.value",
        "for hosts: write it in",
    ),
    ("bgp: {as: 1, evpn: {}}", "bgp.evpn", "IPv4 and IPv6 unicast"),
    ("bgp: {as: 1, route-map: x}", "bgp.route-map", "no route maps: import and export"),
    ("bgp: {as: 1, neighbors: {swp1: {add-path: true}}}", "add-path", "no ADD-PATH"),
    ("bgp: {as: 1, neighbors: {swp1: {route-reflector-client: true}}}", "-client", "no route refl"),
    ("bgp: {as: 1, neighbors: {swp1: {password: secret}}}", "password", "authentication: {key"),
    ("bgp: {as: 1, redistribute: {default: {}}}", "redistribute.default", "networks: [0.0.0.0/0]"),
    ("bgp: {as: 1, neigbors: {}}", "bgp.neigbors", "did you mean 'neighbors'?"),
]


@pytest.mark.parametrize(("text", "path", "told"), WRONG, ids=[text for text, _, _ in WRONG])
def test_errors_say_what_is_expected_and_what_to_do_instead(text, path, told):
    with pytest.raises(ConfigErrors) as caught:
        load_text(text, "f.yaml")
    (error,) = caught.value.errors
    assert error.path.endswith(path)
    assert str(error).startswith("f.yaml:1:")
    assert told in str(error)
    assert "secret" not in str(error)


def test_a_key_is_not_longer_than_the_kernel_takes():
    text = f"bgp: {{as: 1, neighbors: {{swp1: {{authentication: {{key: {'k' * 81}}}}}}}}}"
    with pytest.raises(ConfigErrors, match="at most 80 bytes, got something else"):
        load_text(text)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("neighbors: {swp1: {import: all}}", "needs export (RFC 8212)"),
        ("neighbors: {swp1: {remote-as: 2, export: all}}", "needs import (RFC 8212)"),
        ("neighbors: {swp1: {import: all, export: igp}}", "redistribute names no source"),
        ("neighbors: {swp1: {remote-as: 1, hold-time: 0}}", "is never noticed"),
        ("neighbors: {swp1: {remote-as: 1, bfd: {min-tx: 1s}}}", "BFD is off here"),
        ("neighbors: {2001:db8::1: {remote-as: 1}, 2001:DB8::1: {remote-as: 1}}", "again"),
        ("networks: [10.0.0.1/24], neighbors: {swp1: {remote-as: 1}}", "10.0.0.0/24 is used"),
        ("redistribute: {isis: {}}, neighbors: {swp1: {remote-as: 1}}", "isis does not run"),
        ("networks: [lo]", "no neighbor: BGP runs with none"),
    ],
)
def test_what_is_probably_not_meant_is_warned_of(tmp_path, text, warning):
    file = tmp_path / "fared.yaml"
    file.write_text(f"bgp: {{as: 1, {text}}}\n")
    (found,) = load_runnable(file).warnings
    assert warning in str(found)


def test_an_internal_neighbor_exchanges_everything_without_words(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text("bgp: {as: 1, neighbors: {swp1: {remote-as: 1}, swp2: {remote-as: internal}}}")
    assert not load_runnable(file).warnings
