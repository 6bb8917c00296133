"""Memory is returned after floods: when one has ended, and which caches are emptied."""

import gc
import sys

import pytest

from fared.core.ids import dotted
from fared.daemon.after_flood import FLOOD, AfterFlood, clear_caches
from fared.startup import empty_free_lists


class Counting:
    """Packets so far, by look, and the actions that were run."""

    def __init__(self) -> None:
        self.taken, self.ran, self.interrupted = 0, 0, 0
        self.flood = AfterFlood(lambda: self.taken, [self._run], self._interrupt)

    def _run(self) -> None:
        self.ran += 1

    def _interrupt(self) -> None:
        self.interrupted += 1

    def look(self, packets: int) -> int:
        self.taken += packets
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
    flood = AfterFlood(lambda: taken, [lambda: ran.append(1)], lambda: ran.append(2))
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
