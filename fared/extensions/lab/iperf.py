"""A bulk transfer over TCP with iperf3, for some seconds."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass

from fared.core.units import BytesPerSecond
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.ranks import rank_of
from fared.extensions.lab.tcp_order import TcpOrder, increments, order_between, read_counters
from fared.extensions.lab.workloads.flows import CONGESTION_CONTROL

FORMAT = "fared-traffic/1"
_LISTEN_DEADLINE = 2.0
_GRACE = 20.0
_POLL = 0.002


@dataclass(frozen=True)
class Transfer:
    """The outcome of a bulk TCP transfer: goodput of all streams together, bytes/s."""

    source: str
    destination: str
    streams: int
    seconds: float
    goodput: BytesPerSecond
    order: TcpOrder

    def as_json(self) -> str:
        """The outcome as one JSON document."""
        return json.dumps({"format": FORMAT, **asdict(self)})


def transfer(
    fabric: Fabric,
    source: str,
    destination: str,
    *,
    streams: int = 64,
    seconds: int = 5,
    congestion: str = CONGESTION_CONTROL,
) -> Transfer:
    """Run iperf3 between two hosts for some seconds. Raises LabError if that fails."""
    if shutil.which("iperf3") is None:
        raise LabError("iperf3 is not installed")
    near, far = rank_of(fabric.plan, source), rank_of(fabric.plan, destination)
    server_node, client_node = fabric.node(far.host), fabric.node(near.host)
    server_node.directory.mkdir(parents=True, exist_ok=True)
    before = [read_counters(node.netns) for node in (client_node, server_node)]
    server = server_node.netns.start(["iperf3", "-s", "-1"], server_node.directory / "iperf3.log")
    try:
        _await_listener(server_node, server)
        arguments = ["iperf3", "-c", str(far.address()), "-B", str(near.address()), "-J"]
        arguments += ["-P", str(streams), "-t", str(seconds), "-C", congestion]
        with client_node.netns.entered():
            done = subprocess.run(
                arguments,
                capture_output=True,
                text=True,
                timeout=seconds + _GRACE,
                check=False,
            )
        result = json.loads(done.stdout or "{}")
        if "error" in result or "end" not in result:
            raise LabError(f"iperf3: {result.get('error', done.stderr.strip())}")
        after = [read_counters(node.netns) for node in (client_node, server_node)]
        total = result["end"]["sum_received"]
        goodput = total["bits_per_second"] / 8
        order = order_between(*map(increments, before, after))
        return Transfer(near.name, far.name, streams, total["seconds"], goodput, order)
    finally:
        server.kill()
        server.wait()


def _await_listener(node: RunningNode, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _LISTEN_DEADLINE
    while time.monotonic() < deadline and server.poll() is None:
        listening = node.netns.run(["ss", "-Hltn", "sport", "=", ":5201"])
        if listening.stdout.strip():
            return
        time.sleep(_POLL)
    raise LabError("iperf3 does not listen")
