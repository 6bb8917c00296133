"""Links with a delay: frames arrive late and whole, and both ends see the other go down."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.delay import set_netem
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.status import show_status
from fared.extensions.lab.waiting import wait_until

TOPOLOGY = """
name: far
topology:
  groups: {router: {labels: {fared-lab.kind: fared, fared-lab.rate: 100M}}}
  nodes: {A: {group: router}, B: {group: router}}
  links: [{endpoints: ["A:B", "B:A"], mtu: 1400, vars: {delay: 20ms}}]
"""
ROUND_TRIP = 0.040
_RTT = struct.Struct("=68xI")
"""``tcpi_rtt`` in ``struct tcp_info``, microseconds."""


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """Namespaces and links, without daemons."""
    source = topology.from_document(yaml.safe_load(TOPOLOGY), tmp_path / "far.clab.yml")
    built = Fabric.from_topology(source, directory=tmp_path / "state")
    try:
        built.build()
        yield built
    finally:
        built.stop()


@pytest.mark.netns
def test_a_link_of_20_ms_has_a_round_trip_of_40_ms_and_loses_carrier_at_both_ends(
    fabric: Fabric, capsys: pytest.CaptureFixture[str]
):
    """``fared-lab status`` shows the process that holds it."""
    a, b = fabric.node("A").netns, fabric.node("B").netns
    far = str(fabric.plan.node("B").ports[0].address.ip)
    message = bytes(range(256)) * 2000  # more than a queue has room for as single frames
    with b.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind((far, 5001))
        listener.listen()
        with a.socket(socket.AF_INET, socket.SOCK_STREAM) as sender:
            sender.settimeout(30)
            sender.connect((far, 5001))
            # the kernel has measured it with the handshake
            (rtt,) = _RTT.unpack(sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 72))
            receiver, _ = listener.accept()
            with receiver:
                sender.sendall(message)
                sender.shutdown(socket.SHUT_WR)
                received = b"".join(iter(lambda: receiver.recv(1 << 16), b""))
    assert ROUND_TRIP <= rtt / 1e6 < 10 * ROUND_TRIP
    assert received == message
    assert "mtu 1400 qdisc tbf" in a.ip("link", "show", "dev", "B")

    fabric.write_state()
    attached = Fabric.attach(fabric.directory)
    assert show_status(attached) == 0
    (process,) = fabric.delayed.processes
    told = capsys.readouterr().out.splitlines()[-1].split()
    assert told[:5] == ["delayed", "links", "1", "delay", str(process.pid)]

    fabric.fail("A", "B")
    assert carrier(fabric, "B", "A", present=False)
    fabric.heal("A", "B")
    assert carrier(fabric, "A", "B", present=True)
    assert carrier(fabric, "B", "A", present=True)

    fabric.delayed.stop()
    assert show_status(attached) == 1
    assert "delay ended" in capsys.readouterr().out


def carrier(fabric: Fabric, node: str, interface: str, *, present: bool) -> bool:
    """Wait until the interface has carrier, or has none."""

    def accepts(_: str, __: KernelView) -> bool:
        shown = fabric.node(node).netns.ip("link", "show", "dev", interface)
        return ("LOWER_UP" in shown) == present

    return wait_until({node: fabric.view(node)}, accepts, 20.0) is not None


def test_in_a_container_netem_delays_below_the_shaper_and_its_absence_is_one_line():
    """Here the kernel's answers are played."""
    played: list[str] = []

    class Container(Netns):
        def run(
            self, arguments: Sequence[str], *, stdin: str | None = None, check: bool = True
        ) -> subprocess.CompletedProcess[str]:
            played.append(" ".join(arguments))
            return subprocess.CompletedProcess(arguments, 2, "", "Unknown qdisc")

    source = topology.from_document(yaml.safe_load(TOPOLOGY), Path("far.clab.yml"))
    problem = set_netem(Container("A"), make_plan(source).node("A").ports)
    assert played == [
        "tc qdisc replace dev B parent 1:1 netem delay 20000us limit 1000",
    ]
    assert problem == "B: no delay: this kernel has no netem (Unknown qdisc)"


@pytest.mark.netns
@pytest.mark.soak
def test_hundreds_of_links_get_carrier_though_the_kernel_tells_more_than_fits(tmp_path: Path):
    """More descriptors than select takes, and netlink messages lost by overflow."""
    ends = [{"endpoints": [f"A:b{n}", f"B:a{n}"], "vars": {"delay": "5ms"}} for n in range(700)]
    document = yaml.safe_load(TOPOLOGY)
    document["topology"]["links"] = ends
    many = Fabric.from_topology(
        topology.from_document(document, tmp_path / "far.clab.yml"), directory=tmp_path / "state"
    )

    def accepts(_: str, __: KernelView) -> bool:
        shown = many.node("A").netns.ip("-o", "link", "show", "type", "tun")
        return shown.count("LOWER_UP") == len(ends)

    try:
        many.build()
        assert wait_until({"A": many.view("A")}, accepts, 20.0) is not None
    finally:
        many.stop()
