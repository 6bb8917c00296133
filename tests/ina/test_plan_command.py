"""``fared-cli ina plan`` on the saved database of a 4 x 8 fabric."""

import json

import pytest
from click.testing import CliRunner

from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.network import Network
from fared.management.cli.main import main
from tests.offline.fabrics import clos, saved, started

EIGHT = ",".join(f"L{n}" for n in range(1, 9))


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    file = tmp_path_factory.mktemp("ina") / "db.json"
    file.write_text(json.dumps(saved(clos())))
    return str(file)


def run(database, *args):
    return CliRunner().invoke(main, ["ina", "plan", "--lsdb", database, *args])


def answer(database, *args):
    result = run(database, "--json", *args)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_the_plan_has_trees_rates_and_the_bound(database):
    found = answer(database, "--workers", EIGHT)
    assert found["format"] == "fared-ina-plan/1"
    assert [tree["root"]["hostname"] for tree in found["trees"]] == ["S1", "S2", "S3", "S4"]
    assert found["rate"] == found["bound"] == pytest.approx(4 * 400e9 / 8)
    assert found["ring_rate"] == found["rate"]
    assert [tree["weight"] for tree in found["trees"]] == [1, 1, 1, 1]
    assert found["trees"][0]["nodes"][0]["bits"] == "0xff"
    assert len(found["links"]) == 64
    assert all(link["load"] == link["capacity"] for link in found["links"])


def test_a_failed_link_moves_the_trees(database):
    found = answer(database, "--workers", EIGHT, "--fail-link", "L5,S3", "--no-relays")
    assert [tree["root"]["hostname"] for tree in found["trees"]] == ["S1", "S2", "S4"]
    assert found["changes"] == ["fail-link L5,S3"]
    assert found["rate"] == found["bound"]


def test_workers_are_named_by_router_number_or_address(database):
    counted = answer(database, "--workers", "L1:2,L2:2")
    assert [w["hostname"] for w in counted["workers"]] == ["L1", "L1", "L2", "L2"]
    assert [w["bfr_id"] for w in counted["workers"]] == [1, 2, 3, 4]
    assert counted["trees"][0]["nodes"][-1]["streams"] == 2


def test_a_link_carries_a_result_once_by_bier_and_once_for_each_worker_by_unicast(database):
    """No router of the database runs BIER, which --bier assumes."""
    for how, copies, why in (
        ((), 2, "S1 does not run BIER"),
        (("--unicast",), 2, "as asked"),
        (("--bier",), 1, ""),
    ):
        found = answer(database, "--workers", "L1:2,L2:2", "--tree", "L1,L2,S1", *how)
        loads = {
            (link["from"]["hostname"], link["to"]["hostname"]): link["load"]
            for link in found["links"]
        }
        assert loads["S1", "L1"] == pytest.approx(copies * found["rate"])
        assert loads["L1", "S1"] == pytest.approx(found["rate"])
        assert found["unicast"] == why
        assert found["trees"][0]["kind"] == "given"
        assert found["rate"] == pytest.approx(400e9 / 8 / copies)


@pytest.mark.parametrize("how", [(), ("--optimum",)])
def test_the_table_fits_eighty_columns(database, how):
    weak = ("L2,S1=100G", "S1,L2=100G", "S2,L3=100G")
    changes = [word for value in weak for word in ("--set-bandwidth", value)]
    result = run(database, "--workers", EIGHT, *changes, *how)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "1300G: the plan has 100% of it" in result.output
    assert "relays: L2 > S2 > " in result.output


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--workers", "L1"), 2, "2 to 4096 workers"),
        (("--workers", "L1,L99"), 2, "no router 'L99'"),
        (("--workers", "L1:0,L2"), 2, "is not ROUTER:N"),
        (("--workers", "L1,L2", "--nic", "much"), 2, "not a bandwidth"),
        (("--workers", "L1,L2", "--fail-node", "L2"), 1, "no tree"),
        (("--workers", "L1,L2", "--no-relays", "--optimum"), 2, "mutually exclusive"),
        (("--workers", "L1,L2", "--tree", "L1,L9"), 2, "no router 'L9'"),
        (("--workers", "L1,L2", "--tree", "S1:L1"), 2, "does not end with the root"),
        (("--workers", "L1,L2", "--tree", "L3,S1"), 1, "L3 would sum nothing"),
    ],
)
def test_mistakes_are_told(database, args, code, words):
    result = run(database, *args)
    assert result.exit_code == code
    assert words in result.output


def test_routers_copy_results_by_unicast_for_workers_in_several_areas():
    """The database of a border router has two of them."""
    fabric = started(clos5_areas(2, 1, 1, 1, network=Network(seed=1)))
    above = next(name for name in fabric.network.nodes if "SS" in name)
    text = json.dumps(saved(fabric, "p1.S1"))
    words = ["ina", "plan", "--lsdb", "-", "--workers", f"p1.L1:2,{above}", "--json"]
    for way, kind in (("--unicast", "wide"), ("--bier", "star")):
        told = CliRunner().invoke(main, [*words, way], input=text)
        assert {tree["kind"] for tree in json.loads(told.stdout)["trees"]} == {kind}, told.output
