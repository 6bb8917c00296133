"""Memory is returned after floods: when one has ended, and which caches are emptied."""

from fared.core.ids import dotted
from fared.daemon.after_flood import FLOOD, AfterFlood, clear_caches


class Counting:
    """Packets so far, by look, and the actions that were run."""

    def __init__(self) -> None:
        self.taken, self.ran = 0, 0
        self.flood = AfterFlood(lambda: self.taken, [self._run])

    def _run(self) -> None:
        self.ran += 1

    def look(self, packets: int) -> int:
        self.taken += packets
        self.flood.look()
        return self.ran


def test_actions_run_once_when_a_flood_has_ended():
    counting = Counting()
    looks = (10, FLOOD - 1, FLOOD, 50 * FLOOD, 10, 10, FLOOD, 0, 0)
    assert [counting.look(packets) for packets in looks] == [0, 0, 0, 0, 1, 1, 1, 2, 2]


def test_packets_from_before_the_first_look_do_not_count():
    taken = 10 * FLOOD
    ran = []
    flood = AfterFlood(lambda: taken, [lambda: ran.append(1)])
    flood.look()
    flood.look()
    assert ran == []


def test_caches_of_loaded_modules_are_emptied():
    dotted(1)
    assert dotted.cache_info().currsize
    clear_caches()
    assert dotted.cache_info().currsize == 0
    assert dotted(1) == "0.0.0.1"
