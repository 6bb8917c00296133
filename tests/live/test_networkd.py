"""systemd-networkd beside fared: it deletes groups that are not its own with each new interface."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.daemons import RIGHT_STUB, Pair
from tests.waiting import wait_for

NETWORKD = os.environ.get("FARED_TEST_NETWORKD", "/lib/systemd/systemd-networkd")
SECONDS, RATE, INTERFACES, MOST_LOST = 11, 1000, 40, 50
_PORT = 4791
_START = """
mount --make-rprivate /
mount -t sysfs -o ro sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/network /run/systemd/netif
(cd /run/systemd/netif && mkdir links leases lldp)
chown -R systemd-network: /run/systemd 2>/dev/null
network='[Match]\\nName=managed*\\n[Network]\\nAddress=192.0.2.1/24\\n'
printf "$network" > /run/systemd/network/10.network
exec "$0"
"""
pytestmark = [
    pytest.mark.netns,
    pytest.mark.soak,
    pytest.mark.alone,
    pytest.mark.skipif(not Path(NETWORKD).exists(), reason="needs Debian's systemd"),
]


@contextlib.contextmanager
def networkd(pair: Pair) -> Iterator[None]:
    """Run it in the left namespace, with a configuration for interfaces ``managed*`` only."""
    with pair.left.netns.entered(), (pair.left.directory / "networkd.log").open("wb") as log:
        process = subprocess.Popen(
            [shutil.which("unshare") or "", "-m", "sh", "-c", _START, NETWORKD],
            stdout=log,
            stderr=log,
        )
    try:
        yield
        assert process.poll() is None, (pair.left.directory / "networkd.log").read_text()
    finally:
        process.terminate()
        process.wait(10)


class Packets:
    """1,000 packets a second from the left router to the network behind the right one."""

    def __init__(self, pair: Pair) -> None:
        target = str(next(ipaddress.ip_network(RIGHT_STUB).hosts()))
        self._sender = pair.left.netns.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._receiver = pair.right.netns.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._receiver.bind(("", _PORT))
        self._receiver.settimeout(1.0)
        self._at = (target, _PORT)
        self.arrived: set[int] = set()
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def send(self, count: int) -> None:
        begun = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
            with contextlib.suppress(OSError):
                self._sender.sendto(struct.pack("!I", number), self._at)

    def _receive(self) -> None:
        with contextlib.suppress(TimeoutError):
            while True:
                self.arrived.add(struct.unpack("!I", self._receiver.recv(16))[0])

    def finish(self) -> None:
        self._thread.join()


def test_interfaces_that_appear_beside_networkd_cost_next_to_nothing(pair: Pair):
    netns = pair.left.netns
    pair.left.prioritize()
    with networkd(pair):
        netns.ip("link", "add", "managed0", "type", "veth", "peer", "name", "far0")
        netns.ip("link", "set", "far0", "up")
        wait_for(lambda: "192.0.2.1" in netns.ip("addr", "show", "managed0"), 20, "networkd runs")
        wait_for(pair.left.settled, 20, "the routes are there")
        packets = Packets(pair)
        appear = threading.Thread(target=_appear, args=(pair,))
        appear.start()
        packets.send(SECONDS * RATE)
        appear.join()
        packets.finish()
        lost = SECONDS * RATE - len(packets.arrived)
    netns.batch("ip", [f"link del managed{number}" for number in range(INTERFACES + 1)])
    deleted = pair.left.counters()["computations"]["drift"]
    assert deleted >= INTERFACES, "networkd deletes nothing here"
    assert lost <= MOST_LOST, f"of {SECONDS * RATE}"


def _appear(pair: Pair) -> None:
    for number in range(1, INTERFACES + 1):
        pair.left.netns.ip(*f"link add managed{number} type veth peer name far{number}".split())
        time.sleep(SECONDS / (INTERFACES + 2))
