"""What the daemon remembers of the events that it reports."""

from types import SimpleNamespace

from fared.core.ids import NodeId
from fared.core.lost_neighbors import LostNeighbor, LostNeighbors
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


def test_a_lost_neighbor_is_remembered_until_it_is_back():
    runtime = Runtime(0.0, 1, "", 0.0)
    reports = Reports(SimpleNamespace(), runtime, SimpleNamespace())
    lost = runtime.lost_neighbors

    def moves(previous: str, state: str, reason: str, *, carries: bool) -> None:
        change = AdjacencyChanged(7, "swp1", NodeId(5), previous, state, reason, carries)
        reports.observe(From("ospf", change))

    moves("Loading", "Full", "LoadingDone", carries=True)
    assert lost.by_place() == {}
    moves("Full", "Init", "1-WayReceived", carries=False)  # it restarts gracefully
    assert lost.by_place() == {}
    moves("Init", "Down", "InactivityTimer", carries=True)
    moves("Down", "Init", "HelloReceived", carries=False)
    (kept,) = lost.by_place()["ospf", "swp1"]
    assert (kept.node, kept.reason) == (5, "InactivityTimer")
    moves("Loading", "Full", "LoadingDone", carries=True)
    assert lost.by_place() == {}


def test_of_too_many_lost_neighbors_the_first_is_forgotten():
    lost = LostNeighbors()
    for number in range(5000):
        lost.add(("ospf", "lan0"), LostNeighbor(NodeId(number), float(number), ""))
    assert [one.node for one in lost.by_place()["ospf", "lan0"]] == list(range(904, 5000))
