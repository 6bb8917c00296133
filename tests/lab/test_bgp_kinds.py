"""BGP in the lab: numbers of AS, configurations of FRR and BIRD, and both in one fabric."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.kinds import kind_of
from fared.extensions.lab.main import main
from fared.extensions.lab.status import show_status
from fared.extensions.lab.waiting import await_paths, interfaces, wait_until

SMALL = """
name: small
topology:
  defaults: {labels: {fared-lab.rate: 100M, fared-lab.protocol: bgp}}
  nodes: {S1: {kind: frr}, S2: {kind: bird}, L1: {kind: frr}, L2: {kind: bird}, h1: {}, h2: {}}
  links:
    - endpoints: ["S1:L1", "L1:S1"]
    - endpoints: ["S2:L1", "L1:S2"]
    - endpoints: ["S1:L2", "L2:S1"]
    - endpoints: ["S2:L2", "L2:S2"]
    - endpoints: ["L1:h1", "h1:L1"]
    - endpoints: ["L2:h2", "h2:L2"]
"""


def small(text: str = SMALL) -> topology.LabTopology:
    return topology.from_document(yaml.safe_load(text), Path("small.clab.yml"))


def generated(*words: str) -> AddressPlan:
    text = CliRunner().invoke(main, ["generate", *words, "--protocol", "bgp"]).output
    return make_plan(topology.from_document(yaml.safe_load(text), Path("x.clab.yml")))


def systems(plan: AddressPlan) -> dict[int | None, list[str]]:
    found: dict[int | None, list[str]] = {}
    for router in plan.routers:
        found.setdefault(router.system, []).append(router.name)
    return found


@pytest.mark.rfc("RFC 7938 §5.2.1")
def test_each_leaf_is_an_as_and_all_spines_are_one():
    assert systems(generated("clos3", "--spines", "3", "--leaves", "2")) == {
        65001: ["S1", "S2", "S3"],
        65004: ["L1"],
        65005: ["L2"],
    }


@pytest.mark.rfc("RFC 7938 §5.2.1")
def test_the_spines_of_a_pod_are_one_as_and_the_super_spines_of_a_plane():
    plan = generated("clos5", "--spines", "2", "--leaves", "2")
    groups = [names for names in systems(plan).values() if len(names) > 1]
    assert groups == [
        ["plane1-SS1", "plane1-SS2"],
        ["plane2-SS1", "plane2-SS2"],
        ["p1-S1", "p1-S2"],
        ["p2-S1", "p2-S2"],
    ]


def test_routers_that_are_linked_share_no_as():
    """They would refuse what they tell each other: the path has their own AS."""
    linked = SMALL.replace("  links:\n", '  links:\n    - endpoints: ["S1:S2", "S2:S1"]\n')
    assert len(systems(make_plan(small(linked)))) == 4
    assert all(len(names) == 1 for names in systems(generated("torus")).values())


def test_more_routers_than_short_numbers_take_long_ones():
    """Both ranges are for private use (RFC 6996)."""
    nodes = {f"r{n}": {"kind": "frr"} for n in range(1, 541)}
    defaults = {"labels": {"fared-lab.protocol": "bgp"}}
    document = {"name": "x", "topology": {"defaults": defaults, "nodes": nodes}}
    plan = make_plan(topology.from_document(document, Path("x")))
    assert plan.node("r534").system == 65534
    assert plan.node("r535").system == 4_200_000_535


def test_bgpd_is_configured_as_users_of_frr_do_in_fabrics(tmp_path: Path):
    files = kind_of("frr").files(make_plan(small()).node("L1"), tmp_path)
    assert (
        files["bgpd.conf"]
        == """\
frr defaults datacenter
hostname L1
router bgp 65003
 bgp router-id 10.255.0.3
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 timers bgp 3 9
 neighbor 10.128.0.0 remote-as 65001
 neighbor 10.128.0.0 description S1
 neighbor 10.128.0.0 timers connect 1
 neighbor 10.128.0.2 remote-as 65001
 neighbor 10.128.0.2 description S2
 neighbor 10.128.0.2 timers connect 1
 address-family ipv4 unicast
  network 10.255.0.3/32
  network 10.0.1.0/24
  maximum-paths 64
 exit-address-family
"""
    )
    assert "no zebra nexthop kernel enable" in files["zebra.conf"]


@pytest.mark.peers
def test_bird_has_a_protocol_for_each_neighbor(tmp_path: Path):
    text = kind_of("bird").files(make_plan(small()).node("L2"), tmp_path)["bird.conf"]
    assert text.endswith(
        """\
protocol direct own { ipv4; interface "lo", "h2"; }
template bgp fabric {
  hold time 9; keepalive time 3; connect delay time 0; connect retry time 1; error wait time 1, 4;
  check link on;
  ipv4 { import all; export where source = RTS_BGP || proto = "own"; };
}
protocol bgp 'S1' from fabric {
  local 10.128.0.5 as 65004;
  neighbor 10.128.0.4 as 65001;
}
protocol bgp 'S2' from fabric {
  local 10.128.0.7 as 65004;
  neighbor 10.128.0.6 as 65001;
}
"""
    )
    (tmp_path / "bird.conf").write_text(text)
    command = ["bird", "-p", "-c", tmp_path / "bird.conf"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_router_without_bgp_is_no_neighbor():
    other = "S2: {kind: bird, labels: {fared-lab.protocol: ospf}}"
    plan = make_plan(small(SMALL.replace("S2: {kind: bird}", other)))
    assert [port.peer for port in plan.node("L1").bgp_ports] == ["S1"]
    assert plan.node("S2").system is None


def test_bgp_is_refused_at_a_lan():
    at_lan = "".join(
        f'    - endpoints: ["{name}:br", "br:{name}"]\n' for name in ("S1", "S2", "L1")
    )
    text = SMALL.replace("h1: {}", "h1: {}, br: {kind: bridge}") + at_lan
    with pytest.raises(TopologyError, match="BGP runs over links between two routers, and br is a"):
        small(text)


@pytest.mark.netns
@pytest.mark.peers
def test_frr_and_bird_share_a_fabric_and_take_each_others_place(tmp_path: Path, capsys):
    """The spine whose link fails withdraws what was behind it; spines outlive other leaves."""
    with Fabric.from_topology(small(), directory=tmp_path) as fabric:
        assert await_paths(fabric, 40.0) is not None
        told = {"L1": "10.0.2.0/24", "L2": "10.0.1.0/24"}
        views = fabric.views([fabric.plan.node(name) for name in told])

        def over(*spines: str) -> float | None:
            def accepts(name: str, view: KernelView) -> bool:
                return interfaces(view.hops(told[name])) == set(spines)

            return wait_until(views, accepts, 30.0)

        fabric.fail("S1", "L2")
        assert over("S2") is not None
        fabric.heal("S1", "L2")
        assert over("S1", "S2") is not None

        spines = {name: fabric.nodes[name].processes[0].pid for name in ("S1", "S2")}
        fabric.become({"L1": "bird", "L2": "frr"})
        assert over("S1", "S2") is not None
        assert spines == {name: fabric.nodes[name].processes[0].pid for name in spines}
        assert show_status(fabric) == 0
        told_of = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
        assert told_of["L1"][1:7] == ["bird", "10.255.0.3", "65003", "2", "of", "2"]
        assert told_of["S2"][1:7] == ["bird", "10.255.0.2", "65001", "2", "of", "2"]
