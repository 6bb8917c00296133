"""Links with borrowed, host and peer addresses between fared and FRR, and fared and BIRD."""

import os
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.kinds.base import ipv6_sysctls
from fared.extensions.lab.namespaces import Netns
from tests.peers.isis_lan import IsisMember
from tests.peers.lan import PORT, Lan, Member
from tests.peers.peers import await_equal_databases, fared, tell
from tests.peers.recordings import complaints, rejected
from tests.peers.redistribution import redistribute
from tests.waiting import seconds_until, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers]

PEERS = {"R": "frr", "B": "bird", "S": "frr", "C": "bird", "T": "frr", "D": "bird"}
STATICS = [f"198.18.{n}.0/24" for n in range(256)] + [f"198.19.{n}.0/24" for n in range(146)]
_LARGER_MTU = "MTU mismatch|MTU .* is larger than"
"""What BIRD and FRR log where we tell them our new MTU, in duplicates that they discard."""
SECURE = {name for name, kind in PEERS.items() if kind == "bird"}
ADDRESSES = {
    "S": (("10.7.0.1/32",), "10.7.0.2/32"),
    "C": (("10.7.1.1 peer 10.7.1.2",), "10.7.1.2 peer 10.7.1.1"),
    "T": (("10.99.0.1/24", "10.4.0.1/24"), "10.4.0.2/24"),
    "D": (("10.99.1.1/24", "10.4.1.1/24"), "10.4.1.2/24"),
}
"""The addresses of the middle and that of the peer on links that have some.

The last one of the middle is in the peer's subnet, or its far end.
"""


class Secured(Member):
    """A router that speaks with TTL security (RFC 5082) on the link between fared and BIRD."""

    def files(self) -> dict[str, str]:
        """The configuration of its make; FRR knows no TTL security."""
        found = super().files()
        if self.kind == "bird":
            found["bird.conf"] = found["bird.conf"].replace(
                "type ptp;", "type ptp; ttl security yes;"
            )
        if self.kind == "fared":
            document = yaml.safe_load(found["fared.yaml"])
            ports = document["ospf"]["areas"]["0.0.0.0"]["interfaces"]
            for port in SECURE:
                ports[port]["ttl-security"] = True
            found["fared.yaml"] = yaml.safe_dump(document, sort_keys=False)
        return found


class Star(Lan):
    """F in the middle, a link to each peer; some borrow their loopback's address, F has none."""

    member = Secured
    peers: Mapping[str, str] = PEERS
    borrowing: Collection[str] = ("R", "B")
    addresses: Mapping[str, tuple[Sequence[str], str]] = ADDRESSES

    def __init__(self, directory: Path) -> None:
        self.members, self.views = {}, {}
        prefix = f"star{os.getpid()}"
        for number, (name, kind) in enumerate({"F": "fared", **self.peers}.items(), start=1):
            (directory / name).mkdir()
            (directory / name).chmod(0o777)  # FRR's daemons are not root
            ports = tuple(self.peers) if kind == "fared" else (PORT,)
            netns = Netns.create(f"{prefix}{name}")
            member = self.member(
                name, kind, number, 1, netns, directory / name, "point-to-point", ports
            )
            self.members[name] = member
            self._prepare(member)
            self.views[name] = KernelView(netns)
            for key in ("all", "default"):
                netns.sysctl(f"ipv4.conf.{key}.rp_filter", 0)
            netns.sysctl("ipv4.ip_forward", 1)
            netns.ip("addr", "add", f"{member.router_id}/32", "dev", "lo")
        center = self.members["F"].netns
        for name in self.peers:
            peer = self.members[name]
            wire = f"type veth peer name {PORT} netns {peer.netns.name}"
            center.batch("ip", [f"link add {name} {wire}", f"link set {name} up"])
            if name in self.borrowing:
                peer.netns.ip("addr", "add", f"{peer.router_id}/32", "dev", PORT)
            ours, theirs = self.addresses.get(name, ((), ""))
            for address in ours:
                center.ip("addr", "add", *address.split(), "dev", name)
            if theirs:
                peer.netns.ip("addr", "add", *theirs.split(), "dev", PORT)
            peer.netns.ip("link", "set", PORT, "up")

    def _prepare(self, member: Member) -> None:
        """What else a member's namespace needs before there are links in it."""

    def close(self) -> None:
        """End everything and leave nothing behind."""
        for member in self.members.values():
            member.kill()
            self.views[member.name].close()
            member.netns.delete()


class IsisStar(Star):
    """R borrows its loopback's address for its link, S has none there: both are FRR."""

    member = IsisMember
    members: dict[str, IsisMember]  # type: ignore[assignment]
    peers = MappingProxyType({"R": "frr", "S": "frr"})
    addresses = MappingProxyType({})
    borrowing = ("R",)

    def _prepare(self, member: Any) -> None:
        member.isis = True
        for key, value in ipv6_sysctls().items():
            member.netns.sysctl(key, value)
        member.netns.ip("addr", "add", f"{member.loopback6}/128", "dev", "lo")


