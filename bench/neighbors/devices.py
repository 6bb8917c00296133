"""The device under test: leaf 0 of the fabric, by FRR, BIRD or fared, in a namespace of its own.

Each device has one veth to every spine; the other ends are in a second namespace, with the
speakers. ``beside_configs`` has the configurations.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.neighbors.configs import Setup, commands, files
from bench.neighbors.fabric import Fabric
from bench.neighbors.isis import IsisSpeaker
from bench.neighbors.lsas import MTU, FabricLsas
from bench.neighbors.lsps import Lsps
from bench.neighbors.ospf import OspfSpeaker
from bench.neighbors.script import Send
from fared.core.ids import dotted
from fared.extensions.lab.namespaces import Netns
from fared.kernel.isis_socket import ETH_P_802_2, frame, strip_ethernet_header
from fared.kernel.ospf_socket import strip_ipv4_header
from fared.management.api.client import ControlClient
from fared.protocols.isis.ids import ALL_ISS

READY = 30.0
_ISIS_MTU = 1500
_BUFFER = 16 << 20
_RTM_NEWROUTE, _RTM_DELROUTE, _RTM_NEWNEXTHOP = 24, 25, 104
_GROUPS = (7, 32)  # IPv4 routes, next hops
_SYSCTLS = {
    "ipv6.conf.all.disable_ipv6": 1,
    "ipv6.conf.default.disable_ipv6": 1,
    "ipv4.ip_forward": 1,
    "ipv4.igmp_max_memberships": 4096,
    "ipv4.conf.all.rp_filter": 0,
    "ipv4.conf.default.rp_filter": 0,
}
Speaker = OspfSpeaker | IsisSpeaker


class Device(Setup):
    """One daemon with its neighbors."""

    def __init__(self, kind: str, protocol: str, fabric: Fabric, directory: Path) -> None:
        super().__init__(kind, protocol, fabric, directory)
        self.directory.mkdir(mode=0o777)
        self.inside = Netns.create(f"{self.name}-dut")
        self.outside = Netns.create(f"{self.name}-out")
        self.processes: list[subprocess.Popen[bytes]] = []
        self.speakers: dict[int, Speaker] = {}
        """By descriptor of the socket."""
        self.sockets: dict[int, socket.socket] = {}
        self._strip = strip_ipv4_header if protocol == "ospf" else strip_ethernet_header
        self._wire()
        self.monitor = self.inside.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.monitor.setsockopt(socket.SOL_SOCKET, 33, _BUFFER)  # SO_RCVBUFFORCE
        self.monitor.bind((0, 0))
        for group in _GROUPS:
            self.monitor.setsockopt(270, 1, group)
        self.monitor.setblocking(False)

    # Wires

    def _wire(self) -> None:
        for netns in (self.inside, self.outside):
            for key, value in _SYSCTLS.items():
                netns.sysctl(key, value)
        isis = self.protocol == "isis"
        mtu = _ISIS_MTU if isis else MTU
        lines = [f"addr add {dotted(self.fabric.leaf(0))}/32 dev lo"]
        far = []
        for spine in range(self.fabric.spines):
            theirs, mine = map(dotted, self.fabric.addresses((spine, 0)))
            out = f"peer name d{spine} mtu {mtu} netns {self.outside.name}"
            lines.append(f"link add s{spine} mtu {mtu} type veth {out}")
            lines.append(f"addr add {mine}/31 dev s{spine}")
            lines.append(f"link set s{spine} up")
            far += [f"addr add {theirs}/31 dev d{spine}", f"link set d{spine} up"]
        self.inside.batch("ip", lines)
        self.outside.batch("ip", far)
        with self.outside.entered():
            indexes = {name: index for index, name in socket.if_nameindex()}
            for spine in range(self.fabric.spines):
                self._speak(spine, indexes[f"d{spine}"])

    def _speak(self, spine: int, ifindex: int) -> None:
        if self.protocol == "ospf":
            sock = _ospf_socket(ifindex)
            send = _ospf_sender(sock)
        else:
            sock = _isis_socket(f"d{spine}")
            send = _isis_sender(sock)
        self.sockets[sock.fileno()] = sock
        self.speakers[sock.fileno()] = self._speaker(spine, ifindex, send)

    def _speaker(self, spine: int, ifindex: int, send: Send) -> Speaker:
        """The neighbor on a link; the first one has the database."""
        fabric, serves = self.fabric, spine == 0
        router, device = fabric.spine(spine), fabric.leaf(0)
        if self.protocol == "ospf":
            return OspfSpeaker(router, device, send, FabricLsas(fabric, serves=serves))
        ends = fabric.system(router), fabric.system(device)
        address = fabric.addresses((spine, 0))[0]
        return IsisSpeaker(ends, address, ifindex, send, Lsps(fabric.lsps, serves=serves))

    @property
    def server(self) -> Speaker:
        """The speaker that has the database of the fabric."""
        return next(iter(self.speakers.values()))

    def receive(self, descriptor: int) -> None:
        """Receive all pending packets of one wire."""
        sock, speaker = self.sockets[descriptor], self.speakers[descriptor]
        for _ in range(64):
            try:
                data = sock.recv(65536)
            except BlockingIOError:
                break
            datagram = self._strip(data)
            if datagram is not None:
                speaker.receive(datagram.payload)
        speaker.burst_over()

    # The daemon

    def start(self) -> None:
        """Write the configuration and start the daemon."""
        for name, text in files(self).items():
            (self.directory / name).write_text(text)
        for arguments, ready in self.commands():
            process = self.inside.start(arguments, self.directory / "log")
            self.processes.append(process)
            deadline = time.monotonic() + READY
            while not ready.exists():
                if time.monotonic() > deadline or process.poll() is not None:
                    log = (self.directory / "log").read_text(errors="replace")
                    raise RuntimeError(f"{self.name} did not start: {log[-2000:]}")
                time.sleep(0.02)

    def commands(self) -> list[tuple[list[str], Path]]:
        """Return the command of each process, and the file that exists once it has started."""
        return list(commands(self))

    def stop(self) -> None:
        """Stop the processes of the daemon.

        The kernel closes the sockets of a killed process one after another: with a thousand packet
        sockets that takes it 15 s.
        """
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
        for sock in (*self.sockets.values(), self.monitor):
            sock.close()
        self.inside.delete()
        self.outside.delete()

    def cpu(self) -> float:
        """CPU seconds of all threads of its processes."""
        total = 0
        for process in self.processes:
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def resident(self) -> float:
        """Resident memory of its processes, MiB."""
        pages = sum(
            int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            for process in self.processes
        )
        return pages * 4096 / 2**20

    def changes(self) -> int:
        """Read the monitor; return the number of route and next-hop notifications."""
        count = 0
        while True:
            try:
                data = self.monitor.recv(1 << 18)
            except BlockingIOError:
                return count
            except OSError:
                continue  # ENOBUFS: the socket buffer overflowed
            offset = 0
            while offset + 16 <= len(data):
                length, kind = struct.unpack_from("=IH", data, offset)
                count += kind in (_RTM_NEWROUTE, _RTM_DELROUTE, _RTM_NEWNEXTHOP)
                offset += (length + 3) & ~3

    def width(self, leaf: int) -> dict[str, int]:
        """Next hops of the kernel's route to a leaf, by interface, with their weights."""
        network = f"{dotted(self.fabric.host_network(leaf))}/24"
        shown = self.inside.ip("route", "show", network)
        group = re.search(r"nhid (\d+)", shown)
        if group is not None:
            return self._group(int(group[1]))
        return dict.fromkeys(re.findall(r"dev (\S+)", shown), 1)

    def _group(self, number: int) -> dict[str, int]:
        shown = json.loads(self.inside.ip("-j", "nexthop", "show", "id", str(number)))[0]
        if "group" not in shown:
            return {shown["dev"]: 1}
        weights = {member["id"]: member.get("weight", 1) for member in shown["group"]}
        devices = json.loads(self.inside.ip("-j", "nexthop", "show"))
        return {item["dev"]: weights[item["id"]] for item in devices if item.get("id") in weights}

    def spf(self) -> float | None:
        """Duration of the last SPF as reported, ms; fared: with weights, RIB and groups."""
        if self.kind == "fared":
            record = self.last_change()
            return None if record is None else record["computed"] * 1e3
        if self.kind == "bird":
            return None
        command = "show ip ospf" if self.protocol == "ospf" else "show isis summary"
        tool = ["vtysh", "--vty_socket", str(self.directory), "-c", command]
        return _duration(self.inside.run(tool).stdout)

    def diagnosis(self) -> str:
        """Return state of a daemon that fails, for the error message."""
        said = (self.directory / "log").read_text(errors="replace")[-3000:]
        if self.kind == "frr":
            shown = "show isis neighbor" if self.protocol == "isis" else "show ip ospf neighbor"
            tool = ["vtysh", "--vty_socket", str(self.directory)]
            for words in (shown, "show isis summary", "show isis database"):
                said += self.inside.run([*tool, "-c", words], check=False).stdout[:6000]
        return said

    def last_change(self) -> dict[str, Any] | None:
        """The last record of fared's ``show convergence``."""
        client = ControlClient(str(self.directory / "fared.sock"))
        changes = client.request("show", "convergence")["changes"]
        return changes[-1] if changes else None


