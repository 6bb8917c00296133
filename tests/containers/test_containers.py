"""fared in containers as containerlab runs them: linked late, unprivileged, restarted, beside FRR.

Two leaves, a spine of fared and one of FRR. The routers of fared have three capabilities and begin
with their sysctls; links have containerlab's own MTU. ``test_fabrics`` runs the shipped files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fared.extensions.lab.generate.clos3 import Clos3
from fared.extensions.lab.generate.writer import text
from tests.containers.clab import Clab
from tests.containers.engine import Podman
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(600)]
FAR = "10.0.2.0/24"
"""The subnet of h2, behind L2."""
PATIENT = 60


def small() -> str:
    """The file that `fared-lab generate` writes, with FRR in S2."""
    generated = text(Clos3(name="small", spines=2, leaves=2, hello=3, privileged="no"))
    document = yaml.safe_load(generated)
    document["topology"]["nodes"]["S2"] = {
        "image": "fared-peers",
        "privileged": True,
        "labels": {"fared-lab.kind": "frr", "fared-lab.rate": "100M"},
    }
    return yaml.safe_dump(document, sort_keys=False)


@pytest.fixture(scope="module")
def lab(deploy: Callable[[Path], Clab], tmp_path_factory: pytest.TempPathFactory) -> Clab:
    file = tmp_path_factory.mktemp("lab") / "small.clab.yml"
    file.write_text(small())
    lab = deploy(file)
    wait_for(lambda: settled(lab), PATIENT, lambda: f"both paths\n{lab.logs('L1')}{lab.logs('S2')}")
    return lab


def settled(lab: Clab) -> bool:
    """Whether L1 has both paths to h2, with equal weights."""
    return weights(lab) == {"S1": 1, "S2": 1}


def weights(lab: Clab) -> dict[str, int]:
    """The next hops of L1 to h2 in the kernel, with their weights."""
    return {hop.interface: hop.weight for hop in lab.view("L1").routes().get(FAR, ())}


def test_containers_of_fared_and_frr_route(lab: Clab):
    """Adjacencies are full at the MTU that containerlab gives, and hosts reach each other."""
    found = json.loads(lab.exec("L1", "fared-cli", "--json", "show", "neighbors"))
    states = {each["interface"]: each["state"].lower() for each in found["neighbors"]}
    assert states == {"S1": "full", "S2": "full"}
    assert "mtu 9500" in lab.exec("L1", "ip", "link", "show", "dev", "S2")
    assert "3 received" in lab.exec("h1", "ping", "-c", "3", "-i", "0.2", "10.0.2.2")
    assert "proto fared" in lab.exec("L1", "ip", "route", "show", FAR)


def test_weights_follow_a_shaper_that_is_set_in_a_container(lab: Clab):
    """The command of the README."""
    before = lab.exec("S1", "tc", "qdisc", "show", "dev", "L2")
    assert "100Mbit" in before
    shape(lab, "25mbit")
    wait_for(lambda: weights(lab) == {"S1": 1, "S2": 4}, PATIENT, lambda: str(weights(lab)))
    shape(lab, "100mbit")
    wait_for(lambda: settled(lab), PATIENT, lambda: str(weights(lab)))


def shape(lab: Clab, rate: str) -> None:
    words = f"qdisc replace dev L2 root handle 1: tbf rate {rate} burst 62500 limit 687500"
    lab.exec("S1", "tc", *words.split())


def test_the_daemon_has_an_account_of_its_own_and_three_capabilities(lab: Clab):
    assert lab.exec("L1", "ps", "-o", "user=,comm=", "-p", "1").split() == ["fared", "fared"]
    status = lab.exec("L1", "cat", "/proc/1/status")
    bind_service_admin_and_raw = f"{1 << 10 | 1 << 12 | 1 << 13:016x}"
    assert all(
        f"{which}:\t{bind_service_admin_and_raw}" in status for which in ("CapEff", "CapBnd")
    )
    checks = json.loads(lab.exec("L1", "fared-cli", "--json", "validate"))
    assert checks["ok"], checks


def test_nodes_are_healthy_once_they_route(lab: Clab):
    """Hosts and routers of other makes run no fared that could be asked."""
    assert all(lab.healthy(node) for node in ("L1", "S2", "h1"))
    assert lab.exec("L1", "fared-cli", "health") == "ready\n"


def test_a_restarted_container_says_at_once_which_links_it_lacks(lab: Clab):
    """Its neighbors have lost these links too: all are deployed again, and route as before."""
    seen = len(lab.logs("L1"))
    lab.restart("L1")
    line = "L1 waits up to 120 s for its links S1, S2, h1"
    wait_for(lambda: line in lab.logs("L1")[seen:], PATIENT, lambda: lab.logs("L1")[seen:])
    assert not lab.healthy("L1")
    for node in lab.nodes.keys() - {"L1"}:
        lab.restart(node)
    lab.link()
    wait_for(lambda: settled(lab), PATIENT, lambda: lab.logs("L1")[seen:])
    wait_for(lambda: lab.healthy("L1"), PATIENT, "healthy", pause=0.5)


def test_a_container_that_may_not_set_sysctls_names_them(podman: Podman, tmp_path: Path):
    file = tmp_path / "alone.clab.yml"
    file.write_text("name: alone\ntopology: {nodes: {R: {kind: fared}}}\n")
    words = ("--rm", "--network=none", "--hostname=R", "--cap-add=NET_ADMIN", "--cap-add=NET_RAW")
    words += (f"--cgroup-parent={podman.cgroup}",)
    log = podman.run("run", *words, f"--volume={file}:/fabric.clab.yml:ro", "fared", check=False)
    assert "R may not set sysctls here (Read-only file system)" in log
    values = log.partition("sysctls: {")[2]
    assert "net.ipv4.fib_multipath_hash_fields: 55" in values
    assert "net.ipv4.fib_multipath_hash_seed: " in values
