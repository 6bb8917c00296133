"""BGP sessions with FRR and BIRD: a thousand prefixes with path bandwidths both ways.

The edge is part of the test (``bgp_edge``); the daemon has none yet.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from fared.core.ids import ipv4_prefix, parse_dotted, parse_prefix
from fared.core.streams import Transport
from fared.extensions.lab.namespaces import Netns
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    ExtendedCommunities,
    Origin,
    attributes_of,
)
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.communities import LinkBandwidth
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.session.events import UpdateReceived
from fared.protocols.bgp.session.fsm import BgpState
from tests.bgp_session.net import Speaker, settings
from tests.peers.bgp_edge import Edge
from tests.waiting import loop_until, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers]

PREFIXES = 1000
OURS, FRR, BIRD = 65001, 65002, 65003
LINKS = {"frr": ("10.9.1.1", "10.9.1.2"), "bird": ("10.9.2.1", "10.9.2.2")}
NUMBERS = {"frr": FRR, "bird": BIRD}


def own_prefix(number):
    return ipv4_prefix(parse_dotted("172.16.0.0") + (number << 8), 24)


def own_bandwidth(number):
    """Other bytes for each prefix; FRR 8.4 shows no more than 34 Gbit/s (2^32 bytes/s) right."""
    return 1e6 + number * 4_123_457.0


def theirs(number, of):
    return f"10.{NUMBERS[of] - 65000 + 16 * (number >> 8)}.{number & 255}.0/24"


class Site:
    """A namespace for the test, one for FRR and one for BIRD, a link to each."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        prefix = f"bgp{os.getpid()}"
        self.spaces = {name: Netns.create(f"{prefix}{name}") for name in ("test", *LINKS)}
        self.processes: list[subprocess.Popen[bytes]] = []
        for name, (ours, peer) in LINKS.items():
            far = self.spaces[name]
            wire = f"type veth peer name eth0 netns {far.name}"
            lines = [f"link add {name} {wire}", f"addr add {ours}/30 dev {name}"]
            self.spaces["test"].batch("ip", [*lines, f"link set {name} up"])
            far.batch("ip", [f"addr add {peer}/30 dev eth0", "link set eth0 up"])
            (directory / name).mkdir()
            (directory / name).chmod(0o777)  # FRR's daemons are not root

    def start(self, name: str, program: str, *arguments: str) -> None:
        log = self.directory / name / f"{Path(program).name}.log"
        self.processes.append(self.spaces[name].start([program, *arguments], log))

    def start_frr(self) -> None:
        home = self.directory / "frr"
        networks = "\n".join(f"  network {theirs(n, 'frr')}" for n in range(PREFIXES))
        (home / "zebra.conf").write_text("hostname frr\n")
        (home / "bgpd.conf").write_text(f"""hostname frr
router bgp {FRR}
 bgp router-id 10.9.1.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.9.1.1 remote-as {OURS}
 neighbor 10.9.1.1 timers 3 9
 neighbor 10.9.1.1 timers connect 1
 address-family ipv4 unicast
  neighbor 10.9.1.1 route-map O out
{networks}
route-map O permit 10
 set extcommunity bandwidth 25000
""")
        for daemon in ("zebra", "bgpd"):
            files = ("-f", str(home / f"{daemon}.conf"), "-i", str(home / f"{daemon}.pid"))
            sockets = ("-z", str(home / "zserv"), "--vty_socket", str(home))
            self.start("frr", f"/usr/lib/frr/{daemon}", *files, *sockets, "-P", "0")
            if daemon == "zebra":
                wait_for((home / "zserv").exists, 30.0, "zebra")

    def start_bird(self) -> None:
        home = self.directory / "bird"
        routes = "\n".join(f"  route {theirs(n, 'bird')} blackhole;" for n in range(PREFIXES))
        (home / "bird.conf").write_text(f"""router id 10.9.2.2;
protocol device {{ }}
protocol static {{
  ipv4;
{routes}
}}
filter sent {{
  if source != RTS_STATIC then reject;
  bgp_ext_community.add((generic, 0x4fdeb, 0x503a43b7));
  accept;
}}
protocol bgp test {{
  local 10.9.2.2 as {BIRD};
  neighbor 10.9.2.1 as {OURS};
  connect delay time 1; connect retry time 1;
  ipv4 {{ import all; export filter sent; }};
}}
""")
        control = ("-s", str(home / "bird.ctl"), "-P", str(home / "bird.pid"))
        self.start("bird", "bird", "-f", "-c", str(home / "bird.conf"), *control)
        wait_for((home / "bird.ctl").exists, 30.0, "bird")

    def vtysh(self, command: str) -> dict:
        tool = ["vtysh", "--vty_socket", str(self.directory / "frr"), "-c", command]
        return json.loads(self.spaces["frr"].run(tool).stdout)

    def birdc(self, command: str) -> str:
        control = str(self.directory / "bird" / "bird.ctl")
        return self.spaces["bird"].run(["birdc", "-s", control, *command.split()]).stdout

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for space in self.spaces.values():
            space.delete()


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("bgp")
    for parent in (directory, directory.parent):
        parent.chmod(0o755)
    made = Site(directory)
    try:
        made.start_frr()
        made.start_bird()
        yield made
    finally:
        made.close()