def _duration(text: str) -> float | None:
    """Parse a duration as FRR prints it, in ms."""
    found = re.search(r"[Ll]ast SPF duration (?:is )?(?:(\d+)\.)?(\d+) ?(m|u)?s", text)
    if found:
        whole, part, unit = found.groups()
        if whole is not None:
            return float(f"{whole}.{part}") * (1e3 if unit is None else 1)
        return float(part) / (1e3 if unit == "u" else 1)
    found = re.search(r"last run duration *: (\d+) (usec|msec)", text)
    if found:
        return int(found[1]) / (1e3 if found[2] == "usec" else 1)
    return None


def _ospf_socket(ifindex: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 89)
    sock.setsockopt(socket.SOL_SOCKET, 62, ifindex)  # SO_BINDTOIFINDEX
    group = socket.inet_aton("224.0.0.5")
    sock.setsockopt(
        socket.IPPROTO_IP,
        socket.IP_ADD_MEMBERSHIP,
        struct.pack("=4s4si", group, bytes(4), ifindex),
    )
    sock.setsockopt(
        socket.IPPROTO_IP,
        socket.IP_MULTICAST_IF,
        struct.pack("=4s4si", bytes(4), bytes(4), ifindex),
    )
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    sock.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: allow fragmentation
    sock.setsockopt(socket.SOL_SOCKET, 33, _BUFFER)
    return sock


def _ospf_sender(sock: socket.socket) -> Send:
    def send(payload: bytes) -> None:
        with contextlib.suppress(BlockingIOError):  # as a full queue: it will be retransmitted
            sock.sendto(payload, ("224.0.0.5", 0))

    return send


def _isis_socket(name: str) -> socket.socket:
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK
    sock = socket.socket(socket.AF_PACKET, kind, 0)
    sock.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
    sock.setsockopt(socket.SOL_SOCKET, 33, _BUFFER)
    sock.bind((name, ETH_P_802_2))
    return sock


def _isis_sender(sock: socket.socket) -> Send:
    own = sock.getsockname()[4]

    def send(payload: bytes) -> None:
        with contextlib.suppress(BlockingIOError):
            sock.send(frame(own, ALL_ISS, payload))

    return send
