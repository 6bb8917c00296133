"""A lab of netlab: containers of its image of fared, with the files that ``netlab create`` renders.

After the start, and after the links, netlab runs a script in the network namespace of each node,
which sets addresses, MTU and forwarding: routers find these late. ``tests/netlab`` has the rest.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.containers.clab import Clab
from tests.netlab.netlab import NETLAB, create
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.soak,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(NETLAB is None, reason="netlab is missing: make test-netlab"),
]
LINKS = """
nodes: [ leaf1, leaf2, spine1, spine2 ]
links: [ leaf1-spine1, leaf1-spine2, leaf2-spine1, leaf2-spine2, leaf1, leaf2 ]
"""
OSPF = "name: ospf\nmodule: [ ospf, bfd ]\nospf.bfd: true\n"
ISIS = """
name: isis
module: [ isis, bfd ]
isis.bfd: true
addressing:
  loopback.ipv6: 2001:db8:0::/48
  p2p.ipv6: 2001:db8:1::/48
  lan.ipv6: 2001:db8:2::/48
"""


@pytest.mark.parametrize(
    ("text", "prefixes"),
    [(OSPF, ["172.16.1.0/24"]), (ISIS, ["172.16.1.0/24", "2001:db8:2:1::/64"])],
    ids=["ospf", "isis"],
)
def test_a_lab_of_netlab_routes(
    text: str, prefixes: list[str], deploy: Callable[[Path], Clab], tmp_path: Path
):
    done = create(text + LINKS, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lab = deploy(tmp_path / "clab.yml")
    for node in lab.nodes:
        configure(lab, node, tmp_path)
    wait_for(lambda: paths(lab, prefixes) == {2}, 90.0, lambda: f"{lab.logs('leaf1')}")
    wait_for(lambda: sessions(lab) == {"Up"}, 30.0, lambda: f"BFD is up: {sessions(lab)}")
    assert lab.healthy("leaf1")
    lab.destroy()


def configure(lab: Clab, node: str, directory: Path) -> None:
    """Run netlab's script, as ``netlab initial`` does."""
    script = directory / "node_files" / node / "initial"
    command = ("ip", "netns", "exec", lab.container(node), "sh", str(script))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def paths(lab: Clab, prefixes: list[str]) -> set[int]:
    """How many next hops leaf1 has to the networks of leaf2."""
    view = lab.view("leaf1")
    routes = {**view.routes(), **view.routes6()}
    return {len(routes.get(prefix, ())) for prefix in prefixes}


def sessions(lab: Clab) -> set[str]:
    """The states of the sessions of leaf1."""
    found = json.loads(lab.exec("leaf1", "fared-cli", "--json", "show", "bfd"))
    return {each["state"] for each in found["sessions"]}
