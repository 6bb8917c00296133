"""Traffic between hosts, and its distribution over paths.

Many short UDP flows, each with a distinct five-tuple, are sent from one host to another; the
counters of each uplink of the sender's leaf are compared with the weights in that leaf's kernel.
The packets are built on raw sockets opened inside the host's namespace, where a source port is a
field of the packet and needs no socket of its own.
"""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from fared.core.units import BytesPerSecond
from fared.lab.addressing import PortAddresses
from fared.lab.errors import LabError
from fared.lab.fabric import Fabric, RunningNode
from fared.lab.kernel_view import shares

FORMAT = "fared-traffic/1"
_FIRST_SOURCE_PORT = 1024
_SOURCE_PORTS = 60000
_DESTINATION_PORT = 4791  # RoCEv2: the traffic of an AI fabric
_DESTINATION_PORTS = 16
_PAYLOAD = bytes(64)
_UDP = struct.Struct("!HHHH")
_CHECKSUM_OFFSET = 6
_TICK = 0.002
_DRAIN_DEADLINE = 2.0
_IPERF_GRACE = 20.0

Address = IPv4Address | IPv6Address

DEFAULT_FLOWS = 20_000
DEFAULT_RATE = 25_000


@dataclass(frozen=True)
class Uplink:
    """One uplink: its weight in the kernel, its expected share, and its traffic."""

    interface: str
    gateway: str | None
    weight: int
    expected: float
    packets: int
    measured: float


@dataclass(frozen=True)
class TrafficReport:
    """The distribution of flows over the uplinks of the sender's leaf."""

    source: str
    destination: str
    leaf: str
    prefix: str
    flows: int
    sent: int
    delivered: int
    seconds: float
    uplinks: tuple[Uplink, ...]

    @property
    def worst_error(self) -> float:
        """The largest difference between measured and expected share, 0 to 1."""
        return max((abs(up.measured - up.expected) for up in self.uplinks), default=1.0)

    def as_json(self) -> str:
        """The report as one JSON document, format ``fared-traffic/1``."""
        return json.dumps({"format": FORMAT, **asdict(self)})


def measure(
    fabric: Fabric,
    source: str,
    destination: str,
    *,
    flows: int = DEFAULT_FLOWS,
    packets_per_flow: int = 1,
    rate: int = DEFAULT_RATE,
    ipv6: bool = False,
) -> TrafficReport:
    """Send the flows and report each uplink's share.

    ``rate`` is packets a second; the default is far below the rate of slow lab links, so that drops
    do not distort shares. Raises LabError if a host is unknown or there is no route.
    """
    leaf, _ = fabric.plan.leaf_of(source)
    far_leaf, far_port = fabric.plan.leaf_of(destination)
    if leaf.name == far_leaf.name:
        raise LabError(f"{source} and {destination} are on the same router, {leaf.name}")
    if not 1 <= flows <= _SOURCE_PORTS * _DESTINATION_PORTS:
        raise LabError(f"{flows} flows: not 1 to {_SOURCE_PORTS * _DESTINATION_PORTS}")
    view = fabric.view(leaf.name)
    network, target = _target(far_port, ipv6=ipv6)
    prefix = str(network)
    hops = view.hops(prefix)
    if not hops:
        raise LabError(f"{leaf.name} has no route to {prefix}")
    names = [hop.interface for hop in hops]
    sent = flows * packets_per_flow
    before, before_far = view.counters(), _received(fabric, destination)
    begun = time.monotonic()
    with sinks(fabric.node(destination), target):
        send(fabric.node(source), target, flows, packets_per_flow, rate)
        seconds = time.monotonic() - begun
        _drain(fabric, destination, before_far + sent)
    after = view.counters()
    packets = {name: after[name].sent_packets - before[name].sent_packets for name in names}
    total = sum(packets.values()) or 1
    wanted = shares(hops)
    uplinks = tuple(
        Uplink(*hop, wanted[hop.interface], packets[hop.interface], packets[hop.interface] / total)
        for hop in hops
    )
    delivered = min(sent, _received(fabric, destination) - before_far)
    return TrafficReport(
        source, destination, leaf.name, prefix, flows, sent, delivered, seconds, uplinks
    )


def _target(port: PortAddresses, *, ipv6: bool) -> tuple[IPv4Network | IPv6Network, Address]:
    """Return a host's subnet and its address there. Raises LabError if it has no IPv6 address."""
    if not ipv6:
        return port.address.network, port.peer_address
    if port.address6 is None or port.peer_address6 is None:
        raise LabError(f"{port.peer} has no IPv6 address: IPv6 is routed where IS-IS runs")
    return port.address6.network, port.peer_address6