@pytest.fixture
def star(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("star")
    for parent in (directory, directory.parent):
        parent.chmod(0o755)
    made = request.param(directory)
    try:
        yield made
    finally:
        made.close()


def _plain(address: str) -> str:
    """An address without its prefix length, or far end."""
    return address.split(maxsplit=1)[0].partition("/")[0]


@pytest.mark.parametrize("star", [Star], indirect=True)
def test_fared_frr_and_bird_are_adjacent_on_links_without_a_common_subnet(star: Any):
    """Adjacencies, equal databases, next hops from everybody to everybody, onlink if needed."""
    for member in star.members.values():
        member.start()
    ids = {name: star.node(name).router_id for name in star.members}
    center = {name: ids[name] for name in PEERS}
    center.update((name, _plain(theirs)) for name, (_, theirs) in ADDRESSES.items())
    across = dict.fromkeys(PEERS, ids["F"])
    across.update((name, _plain(ours[-1])) for name, (ours, _) in ADDRESSES.items())

    def routed() -> bool:
        from_center = {
            name: {(h.interface, h.gateway) for h in star.hops("F", star.node(name))}
            for name in PEERS
        }
        from_peers = {
            (one, other): {h.gateway for h in star.hops(one, star.node(other))}
            for one, other in permutations(PEERS, 2)
        }
        return from_center == {name: {(name, far)} for name, far in center.items()} and all(
            hops == {across[one]} for (one, _), hops in from_peers.items()
        )

    def shown() -> dict[str, str]:
        return {name: star.node(name).netns.ip("route") for name in star.members}

    seconds = seconds_until(routed, 20.0, lambda: f"routes over unnumbered links: {shown()}")
    tell(f"routes over unnumbered links after {seconds:.2f} s")
    await_equal_databases(star)
    rows = fared(star.node("F")).request("show neighbors")["neighbors"]
    assert {row["address"]: row["state"] for row in rows} == dict.fromkeys(center.values(), "Full")
    assert "ttl security yes" in (star.node("B").directory / "bird.conf").read_text()
    rows = fared(star.node("F")).request("show interfaces")["interfaces"]
    assert {r["interface"] for r in rows if r["ttl_security"] == "on"} == SECURE
    _outlive_a_raised_mtu(star)
    assert complaints(star, _LARGER_MTU) == {}
    assert rejected(star) == {}


def _outlive_a_raised_mtu(star: Any) -> None:
    """One end of both links is raised to 9000: all LSAs arrive, `validate` tells the difference."""
    center = star.node("F")
    redistribute(center, {"static": {}})
    for name in PEERS:
        center.netns.ip("link", "set", name, "mtu", "9000")
    center.netns.batch("ip", [f"route add unreachable {prefix} proto static" for prefix in STATICS])
    known = {}

    def everywhere() -> bool:
        for name in PEERS:
            table = star.node(name).netns.ip("route")
            known[name] = sum(
                line.startswith(("198.18.", "198.19.")) for line in table.splitlines()
            )
        return set(known.values()) == {len(STATICS)}

    seconds = seconds_until(everywhere, 20.0, lambda: f"of {len(STATICS)} statics: {known}")
    tell(f"{len(STATICS)} statics over a link raised at one end after {seconds:.2f} s")
    document = fared(center).request("show neighbors")
    found = {row["interface"]: (row["state"], row["problem"]) for row in document["neighbors"]}
    assert {state for state, _ in found.values()} == {"Full"}
    assert {problem["cause"] for _, problem in found.values()} == {"mtu-mismatch"}
    assert not fared(center).request("validate")["ok"]


@pytest.mark.parametrize("star", [IsisStar], indirect=True)
def test_over_isis_frr_gets_ipv4_where_it_announces_an_ipv4_address(star: Any):
    """fared has none on its links: its hellos carry that of its loopback, which FRR routes to.

    Toward S, which announces no IPv4 address and learns no IPv4 route, fared installs none either.
    """
    for member in star.members.values():
        member.start()
    routers = star.members

    def reaches(at: str, to: str) -> tuple[bool, bool]:
        """Whether a kernel has routes to another's loopbacks: IPv4, IPv6."""
        far = routers[to]
        prefixes = (f"{far.router_id}/32", f"{far.loopback6}/128")
        ipv4, ipv6 = (bool(star.views[at].hops(prefix)) for prefix in prefixes)
        return ipv4, ipv6

    def matrix() -> dict[str, tuple[bool, bool]]:
        return {f"{at}-{to}": reaches(at, to) for at, to in ("FR", "RF", "FS", "SF", "SR")}

    both, only6 = (True, True), (False, True)
    wanted = {"F-R": both, "R-F": both, "F-S": only6, "S-F": only6, "S-R": only6}
    wait_for(lambda: matrix() == wanted, 20.0, lambda: f"routes: {matrix()}")
    for at, to in ("RF", "FR"):
        with (
            routers[to].netns.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
            routers[at].netns.socket(socket.AF_INET, socket.SOCK_DGRAM) as source,
        ):
            sink.bind((routers[to].router_id, 4096))
            sink.settimeout(2.0)
            source.bind((routers[at].router_id, 0))
            source.sendto(b"x", (routers[to].router_id, 4096))
            assert sink.recv(16) == b"x"
    assert complaints(star) == {}
    assert rejected(star) == {}
