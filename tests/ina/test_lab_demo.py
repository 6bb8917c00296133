"""The demonstration of in-network aggregation, in a fabric of five routers."""

from __future__ import annotations

import re

import pytest

from fared.extensions.lab.ina_demo import run_ina_demo
from tests.ina.test_lab import small

pytestmark = [pytest.mark.netns, pytest.mark.slow]


def test_the_demo_of_aggregation_shows_what_it_claims(capsys: pytest.CaptureFixture[str]):
    code = run_ina_demo(small())
    said = capsys.readouterr().out
    assert code == 0, said
    assert "drops to 25M bit/s, a quarter" in said
    assert re.search(r"root S2 \(no link (to|from) ", said)
    assert "sums are right at all workers" in said
