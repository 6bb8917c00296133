"""``fared-cli path --lsdb FILE`` shows what the daemon of the file shows, without one."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from fared.extensions.offline.changes import Changes
from fared.extensions.offline.file import read_database
from fared.extensions.offline.path import PathQuestion, path_document
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3
from fared.extensions.sim.levels import COMMON, clos3_isis, clos5_levels
from fared.extensions.sim.network import Network
from fared.management.api.encode import encode
from fared.management.cli.main import main
from fared.management.documents.errors import CommandError
from fared.management.documents.path import PathDocument
from fared.management.documents.views.path import path
from tests.api.seen import seen_from
from tests.offline import fabrics, isis_fabrics
from tests.offline.fabrics import Json
from tests.offline.test_frr_databases import HOSTNAMES, TRIANGLE, printed, printed_lsps
from tests.offline.test_lan import lan_of_four
from tests.sim.externals import OUTSIDE, announce

Words = Iterable[tuple[str, str]]


def run(*words: str, document: Json | str) -> Result:
    text = document if isinstance(document, str) else json.dumps(document)
    return CliRunner().invoke(main, ["path", *words, "--lsdb", "-"], input=text)


def answer(*words: str, document: Json | str) -> Json:
    result = run(*words, "--json", document=document)
    assert result.exit_code == 0, result.stderr
    found: Json = json.loads(result.stdout)
    return found


def links(document: Json) -> dict[tuple[str, str], float]:
    """The share of traffic of each link."""
    return {(e["from_hostname"], e["to_hostname"]): e["share"] for e in document["edges"]}


def told(ask: Callable[[], PathDocument]) -> object:
    """The JSON of a document, or the error."""
    try:
        return json.loads(encode(ask()))
    except CommandError as error:
        return error.code, str(error)


def check(fabric: Fabric, saver: str, afs: tuple[str | None, ...], asked: Words) -> int:
    """Compare the file of a router with its daemon; return the number of paths."""
    isis = "isis" in fabric.network.nodes[saver].running.instances
    save = isis_fabrics.saved if isis else fabrics.saved
    database = read_database(json.dumps(save(fabric, saver)))
    context = seen_from(fabric, saver)
    worlds = [database.world(None, family, Changes()) for family in database.families]
    solver = context.router.settings.solver
    paths = 0
    for source, destination in asked:
        for af in afs:
            want = PathQuestion(source, destination, None if af is None else int(af[-1]))
            live = told(lambda: path(context, source, destination, af))  # noqa: B023
            found = told(lambda: path_document(worlds, database.own, solver, want))  # noqa: B023
            assert found == live, (saver, want)
            paths += isinstance(live, dict)
    return paths


def some(fabric: Fabric, saver: str, count: int, *more: str) -> Words:
    """Pairs of routers; also the way to prefixes of a router's table, and what is nowhere."""
    names = list(fabric.router_ids)
    table = [str(prefix) for prefix in fabric.network.nodes[saver].running.table.routes]
    ends = [*names, *table[::5], *more, "nobody", "198.51.100.1"]
    pairs = [(a, b) for a in [*names, "nobody"] for b in ends]
    return random.Random(7).sample(pairs, count)


@pytest.fixture(scope="module")
def derated() -> Fabric:
    """Four spines and leaves: S1 can send a quarter to L2."""
    fabric = fabrics.clos(4, 4)
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_until_quiet(60)
    return fabric


@pytest.fixture(scope="module")
def levels() -> Fabric:
    return isis_fabrics.started(clos5_levels(2, 2, 2, 2))


@pytest.mark.parametrize("saver", ["L1", "S2"])
def test_the_document_is_that_of_the_daemon(derated, saver):
    ends = ("10.0.3.0/24", "10.0.3.7", "10.255.0.2")
    assert check(derated, saver, (None, "ipv4", "ipv6"), some(derated, saver, 40, *ends)) > 60


def test_also_over_a_lan():
    fabric = lan_of_four()
    assert check(fabric, "R3", (None,), some(fabric, "R3", 30, "10.192.1.1", "10.0.5.9")) > 20


