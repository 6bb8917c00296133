"""Topology files that ``fared-lab generate`` writes: those of Clos fabrics, and what all share."""

from __future__ import annotations

import itertools
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fared.core.ids import BACKBONE
from fared.extensions.lab import sandbox, topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.generate.registry import NAMES
from fared.extensions.lab.kinds.bird import Bird
from fared.extensions.lab.kinds.fared import configuration
from fared.extensions.lab.kinds.frr import Frr
from fared.extensions.lab.labels import PROTOCOLS
from fared.extensions.lab.main import main
from fared.extensions.lab.ranks import all_ranks

DIRECTORY = Path(__file__).parents[2] / "containerlab"


def generated(*options: str, name: str = "clos5") -> str:
    done = CliRunner().invoke(main, ["generate", name, *options])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def figure_2() -> AddressPlan:
    text = generated("--pods", "8", "--supers", "4", "--name", "figure2")
    return make_plan(topology.from_document(yaml.safe_load(text), Path("figure2.clab.yml")))


@pytest.mark.parametrize(
    ("name", "protocol"),
    [*itertools.product(("clos3", "clos5"), ("ospf", "isis")), ("clos3", "bgp"), ("rails", "ospf")],
)
def test_the_default_output_is_the_file_in_containerlab(name: str, protocol: str):
    suffix = "" if protocol == "ospf" else f"-{protocol}"
    written = (DIRECTORY / f"{name}{suffix}.clab.yml").read_text("utf-8")
    assert generated("--protocol", protocol, name=name) == written


def test_the_whole_figure_has_eight_pods_and_four_planes_of_four(figure_2: AddressPlan):
    """80 routers: 8 PoDs of 4 leaves and 4 spines, 16 super-spines; 256 links between them."""
    roles = Counter(plan.name.rstrip("0123456789").rpartition("-")[2] for plan in figure_2.routers)
    assert roles == {"SS": 16, "S": 32, "L": 32}
    assert sum(len(plan.fabric_ports) for plan in figure_2.routers) == 2 * 256
    assert len(figure_2.hosts) == 32


def test_every_spine_joins_its_pod_and_its_plane(figure_2: AddressPlan):
    ports = figure_2.node("p8-S3").fabric_ports
    by_area = {area: {p.peer for p in ports if p.area == area} for area in (BACKBONE, 8)}
    assert by_area == {
        BACKBONE: {f"plane3-SS{n}" for n in range(1, 5)},
        8: {f"p8-L{n}" for n in range(1, 5)},
    }
    assert {port.peer for port in figure_2.node("plane3-SS4").ports} == {
        f"p{pod}-S3" for pod in range(1, 9)
    }


def test_rates_and_names_can_be_chosen(tmp_path: Path):
    """The name is that of the lab, and of the file that containers look for."""
    text = generated("--pods", "3", "--spines", "2", "--leaves", "1", "--rate", "1G", "--name", "x")
    assert "x.clab.yml:/fabric.clab.yml" in text
    file = tmp_path / "x.clab.yml"
    file.write_text(text)
    source = topology.load(file)
    assert source.name == "x"
    assert {port.rate for r in make_plan(source).routers for port in r.fabric_ports} == {1e9 / 8}


def test_the_hello_interval_of_a_generated_fabric_can_be_chosen(tmp_path: Path):
    """Four intervals without a hello end an adjacency; every kind of router is told the same."""
    file = tmp_path / "slow.clab.yml"
    file.write_text(generated("--hello", "10"))
    plan = make_plan(topology.load(file)).node("p1-L1")
    areas = configuration(plan, tmp_path / "socket")["ospf"]["areas"]
    port = areas["0.0.0.1"]["interfaces"]["p1-S1"]
    assert (port["hello-interval"], port["dead-interval"]) == (10, 40)
    assert "hello 10; dead count 4;" in Bird().files(plan, tmp_path)["bird.conf"]
    frr = Frr().files(plan, tmp_path)["ospfd.conf"]
    assert "ip ospf hello-interval 10\n ip ospf dead-interval 40\n" in frr


def test_a_hello_interval_is_a_number_of_seconds(tmp_path: Path):
    file = tmp_path / "odd.clab.yml"
    file.write_text(generated().replace("hello-interval: 1}", "hello-interval: soon}"))
    with pytest.raises(TopologyError, match="'soon' is not 1 to 9999 seconds"):
        topology.load(file)


@pytest.mark.parametrize("options", [("--rate", "fast"), ("--pods", "1"), ("--leaves", "0")])
def test_sizes_that_make_no_fabric_are_refused(options: tuple[str, str]):
    done = CliRunner().invoke(main, ["generate", "clos5", *options])
    assert done.exit_code == 2
    assert options[0] in done.output


def test_sites_are_areas_joined_by_links_with_rate_and_delay():
    text = generated("--sites", "4", "--wan", "1G", "--delay", "5ms", name="sites")
    plan = make_plan(topology.from_document(yaml.safe_load(text), Path("sites.clab.yml")))
    border = plan.node("s1-B1").fabric_ports
    wan = [port for port in border if port.area == BACKBONE]
    assert {port.peer for port in wan} == {"s2-B1", "s3-B1", "s4-B1"}
    assert {(port.rate, port.delay) for port in wan} == {(1e9 / 8, 0.005)}
    assert {port.peer: port.delay for port in border if port.area == 1} == {
        "s1-S1": 0.0,
        "s1-S2": 0.0,
    }
    ring = generated("--sites", "4", "--shape", "ring", name="sites")
    plan = make_plan(topology.from_document(yaml.safe_load(ring), Path("sites.clab.yml")))
    assert plan.distances("s1-B1")["s3-B1"] == 2


