"""The deadlines of a starting router."""

from __future__ import annotations

from fared.router.stages import AdjacencyProgress, Stage, StartUp


def test_a_passed_deadline_causes_no_wakeup_during_an_exchange():
    """The end of the exchange is an event; a deadline in the past would be a busy loop until
    then."""
    startup = StartUp(began=100.0, deadline=5.0)
    startup.reach(Stage.LINKS_KNOWN, 100.0)
    assert startup.next_deadline(100.0) == 105.0

    forming = AdjacencyProgress(expected=2, full=1, forming=1)
    assert not startup.adjacencies_up(forming, 105.0)
    assert startup.next_deadline(105.0) is None

    done = AdjacencyProgress(expected=2, full=1, forming=0)
    assert startup.adjacencies_up(done, 105.3)
