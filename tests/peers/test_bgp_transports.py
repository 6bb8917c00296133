"""BGP sessions with FRR and BIRD over link-local addresses, with keys and TTL security.

FRR knows no address of its neighbor: each hears the router advertisements of the other.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from fared.core.streams import FROM_LINK, AdvertiseRouter, StreamKey, Transport
from fared.protocols.bgp.session.fsm import BgpState
from tests.bgp_session.net import Speaker, settings
from tests.peers.bgp_edge import Edge
from tests.peers.bgp_site import BIRD, FRR, LINK_LOCAL, NUMBERS, OURS, BgpSite
from tests.waiting import loop_until

pytestmark = [pytest.mark.netns, pytest.mark.peers]

KEY = "a secret of both"
FRR_TEXT = f"""router bgp {FRR}
 bgp router-id 10.9.1.2
 no bgp ebgp-requires-policy
 neighbor eth0 interface remote-as external
 neighbor eth0 password {KEY.replace(" ", "-")}
 neighbor eth0 timers 3 9
 neighbor eth0 timers connect 1
"""


def bird_text(password: str, ttl: str) -> str:
    ours, theirs = LINK_LOCAL["bird"]
    return f"""protocol bgp test {{
  local {theirs} as {BIRD};
  neighbor {ours} % 'eth0' as {OURS};
  password "{password}"; ttl security {ttl};
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv6 {{ import all; export none; }};
}}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BgpSite]:
    made = BgpSite(tmp_path_factory.mktemp("bgp"), numbered=())
    try:
        yield made
    finally:
        made.close()


def make_edge(site: BgpSite, name: str, **transport: object) -> Edge:
    ours = settings(OURS, "10.9.1.1", remote_as=NUMBERS[name], extended_next_hop=True)
    way = Transport(LINK_LOCAL[name][1], link=name, **transport)  # type: ignore[arg-type]
    netns = site.spaces["test"]
    with netns.entered():
        index = socket.if_nametoindex(name)
    return Edge(netns, Speaker(replace(ours, transport=way)), {index: name})


async def established(edge: Edge) -> None:
    await loop_until(
        lambda: edge.speaker.state is BgpState.ESTABLISHED,
        30.0,
        lambda: f"a session: {edge.speaker.session.reason} {edge.log} {edge.streams.counters}",
    )


@pytest.mark.rfc("RFC 2385 §2.0", "RFC 4861 §4.2")
async def test_frr_without_an_address_of_ours_has_a_session_with_a_key(site: BgpSite) -> None:
    edge = make_edge(site, "frr", key=StreamKey(KEY.replace(" ", "-").encode()))
    ours, theirs = (int.from_bytes(socket.inet_pton(10, one)) for one in LINK_LOCAL["frr"])
    try:
        site.start_frr(FRR_TEXT)
        (index,) = edge.links
        edge.streams.perform(AdvertiseRouter(index, "frr", ours))
        await loop_until(lambda: edge.heard, 30.0, "an advertisement of FRR")
        assert edge.heard[0].address == theirs
        edge.start()
        await established(edge)
        (peer,) = site.vtysh("show bgp neighbors json").values()
        assert peer["bgpState"] == "Established"
        assert peer["hostForeign"] == LINK_LOCAL["frr"][0]
        site.kill("frr")
        await loop_until(lambda: edge.speaker.state < BgpState.ESTABLISHED, 30.0, "its end")
        site.start_frr(FRR_TEXT)
        await established(edge)
    finally:
        await edge.close()
        site.kill("frr")


@pytest.mark.rfc("RFC 5082 §3")
async def test_bird_has_a_session_if_key_and_ttl_are_those_of_both(site: BgpSite) -> None:
    edge = make_edge(site, "bird", key=StreamKey(KEY.encode()), ttl=FROM_LINK)
    try:
        edge.start()
        site.start_bird(bird_text("another", "on"))
        # what comes with another key never reaches either of them
        await loop_until(lambda: dropped(site, "TCPMD5Failure") > 1, 30.0, "attempts of BIRD")
        assert edge.streams.counters["accepted"] == 0
        site.kill("bird")
        site.start_bird(bird_text(KEY, "on"))
        await established(edge)
        site.kill("bird")
        await loop_until(lambda: edge.speaker.state < BgpState.ESTABLISHED, 30.0, "its end")
        site.start_bird(bird_text(KEY, "off"))
        # the first segment of a connection that BIRD opens, or the next ones of one that we open
        await loop_until(
            lambda: edge.streams.counters["refused-ttl"] or dropped(site, "TCPMinTTLDrop"),
            30.0,
            "other TTLs of BIRD",
        )
        assert edge.speaker.state < BgpState.ESTABLISHED
    finally:
        await edge.close()
        site.kill("bird")


def dropped(site: BgpSite, name: str) -> int:
    """A counter of TCP in our kernel."""
    lines = site.spaces["test"].run(["cat", "/proc/net/netstat"]).stdout.splitlines()
    names, values = (line.split() for line in lines if line.startswith("TcpExt:"))
    return int(dict(zip(names, values, strict=True))[name])
