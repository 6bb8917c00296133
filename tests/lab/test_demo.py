"""The demonstration itself, small: two spines, two leaves, a real daemon in each."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from fared.extensions.lab import topology
from fared.extensions.lab.acts.cast import choose, weighted
from fared.extensions.lab.acts.stage import DemoStage
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.demo import _Demo, run_demo
from fared.extensions.lab.expected import known_capacities, known_rates
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import Hop
from fared.extensions.lab.main import main
from fared.extensions.lab.tables import shares_table
from fared.extensions.lab.traffic import TrafficReport, Uplink
from tests.lab import two_leaves
from tests.lab.test_fabric import TOPOLOGY

pytestmark = pytest.mark.netns
ISIS_FILE = Path(__file__).parents[2] / "containerlab" / "clos3-isis.clab.yml"
FAMILIES = ("10.0.2.0/24", "2001:db8:2::/64")


@pytest.fixture(autouse=True)
def logs_of_failures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FARED_LAB_DIR", str(tmp_path / "labs"))


def small(kind: str, rate: str = "100M") -> topology.LabTopology:
    text = TOPOLOGY.replace("fared-lab.kind: frr", f"fared-lab.kind: {kind}")
    document = yaml.safe_load(text.replace("fared-lab.rate: 100M", f"fared-lab.rate: {rate}"))
    return topology.from_document(document, Path("small.clab.yml"))


def test_the_weights_follow_a_slow_link_and_the_flows_follow_the_weights(capsys, tmp_path: Path):
    """A quarter of the rate is a quarter of the weight, in every kernel and at the counters."""
    picture = tmp_path / "shares.svg"
    assert run_demo(small("fared"), picture=picture) == 0
    told = capsys.readouterr().out
    assert "1 leaf holds 1:4 in the kernel" in told
    assert "1 leaf holds 1:2 in the kernel" in told
    assert "1 next-hop groups, 0 routes" in told
    assert "healed" in told
    drawn = picture.read_text()
    assert all(f">{word}<" in drawn for word in ("by weight", "measured", "20.0%", "80.0%"))


@pytest.mark.soak
@pytest.mark.parametrize("sessions", ["dual", "unnumbered"])
def test_over_bgp_the_demo_shows_both_families(sessions: str, capsys):
    text = two_leaves.topology(
        "small", protocol="bgp", rate="100M", more={"bgp-sessions": sessions}
    )
    source = topology.from_document(yaml.safe_load(text), Path("small.clab.yml"))
    assert run_demo(source) == 0
    told = capsys.readouterr().out
    assert "BGP for IPv4 and IPv6" in told
    assert "1 leaf holds 1:4 in the kernel for IPv4 and IPv6" in told


@pytest.mark.peers
def test_the_demo_with_frr_shows_equal_shares(capsys):
    """The same story with FRR, for comparison: the slow path gets as much as the others."""
    assert run_demo(small("fared"), as_kind="frr") == 0
    told = capsys.readouterr().out
    assert "do not weigh" in told
    assert "all carry 125M" in told


def test_the_demo_refuses_a_fabric_without_a_rate_to_reduce(capsys):
    """Without a rate there is nothing to slow down; exit code 1 and the reason."""
    assert run_demo(small("bird", rate="none")) == 1
    assert "the link S1-L2 has no rate to reduce" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("name", "link", "kinds"),
    [
        ("clos3", "S1 > L2", 7 * ["fared"]),
        ("clos3-mixed", "L1 > S1", ["fared"]),
        ("clos3-isis-mixed", "S3 > L2", 7 * ["fared"]),
        ("clos5-mixed", "p2-S1 > p2-L1", 7 * ["fared"]),
        ("clos5-isis-mixed", "p2-S1 > p2-L1", 5 * ["fared"]),
        ("planes-mixed", "S3 > L2", 2 * ["fared"]),
    ],
)
def test_the_demo_slows_a_link_that_fared_measures(name: str, link: str, kinds: list[str]):
    """FRR floods what it was configured with, BIRD nothing: they would not notice."""
    file = ISIS_FILE.with_name(f"{name}.clab.yml")
    cast = choose(Fabric.from_topology(topology.load(file)))
    assert cast.link == link
    assert [leaf.node.kind for leaf in cast.watched] == kinds


def test_what_fared_knows_of_links_depends_on_who_is_at_their_ends():
    """A slow link of FRR or BIRD is not known; BIRD's have the rate of the end that tells."""
    plan = make_plan(topology.load(ISIS_FILE.with_name("planes-mixed.clab.yml")))
    rate = 100e6 / 8
    known = known_rates(plan, lambda port: rate / 4 if port.node != "L2" else rate / 2)
    assert [known(port) for port in plan.node("L1").fabric_ports] == 3 * [rate / 4]
    facts = {spine: known(plan.ports_between(spine, "L2")[0]) for spine in ("S1", "S2", "S3")}
    assert facts == {"S1": rate, "S2": rate / 2, "S3": rate / 4}


