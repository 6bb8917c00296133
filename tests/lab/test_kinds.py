"""Generated configurations of each daemon."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from fared.config import load_text
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import NodePlan, make_plan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds import kind_of

FILES = Path(__file__).parents[2] / "containerlab"


def plan_of(kind: str, **more) -> NodePlan:
    document = {
        "name": "x",
        "topology": {
            "nodes": {
                "L1": {"kind": kind, "labels": {"fared-lab.rate": "100M"}, **more},
                "S1": {"kind": "frr"},
                "h1": {},
            },
            "links": [{"endpoints": ["S1:L1", "L1:S1"]}, {"endpoints": ["L1:h1", "h1:L1"]}],
        },
    }
    return make_plan(topology.from_document(document, Path(__file__))).node("L1")


def test_the_configuration_of_fared_lists_interfaces_and_measured_rates(tmp_path: Path):
    """Hosts are announced, not spoken to; the rate is read from the shaper."""
    files = kind_of("fared").files(plan_of("fared"), tmp_path)
    assert yaml.safe_load(files["fared.yaml"]) == {
        "router-id": "10.255.0.1",
        "hostname": "L1",
        "state-directory": str(tmp_path),
        "interfaces": {"S1": {"bandwidth": "auto"}, "h1": {"bandwidth": "auto"}},
        "ospf": {
            "areas": {
                "0.0.0.0": {
                    "interfaces": {
                        "lo": {"passive": True},
                        "S1": {
                            "network-type": "point-to-point",
                            "cost": 10,
                            "hello-interval": 1,
                            "dead-interval": 4,
                        },
                        "h1": {"passive": True, "cost": 10},
                    }
                }
            }
        },
        "api": {"socket": str(tmp_path / "fared.sock"), "http": "127.0.0.1:9547"},
        "log": {"level": "info", "format": "json"},
    }


def test_frr_lowers_every_bandwidth_before_it_sets_the_maximum(tmp_path: Path):
    """FRR refuses a maximum that is not above all others at that moment."""
    lines = [
        line.strip()
        for line in kind_of("frr").files(plan_of("frr"), tmp_path)["zebra.conf"].splitlines()
    ]
    assert (
        lines.index("unrsv-bw 7 1")
        < lines.index("max-bw 1.25e+07")
        < lines.index("ava-bw 1.25e+07")
    )
    assert "no zebra nexthop kernel enable" in lines


def test_frr_starts_zebra_first(tmp_path: Path):
    """ospfd looks for zebra's socket only every ten seconds."""
    first, second = kind_of("frr").commands(plan_of("frr"), tmp_path)
    assert (first.name, second.name) == ("zebra", "ospfd")
    assert first.ready == tmp_path / "zserv"


