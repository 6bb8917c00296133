"""The faults of ``chaos``: each breaks something in a running fabric, and ends.

Everything about a fault is drawn from a seeded source before it begins, never from the state of
the fabric: a seed gives the same faults in every run.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import yaml

from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.processes import send_signal
from fared.kernel import socketfilter as bpf

RATES = (25e6 / 8, 50e6 / 8, 100e6 / 8)
FLAP = 0.05
"""Seconds between two changes: ten times down and up a second takes twice that."""
FOREIGN_ROUTES, HOPS = 8_000, 512
"""Added and removed while the daemon stands still: more notifications than its socket holds."""
OVERRUN = 1.5
REPLAY, REPLAYED = "replay", 500
_ETH_P_IP, _ETH_P_802_2 = 0x0800, 4
_IP_PROTOCOL, _OSPF = 14 + 9, 89
_PACKET_OUTGOING = 4
_RTM_NEWROUTE, _RTM_DELROUTE, _CREATE = 24, 25, 0x401
_MAIN, _PROTOCOL, _LINK, _UNICAST = 254, 99, 253, 1
_RTA_DST, _RTA_MULTIPATH = 1, 9
_RTNH = struct.Struct("=HBBi")
_FIRST = 0xAC10_0000  # 172.16.0.0
_HOG = "while True: pass"


def _nothing() -> None:
    """The end of a fault that is over when it has begun."""


@dataclass(frozen=True)
class Fault:
    """A fault: ``begin``, ``hold`` seconds, ``end``. ``down``: ports without link in between.

    What holds between ``begin`` and ``end`` is examined too if there are such ports.
    """

    kind: str
    target: str
    begin: Callable[[], object]
    end: Callable[[], object] = _nothing
    hold: float = 0.0
    down: tuple[PortAddresses, ...] = ()


class Faults:
    """Draws the faults of a fabric; a context that closes its sockets."""

    def __init__(self, fabric: Fabric, seed: int) -> None:
        self.fabric = fabric
        self.draw = random.Random(seed)
        self.routers = fabric.plan.routers
        self.ours = [plan for plan in self.routers if plan.node.kind == "fared"]
        self.recorder = Recorder(fabric)
        self._hogs: list[subprocess.Popen[bytes]] = []
        # nobody takes a packet of another time for one of a TCP connection
        self.floods = [plan for plan in self.routers if plan.system is None]
        self.kinds: dict[str, Callable[[], Fault]] = {
            "link down": self._link,
            "link flaps": self._flap,
            "kill -9": self._kill,
            "SIGSTOP": self._freeze,
            "restart": self._restart,
            "graceful restart": self._graceful,
            "reload": self._reload,
            "shaper": self._shape,
            "foreign delete": self._foreign,
            "sysctl": self._sysctl,
            REPLAY: self._replay,
            "CPU hog": self._hog,
            "netlink overrun": self._overrun,
        }
        if not self.floods:
            del self.kinds[REPLAY]

    def __iter__(self) -> Iterator[Fault]:
        """Yield faults for ever: every kind once in each round, in an order of its own."""
        while True:
            kinds = list(self.kinds)
            self.draw.shuffle(kinds)
            for kind in kinds:
                yield self.kinds[kind]()

    def close(self) -> None:
        """Close sockets, and end what a fault that was interrupted has started."""
        self.recorder.close()
        self._stop_hogs()

    def _router(self, *, ours: bool = False) -> NodePlan:
        return self.draw.choice(self.ours if ours else self.routers)

    def _port(self, plan: NodePlan) -> PortAddresses:
        return self.draw.choice(plan.fabric_ports)

    def _node(self, plan: NodePlan) -> RunningNode:
        return self.fabric.node(plan.name)

    def _far_prefix(self, plan: NodePlan) -> str:
        """A subnet of hosts at another leaf of the same plane."""
        protocol = plan.node.protocol
        leaves = [leaf for leaf in self.fabric.plan.leaves if leaf.node.protocol == protocol]
        return str(self.draw.choice([leaf for leaf in leaves if leaf != plan]).host_prefixes[0])

    # -- links

    def _link(self) -> Fault:
        port = self._port(self._router())
        ends = (port.node, port.peer)
        return Fault(
            "link down",
            f"{port.node} {port.name}",
            lambda: self.fabric.fail(*ends),
            lambda: self.fabric.heal(*ends),
            down=(port,),
        )

    def _flap(self) -> Fault:
        port = self._port(self._router())
        times = self.draw.randint(10, 30)
        netns = self.fabric.node(port.node).netns

        def flap() -> None:
            begun = time.monotonic()
            for number in range(2 * times):
                netns.ip("link", "set", port.name, "up" if number % 2 else "down")
                time.sleep(max(0.0, begun + (number + 1) * FLAP - time.monotonic()))

        target = f"{port.node} {port.name}, {times} times"
        return Fault("link flaps", target, flap, lambda: self.fabric.heal(port.node, port.peer))

    def _shape(self) -> Fault:
        """Only ports of fared: FRR advertises what is configured, BIRD nothing."""
        port = self._port(self._router(ours=True))
        rate = self.draw.choice(RATES)
        target = f"{port.node} {port.name} {rate * 8 / 1e6:g}M"
        return Fault("shaper", target, lambda: self.fabric.shape(port.node, port.peer, rate))

    # -- processes

    def _kill(self) -> Fault:
        plan = self._router()
        return Fault(
            "kill -9",
            f"{plan.name} ({plan.node.kind})",
            lambda: self.fabric.stop_node(plan.name, kill=True),
            lambda: self.fabric.start_node(plan.name),
            hold=self.draw.choice((0.0, 1.0, 6.0)),
        )

    def _restart(self) -> Fault:
        plan = self._router()
        return Fault(
            "restart",
            f"{plan.name} ({plan.node.kind})",
            lambda: self.fabric.stop_node(plan.name),
            lambda: self.fabric.start_node(plan.name),
            hold=self.draw.choice((0.0, 2.0)),
        )

    def _freeze(self) -> Fault:
        plan = self._router()
        node = self._node(plan)

        def tell(number: signal.Signals) -> None:
            for process in node.processes:
                send_signal(process, number)

        hold = self.draw.choice((0.5, 2.0, 6.0))
        return Fault(
            "SIGSTOP",
            f"{plan.name} ({plan.node.kind}) {hold:g} s",
            lambda: tell(signal.SIGSTOP),
            lambda: tell(signal.SIGCONT),
            hold=hold,
        )

    def _graceful(self) -> Fault:
        """Not in IS-IS: a spine of its plane is FRR, which does not help there."""
        able = [plan for plan in self.ours if not plan.isis]
        plan = self.draw.choice(able or self.ours)
        cli = self._node(plan).cli
        return Fault("graceful restart", plan.name, lambda: cli("restart", "--graceful"))

    def _reload(self) -> Fault:
        plan = self._router(ours=True)
        kinds = ("equal", "broken", "resilient", "timers")
        kind = self.draw.choice(kinds[:-1] if plan.system else kinds)
        node = self._node(plan)
        file = node.directory / "fared.yaml"
        protocol = "isis" if plan.isis else "ospf"

        def mend() -> None:
            if kind == "broken":  # until then, daemons tell that another configuration runs
                node.cli("config", "reload")

        def reload() -> None:
            text = file.read_text("utf-8")
            config = yaml.safe_load(text)
            match kind:
                case "equal":
                    for _ in range(5):
                        node.cli("config", "reload")
                case "broken":
                    file.write_text(f"{text}\nospf: [", "utf-8")
                    node.netns.run(node.kind.cli(node.directory, ["config", "reload"]), check=False)
                    file.write_text(text, "utf-8")
                case "resilient":
                    now = config.get("fib", {}).get("group-type", "hash-threshold")
                    other = {"hash-threshold": "resilient", "resilient": "hash-threshold"}[now]
                    config["fib"] = {"group-type": other}
                case _:
                    delay = config[protocol].get("spf", {}).get("initial-delay", 0)
                    config[protocol]["spf"] = {"initial-delay": 0 if delay else "10ms"}
            if kind in ("resilient", "timers"):
                file.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
                node.cli("config", "reload")

        return Fault("reload", f"{plan.name} {kind}", reload, mend)

    # -- what others change in the kernel

    def _foreign(self) -> Fault:
        plan = self._router(ours=True)
        prefix = self._far_prefix(plan)
        netns = self._node(plan).netns

        def groups() -> None:
            found = json.loads(netns.ip("-j", "nexthop", "show", "protocol", "201") or "[]")
            lines = [f"nexthop del id {row['id']}" for row in found if "group" in row]
            netns.batch("ip", lines)

        changes: dict[str, Callable[[], object]] = {
            "one route": lambda: netns.ip("route", "del", prefix),
            "all routes": lambda: netns.ip("route", "flush", "proto", "201"),
            "all groups": groups,
            "all next hops": lambda: netns.ip("nexthop", "flush", "protocol", "201"),
            "a blackhole": lambda: netns.ip(
                "route", "replace", "blackhole", prefix, "metric", "20"
            ),
            "neighbor entries": lambda: netns.ip("neigh", "flush", "all"),
        }
        what = self.draw.choice(list(changes))
        return Fault("foreign delete", f"{plan.name} {what}", changes[what])

    def _sysctl(self) -> Fault:
        plan = self._router(ours=True)
        wrong = [("ipv4.ip_forward", 0), ("ipv4.fib_multipath_hash_policy", 0)]
        wrong += [("ipv4.nexthop_compat_mode", 1)]
        wrong += [("ipv6.conf.all.forwarding", 0)] if plan.node.ipv6 else []
        key, value = self.draw.choice(wrong)
        netns = self._node(plan).netns
        target = f"{plan.name} {key}={value}"
        return Fault("sysctl", target, lambda: netns.sysctl(key, value))

    def _overrun(self) -> Fault:
        """A daemon that stands still while routes change loses the kernel's notifications."""
        plan = self._router(ours=True)
        prefix = self._far_prefix(plan)
        node, index = self._node(plan), plan.ports[0].index

        def overrun() -> None:
            for process in node.processes:
                send_signal(process, signal.SIGSTOP)
            try:
                written = add_routes(node.netns, index)
                node.netns.ip("route", "del", prefix)
                delete_routes(node.netns, written)
            finally:
                for process in node.processes:
                    send_signal(process, signal.SIGCONT)

        return Fault("netlink overrun", plan.name, overrun)

    # -- the rest

    def _replay(self) -> Fault:
        """Send what was heard on one link again: there, or on another one.

        Not to FRR's isisd: after a hello of another system it ignores its neighbor for ever ("hello
        source and adjacency do not match", FRR 8.4).
        """
        heard = self._port(self.draw.choice(self.floods))
        sent = heard
        if self.draw.random() < 0.5:
            ports = [port for plan in self.floods for port in plan.fabric_ports]
            same = [port for port in ports if self._isis(port) == self._isis(heard)]
            frr = {plan.name for plan in self.routers if plan.isis and plan.node.kind == "frr"}
            sent = self.draw.choice([port for port in same if port.peer not in frr])

        def replay() -> None:
            frames = self.recorder.heard(heard)
            with self.fabric.node(sent.node).netns.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
                raw.bind((sent.name, 0))
                for frame in itertools.islice(itertools.cycle(frames), REPLAYED):
                    with contextlib.suppress(OSError):
                        raw.send(frame)
                    time.sleep(0.001)

        where = "there" if sent == heard else f"on {sent.node} {sent.name}"
        return Fault(REPLAY, f"{heard.node} {heard.name} {where}", replay)

    def _isis(self, port: PortAddresses) -> bool:
        return self.fabric.plan.node(port.node).isis

    def _hog(self) -> Fault:
        count, hold = self.draw.choice((2, 4)), self.draw.choice((2.0, 5.0))

        def begin() -> None:
            command = [sys.executable, "-S", "-c", _HOG]
            self._hogs += [subprocess.Popen(command) for _ in range(count)]

        return Fault("CPU hog", f"{count} for {hold:g} s", begin, self._stop_hogs, hold=hold)

    def _stop_hogs(self) -> None:
        for hog in self._hogs:
            hog.kill()
            hog.wait()
        self._hogs.clear()


