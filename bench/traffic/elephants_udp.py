"""What nftables holds in the fabric of ``elephants``, and UDP over it at a fixed rate."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

from bench.traffic.dataplane import Rate
from bench.traffic.dataplane_runs import LEAF, RATE, SENDER, SPINE
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.sprayed import sprayed
from fared.extensions.lab.traffic import measure as send
from fared.extensions.lab.workloads.bounds import least_seconds

PAYLOAD, OVERHEAD = 8900, 42
"""Bytes of a UDP packet, and of its headers on the wire."""
UDP_PACKETS = 10_000
JUST_BELOW, CHANGE_LOAD = 0.97, 0.5
CHANGE_SECONDS, FAILURE_SECONDS = 9.0, 6.0
FASTER = 0.4


def prefix(fabric: Fabric, *, ipv6: bool = False) -> str:
    """The destination: the hosts of the leaf with the slow downlink."""
    leaf = fabric.plan.node(LEAF)
    return str((leaf.host_prefixes6 if ipv6 else leaf.host_prefixes)[0])


def _packets_a_second(fabric: Fabric, rates: Rate) -> float:
    """The packets a second that fit the paths from host to host."""
    return 1 / least_seconds(fabric.plan, rates, {(SENDER, LEAF): float(PAYLOAD + OVERHEAD)})


def _send(fabric: Fabric, rate: float, packets: int, flows: int = 1) -> dict[str, Any]:
    hosts = [node.name for node in fabric.plan.hosts]
    report = send(
        fabric,
        hosts[0],
        hosts[1],
        flows=flows,
        packets_per_flow=packets // flows,
        rate=round(rate),
        payload=PAYLOAD,
    )
    assert report.order is not None
    return {
        "sent": report.sent,
        "lost": report.sent - report.order.received,
        "rate": report.sent / report.seconds,
        "error": report.worst_error,
        "order": asdict(report.order),
    }


def just_below(fabric: Fabric, rates: Rate) -> dict[str, Any]:
    """Send 10,000 numbered packets of one flow at a rate just below the bound."""
    return _send(fabric, JUST_BELOW * _packets_a_second(fabric, rates), UDP_PACKETS)


def changed(fabric: Fabric, rates: Rate) -> dict[str, Any]:
    """Make the slow link faster while packets are sent; count those lost, and transactions.

    At the end the link has its rate of before; the kernels follow.
    """
    leaf = fabric.node(SENDER)
    log = leaf.directory / "nft-monitor.log"
    monitor = leaf.netns.start(["nft", "monitor"], log)
    rate = CHANGE_LOAD * _packets_a_second(fabric, rates)
    before = sprayed(leaf.netns, prefix(fabric))
    timer = threading.Timer(CHANGE_SECONDS / 9, lambda: fabric.shape(SPINE, LEAF, FASTER * RATE))
    timer.start()
    try:
        found = _send(fabric, rate, round(rate * CHANGE_SECONDS))
        after = sprayed(leaf.netns, prefix(fabric))
    finally:
        timer.join()
        monitor.terminate()
        monitor.wait()
    generations = log.read_text("utf-8").count("# new generation")
    fabric.shape(SPINE, LEAF, RATE / 5)
    return found | {"transactions": generations, "before": before, "after": after}


def failed(fabric: Fabric, rates: Rate, link: tuple[str, str], flows: int) -> dict[str, Any]:
    """Let a link fail while packets are sent; count those lost. At the end it is up again."""
    rate = CHANGE_LOAD * _packets_a_second(fabric, rates)
    timer = threading.Timer(FAILURE_SECONDS / 3, lambda: fabric.fail(*link))
    timer.start()
    try:
        return _send(fabric, rate, round(rate * FAILURE_SECONDS), flows)
    finally:
        timer.join()
        fabric.heal(*link)
