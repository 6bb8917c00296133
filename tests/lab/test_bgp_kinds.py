"""BGP in the lab: numbers of AS, configurations of FRR and BIRD, and both in one fabric."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner, Result

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.kinds import kind_of
from fared.extensions.lab.kinds.fared import configuration
from fared.extensions.lab.main import main
from fared.extensions.lab.node import _address_commands
from fared.extensions.lab.status import show_status
from fared.extensions.lab.waiting import await_paths, interfaces, wait_until
from tests.lab import two_leaves
from tests.lab.stream import Stream

KINDS = {"S1": "frr", "S2": "bird", "L1": "frr", "L2": "bird"}
LAN = """
name: lan
topology:
  defaults: {labels: {fared-lab.protocol: bgp, fared-lab.bgp-sessions: dual}}
  nodes: {A: {kind: fared}, B: {kind: frr}, C: {kind: bird}, br: {kind: bridge}, h1: {}, h2: {}}
  links:
    - endpoints: ["A:lan", "br:A"]
    - endpoints: ["B:lan", "br:B"]
    - endpoints: ["C:lan", "br:C"]
    - endpoints: ["A:h1", "h1:A"]
    - endpoints: ["br:h2", "h2:br"]
"""


def document(sessions: str = "ipv4", **kinds: str) -> dict[str, Any]:
    """Two leaves and two spines, of FRR and of BIRD unless others are named."""
    more = {} if sessions == "ipv4" else {"bgp-sessions": sessions}
    made = two_leaves.topology("small", protocol="bgp", more=more, **{**KINDS, **kinds})
    return cast("dict[str, Any]", yaml.safe_load(made))


def read(made: object) -> topology.LabTopology:
    return topology.from_document(made, Path("small.clab.yml"))


def small(sessions: str = "ipv4", **kinds: str) -> topology.LabTopology:
    return read(document(sessions, **kinds))


def at_lan(made: dict[str, Any], *names: str) -> dict[str, Any]:
    made["topology"]["nodes"]["br"] = {"kind": "bridge"}
    made["topology"]["links"] += [{"endpoints": [f"{n}:br", f"br:{n}"]} for n in names]
    return made


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, ["generate", *words])


def generated(*words: str) -> AddressPlan:
    return make_plan(read(yaml.safe_load(invoke(*words, "--protocol", "bgp").output)))


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
    linked, shared = document(), at_lan(document(), "S1", "S2", "L1")
    linked["topology"]["links"].append({"endpoints": ["S1:S2", "S2:S1"]})
    for made in (linked, shared):
        assert len(systems(make_plan(read(made)))) == 4
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
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 neighbor 10.128.0.0 remote-as 65001
 neighbor 10.128.0.0 description S1
 neighbor 10.128.0.0 timers connect 1
 neighbor 10.128.0.4 remote-as 65001
 neighbor 10.128.0.4 description S2
 neighbor 10.128.0.4 timers connect 1
 address-family ipv4 unicast
  network 10.255.0.3/32
  network 10.0.1.0/24
  maximum-paths 64
 exit-address-family
"""
    )
    assert "no zebra nexthop kernel enable" in files["zebra.conf"]


