"""From the file and the clocks to what the router is told."""

import pytest

from fared.config import ConfigErrors, load_text
from fared.core.links import InterfaceAddress, Link
from fared.daemon.settings import fib_settings, router_settings, sysctls_of, with_clock

CONFIG = load_text("ospf: {areas: {0: {interfaces: {lo: {passive: true}}}}}")
WALL_NS = 1_800_000_000_500_000_000


def test_the_engine_learns_what_the_wall_clock_says():
    """Loop time plus epoch is the time of day; 64-bit sequence numbers begin at nanoseconds."""
    settings = with_clock(router_settings(CONFIG, 1, "leaf1"), WALL_NS, 250.0)
    assert settings.ospf.epoch + 250.0 == 1_800_000_000.5
    assert settings.ospf.auth_sequence == WALL_NS
    assert settings.ospf.auth_sequence < 1 << 63


LO = Link(1, "lo", True, 65536, (InterfaceAddress(4, 0x7F000001, 8),), loopback=True)
BARE = Link(2, "swp1", True, 1500)
NUMBERED = Link(2, "swp1", True, 1500, (InterfaceAddress(4, 0x0A000001, 31),))
OSPF = "ospf: {areas: {0: {interfaces: {lo: {passive: true}, swp1: {}}}}}"
ISIS = (
    "isis: {net: 49.0001.0102.5500.0001.00, address-families: [%s],"
    " interfaces: {lo: {passive: true}, swp1: {}}}"
)


@pytest.mark.parametrize(
    ("text", "link", "ipv6", "rp_filter"),
    [
        (OSPF, NUMBERED, False, "2"),
        (OSPF, BARE, False, "0"),
        (ISIS % "ipv4", NUMBERED, False, "2"),
        (ISIS % "ipv4", BARE, True, "0"),
        (ISIS % "'ipv4', 'ipv6'", NUMBERED, True, "2"),
        (ISIS % "ipv6", BARE, True, "2"),
    ],
)
def test_the_kernel_is_set_to_what_families_and_links_need(text, link, ipv6, rp_filter):
    """IS-IS carries IPv4 over IPv6 where a link has no IPv4 address, OSPF never does."""
    wanted = {w.path: w.value for w in sysctls_of(load_text(text), 1, [LO, link])}
    assert ("net/ipv6/conf/swp1/disable_ipv6" in wanted) is ipv6
    assert wanted["net/ipv4/conf/swp1/rp_filter"] == rp_filter


def test_weights_lean_only_where_the_file_says_for_how_many_flows():
    text = OSPF + "\nadaptive: {%s}"
    found = [
        router_settings(load_text(text % written), 1, "leaf1").solver.flows
        for written in ("metric: capacity", "flows: 128", "metric: available, flows: 128")
    ]
    assert found == [None, 128, 128]
    with pytest.raises(ConfigErrors, match="flows"):
        load_text(text % "flows: 0")


def test_equalising_is_another_rule_for_available_bandwidth():
    """What nobody announces is no difference: its dead zone is the announce threshold."""
    text = OSPF + "\nadaptive: {metric: %s, announce-threshold: 4%%}"
    found = {
        metric: router_settings(load_text(text % metric), 1, "leaf1").solver
        for metric in ("capacity", "available", "equalise")
    }
    assert [str(solver.mode) for solver in found.values()] == ["capacity", "available", "available"]
    assert [solver.adaptation.equalise for solver in found.values()] == [False, False, True]
    assert found["equalise"].adaptation.threshold == 0.04


@pytest.mark.parametrize(
    ("written", "period", "loop_delay", "stale_after"),
    [("100ms", 0.1, 1.1, 10.0), ("1s", 1.0, 1.55, 10.0), ("10s", 10.0, 6.05, 50.0)],
)
def test_the_loop_knows_how_often_load_is_measured(written, period, loop_delay, stale_after):
    """Its delay decides how slow weights must be; a slow measurement does not look stale."""
    text = OSPF + f"\nadaptive: {{metric: available, measure-period: {written}}}"
    adaptation = router_settings(load_text(text), 1, "leaf1").solver.adaptation
    assert adaptation.measure_period == period
    assert adaptation.loop_delay == pytest.approx(loop_delay)
    assert adaptation.stale_after == stale_after
    assert adaptation.tau == pytest.approx(max(20.0, 10 * loop_delay))


def test_groups_in_the_kernel_are_of_the_kind_and_size_that_the_file_says():
    text = OSPF + "\nfib: {group-type: resilient, buckets: 128}"
    settings = fib_settings(load_text(text))
    assert (settings.resilient, settings.buckets) == (True, 128)
    assert router_settings(load_text(text), 1, "leaf1").fib == settings
    assert not fib_settings(load_text(OSPF)).resilient
