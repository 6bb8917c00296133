"""Routers of several implementations in namespaces, on a bridge or on unnumbered links.

Topologies of the lab have only numbered links between two nodes; this module builds others.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import yaml

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kernel_view import Hop, KernelView
from fared.extensions.lab.kinds import kind_of
from fared.extensions.lab.kinds.base import Command
from fared.extensions.lab.namespaces import Netns
from fared.management.api.client import DaemonUnreachableError
from fared.router.protocols import ISIS, OSPF
from tests.peers.peers import fared
from tests.waiting import wait_for

SUBNET = "10.192.0"
PORT = "eth0"


@dataclass
class Member:
    """A router on the LAN; ``number`` is the last byte of its addresses and of its router id."""

    name: str
    kind: str
    number: int
    priority: int
    netns: Netns
    directory: Path
    network_type: str = "broadcast"
    ports: tuple[str, ...] = (PORT,)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    killed: bool = False
    isis: bool = False

    @property
    def router_id(self) -> str:
        """The loopback address."""
        return f"10.255.0.{self.number}"

    @property
    def address(self) -> str:
        """The address on the LAN."""
        return f"{SUBNET}.{self.number}"

    @property
    def plan(self) -> Any:
        """The attributes that functions for nodes of a lab use."""
        return SimpleNamespace(
            name=self.name,
            isis=self.isis,
            node=SimpleNamespace(
                kind=self.kind,
                startup_config=None,
                ina=False,
                protocol=ISIS if self.isis else OSPF,
            ),
        )

    def cli(self, *arguments: str) -> str:
        """Run the command-line tool of its implementation."""
        return self.netns.run(kind_of(self.kind).cli(self.directory, arguments)).stdout

    def files(self) -> dict[str, str]:
        """The configuration files of its implementation."""
        return _FILES[self.kind](self)

    def commands(self) -> list[Command]:
        """The programs of its implementation, in order."""
        return list(kind_of(self.kind).commands(self.plan, self.directory))

    def start(self) -> None:
        """Start the daemon, without waiting until it is ready."""
        self.killed = False
        for name, text in self.files().items():
            (self.directory / name).write_text(text)
        for command in self.commands():
            if command.ready is not None:
                command.ready.unlink(missing_ok=True)
            log = self.directory / f"{command.name}.log"
            self.processes.append(self.netns.start(command.arguments, log))
            ready = command.ready
            if ready is not None and self.kind == "frr":
                wait_for(ready.exists, 30.0, f"{command.name} of {self.name}")

    def kill(self) -> None:
        """Kill the daemon: it sends nothing more."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()
        self.killed = True

    def designated(self) -> tuple[str, str, str]:
        """The state of its interface, and the DR and BDR that it reports."""
        try:
            return _ASK[self.kind](self)
        except (DaemonUnreachableError, LabError):
            return ("starting", "", "")


class Lan:
    """A bridge in a namespace of its own and the routers on it."""

    member = Member

    def __init__(self, directory: Path, members: Mapping[str, tuple[str, int, int]]) -> None:
        prefix = f"lan{os.getpid()}"
        self.switch = Netns.create(f"{prefix}sw")
        self.members: dict[str, Member] = {}
        self.views: dict[str, KernelView] = {}
        self.switch.batch("ip", ["link add br0 type bridge mcast_snooping 0", "link set br0 up"])
        for name, (kind, number, priority) in members.items():
            netns = Netns.create(f"{prefix}{name}")
            (directory / name).mkdir()
            (directory / name).chmod(0o777)  # FRR's daemons are not root
            member = self.member(name, kind, number, priority, netns, directory / name)
            self.members[name] = member
            self._plug(member)
            self.views[name] = KernelView(netns)

    def _plug(self, member: Member) -> None:
        port = f"p{member.number}"
        self.switch.batch(
            "ip",
            [
                f"link add {port} type veth peer name {PORT} netns {member.netns.name}",
                f"link set {port} master br0 up",
            ],
        )
        for key in ("all", "default"):
            member.netns.sysctl(f"ipv4.conf.{key}.rp_filter", 0)
        member.netns.sysctl("ipv4.ip_forward", 1)
        member.netns.batch(
            "ip",
            [
                f"addr add {member.router_id}/32 dev lo",
                f"addr add {member.address}/24 dev {PORT}",
                f"link set {PORT} up",
            ],
        )

    @property
    def alive(self) -> list[Member]:
        """The members whose daemons have not been killed."""
        return [member for member in self.members.values() if not member.killed]

    @property
    def plan(self) -> Any:
        """The attributes that functions for a lab's fabric use: the running routers."""
        return SimpleNamespace(routers=[member.plan for member in self.alive])

    def node(self, name: str) -> Member:
        """One member."""
        return self.members[name]

    def hops(self, name: str, target: Member) -> tuple[Hop, ...]:
        """How a member's kernel reaches the loopback of another."""
        return self.views[name].hops(f"{target.router_id}/32")

    def close(self) -> None:
        """End all daemons and remove the namespaces."""
        for member in self.members.values():
            member.kill()
            self.views[member.name].close()
            member.netns.delete()
        self.switch.delete()

    @classmethod
    @contextmanager
    def in_directory(
        cls, tmp: pytest.TempPathFactory, members: Mapping[str, tuple[str, int, int]]
    ) -> Iterator[Self]:
        """Create the LAN, without daemons, in a directory that daemons of other users may enter."""
        directory = tmp.mktemp("lan")
        for parent in (directory, directory.parent):
            parent.chmod(0o755)
        made = cls(directory, members)
        try:
            yield made
        finally:
            made.close()