def add_routes(netns: Netns, ifindex: int) -> int:
    """Add routes of another program, of ``HOPS`` next hops each; return how many.

    Few and large: every message waits for the lock of the kernel's netlink. At most for
    ``OVERRUN`` seconds: the neighbors of a daemon that stands still for longer leave it.
    """
    multipath = struct.pack("=HH", 4 + HOPS * _RTNH.size, _RTA_MULTIPATH)
    multipath += HOPS * _RTNH.pack(_RTNH.size, 0, 0, ifindex)
    until = time.monotonic() + OVERRUN
    with netns.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        for number in range(FOREIGN_ROUTES):
            if time.monotonic() > until:
                return number
            kernel.send(_message(_RTM_NEWROUTE, number, multipath))
    return FOREIGN_ROUTES


def delete_routes(netns: Netns, count: int) -> None:
    """Delete the first of these routes."""
    with netns.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        for number in range(count):
            kernel.send(_message(_RTM_DELROUTE, number))


def _message(kind: int, number: int, more: bytes = b"") -> bytes:
    body = struct.pack("=BBBBBBBBI", 2, 32, 0, 0, _MAIN, _PROTOCOL, _LINK, _UNICAST, 0)
    body += struct.pack("=HH4s", 8, _RTA_DST, (_FIRST + number).to_bytes(4, "big")) + more
    return struct.pack("=IHHII", 16 + len(body), kind, _CREATE, 0, 0) + body


