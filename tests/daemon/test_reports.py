"""What the daemon remembers of the events that it reports."""

from types import SimpleNamespace

from fared.core.ids import NodeId
from fared.daemon.loop.runtime import Runtime
from fared.daemon.people.reports import REASONS_KEPT, Reports
from fared.protocols.igp.events import AdjacencyChanged
from fared.router.events import From


def test_reasons_of_forged_neighbors_are_not_kept_without_limit():
    """On a LAN, a host may send each hello with another router id: each is a new neighbor."""
    runtime = Runtime(0.0, 1, "", 0.0)
    reports = Reports(SimpleNamespace(), runtime, SimpleNamespace())
    for number in range(2 * REASONS_KEPT):
        for node in (NodeId(1), NodeId(100 + number)):
            change = AdjacencyChanged(7, "lan0", node, "Down", "Init", f"{number}", False)
            reports.observe(From("ospf", change))
    kept = runtime.neighbor_reasons
    assert len(kept) == REASONS_KEPT
    last = f"{2 * REASONS_KEPT - 1}"
    assert kept[7, NodeId(1)] == kept[7, NodeId(99 + 2 * REASONS_KEPT)] == last


def test_the_last_adjacency_of_an_interface_is_kept_until_there_is_one_again():
    runtime = Runtime(0.0, 1, "", 0.0)
    reports = Reports(SimpleNamespace(), runtime, SimpleNamespace())

    def moves(previous: str, state: str, reason: str, *, carries: bool) -> None:
        change = AdjacencyChanged(7, "swp1", NodeId(5), previous, state, reason, carries)
        reports.observe(From("ospf", change))

    moves("Loading", "Full", "LoadingDone", carries=True)
    assert runtime.lost_neighbors == {}
    moves("Full", "Down", "InactivityTimer", carries=True)
    moves("Down", "Init", "HelloReceived", carries=False)
    lost = runtime.lost_neighbors["ospf", 7]
    assert (lost.node, lost.reason) == (5, "InactivityTimer")
    moves("Loading", "Full", "LoadingDone", carries=True)
    assert runtime.lost_neighbors == {}
