"""Memory is returned after floods: when one has ended, and which caches are emptied."""

import asyncio
import gc
import sys

import pytest

from fared.core.ids import dotted
from fared.daemon.loop.after_flood import (
    FLOOD,
    MANY_ROUTES,
    AfterFlood,
    AfterManyRoutes,
    clear_caches,
)
from fared.router.convergence import ConvergenceRecord
from fared.router.events import Converged
from fared.runtime.startup import empty_free_lists


class Counting:
    """Packets so far, by look, and the actions that were run."""

    def __init__(self) -> None:
        self.taken = self.written = self.ran = self.interrupted = 0
        self.flood = AfterFlood(
            lambda: self.taken, lambda: self.written, [self._run], self._interrupt
        )

    def _run(self) -> None:
        self.ran += 1

    def _interrupt(self) -> None:
        self.interrupted += 1

    def look(self, packets: int, routes: int = 0) -> int:
        self.taken += packets
        self.written += routes
        self.flood.look()
        return self.ran


def test_actions_run_once_when_a_flood_has_ended():
    counting = Counting()
    looks = (10, FLOOD - 1, FLOOD, 50 * FLOOD, 10, 10, 10, FLOOD, 0, 0)
    assert [counting.look(packets) for packets in looks] == [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]


def test_a_flood_that_only_pauses_has_not_ended():
    counting = Counting()
    looks = (FLOOD, 0, FLOOD, 0, FLOOD, 0, 0)
    assert [counting.look(packets) for packets in looks] == [0, 0, 0, 0, 0, 0, 1]


def test_many_routes_are_a_flood_however_few_packets_brought_them():
    counting = Counting()
    looks = ((10, 10), (10, MANY_ROUTES - 1), (10, MANY_ROUTES), (0, 0), (0, 0), (0, 0))
    assert [counting.look(*each) for each in looks] == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(("operations", "releases"), [(MANY_ROUTES - 1, 0), (MANY_ROUTES, 1)])
async def test_memory_is_released_once_many_routes_are_written(operations: int, releases: int):
    released: list[int] = []
    after = AfterManyRoutes(lambda: released.append(1))
    after.observe(Converged(ConvergenceRecord(0.0, (), False, 0, operations, *[0.0] * 10)))
    assert released == []
    await asyncio.sleep(0)
    assert len(released) == releases


def test_a_long_flood_is_interrupted_every_ten_seconds_and_a_short_one_is_not():
    counting = Counting()
    seen = []
    for packets in (*[FLOOD] * 4, 0, 0, *[FLOOD] * 4, 0, FLOOD, FLOOD, *[FLOOD] * 4):
        counting.look(packets)
        seen.append(counting.interrupted)
    assert seen == [0] * 6 + [0] * 5 + [1] * 5 + [2]


def test_packets_from_before_the_first_look_do_not_count():
    taken = 10 * FLOOD
    ran = []
    actions = [lambda: ran.append(1)]
    flood = AfterFlood(lambda: taken, lambda: taken, actions, lambda: ran.append(2))
    flood.look()
    flood.look()
    assert ran == []


def test_caches_of_loaded_modules_are_emptied():
    dotted(1)
    assert dotted.cache_info().currsize
    clear_caches()
    assert dotted.cache_info().currsize == 0
    assert dotted(1) == "0.0.0.1"


@pytest.mark.parametrize(("blocks", "collections"), [(250_000, 1), (1_000_000, 0)])
def test_free_lists_are_emptied_only_if_a_collection_delays_no_hello(
    monkeypatch: pytest.MonkeyPatch, blocks: int, collections: int
):
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks)
    begun: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            begun.append(1)

    gc.callbacks.append(note)
    try:
        empty_free_lists()
    finally:
        gc.callbacks.remove(note)
    assert len(begun) == collections
