"""The output of a live daemon: every command within 80 columns, and every metric."""

from __future__ import annotations

import json

import pytest

from fared.management.documents.registry import SHOWN, document_of
from tests.cli.terminal import Terminal
from tests.live.daemons import LEFT, RIGHT, RIGHT_STUB, Pair
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

ANY = [name for name in SHOWN if not document_of(name).proto]
"""Documents of any router: others need their protocol."""
COMMANDS = [
    *(("show", name) for name in ANY),
    ("show", "database", "router"),
    ("show", "database", "router", RIGHT),
    ("show", "spf", "log"),
    ("show", "routes", RIGHT_STUB),
    ("show", "weights", RIGHT_STUB),
    ("show", "fib", "diff"),
    ("explain", RIGHT_STUB),
    ("validate",),
    ("path", LEFT, RIGHT),
]
PROMISED = [
    "build_info",
    "router_info",
    "ready",
    "init_stage_seconds",
    "link_up",
    "neighbor_up",
    "neighbors",
    "neighbor_transitions_total",
    "packets_total",
    "packet_errors_total",
    "lsdb_entries",
    "lsdb_checksum",
    "spf_runs_total",
    "spf_duration_seconds",
    "convergence_seconds",
    "routes",
    "fib_operations_total",
    "fib_drift_routes",
    "fib_resyncs_total",
    "link_capacity_bytes_per_second",
    "link_available_bytes_per_second",
    "link_utilization_ratio",
    "weight_changes_total",
    "weight_quantization_error_ratio",
    "event_loop_lag_seconds",
    "config_last_reload_success",
    "config_unconfirmed_seconds",
    "adjacencies_ended_total",
    "weighted_routes",
    "weight_share_ratio",
    "fib_drift_total",
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_answers_with_a_table_of_80_columns_and_with_json(
    pair: Pair, command: tuple[str, ...]
):
    pair.left.assert_answers(*command)


def with_load(pair: Pair) -> dict[str, float] | None:
    """All metrics, once the counters of links have been read twice."""
    values = pair.left.metrics()
    return values if 'fared_link_utilization_ratio{interface="u1"}' in values else None


def test_metrics_have_the_promised_names_and_sensible_values(pair: Pair):
    """Each name of the promise has a family; those that a quiet pair must have, have values."""
    # a process that adopted all its routes has changed none of them
    pair.left.netns.ip("link", "set", "u0", "down")
    wait_for(lambda: pair.used() == {"u1"}, 15, "the routes have left u0")
    neighbor = f'fared_neighbor_up{{interface="u0",neighbor="{RIGHT}",proto="ospf"}}'
    lost = pair.left.metrics()
    assert (lost['fared_link_up{interface="u0"}'], lost[neighbor]) == (0, 0)
    pair.left.netns.ip("link", "set", "u0", "up")
    pair.await_routes()
    _, text = pair.left.get("/metrics")
    families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {f"fared_{name}" for name in PROMISED} <= families
    values = wait_for(lambda: with_load(pair), 30, "the load of links is measured")
    assert values["fared_ready"] == 1
    assert (values['fared_link_up{interface="u0"}'], values[neighbor]) == (1, 1)
    assert values['fared_neighbors{area="0.0.0.0",proto="ospf",state="Full"}'] == 2
    assert values['fared_lsdb_entries{area="0.0.0.0",proto="ospf",type="router"}'] == 2
    assert values['fared_routes{proto="ospf"}'] == len(pair.left.show("routes")["routes"])
    assert values['fared_init_stage_seconds{stage="ready"}'] > 0
    assert values['fared_packets_total{direction="received",proto="ospf",type="hello"}'] > 1
    assert values['fared_spf_runs_total{proto="ospf",reason="topology"}'] >= 1
    assert values["fared_spf_duration_seconds_count"] >= 1
    assert values['fared_convergence_seconds_count{stage="total"}'] >= 1
    assert values["fared_fib_drift_routes"] >= 0
    assert 0 <= values["fared_event_loop_lag_seconds"] < pair.left.show("status")["uptime"]
    assert values["fared_config_last_reload_success"] == 1
    assert values["fared_config_unconfirmed_seconds"] == 0
    moves = pair.left.counters()["neighbor-transitions"]
    ended = sum(count for move, count in moves.items() if move.startswith("Full"))
    assert values['fared_adjacencies_ended_total{proto="ospf"}'] == ended
    shares = [values[f'fared_weight_share_ratio{{extreme="{x}"}}'] for x in ("smallest", "largest")]
    assert 0 < shares[0] <= 1 <= shares[1]
    assert (values["fared_weighted_routes"] > 0) == (shares != [1, 1])
    for link in ("u0", "u1"):
        label = f'{{interface="{link}"}}'
        capacity = values[f"fared_link_capacity_bytes_per_second{label}"]
        assert capacity >= values[f"fared_link_available_bytes_per_second{label}"] > 0
        assert 0 <= values[f"fared_link_utilization_ratio{label}"] < 1
    name = f'fared_lsdb_checksum{{area="0.0.0.0",lowest="{LEFT}",proto="ospf"}}'
    # RFC 4750; the LSAs of the link that came back may still be on their way
    wait_for(
        lambda: pair.left.metrics()[name] == pair.right.metrics()[name],
        15,
        "both databases hold the same",
    )


def test_the_http_server_shows_health_documents_and_the_page(pair: Pair):
    """Read-only views of the same documents as the control socket."""
    assert pair.left.get("/healthz") == (200, '{"ok":true}')
    assert pair.left.get("/readyz")[0] == 200
    assert pair.left.get("/")[0] == 200
    assert pair.left.get("/nowhere")[0] == 404
    for name in ANY:
        status, body = pair.left.get(f"/api/v1/{name}")
        assert status == 200, name
        assert json.loads(body)["format"].endswith("/1")


def test_top_shows_the_links_of_a_live_daemon(pair: Pair) -> None:
    """Its page on a terminal of 80x24 has both links, and q ends it."""
    with Terminal("-s", str(pair.left.socket), "top", "--watch", "0.3") as terminal:
        terminal.until(
            lambda screen: (
                len(screen) == 24
                and {"u0", "u1"} <= {line.partition(" ")[0] for line in screen if "Full" in line}
            ),
            "both links",
        )
        assert max(map(len, terminal.screen())) <= 80
        terminal.type(b"q")
        assert terminal.ended()[0] == 0
