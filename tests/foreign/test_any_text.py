"""Any text becomes a valid configuration, or is refused as the reader promises."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fared.config import load_text
from fared.extensions.foreign.bird.parse import BirdError
from fared.extensions.foreign.bird.read import read_bird
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.lines import read_statements
from fared.extensions.foreign.frr.read import read_frr
from fared.extensions.foreign.write import write_draft

NUMBERS = st.sampled_from(["0", "1", "300", "70000", "-1", "1.5", "x", "10.0.0.1", "10.0.0.0/8"])
FRR_LINES = """
interface swp1|interface lo|interface|router ospf|router isis F|router isis|router|bfd
key chain K|key chain|route-map M permit 10|route-map|ip prefix-list P permit @|ip prefix-list P
ip prefix-list|hostname|hostname @| ip ospf area @| ip ospf cost @| ip ospf hello-interval @
 ip ospf dead-interval @| ip ospf bfd @| ip ospf authentication
 ip ospf authentication message-digest| ip ospf authentication-key @
 ip ospf message-digest-key @ md5 @| ip ospf network @| ip address @| bandwidth @| link-params
  max-bw @| ip router isis F| isis circuit-type @| isis metric @| isis hello-multiplier @
 isis password md5 @| network @ area @| area @ stub| area @ range @ cost @| redistribute @
 redistribute kernel metric @| redistribute ipv4 connected level-1 metric @
 redistribute connected route-map M| net @| is-type @| timers throttle spf @ @ @
 redistribute static route-map M| distribute-list A out @| distribute-list A out static
access-list A permit @|access-list A deny @ exact-match|access-list A|route-map M deny 5
ip prefix-list P deny @ le @|ip prefix-list P seq @ permit any|ip prefix-list P seq 5 permit
 max-metric router-lsa on-startup @| spf-delay-ietf init-delay @| spf-delay-ietf init-delay
 graceful-restart grace-period @| maximum-paths @| lsp-mtu @| key @|  key-string @
  send-lifetime @ Jan @ @ infinite|  send-lifetime @| match ip address prefix-list P| profile p
  detect-multiplier @|  receive-interval @| vrf RED|vrf|exit|end|router-id @|ip router-id
router bgp @|router bgp 65000|router bgp| neighbor @ remote-as @| neighbor G peer-group
 neighbor swp1 interface remote-as external| neighbor swp1 interface peer-group G| neighbor @
 neighbor G timers @ @| neighbor G bfd @ @ @| neighbor swp1 prefix-list P in| no neighbor G activate
 neighbor swp1 route-map M out| neighbor G maximum-prefix @ restart @| network @| timers bgp @ @
 address-family ipv6 unicast|  neighbor swp1 activate|  neighbor swp1 prefix-list P in
 redistribute isis metric @| bgp router-id @| distance bgp @ @ @| neighbor G password @
"""
BIRD_WORDS = """
protocol ospf v2 {|protocol bfd {|protocol|area @ {|interface "swp*" {|interface "a", -"b" {|}|;
};|cost @;|hello @;|dead count @;|type @;|authentication cryptographic;|password "@" {
password "@";|id @;|algorithm hmac sha256;|algorithm @;|stub yes;|stub @;|networks {|@;
@ hidden;|router id @;|ipv4 {|export all;|export where source = @;|export where net ~ [ @ ];
export where net !~ @ && net = @;|if source = RTS_STATIC || net ~ @ then reject;|net ~ [ @+, @- ];
export filter {|if net ~ @ then accept;|if source = RTS_STATIC then {|accept;|reject;
ospf_metric1 = @;|define A = @;|A;|interval @ ms;|passwords {|generate from "@";
protocol bgp {|local as @;|local @ as 65000;|neighbor @ as @;|neighbor @%eth0 external;|import all;
local as 65000; neighbor 10.9.1.2 as 65001; ipv4 {|import filter {|import limit @ action restart;
neighbor range @ as @;|interface "@";|hold time @;|keepalive time @;|ttl security on;|multihop @;
protocol static s {|route @ blackhole;|route @ via @;|protocol direct d {|export where proto = "s";
ipv6 {|merge paths on limit @;|protocol kernel {|learn;|allow local as @;|description "@";
ecmp yes limit @;|graceful restart time @;|bfd yes;|bfd {|"x";|include "none";|default cost @;
"""


def choices(lines: str, most: int, between: str) -> st.SearchStrategy[str]:
    """Texts of some lines, with numbers and other values in place of @."""
    written = [line for row in lines.strip("\n").splitlines() for line in row.split("|")]
    filled = st.tuples(st.sampled_from(written), st.lists(NUMBERS, min_size=3, max_size=3)).map(
        lambda found: fill(*found)
    )
    return st.lists(filled, max_size=most).map(between.join)


def fill(line: str, values: list[str]) -> str:
    for value in values:
        line = line.replace("@", value, 1)
    return line


def valid(draft: Draft) -> None:
    load_text(draft.settle(lambda: write_draft(draft, "x", "X")))


@settings(max_examples=30)
@given(choices(FRR_LINES, 30, "\n"))
def test_any_lines_of_frr(text: str):
    valid(read_frr(text, {}))


@settings(max_examples=30)
@given(choices(BIRD_WORDS, 30, "\n"))
def test_any_statements_of_bird(text: str):
    with contextlib.suppress(BirdError):
        valid(read_bird(text, Path("/nonexistent/bird.conf"), lambda _: ""))


@settings(max_examples=30)
@given(st.text(max_size=200))
def test_any_characters(text: str):
    read_statements(text)
    valid(read_frr(text, {}))
    with contextlib.suppress(BirdError):
        valid(read_bird(text, Path("/nonexistent/bird.conf"), lambda _: ""))
