"""Acts of the demonstration, on a fabric of two spines; with FARED_TEST_SOAK=1 all on Figure 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fared.extensions.lab import topology
from fared.extensions.lab.acts import elephant, tenant
from fared.extensions.lab.acts.cast import choose
from fared.extensions.lab.acts.names import ACTS
from fared.extensions.lab.acts.play import play
from fared.extensions.lab.acts.stage import DemoStage, perform
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.main import main
from tests.lab.test_demo import small

CLOS3 = Path(__file__).parents[2] / "containerlab" / "clos3.clab.yml"


@pytest.fixture(autouse=True)
def logs_of_failures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FARED_LAB_DIR", str(tmp_path / "labs"))


def test_an_unknown_act_lists_all_of_them_with_a_sentence_each():
    result = CliRunner().invoke(main, ["demo", "--act", "elefant"])
    assert result.exit_code == 2
    for name, sentence in ACTS.items():
        assert f"{name:<10}{sentence}" in result.stderr
    assert max(map(len, result.stderr.splitlines())) <= 80


@pytest.mark.parametrize("words", [("clos3-mixed",), ("clos3", "--as", "frr")])
def test_acts_change_settings_of_fared_so_all_routers_must_run_it(words: tuple[str, ...]):
    result = CliRunner().invoke(main, ["demo", "--act", "spines", *words])
    assert result.exit_code == 2
    assert "act spines: all routers must run fared, S1 runs frr" in result.stderr


def test_by_bgp_a_tenant_has_no_address_behind_one_spine():
    result = CliRunner().invoke(main, ["demo", "--act", "tenant", "clos3-bgp"])
    assert result.exit_code == 2
    assert "act tenant: by BGP no address leads through one spine only" in result.stderr


def test_the_elephant_needs_hosts_that_accept_reordering():
    """As docs/hosts.md advises; routers keep what the file says."""
    made = elephant.prepared(topology.load(CLOS3))
    assert made.nodes["h1"].single_segments
    assert made.nodes["h1"].sysctls["net.ipv4.tcp_min_rtt_wlen"] == "0"
    assert made.nodes["L1"].settings == {}
    assert made.nodes["L1"].rate == 100e6 / 8


def test_the_tenant_needs_weights_by_available_bandwidth():
    made = tenant.prepared(topology.load(CLOS3))
    assert made.nodes["S4"].settings["adaptive"]["metric"] == "available"
    assert made.nodes["h1"].settings == {}


def test_what_the_tenant_leaves_of_its_link_decides_the_shares():
    """40 of 100: a share of 40 / 340 is 11.8 %."""
    fabric = Fabric.from_topology(topology.load(CLOS3))
    cast = choose(fabric)
    left = tenant.left(fabric.rate, cast, cast.rate * tenant.TAKEN)
    shares = tenant.computed(fabric.plan, cast, left)
    assert shares["S1"] == pytest.approx(40 / 340)
    assert shares["S4"] == pytest.approx(100 / 340)


def test_a_claim_that_does_not_hold_ends_an_act_with_exit_code_1(capsys):
    """Nothing is built here: the act fails before."""

    def played(stage: DemoStage) -> None:
        stage.claim("two are two", holds=True)
        stage.claim("one is two", holds=False)

    assert perform(small("fared"), played) == 1
    told = capsys.readouterr().out
    assert "✓ two are two" in told
    assert "failed: this does not hold: one is two" in told


@pytest.mark.netns
@pytest.mark.slow
def test_weights_and_shares_are_the_same_where_only_leaves_are_adaptive(capsys):
    """FARE's sentence, in kernels: leaves follow a changed link with all spines switched off."""
    assert play(small("fared"), "spines") == 0
    told = capsys.readouterr().out
    assert "2 spines: adaptive: enabled: false" in told
    assert "weights are the same with adaptive leaves only" in told


@pytest.mark.netns
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("act", ACTS)
def test_every_claim_of_an_act_holds_on_figure_1(act: str, capsys, tmp_path: Path):
    assert play(topology.load(CLOS3), act, tmp_path / "act.png") == 0
    assert (tmp_path / "act.png").stat().st_size > 10_000
    told = capsys.readouterr().out
    assert "✓" in told
    assert max(map(len, told.splitlines())) <= 80