def five_tuples(flows: int) -> Iterator[tuple[int, int]]:
    """Yield (source port, destination port) pairs, all distinct."""
    for number in range(flows):
        yield (
            _FIRST_SOURCE_PORT + number % _SOURCE_PORTS,
            _DESTINATION_PORT + number // _SOURCE_PORTS,
        )


def send(node: RunningNode, target: Address, flows: int, repeats: int, rate: int) -> None:
    """Send at an even rate: in each tick the packets that are due."""
    length = _UDP.size + len(_PAYLOAD)
    with node.netns.socket(_family(target), socket.SOCK_RAW, socket.IPPROTO_UDP) as raw:
        if target.version == 6:  # IPv6 requires the checksum; the kernel computes it
            raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_CHECKSUM, _CHECKSUM_OFFSET)
        raw.connect((str(target), 0))
        begun = time.monotonic()
        number = 0
        for _ in range(repeats):
            for source_port, destination_port in five_tuples(flows):
                if number >= (time.monotonic() - begun) * rate:
                    time.sleep(_TICK)
                # Checksum 0 stands for none, which RFC 768 permits over IPv4.
                raw.send(_UDP.pack(source_port, destination_port, length, 0) + _PAYLOAD)
                number += 1


@contextmanager
def sinks(node: RunningNode, target: Address) -> Iterator[None]:
    """Keep the destination ports open, so that the host does not answer packets with ICMP."""
    with ExitStack() as stack:
        for port in range(_DESTINATION_PORT, _DESTINATION_PORT + _DESTINATION_PORTS):
            sink = stack.enter_context(node.netns.socket(_family(target), socket.SOCK_DGRAM))
            sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sink.bind(("", port))
        yield


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _received(fabric: Fabric, host: str) -> int:
    port = fabric.plan.node(host).ports[0]
    return fabric.view(host).counters()[port.name].received_packets


def _drain(fabric: Fabric, host: str, expected: int) -> None:
    deadline = time.monotonic() + _DRAIN_DEADLINE
    while _received(fabric, host) < expected and time.monotonic() < deadline:
        time.sleep(_TICK)


@dataclass(frozen=True)
class Transfer:
    """The outcome of a bulk TCP transfer: goodput of all streams together, bytes/s."""

    source: str
    destination: str
    streams: int
    seconds: float
    goodput: BytesPerSecond

    def as_json(self) -> str:
        """The outcome as one JSON document."""
        return json.dumps({"format": FORMAT, **asdict(self)})


def transfer(
    fabric: Fabric, source: str, destination: str, *, streams: int = 64, seconds: int = 5
) -> Transfer:
    """Run iperf3 between two hosts for some seconds. Raises LabError if that fails."""
    if shutil.which("iperf3") is None:
        raise LabError("iperf3 is not installed")
    _, far_port = fabric.plan.leaf_of(destination)
    fabric.plan.leaf_of(source)
    server_node, client_node = fabric.node(destination), fabric.node(source)
    server_node.directory.mkdir(parents=True, exist_ok=True)
    server = server_node.netns.start(["iperf3", "-s", "-1"], server_node.directory / "iperf3.log")
    try:
        _await_listener(server_node, server)
        arguments = ["iperf3", "-c", str(far_port.peer_address), "-J"]
        arguments += ["-P", str(streams), "-t", str(seconds), "-C", "cubic"]
        with client_node.netns.entered():
            done = subprocess.run(
                arguments,
                capture_output=True,
                text=True,
                timeout=seconds + _IPERF_GRACE,
                check=False,
            )
        result = json.loads(done.stdout or "{}")
        if "error" in result or "end" not in result:
            raise LabError(f"iperf3: {result.get('error', done.stderr.strip())}")
        total = result["end"]["sum_received"]
        goodput = total["bits_per_second"] / 8
        return Transfer(source, destination, streams, total["seconds"], goodput)
    finally:
        server.kill()
        server.wait()


def _await_listener(node: RunningNode, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _DRAIN_DEADLINE
    while time.monotonic() < deadline and server.poll() is None:
        listening = node.netns.run(["ss", "-Hltn", "sport", "=", ":5201"])
        if listening.stdout.strip():
            return
        time.sleep(_TICK)
    raise LabError("iperf3 does not listen")
