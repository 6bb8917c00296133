"""A host two hops away that forges OSPF packets of a neighbor: V must reject them.

In a row a - V - W - b the stranger is a host behind W, and all that it sends to V comes over the
links between V and W: one with addresses, one without, and a LAN. Traffic flows from a to b.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

import pytest

from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.namespaces import Netns
from fared.kernel.on_link import SAMPLE
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLinkType, RouterLsa
from fared.protocols.ospf.packet.body import encode_router_lsa
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.lsa import Lsa, LsType, encode_lsa
from fared.protocols.ospf.packet.packets import Hello, LsUpdate, Options, PacketBody
from tests.lab.stream import RATE, Stream
from tests.live.daemons import Json, Live
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

V_ID, W_ID, S_ID = (IPv4Address(f"10.255.7.{number}") for number in (1, 2, 66))
NUMBERED, UNNUMBERED, LAN = "n0", "u0", "l0"
V_LAN, W_LAN, THIRD_ON_LAN = "10.192.7.1", "10.192.7.2", "10.192.7.3"
A_NET, B_NET, S_NET = "10.7.1.0/24", "10.7.2.0/24", "10.7.3.0/24"
B, STRANGER = "10.7.2.2", "10.7.3.2"
FORGED_NET = "203.0.113.0/24"
TTLS = (64, 2, 255)
"""A host's usual one, one that arrives as a neighbor's, and the one that comes nearest to 255."""
ATTACK_SECONDS, ATTACKS_A_SECOND = 2.6, 5
_IP = struct.Struct("!BBHHHBBH4s4s")
_NEWER = 0x7000_0000


class Row:
    """The daemons V and W, and the hosts."""

    def __init__(self, directory: Path) -> None:
        name = f"row{os.getpid()}"
        self.v = Live(Netns.create(f"{name}v"), directory / "v", _config(V_ID, "v", 1))
        self.w = Live(Netns.create(f"{name}w"), directory / "w", _config(W_ID, "w", 0))
        self.hosts = {host: Netns.create(f"{name}{host}") for host in "abs"}
        v, w = self.v.netns, self.w.netns
        for link in (NUMBERED, UNNUMBERED, LAN):
            v.ip(*f"link add name {link} type veth peer name {link} netns {w.name}".split())
        for number, (netns, identity) in enumerate(((v, V_ID), (w, W_ID))):
            lines = [
                f"addr add {identity}/32 dev lo",
                f"addr add 10.129.7.{number}/31 dev {NUMBERED}",
            ]
            lines.append(f"addr add {(V_LAN, W_LAN)[number]}/24 dev {LAN}")
            lines += [f"link set {link} up" for link in (NUMBERED, UNNUMBERED, LAN)]
            netns.batch("ip", lines)
            for key in ("all", "default", NUMBERED, UNNUMBERED, LAN):
                netns.sysctl(f"ipv4.conf.{key}.rp_filter", 0)
        for host, router, network in (("a", v, A_NET), ("b", w, B_NET), ("s", w, S_NET)):
            base = network.removesuffix("0/24")
            router.ip(
                *f"link add name h{host} type veth peer name e".split(),
                *("netns", self.hosts[host].name),
            )
            router.batch("ip", [f"addr add {base}1/24 dev h{host}", f"link set h{host} up"])
            lines = [
                f"addr add {base}2/24 dev e",
                "link set e up",
                f"route add default via {base}1",
            ]
            self.hosts[host].batch("ip", lines)
            router.sysctl(f"ipv4.conf.h{host}.rp_filter", 0)
        self.view, self.back = KernelView(v), KernelView(w)

    def start(self) -> None:
        """Start both and wait until V is Full on every link and traffic goes the cheapest way."""
        for daemon in (self.v, self.w):
            daemon.start()
        for daemon in (self.v, self.w):
            wait_for(lambda d=daemon: d.full() == 3, 30, "three adjacencies")
        wait_for(lambda: self.way() == {(UNNUMBERED, str(W_ID))}, 20, "the way to b")
        wait_for(lambda: self.back.hops(f"{V_ID}/32"), 20, "the way to V")

    def way(self) -> set[tuple[str, str | None]]:
        """Interface and gateway of V's next hops toward b."""
        return {(hop.interface, hop.gateway) for hop in self.view.hops(B_NET)}

    def neighbors(self) -> list[tuple[str, str, str, int]]:
        """What V knows of its neighbors, and how often it has lost them."""
        rows = self.v.show("neighbors")["neighbors"]
        return [(row["interface"], row["address"], row["state"], row["flaps"]) for row in rows]

    def errors(self) -> Counter[str]:
        """What V has refused, by reason."""
        return Counter(self.v.counters().get("packet-errors", {}))

    def strange_lsas(self) -> list[Json]:
        """LSAs in V's database that the stranger made up."""
        lsas = [lsa for area in self.v.show("database")["areas"] for lsa in area["lsas"]]
        return [k for k in lsas if k["adv_router"] == str(S_ID) or k["seq"] & _NEWER == _NEWER]

    def demand_ttl(self, mode: bool | str) -> None:
        """Set and reload ``ttl-security`` of the LAN in both daemons."""
        for daemon in (self.v, self.w):
            area = daemon.config["ospf"]["areas"]["0.0.0.0"]
            area["interfaces"][LAN]["ttl-security"] = mode
            daemon.reload()

    def close(self) -> None:
        """End the daemons and remove the namespaces."""
        self.view.close()
        self.back.close()
        for daemon in (self.v, self.w):
            daemon.kill()
            daemon.netns.delete()
        for netns in self.hosts.values():
            netns.delete()


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Row]:
    made = Row(tmp_path_factory.mktemp("row"))
    try:
        made.start()
        yield made
    finally:
        made.close()