def test_frr_passes_on_what_leaves_announce_by_bgp_and_measures_nothing():
    """Both directions of a cable have the rate that the leaf of fared measures."""
    plan = make_plan(topology.load(ISIS_FILE.with_name("clos3-frr-spines.clab.yml")))
    slow = {("L2", "S1"): 20.0, ("S2", "L2"): 30.0}
    known = known_rates(plan, lambda port: slow.get((port.node, port.peer), 100.0))
    facts = {spine: known(plan.ports_between(spine, "L2")[0]) for spine in ("S1", "S2", "S3")}
    assert facts == {"S1": 20.0, "S2": 100.0, "S3": 100.0}


@pytest.mark.parametrize(
    ("protocol", "kind", "carried"),
    [("ospf", "fared", 25.0), ("bgp", "fared", 25.0), ("bgp", "frr", 50.0)],
)
def test_a_link_that_paths_share_counts_for_each_of_them_where_neighbors_tell_sums(
    protocol: str, kind: str, carried: float
):
    """Both super-spines of a plane tell the same 25; those of FRR do not name what limits both."""
    words = "generate", "clos5", "--protocol", protocol
    document = yaml.safe_load(CliRunner().invoke(main, words).output)
    document["topology"]["groups"]["super"]["labels"]["fared-lab.kind"] = kind
    plan = make_plan(topology.from_document(document, Path("x")))
    slow = {("p2-S1", "p2-L1"): 25.0}

    def known(name: str) -> dict[str, float]:
        return known_capacities(
            plan, lambda port: slow.get((port.node, port.peer), 100.0), name, "p2-L1"
        )

    assert known("p1-L1") == {"p1-S1": carried, "p1-S2": 100.0, "p1-S3": 100.0, "p1-S4": 100.0}
    assert known("p2-L2") == {"p2-S1": 25.0, "p2-S2": 100.0, "p2-S3": 100.0, "p2-S4": 100.0}


class Told:
    """A kernel's word on how it spreads what goes to each prefix over S1 to S4."""

    def __init__(self, *weights: tuple[int, ...]) -> None:
        self.weights = dict(zip(FAMILIES, weights, strict=True))

    def hops(self, prefix: str) -> tuple[Hop, ...]:
        weights = self.weights[prefix]
        return tuple(Hop(f"S{at}", None, weight) for at, weight in enumerate(weights, 1) if weight)


def test_over_isis_the_demo_checks_the_weights_of_both_families(tmp_path: Path):
    """IPv4 that follows a slow or a dead link while IPv6 does not is not enough."""
    fabric = Fabric.from_topology(topology.load(ISIS_FILE), directory=tmp_path)
    demo = _Demo(DemoStage(fabric, Console()))
    assert demo.cast.prefixes == FAMILIES
    accepts = weighted(
        fabric.plan, demo.cast, lambda p: 25.0 if (p.node, p.peer) == ("S1", "L2") else 100.0
    )
    slow, even, without = (1, 4, 4, 4), (1, 1, 1, 1), (0, 1, 1, 1)
    assert accepts("L1", Told(slow, slow))
    assert not accepts("L1", Told(slow, even))
    assert demo._avoids("L1", Told(without, without))
    assert not demo._avoids("L1", Told(without, even))
    assert not demo._uses("L1", Told(even, without))


def test_shares_of_both_families_stand_side_by_side_in_80_columns():
    """However unequal two uplinks are, bars fit: the longest is the largest share."""

    def report(prefix: str, *measured: float) -> TrafficReport:
        uplinks = tuple(
            Uplink(f"p1-S{at}", None, weight, weight / 5, 0, share)
            for at, (weight, share) in enumerate(zip((1, 4), measured, strict=True), 1)
        )
        return TrafficReport(
            "p1-h1", "p2-h1", "p1-L1", prefix, 20_000, 20_000, 20_000, 1.0, uplinks
        )

    console = Console(width=80, file=StringIO(), record=True)
    reports = report(FAMILIES[0], 0.21, 0.79), report(FAMILIES[1], 0.198, 0.802)
    console.print(shares_table(*reports, capacities={"p1-S1": 25e6 / 8, "p1-S2": 100e6 / 8}))
    lines = [line.strip() for line in console.export_text().splitlines()]
    assert "IPv4    IPv6" in lines[3]
    assert lines[-3] == "p1-S1              25M        1      20.0%   21.0%   19.8%   ███"
    assert lines[-2].endswith("79.0%   80.2%   ████████████")