def checked_by_bird(text: str, directory: Path) -> None:
    file = directory / "bird.conf"
    file.write_text(text)
    done = subprocess.run(["bird", "-p", "-c", file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.peers
def test_bird_has_a_protocol_for_each_neighbor(tmp_path: Path):
    text = kind_of("bird").files(make_plan(small()).node("L2"), tmp_path)["bird.conf"]
    assert text.endswith(
        """\
protocol direct own { ipv4; interface "lo", "h2"; }
template bgp fabric {
  hold time 9; keepalive time 3; connect delay time 0; connect retry time 1; error wait time 1, 4;
  check link on; graceful restart on;
}
protocol bgp 'S1' from fabric {
  local 10.128.0.3 as 65004;
  neighbor 10.128.0.2 as 65001;
  ipv4 { import all; export where source = RTS_BGP || proto = "own"; };
}
protocol bgp 'S2' from fabric {
  local 10.128.0.7 as 65004;
  neighbor 10.128.0.6 as 65001;
  ipv4 { import all; export where source = RTS_BGP || proto = "own"; };
}
"""
    )
    checked_by_bird(text, tmp_path)


@pytest.mark.peers
@pytest.mark.parametrize("sessions", ["dual", "unnumbered"])
def test_each_kind_has_sessions_for_ipv6(sessions: str, tmp_path: Path):
    """Of both addresses of a link, or by its interface; BIRD waits there for who connects."""
    plan = make_plan(small(sessions, L1="fared", L2="frr"))
    keys = {
        "dual": ["10.128.0.0", "fd00::1:0:0:a80:0", "10.128.0.4", "fd00::1:0:0:a80:4"],
        "unnumbered": ["S1", "S2"],
    }[sessions]
    config = configuration(plan.node("L1"), tmp_path / "x.sock")["bgp"]
    assert list(config["neighbors"]) == keys
    assert config["networks"] == [
        "10.255.0.3/32",
        "10.0.1.0/24",
        "fd00::3/128",
        "2001:db8:1::/64",
    ]
    bgpd = kind_of("frr").files(plan.node("S1"), tmp_path)["bgpd.conf"]
    ipv4, ipv6 = bgpd.split(" address-family ipv6 unicast\n")
    bird = kind_of("bird").files(plan.node("S2"), tmp_path)["bird.conf"]
    checked_by_bird(bird, tmp_path)
    if sessions == "dual":
        assert "  no neighbor fd00::1:0:0:a80:1 activate\n" in ipv4
        assert "  neighbor fd00::1:0:0:a80:1 activate\n" in ipv6
        assert "neighbor fd00::1:0:0:a80:5 as 65003;\n  ipv6 {" in bird
    else:
        assert " neighbor L1 interface remote-as 65003\n" in ipv4
        assert ipv6.startswith("  neighbor L1 activate\n  neighbor L2 activate\n")
        assert 'interface "L1";\n  neighbor range fe80::/10 as 65003;\n' in bird
        assert 'protocol radv { interface "L1", "L2"' in bird


def test_links_of_unnumbered_sessions_have_no_addresses():
    for sessions, numbered in (("dual", True), ("unnumbered", False)):
        commands = list(_address_commands(make_plan(small(sessions, L2="frr")).node("L2")))
        assert "addr replace 2001:db8:2::1/64 dev h2 nodad" in commands
        assert ("addr replace 10.128.0.3/31 dev S1" in commands) is numbered
        assert ("addr replace fd00::1:0:0:a80:3/127 dev S1 nodad" in commands) is numbered


def test_a_router_without_bgp_is_no_neighbor():
    made = document()
    made["topology"]["nodes"]["S2"]["labels"] = {"fared-lab.protocol": "ospf"}
    plan = make_plan(read(made))
    assert [peer.peer for peer in plan.node("L1").bgp_peers] == ["S1"]
    assert plan.node("S2").system is None


def test_sessions_that_cannot_be_are_refused_in_a_line():
    made = at_lan(document("unnumbered", S2="fared", L2="fared"), "S1", "S2", "L1")
    with pytest.raises(TopologyError, match="br is a LAN, and unnumbered sessions run over"):
        read(made)
    made = document("unnumbered")
    with pytest.raises(TopologyError, match=r"BIRD waits .* S2 and L2 both would"):
        read(made)
    made = document()
    made["topology"]["nodes"]["S1"]["labels"] = {"fared-lab.bgp-sessions": "dual"}
    with pytest.raises(TopologyError, match="differ: S1 has dual and L1 has ipv4"):
        read(made)


def test_sessions_are_generated_for_bgp_alone():
    text = invoke("clos3", "--protocol", "bgp", "--sessions", "unnumbered").output
    plan = make_plan(read(yaml.safe_load(text)))
    assert {router.node.bgp_sessions for router in plan.routers} == {"unnumbered"}
    refused = invoke("clos3", "--sessions", "dual")
    assert refused.exit_code == 2
    assert "sessions are of BGP, and the protocol is ospf" in refused.output


@pytest.mark.netns
@pytest.mark.peers
def test_at_a_lan_each_is_a_neighbor_of_all_others(tmp_path: Path, capsys):
    """Of both families, between three kinds; routes behind one lead there, not by a third."""
    source = read(yaml.safe_load(LAN))
    with Fabric.from_topology(source, directory=tmp_path) as fabric:
        assert await_paths(fabric, 40.0) is not None
        assert show_status(fabric) == 0
        lines = capsys.readouterr().out.splitlines()
        told = {line.split()[0]: line.split() for line in lines}
        assert [told[name][4:7] for name in "ABC"] == [["4", "of", "4"]] * 3
        for name in "BC":
            for prefix in ("10.0.2.0/24", "2001:db8:2::/64"):
                assert interfaces(fabric.view(name).hops(prefix)) == {"lan"}


@pytest.mark.netns
@pytest.mark.peers
def test_routers_of_unnumbered_sessions_outlive_a_crash(tmp_path: Path):
    """No packet is lost while one is killed and starts: neighbors and kernel keep its routes."""
    source = small("unnumbered", L1="fared", L2="fared")
    with Fabric.from_topology(source, directory=tmp_path) as fabric:
        assert await_paths(fabric, 40.0) is not None
        for spine in ("S1", "S2"):
            assert "link/inet" not in fabric.node(spine).netns.ip("-4", "-br", "addr", "show", "L1")
        with Stream.between(fabric, "h1", "h2", flows=16, rate=200) as stream:
            for name in ("L1", "S1", "S2"):
                fabric.stop_node(name, kill=True)
                fabric.start_node(name)
                assert await_paths(fabric, 40.0) is not None
        assert stream.lost == 0


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