class Shot(NamedTuple):
    """One packet of the stranger's: IP header fields and OSPF payload."""

    source: str
    destination: str
    ttl: int
    payload: bytes


def hijack() -> Iterator[Shot]:
    """Hellos in W's name from the stranger's own address (number 7), to V's on the unnumbered
    link."""
    yield Shot(STRANGER, str(V_ID), 64, encode_packet(int(W_ID), 0, _hello(int(V_ID))))


def everything() -> Iterator[Shot]:
    """What would end adjacencies, lead next hops astray or fill the database (number 8)."""
    links = (int(V_ID), int(W_ID)), (int(W_ID), int(S_ID)), (int(S_ID), int(W_ID))
    forged = [_router_lsa(owner, toward) for owner, toward in links[1:]]
    for interface, destination in ((NUMBERED, "10.129.7.0"), (UNNUMBERED, str(V_ID)), (LAN, V_LAN)):
        mask = 0xFFFFFF00 if interface == LAN else 0
        bodies: list[PacketBody] = [_hello(mask=mask), _hello(int(V_ID), mask=mask)]
        bodies.append(LsUpdate(tuple(forged)))
        sources = [STRANGER, str(W_ID)]
        sources += {NUMBERED: ["10.129.7.1"], LAN: [W_LAN, THIRD_ON_LAN]}.get(interface, [])
        for body in bodies:
            for sender in (W_ID, S_ID):
                payload = encode_packet(int(sender), 0, body)
                for source in sources:
                    for ttl in TTLS:
                        yield Shot(source, destination, ttl, payload)
    yield Shot(STRANGER, "224.0.0.5", 64, encode_packet(int(W_ID), 0, _hello()))


def attacked(row: Row, shots: list[Shot]) -> tuple[int, int, Counter[str]]:
    """Fire all shots five times a second under traffic: packets sent, lost, refused by V."""
    before = row.errors()
    with Stream(row.hosts["a"], row.hosts["b"], B) as stream:
        wait_for(stream.flowing, 20, "traffic")
        with row.hosts["s"].socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
            due = time.monotonic()
            for _ in range(round(ATTACK_SECONDS * ATTACKS_A_SECOND)):
                for shot in shots:
                    raw.sendto(_datagram(shot), (shot.destination, 0))
                due += 1 / ATTACKS_A_SECOND
                time.sleep(max(0.0, due - time.monotonic()))
    sent, lost = stream.sent, stream.lost
    refused = row.errors() - before
    print(  # noqa: T201 - the figures of the run
        f"\n{lost} of {sent} packets lost, refused: {dict(refused)}", file=sys.stderr
    )
    return sent, lost, refused


def test_hellos_from_two_hops_away_do_not_take_the_traffic_of_an_unnumbered_link(row: Row):
    """Five a second in W's name: before they were refused V sent all traffic to the stranger."""
    before = row.neighbors()
    sent, lost, refused = attacked(row, list(hijack()))
    assert (lost, row.way()) == (0, {(UNNUMBERED, str(W_ID))})
    assert sent >= ATTACK_SECONDS * RATE / 2, "traffic flowed meanwhile"
    assert row.neighbors() == before
    assert refused.total() < ATTACKS_A_SECOND, "the kernel refuses them"


