"""The report about collectives."""

from __future__ import annotations

from typing import Any

import pytest

from bench.traffic.collectives_report import rows_of
from bench.traffic.collectives_runs import (
    FAR,
    IPV6,
    LONG,
    NEAR,
    SHORT,
    UNLIMITED,
    Run,
    everything,
    short,
)
from bench.traffic.dataplane_runs import ALL, RING
from bench.traffic.elephants_runs import FLOW, FLOWLET, FRR, PACKET


def result(seconds: float) -> dict[str, Any]:
    order = {"segments": 1000, "out_of_order": 400, "retransmitted": 50, "spurious": 20}
    return {"bound": 8.0, "seconds": seconds, "steps": 14, "order": order}


FOUND = {
    Run(FRR, RING).key: result(40.0),
    Run(FLOW, RING).key: result(16.0),
    Run(PACKET, RING).key: result(12.0),
    Run(FLOW, RING, SHORT).key: result(15.0),
    Run(PACKET, RING, SHORT).key: result(10.0),
    Run(PACKET, RING, SHORT, IPV6).key: result(9.0),
    Run(PACKET, RING, UNLIMITED).key: result(16.0),
    Run(FLOW, NEAR).key: {"sent": 12_800, "lost": 9},
    Run(PACKET, NEAR).key: {"sent": 12_800, "lost": 4},
    Run(PACKET, FAR).key: {"sent": 12_800, "lost": 4},
}


def rows() -> dict[str, dict[str, Any]]:
    return {row["name"].partition(";")[0]: row for row in rows_of(FOUND)}


def test_packets_are_judged_with_both_queues_and_both_families_if_hosts_are_set_as_advised():
    judged = {name: (row["ours"], row["met"]) for name, row in rows().items() if row["goal"]}
    ring = "all-reduce ring of 8, 16 flows a pair, queues of"
    assert judged == {
        f"{ring} 300 ms: packet, part of the bound of 8 s": (pytest.approx(8 / 12), False),
        f"{ring} 80 ms: packet, part of the bound of 8 s": (0.8, True),
        f"{ring} 80 ms: packet over IPv6, part of the bound of 8 s": (pytest.approx(8 / 9), True),
    }


def test_packets_are_compared_with_flows_and_with_frr_where_these_were_measured():
    found = {name: row["ratio"] for name, row in rows().items() if row.get("ratio")}
    ring = "all-reduce ring of 8, 16 flows a pair, queues of"
    assert found == {
        f"{ring} 300 ms: flow, beside FRR, times sooner": 2.5,
        f"{ring} 300 ms: packet, beside flow, times sooner": pytest.approx(16 / 12),
        f"{ring} 300 ms: packet, beside FRR, times sooner": pytest.approx(40 / 12),
        f"{ring} 80 ms: packet, beside flow, times sooner": 1.5,
    }


def test_packets_lost_with_a_link_are_counted_beside_those_of_flows():
    failures = [row for row in rows_of(FOUND) if row["unit"] == "packets"]
    assert [(row["ours"], row["other"]) for row in failures] == [(4, 9)], (
        "the other half is missing"
    )
    assert failures[0]["name"].startswith("a link of the sending leaf fails under UDP at 50%")


def test_rows_tell_which_segments_were_lost_and_which_were_sent_twice():
    names = [row["name"] for row in rows_of(FOUND)]
    assert "3.0% of the segments lost, 2.0% sent twice" in names[0]


def test_the_short_form_has_every_routing_and_queue_and_the_long_one_more():
    few, all_ = short(), everything()
    assert set(few) < set(all_)
    assert len(all_) == len(set(all_)) == 4 * 3 * 4 + 4 + 3 * 4
    for workload in (RING, ALL):
        assert {run.routing for run in few if run.workload == workload} == {
            FRR,
            FLOW,
            FLOWLET,
            PACKET,
        }
        queues = {run.queue for run in few if (run.routing, run.workload) == (PACKET, workload)}
        assert queues == {LONG, SHORT, UNLIMITED}
