"""IS-IS routers, fared and FRR, on one bridge, at both levels."""

from __future__ import annotations

from typing import Any

import yaml

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds.base import ipv6_sysctls
from fared.management.api.client import DaemonUnreachableError
from tests.peers.isis_peers import Database, databases, lsps, neighbors_announced
from tests.peers.lan import PORT, Lan, Member
from tests.waiting import seconds_until, wait_for

LEVELS = (1, 2)
OUTSIDE = 9
"""Members with this number or a higher one are in an area of their own."""


class IsisMember(Member):
    """A router on the LAN, level-1-2."""

    @property
    def loopback6(self) -> str:
        """The IPv6 loopback address."""
        return f"fd00::{self.number}"

    @property
    def area(self) -> str:
        """The area address."""
        return "49.0002" if self.number >= OUTSIDE else "49.0001"

    @property
    def system_id(self) -> str:
        """The system id."""
        return f"0102.5500.{self.number:04d}"

    def files(self) -> dict[str, str]:
        """The configuration files of its implementation."""
        return _frr(self) if self.kind == "frr" else _fared(self)


class IsisLan(Lan):
    """A bridge in a namespace of its own and the routers on it."""

    member = IsisMember
    members: dict[str, IsisMember]  # type: ignore[assignment]

    def _plug(self, member: Any) -> None:
        member.isis = True
        for key, value in ipv6_sysctls().items():
            member.netns.sysctl(key, value)
        super()._plug(member)
        member.netns.ip("addr", "add", f"{member.loopback6}/128", "dev", "lo")

    @property
    def living(self) -> list[IsisMember]:
        """The members whose daemons have not been killed."""
        return [member for member in self.members.values() if not member.killed]

    def of_level(self, level: int) -> list[IsisMember]:
        """The running members that can be adjacent in a level; in level 1, those of one area."""
        return [m for m in self.living if level == 2 or m.number < OUTSIDE]

    def await_designated(self, name: str, seconds: float = 40.0) -> float:
        """Wait until all agree on this DIS, in both levels, and have routes to it.

        Their LSPs list its pseudonode, whose LSP lists all running members; databases are equal;
        kernels have routes to all running members only. Returns the time at which this was so.
        """
        problems: list[str] = []

        def agreed() -> bool:
            try:
                problems[:] = [text for level in LEVELS for text in self._disagreement(name, level)]
            except (DaemonUnreachableError, LabError) as error:  # one is still starting
                problems[:] = [str(error)]
            return not problems

        passed = seconds_until(
            agreed, seconds, lambda: f"{name} designated: {problems}", pause=0.05
        )
        wait_for(self._routed, seconds, lambda: f"routes, but {self._shown()}", pause=0.05)
        return passed

    def _disagreement(self, name: str, level: int) -> list[str]:
        members = self.of_level(level)
        ours = next(member for member in members if member.kind == "fared")
        held = lsps(ours).get(level, {})  # type: ignore[arg-type]
        found = set()
        for member in members:
            lsp = held.get(f"{member.system_id}.00-00")
            found.add(frozenset(neighbors_announced(lsp)) if lsp else frozenset())
        systems = {f"{member.system_id}.00" for member in members}
        designated = self.members[name].system_id
        if len(members) == 1:  # a LAN of one member has no pseudonode
            return [] if found == {frozenset()} else [f"level {level}: LSPs lead to {found}"]
        if len(found) != 1 or [n[:14] for n in next(iter(found))] != [designated]:
            return [f"level {level}: LSPs lead to {found}"]
        (network,) = next(iter(found))
        lsp = held.get(f"{network}-00")
        if lsp is None or neighbors_announced(lsp) != systems:
            return [f"level {level}: {network} leads to {lsp and neighbors_announced(lsp)}"]
        copies = {member.name: self._database(member, level, network) for member in members}
        if len(set(copies.values())) != 1:
            return [f"level {level}: {copies}"]
        return []

    def _database(self, member: IsisMember, level: int, network: str) -> Database:
        """The LSPs of a member, without those of pseudonodes that no longer exist.

        FRR 8.4 never requests its own LSPs: after its restart, an LSP of a former pseudonode
        remains with the others until its lifetime ends.
        """
        names = {other.name: other.system_id for other in self.members.values()}
        found = databases(member, names).get(level, frozenset())  # type: ignore[arg-type]
        return frozenset(
            lsp for lsp in found if lsp.lsp_id[:17] in (lsp.lsp_id[:14] + ".00", network)
        )

    def _routed(self) -> bool:
        """Whether each kernel has direct routes to all running neighbors, none to stopped ones."""
        for member in self.living:
            view = self.views[member.name]
            for other in self.members.values():
                if other is member:
                    continue
                four = {(h.interface, h.gateway) for h in view.hops(f"{other.router_id}/32")}
                six = {h.interface for h in view.hops(f"{other.loopback6}/128")}
                if four != (set() if other.killed else {(PORT, other.address)}):
                    return False
                if six != (set() if other.killed else {PORT}):
                    return False
        return True

    def _shown(self) -> dict[str, str]:
        return {m.name: m.netns.ip("route") + m.netns.ip("-6", "route") for m in self.living}


def _fared(member: IsisMember) -> dict[str, str]:
    lan = {
        "network-type": member.network_type,
        "priority": member.priority,
        "hello-interval": 1,
        "hello-multiplier": 4,
    }
    document = {
        "router-id": member.router_id,
        "hostname": member.name,
        "state-directory": str(member.directory),
        "isis": {
            "net": f"{member.area}.{member.system_id}.00",
            "level": "level-1-2",
            "interfaces": {"lo": {"passive": True}, **{port: dict(lan) for port in member.ports}},
        },
        "api": {"socket": str(member.directory / "fared.sock"), "http": "127.0.0.1:9547"},
        "log": {"level": "info", "format": "json"},
    }
    return {"fared.yaml": yaml.safe_dump(document, sort_keys=False)}


def _frr(member: IsisMember) -> dict[str, str]:
    kind = "isis network point-to-point" if member.network_type == "point-to-point" else ""
    isisd = f"""hostname {member.name}
router isis lan
 lsp-gen-interval 1
 spf-interval 1
 spf-delay-ietf init-delay 0 short-delay 50 long-delay 500 holddown 1000 time-to-learn 500
 net {member.area}.{member.system_id}.00
 is-type level-1-2
 metric-style wide
interface {PORT}
 ip router isis lan
 ipv6 router isis lan
 isis circuit-type level-1-2
 {kind}
 isis priority {member.priority}
 isis hello-interval 1
 isis hello-multiplier 4
interface lo
 ip router isis lan
 ipv6 router isis lan
 isis passive
"""
    zebra = f"hostname {member.name}\nno zebra nexthop kernel enable\n"
    return {"zebra.conf": zebra, "isisd.conf": isisd}
