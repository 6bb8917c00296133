"""Loads of links whose packets a switch chip counts, beside those of the kernel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fared.core.link_facts import PlatformLoad
from fared.core.links import Link
from fared.daemon.loop.platform_loads import PlatformLoads

STALE = 10.0


class Chip:
    """A platform that counts ports of some names."""

    name = "chip"

    def __init__(self, **loads: PlatformLoad | None) -> None:
        self.loads = loads

    def counts(self, name: str) -> bool:
        return name in self.loads

    def load(self, name: str) -> PlatformLoad | None:
        return self.loads[name]


def both(chip: Any, kernel: dict[int, float], expired: tuple[int, ...] = ()) -> PlatformLoads:
    links = {i: Link(i, name, up=True, mtu=1500) for i, name in ((1, "p1"), (2, "p2"), (3, "eth0"))}
    source = SimpleNamespace(
        measure=lambda _: dict(kernel), expired=lambda *_: list(expired), close=lambda: None
    )
    return PlatformLoads(source, chip, lambda: links)


def test_the_chip_measures_its_ports_and_the_kernel_the_others():
    loads = both(Chip(p1=PlatformLoad(5e9, 1.0)), {1: 3.0, 2: 7.0, 3: 9.0})
    assert loads.measure(1.0) == {1: 5e9, 2: 7.0, 3: 9.0}


def test_what_the_cpu_sends_is_never_the_load_of_a_port_not_even_without_a_measurement():
    loads = both(Chip(p1=None), {1: 3.0}, expired=(1,))
    assert loads.measure(1.0) == {}
    assert loads.expired(100.0, STALE) == []


def test_a_measurement_is_told_once():
    loads = both(Chip(p1=PlatformLoad(5e9, 1.0)), {})
    assert loads.measure(1.0) == {1: 5e9}
    assert loads.measure(2.0) == {}


@pytest.mark.parametrize("silent", [True, False])
def test_a_load_that_is_not_renewed_expires_once_until_it_is_known_again(silent):
    chip = Chip(p1=PlatformLoad(5e9, 1.0))
    loads = both(chip, {})
    loads.measure(1.0)
    assert loads.expired(11.0, STALE) == []
    if silent:
        chip.loads["p1"] = None
    assert loads.measure(11.5) == {}
    assert loads.expired(11.5, STALE) == [1]
    assert loads.measure(12.0) == {}
    assert loads.expired(12.0, STALE) == []
    chip.loads["p1"] = PlatformLoad(6e9, 13.0)
    assert loads.measure(13.0) == {1: 6e9}
    assert loads.expired(24.0, STALE) == [1]
