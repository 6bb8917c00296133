"""The command that a container of containerlab runs, here in namespaces."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.generate.clos3 import Clos3
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.kinds.frr import Frr
from fared.extensions.lab.main import main
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.node import container_sysctls
from fared.extensions.lab.topology import load
from fared.extensions.lab.waiting import wait_until

TOPOLOGY = """
name: inside
topology:
  groups: {router: {labels: {fared-lab.kind: fared, fared-lab.rate: 100M}}}
  nodes: {S1: {group: router}, L1: {group: router}, h1: {}, F: {kind: frr}}
  links:
    - {endpoints: ["S1:L1.0", "L1:S1"], mtu: 1400}
    - endpoints: ["L1:h1", "h1:L1"]
    - endpoints: ["S1:h1", "h1:S1"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "inside.clab.yml"
    path.write_text(TOPOLOGY)
    return path


class Containers:
    """Namespaces with ``fared-lab node`` running in them, before they have any interface."""

    def __init__(self, file: Path, make: Callable[[str], Netns]) -> None:
        self.directory = file.parent
        self.netns = {name: make(name) for name in ("S1", "L1", "h1")}
        command = [
            sys.executable,
            "-m",
            "fared.extensions.lab.main",
            "node",
            str(file),
            "--wait",
            "20",
        ]
        self.processes = {
            name: netns.start(
                [*command, name, "--directory", str(file.parent / name)],
                file.parent / f"{name}.log",
            )
            for name, netns in self.netns.items()
        }

    def link(self, a: str, interface: str, b: str, peer: str) -> None:
        """As containerlab does it: large MTUs, and moved in under another name."""
        inside, outside = self.netns[a], self.netns[b].name
        inside.ip(
            *f"link add name {interface} mtu 9500 type veth peer name tmp mtu 9500".split(),
            *("netns", outside),
        )
        self.netns[b].ip("link", "set", "dev", "tmp", "name", peer)

    def fared_cli(self, name: str, *arguments: str) -> str:
        tool = [
            sys.executable,
            "-m",
            "fared.management.cli.main",
            "-s",
            self.directory / name / "fared.sock",
        ]
        return self.netns[name].run([*map(str, tool), *arguments]).stdout

    def stop(self) -> dict[str, int]:
        for process in self.processes.values():
            process.terminate()
        return {name: process.wait(10) for name, process in self.processes.items()}


@pytest.fixture
def containers(file: Path, netns_factory: Callable[[str], Netns]) -> Iterator[Containers]:
    running = Containers(file, netns_factory)
    yield running
    for process in running.processes.values():
        process.kill()
        process.wait()


@pytest.mark.netns
def test_nodes_configure_themselves_from_the_file_and_route(containers: Containers):
    """They wait for their links, take their addresses, become their daemons and find each other."""
    containers.link("S1", "L1.0", "L1", "S1")
    containers.link("L1", "h1", "h1", "L1")
    containers.link("S1", "h1", "h1", "S1")
    with ExitStack() as stack:
        view = KernelView(containers.netns["S1"])
        stack.callback(view.close)
        arrived = wait_until({"S1": view}, lambda _, held: "10.0.1.0/24" in held.routes(), 30.0)
        logs = [log.read_text() for log in containers.directory.glob("*.log")]
        assert arrived is not None, "\n".join(logs)

    neighbors = json.loads(containers.fared_cli("S1", "--json", "show", "neighbors"))
    assert [n["state"].lower() for n in neighbors["neighbors"]] == ["full"]

    spine = containers.netns["S1"]
    assert "mtu 1400" in spine.ip("link", "show", "dev", "L1.0")
    assert "mtu 9500" in spine.ip("link", "show", "dev", "h1"), "the file names none"
    assert "10.128.0.0/31" in spine.ip("addr", "show", "dev", "L1.0")
    assert "rate 100Mbit" in spine.run(["tc", "qdisc", "show", "dev", "L1.0"]).stdout
    assert spine.run(["cat", "/proc/sys/net/ipv4/conf/L1.0/rp_filter"]).stdout == "0\n"
    host = containers.netns["h1"]
    assert "via 10.0.1.1" in host.ip("route", "show", "default")
    assert "from 10.0.2.2 lookup 1002" in host.ip("rule", "show")
    assert "via 10.0.2.1 dev S1" in host.ip("route", "show", "table", "1002")
    with host.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(10)
        with pytest.raises(ConnectionRefusedError):  # an answer, from the spine's loopback
            probe.connect(("10.255.0.1", 9))

    assert containers.stop() == {"S1": 0, "L1": 0, "h1": 0}


@pytest.mark.netns
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["h1", "--wait", "0.1"], "h1 waits up to 0.1 s for its links L1, S1\n"),
        (["h1", "--wait", "0.1"], "h1: no interface L1, S1 after 0.1 s. The links of a container"),
        (["F"], "F is of kind frr, without zebra (Debian package frr): use the image of"),
        (["X"], "no node 'X'; there are S1, L1, h1, F"),
    ],
)
def test_a_node_that_cannot_start_exits_with_the_reason(
    file: Path, arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch
):
    """A container that ends shows the reason in its log."""
    monkeypatch.setattr(Frr, "missing", lambda _: "zebra (Debian package frr)")
    result = CliRunner().invoke(main, ["node", str(file), *arguments])
    assert result.exit_code == 1
    assert complaint in result.stderr


