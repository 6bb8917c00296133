"""The settings of the engines, from the file."""

import pytest
import yaml

from fared.config import ConfigErrors, load_text
from fared.core.filters import within
from fared.core.ids import AreaId, RouterId, ipv4_prefix, parse_prefix
from fared.core.routes import RouteSource
from fared.daemon.change.isis_settings import isis_settings
from fared.daemon.change.ospf_settings import interface_settings, ospf_settings
from fared.protocols.igp.reduction import Reduction, ReductionSettings
from fared.protocols.isis import settings as isis
from fared.protocols.isis.ids import LevelSet
from fared.protocols.ospf import settings as ospf
from fared.protocols.ospf.settings import (
    AreaSettings,
    InterfaceSettings,
    NetworkType,
    RangeSettings,
    Redistribution,
    TtlSecurity,
)
from tests.config.links import named

CONFIG = load_text("""
interfaces: {"swp*": {bandwidth: 100G}}
ospf:
  stub-router: true
  flooding: {reduction: leaf, delay: 300ms}
  areas:
    1: {type: stub, interfaces: {"swp*": {cost: 7, hello-interval: 2, mtu-ignore: true}}}
    0: {interfaces: {lo: {passive: true}}}
adaptive: {metric: available, announce-threshold: 4%}
""")


def test_engine_settings_carry_the_resolved_identity():
    """Router id and hostname come from the daemon, the rest from the file."""
    settings = ospf_settings(CONFIG, 0x0A000001, "leaf1")
    assert settings.router_id == RouterId(0x0A000001)
    assert settings.hostname == "leaf1"
    assert settings.areas == (AreaSettings(AreaId(0)), AreaSettings(AreaId(1), stub=True))
    assert settings.stub_router
    assert settings.reduction == ReductionSettings(Reduction.LEAF, 0.3)
    assert settings.advertise.threshold == 0.04


def test_interface_settings_are_resolved_per_name():
    """A glob becomes the settings of one interface, with the operator's bandwidth."""
    assert interface_settings(CONFIG, named("swp1")) == InterfaceSettings(
        area=AreaId(1),
        cost=7,
        hello_interval=2,
        router_dead_interval=8,
        mtu_ignore=True,
        capacity=100e9 / 8,
    )
    loopback = interface_settings(CONFIG, named("lo"))
    assert loopback is not None
    assert loopback.network_type is NetworkType.LOOPBACK
    assert interface_settings(CONFIG, named("eth0")) is None


def test_ttl_security_is_off_on_or_for_sending_only():
    """The values are BIRD's; a reload applies them without ending adjacencies."""
    written = {"a": "true", "b": "tx-only", "c": "false"}
    keys = ", ".join(f"{name}: {{ttl-security: {value}}}" for name, value in written.items())
    config = load_text(f"ospf: {{areas: {{0: {{interfaces: {{{keys}, d: {{}}}}}}}}}}")
    settings = [interface_settings(config, named(name)) for name in "abcd"]
    assert [found and found.ttl_security for found in settings] == [
        TtlSecurity.ON,
        TtlSecurity.TX_ONLY,
        TtlSecurity.OFF,
        TtlSecurity.OFF,
    ]
    assert load_text(yaml.safe_dump(config.document())) == config
    with pytest.raises(ConfigErrors, match="true, false or tx-only"):
        load_text("ospf: {areas: {0: {interfaces: {a: {ttl-security: 255}}}}}")


def test_prefix_suppression_of_the_router_does_not_apply_to_passive_interfaces():
    """The setting of an interface takes precedence, also of a passive one."""
    entries = """
  areas:
    0:
      interfaces:
        lo: {passive: true}
        host: {passive: true}
        hidden: {passive: true, prefix-suppression: true}
        shown: {prefix-suppression: false}
        link: {}
"""
    for line, suppressed in (("prefix-suppression: true", ["hidden", "link"]), ("", ["hidden"])):
        config = load_text(f"ospf:\n  {line}{entries}")
        names = ("lo", "host", "hidden", "shown", "link")
        settings = {name: interface_settings(config, named(name)) for name in names}
        assert [n for n, found in settings.items() if found.prefix_suppression] == suppressed