@pytest.mark.peers
def test_bird_accepts_the_generated_configuration(tmp_path: Path):
    """``bird -p`` parses without starting."""
    files = kind_of("bird").files(plan_of("bird"), tmp_path)
    (tmp_path / "bird.conf").write_text(files["bird.conf"])
    done = subprocess.run(
        ["bird", "-p", "-c", tmp_path / "bird.conf"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("kind", "file"), [("fared", "fared.yaml"), ("bird", "bird.conf")])
def test_a_startup_config_is_used_unchanged(tmp_path: Path, kind: str, file: str):
    """The generated one is only the default."""
    own = tmp_path / "own.cfg"
    own.write_text("mine\n")
    plan = plan_of(kind, **{"startup-config": str(own)})
    assert kind_of(kind).files(plan, tmp_path) == {file: "mine\n"}


def test_an_integrated_frr_config_is_loaded_through_vtysh(tmp_path: Path):
    """As FRR's own start script does, after both daemons are up."""
    own = tmp_path / "frr.conf"
    own.write_text("router ospf\n")
    plan = plan_of("frr", **{"startup-config": str(own)})
    commands = kind_of("frr").commands(plan, tmp_path)
    assert commands[-1].arguments[-2:] == ("-f", str(tmp_path / "startup.conf"))
    assert kind_of("frr").files(plan, tmp_path)["startup.conf"] == "router ospf\n"
    assert not commands[-1].lasting


def test_every_router_kind_has_its_operator_tool(tmp_path: Path):
    """``fared-lab cli`` speaks to each in its own tongue; hosts have none."""
    assert kind_of("frr").cli(tmp_path, ["show", "ip", "route"])[-2:] == ["-c", "show ip route"]
    assert kind_of("bird").cli(tmp_path, ["show", "route"])[-2:] == ["show", "route"]
    assert kind_of("fared").cli(tmp_path, ["show", "routes"])[-4:] == [
        "-s",
        str(tmp_path / "fared.sock"),
        "show",
        "routes",
    ]
    with pytest.raises(LabError, match="is a host"):
        kind_of("linux").cli(tmp_path, ["show"])


def test_an_isis_fabric_has_ipv6_on_loopbacks_and_toward_hosts_only():
    """Links between routers have link-local addresses; the title spells the router id."""
    plan = make_plan(topology.load(FILES / "clos5-isis.clab.yml"))
    leaf = plan.node("p2-L1")
    assert leaf.net == "49.0002.0102.5500.0021.00"
    assert str(leaf.loopback6) == "fd00::15"
    assert [str(prefix) for prefix in leaf.host_prefixes6] == ["2001:db8:5::/64"]
    assert {port.address6 for port in leaf.fabric_ports} == {None}
    assert {port.level for port in leaf.fabric_ports} == {"level-1"}
    spine = plan.node("p2-S1")
    assert {port.level for port in spine.fabric_ports} == {"level-1", "level-2"}


@pytest.mark.parametrize("name", ["clos3-isis", "clos5-isis", "clos3-isis-mixed"])
def test_fared_accepts_the_generated_isis_configuration(name, tmp_path):
    """What the lab writes for a node of its own is a valid configuration."""
    plan = make_plan(topology.load(FILES / f"{name}.clab.yml"))
    for node in plan.routers:
        if node.node.kind == "fared":
            config = load_text(kind_of("fared").files(node, tmp_path)["fared.yaml"])
            assert config.ospf is None
            assert config.isis is not None
            assert str(config.isis.net[0]) == node.net


@pytest.mark.parametrize("name", ["clos3-bgp", "clos3-frr-spines"])
def test_fared_accepts_the_generated_bgp_configuration(name, tmp_path):
    """Networks of leaves are its own, and each neighbor is named with its AS."""
    plan = make_plan(topology.load(FILES / f"{name}.clab.yml"))
    config = load_text(kind_of("fared").files(plan.node("L2"), tmp_path)["fared.yaml"])
    assert config.ospf is None
    assert config.bgp is not None
    assert (config.bgp.as_, set(config.bgp.by_address)) == (
        65006,
        {str(port.peer_address) for port in plan.node("L2").fabric_ports},
    )
    assert [str(prefix) for prefix in config.bgp.own_prefixes] == ["10.255.0.6/32", "10.0.2.0/24"]
    assert {one.remote_as for one in config.bgp.neighbors.values()} == {65001}


def test_frr_gets_its_timers_before_its_levels():
    """In the other order isisd waits 30 s with its first LSP."""
    plan = make_plan(topology.load(FILES / "clos5-isis-mixed.clab.yml"))
    text = kind_of("frr").files(plan.node("plane1-SS1"), Path("/x"))["isisd.conf"]
    assert (
        text.index("lsp-gen-interval") < text.index("net 49.0000") < text.index("is-type level-2")
    )


def test_bird_is_refused_in_an_isis_fabric():
    """It has none."""
    document = {
        "name": "x",
        "topology": {
            "defaults": {"labels": {"fared-lab.protocol": "isis"}},
            "nodes": {"a": {"kind": "bird"}},
        },
    }
    with pytest.raises(LabError, match="BIRD does not support IS-IS"):
        topology.from_document(document, Path("x"))