def test_the_host_name_says_which_node_it_is(file: Path, monkeypatch: pytest.MonkeyPatch):
    """containerlab gives containers the short name of their node as host name."""
    monkeypatch.setattr(Frr, "missing", lambda _: "zebra")
    monkeypatch.setattr(socket, "gethostname", lambda: "F")
    result = CliRunner().invoke(main, ["node", str(file)])
    assert "F is of kind frr" in result.stderr


# Of containerlab's schemas/clab.schema.json and manual/nodes: what our files may use.
TOP_KEYS = {"name", "topology"}
TOPOLOGY_KEYS = {"defaults", "kinds", "groups", "nodes", "links"}
NODE_KEYS: dict[str, Callable[[object], bool]] = {
    "kind": lambda value: value == "linux",
    "group": lambda value: isinstance(value, str),
    "image": lambda value: isinstance(value, str),
    "cmd": lambda value: isinstance(value, str),
    "binds": lambda value: isinstance(value, list) and all(isinstance(b, str) for b in value),
    "privileged": lambda value: isinstance(value, bool),
    "cap-add": lambda value: isinstance(value, list) and set(value) <= {"NET_ADMIN", "NET_RAW"},
    "sysctls": lambda value: (
        isinstance(value, dict) and all(key.startswith("net.") for key in value)
    ),
    "network-mode": lambda value: bool(re.search(r"^(host)|(container:\S+)|(none)$", str(value))),
    "restart-policy": lambda value: value in ("no", "on-failure", "always", "unless-stopped"),
    "labels": lambda value: (
        isinstance(value, dict) and all(isinstance(v, str | int | float) for v in value.values())
    ),
}


@pytest.mark.parametrize("privileged", ["yes", "no"])
def test_the_generated_file_is_a_valid_containerlab_topology(privileged: str):
    """Its keys and types, as far as we use them: containerlab refuses a key it does not know."""
    document = yaml.safe_load(text(Clos3(privileged=privileged)))
    assert set(document) == TOP_KEYS
    fabric = document["topology"]
    assert set(fabric) <= TOPOLOGY_KEYS
    assert set(fabric["kinds"]) == {"linux"}
    for section in ("kinds", "groups", "nodes"):
        for name, node in fabric[section].items():
            wrong = {key for key, value in node.items() if not NODE_KEYS[key](value)}
            assert not wrong, (section, name)
    for link in fabric["links"]:
        assert set(link) <= {"endpoints", "vars", "mtu"}
        assert all(re.fullmatch(r"\S+:\S+", end) for end in link["endpoints"])
    reserved = [end for link in fabric["links"] for end in link["endpoints"] if ":eth0" in end]
    assert not reserved, "eth0 is containerlab's own"