def test_packets_forged_two_hops_away_are_dropped_on_every_kind_of_link(row: Row):
    """Hellos and LSAs, own and forged sources, TTLs from 1 to 254 on arrival."""
    before = row.neighbors()
    assert {state for _, _, state, _ in before} == {"Full"}
    sent, lost, refused = attacked(row, list(everything()))
    assert (lost, row.way()) == (0, {(UNNUMBERED, str(W_ID))})
    assert sent >= ATTACK_SECONDS * RATE / 2, "traffic flowed meanwhile"
    assert row.neighbors() == before
    assert row.strange_lsas() == []
    assert FORGED_NET not in row.view.routes()
    # V's kernel refuses nearly all; V itself what a router of the LAN could have sent: W's kernel
    # forwards no source that is its own, but that of another router there, and TTL 1 arrives.
    rounds = round(ATTACK_SECONDS * ATTACKS_A_SECOND)
    assert rounds * 4 <= refused["destination"] < rounds * 5
    assert refused["unknown-neighbor"] == rounds * 2
    assert refused.total() < rounds * 7
    lines = [r for r in row.v.records() if r["event"] == "ospf-rejected"]
    assert 0 < len(lines) < 32
    assert row.v.complaints() == row.w.complaints() == []


def test_ttl_security_is_enabled_without_loss_and_drops_forged_packets_on_a_lan(row: Row):
    """First both send 255, then both demand it; a third router's forged source is then refused."""
    before = row.neighbors()
    with Stream(row.hosts["a"], row.hosts["b"], B) as stream:
        wait_for(stream.flowing, 20, "traffic")
        for mode in ("tx-only", True):
            row.demand_ttl(mode)
        refused = row.errors()
        payload = encode_packet(int(S_ID), 0, LsUpdate((_router_lsa(int(S_ID), int(W_ID)),)))
        with row.hosts["s"].socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
            datagram = _datagram(Shot(THIRD_ON_LAN, V_LAN, 2, payload))
            for _ in range(20 * SAMPLE):
                raw.sendto(datagram, (V_LAN, 0))
        wait_for(lambda: row.errors() - refused, 20, "one is refused for its TTL")
        assert (row.errors() - refused).keys() == {"ttl"}
        assert (row.errors() - refused)["ttl"] < SAMPLE, "the kernel refuses the others"
    assert (stream.sent > 0, stream.lost) == (True, 0)
    assert row.neighbors() == before
    assert "255 sent and required" in row.v.cli("show", "interfaces").stdout
    for mode in ("tx-only", False):
        row.demand_ttl(mode)
    assert row.neighbors() == before


def _datagram(shot: Shot) -> bytes:
    addresses = (IPv4Address(shot.source).packed, IPv4Address(shot.destination).packed)
    length = _IP.size + len(shot.payload)
    return _IP.pack(0x45, 0xC0, length, 0, 0, shot.ttl, 89, 0, *addresses) + shot.payload


def _hello(*heard: int, mask: int = 0) -> Hello:
    return Hello(
        network_mask=mask,
        hello_interval=1,
        options=int(Options.E),
        router_priority=1,
        router_dead_interval=4,
        designated_router=0,
        backup_designated_router=0,
        neighbors=heard,
    )


def _router_lsa(owner: int, toward: int) -> Lsa:
    """A router LSA with a link to ``toward``, and a network that is not there."""
    stub = IPv4Address(FORGED_NET.removesuffix("/24"))
    links = (
        RouterLink(RouterLinkType.POINT_TO_POINT, toward, 1, 1),
        RouterLink(RouterLinkType.STUB, int(stub), 0xFFFFFF00, 1),
    )
    return encode_lsa(
        ls_age=1,
        options=int(Options.E),
        ls_type=LsType.ROUTER,
        link_state_id=owner,
        advertising_router=owner,
        ls_sequence_number=_NEWER,
        body=encode_router_lsa(RouterLsa(0, links)),
    )


def _config(identity: IPv4Address, hostname: str, priority: int) -> Json:
    timers = {"hello-interval": 1, "dead-interval": 4}
    return {
        "router-id": str(identity),
        "hostname": hostname,
        "ospf": {
            "areas": {
                "0.0.0.0": {
                    "interfaces": {
                        "lo": {"passive": True},
                        **{f"h{host}": {"passive": True} for host in "abs"},
                        NUMBERED: timers,
                        UNNUMBERED: {**timers, "cost": 5},
                        LAN: {**timers, "network-type": "broadcast", "priority": priority},
                    }
                }
            }
        },
    }