class Recorder:
    """Keeps the last frames of routing protocols that left each port, hellos and all others."""

    def __init__(self, fabric: Fabric) -> None:
        self._ears: dict[tuple[str, str], socket.socket] = {}
        self._frames: dict[tuple[str, str], deque[bytes]] = {}
        for plan in fabric.plan.routers:
            for port in plan.fabric_ports:
                kind = _ETH_P_802_2 if plan.isis else _ETH_P_IP
                far = fabric.node(port.peer).netns
                ear = far.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(kind))
                ear.bind((port.peer_port, kind))
                ear.setblocking(False)
                if not plan.isis:
                    bpf.attach_filter(
                        ear,
                        [
                            (bpf.LOAD_BYTE, 0, 0, _IP_PROTOCOL),
                            (bpf.EQUAL, 0, 1, _OSPF),
                            (bpf.RETURN, 0, 0, bpf.ALL),
                            (bpf.RETURN, 0, 0, 0),
                        ],
                    )
                self._ears[port.node, port.name] = ear
                self._frames[port.node, port.name] = deque(maxlen=REPLAYED)

    def listen(self) -> None:
        """Read what has arrived since the last call."""
        for key, ear in self._ears.items():
            while (received := _receive(ear)) is not None:
                if received[1] != _PACKET_OUTGOING:
                    self._frames[key].append(received[0])

    def heard(self, port: PortAddresses) -> list[bytes]:
        """The frames that left a port, oldest first."""
        self.listen()
        return list(self._frames[port.node, port.name])

    def close(self) -> None:
        """Close the sockets."""
        for ear in self._ears.values():
            ear.close()


def _receive(ear: socket.socket) -> tuple[bytes, int] | None:
    """The next frame and its packet type; None: there is none now."""
    while True:
        try:
            frame, address = ear.recvfrom(65536)
        except BlockingIOError:
            return None
        except OSError:  # told once: the interface went down
            continue
        return frame, address[2]
