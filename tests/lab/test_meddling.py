"""Changes by other programs and by operators in the kernel of a leaf that carries traffic."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fared.daemon.loop.health import AUDIT_INTERVAL
from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.waiting import await_paths
from tests.lab.stream import RATE, Stream
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.timeout(240)]
CLOS3 = Path(__file__).parents[2] / "containerlab" / "clos3.clab.yml"
FAR = "10.0.2.0/24"
AT_ONCE = AUDIT_INTERVAL / 6
"""Seconds: a repair that nobody asked for comes with the next audit."""
CHURN = """
import sys, time
from fared.paths.fib.settings import FibSettings
from fared.kernel.netlink import attribute, u32_attribute
from fared.kernel.requests import RequestSocket
import struct
interface, gateway, seconds, rate = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), 2000
kernel = RequestSocket()
def put(number):
    body = struct.pack("=BBBBI", 2, 0, 99, 0, 0) + u32_attribute(1, number)
    body += u32_attribute(5, interface) + attribute(6, bytes(map(int, gateway.split("."))))
    kernel.request(104, 0x500, body)
for number in range(1, 2001):
    put(number)
begun, done = time.monotonic(), 0
while (passed := time.monotonic() - begun) < seconds:
    if done < passed * rate:
        put(1 + done % 2000)
        done += 1
    else:
        time.sleep(0.0003)
print(done)
"""


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """The three-stage fabric of the demo, routing."""
    with Fabric.from_file(CLOS3, directory=tmp_path_factory.mktemp("clos3")) as running:
        assert await_paths(running, 60.0) is not None
        yield running


@pytest.fixture
def leaf(fabric: Fabric) -> Iterator[RunningNode]:
    """L1, which is alive before and after, and holds what it should."""
    node = fabric.node("L1")
    yield node
    assert show(node, "status")["ready"]
    assert not [r for r in records(node) if r["event"] == "internal-error"]
    assert await_paths(fabric, 10.0) is not None


def show(node: RunningNode, what: str) -> dict[str, Any]:
    return json.loads(node.cli("--json", "show", what))


def records(node: RunningNode) -> list[dict[str, Any]]:
    lines = node.processes[0].log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def told(report: dict[str, Any]) -> None:
    """For whoever runs this with -s."""
    sys.stdout.write(f"{report}\n")


def counter(node: RunningNode, group: str, name: str) -> int:
    rows = show(node, "counters")["counters"]
    return next((r["value"] for r in rows if (r["group"], r["name"]) == (group, name)), 0)


def traffic(fabric: Fabric) -> Stream:
    """From h1 to h2, over all spines."""
    return Stream.between(fabric, "h1", "h2", flows=64)


def mended(stream: Stream, seconds: float) -> float | None:
    """Seconds until no more packets are lost for a fifth of a second; None: not in time."""
    begun, lost, since = time.monotonic(), stream.lost, time.monotonic()
    while time.monotonic() - begun < seconds:
        time.sleep(0.01)
        if stream.lost > lost:
            lost, since = stream.lost, time.monotonic()
        elif time.monotonic() - since > 0.2:
            return since - begun
    return None


@pytest.mark.parametrize(
    "seconds", [4, pytest.param(60, marks=pytest.mark.soak)], ids=["short", "minute"]
)
def test_constant_changes_of_foreign_next_hops_delay_no_repair_and_lose_no_traffic(
    fabric: Fabric, leaf: RunningNode, seconds: int
):
    """2,000 a second; our routes are audited all the same, and repaired when something breaks."""
    port = next(port for port in leaf.plan.ports if port.peer == "S1")
    (link,) = json.loads(leaf.netns.ip("-j", "link", "show", port.name))
    command = [
        sys.executable,
        "-c",
        CHURN,
        str(link["ifindex"]),
        str(port.peer_address),
        str(seconds),
    ]
    with traffic(fabric) as stream:
        with leaf.netns.entered():
            churn = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        before = counter(leaf, "computations", "drift")
        leaf.netns.ip("route", "del", FAR)
        assert mended(stream, AT_ONCE) is not None
        assert counter(leaf, "computations", "drift") > before
        assert churn.poll() is None, "it was not the end of the changes that let it be repaired"
        since = stream.sent
        done, _ = churn.communicate(timeout=seconds + 30)
    assert int(done) > 200 * seconds, "there were many changes"
    leaf.netns.ip("nexthop", "flush", "protocol", "99")
    report = {"replaced": int(done), "sent": stream.sent, "lost": stream.lost}
    report["audits-skipped"] = counter(leaf, "edge", "audits-skipped")
    told(report)
    assert stream.lost < AT_ONCE * RATE / 2
    assert stream.missing(since, stream.sent) == 0


def test_forwarding_switched_off_by_others_is_switched_on_again_at_once(
    fabric: Fabric, leaf: RunningNode
):
    with traffic(fabric) as stream:
        time.sleep(0.2)  # traffic before and after
        leaf.netns.sysctl("ipv4.ip_forward", 0)
        took = mended(stream, AT_ONCE)
    assert took is not None
    told({"sent": stream.sent, "lost": stream.lost, "seconds": round(took, 3)})
    assert stream.lost < AT_ONCE * RATE / 2
    (row,) = [r for r in records(leaf) if r["event"] == "sysctl-set-back"]
    assert row["name"] == "net.ipv4.ip_forward"
    assert all(setting["ok"] for setting in show(leaf, "status")["sysctls"])
    assert counter(leaf, "edge", "sysctls-set-back") == 1


@pytest.mark.parametrize("how", ["replace", "prepend"])
def test_a_blackhole_that_replaced_a_route_is_replaced_at_once(
    fabric: Fabric, leaf: RunningNode, how: str
):
    """Of our table, prefix and metric, with another protocol number."""
    with traffic(fabric) as stream:
        time.sleep(0.2)  # traffic before and after
        leaf.netns.ip("route", how, "blackhole", FAR, "metric", "20")
        took = mended(stream, AT_ONCE)
    assert took is not None
    told({"how": how, "sent": stream.sent, "lost": stream.lost, "seconds": round(took, 3)})
    assert stream.lost < AT_ONCE * RATE / 2
    assert show(leaf, "status")["fib"]["foreign"] == []


def test_the_loss_of_all_uplinks_causes_no_refusal_and_no_repair(fabric: Fabric, leaf: RunningNode):
    """The kernel removes next hops with their links, before the daemon hears of all of them."""
    uplinks = [port.name for port in leaf.plan.ports if not port.to_host]
    drift = counter(leaf, "computations", "drift")
    for _ in range(3):
        leaf.netns.batch("ip", [f"link set {name} down" for name in uplinks])
        wait_for(lambda: not fabric.view("L1").hops(FAR), 30, "no route left")
        leaf.netns.batch("ip", [f"link set {name} up" for name in uplinks])
        assert await_paths(fabric, 30.0) is not None
    assert not [r for r in records(leaf) if r["event"] == "fib-operation-refused"]
    assert counter(leaf, "computations", "drift") == drift
