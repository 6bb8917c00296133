"""Hypothesis strategies for PDUs and TLVs in their shortest encoding."""

from hypothesis import strategies as st

from fared.core.ids import Prefix
from fared.paths.te.attributes import ISIS_TE
from fared.protocols.isis.ids import PATH_CAPACITY, LevelSet
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.is_reach import LinkSubTlv
from fared.protocols.isis.pdu.model import Csnp, LanHello, Lsp, P2pHello, Psnp
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    Authentication,
    BfdEnabled,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsNeighbors,
    IsReachability,
    LspBufferSize,
    LspEntries,
    LspEntry,
    MultiTopology,
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    Padding,
    ProtocolsSupported,
    PurgeOriginator,
    Restart,
    TeRouterId,
    ThreeWay,
    TlvType,
    Topology,
    UnknownTlv,
)
from tests.formats import FLOATS, anomalies, bits, te_attributes


def optional(strategy):
    return st.none() | strategy


def tuples(strategy, most):
    return st.lists(strategy, max_size=most).map(tuple)


def prefixes(family):
    size = 32 if family == 4 else 128
    return st.builds(
        lambda address, length: Prefix(family, address >> size - length << size - length, length),
        bits(size),
        st.integers(0, size),
    )


TOPOLOGY = optional(bits(12))
KNOWN_SUB_TLVS = {*map(int, LinkSubTlv), *ISIS_TE.rows}


@st.composite
def neighbors(draw):
    attributes = draw(te_attributes(ISIS_TE))
    identified = draw(st.booleans())
    unknown = st.tuples(bits(8).filter(lambda k: k not in KNOWN_SUB_TLVS), st.binary(max_size=8))
    return IsNeighbor(
        draw(bits(56)),
        draw(bits(24)),
        attributes,
        draw(tuples(bits(32), 2)),
        draw(tuples(bits(32), 1)),
        draw(tuples(bits(128), 1)),
        draw(tuples(bits(128), 1)),
        draw(bits(32)) if identified else None,
        draw(bits(32)) if identified else None,
        draw(tuples(unknown, 2)),
        draw(anomalies(ISIS_TE, attributes)),
    )


@st.composite
def reaches(draw, family):
    known = (1, 4, PATH_CAPACITY)
    unknown = st.tuples(bits(8).filter(lambda k: k not in known), st.binary(max_size=6))
    return IpReach(
        draw(prefixes(family)),
        draw(bits(32)),
        draw(st.booleans()),
        draw(st.booleans()) if family == 6 else False,
        draw(tuples(bits(32), 3)),
        draw(optional(bits(8))),
        draw(optional(FLOATS)),
        draw(tuples(unknown, 2)),
    )


def reachability(family):
    return st.builds(IpReachability, st.just(family), tuples(reaches(family), 3), TOPOLOGY)


THREE_WAYS = (
    st.builds(ThreeWay, bits(8))
    | st.builds(ThreeWay, bits(8), bits(32))
    | st.builds(ThreeWay, bits(8), bits(32), bits(48), bits(32))
)
RESTARTS = (
    st.builds(Restart, bits(8))
    | st.builds(Restart, bits(8), bits(16))
    | st.builds(Restart, bits(8), bits(16), bits(48))
)
NAMES = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), max_size=40)
TLVS = (
    st.builds(
        UnknownTlv,
        bits(8).filter(lambda kind: kind not in {int(k) for k in TlvType}),
        st.binary(max_size=255),
    )
    | st.builds(AreaAddresses, tuples(st.binary(min_size=1, max_size=13), 3))
    | st.builds(IsNeighbors, tuples(bits(48), 4))
    | st.builds(Padding, bits(8))
    | st.builds(LspEntries, tuples(st.builds(LspEntry, bits(64), bits(32), bits(16), bits(16)), 4))
    | st.builds(Authentication, bits(8), st.binary(max_size=66))
    | st.builds(PurgeOriginator, bits(48), optional(bits(48)))
    | st.builds(LspBufferSize, bits(16))
    | st.builds(
        FloodingParameters,
        optional(bits(32)),
        optional(bits(32)),
        optional(bits(16)),
        optional(st.binary(min_size=1, max_size=8)),
        optional(bits(16)),
        optional(bits(16)),
        tuples(st.tuples(st.integers(7, 255), st.binary(max_size=9)), 2),
    )
    | st.builds(
        NarrowIsReachability, tuples(st.builds(NarrowNeighbor, bits(56), bits(6)), 4), bits(8)
    )
    | st.builds(IsReachability, tuples(neighbors(), 1), TOPOLOGY)
    | reachability(4)
    | reachability(6)
    | st.builds(
        NarrowIpReachability,
        tuples(st.builds(NarrowIpReach, prefixes(4), bits(6), st.booleans(), st.booleans()), 4),
        st.booleans(),
    )
    | st.builds(ProtocolsSupported, tuples(bits(8), 4))
    | st.builds(InterfaceAddresses, st.just(4), tuples(bits(32), 4))
    | st.builds(InterfaceAddresses, st.just(6), tuples(bits(128), 4))
    | st.builds(TeRouterId, bits(32))
    | st.builds(Hostname, NAMES)
    | st.builds(
        MultiTopology, tuples(st.builds(Topology, bits(12), st.booleans(), st.booleans()), 4)
    )
    | st.builds(BfdEnabled, tuples(st.tuples(bits(12), bits(8)), 4))
    | THREE_WAYS
    | RESTARTS
)
TLV_LISTS = tuples(TLVS, 4)
LEVEL = st.sampled_from((1, 2))
CIRCUIT_TYPE = st.sampled_from((LevelSet.ONE, LevelSet.TWO, LevelSet.BOTH))
LSPS = st.builds(
    Lsp,
    level=LEVEL,
    lsp_id=bits(64),
    sequence_number=bits(32),
    remaining_lifetime=bits(16),
    partition_repair=st.booleans(),
    attached=st.booleans(),
    overload=st.booleans(),
    is_type=bits(2),
    tlvs=TLV_LISTS,
)
PDUS = (
    st.builds(LanHello, LEVEL, CIRCUIT_TYPE, bits(48), bits(16), bits(7), bits(56), TLV_LISTS)
    | st.builds(P2pHello, CIRCUIT_TYPE, bits(48), bits(16), bits(8), TLV_LISTS)
    | LSPS
    | st.builds(Csnp, LEVEL, bits(56), bits(64), bits(64), TLV_LISTS)
    | st.builds(Psnp, LEVEL, bits(56), TLV_LISTS)
)
