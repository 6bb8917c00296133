"""``fared-cli plan failures`` on the saved database of a 4 x 8 fabric."""

import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from fared.extensions.offline.plan.conclusion import conclusions
from fared.extensions.offline.plan.run import PlanTask
from fared.extensions.sim.levels import clos3_isis, clos5_levels
from fared.management.cli.main import main
from tests.cli.terminal import Terminal
from tests.offline.fabrics import clos, saved
from tests.offline.isis_fabrics import saved as saved_isis
from tests.offline.isis_fabrics import started as started_isis

PAIR = 4 * 400e9 / 8


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    file = tmp_path_factory.mktemp("plan") / "db.json"
    file.write_text(json.dumps(saved(clos())))
    return str(file)


def run(database, *args):
    command = ["plan", "failures", "--lsdb", database, "--workers", "1", *args]
    return CliRunner().invoke(main, command)


def answer(database, *args, code=0):
    result = run(database, "--json", *args)
    assert result.exit_code == code, result.output
    return json.loads(result.output)


def of(document, name):
    return next(one for one in document["sets"] if one["set"] == name)


def test_without_sets_each_link_and_each_router_fails(database):
    found = answer(database)
    assert found["format"] == "fared-plan-failures/1"
    assert [end["name"] for end in found["ends"]] == [f"L{n}" for n in range(1, 9)]
    assert found["healthy"]["least"] == found["healthy"]["most"] == pytest.approx(PAIR)
    links, nodes = of(found, "links"), of(found, "nodes")
    assert (links["failures"], links["alias"], links["left"]) == (32, "n-1", 0.75)
    assert (nodes["failures"], nodes["left"]) == (12, 0.75)
    assert nodes["harmless"] == 8  # a leaf's own pairs do not count
    assert links["histogram"][15] == 32
    assert found["single_points"] == found["never_matter"] == []
    assert len(found["rows"]) == 44


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--drained", "S1,L8"),
        ("--set-bandwidth", "L1,S1=25G"),
        ("--collective", "ring", "--hosts", "L1,L2,L3"),
        ("--between", "L1,L2"),
    ],
    ids=" ".join,
)
def test_classes_of_equal_pairs_of_links_give_the_same_report(database, options):
    every, some = (
        answer(database, "--doubles", given, "--pairs", "all", *options)
        for given in ("all", "classes")
    )
    assert (of(every, "doubles")["classes"], of(every, "doubles")["failures"]) == (None, 496)
    assert len(some["rows"]) == of(some, "doubles").pop("classes") < 250
    assert sum(row["equal"] for row in some["rows"]) == 496
    every_set, some_set = (of(one, "doubles") for one in (every, some))
    for names in ("left", "mean_left", "mean"), ("failures", "cut", "harmless"), ("histogram",):
        ours, theirs = ([one[name] for name in names] for one in (some_set, every_set))
        assert ours == (theirs if names == ("histogram",) else pytest.approx(theirs))
    left = [{tuple(p["pair"]): p["left"] for p in one["pairs"]} for one in (some_set, every_set)]
    assert left[0] == pytest.approx(left[1])
    if some["traffic"]:
        names = ("utilization", "slowdown", "unserved")
        ours, theirs = ([one["traffic"][n] for n in names] for one in (some_set, every_set))
        assert ours == pytest.approx(theirs)
    for key in ("left", "capacity", "reduced", "cut", "alike"):
        assert [row[key] for row in some["worst"]] == [row[key] for row in every["worst"]], key


def test_ends_can_be_given_by_their_prefixes(database):
    assert answer(database, "--between", "10.0.1.0/24,10.0.3.0/24") == answer(
        database, "--between", "L1,L3"
    )