@pytest.mark.parametrize("type_2", [True, False])
def test_also_to_external_prefixes(type_2):
    fabric = clos3(2, 3, network=Network(seed=5))
    announce(fabric, "L1", metric=5, type_2=type_2)
    announce(fabric, "L2", metric=6, type_2=type_2)
    fabrics.started(fabric)
    asked = [(name, str(OUTSIDE)) for name in fabric.router_ids]
    assert check(fabric, "L3", (None,), asked) == len(asked)


@pytest.fixture(scope="module")
def areas() -> Fabric:
    """Five stages in areas; a leaf of each PoD is an AS boundary router."""
    fabric = clos5_areas(2, 2, 2, 2)
    announce(fabric, "p1.L1", metric=5)
    announce(fabric, "p2.L2", metric=6, type_2=False)
    return fabrics.started(fabric)


@pytest.mark.parametrize("saver", ["p1.L1", "p1.S1", "SS1.1"])
def test_also_in_areas(areas, saver):
    """A border router is asked about paths through its own summaries."""
    assert check(areas, saver, (None,), some(areas, saver, 60, str(OUTSIDE))) > 5


@pytest.mark.parametrize("saver", ["p1.L1", "p1.S1", "SS1.1"])
def test_also_in_both_levels_and_families_of_isis(levels, saver):
    """What level-1-2 routers leak is no prefix of their own, whoever saved the file."""
    afs = (None, "ipv4", "ipv6")
    assert check(levels, saver, afs, some(levels, saver, 50, "2001:db8::1")) > 15


@pytest.mark.parametrize("multi_topology", [True, False])
def test_also_around_an_overloaded_spine(multi_topology):
    fabric = clos3_isis(2, 3, common=replace(COMMON, multi_topology=multi_topology))
    node = fabric.network.nodes["S2"]
    node.settings = node.settings.with_protocol("isis", overload=True)
    isis_fabrics.started(fabric)
    assert check(fabric, "L1", (None, "ipv6"), some(fabric, "L1", 20)) > 20


def test_table_and_json_of_the_command(derated):
    document = fabrics.saved(derated)
    live = told(lambda: path(seen_from(derated, "L1"), "L1", "L2"))
    assert answer("L1", "L2", document=document) == live
    before = CliRunner().invoke(
        main, ["--json", "path", "L1", "L2", "--lsdb", "-"], input=json.dumps(document)
    )
    assert json.loads(before.stdout) == live
    lines = run("L1", "L2", document=document).stdout.splitlines()
    assert lines[:2] == ["L1 to L2", "metric 20, capacity 1300G; rates in bit/s"]
    assert lines[4].split() == ["L1", "S1", "10", "400G", "400G", "7.7%"]


def test_changes_are_those_of_spf(derated):
    document = fabrics.saved(derated)
    failed = answer("L1", "L2", "--fail-link", "L1-S1", "--fail-node", "S2", document=document)
    assert links(failed) == dict.fromkeys(
        [("L1", "S3"), ("L1", "S4"), ("S3", "L2"), ("S4", "L2")], 0.5
    )
    words = ("--set-cost", "L1-S2=30", "--overload", "S3", "--set-bandwidth", "S1 > L2=200G")
    changed = answer("L1", "L2", *words, document=document)
    assert links(changed)["L1", "S1"] == pytest.approx(1 / 3, abs=1e-3)
    assert {tail for tail, _ in links(changed)} == {"L1", "S1", "S4"}


def test_settings_of_routers_are_not_in_a_file(derated):
    document = fabrics.saved(derated)
    assert set(links(answer("L1", "L2", "--weights", "none", document=document)).values()) == {0.25}
    assert len(links(answer("L1", "L2", "--max-paths", "1", document=document))) == 2


def test_without_the_router_of_the_file_the_source_is_asked(derated):
    document = fabrics.saved(derated)
    assert links(answer("L2", "L3", "--fail-node", "L1", document=document)).keys() == {
        *(("L2", f"S{n}") for n in range(1, 5)),
        *((f"S{n}", "L3") for n in range(1, 5)),
    }


