"""Metrics of in-network aggregation: those of the documentation, with values of the document."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from fared.extensions.ina.counted import COUNTED, UNREAD, type_of
from fared.extensions.ina.document import InaJobs
from fared.extensions.ina.service.metrics import aggregation
from tests.api.documents.aggregation import INA

ROOT = Path(__file__).parents[2]
PAGE, SOURCE = ROOT / "docs" / "ina.md", ROOT / "fared" / "extensions" / "ina"


def found(document: object) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in aggregation(msgspec.convert(document, InaJobs))
        for sample in family.samples
    }


def test_each_metric_of_the_documentation_is_there_and_no_other():
    told = set(re.findall(r"`(fared_ina_[a-z_]+)`", PAGE.read_text()))
    assert {name for name, *_ in found(INA)} == told


def test_metrics_tell_for_how_long_a_job_waits_and_for_how_many():
    values = found(INA)
    assert values["fared_ina_wait_seconds", "train"] == 1.25
    assert values["fared_ina_waits_for", "train"] == 1
    assert values["fared_ina_slots", "train", "open"] == 5
    assert values["fared_ina_duplicates_total", "train"] == 3


def test_packets_are_told_by_type_and_by_what_was_done_with_them():
    values = found(INA)
    assert values["fared_ina_packets_total", "train", "data", "added"] == 120_630
    assert values["fared_ina_packets_total", "train", "unread", "malformed-length"] == 0
    assert values["fared_ina_wrong_sums_total", "train"] == 2


def test_each_counter_of_a_job_in_a_router_has_a_type():
    """All but those of packets that are refused by their source, or cannot be read."""
    files = [*SOURCE.glob("slots/aggregator.py"), SOURCE / "inad" / "jobs.py"]
    text = "".join(file.read_text() for file in files)
    names = set(re.findall(r'counters\["([a-z-]+)"\]', text))
    assert {name for name in names if type_of(name) == UNREAD} == {
        "address", "malformed-size", "no-job", "sender", "unexpected",
    }  # fmt: skip
    assert type_of("malformed-length") == UNREAD
    assert names - set(COUNTED) == {"no-job"}  # of no job
