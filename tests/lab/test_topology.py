"""Topology files: those of containerlab are read, errors are refused and named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fared.config.load import load
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.errors import TopologyError
from fared.extensions.lab.kinds import kind_of
from fared.extensions.lab.labels import LABELS
from fared.extensions.lab.main import main
from fared.extensions.lab.node import node_sysctls

GOOD = """
name: two
topology:
  defaults: {kind: linux, labels: {fared-lab.rate: 100M}}
  groups:
    router: {labels: {fared-lab.kind: fared}}
  nodes:
    A: {group: router}
    B: {group: router, labels: {fared-lab.kind: frr}}
    h: {}
  links:
    - endpoints: ["A:B", "B:A"]
    - endpoints: ["A:h", "h:A"]
"""


def parse(text: str, **options) -> topology.LabTopology:
    return topology.from_document(yaml.safe_load(text), Path("t.clab.yml"), **options)


def test_kinds_come_from_labels_so_that_containerlab_takes_the_file_too():
    """containerlab sees kind linux everywhere; the label says which daemon the lab runs."""
    read = parse(GOOD)
    assert {name: node.kind for name, node in read.nodes.items()} == {
        "A": "fared",
        "B": "frr",
        "h": "linux",
    }


def test_literal_kinds_are_taken_as_well():
    """A file for the lab alone may name the daemon as its kind."""
    read = parse("name: x\ntopology: {nodes: {A: {kind: bird}, B: {kind: frr}}}")
    assert [node.kind for node in read.nodes.values()] == ["bird", "frr"]


def test_labels_are_merged_from_defaults_kind_group_and_node():
    """The node wins, the rest is inherited: containerlab's order."""
    read = parse(
        """
name: x
topology:
  defaults: {labels: {fared-lab.rate: 1G, a: default}}
  kinds: {linux: {labels: {a: kind, b: kind}}}
  groups: {g: {labels: {b: group, c: group}}}
  nodes: {N: {group: g, labels: {c: node}}}
"""
    )
    labels = read.nodes["N"].labels
    assert (labels["a"], labels["b"], labels["c"]) == ("kind", "group", "node")
    assert read.nodes["N"].rate == 1e9 / 8


def test_labels_set_what_fared_is_told_in_its_section_adaptive():
    """Values are those of fared's own file, and fared reads its file with them."""
    given = {
        "metric": "available",
        "granularity": "flowlet",
        "flows": 128,
        "enabled": False,
        "announce-threshold": 0.01,
        "flowlet-gap": "50ms",
        "packet-prefixes": ["10.0.2.0/24"],
        "packet-match": {"udp-ports": [4791]},
    }
    labels = {f"fared-lab.adaptive.{key}": value for key, value in given.items()}
    labels["fared-lab.adaptive.packet-prefixes"] = "[10.0.2.0/24]"
    labels["fared-lab.adaptive.packet-match.udp-ports"] = "[4791]"
    del labels["fared-lab.adaptive.packet-match"]
    document = yaml.safe_load(GOOD)
    document["topology"]["groups"]["router"]["labels"] |= labels
    plan = make_plan(topology.from_document(document, Path("t.clab.yml"))).node("A")
    file = kind_of("fared").files(plan, Path("/run/fared"))["fared.yaml"]
    assert yaml.safe_load(file)["adaptive"] == given
    assert load(file).adaptive.flowlet_gap == 0.05


def test_the_page_has_the_labels_as_they_are_declared(repository: Path):
    """One table for people; a label that is added is added there too."""
    page = (repository / "containerlab" / "README.md").read_text("utf-8")
    for label in LABELS:
        row = f"`{label.key}`", label.values, f"`{label.default}`", label.meaning
        assert f"| {' | '.join(row)} |" in page


def test_sysctls_are_inherited_like_labels_and_only_those_of_the_network_are_set():
    """containerlab sets all of them; the lab has no namespaces but of the network."""
    read = parse(
        """
name: x
topology:
  defaults: {sysctls: {net.ipv4.tcp_reordering: 10, net.ipv4.tcp_recovery: 1}}
  nodes: {h: {sysctls: {net.ipv4.tcp_recovery: 5, kernel.shmmax: 1}}}
"""
    )
    plan = make_plan(read).node("h")
    assert node_sysctls(kind_of("linux"), plan) == {
        "ipv4.tcp_reordering": "10",
        "ipv4.tcp_recovery": "5",
    }


