"""Sick links: when a link is derated by its errors, how far, and when it recovers."""

import pytest

from fared.core.link_errors import ErrorCounters, ErrorSettings, ErrorStep, LinkErrors

SETTINGS = ErrorSettings(
    window=10.0,
    errors=10,
    steps=(ErrorStep(1e-4, 0.25), ErrorStep(1e-2, 0.0)),
    hold_down=60.0,
)
RATE = 100_000
"""Packets a second."""


class Wire:
    """A link that is judged every second."""

    def __init__(self) -> None:
        self.judge = LinkErrors(SETTINGS)
        self.now, self.packets, self.errors = 0.0, 0, 0
        self.judge.sample(ErrorCounters(0, 0), 0.0)

    def run(self, seconds: int, errors: int = 0, packets: int = RATE) -> list[float]:
        """Let time pass with so many errors a second; return the shares after each second."""
        shares = []
        for _ in range(seconds):
            self.now += 1.0
            self.packets += packets
            self.errors += errors
            self.judge.sample(ErrorCounters(self.packets, self.errors), self.now)
            shares.append(self.judge.share)
        return shares


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_link_with_few_errors_is_well(wire):
    assert set(wire.run(600, errors=1)) == {1.0}  # a ratio of 1e-5
    assert wire.judge.reason == ""


def test_a_link_is_derated_in_the_first_second_of_its_errors(wire):
    wire.run(30)
    assert wire.run(1, errors=200) == [0.25]
    assert wire.judge.reason == "200 errors in 1000000 packets"


def test_more_errors_take_the_next_step_at_once(wire):
    wire.run(2, errors=100)
    assert wire.run(2, errors=3000)[-1] == 0.0


def test_a_link_recovers_after_the_hold_down_without_errors(wire):
    wire.run(1, errors=100)
    shares = wire.run(80)
    assert shares.index(1.0) in range(60, 72)
    assert wire.judge.reason == ""


def test_errors_now_and_then_keep_a_link_derated(wire):
    """A burst every 50 s: shorter than the hold-down."""
    wire.run(20)
    wire.run(1, errors=2000)
    for _ in range(5):
        assert set(wire.run(49)) == {0.25}
        wire.run(1, errors=2000)


def test_a_link_recovers_step_by_step(wire):
    wire.run(10, errors=3000)
    assert wire.judge.share == 0.0
    shares = wire.run(90, errors=30)
    assert shares[0] == 0.0
    assert shares[-1] == 0.25
    assert wire.run(90)[-1] == 1.0


def test_counters_that_are_reset_count_for_nothing(wire):
    wire.run(5, errors=1)
    wire.judge.sample(ErrorCounters(3, 0), wire.now + 1)
    wire.judge.sample(ErrorCounters(RATE, 0), wire.now + 2)
    assert wire.judge.share == 1.0


def test_errors_without_any_packet_are_the_worst_ratio(wire):
    wire.run(20)
    assert wire.run(20, errors=20, packets=0)[-1] == 0.0


def test_fewer_errors_than_the_least_count_for_nothing(wire):
    assert wire.run(1, errors=9, packets=10) == [1.0]
