"""BGP sessions with FRR and BIRD: a thousand prefixes with path bandwidths both ways.

The edge is that of the daemon (``bgp_edge``), under the session alone.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from fared.core.ids import ipv4_prefix, parse_dotted, parse_prefix
from fared.core.streams import Transport
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
from tests.peers.bgp_site import BIRD, FRR, LINKS, NUMBERS, OURS, BgpSite
from tests.waiting import loop_until

pytestmark = [pytest.mark.netns, pytest.mark.peers]

PREFIXES = 1000


def own_prefix(number):
    return ipv4_prefix(parse_dotted("172.16.0.0") + (number << 8), 24)


def own_bandwidth(number):
    """Other bytes for each prefix; FRR 8.4 shows no more than 34 Gbit/s (2^32 bytes/s) right."""
    return 1e6 + number * 4_123_457.0


def theirs(number, of):
    return f"10.{NUMBERS[of] - 65000 + 16 * (number >> 8)}.{number & 255}.0/24"


def frr() -> str:
    networks = "\n".join(f"  network {theirs(n, 'frr')}" for n in range(PREFIXES))
    return f"""router bgp {FRR}
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
"""


def bird() -> str:
    routes = "\n".join(f"  route {theirs(n, 'bird')} blackhole;" for n in range(PREFIXES))
    return f"""protocol static {{
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
"""


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BgpSite]:
    made = BgpSite(tmp_path_factory.mktemp("bgp"))
    try:
        made.start_frr(frr())
        made.start_bird(bird())
        yield made
    finally:
        made.close()


def make_edge(site: BgpSite, name: str) -> Edge:
    ours, peer = LINKS[name]
    base = settings(OURS, "10.9.1.1", remote_as=NUMBERS[name], families=(4,))
    transport = Transport(peer, local=ours)
    return Edge(site.spaces["test"], Speaker(replace(base, transport=transport)))


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
async def test_bandwidths_of_a_thousand_prefixes_pass_both_ways(site: BgpSite) -> None:
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


def bird_bytes(site: BgpSite) -> dict[str, str]:
    """The last four bytes of the community of each of our prefixes, as BIRD has them."""
    text = site.birdc("show route protocol test all")
    found = re.findall(
        r"^(172\.\S+) .*?ext_community: \(unknown 0x4, 65001, (\d+)\)",
        text,
        re.MULTILINE | re.DOTALL,
    )
    return dict(found)


def frr_count(site: BgpSite) -> int:
    routes = site.vtysh("show bgp ipv4 unicast json")["routes"]
    return sum(any(path.get("path") == str(OURS) for path in paths) for paths in routes.values())


def frr_text(site: BgpSite, number: int) -> str:
    document = site.vtysh(f"show bgp ipv4 unicast {own_prefix(number)} json")
    (path,) = document["paths"]
    return path["extendedCommunity"]["string"]