def rails(*options: str) -> AddressPlan:
    text = generated(*options, name="rails")
    return make_plan(topology.from_document(yaml.safe_load(text), Path("rails.clab.yml")))


def test_a_rail_joins_the_nics_of_one_number_of_all_servers():
    """A rail is an area; a server is behind the leaf of one number in every rail."""
    plan = rails()
    for rank in all_ranks(plan):
        server, gpu = int(rank.host[1:]), rank.name.rpartition(".")[2]
        assert rank.leaf == f"r{gpu}-L{1 if server <= 2 else 2}"
        assert plan.node(rank.leaf).home_area == int(gpu)
    peers = {port.peer for port in plan.node("plane2-SS1").ports}
    assert peers == {f"r{n}-S2" for n in range(1, 5)}
    assert plan.node("r1-S1").home_area == BACKBONE


def test_more_gpus_than_rails_are_dealt_to_them_and_a_rail_may_be_one_leaf():
    plan = rails("--gpus", "4", "--rails", "2", "--leaves", "1")
    leaves = [rank.leaf for rank in all_ranks(plan) if rank.host == "g2"]
    assert leaves == ["r1-L1", "r2-L1", "r1-L1", "r2-L1"]
    assert [port.peer for port in plan.equal_cost_ports("r1-L1", "r2-L1")] == ["S1", "S2"]


@pytest.mark.parametrize(("weights", "even"), [("all", ""), ("leaves", "S"), ("none", "LS")])
def test_the_routers_of_rails_that_weight_paths_can_be_chosen(
    weights: str, even: str, tmp_path: Path
):
    for router in rails("--weights", weights).routers:
        adaptive = configuration(router, tmp_path / "socket").get("adaptive", {})
        letter = router.name.rpartition("-")[2][0]
        assert adaptive == ({"enabled": False} if letter in even else {})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--rails", "3"), "4 GPUs a server cannot be dealt to 3 rails"),
        (("--leaves", "5"), "4 servers leave one of 5 leaves empty"),
    ],
)
def test_gpus_and_servers_that_do_not_fit_rails_are_refused(options: tuple[str, str], told: str):
    done = CliRunner().invoke(main, ["generate", "rails", *options])
    assert (done.exit_code, told in done.stderr) == (2, True)


SMALL = {
    "clos3": ("--leaves", "3", "--hosts", "2"),
    "clos5": ("--spines", "2", "--leaves", "2", "--area", "one"),
    "rails": ("--gpus", "2", "--rails", "2"),
    "random": ("--nodes", "8", "--seed", "7"),
    "sites": ("--wan", "40M"),
    "torus": ("--dimensions", "2x3x2"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", NAMES)
def test_the_head_of_every_file_says_how_to_write_it_again(name: str, protocol: str):
    options = SMALL.get(name, ()), ("--protocol", protocol, "--hello", "2", "--rate", "40M")
    text = generated(*itertools.chain(*options), name=name)
    head = " ".join(line.strip("# ") for line in text.partition("\nname:")[0].splitlines())
    told = re.search(r"`fared-lab generate (\S+) ([^`]*)` writes this file", head)
    assert told is not None
    assert generated(*shlex.split(told[2]), name=told[1]) == text
    source = topology.from_document(yaml.safe_load(text), Path(name))
    assert {node.protocol for node in source.nodes.values() if node.is_router} == {protocol}
    assert {node.hello_interval for node in source.nodes.values()} == {2}
    plan = make_plan(source)
    assert set(plan.distances(plan.routers[0].name)) == {node.name for node in plan.routers}
    assert {port.rate for node in plan.routers for port in node.fabric_ports} == {40e6 / 8}


@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_a_fabric_of_one_area_has_neither_areas_nor_levels(protocol: str):
    assert "vars:" in generated("--protocol", protocol)
    flat = generated("--protocol", protocol, "--area", "one")
    assert "vars:" not in flat
    assert "isis-level" not in flat


def test_bgp_has_no_areas():
    assert "vars:" not in generated("--protocol", "bgp")
    assert "area" not in generated("--protocol", "bgp", name="rails")


def test_pods_are_level_1_with_an_area_each_and_spines_are_of_both_levels():
    source = topology.from_document(yaml.safe_load(generated("--protocol", "isis")), Path("x"))
    of = {name: (node.isis_level, node.isis_area) for name, node in source.nodes.items()}
    assert of["plane1-SS2"] == ("level-2", "49.0000")
    assert of["p2-S3"] == ("level-1-2", "49.0002")
    assert of["p1-L4"] == ("level-1", "49.0001")


def test_a_generated_file_can_be_piped_into_the_demo(monkeypatch: pytest.MonkeyPatch):
    shown: list[str] = []
    monkeypatch.setattr(sandbox, "problem", lambda: None)
    monkeypatch.setattr(sandbox, "run", lambda _: 0)
    load = topology.load

    def noted(path: Path, *_: object, **__: object) -> topology.LabTopology:
        source = load(path)
        shown.append(source.name)
        return source

    monkeypatch.setattr(topology, "load", noted)
    done = CliRunner().invoke(main, ["demo", "-"], input=generated("--name", "piped"))
    assert (done.exit_code, done.output, shown) == (0, "", ["piped"])


def test_what_is_piped_in_must_be_a_topology():
    for wrong, told in (("", "-: is empty"), ("a: [", "-: not YAML"), ("a: 1", "-: 2 faults")):
        done = CliRunner().invoke(main, ["up", "-"], input=wrong)
        assert done.exit_code == 2
        assert told in done.output