# Configurations


def _fared_files(member: Member) -> dict[str, str]:
    lan = {
        "network-type": member.network_type,
        "priority": member.priority,
        "hello-interval": 1,
        "dead-interval": 4,
        "retransmit-interval": 1,
    }
    interfaces = {"lo": {"passive": True}, **{port: dict(lan) for port in member.ports}}
    document = {
        "router-id": member.router_id,
        "hostname": member.name,
        "state-directory": str(member.directory),
        "ospf": {"areas": {"0.0.0.0": {"interfaces": interfaces}}},
        "api": {"socket": str(member.directory / "fared.sock"), "http": "127.0.0.1:9547"},
        "log": {"level": "info", "format": "json"},
    }
    return {"fared.yaml": yaml.safe_dump(document, sort_keys=False)}


def _frr_files(member: Member) -> dict[str, str]:
    ospfd = f"""hostname {member.name}
interface {PORT}
 ip ospf area 0.0.0.0
 ip ospf network {member.network_type}
 ip ospf priority {member.priority}
 ip ospf hello-interval 1
 ip ospf dead-interval 4
 ip ospf retransmit-interval 1
interface lo
 ip ospf area 0.0.0.0
 ip ospf passive
router ospf
 ospf router-id {member.router_id}
 timers throttle spf 0 50 500
 timers throttle lsa all 0
 timers lsa min-arrival 0
 capability opaque
"""
    zebra = f"hostname {member.name}\nno zebra nexthop kernel enable\n"
    return {"zebra.conf": zebra, "ospfd.conf": ospfd}


def _bird_files(member: Member) -> dict[str, str]:
    kind = "ptp" if member.network_type == "point-to-point" else "broadcast"
    text = f"""router id {member.router_id};
log stderr all;
protocol device {{ scan time 10; }}
protocol kernel {{ ipv4 {{ export where source != RTS_DEVICE; import none; }}; }}
protocol ospf v2 lan {{
  tick 1;
  ipv4 {{ import all; export none; }};
  area 0.0.0.0 {{
    interface "lo" {{ stub yes; }};
    interface "{PORT}" {{
      type {kind}; priority {member.priority}; hello 1; dead count 4; wait 4; retransmit 2;
    }};
  }};
}}
"""
    return {"bird.conf": text}


_FILES = {"fared": _fared_files, "frr": _frr_files, "bird": _bird_files}


# Queries


def _ask_fared(member: Member) -> tuple[str, str, str]:
    rows = fared(member).request("show interfaces")["interfaces"]  # type: ignore[arg-type]
    row = next(row for row in rows if row["interface"] == PORT)
    found = (row["designated_router"] or "", row["backup_designated_router"] or "")
    return (row["state"], *found)


def _ask_frr(member: Member) -> tuple[str, str, str]:
    document = yaml.safe_load(member.cli("show ip ospf interface json"))
    row = document["interfaces"][PORT]
    names = {"DR": "DR", "Backup": "Backup", "DROther": "DR Other"}
    state = names.get(row["state"], row["state"])
    return (state, row.get("drAddress", ""), row.get("bdrAddress", ""))


def _ask_bird(member: Member) -> tuple[str, str, str]:
    lines = [line.partition(":") for line in member.cli("show ospf interface").splitlines()]
    block = ""
    found: dict[str, str] = {}
    for key, _, value in lines:
        if key.startswith("Interface"):
            block = key
        elif PORT in block:
            found[key.strip()] = value.strip()
    names = {"DR": "DR", "Backup": "Backup", "DROther": "DR Other"}
    state = found.get("State", "")
    return (
        names.get(state, state),
        found.get("Designated router (IP)", ""),
        found.get("Backup designated router (IP)", ""),
    )


_ASK = {"fared": _ask_fared, "frr": _ask_frr, "bird": _ask_bird}
