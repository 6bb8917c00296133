"""Packets forged in a neighbor's name: no router trips, and within a minute all is as before.

Each case is one of ``forged_fabrics.SCENARIOS`` and a seed, which chooses how many packets come,
how many at a time, and whether they are mutations of recorded packets and of those of this very
session, or valid LSAs and LSPs with other ages, sequence numbers, ids, originators and bodies. In
three of ten seeds they come while the adjacencies form. They arrive at one router on one link; no
key protects it. Afterwards all kernels have the same routes with the same weights, all adjacencies
are there, and all routers hold the same LSAs and LSPs of each other; then a link fails, and the
outcome is the same as without a storm.

Two things the protocols do not promise, so these tests do not ask for them. An OSPF LSA forged in
the name of a router that does not originate it, and that it does not reach, stays until it is
MaxAge, an hour (RFC 2328 §14). And an LSP with the last sequence number silences its owner for
MaxAge and ZeroAgeLifetime (ISO 10589 §7.3.16.1): none is forged.

``FARED_TEST_SOAK=1`` runs 200 seeds of each fabric.
"""

from __future__ import annotations

import pytest

from tests.sim.forged_fabrics import SCENARIOS
from tests.sim.forging import Attack

pytestmark = pytest.mark.slow

SOAK = 200
FOUND = {
    "ospf-ring": (0,),
    "ospf-row": (63,),
    "ospf-single": (18, 86, 2006),
    "ospf-areas": (1003,),
}
"""Seeds that were red: a router LSA with a foreign link state id, an own LSA that never came back,
an external that became MaxAge as its router ceased to be an AS boundary router, a link derated by
an LSA in another area, an instance that came again before its acknowledgment (two)."""
ALWAYS = ("ospf-lan", "ospf-helper", "ospf-dynamic", "ospf-externals-areas")
ALWAYS += ("isis-single", "isis-levels", "isis-lan", "isis-dynamic", "isis-limits")


CASES = [(name, seed) for name, seeds in FOUND.items() for seed in seeds]
CASES += [(name, 3) for name in ALWAYS]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_after_a_storm_in_a_neighbors_name_all_is_as_before(name, seed):
    _, problems = Attack(name, seed).run()
    assert problems == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SCENARIOS)
def test_after_hundreds_of_storms_in_a_neighbors_name_all_is_as_before(name):
    found = {seed: Attack(name, seed).run()[1] for seed in range(SOAK)}
    assert {seed: problems for seed, problems in found.items() if problems} == {}
