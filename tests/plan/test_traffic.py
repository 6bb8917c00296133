"""Traffic under failures: each row equals min(uplink, downlink) shares computed one by one."""

import itertools
import json
import random

import pytest
from click.testing import CliRunner

from fared.extensions.offline.plan import sets
from fared.extensions.offline.plan.fabric import PlanError
from fared.extensions.offline.plan.run import PlanTask, compute_all, parts_of
from fared.extensions.offline.plan.sweep import capacities
from fared.extensions.offline.plan.traffic import carried, collective, read_demands, traffic_after
from fared.management.cli.main import main
from tests.offline.fabrics import clos as plain_clos
from tests.offline.fabrics import saved
from tests.plan.networks import clos, network

SPINES, LEAVES = ("S1", "S2", "S3"), ("L1", "L2", "L3", "L4")


def uneven(seed: int):
    """A 3 x 4 fabric whose links have capacities of their own, and these by link."""
    rng = random.Random(seed)
    rates = {pair: rng.choice((10.0, 25.0, 40.0)) for pair in itertools.product(LEAVES, SPINES)}
    links = [(a, b, 10, rate, rate) for (a, b), rate in rates.items()]
    return network(links, ends=("L*",)), rates


def loads(rates, demands):
    """Loads by direction and what has no path, for paths of two hops only."""
    found: dict[tuple[str, str], float] = {}
    lost = 0.0
    for (a, b), rate in demands.items():
        paths = {s: min(rates.get((a, s), 0.0), rates.get((b, s), 0.0)) for s in SPINES}
        total = sum(paths.values())
        if total == 0.0:
            lost += rate
            continue
        for s, value in paths.items():
            if value == 0.0:
                continue
            for way in ((a, s), (s, b)):
                found[way] = found.get(way, 0.0) + rate * value / total
    return found, lost


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["links", "nodes", "degrade"])
def test_rows_equal_shares_computed_path_by_path(seed, kind):
    fabric, rates = uneven(seed)
    rng = random.Random(seed)
    pairs = rng.sample(list(itertools.permutations(LEAVES, 2)), 5)
    demands = {pair: float(rng.randint(1, 30)) for pair in pairs}
    index = {name: node for node, name in enumerate(fabric.names)}
    wanted = {(index[a], index[b]): rate for (a, b), rate in demands.items()}
    make = {
        "links": sets.single_links,
        "nodes": sets.single_nodes,
        "degrade": lambda f: sets.degraded_links(f, 0.6),
    }
    failures = make[kind](fabric)
    found = traffic_after(fabric, failures, 0, len(failures), wanted)
    for at in range(len(failures)):
        name = failures.name(fabric, at).partition(" at ")[0]
        left = {}
        for pair, rate in rates.items():
            hit = "-".join(pair) == name or name in pair
            if not hit:
                left[pair] = rate
            elif kind == "degrade":
                left[pair] = rate * 0.4
        alive = {pair: rate for pair, rate in demands.items() if name not in pair}
        # a leaf that has lost a spine reaches others over two more hops only if no two are left
        if kind == "links" and any(
            not any((a, s) in left and (b, s) in left for s in SPINES) for a, b in alive
        ):
            continue
        expected, lost = loads(left, alive)
        used = {
            (a, b): load / left[(a, b) if a in LEAVES else (b, a)]
            for (a, b), load in expected.items()
        }
        assert found.utilization[at] == pytest.approx(max(used.values(), default=0.0)), name
        assert found.unserved[at] == pytest.approx(lost), name
        if used:
            busiest = tuple(fabric.names[node] for node in found.busiest[at].tolist())
            assert used[busiest] == pytest.approx(max(used.values())), name


def test_parts_and_processes_give_the_same_rows():
    fabric, _ = uneven(3)
    failures = sets.double_links(fabric, None, 0)
    names = fabric.names
    demands = collective("all-to-all", LEAVES, 30.0, names)
    task = PlanTask(fabric, capacities(fabric), (failures,), demands)
    whole = traffic_after(fabric, failures, 0, len(failures), demands)
    for part, outcome in compute_all(task, parts_of([failures], routed=True), 2):
        assert outcome.utilization.tolist() == whole.utilization[part.first : part.last].tolist()
        assert outcome.busiest.tolist() == whole.busiest[part.first : part.last].tolist()


