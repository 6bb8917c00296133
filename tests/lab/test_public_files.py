"""Files that people have, which know nothing of the lab: what runs of them, and what is said.

``public/`` has five of the kinds that are found in repositories: routers of vendors, LANs,
addresses in ``frr.conf``, Linux alone, and a cluster with machines.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.clab.names import mapped
from fared.extensions.lab.clab.text import substituted
from fared.extensions.lab.errors import LabError, TopologyError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kinds import kind_of
from fared.extensions.lab.main import main
from fared.extensions.lab.waiting import await_paths

FILES = Path(__file__).parent / "public"
VENDORS, LANS, FRR, LINUX, CLUSTER = (
    FILES / f"{name}.clab.yml" for name in ("vendors", "lans", "frr", "linux", "cluster")
)


def read(file: Path, as_kind: str | None = "fared", **options) -> topology.LabTopology:
    return topology.load(file, as_kind, **options)


def plan(file: Path, **options) -> AddressPlan:
    return make_plan(read(file, **options))


def kinds(source: topology.LabTopology) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in source.nodes.values():
        found.setdefault(node.kind, []).append(node.name)
    return found


def written(tmp_path: Path, text: str, name: str = "x.clab.yml") -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


# -- what a node is --------------------------------------------------------------------------------


def test_routers_of_all_vendors_are_replaced_and_hosts_stay_hosts():
    assert kinds(read(VENDORS)) == {
        "fared": ["spine", "leaf1", "leaf2", "edge"],
        "linux": ["client1", "client2", "collector"],
    }
    assert kinds(read(VENDORS, "bird"))["bird"] == ["spine", "leaf1", "leaf2", "edge"]


def test_without_as_each_vendor_is_refused_with_its_line_and_what_helps():
    with pytest.raises(TopologyError) as refused:
        read(VENDORS, None)
    assert str(refused.value).splitlines() == [
        f"{VENDORS}: 4 faults",
        *(
            f"  line {line}: {node}: kind {kind} does not run in a network namespace;"
            " `--as fared` routes with fared in its place"
            for line, node, kind in (
                (14, "spine", "nokia_srlinux"),
                (15, "leaf1", "arista_ceos"),
                (16, "leaf2", "cisco_iol"),
                (17, "edge", "juniper_vjunosrouter"),
            )
        ),
    ]


def test_images_of_frr_and_bird_run_as_they_are(tmp_path: Path):
    text = LANS.read_text().replace("kind: vyosnetworks_vyos, image: vyos", "kind: fared")
    source = read(written(tmp_path, text), None)
    assert kinds(source)["frr"] == ["r1"]
    assert kinds(source)["bird"] == ["r2"]


def test_linux_routes_where_it_forwards_or_lies_between_hosts():
    assert kinds(read(LINUX)) == {
        "fared": ["gateway", "transit", "middle"],
        "bridge": ["switch"],
        "linux": ["pc1", "pc2", "pc3", "two-nics"],
    }


def test_kinds_that_are_no_containers_are_hosts_and_unknown_ones_route_with_several_links():
    source = read(CLUSTER)
    assert kinds(source)["fared"] == ["leaf1", "leaf2", "fabric"]
    assert [len(node.ports) for node in make_plan(source).hosts] == [0, 1, 1, 2, 1]


# -- links and interfaces --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("eth1", "eth1"),
        ("e1-1", "e1-1"),
        ("swp51", "swp51"),
        ("Ethernet0/1", "Ethernet0-1"),
        ("ethernet-1/1", "e1-1"),
        ("ethernet-1/2/1", "e1-2-1"),
        ("ge-0/0/1", "ge-0-0-1"),
        ("et-0/0/0:1", "et-0-0-0-1"),
        ("1/1/c2/1", "1-1-c2-1"),
        ("GigabitEthernet0/0/0/1", "Gi0-0-0-1"),
        ("TenGigE0/0/0/10", "TenGigE0-0-0-10"),
        ("HundredGigE0/0/0/17", "Hu0-0-0-17"),
        ("Port Channel 1", "Port-Channel-1"),
        ("all", "all-2"),
    ],
)
def test_interfaces_are_called_what_linux_takes(name: str, here: str):
    assert mapped([name]) == {name: here}
    assert len(here) <= 15


def test_no_two_interfaces_of_a_node_are_called_the_same():
    names = ["ge-0/0/1", "ge-0-0-1", "a" * 20 + "1", "a" * 20 + "2"]
    assert len(set(mapped(names).values())) == 4
    assert mapped(names)["ge-0-0-1"] == "ge-0-0-1"


def test_a_bridge_is_a_lan_and_one_of_two_nodes_a_link():
    source = read(LANS)
    assert kinds(source)["bridge"] == ["core", "access"]
    lan = make_plan(source)
    core = {port.node: str(port.address) for port in lan.node("core").ports}
    assert set(core) == {"core"}
    addresses = {n: str(lan.node(n).ports[0].address) for n in ("r1", "r2", "r3", "h1")}
    assert addresses == {f"{n}": f"10.0.1.{i}/24" for i, n in enumerate(addresses, 1)}
    assert str(lan.node("h1").ports[0].peer_address) == "10.0.1.1"
    assert [port.peer for port in lan.node("r1").ports] == ["core", "r2"]
    assert [str(lan.node(n).ports[0].peer_address) for n in ("h2", "h3")] == ["10.0.2.1"] * 2


def test_a_lan_is_one_hop_and_all_its_routers_have_its_prefix():
    lan = plan(LANS)
    assert lan.distances("r3") == {"r3": 0, "core": 0, "r1": 1, "r2": 1}
    assert lan.destinations(loopbacks=False) == {
        "10.0.1.0/24": ("r1", "r2", "r3"),
        "10.0.2.0/24": ("r3",),
    }
    assert [port.name for port in lan.equal_cost_ports("r1", "r3")] == ["eth1"]
    assert [port.name for port in lan.equal_cost_ports("r1", "r2")] == ["eth1", "eth2"]


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("frr", " ip ospf network broadcast"),
        ("bird", 'interface "eth1" { type bcast; cost 10; check link yes; '),
        ("fared", "network-type: broadcast"),
    ],
)
def test_routers_of_a_lan_elect_a_designated_router(kind: str, line: str):
    text = "".join(kind_of(kind).files(plan(LANS).node("r1"), Path("/run/x")).values())
    assert line in text


def test_links_out_of_the_lab_are_left_out_by_name():
    left_out = [note for note in read(LANS).notes if note.startswith("left out")]
    assert left_out == [
        "left out: link 11: r1:eth3 leads out of the lab (to host:lan-r1)",
        "left out: link 12: r1:eth4 leads out of the lab (to mgmt-net:r1)",
        "left out: link 13: r2:eth3 leads out of the lab (to macvlan:enp1s0)",
        "left out: link 14: r2:eth4 leads out of the lab (type vxlan)",
        "left out: link 15: r3:eth3 leads out of the lab (type dummy)",
    ]


# -- what is said ----------------------------------------------------------------------------------


def test_what_is_done_otherwise_is_said_in_a_line_each():
    assert read(VENDORS).notes == (
        "fared in place of kind nokia_srlinux: spine",
        "fared in place of kind arista_ceos: leaf1",
        "fared in place of kind cisco_iol: leaf2",
        "fared in place of kind juniper_vjunosrouter: edge",
        (
            "interfaces: ethernet-1/1 is e1-1, ethernet-1/2 is e1-2, Ethernet0/1 is Ethernet0-1,"
            " HundredGigE0/0/0/17 is Hu0-0-0-17, et-0/0/0:1 is et-0-0-0-1"
        ),
        "ignored: mgmt: there is no management network",
        "ignored: startup-config of spine: another program runs",
        (
            "ignored: env of spine, leaf1, leaf2, edge, client1 and 2 more:"
            " programs here do not read it"
        ),
        "ignored: mgmt-ipv4 of leaf1: there is no management network",
        "ignored: binds of leaf2: there are no containers to mount files in",
        "ignored: exec of client1: commands are not run",
        "ignored: ports of collector: no port of this machine is forwarded",
        "ignored: cmd of collector: routers run their daemon, hosts nothing",
    )


def test_the_state_of_a_lab_is_a_file_that_reads_the_same():
    """Commands of a running lab read it there: other files may be gone, and variables unset."""
    for file in (VENDORS, LANS, FRR, LINUX, CLUSTER):
        source = read(file, keep_addresses=True)
        document = json.loads(json.dumps(source.document))
        assert make_plan(topology.from_document(document, Path("/gone/x"))) == make_plan(source)


# -- variables, templates, other programs' files ---------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "1"),
        ("$A", "1"),
        ("${A:=x}", "1"),
        ("${EMPTY:=x}", "x"),
        ("${EMPTY-x}", ""),
        ("${NONE:-x y}", "x y"),
        ("${NONE=x}", "x"),
        ("${A:+x}", "x"),
        ("${NONE:+x}", ""),
        ("${NONE} $NONE $(ls)", "${NONE} $NONE $(ls)"),
    ],
)
def test_variables_of_the_environment_are_those_of_containerlab(text: str, value: str):
    assert substituted(text, {"A": "1", "EMPTY": ""}) == value


def test_variables_and_anchors_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAB_KIND", "frr")
    file = written(tmp_path, "name: x\ntopology: {nodes: {a: &a {kind: $LAB_KIND}, b: *a}}")
    assert kinds(read(file, None)) == {"frr": ["a", "b"]}


def test_aliases_that_would_grow_without_end_are_not_followed(tmp_path: Path):
    """What the lab does not read is neither copied nor compared."""
    grown = "".join(f"  g{n + 1}: &g{n + 1} [{', '.join([f'*g{n}'] * 9)}]\n" for n in range(40))
    node = "topology: {nodes: {a: {kind: frr, env: *g40}}}\n"
    text = f"name: x\ngrown:\n  g0: &g0 [x]\n{grown}{node}"
    assert read(written(tmp_path, text)).notes[-1].startswith("ignored: env of a")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.clab.gotmpl", "name: {{ .name }}", "a template"),
        ("a.clab.yml", "name: {{ .name }}", "a template"),
        ("a.yml", "module: [ospf]\nnodes: [r1, r2]\nlinks: [r1-r2]", "`netlab create -p clab`"),
        ("a.yml", "provider: clab\nnodes: {r1: {}}", "a netlab topology"),
        ("a.yml", "services: {frr: {image: frr}}", "a Docker Compose file"),
        ("a.gns3", '{"project_id": "7", "topology": {"nodes": []}}', "a project of GNS3"),
        ("a.pb.txt", 'nodes: { name: "r1" }\nlinks: {\n a_node: "r1"\n z_node: "r2"\n}', "KNE"),
        ("a.yml", "name: x\nnodes: []\nlinks: [{a_node: r1, z_node: r2}]", "KNE"),
        ("a.json", '{"routers": ["r1"], "p2p": {"r1": ["r2"]}}', "vrnetlab"),
        ("Dockerfile", "FROM debian\nCOPY x /", "vrnetlab"),
        ("a.yaml", "lab: {title: x}\nnodes: [{id: n0}]\nlinks: []", "Cisco Modeling Labs"),
        ("a.unl", '<?xml version="1.0"?>\n<lab name="x"/>', "EVE-NG"),
        ("a.yaml", "apiVersion: v1\nkind: Topology\nspec: {}", "a Kubernetes object"),
        ("lab.conf", 'r1[0]="A"\nr2[0]="A"', "Kathara"),
        ("a.yml", "Prefix: x\nDuts: {}\nLinks: []", "containerlab before 0.8"),
    ],
)
def test_files_of_other_programs_are_refused_by_name(
    tmp_path: Path, name: str, text: str, told: str
):
    result = CliRunner().invoke(main, ["up", str(written(tmp_path, text, name))])
    assert result.exit_code == 2
    assert told in result.stderr
    assert "expected a topology file of containerlab" in result.stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("client2:eth1", "clinet2:eth1"),
            "26: link 5: no node 'clinet2' (did you mean 'client2'?)",
        ),
        (('"client2:eth1"', '"client2"'), "26: link 5: endpoint 'client2' is not node:interface"),
        (('client2:eth1"]', 'client2:eth1", "a:b"]'), "26: topology.links.4.endpoints: List"),
        (("client2: {kind: linux}", "client2: {kind: liunx}"), "19: node client2: kind 'liunx'"),
        (("group: edge}", "group: edgee}"), "17: node edge: no group 'edgee'"),
        (("leaf1:eth2", "collector:eth1"), "25: link 4: connects two hosts; a host requires"),
    ],
)
def test_faults_have_their_line(tmp_path: Path, change: tuple[str, str], told: str):
    text = VENDORS.read_text().replace(*change)
    assert text != VENDORS.read_text()
    file = written(tmp_path, text)
    with pytest.raises(TopologyError) as refused:
        read(file)
    assert f"{file}:{told}" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ('"r3:eth2", "access', '"r3:eth2", "core'),
            "line 8: bridge core: r3 is at it with several links",
        ),
        (
            ('"r3:eth2", "access:port1"', '"r3:eth2", "r1:eth9"'),
            ":24: link 6: connects two hosts; a host requires a router (h2 and h3)",
        ),
    ],
)
def test_a_lan_requires_a_router_and_a_node_is_at_it_once(
    tmp_path: Path, change: tuple[str, str], told: str
):
    with pytest.raises(TopologyError) as refused:
        read(written(tmp_path, LANS.read_text().replace(*change)))
    assert told in str(refused.value)


# -- addresses of the file -------------------------------------------------------------------------


def test_addresses_of_frr_and_of_commands_are_kept_where_the_ends_agree():
    kept = read(FRR, keep_addresses=True)
    found = {node.name: node for node in make_plan(kept).nodes.values()}
    told = {name: [str(port.address) for port in node.ports] for name, node in found.items()}
    assert told == {
        "r1": ["172.20.1.1/24", "10.128.0.2/30"],
        "r2": ["10.128.0.1/30", "172.20.2.1/24"],
        "r3": ["172.20.2.2/24", "10.0.1.1/24"],
        "pc1": ["172.20.1.2/24"],
        "pc2": ["10.0.1.2/24"],
    }
    assert [str(node.router_id) for node in make_plan(kept).routers] == [
        f"192.0.2.{n}" for n in (1, 2, 3)
    ]
    assert kept.notes[2:5] == (
        "addresses: kept on 3 of 4 links",
        (
            "addresses of the lab, since the file gives none of one subnet to all ends:"
            " r3:eth2 to pc2:eth1"
        ),
        "ignored: binds of r1, r2: only addresses in frr.conf are read",
    )
    assert str(plan(FRR).node("r1").router_id) == "10.255.0.1"


def test_kept_addresses_are_not_given_to_other_links(tmp_path: Path):
    """The lab's own pool passes over subnets that overlap them."""
    text = """
name: x
topology:
  nodes: {a: {kind: fared}, b: {kind: fared}, c: {kind: fared}}
  links:
    - endpoints: ["a:eth1", "b:eth1"]
    - endpoints: ["b:eth2", "c:eth1"]
      vars: {addresses: [10.128.0.1/30, 10.128.0.2/30]}
"""
    found = plan(written(tmp_path, text), as_kind=None)
    assert str(found.node("a").ports[0].address) == "10.128.0.4/31"
    for wrong, told in (
        ("[10.128.0.1/30]", "link 2: addresses: expected 2"),
        ("[10.128.0.1/30, 10.128.1.2/30]", "are not of one subnet"),
        ("[10.128.0.1/30, 10.128.0.1/30]", "10.128.0.1/30 is at both ends"),
        ("[10.128.0.1/30, x]", ":8: topology.links.1.vars.addresses.1"),
    ):
        file = written(tmp_path, text.replace("[10.128.0.1/30, 10.128.0.2/30]", wrong))
        with pytest.raises(TopologyError, match=told.replace("[", r"\[")):
            read(file)


def test_an_address_of_two_nodes_is_refused(tmp_path: Path):
    text = (
        "name: x\ntopology: {nodes: {a: {kind: fared, labels: {fared-lab.loopback: 192.0.2.1}},"
        " b: {kind: fared, labels: {fared-lab.loopback: 192.0.2.1}}}}"
    )
    with pytest.raises(LabError, match=r"192\.0\.2\.1 is an address of a and of b"):
        plan(written(tmp_path, text))


# -- live ------------------------------------------------------------------------------------------


@pytest.mark.netns
@pytest.mark.peers
@pytest.mark.slow
def test_fared_frr_and_bird_route_over_a_lan(tmp_path: Path):
    """A bridge of the kernel joins them; each kernel has all prefixes over the right links."""
    text = LANS.read_text().replace("kind: vyosnetworks_vyos, image: vyos", "kind: fared")
    source = read(written(tmp_path, text), None)
    with Fabric.from_topology(source, directory=tmp_path / "state") as fabric:
        assert await_paths(fabric, 60.0) is not None
        fabric.fail("r1", "core")
        fabric.heal("r1", "core")
        assert await_paths(fabric, 60.0) is not None