def test_the_worst_failures_name_their_worst_pair_and_its_maximum_flow(database):
    found = answer(database, "--doubles", "all")["worst"]
    first = found[0]
    assert first["failure"] == "L1-S1 + L2-S2"
    assert first["pair"] == ["L1", "L2"]
    assert first["capacity"] == pytest.approx(PAIR / 2)
    # over L1 > S2 > L3 > S1..., longer paths than routing uses
    assert first["max_flow"] == pytest.approx(PAIR * 3 / 4)
    assert first["alike"] == 335


def test_each_pair_knows_the_failure_that_hurts_it_most(database):
    found = answer(database, "--links", "--set-bandwidth", "S3,L5=600G", "--pairs", "all")
    pairs = {tuple(row["pair"]): row for row in of(found, "links")["pairs"]}
    assert len(pairs) == 56
    assert pairs["L5", "L6"]["cause"] == "L5-S1"
    assert pairs["L5", "L6"]["left"] == 0.75


def test_the_links_of_a_drained_spine_do_not_matter(database):
    found = answer(database, "--links", "--drained", "S1")
    assert found["healthy"]["left"] == 0.75
    assert [one["failure"] for one in found["never_matter"]] == [f"L{n}-S1" for n in range(1, 9)]
    assert of(found, "links")["left"] == 0.5


def test_drained_spines_carry_what_no_other_can(database):
    """In OSPF they are the last resort (RFC 6987)."""
    found = answer(database, "--nodes", "--drained", "S1,S2,S3")
    assert found["healthy"]["left"] == 0.25
    lost = {row["failure"]: row["cut"] for row in found["rows"]}
    assert (lost["S4"], lost["L1"]) == (0, 0)


def test_drained_routers_of_two_levels_carry_what_no_other_can(tmp_path):
    """The overload bit of IS-IS: the last resort between levels, a bar inside one."""
    two, one = clos5_levels(2, 2, 2, 1), clos3_isis(2, 2)
    for fabric, names, left in ((two, ("p1.S1", "p1.S2"), 1.0), (one, ("S1", "S2"), 0.0)):
        file = tmp_path / "isis.json"
        file.write_text(json.dumps(saved_isis(started_isis(fabric), names[0])))
        assert answer(str(file), "--drained", ",".join(names))["healthy"]["left"] == left


def test_groups_fail_together(database, tmp_path):
    file = tmp_path / "groups.yaml"
    file.write_text('left: [S1, S2]\ntray: ["L1,*"]\n')
    found = answer(database, "--groups", str(file), "--group", "one=L2-S?")
    rows = {row["failure"]: row for row in found["rows"]}
    assert rows["left"]["left"] == 0.5
    assert (rows["tray"]["left"], rows["tray"]["cut"]) == (0.0, 14)
    assert rows["one"]["cut"] == 14
    assert [point["failure"] for point in found["single_points"]] == ["tray", "one"]


def test_a_bound_that_is_broken_exits_with_1(database):
    assert answer(database, "--require", "n-1 >= 75%")["required"][0]["met"]
    assert not answer(database, "--require", "n-1 > 75%", code=1)["required"][0]["met"]
    assert answer(database, "--require", "n-2>=50%")["required"][0]["left"] == 0.5


def test_hosts_that_send_more_than_the_uplinks_of_a_leaf_carry_are_oversubscription(database):
    """Four uplinks of 400G: no database has the links to hosts, so their rate is given."""
    bound = "--require", "oversubscription <= 1"
    assert answer(database, *bound, "--rate", "1600G")["required"][0]["ratio"] == 1.0
    broken = answer(database, *bound, "--rate", "1.6T", "--fail-link", "L3-S1", code=1)
    assert broken["oversubscription"]["router"] == "L3"
    assert broken["required"][0]["found"] == "L3 has 1.333"
    other = answer(database, *bound, "--rate", "1.6T", "--fail-link", "L3-S1", "--hosts", "L1,L2")
    assert other["required"][0]["met"]
    strict = answer(database, "--require", "oversubscription < 1", "--rate", "1.6T", code=1)
    assert not strict["required"][0]["met"]
    refused = run(database, *bound)
    assert refused.exit_code == 2
    assert "requires --rate" in refused.output


