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