def test_a_cut_leaf_loses_what_it_sends_and_receives():
    fabric = network(
        [("L1", "S1", 1, 10.0, 10.0), ("L2", "S1", 1, 10.0, 10.0), ("L3", "S1", 1, 10.0, 10.0)],
        ends=("L*",),
    )
    demands = collective("ring", ("L1", "L2", "L3"), 5.0, fabric.names)
    found = traffic_after(fabric, sets.single_links(fabric), 0, 3, demands)
    assert found.unserved.tolist() == [10.0, 10.0, 10.0]
    assert found.utilization.tolist() == [0.5, 0.5, 0.5]


def test_collectives_send_the_given_rate():
    fabric = clos(2, 4)
    index = {name: node for node, name in enumerate(fabric.names)}
    ring = collective("ring", LEAVES, 9.0, fabric.names)
    assert ring[index["L4"], index["L1"]] == 9.0
    assert len(ring) == 4
    every = collective("all-to-all", LEAVES, 9.0, fabric.names)
    assert set(every.values()) == {3.0}
    assert len(every) == 12
    base = carried(fabric, every)
    assert base.utilization.max() == pytest.approx(9.0 / 2 / 100.0)
    assert base.unserved == 0.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("demands: []", "demands"),
        ("demands: [{from: L1, to: Z9, rate: 1G}]", "no router 'Z9'"),
        ("demands: [{from: L1, to: L2, rate: fast}]", "demands.0.rate"),
        ("demands: [{from: L1, rate: 1G}]", "demands.0"),
        ("[", "not YAML"),
    ],
)
def test_wrong_demands_are_refused_with_the_place(text, words):
    with pytest.raises(PlanError, match=words):
        read_demands(text, LEAVES)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    file = tmp_path_factory.mktemp("traffic") / "db.json"
    file.write_text(json.dumps(saved(plain_clos())))
    return str(file)


def run(database, *args):
    return CliRunner().invoke(main, ["plan", "failures", "--lsdb", database, *args])


def test_the_report_has_the_slowdown_of_each_failure(database, tmp_path):
    ring = ("--collective", "ring", "--rate", "400G", "--workers", "1")
    found = json.loads(run(database, "--json", "--links", *ring).output)
    assert found["traffic"]["utilization"] == pytest.approx(0.25)
    assert len(found["traffic"]["links"]) == 64
    assert found["sets"][0]["traffic"]["slowdown"] == pytest.approx(4 / 3)
    demands = tmp_path / "demands.yaml"
    demands.write_text("demands: [{from: L1, to: L2, rate: 800G}]\n")
    from_file = ("--demand", str(demands), "--group", "cut=L1,*", "--json")
    found = json.loads(run(database, *from_file).output)["sets"][0]["traffic"]
    assert (found["slowdown"], found["failure"]) == (None, "cut")
    assert found["unserved"] == pytest.approx(1e11)


def test_the_table_of_traffic_fits_eighty_columns(database, tmp_path):
    page = tmp_path / "plan.html"
    given = ("--links", "--group", "cut=L1,*", "--collective", "ring", "--html", str(page))
    shown = run(database, *given).output
    assert "Traffic" in shown
    assert "never ends" in shown
    assert "1.33x" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "<h2>Traffic</h2>" in page.read_text()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--hosts", "L1,L2"), 2, "those of a --collective"),
        (("--collective", "ring", "--demand", "x"), 2, "either --demand or --collective"),
        (("--collective", "ring", "--hosts", "L1"), 1, "two hosts or more"),
        (("--collective", "ring", "--hosts", "L1,L1"), 1, "each of them once"),
        (("--collective", "ring", "--hosts", "L1,Z9"), 1, "no router 'Z9'"),
        (("--demand", "/nowhere.yaml"), 1, "No such file"),
    ],
)
def test_mistakes_are_told(database, args, code, words):
    result = run(database, *args)
    assert result.exit_code == code
    assert words in result.output