def test_a_part_of_a_link_can_be_lost_and_pairs_of_links_drawn(database):
    found = answer(database, "--degrade", "25%", "--doubles", "30", "--seed", "7")
    assert of(found, "degrade")["left"] == pytest.approx(1 - 0.25 / 4)
    doubles = of(found, "doubles")
    assert (doubles["failures"], doubles["population"], doubles["seed"]) == (30, 496, 7)
    assert doubles["interval"]["low"] < doubles["mean_left"] < doubles["interval"]["high"]


def test_processes_give_the_same_report(database):
    one = run(database, "--json", "--doubles", "all").output
    assert run(database, "--json", "--doubles", "all", "--workers", "3").output == one


def test_a_comparison_tells_what_a_change_makes_worse_and_better(database, tmp_path):
    old = tmp_path / "old.json"
    old.write_text(run(database, "--json", "--links").output)
    found = answer(database, "--links", "--fail-link", "L1,S1", "--compare", str(old))
    assert found["format"] == "fared-plan-compare/1"
    assert found["gone"] == [{"set": "links", "failure": "L1-S1"}]
    assert {row["failure"] for row in found["worse"]} >= {"L1-S2", "L1-S3", "L1-S4"}
    assert found["worse"][0]["after"]["left"] == pytest.approx(2 / 3)
    shown = run(database, "--links", "--fail-link", "L1,S1", "--compare", str(old)).output
    assert "failures are worse" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_plan_resumes_where_it_was_interrupted(database, tmp_path, monkeypatch):
    state, sets = tmp_path / "state", ("--links", "--nodes", "--doubles", "all")
    whole = run(database, "--json", *sets).output
    computed = []
    compute = PlanTask.compute

    def interrupted(task, part):
        if len(computed) == 4:
            raise KeyboardInterrupt
        computed.append(part)
        return compute(task, part)

    monkeypatch.setattr(PlanTask, "compute", interrupted)
    stopped = run(database, "--json", *sets, "--resume", str(state))
    assert stopped.exit_code == 1
    assert "with --resume" in stopped.output
    with state.open("ab") as file:
        file.write(b"a record that was not written whole")
    done = list(computed)
    monkeypatch.setattr(
        PlanTask, "compute", lambda task, part: computed.append(part) or compute(task, part)
    )
    assert run(database, "--json", *sets, "--resume", str(state)).output == whole
    assert len(set(computed)) == len(computed) > len(done)
    computed.clear()
    assert run(database, "--json", *sets, "--resume", str(state)).output == whole
    assert computed == []
    other = run(database, "--links", "--resume", str(state))
    assert (other.exit_code, "of another plan" in other.output) == (1, True)


def tree_of(page: Path) -> ET.Element:
    """The page as XML: what has no end in HTML is left out."""
    text = re.sub(r"<meta [^>]*>", "", page.read_text().partition("\n")[2])
    return ET.fromstring(text)


def test_the_page_begins_with_the_conclusion(database, tmp_path):
    page = tmp_path / "plan.html"
    given = ("--links", "--nodes", "--require", "n-1 > 75%", "--html", str(page))
    assert run(database, *given).exit_code == 1
    items = [(item.get("class"), item.text) for item in tree_of(page).findall(".//ul/li")]
    bound, single, link, router = items
    assert bound[0] == "bad"
    assert bound[1].startswith("n-1 > 75% is broken")
    assert single == ("good", "No failure of one link or router cuts a pair apart.")
    assert link[1].startswith("The worst failure of one link, ")
    assert router[1].startswith("The worst failure of one router, S")
    assert "viewport" in page.read_text()
    assert "prefers-color-scheme: dark" in page.read_text()


