"""Five-stage topology files of any size, written by ``fared-lab generate clos5``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from fared.core.ids import BACKBONE
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.kinds.bird import Bird
from fared.extensions.lab.kinds.fared import configuration
from fared.extensions.lab.kinds.frr import Frr
from fared.extensions.lab.main import main

DIRECTORY = Path(__file__).parents[2] / "containerlab"


def generated(*options: str, name: str = "clos5") -> str:
    done = CliRunner().invoke(main, ["generate", name, *options])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def figure_2(tmp_path: Path) -> AddressPlan:
    file = tmp_path / "figure2.clab.yml"
    file.write_text(generated("--pods", "8", "--supers", "4", "--name", "figure2"))
    return make_plan(topology.load(file))


@pytest.mark.parametrize("protocol", ["ospf", "isis"])
@pytest.mark.parametrize("name", ["clos3", "clos5"])
def test_the_default_output_is_the_file_in_containerlab(name: str, protocol: str):
    suffix = {"ospf": "", "isis": "-isis"}[protocol]
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