def test_paths_through_the_json_of_frr():
    kinds = ("router", "network", "summary", "asbr-summary", "external", "opaque-area")
    every = printed(*kinds)
    spf = CliRunner().invoke(main, ["spf", "--all", "--json", "--lsdb", "-"], input=every)
    compared = 0
    for root in json.loads(spf.stdout)["roots"]:
        for route in root["routes"]:
            if not route["nexthops"]:
                continue
            found = answer(root["root"], route["prefix"], document=every)
            firsts = {e["to"]: e["share"] for e in found["edges"] if e["from"] == root["root"]}
            whole = sum(hop["weight"] for hop in route["nexthops"])
            assert found["metric"] == route["metric"]
            assert firsts == pytest.approx(
                {hop["neighbor"]: hop["weight"] / whole for hop in route["nexthops"]}, abs=1e-6
            )
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("af", ["ipv4", "ipv6"])
def test_paths_through_the_json_of_isis_of_later_versions_of_frr(af):
    found = answer(
        "a", "a-very-long-name", "--af", af, document=printed_lsps(*TRIANGLE) + HOSTNAMES
    )
    assert (found["source"], found["af"]) == ("0102.5500.0001", af)
    over_the_lan = [("a", "b", 10), ("b", "a-very-long-name", 15)]
    assert [(e["from_hostname"], e["to_hostname"], e["metric"]) for e in found["edges"]] == (
        over_the_lan
    )


@pytest.mark.parametrize(
    ("words", "code", "error", "hint"),
    [
        (["L1", "LL2"], 1, "no router 'LL2' in the database", "did you mean 'L2'?"),
        (["X", "L2"], 1, "no router 'X' in the database", "known: 10.255.0.1, "),
        (["L1", "9.9.9.0/24"], 1, "no route to 9.9.9.0/24", "spf --lsdb FILE --root SRC"),
        (["L1", "L2", "--af", "ipv6"], 1, "L2 advertises no ipv6 prefix", "spf --lsdb"),
        (["L1", "L2", "--fail-node", "L2"], 1, "no router 'L2'", "spf --lsdb"),
        (["L1", "L2", "--proto", "isis"], 2, "--proto isis: the database is one of OSPF", "omit"),
        (["L1", "L2", "--watch", "3"], 2, "--lsdb takes no --watch", "the daemon is asked"),
    ],
    ids=str,
)
def test_errors_name_what_is_wrong_and_what_to_do(derated, words, code, error, hint):
    result = run(*words, document=fabrics.saved(derated))
    assert result.exit_code == code
    first, *_, last = result.stderr.splitlines()
    assert error in first
    assert last.startswith("Hint: ")
    assert hint in last


def test_a_socket_is_refused_but_its_variable_may_be_set(derated):
    text = json.dumps(fabrics.saved(derated))
    words = ["path", "L1", "L2", "--lsdb", "-"]
    result = CliRunner().invoke(main, ["-s", "/run/x.sock", *words], input=text)
    assert result.exit_code == 2
    assert "--lsdb takes no --socket" in result.stderr
    result = CliRunner().invoke(main, words, input=text, env={"FARED_SOCKET": "/run/x.sock"})
    assert result.exit_code == 0


@pytest.mark.parametrize(
    "words", [["--fail-link", "L1-S1"], ["--max-paths", "64"], ["--overload", "S1"]], ids=str
)
def test_a_daemon_is_asked_without_assumptions(words):
    result = CliRunner().invoke(main, ["path", "L1", "L2", *words])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {words[0]} requires --lsdb\nHint: ")


def test_a_file_that_is_none_is_refused_as_by_spf(tmp_path: Path):
    file = tmp_path / "db.json"
    file.write_text("]")
    commands = ["spf"], ["path", "a", "b"]
    errors = [CliRunner().invoke(main, [*words, "--lsdb", str(file)]) for words in commands]
    assert errors[0].exit_code == errors[1].exit_code == 1
    assert errors[0].stderr == errors[1].stderr


def test_without_fared_tools_the_option_names_the_package():
    """And the daemon is still asked by the command; it is not there, exit code 3."""
    code = (
        "import sys; sys.modules['fared.extensions.offline'] = None\n"
        "from fared.management.cli.main import main\n"
        "main(sys.argv[1:])"
    )

    def tried(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, "-s", "/nonexistent", "path", "a", "b", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert tried().returncode == 3
    refused = tried("--lsdb", "x")
    assert refused.returncode == 2
    assert "'--lsdb' is in another package: install fared-tools" in refused.stderr
