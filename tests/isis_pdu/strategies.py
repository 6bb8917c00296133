"""Hypothesis strategies for PDUs and TLVs in their shortest encoding."""

from hypothesis import strategies as st

from fared.core.ids import Prefix
from fared.paths.te.attributes import ISIS_TE
from fared.protocols.isis.ids import PATH_CAPACITY, LevelSet
from fared.protocols.isis.pdu.flooding_parameters import FLOODING_FIELDS
from fared.protocols.isis.pdu.is_reach import LinkSubTlv
from fared.protocols.isis.pdu.model import Csnp, LanHello, Lsp, P2pHello, Psnp
from fared.protocols.isis.pdu.tlv import FixedTlv, ListTlv, formats, known_tlvs
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    Authentication,
    BfdEnabled,
    FloodingParameters,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    LspEntries,
    LspEntry,
    MultiTopology,
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    Padding,
    PurgeOriginator,
    Topology,
    UnknownTlv,
)
from tests.packets.formats import FLOATS, anomalies, bits, te_attributes, values_of


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


NAMES = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), max_size=40)
ITEMS = {
    BfdEnabled: st.tuples(bits(12), bits(8)),
    MultiTopology: st.builds(Topology, bits(12), st.booleans(), st.booleans()),
}


def declared(cls):
    """Values of a class that declares its fields."""
    if issubclass(cls, ListTlv):
        return st.builds(cls, tuples(ITEMS.get(cls, values_of(cls.item)), 4))
    fields = [values_of(shape) for shape in formats(cls).values()]
    forms = cls.forms or (len(fields),)
    return st.one_of([st.builds(cls, *fields[:count]) for count in forms])


CLASSES = dict.fromkeys(known_tlvs().values())
STRATEGIES = {cls: declared(cls) for cls in CLASSES if issubclass(cls, (FixedTlv, ListTlv))} | {
    AreaAddresses: st.builds(AreaAddresses, tuples(st.binary(min_size=1, max_size=13), 3)),
    Padding: st.builds(Padding, bits(8)),
    LspEntries: st.builds(
        LspEntries, tuples(st.builds(LspEntry, bits(64), bits(32), bits(16), bits(16)), 4)
    ),
    Authentication: st.builds(Authentication, bits(8), st.binary(max_size=66)),
    PurgeOriginator: st.builds(PurgeOriginator, bits(48), optional(bits(48))),
    FloodingParameters: st.builds(
        FloodingParameters,
        *[
            optional(values_of(shape) if shape else st.binary(min_size=1, max_size=8))
            for _, shape in FLOODING_FIELDS.values()
        ],
        unknown=tuples(st.tuples(st.integers(7, 255), st.binary(max_size=9)), 2),
    ),
    NarrowIsReachability: st.builds(
        NarrowIsReachability, tuples(st.builds(NarrowNeighbor, bits(56), bits(6)), 4), bits(8)
    ),
    IsReachability: st.builds(IsReachability, tuples(neighbors(), 1), TOPOLOGY),
    IpReachability: reachability(4) | reachability(6),
    NarrowIpReachability: st.builds(
        NarrowIpReachability,
        tuples(st.builds(NarrowIpReach, prefixes(4), bits(6), st.booleans(), st.booleans()), 4),
        st.booleans(),
    ),
    InterfaceAddresses: st.builds(InterfaceAddresses, st.just(4), tuples(bits(32), 4))
    | st.builds(InterfaceAddresses, st.just(6), tuples(bits(128), 4)),
    Hostname: st.builds(Hostname, NAMES),
}
"""One for each class; those that declare their fields need no line here."""
assert STRATEGIES.keys() == CLASSES.keys()
UNKNOWN = st.builds(
    UnknownTlv, bits(8).filter(lambda kind: kind not in known_tlvs()), st.binary(max_size=255)
)
TLVS = st.one_of(UNKNOWN, *STRATEGIES.values())
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