def test_the_routers_can_be_run_as_another_kind():
    """The same fabric with FRR, to compare; hosts stay hosts."""
    read = parse(GOOD, as_kind="bird")
    assert [node.kind for node in read.nodes.values()] == ["bird", "bird", "linux"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("fared-lab.kind: fared", "fared-lab.kind: fraed"), "kind: 'fraed' is none of fared, frr"),
        (("h: {}", "h: {kind: nokia_srlinux}"), "h: kind nokia_srlinux does not run"),
        (("h: {}", "h: {kind: fraed}"), "is none of fared, frr, bird, linux (did you mean"),
        (('"B:A"', '"C:A"'), "link 1: no node 'C'"),
        (('"A:h"', '"A:B"'), "link 2: A:B is used by link 1 already"),
        (('"B:A"', '"B"'), "endpoint 'B' is not node:interface"),
        (('"B:A"', '"B:lo"'), "lo is the loopback"),
        (('"B:A"', '"A:other"'), "link 1: both ends are at A"),
        (("rate: 100M", "rate: fast"), "label fared-lab.rate: 'fast' is not a bandwidth"),
        (("B: {group: router", "B: {group: ruoter"), "did you mean 'router'?"),
        (("h: {}", "h: {startup-config: no.cfg}"), "startup-config no.cfg: no such file"),
        (('["A:B", "B:A"]', '["A:B"]'), "topology.links.0.endpoints"),
        (("h: {}", "h: {sysctls: {net.ipv4: 1}}"), "node h: sysctls: 'net.ipv4' is not a name"),
        (
            ("h: {}", "h: {labels: {fared-lab.segmentation: singel}}"),
            "'singel' is none of single, offload (did you mean 'single'?)",
        ),
        (
            ("h: {}", "h: {labels: {fared-lab.segmentaton: single}}"),
            (
                "label fared-lab.segmentaton: the lab knows none of that name"
                " (did you mean 'fared-lab.segmentation'?)"
            ),
        ),
        (
            ("fared-lab.rate: 100M", "fared-lab.rate: 100M, fared-lab.adaptive.metric: avail"),
            (
                "node h: label fared-lab.adaptive.metric: expected 'capacity', 'available' or"
                " 'equalise', got \"avail\"; did you mean 'available'?"
            ),
        ),
        (
            ("fared-lab.rate: 100M", "fared-lab.rate: 100M, fared-lab.adaptive.metrik: available"),
            "label fared-lab.adaptive.metrik: unknown key \"metrik\"; did you mean 'metric'?",
        ),
        (('"h:A"]', '"h:A"]\n      vars: {delay: 2m}'), "link 2: delay: '2m' is more than 1s"),
        (("name: two", "name: ''"), "name:"),
    ],
)
def test_errors_of_a_topology_are_reported_with_their_place(change, complaint):
    """Each refusal says which node or link, what was found and what was expected."""
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(TopologyError, match=r"t\.clab\.yml") as refused:
        parse(text)
    assert complaint in str(refused.value)


def test_all_errors_of_a_topology_are_listed():
    """Who mends a file wants to mend it once."""
    text = GOOD.replace('"B:A"', '"C:A"').replace("rate: 100M", "rate: fast")
    with pytest.raises(TopologyError) as refused:
        parse(text)
    assert "no node 'C'" in str(refused.value)
    assert "'fast' is not a bandwidth" in str(refused.value)


def test_links_of_hosts_go_to_routers():
    """A host may have several, as a server with NICs; another host is no router."""
    text = GOOD + '    - endpoints: ["B:h", "h:B"]\n'
    assert len(make_plan(parse(text)).node("h").ports) == 2
    text = text.replace("h: {}", "h: {}\n    i: {}").replace('"B:h"', '"i:h"')
    with pytest.raises(TopologyError, match="link 3: connects two hosts; a host requires a router"):
        parse(text)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a: [", "not YAML"),
        ("- a", "valid dictionary"),
        (GOOD.replace('"B:A"', '"C:A"'), "no node"),
    ],
)
def test_an_invalid_topology_exits_with_2(tmp_path: Path, content: str, complaint: str):
    """A wrong file is a usage error, and nothing is built."""
    file = tmp_path / "bad.clab.yml"
    file.write_text(content)
    result = CliRunner().invoke(main, ["up", str(file)])
    assert result.exit_code == 2
    assert complaint in result.stderr


def test_a_missing_topology_exits_with_2(tmp_path: Path):
    """With its name in the message."""
    result = CliRunner().invoke(main, ["demo", str(tmp_path / "none.clab.yml")])
    assert result.exit_code == 2
    assert "none.clab.yml" in result.stderr


def test_the_shipped_fabric_is_figure_1(repository: Path):
    """4 spines, 8 leaves, each leaf to each spine, one host a leaf."""
    read = topology.load(repository / "containerlab" / "clos3.clab.yml")
    kinds = [node.kind for node in read.nodes.values()]
    assert (kinds.count("fared"), kinds.count("linux"), len(read.links)) == (12, 8, 40)
    pairs = {frozenset(end.node for end in link.ends) for link in read.links}
    assert {frozenset((f"S{s}", f"L{n}")) for s in range(1, 5) for n in range(1, 9)} < pairs
