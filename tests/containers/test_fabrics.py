"""The shipped fabrics in containers, with the commands of ``containerlab/README.md``.

They print how long a deployed fabric takes to route, and the memory of its routers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from tests.containers.clab import Clab
from tests.containers.engine import ROUTER, Podman
from tests.lab.two_leaves import patient
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.soak, pytest.mark.slow, pytest.mark.timeout(900)]
TOPOLOGIES = Path(__file__).parents[2] / "containerlab"
PATIENT = 180


@pytest.fixture
def deployed(
    deploy: Callable[[Path], Clab], request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Clab, AddressPlan]]:
    """A shipped file, with a dead interval of 12 s: all daemons start at once."""
    file = tmp_path / f"{request.param}.clab.yml"
    file.write_text(patient((TOPOLOGIES / file.name).read_text()))
    plan = make_plan(topology.load(file))
    begun = time.monotonic()
    lab = deploy(file)
    linked = time.monotonic()
    try:
        wait_for(lambda: routed(lab, plan), PATIENT, lambda: str(missing(lab, plan)), pause=0.5)
        settled = time.monotonic()
        print(
            f"\n{request.param}: {len(lab.nodes)} containers started and linked in "
            f"{linked - begun:.1f} s, all routes {settled - linked:.1f} s later; "
            f"a router of fared takes {memory(lab, plan):.0f} MB"
        )
        yield lab, plan
    finally:
        lab.destroy()


def routed(lab: Clab, plan: AddressPlan) -> bool:
    return not missing(lab, plan)


def missing(lab: Clab, plan: AddressPlan) -> dict[str, list[str]]:
    """The subnets of hosts that routers' kernels have no route to."""
    hosts = {str(prefix) for node in plan.nodes.values() for prefix in node.host_prefixes}
    lacking = {
        name: sorted(hosts - lab.view(name).routes().keys() - set(map(str, node.host_prefixes)))
        for name, node in plan.nodes.items()
        if node.node.is_router
    }
    return {name: prefixes for name, prefixes in lacking.items() if prefixes}


def memory(lab: Clab, plan: AddressPlan) -> float:
    """Resident memory of process 1 of a router of fared, MB: the most of four."""
    fared = [name for name, node in plan.nodes.items() if node.node.kind == "fared"]
    pages = [int(lab.exec(name, "cat", "/proc/1/statm").split()[1]) for name in fared[:4]]
    return max(pages) * 4096 / 1e6


def shares(lab: Clab, at: str, prefix: str) -> list[int]:
    return sorted(hop.weight for hop in lab.view(at).routes().get(prefix, ()))


def ping(lab: Clab, at: str, to: str) -> bool:
    return "3 received" in lab.exec(at, "ping", "-c", "3", "-i", "0.2", to)


def slow(lab: Clab, at: str, to: str) -> None:
    """Slow a link down to a quarter, as the README does."""
    words = f"qdisc replace dev {to} root tbf rate 25mbit burst 16k limit 64k"
    lab.exec(at, "tc", *words.split())


@pytest.mark.parametrize("deployed", ["clos3"], indirect=True)
def test_the_commands_of_the_readme(deployed: tuple[Clab, AddressPlan], podman: Podman):
    lab, _ = deployed
    size = int(podman.run("image", "inspect", "--format", "{{.Size}}", ROUTER))
    print(f"image: {size / 1e6:.0f} MB")
    assert "10.0.2.0/24" in lab.exec("L1", "fared-cli", "show", "routes")
    assert ping(lab, "h1", "10.0.2.2")
    slow(lab, "S1", "L2")
    wait_for(lambda: shares(lab, "L1", "10.0.2.0/24") == [1, 4, 4, 4], PATIENT, "1:4:4:4")


@pytest.mark.parametrize("deployed", ["clos5-isis"], indirect=True)
def test_five_stages_over_isis(deployed: tuple[Clab, AddressPlan]):
    """Another PoD is reached over both families, and a slow link there changes weights here."""
    lab, plan = deployed
    far = plan.node("p2-L1")
    host = next(port for port in far.ports if port.to_host)
    assert ping(lab, "p1-h1", str(host.peer_address))
    assert ping(lab, "p1-h1", str(host.peer_address6))
    slow(lab, "p2-S1", "p2-L1")
    prefix = str(far.host_prefixes[0])
    wait_for(lambda: shares(lab, "p1-L1", prefix) == [1, 4, 4, 4], PATIENT, "1:4:4:4")


@pytest.mark.parametrize("deployed", ["clos3-mixed"], indirect=True)
def test_spines_of_frr_and_bird(deployed: tuple[Clab, AddressPlan]):
    """All makes find each other at the MTU that containerlab gives."""
    lab, _ = deployed
    found = json.loads(lab.exec("L1", "fared-cli", "--json", "show", "neighbors"))
    assert [each["state"].lower() for each in found["neighbors"]] == ["full"] * 4
    assert "Full" in lab.exec(
        "S1", "vtysh", "--vty_socket", "/run/fared", "-c", "show ip ospf neighbor"
    )
    assert "Full" in lab.exec(
        "S3", "birdc", "-s", "/run/fared/bird.ctl", "show", "ospf", "neighbors"
    )
    assert ping(lab, "h1", "10.0.2.2")
    assert all(lab.healthy(node) for node in ("S1", "S3", "L1"))


@pytest.mark.parametrize("deployed", ["clos3-frr-spines"], indirect=True)
def test_leaves_tell_each_other_of_slow_links_through_frr(deployed: tuple[Clab, AddressPlan]):
    """Over BGP, between daemons in containers of their own, none of which runs as root."""
    lab, _ = deployed
    slow(lab, "L2", "S1")
    wait_for(lambda: shares(lab, "L1", "10.0.2.0/24") == [1, 4, 4, 4], PATIENT, "1:4:4:4")
    assert ping(lab, "h1", "10.0.2.2")