def test_the_conclusion_names_single_points_of_failure_and_links_without_effect():
    document = {
        "single_points": [{"failure": "S1"}, {"failure": "L1-S1"}],
        "never_matter": [{"failure": "L2-S2"}],
        "sets": [],
        "traffic": None,
        "rows": [],
    }
    bad, spare = conclusions(document)
    assert (bad.kind, bad.text) == ("bad", "There are 2 single points of failure: S1, L1-S1.")
    assert spare.text == "1 link: without it no pair has less."


def test_the_page_has_pictures_of_the_distribution_and_of_the_fabric(database, tmp_path):
    page = tmp_path / "plan.html"
    given = ("--links", "--nodes", "--require", "n-1 > 75%", "--html", str(page))
    assert run(database, *given).exit_code == 1
    tree = tree_of(page)
    picture, *_ = tree.findall(".//svg")
    failed = picture.findall("line[@class='failed']")
    assert len(failed) + len(picture.findall("circle[@class='failed']")) >= 1
    assert len(picture.findall("circle")) == 12
    names = [text.text for text in picture.findall("text")]
    assert names[:8] == [f"L{n}" for n in range(1, 9)]
    causes = [row[1].text for row in tree.findall(".//details//table")[0]][1:]
    assert set(causes) <= {f"L{leaf}-S{spine}" for leaf in range(1, 9) for spine in range(1, 5)}


def test_the_page_draws_the_shortest_paths_of_the_worst_pair(database, tmp_path):
    page = tmp_path / "plan.html"
    run(database, "--links", "--drained", "S1", "--html", str(page))
    picture = tree_of(page).findall(".//svg")[0]
    kinds = Counter(line.get("class") for line in picture.findall("line"))
    assert kinds["failed"] == 1
    assert kinds["pair"] == 2 * 3 - 1  # not over S1


def test_a_link_that_keeps_a_part_is_named_with_it(database):
    found = answer(database, "--links", "--degrade", "25%")
    assert {row["failure"] for row in found["rows"] if row["set"] == "degrade"} == {
        f"{row['failure']} at 75%" for row in found["rows"] if row["set"] == "links"
    }


@pytest.mark.parametrize("args", [(), ("--doubles", "all", "--drained", "S2", "--degrade", "9%")])
def test_the_tables_fit_eighty_columns(database, args):
    result = run(database, *args)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "Single points of failure\nnone" in result.output


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--require", "n-1"), 2, "is not SET >= PERCENT%"),
        (("--require", "weather >= 3%"), 2, "sets: links, nodes"),
        (("--require", "groups >= 3%"), 2, "requires --group"),
        (("--doubles", "some"), 2, "neither 'all' nor 'classes'"),
        (("--degrade", "200%"), 2, "not a percentage"),
        (("--group", "x"), 2, "is not NAME="),
        (("--group", "x=Z9"), 1, "no router and no link is named 'Z9'"),
        (("--groups", "/nowhere.yaml"), 1, "No such file"),
        (("--between", "Z*"), 1, "no router is named 'Z*'"),
        (("--between", "L1"), 1, "two routers or more"),
        (("--between", "L1,9.9.9.0/24"), 1, "no router advertises 9.9.9.0/24"),
        (("--between", "L1,9.9.9.0/99"), 1, "99"),
        (("--drained", "Z9"), 2, "no router 'Z9'"),
        (("--compare", "/dev/null"), 1, "not JSON"),
    ],
)
def test_mistakes_are_told(database, args, code, words):
    result = run(database, *args)
    assert result.exit_code == code
    assert words in result.output


def test_a_terminal_has_a_progress_bar_with_rate_and_time_left(database):
    given = ("plan", "failures", "--lsdb", database, "--doubles", "all", "--workers", "1")
    with Terminal(*given) as terminal:
        assert terminal.ended()[0] == 0
        drawn = [line for line in terminal.output.split("\r") if " of 496 failures, " in line]
    assert drawn[-1].startswith("\x1b[K" + "█" * 16 + " 496 of 496 failures, ")
    assert all(len(line) < 80 and re.search(r", [\d,]+/s, \d+ s left", line) for line in drawn[:-1])
