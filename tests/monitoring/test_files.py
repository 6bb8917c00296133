"""The files for Prometheus and Grafana are valid, and agree with the docs; times of alerts hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from monitoring.scraping import (
    BOARD,
    RULES,
    board_annotations,
    board_expressions,
    board_panels,
    rule_expressions,
    shortened,
)

ROOT = Path(__file__).parents[2]
MONITORING = RULES.parent
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing")


def promtool(*arguments: str) -> str:
    done = subprocess.run(
        ("promtool", *arguments), capture_output=True, text=True, cwd=MONITORING, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_promtool_accepts_rules_and_the_example_and_the_times_of_alerts_hold():
    assert f"{len(rule_expressions())} rules found" in promtool("check", "rules", RULES.name)
    promtool("check", "config", "prometheus.yml")
    assert "SUCCESS" in promtool("test", "rules", "fared.test.yml")


def test_the_page_explains_every_alert():
    text = (ROOT / "docs" / "monitoring.md").read_text()
    alerts = {name for name in rule_expressions() if not name.startswith("fared:")}
    assert alerts == set(re.findall(r"^\| `(Fared\w+)` \|", text, re.MULTILINE))


def test_panels_of_the_board_have_places_of_their_own_and_one_data_source_to_choose():
    panels = json.loads(BOARD.read_text())["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in panels}) == len(panels)
    sources = {panel["datasource"]["uid"] for panel in panels if panel["type"] != "row"}
    assert sources == {"${datasource}"}


def test_each_panel_says_what_it_shows_and_the_first_row_what_is_wrong():
    assert [panel["title"] for panel in board_panels() if len(panel["description"]) < 20] == []
    first = [panel for panel in board_panels() if panel["gridPos"]["y"] < 13]
    assert {panel["type"] for panel in first} == {"stat", "table"}
    assert len({panel["title"] for panel in board_panels()}) == len(board_panels())


def test_the_board_marks_changes_of_links_and_neighbors():
    assert set(board_annotations()) == {"Links", "Adjacencies", "Derated links", "Restarts"}


def test_the_board_shows_jobs_that_aggregate():
    shown = {
        metric
        for many in board_expressions().values()
        for one, _ in many
        for metric in re.findall(r"fared_ina_\w+", one)
    }
    assert shown == {
        f"fared_ina_{name}"
        for name in ("tree_rate", "slots", "waits_for", "wait_seconds", "repeated_total", "epoch")
    }


def test_every_expression_of_the_board_can_be_restricted_to_routers():
    expressions = [one for many in board_expressions().values() for one, _ in many]
    expressions += board_annotations().values()
    chosen = 'fabric=~"$fabric", instance=~"$router"'
    assert [one for one in expressions if chosen not in one] == []


def test_tests_and_picture_shorten_windows_in_proportion():
    assert shortened("a[5m] b[10m] c[15m] d[1h] e[$__rate_interval]") == (
        "a[6s] b[12s] c[18s] d[30s] e[6s]"
    )
    assert shortened("        for: 10m\n") == "        for: 1s\n"
