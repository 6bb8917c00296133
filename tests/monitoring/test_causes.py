"""Each alert lasts as long as its cause, for hours, and a healthy fabric raises none: promtool."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitoring.scraping import RULES, rule_expressions
from tests.monitoring.test_files import promtool

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing")
BEFORE, DURING, AFTER = 30, 240, 60
"""Minutes without the cause, with it, and without it again; there is a sample each minute."""
JOB = 'exported_job="train"'
RECEIVED = 'fared_bgp_prefixes{neighbor="swp1", af="ipv4", direction="received"}'
SENT = RECEIVED.replace("received", "sent")
LIMIT = 'fared_bgp_prefixes_limit{neighbor="swp1"}'
GAUGES: dict[str, tuple[str, float, float]] = {
    "FaredDown": ("up", 1, 0),
    "FaredNotReady": ("fared_ready", 1, 0),
    "FaredLinkDown": ('fared_link_up{interface="S1"}', 1, 0),
    "FaredAdjacencyLost": ('fared_neighbor_up{interface="S1", neighbor="1", proto="ospf"}', 1, 0),
    "FaredBgpPrefixesNearLimit": (RECEIVED, 70, 90),
    "FaredDatabaseFull": ('fared_lsdb_full{proto="ospf", area="0.0.0.0"}', 0, 1),
    "FaredWeightsApartFromEqual": ("fared_weighted_routes", 0, 7),
    "FaredQuantizationError": ("fared_weight_quantization_error_ratio", 0, 0.1),
    "FaredLinkFull": ('fared_link_utilization_ratio{interface="S1"}', 0.5, 0.99),
    "FaredLinkErrors": ('fared_link_errors{interface="S1"}', 0, 9),
    "FaredLinkDerated": ('fared_link_share_ratio{interface="S1"}', 1, 0.25),
    "FaredOversubscribed": ("fared_oversubscription_ratio", 1, 1.33),
    "FaredLinkSuppressed": ('fared_link_suppressed{interface="S1"}', 0, 1),
    "FaredLoopLag": ("fared_event_loop_lag_seconds", 0.01, 0.9),
    "FaredConfigRefused": ("fared_config_last_reload_success", 1, 0),
    "FaredConfigUnconfirmed": ("fared_config_unconfirmed_seconds", 0, 300),
    "FaredInaDown": ("fared_ina_process_up", 1, 0),
    "FaredInaJobWaits": (f"fared_ina_wait_seconds{{{JOB}}}", 0, 20),
}
"""Series, and its value without and with the cause."""
EVENTS: dict[str, str] = {
    "FaredAdjacencyFlapping": 'fared_adjacencies_ended_total{proto="ospf"}',
    "FaredKernelDrift": "fared_fib_drift_total",
    "FaredInaEpochs": f"fared_ina_epoch{{{JOB}}}",
    "FaredInaWrongSum": f"fared_ina_wrong_sums_total{{{JOB}}}",
}
"""Counters that increase each minute while there is the cause."""
DIFFERING = "FaredDatabasesDiffer"
CHECKSUM = 'fared_lsdb_checksum{proto="ospf", area="0.0.0.0", lowest="1"}'


def on(instance: str, series: str, values: str, fabric: str = "x") -> dict[str, str]:
    name, _, labels = series.partition("{")
    own = f'job="fared", fabric="{fabric}", instance="{instance}"'
    return {
        "series": f"{name}{{{own}{', ' + labels if labels else '}'}",
        "values": values,
    }


def caused(alert: str) -> list[dict[str, str]]:
    """The series in which the cause of an alert comes and goes."""
    if alert == DIFFERING:
        same = f"7x{BEFORE + DURING + AFTER}"
        return [on("L1", CHECKSUM, same), on("L2", CHECKSUM, f"7x{BEFORE} 9x{DURING} 7x{AFTER}")]
    if alert in EVENTS:
        values = f"0x{BEFORE} 1+1x{DURING} {DURING + 1}x{AFTER}"
        return [on("L1", EVENTS[alert], values)]
    series, good, bad = GAUGES[alert]
    beside = [on("L1", one, f"100x{BEFORE + DURING + AFTER}") for one in (LIMIT, SENT)]
    return [*beside, on("L1", series, f"{good}x{BEFORE} {bad}x{DURING} {good}x{AFTER}")]


def healthy() -> list[dict[str, str]]:
    """Two fabrics; the first has two planes, and so has its area 0."""
    found: list[dict[str, str]] = []
    parts = (("x", "L1", "1", 7), ("x", "L2", "2", 8), ("y", "L1", "1", 9))
    for fabric, name, lowest, checksum in parts:
        found += [on(name, one, f"{good}x60", fabric) for one, good, _ in GAUGES.values()]
        found += [on(name, one, "0x60", fabric) for one in EVENTS.values()]
        found += [on(name, one, "100x60", fabric) for one in (LIMIT, SENT)]
        part = CHECKSUM.replace('"1"', f'"{lowest}"')
        found.append(on(name, part, f"{checksum}x60", fabric))
    return found


def check(directory: Path, series: list[dict[str, str]], fires: dict[int, str | None]) -> None:
    """By minute: which alert alone fires, None: none does."""
    tests: list[dict[str, Any]] = [
        {
            "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else [],
        }
        for minute, alert in fires.items()
    ]
    file = directory / "test.yml"
    document = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}],
    }
    file.write_text(yaml.safe_dump(document))
    assert "SUCCESS" in promtool("test", "rules", str(file))


ALERTS = [name for name in rule_expressions() if not name.startswith("fared:")]


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_lasts_as_long_as_its_cause_and_no_other_fires(alert: str, tmp_path: Path):
    begun, ended = BEFORE + 1, BEFORE + DURING + 1
    times = {BEFORE - 1: None, begun + 12: alert, ended - 60: alert, ended - 1: alert}
    check(tmp_path, caused(alert), {**times, ended + 20: None})


def test_a_healthy_fabric_beside_another_one_raises_no_alert(tmp_path: Path):
    check(tmp_path, healthy(), dict.fromkeys((1, 5, 10, 30, 59)))
