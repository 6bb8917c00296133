"""The conditions under which a changed bandwidth is advertised."""

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_prefix
from fared.core.links import Link
from fared.paths.te.advertise import (
    DEFAULT_ADVERTISE,
    AdvertisedBandwidth,
    AdvertisedLink,
    Bandwidth,
    PathCapacities,
    advertise_at,
    te_attributes,
)
from fared.protocols.isis.settings import CircuitSettings
from fared.protocols.ospf.settings import InterfaceSettings

C = 100.0
PREFIX = parse_prefix("10.0.1.0/24")


def at(before, after, *, now=10.0, advertised_at=9.5, capacity=C, new_capacity=C):
    return advertise_at(
        AdvertisedBandwidth(Bandwidth(capacity, before), advertised_at),
        Bandwidth(new_capacity, after),
        threshold=0.03,
        minimum_interval=1.0,
        now=now,
    )


@pytest.mark.parametrize("capacity", [C, None])
@pytest.mark.parametrize("settings", [InterfaceSettings(0), CircuitSettings()])
def test_a_configured_delay_is_advertised_in_microseconds(settings, capacity):
    """RFC 7471 §4.1, RFC 8570 §4.1."""
    link = AdvertisedLink(Link(1, "e", up=True, mtu=1500, speed=capacity), settings)
    assert te_attributes(link, 10).delay is None
    link.settings = replace(settings, delay=0.0201)
    assert te_attributes(link, 10).delay == 20100


def test_the_first_value_is_advertised_at_once():
    decided = advertise_at(None, Bandwidth(C), threshold=0.03, minimum_interval=1.0, now=5.0)
    assert decided == 5.0


@pytest.mark.parametrize("load", [47.0, 50.0, 53.0])
def test_changes_within_the_threshold_stay_local(load):
    assert at(50.0, load) is None


def test_less_bandwidth_is_told_at_once():
    assert at(50.0, 53.1) == 10.0


def test_more_bandwidth_waits_for_the_minimum_interval():
    assert at(50.0, 40.0, advertised_at=9.5) == 10.5
    assert at(50.0, 40.0, advertised_at=3.0) == 10.0


@pytest.mark.parametrize("capacity", [50.0, 99.9, 200.0, None])
def test_a_changed_capacity_is_always_told_at_once(capacity):
    assert at(0.0, 0.0, new_capacity=capacity) == 10.0


def test_load_on_a_link_of_unknown_capacity_is_never_announced():
    assert at(0.0, 80.0, capacity=None, new_capacity=None) is None


def test_overload_counts_as_nothing_available():
    assert Bandwidth(C, 130.0).available == 0.0
    assert at(100.0, 150.0) is None


def test_while_no_load_is_known_all_of_the_capacity_counts_and_no_load_is_told():
    unknown = Bandwidth(C, None)
    assert unknown.available == C
    assert unknown.advertised == (None, None)
    assert Bandwidth(C, 30.0).advertised == (70.0, 30.0)
    assert Bandwidth(None, 30.0).advertised == (None, None)


def test_a_load_that_is_no_longer_known_is_withdrawn_like_one_that_ended():
    assert at(50.0, None, advertised_at=3.0) == 10.0
    assert at(50.0, None, advertised_at=9.5) == 10.5
    assert at(2.0, None) is None


def path_capacities(*changes: float) -> list[float | None]:
    """What is advertised after each change of a path capacity of 100."""
    paths, advertised, found = PathCapacities(), 100.0, []
    for capacity in changes:
        advertised = paths.advertise(PREFIX, advertised, capacity, DEFAULT_ADVERTISE)
        found.append(advertised)
    return found


def test_small_changes_of_a_path_capacity_are_advertised_when_they_have_added_up():
    assert path_capacities(99.0, 98.0, 97.0, 96.0, 97.0) == [100.0, 100.0, 100.0, 96.0, 96.0]


def test_a_path_that_is_whole_again_is_advertised_in_full_however_small_the_last_step():
    assert path_capacities(50.0, 98.0, 99.0, 100.0, 99.0) == [50.0, 98.0, 98.0, 100.0, 100.0]


def test_a_path_capacity_that_appears_or_disappears_is_always_advertised():
    paths = PathCapacities()
    assert paths.advertise(PREFIX, None, 100.0, DEFAULT_ADVERTISE) == 100.0
    assert paths.advertise(PREFIX, 100.0, None, DEFAULT_ADVERTISE) is None