def test_broadcast_networks_and_priorities_reach_the_engine():
    """The default is point-to-point for every type of interface."""
    lan = "network-type: broadcast, priority: 0"
    config = load_text(f"ospf: {{areas: {{0: {{interfaces: {{a: {{{lan}}}, b: {{}}}}}}}}}}")
    a, b = interface_settings(config, named("a")), interface_settings(config, named("b"))
    assert a is not None
    assert b is not None
    assert (a.network_type, a.router_priority) == (NetworkType.BROADCAST, 0)
    assert (b.network_type, b.router_priority) == (NetworkType.POINT_TO_POINT, 1)


def test_only_listed_sources_are_redistributed_and_omitted_settings_have_defaults():
    """FRR's ``redistribute static metric-type 1``, and FRR's defaults for omitted settings."""
    sources = "{static: {metric-type: 1, prefixes: [10.2.0.0/16, 10.1.0.0/16]}, connected: }"
    config = load_text(f"ospf: {{redistribute: {sources}}}")
    settings = ospf_settings(config, 1, None).redistribute
    assert settings.connected == Redistribution(metric=20, type_2=True)
    inside = within((parse_prefix("10.1.0.0/16"), parse_prefix("10.2.0.0/16")))
    assert settings.static == Redistribution(metric=20, type_2=False, filters=(inside,))
    assert settings.default is None
    assert not ospf_settings(load_text("ospf: {redistribute: }"), 1, None).redistribute


def test_a_default_route_is_announced_only_where_it_is_asked_for():
    settings = ospf_settings(
        load_text("ospf: {redistribute: {default: {always: true, metric-type: 1}}}"), 1, None
    ).redistribute
    assert settings.default == Redistribution(metric=10, type_2=False)
    assert settings.default_always
    assert settings.static is None


def test_a_printed_configuration_redistributes_the_same_sources():
    """A source that is not listed must not appear with its defaults."""
    config = load_text("ospf: {redistribute: {static: {metric: 5}}}")
    written = config.document()["ospf"]["redistribute"]
    assert list(written) == ["static"]
    assert load_text(yaml.safe_dump(config.document())) == config


def test_without_an_ospf_section_there_is_no_engine():
    """The daemon creates an engine only if the file has the section."""
    with pytest.raises(ValueError, match="no ospf section"):
        ospf_settings(load_text(""), 1, None)


def test_ranges_come_from_the_area_section():
    """Ranges are in order of prefix; the engine computes a cost that is omitted."""
    config = load_text("""
ospf:
  path-capacity-sub-tlv: 0
  areas:
    1:
      type: stub
      summary: false
      default-cost: 5
      ranges: {10.2.0.0/16: {cost: 20}, 10.1.0.0/16: {advertise: false}}
""")
    settings = ospf_settings(config, 0x0A000001, None)
    ranges = (
        RangeSettings(ipv4_prefix(0x0A010000, 16), advertise=False),
        RangeSettings(ipv4_prefix(0x0A020000, 16), cost=20),
    )
    wanted = AreaSettings(AreaId(1), stub=True, summary=False, default_cost=5, ranges=ranges)
    assert settings.areas == (wanted,)
    assert settings.path_capacity_code is None


def test_routes_of_another_protocol_get_its_tag_and_none_of_our_own_are_taken_back():
    """The tags that say where routes come from: those of all borders, and the one set here."""
    text = """
    ospf: {redistribute: {isis: {metric: 5, metric-type: 1}, bgp: }}
    isis: {net: 49.0001.0102.5500.0001.00, redistribute: {ospf: {tag: 77}}}
    """
    config = load_text(text)
    found = ospf_settings(config, 1, None).redistribute
    assert found.isis == ospf.Redistribution(5, type_2=False, tag=None, refused=(4200000110, 77))
    assert found.bgp == ospf.Redistribution(tag=None, refused=(4200000110,))
    there = isis_settings(config, 1, None).redistribute
    assert there.ospf == isis.Redistribution(LevelSet.TWO, tag=77, refused=(4200000115,))
    assert found.tags == {RouteSource.BGP: 4200000020, RouteSource.ISIS: 4200000115}
    assert there.tags == {RouteSource.OSPF: 77}
