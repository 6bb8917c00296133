"""The settings of the router, from the file and the clocks."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from enum import Enum

import pytest
from msgspec import Struct

from fared.config import ConfigErrors, load_text, merged
from fared.config.section import Section
from fared.core.bfd import BfdSettings
from fared.core.links import InterfaceAddress, Link
from fared.daemon.change.machine import sysctls_of
from fared.daemon.change.settings import (
    counts_boots,
    fib_settings,
    link_events,
    router_settings,
    spray_settings,
)
from fared.paths.fib.round_robin import rotated, smooth
from fared.paths.fib.settings import Granularity
from tests.daemon.test_reload_promises import BASES, config_of, written_out

CONFIG = load_text("ospf: {areas: {0: {interfaces: {lo: {passive: true}}}}}")


def test_boots_are_counted_where_a_key_has_extended_sequence_numbers():
    """RFC 7474: any key of any interface counts; without one, nothing is stored on disk."""
    ospf = {"areas": {0: {"interfaces": {"swp1": {}, "swp2": {}}}}}
    one, other = (
        {"algorithm": "hmac-sha-256", "key-id": number, "key": "k", "extended-sequence": extended}
        for number, extended in ((1, False), (2, True))
    )
    found = []
    for authentication in (one, other, {"keys": [one, other]}):
        ospf["areas"][0]["interfaces"]["swp2"]["authentication"] = authentication
        found.append(counts_boots(load_text(json.dumps({"ospf": ospf}))))
    assert found == [False, True, True]
    assert not counts_boots(CONFIG)


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
def test_sysctls_are_set_as_families_and_links_need(text, link, ipv6, rp_filter):
    """IS-IS routes IPv4 over IPv6 next hops on links without IPv4 addresses; OSPF does not."""
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


@pytest.mark.parametrize("metric", ["capacity", "available", "equalise"])
@pytest.mark.parametrize("written", ["200/s", "200"])
def test_the_budget_of_announcements_holds_with_every_metric(metric, written):
    text = OSPF + f"\nadaptive: {{metric: {metric}, announce-budget: {written}}}"
    protocols = router_settings(load_text(text), 1, "leaf1").protocols
    assert [engine.advertise.budget for engine in protocols.values()] == [200.0]


def test_equalising_is_another_rule_for_available_bandwidth():
    """Its dead zone is the announce threshold: smaller differences are not advertised."""
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
def test_the_time_constant_depends_on_the_measuring_interval(
    written, period, loop_delay, stale_after
):
    """The delay of the loop limits how fast weights follow; slow measurements are not stale."""
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


def test_routers_begin_their_rounds_at_phases_that_are_far_apart():
    config = load_text(OSPF + "\nadaptive: {granularity: packet}")
    phases = sorted(spray_settings(config, 0x0AFF0000 + n).phase for n in range(8))
    gaps = [
        after - before for before, after in zip(phases, [*phases[1:], phases[0] + 1], strict=True)
    ]
    assert min(gaps) > 0.05


def test_bursts_of_eight_leaves_do_not_meet_at_a_spine():
    """At each turn of a round of four equal spines, no spine gets packets of more than three."""
    config = load_text(OSPF + "\nadaptive: {granularity: packet}")
    order = smooth((1, 1, 1, 1))
    rounds = [rotated(order, spray_settings(config, 0x0AFF0000 + n).phase) for n in range(8)]
    assert max(max(Counter(turn).values()) for turn in zip(*rounds, strict=True)) <= 3


def test_the_phase_of_a_router_without_router_id_is_that_of_its_system_id():
    texts = (ISIS % "ipv4", (ISIS % "ipv4").replace(".0001.00,", ".0002.00,"))
    first, second = (spray_settings(load_text(text), 0).phase for text in texts)
    assert 0.05 < abs(first - second) < 0.95


def test_a_table_that_a_reload_leaves_in_use_is_not_sprayed_over():
    running = load_text(OSPF + "\nfib: {table: 100}")
    wanted = load_text(OSPF + "\nadaptive: {granularity: packet}")
    assert spray_settings(wanted, 1).granularity is Granularity.PACKET
    assert spray_settings(merged(running, wanted), 1).by_flow


def _held(value: object) -> Iterator[object]:
    """Yield a value and all that it holds."""
    yield value
    if isinstance(value, Struct):
        value = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, Collection) and not isinstance(value, str | bytes | Enum):
        for part in value:
            yield from _held(part)


@pytest.mark.parametrize("protocol", BASES)
def test_engines_get_no_section_of_the_configuration(protocol):
    """Fields of the same name are passed as they are, so a section among them is converted."""
    config, link = config_of(written_out(protocol)), Link(2, "e1", True, 1500)
    held = list(_held([router_settings(config, 1, "leaf1"), *link_events(config, link)]))
    assert any(isinstance(value, BfdSettings) for value in held)
    assert not [value for value in held if isinstance(value, Section)]
