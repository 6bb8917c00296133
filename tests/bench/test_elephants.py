"""The report about few elephants."""

from __future__ import annotations

from typing import Any

import pytest

from bench.lab.fabrics import clos
from bench.traffic.dataplane_runs import HEALTHY, SLOW
from bench.traffic.elephants_report import rows_of
from bench.traffic.elephants_runs import (
    CHANGE,
    FLOW,
    FRR,
    HOSTS,
    PACKET,
    UDP,
    Run,
    everything,
    short,
)


def result(*seconds: float) -> dict[str, Any]:
    order = {"segments": 1000, "out_of_order": 400, "spurious": 20}
    return {"bound": 6.4, "seconds": list(seconds), "order": [order] * len(seconds)}


ORDER = {"reordered": 900, "extent": 21, "buffer": 20}
FOUND = {
    Run(SLOW, FRR, 1).key: result(20.5),
    Run(SLOW, FLOW, 1).key: result(20.6),
    Run(SLOW, PACKET, 1).key: result(6.6),
    Run(SLOW, PACKET, 8).key: result(7.0, 8.0, 9.0),
    Run(SLOW, FLOW, 128).key: result(7.0),
    Run(SLOW, PACKET, 128).key: result(7.3),
    Run(HEALTHY, PACKET, 8).key: result(7.2),
    Run(SLOW, PACKET, UDP).key: {"sent": 10_000, "lost": 0, "error": 0.0051, "order": ORDER},
    Run(SLOW, PACKET, CHANGE).key: {
        "sent": 9000,
        "lost": 1,
        "before": [0.0625, 0.3125],
        "after": [0.1, 0.3],
        "transactions": 1,
    },
}


def judged(found: dict[str, Any]) -> dict[str, tuple[float, bool]]:
    """The rows with a goal: the figure that counts, and whether it is met."""
    return {
        row["name"]: (row.get("ratio") or row["ours"], row["met"])
        for row in rows_of(found)
        if row["goal"]
    }


def row(start: str) -> tuple[float, bool]:
    (found,) = (value for name, value in judged(FOUND).items() if name.startswith(start))
    return found


def test_one_connection_is_compared_with_flows_and_many_with_the_bound():
    sooner = row("slow-downlink, 256 MB over 1 connection: packet, beside flow")
    assert sooner == (pytest.approx(20.6 / 6.6), True)
    part = row("slow-downlink, 256 MB over 8 connections: packet, part")
    assert part == (pytest.approx(6.4 / 8.0), False)
    slower = row("slow-downlink, 256 MB over 128 connections: packet, beside flow")
    assert slower == (pytest.approx(7.0 / 7.3), True)
    assert row("healthy, 256 MB over 8 connections") == (pytest.approx(6.4 / 7.2), False)


def test_packets_are_judged_and_other_routings_are_only_shown():
    shown = [one["name"] for one in rows_of(FOUND) if not one["goal"]]
    assert any(": FRR, part of the bound" in name for name in shown)
    assert any(": flow, beside FRR" in name for name in shown)
    assert all(": packet" in name or "UDP" in name for name in judged(FOUND))
    assert "40.0% of the segments out of order, 2.0% sent twice" in shown[0]


def test_udp_is_judged_by_what_is_lost_and_by_the_shares():
    assert row("slow-downlink, packet, UDP at 97% of the bound, 10,000 packets: lost") == (0, True)
    shares = row("slow-downlink, packet, UDP at 97% of the bound, 10,000 packets: largest")
    assert shares == (pytest.approx(0.51), False)
    name = "weights change under UDP at 50% of the bound (0.062:0.312 and 0.100:0.300): "
    assert row(f"{name}packets lost of 9,000") == (1, False)
    assert row(f"{name}transactions") == (1, True)


def test_weights_that_do_not_change_are_no_transaction():
    """Otherwise nothing would be measured, and the goal met."""
    change = FOUND[Run(SLOW, PACKET, CHANGE).key]
    same = {Run(SLOW, PACKET, CHANGE).key: change | {"after": change["before"]}}
    assert [met for _, met in judged(same).values()] == [False, False]


def test_the_short_form_has_every_goal_and_the_long_one_every_routing():
    few, all_ = short(), everything()
    assert {(run.scenario, run.workload) for run in few if run.routing == PACKET} == {
        *((SLOW, workload) for workload in (1, 2, 4, 8, 32, 128, UDP, CHANGE)),
        *((HEALTHY, count) for count in (1, 2, 4, 8)),
    }
    assert len(all_) == len(set(all_)) == 2 * 4 * 6 + 2


def test_hosts_send_single_segments_unless_they_offload():
    for name, settings in HOSTS.items():
        hosts = [node for node in clos(hosts=settings).nodes.values() if not node.is_router]
        assert all(host.single_segments == (name != "offload") for host in hosts)