def test_the_shipped_file_is_bound_to_the_path_that_the_node_command_reads(repository: Path):
    """The file is bound to where the command, and the image by default, look for it."""
    directory = repository / "containerlab"
    linux = yaml.safe_load((directory / "clos3.clab.yml").read_text())["topology"]["kinds"]["linux"]
    outside, inside, mode = linux["binds"][0].split(":")
    assert (directory / outside).is_file()
    assert mode == "ro"
    assert linux["cmd"].split() == ["fared-lab", "node", inside]
    dockerfile = (directory / "Dockerfile").read_text()
    assert f"CMD {json.dumps(linux['cmd'].split())}" in dockerfile
    copied = [line.split() for line in dockerfile.splitlines() if line.startswith("COPY")]
    sources = [words[1:-1] for words in copied if not words[1].startswith("--from")]
    assert all((repository / source).exists() for line in sources for source in line)


@pytest.mark.netns
def test_the_same_file_is_up_twice_under_two_names(tmp_path: Path):
    """``--lab`` names what ``up`` builds; what to do next is told in terms of that name."""
    file = tmp_path / "one.clab.yml"
    file.write_text("name: one\ntopology: {nodes: {R: {kind: fared}}}\n")
    environment = {**os.environ, "FARED_LAB_DIR": str(tmp_path / "labs")}

    def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fared.extensions.lab.main", *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    try:
        plain, named = lab("up", str(file)), lab("--lab", "two", "up", str(file))
        assert plain.stdout.startswith("lab one is up")
        assert "fared-lab cli R show routes" in plain.stderr
        assert named.stdout.startswith("lab two is up")
        assert "fared-lab --lab two down" in named.stderr
        assert "lab two" in lab("--lab", "two", "status").stdout
        assert "several labs are up (one, two)" in lab("status").stderr
        bad = lab("--lab", "../x", "up", str(file))
        assert (bad.returncode, "name:" in bad.stderr) == (2, True)
    finally:
        ends = [lab("--lab", name, "down").returncode for name in ("one", "two")]
    assert ends == [0, 0]


def test_a_node_without_privileges_begins_with_all_sysctls_in_the_file():
    """Those of the lab, those of its daemon, and a hash seed that no other node has."""
    fabric = yaml.safe_load(text(Clos3(privileged="no")))["topology"]
    assert fabric["kinds"]["linux"]["privileged"] is False
    leaf = fabric["groups"]["leaf"]["sysctls"]
    assert leaf["net.ipv4.ip_forward"] == 1
    assert leaf["net.ipv4.fib_multipath_hash_policy"] == 3
    assert leaf["net.ipv4.conf.default.rp_filter"] == 0
    seeds = {
        name: node["sysctls"].get("net.ipv4.fib_multipath_hash_seed")
        for name, node in fabric["nodes"].items()
        if node["group"] != "host"
    }
    assert None not in seeds.values()
    assert len(set(seeds.values())) == len(seeds) == 12


@pytest.mark.netns
def test_values_that_are_right_already_are_not_written(
    netns_factory: Callable[[str], Netns], tmp_path: Path
):
    """As in a container that may write none; one value that is wrong ends it, with its name."""
    file = tmp_path / "inside.clab.yml"
    file.write_text("name: inside\ntopology: {nodes: {R: {kind: fared}}}\n")
    here = netns_factory("R")
    words = ("node", str(file), "R", "--directory", str(tmp_path / "R"))
    node = shlex.join((sys.executable, "-m", "fared.extensions.lab.main", *words))
    forbid = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"
    for key, value in container_sysctls(make_plan(load(file)).node("R")).items():
        here.sysctl(key.removeprefix("net."), value)

    def log(*options: str) -> str:
        script = f"{forbid} && exec {node} {shlex.join(options)}"
        command = ("unshare", "--mount", "sh", "-c", script)
        with here.entered():
            return subprocess.run(
                command, capture_output=True, text=True, timeout=120, check=False
            ).stderr

    here.sysctl("ipv4.fib_multipath_hash_policy", 0)
    refused = log()
    assert "R may not set sysctls here (Read-only file system)" in refused
    assert refused.endswith("  sysctls: {net.ipv4.fib_multipath_hash_policy: 3}\n")
    here.sysctl("ipv4.fib_multipath_hash_policy", 3)
    assert "no such user: 'nobody-here'" in log("--user", "nobody-here"), "it went on"
