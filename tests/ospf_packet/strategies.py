"""Hypothesis strategies for everything that has a wire format in OSPF."""

from __future__ import annotations

from hypothesis import strategies as st

from fared.core.ids import ipv4_prefix
from fared.paths.te.attributes import OSPF_TE
from fared.protocols.ospf.packet.bodies import (
    AsExternalLsa,
    NetworkLsa,
    RouterLink,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.body import encode_body
from fared.protocols.ospf.packet.extended_prefix import ExtendedPrefixLsa, PrefixFacts
from fared.protocols.ospf.packet.grace import GraceLsa
from fared.protocols.ospf.packet.lsa import LsaHeader, LsaKey, encode_lsa
from fared.protocols.ospf.packet.opaque import TeLink, TeRouterAddress
from fared.protocols.ospf.packet.packets import (
    DatabaseDescription,
    Hello,
    LsAck,
    LsRequest,
    LsUpdate,
)
from fared.protocols.ospf.packet.router_info import AreaLeader, RouterInformation
from fared.protocols.ospf.packet.te import SIZES
from tests.packets.formats import anomalies, te_attributes

u8 = st.integers(0, 0xFF)
u16 = st.integers(0, 0xFFFF)
u24 = st.integers(0, 0xFFFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
i32 = st.integers(-0x80000000, 0x7FFFFFFF)


def tuples_of(element, most=5):
    return st.lists(element, max_size=most).map(tuple)


def triplets(known):
    kinds = u16.filter(lambda kind: kind not in known)
    return tuples_of(st.tuples(kinds, st.binary(max_size=9)), 3)


routers = st.builds(RouterLsa, u8, tuples_of(st.builds(RouterLink, u8, u32, u32, u16)))
networks = st.builds(NetworkLsa, u32, tuples_of(u32))
summaries = st.builds(SummaryLsa, u32, u24)
externals = st.builds(AsExternalLsa, u32, st.booleans(), u24, u32, u32)


@st.composite
def te_links(draw):
    attributes = draw(te_attributes(OSPF_TE))
    identifiers = draw(st.none() | st.tuples(u32, u32)) or (None, None)
    return TeLink(
        link_type=draw(st.none() | u8),
        link_id=draw(st.none() | u32),
        local_addresses=draw(tuples_of(u32)),
        remote_addresses=draw(tuples_of(u32)),
        local_identifier=identifiers[0],
        remote_identifier=identifiers[1],
        attributes=attributes,
        anomalous=draw(anomalies(OSPF_TE, attributes)),
        unknown=draw(triplets(SIZES)),
        router_address=draw(st.none() | u32),
    )


te_router_addresses = st.builds(TeRouterAddress, u32)
hostnames = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=60
)
router_information = st.builds(
    RouterInformation,
    st.none() | u32,
    st.none() | hostnames,
    st.none() | st.builds(AreaLeader, u8, u8),
    st.none() | tuples_of(u8),
    unknown=triplets((1, 7, 17, 18)),
)

prefix_facts = st.builds(
    lambda route_type, address, length, flags, subs: PrefixFacts(
        route_type, ipv4_prefix(address, length), flags, subs
    ),
    u8,
    u32,
    st.integers(0, 32),
    u8,
    triplets(()),
)
extended_prefixes = st.builds(ExtendedPrefixLsa, tuples_of(prefix_facts), triplets((1,)))
graces = st.builds(GraceLsa, u32, u8, st.none() | u32, unknown=triplets((1, 2, 3)))

BODIES = {
    "router": (1, 0, routers),
    "network": (2, 0, networks),
    "summary network": (3, 0, summaries),
    "summary ASBR": (4, 0, summaries),
    "AS-external": (5, 0, externals),
    "NSSA": (7, 0, externals),
    "TE router address": (10, 1 << 24, te_router_addresses),
    "TE link": (10, 1 << 24, te_links()),
    "router information": (11, 4 << 24, router_information),
    "extended prefix": (10, 7 << 24, extended_prefixes),
    "grace": (9, 3 << 24, graces),
}
"""By name: LS type, link state id, strategy."""


@st.composite
def lsas(draw):
    ls_type, link_state_id, bodies = draw(st.sampled_from(list(BODIES.values())))
    return encode_lsa(
        ls_age=draw(u16),
        options=draw(u8),
        ls_type=ls_type,
        link_state_id=link_state_id or draw(u32),
        advertising_router=draw(u32),
        ls_sequence_number=draw(i32),
        body=encode_body(draw(bodies)),
    )


headers = st.builds(LsaHeader, u16, u8, u8, u32, u32, i32, u16, u16)
keys = st.builds(LsaKey, u32, u32, u32)

PACKETS = {
    "hello": st.builds(Hello, u32, u16, u8, u8, u32, u32, u32, tuples_of(u32)),
    "database-description": st.builds(DatabaseDescription, u16, u8, u8, u32, tuples_of(headers)),
    "ls-request": st.builds(LsRequest, tuples_of(keys)),
    "ls-update": st.builds(LsUpdate, tuples_of(lsas(), 3)),
    "ls-ack": st.builds(LsAck, tuples_of(headers)),
}
