"""Real fabrics in namespaces: FRR routers, dead links, slow links, traffic."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab import sandbox, traffic
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView, shares
from fared.extensions.lab.namespaces import DIRECTORY, Netns
from fared.extensions.lab.waiting import await_paths, wait_until

TOPOLOGY = """
name: small
topology:
  defaults: {labels: {fared-lab.rate: 100M}}
  groups: {router: {labels: {fared-lab.kind: frr}}}
  nodes: {S1: {group: router}, S2: {group: router}, L1: {group: router}, L2: {group: router},
          h1: {}, h2: {}}
  links:
    - endpoints: ["S1:L1", "L1:S1"]
    - endpoints: ["S2:L1", "L1:S2"]
    - endpoints: ["S1:L2", "L2:S1"]
    - endpoints: ["S2:L2", "L2:S2"]
    - endpoints: ["L1:h1", "h1:L1"]
    - endpoints: ["L2:h2", "h2:L2"]
"""
FAR = "10.0.2.0/24"

pytestmark = [pytest.mark.netns, pytest.mark.slow]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.clab.yml"
    path.write_text(TOPOLOGY)
    return path


@pytest.fixture
def fabric(file: Path, tmp_path: Path) -> Iterator[Fabric]:
    with Fabric.from_file(file, directory=tmp_path / "state") as running:
        yield running


def await_uplinks(fabric: Fabric, *wanted: str) -> None:
    def accepts(_: str, view: KernelView) -> bool:
        return [hop.interface for hop in view.hops(FAR)] == list(wanted)

    assert wait_until({"L1": fabric.view("L1")}, accepts, 20.0) is not None


@pytest.mark.peers
def test_a_fabric_of_frr_routes_fails_heals_and_spreads(fabric: Fabric):
    """The life of a fabric: neighbours, equal-cost routes, traffic, a dead link, a healed one."""
    assert await_paths(fabric, 20.0) is not None
    assert fabric.node("L1").cli("show ip ospf neighbor").count("Full/-") == 2

    report = traffic.measure(fabric, "h1", "h2", flows=4000)
    assert report.delivered == report.sent == 4000
    assert [up.interface for up in report.uplinks] == ["S1", "S2"]
    assert report.worst_error < 0.04  # five standard deviations of 4000 coins

    fabric.fail("S1", "L2")
    await_uplinks(fabric, "S2")
    fabric.heal("S1", "L2")
    await_uplinks(fabric, "S1", "S2")

    fabric.stop_node("S1")
    await_uplinks(fabric, "S2")
    fabric.start_node("S1")
    await_uplinks(fabric, "S1", "S2")


@pytest.mark.peers
def test_shaping_changes_one_direction_of_one_link(fabric: Fabric):
    """What S1 sends to L2 is limited; nothing else is."""
    port = fabric.plan.ports_between("S1", "L2")[0]
    assert fabric.rate(port) == 100e6 / 8
    fabric.shape("S1", "L2", 25e6 / 8)
    assert "rate 25Mbit" in fabric.node("S1").netns.run(["tc", "qdisc", "show", "dev", "L2"]).stdout
    assert (
        "rate 100Mbit" in fabric.node("L2").netns.run(["tc", "qdisc", "show", "dev", "S1"]).stdout
    )
    assert fabric.rate(port) == 25e6 / 8
    fabric.shape("S1", "L2", None)
    assert "tbf" not in fabric.node("S1").netns.run(["tc", "qdisc", "show", "dev", "L2"]).stdout


def test_a_daemon_that_ends_at_once_is_reported_with_its_output_and_the_fabric_is_removed(
    file: Path, tmp_path: Path
):
    """A wrong startup-config shows what the daemon said about it."""
    config = tmp_path / "bad.yaml"
    config.write_text("no-such-key: 1\n")
    text = TOPOLOGY.replace("L2: {group: router}", f"L2: {{kind: fared, startup-config: {config}}}")
    file.write_text(text.replace("{fared-lab.kind: frr}", "{fared-lab.kind: bird}"))
    before = set(DIRECTORY.iterdir())
    broken = Fabric.from_file(file, directory=tmp_path / "state")
    with pytest.raises(LabError, match=r"L2: fared ended with code"), broken:
        pass
    assert set(DIRECTORY.iterdir()) == before
    assert all(not node.processes for node in broken.nodes.values())


def test_weights_of_16_bits_are_read_from_the_kernel(netns_factory):
    """iproute2 shows only their low byte; the view reads the dump itself."""
    namespace: Netns = netns_factory("w")
    namespace.sysctl("ipv4.nexthop_compat_mode", 0)
    by_hand = "nexthop via 192.0.2.1 weight 3 nexthop via 192.0.2.3 weight 1"
    namespace.batch(
        "ip",
        [
            "link add name x type veth peer name xx",
            "link add name y type veth peer name yy",
            "addr add 192.0.2.0/31 dev x",
            "addr add 192.0.2.2/31 dev y",
            *(f"link set dev {name} up" for name in ("x", "xx", "y", "yy")),
            "nexthop add id 1 via 192.0.2.1 dev x",
            "nexthop add id 2 via 192.0.2.3 dev y",
            "nexthop add id 3 group 1/2",
            "route add 198.51.100.0/24 nhid 3",
            f"route add 203.0.113.0/24 {by_hand}",
            "route add default via 192.0.2.1 metric 20",
        ],
    )
    view = KernelView(namespace)
    view.read_events()
    view.writes.reset()
    replace_group(namespace, 3, [(1, 7), (2, 1000)])
    view.read_events()
    assert (view.writes.next_hops, view.writes.routes) == (1, 0)
    for command in ("addr add 192.0.2.9/24 dev x", "-6 addr add fd00::9/64 dev x nodad"):
        namespace.ip(*command.split())  # the kernel adds routes of its own
    namespace.ip("route", "add", "192.0.2.128/25", "via", "192.0.2.1")
    view.read_events()
    assert (view.writes.next_hops, view.writes.routes) == (1, 1)

    routes = view.routes()
    assert [(hop.interface, hop.gateway, hop.weight) for hop in routes["198.51.100.0/24"]] == [
        ("x", "192.0.2.1", 7),
        ("y", "192.0.2.3", 1000),
    ]
    assert shares(routes["203.0.113.0/24"]) == {"x": 0.75, "y": 0.25}
    assert [hop.interface for hop in routes["0.0.0.0/0"]] == ["x"]
    view.close()


def replace_group(namespace: Netns, identity: int, members: list[tuple[int, int]]) -> None:
    """RTM_NEWNEXTHOP with 16-bit weights, which iproute2 cannot send."""
    group = b"".join(
        struct.pack("=IBBH", member, weight - 1 & 255, weight - 1 >> 8, 0)
        for member, weight in members
    )
    body = struct.pack("=BBBBI", 0, 0, 4, 0, 0) + struct.pack("=HHI", 8, 1, identity)
    body += struct.pack("=HH", 4 + len(group), 2) + group
    with namespace.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(body), 104, 0x505, 1, 0) + body)
        assert struct.unpack_from("=i", netlink.recv(4096), 16) == (0,)


@pytest.mark.peers
def test_a_fabric_stays_up_until_it_is_taken_down(file: Path, tmp_path: Path):
    """The life of a lab over several commands, each a process of its own."""
    environment = {**os.environ, "FARED_LAB_DIR": str(tmp_path / "labs")}

    def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fared.extensions.lab.main", *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    def completed(*words: str) -> list[str]:
        typed = ["fared-lab", *words]
        asked = {"_FARED_LAB_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(typed)}
        asked["COMP_CWORD"] = str(len(typed) - 1)
        told = subprocess.run(
            [Path(sys.executable).with_name("fared-lab")],
            env=environment | asked,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return [line.partition(",")[2] for line in told.stdout.splitlines()]

    begun = lab("up", str(file), "--wait", "20")
    assert begun.stdout.endswith("every router has all routes\n")
    try:
        again = lab("up", str(file))
        assert (again.returncode, again.stderr) == (1, "fared-lab: lab small is up already\n")
        assert lab("status").returncode == 0
        assert lab("exec", "h1", "sh", "-c", "exit 3").returncode == 3
        assert "10.0.1.2/24" in lab("exec", "h1", "ip", "addr").stdout
        assert "FRRouting" in lab("cli", "L1", "show", "version").stdout
        wrong = lab("fail", "L1", "L2")
        assert wrong.returncode == 1
        assert "no link between L1 and L2" in wrong.stderr
        assert lab("shape", "S1", "L2", "25M").stdout == "S1 > L2: 25M bit/s\n"
        assert completed("cli", "") == ["S1", "S2", "L1", "L2", "h1", "h2"]
        assert completed("fail", "S1-") == ["S1-L1", "S1-L2"]
        assert lab("shape", "S1-L2", "off").stdout == "S1-L2: unlimited\n"
        assert lab("fail", "S1 > L2").returncode == 0
        assert lab("heal", "S1-L2").returncode == 0
        sent = lab("traffic", "--from", "h1", "--to", "h2", "--flows", "500", "--json")
        report = json.loads(sent.stdout)
        assert (report["format"], report["delivered"]) == ("fared-traffic/1", 500)
        played = lab("traffic", "all-gather", "--size", "64K", "--job", "scatter:h2,h1", "--json")
        report = json.loads(played.stdout)
        assert report["format"] == "fared-workload/1"
        assert [job["hosts"] for job in report["jobs"]] == [["h1", "h2"], ["h2", "h1"]]
        assert [len(job["completions"]) for job in report["jobs"]] == [10, 10]
    finally:
        assert lab("down").returncode == 0
    assert lab("status").stderr == "fared-lab: no lab is up\n"
    assert not list((tmp_path / "labs").iterdir())


@pytest.mark.parametrize("step", ["_new_namespaces", "_furnish"])
def test_without_namespaces_the_message_points_at_sudo(monkeypatch: pytest.MonkeyPatch, step: str):
    """Some distributions forbid user namespaces, or mounts in them: say so, and what helps."""

    def refuse() -> None:
        raise PermissionError(1, f"{step}: Operation not permitted")

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    if step == "_furnish":
        monkeypatch.setattr(sandbox, "_new_namespaces", lambda: None)
    monkeypatch.setattr(sandbox, step, refuse)
    reason = sandbox.problem()
    assert reason is not None
    assert f"{step}: Operation not permitted" in reason
    assert "sudo" in reason


def test_no_problem_is_reported_if_a_sandbox_can_be_made():
    """Tried for real, in a child."""
    assert sandbox.problem() is None
