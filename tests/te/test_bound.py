"""The bound of flooding for any loads: five in any second, three a second on average."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import RouterId
from fared.paths.te.advertise import DEFAULT_ADVERTISE, AdvertisedBandwidth, Bandwidth, advertise_at
from fared.protocols.igp.throttle import Throttle
from fared.protocols.isis.ids import SystemId
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.ospf.settings import OspfSettings

CAPACITY = 1e9
THROTTLES = {
    "ospf": OspfSettings(RouterId(1)).throttle,
    "isis": IsisSettings(SystemId(1), ()).throttle,
}


def throttle_of(protocol: str) -> Throttle:
    return Throttle(THROTTLES[protocol])


def flooded(loads: list[tuple[float, float]], protocol: str) -> list[float]:
    """The times of originations for one link, given the times and values of its loads."""
    throttle, sent = throttle_of(protocol), []
    announced: AdvertisedBandwidth | None = None
    requested: float | None = None
    announce: float | None = None
    moments = sorted(
        [(at, load) for at, load in loads] + [(at + 8.0, None) for at, _ in loads[-1:]]
    )
    current, now = Bandwidth(CAPACITY, 0.0), 0.0
    for at, load in moments:
        while True:
            waiting = [
                t
                for t in (announce, throttle.due(requested) if requested is not None else None)
                if t is not None and t <= at
            ]
            if not waiting:
                break
            now = max(now, min(waiting))
            if announce is not None and announce <= now:
                announced, announce = AdvertisedBandwidth(current, now), None
                requested = now if requested is None else requested
            if requested is not None and throttle.due(requested) <= now:
                sent.append(now)
                throttle.sent(requested, now)
                requested = None
        now = at
        if load is not None:
            current = Bandwidth(CAPACITY, load * CAPACITY)
            announce = advertise_at(
                announced,
                current,
                threshold=DEFAULT_ADVERTISE.threshold,
                minimum_interval=DEFAULT_ADVERTISE.minimum_interval,
                now=now,
            )
    return sent


def most_in_a_second(sent: list[float]) -> int:
    return max((sum(at <= other < at + 1.0 for other in sent) for at in sent), default=0)


@pytest.mark.parametrize("protocol", THROTTLES)
@pytest.mark.parametrize("period", [0.01, 0.1, 1.0])
def test_a_storm_of_loads_stays_within_the_bound(protocol, period):
    dice = random.Random(3)
    loads = [(n * period, dice.random()) for n in range(int(60 / period))]
    sent = flooded(loads, protocol)
    assert sent
    assert most_in_a_second(sent) <= 5
    assert len(sent) <= 3 * 60


@pytest.mark.parametrize("protocol", THROTTLES)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([0.01, 0.05, 0.11, 0.35, 1.0, 1.01, 2.0, 5.0]), st.floats(0, 1)),
        min_size=1,
        max_size=60,
    )
)
def test_no_pattern_of_loads_breaks_the_bound(protocol, steps):
    """This includes patterns that wait just until the next burst is allowed."""
    now, loads = 0.0, []
    for gap, load in steps:
        now += gap
        loads.append((now, load))
    sent = flooded(loads, protocol)
    assert most_in_a_second(sent) <= 5
    assert len(sent) <= 3 * (sent[-1] - sent[0]) + 5


@pytest.mark.parametrize("protocol", THROTTLES)
def test_loads_within_the_threshold_flood_nothing(protocol):
    dice = random.Random(4)
    loads = [(0.0, 0.4)] + [(n * 0.1, 0.4 + dice.uniform(-0.029, 0.029)) for n in range(1, 600)]
    assert len(flooded(loads, protocol)) == 1
