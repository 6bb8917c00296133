"""``--diff`` shows changed routes before and after; ``--explain``; both as tables."""

from __future__ import annotations

import json

import msgspec
import pytest
from click.testing import CliRunner
from rich.console import Console

from fared.extensions.offline.documents import OfflineRoutes, RoutesAll, RoutesDiff
from fared.management.cli.main import main
from fared.management.documents.paper import Paper
from tests.offline.fabrics import answer, run_spf

LEAF_2 = "10.0.2.0/24"


def shown(document, width=80) -> str:
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as captured:
        msgspec.convert(document, OfflineRoutes | RoutesAll | RoutesDiff).show(Paper(console, 0.0))
    return captured.get()


def test_only_routes_that_change_are_listed(document):
    found = answer(document, "--diff", "--set-bandwidth", "S1,L2=100G")
    assert found["format"] == "fared-routes-diff/1"
    assert found["changes"] == ["set-bandwidth S1,L2=100G"]
    assert [route["prefix"] for route in found["routes"]] == [LEAF_2, "10.255.0.6/32"]
    assert found["unchanged"] == len(answer(document)["routes"]) - 2
    first, second = found["routes"][0]["nexthops"][:2]
    assert (first["before"]["weight"], first["after"]["weight"]) == (1, 1)
    assert (first["before"]["share"], first["after"]["share"]) == (0.25, 0.0769)
    assert (second["before"]["weight"], second["after"]["weight"]) == (1, 4)


def test_a_dead_link_removes_next_hops_and_its_subnet(document):
    routes = {r["prefix"]: r for r in answer(document, "--diff", "--fail-link", "L1,S1")["routes"]}
    gone = [hop for hop in routes[LEAF_2]["nexthops"] if hop["after"] is None]
    assert [hop["interface"] for hop in gone] == ["S1"]
    assert routes["10.128.0.0/31"]["after"] is None
    detour = routes["10.255.0.1/32"]
    assert (detour["before"]["metric"], detour["after"]["metric"]) == (10, 30)
    assert [hop["before"] is None for hop in detour["nexthops"]] == [False, True, True, True]


def test_a_change_that_moves_nothing_is_an_empty_difference(document):
    found = answer(document, "--diff", "--set-bandwidth", "S1,L2=400G")
    assert found["routes"] == []


def test_seen_from_everywhere(document):
    found = answer(document, "--all", "--diff", "--fail-node", "S1")
    assert found["format"] == "fared-routes-all/1"
    assert "10.255.0.1" not in [entry["root"] for entry in found["roots"]]
    assert {entry["format"] for entry in found["roots"]} == {"fared-routes-diff/1"}


def test_routes_look_like_those_of_the_daemon(document):
    result = run_spf(document)
    lines = result.stdout.splitlines()
    assert lines[0].split()[:4] == ["Prefix", "Metric", "Next", "hop"]
    assert max(map(len, lines)) <= 80
    assert "Ignored" not in result.stdout


def test_a_made_up_next_hop_is_shown_by_its_neighbor(document):
    line = next(x for x in run_spf(document, "--root", "L2").stdout.splitlines() if "10.0.1." in x)
    assert line.split() == ["10.0.1.0/24", "intra", "30", "10.128.0.9", "S1", "1", "25%", "400G"]


@pytest.mark.parametrize(
    "args",
    [
        ("--diff", "--fail-link", "L1,S1"),
        ("--diff", "--set-bandwidth", "S1,L2=100G", "--set-cost", "S2,L3=77"),
        ("--all", "--diff", "--fail-node", "S1"),
        ("--overload", "S1"),
    ],
)
def test_tables_fit_eighty_columns(document, args):
    text = shown(answer(document, *args))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_the_difference_as_a_table(document):
    text = shown(answer(document, "--diff", "--set-bandwidth", "S1,L2=100G"))
    assert "What if: set-bandwidth S1,L2=100G" in text
    assert "L1 (10.255.0.5): 2 of 52 routes change" in text
    line = next(line for line in text.splitlines() if "10.128.0.3" in line)
    assert line.split() == ["~", "10.128.0.3", "S2", "1", "->", "4", "25%", "->", "30.8%", "400G"]


def test_routers_where_nothing_changes_are_only_counted(document):
    text = shown(answer(document, "--all", "--diff", "--set-bandwidth", "S1,L2=100G"))
    assert "L3 (10.255.0.7): 2 of 52 routes change" in text
    assert "S2 (10.255.0.2)" not in text
    assert "Nothing changes on 4 other routers" in text


def test_explain_names_the_limiting_link(document):
    args = ("--set-bandwidth", "S1,L2=100G", "--explain", LEAF_2)
    found = answer(document, *args)
    assert found["format"] == "fared-explain/1"
    assert found["nexthops"][0]["limiting_link"]["from_hostname"] == "S1"
    assert found["nexthops"][0]["limiting_link"]["to_hostname"] == "L2"
    assert "S1 > L2" in run_spf(document, *args).stdout


def test_explain_a_route_of_another_router(document):
    found = answer(document, "--root", "L2", "--explain", "10.0.1.7")
    assert found["prefix"] == "10.0.1.0/24"
    assert found["nexthops"][0]["interface"] is None
    assert run_spf(document, "--root", "L2", "--explain", "10.0.1.7").exit_code == 0


def test_explain_what_is_not_there(document):
    result = run_spf(document, "--explain", "192.0.2.0/24")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no route to 192.0.2.0/24" in result.stderr
    assert run_spf(document, "--explain", "nonsense").exit_code == 2


def test_as_a_command_of_the_operators_tool(document, tmp_path):
    """``--json`` is accepted before the command as well; no daemon is needed."""
    path = tmp_path / "db.json"
    path.write_text(json.dumps(document))
    result = CliRunner().invoke(main, ["--json", "spf", "--lsdb", str(path), "--root", "S1"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["root"] == "10.255.0.1"


@pytest.mark.parametrize("link", ["L1-S1", "S1-L1", "L1 > S1", "L1>S1"])
def test_a_link_has_one_spelling_in_options_and_tables(document, link):
    """``A-B``, as tables have it, and ``A,B`` are the same link."""
    assert (
        answer(document, "--all", "--fail-link", link)["roots"]
        == answer(document, "--all", "--fail-link", "L1,S1")["roots"]
    )


def test_a_link_has_two_directions_and_a_direction_one(document):
    def changed(*links):
        options = [word for link in links for word in ("--set-bandwidth", f"{link}=100G")]
        return answer(document, "--all", *options)["roots"]

    assert changed("S1-L2") == changed("S1,L2", "L2,S1") == changed("S1 > L2", "L2 > S1")
    assert changed("S1-L2") != changed("S1 > L2") == changed("S1,L2")