def make_edge(site: Site, name: str) -> Edge:
    ours, peer = LINKS[name]
    base = settings(OURS, "10.9.1.1", remote_as=NUMBERS[name], families=(4,))
    return Edge(site.spaces["test"], Speaker(replace(base, transport=Transport(peer))), ours)


def announce(edge: Edge, local: str) -> None:
    """A prefix and a bandwidth in each message."""
    session, hop = edge.speaker.session, BgpNextHop(4, parse_dotted(local))
    for number in range(PREFIXES):
        raw = LinkBandwidth(OURS, own_bandwidth(number)).raw
        items = (Origin(0), AsPath(sequence(OURS)), ExtendedCommunities((raw,)))
        update = Update((), (RouteGroup(hop, (own_prefix(number),)),), attributes_of(items))
        for message in encode_message(update, session.coding):
            assert session.send(message)
    edge.perform(edge.speaker.outputs())


def received(edge: Edge) -> dict:
    """The bandwidth of each prefix that came; FRR returns those that it has of us."""
    return {
        prefix: one.update.attributes.link_bandwidth
        for one in edge.speaker.told
        if isinstance(one, UpdateReceived)
        for group in one.update.routes
        if OURS not in one.update.attributes.find(AsPath).path[0].numbers
        for prefix in group.prefixes
    }


@pytest.mark.rfc("RFC 10005 §2")
async def test_bandwidths_of_a_thousand_prefixes_pass_both_ways(site: Site) -> None:
    """FRR and BIRD connect to us while we connect to them; collisions are resolved."""
    edges = {name: make_edge(site, name) for name in LINKS}
    try:
        for edge in edges.values():
            edge.start()
        for name, edge in edges.items():
            await loop_until(
                lambda e=edge: e.speaker.state is BgpState.ESTABLISHED,
                30.0,
                lambda e=edge, n=name: f"a session with {n}: {e.speaker.session.reason}",
            )
            announce(edge, LINKS[name][0])
        sent = {"frr": 3124999936.0, "bird": 12499999744.0}
        for name, edge in edges.items():
            wanted = {parse_prefix(theirs(n, name)): sent[name] for n in range(PREFIXES)}
            await loop_until(lambda e=edge, w=wanted: received(e) == w, 30.0, f"routes of {name}")
        await loop_until(lambda: len(bird_bytes(site)) == PREFIXES, 30.0, "routes in BIRD")
        assert bird_bytes(site) == {
            str(own_prefix(n)): f"{number_of(own_bandwidth(n))}" for n in range(PREFIXES)
        }
        await loop_until(lambda: frr_count(site) == PREFIXES, 30.0, "routes in FRR")
        for number in (0, 1, 500, 999):
            assert frr_text(site, number).startswith(f"LB:{OURS}:{whole(number)} ")
        assert [edge.speaker.state for edge in edges.values()] == [BgpState.ESTABLISHED] * 2
    finally:
        for edge in edges.values():
            await edge.close()


def number_of(bandwidth: float) -> int:
    """The four bytes of a bandwidth as a number."""
    return int.from_bytes(struct.pack(">f", bandwidth), "big")


def whole(number: int) -> int:
    """The bandwidth that FRR computes with, bytes/s."""
    return int(struct.unpack(">f", struct.pack(">f", own_bandwidth(number)))[0])


def bird_bytes(site: Site) -> dict[str, str]:
    """The last four bytes of the community of each of our prefixes, as BIRD has them."""
    text = site.birdc("show route protocol test all")
    found = re.findall(
        r"^(172\.\S+) .*?ext_community: \(unknown 0x4, 65001, (\d+)\)",
        text,
        re.MULTILINE | re.DOTALL,
    )
    return dict(found)


def frr_count(site: Site) -> int:
    routes = site.vtysh("show bgp ipv4 unicast json")["routes"]
    return sum(any(path.get("path") == str(OURS) for path in paths) for paths in routes.values())


def frr_text(site: Site, number: int) -> str:
    document = site.vtysh(f"show bgp ipv4 unicast {own_prefix(number)} json")
    (path,) = document["paths"]
    return path["extendedCommunity"]["string"]
