"""The demonstration itself, small: two spines, two leaves, a real daemon in each."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fared.lab import topology
from fared.lab.demo import run_demo
from tests.lab.test_fabric import TOPOLOGY

pytestmark = pytest.mark.netns


@pytest.fixture(autouse=True)
def logs_of_failures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FARED_LAB_DIR", str(tmp_path / "labs"))


def small(kind: str, rate: str = "100M") -> topology.Topology:
    text = TOPOLOGY.replace("fared-lab.kind: frr", f"fared-lab.kind: {kind}")
    document = yaml.safe_load(text.replace("fared-lab.rate: 100M", f"fared-lab.rate: {rate}"))
    return topology.from_document(document, Path("small.clab.yml"))


def test_the_weights_follow_a_slow_link_and_the_flows_follow_the_weights(capsys):
    """A quarter of the rate is a quarter of the weight, in every kernel and at the counters."""
    assert run_demo(small("fared")) == 0
    told = capsys.readouterr().out
    assert "1 leaf holds 1:4 in the kernel" in told
    assert "1 leaf holds 1:2 in the kernel" in told
    assert "1 next-hop groups, 0 routes" in told
    assert "healed" in told


@pytest.mark.peers
def test_other_daemons_split_evenly(capsys):
    """The same story with FRR, for comparison: the slow path gets as much as the others."""
    assert run_demo(small("fared"), as_kind="frr") == 0
    told = capsys.readouterr().out
    assert "do not weigh" in told
    assert "all carry 125Mbit/s" in told


def test_a_fabric_the_story_cannot_be_told_on_is_refused(capsys):
    """Without a rate there is nothing to slow down; exit code 1 and the reason."""
    assert run_demo(small("bird", rate="none")) == 1
    assert "the link S1-L2 has no rate that could drop" in capsys.readouterr().out.replace(
        "\n", " "
    )
