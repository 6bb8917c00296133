"""Hypothesis strategies for BGP messages."""

from __future__ import annotations

from hypothesis import strategies as st

from fared.core.ids import Prefix
from fared.protocols.bgp.packet.as_path import AsSegment
from fared.protocols.bgp.packet.attributes import (
    KNOWN,
    OPTIONAL,
    PARTIAL,
    TRANSITIVE,
    As4Aggregator,
    As4Path,
    AsAggregator,
    AsPath,
    ExtendedCommunities,
    LargeCommunities,
    Origin,
    SharedLimits,
    UnknownAttribute,
    attributes_of,
)
from fared.protocols.bgp.packet.capabilities import (
    AddressFamily,
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    GracefulRestartCapability,
    HostnameCapability,
    KeptFamily,
    Multiprotocol,
    NextHopEncoding,
    OwnMinimum,
    RouteRefreshCapability,
    UnknownCapability,
)
from fared.protocols.bgp.packet.communities import LargeCommunity, SharedLimit
from fared.protocols.bgp.packet.messages import (
    Keepalive,
    OpenMessage,
    RouteGroup,
    RouteRefresh,
    Update,
)
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.packet.notification import Notification
from tests.packets.formats import bits, values_of


def tuples(strategy, most=4, least=0):
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


def prefixes(family):
    size = 32 if family == 4 else 128
    return st.builds(
        lambda address, length: Prefix(family, address >> size - length << size - length, length),
        bits(size),
        st.integers(0, size),
    )


NUMBERS = st.integers(1, 0xFFFFFFFF)
FLOATS = st.floats(width=32, allow_nan=False)
SEGMENTS = st.builds(AsSegment, st.sampled_from((1, 2)), tuples(NUMBERS, 5, 1))
PATHS = tuples(SEGMENTS, 3)
ITEMS = {
    ExtendedCommunities: st.binary(min_size=8, max_size=8),
    LargeCommunities: st.builds(LargeCommunity, bits(32), bits(32), bits(32)),
    SharedLimits: st.builds(SharedLimit, bits(32), bits(32), FLOATS, FLOATS),
}


def declared(cls):
    """Values of a class that declares its format."""
    if cls.shape is None:
        return st.just(cls())
    value = ITEMS[cls] if cls in ITEMS else values_of(cls.shape)
    return st.builds(cls, tuples(value, 4, 1) if cls.many else value)


OTHERS = {
    Origin: st.builds(Origin, bits(8).filter(lambda n: n < 3)),
    AsPath: st.builds(AsPath, PATHS),
    As4Path: st.builds(As4Path, PATHS),
    AsAggregator: st.builds(AsAggregator, NUMBERS, bits(32)),
    As4Aggregator: st.builds(As4Aggregator, NUMBERS, bits(32)),
}
ATTRIBUTES = {cls: OTHERS[cls] if cls in OTHERS else declared(cls) for cls in KNOWN.values()}
"""One for each class; those that declare their format need no line here."""
TRANSITIVE_ONES = OPTIONAL | TRANSITIVE
UNKNOWN = st.builds(
    UnknownAttribute,
    bits(8).filter(lambda code: code not in (*KNOWN, 3, 14, 15)),
    st.sampled_from((OPTIONAL, TRANSITIVE_ONES | PARTIAL)),
    st.binary(max_size=300),
)


@st.composite
def attribute_sets(draw, needed=(Origin, AsPath), without=(As4Path, As4Aggregator)):
    """Attributes that routes can have on an internal session: those that are needed, and others."""
    some = [cls for cls in ATTRIBUTES if cls not in (*needed, *without) and draw(st.booleans())]
    items = [draw(ATTRIBUTES[cls]) for cls in (*needed, *some)]
    items += draw(st.lists(UNKNOWN, max_size=2, unique_by=lambda one: one.type))
    codes = [one.code for one in items if one.flags == TRANSITIVE_ONES and one.code]
    return attributes_of(items, [code for code in codes if draw(st.booleans())])


NEXT_HOPS6 = st.builds(BgpNextHop, st.just(6), bits(128), st.just(0) | st.integers(1, 2**128 - 1))
NEXT_HOPS4 = st.builds(BgpNextHop, st.just(4), bits(32)) | NEXT_HOPS6
ROUTES4 = st.builds(RouteGroup, NEXT_HOPS4, tuples(prefixes(4), 8, 1))
ROUTES6 = st.builds(RouteGroup, NEXT_HOPS6, tuples(prefixes(6), 8, 1))
CAPABILITIES = st.one_of(
    st.builds(Multiprotocol, st.builds(AddressFamily, bits(16), bits(8))),
    st.just(RouteRefreshCapability()),
    st.builds(
        ExtendedNextHop, tuples(st.builds(NextHopEncoding, bits(16), bits(16), bits(16)), 3, 1)
    ),
    st.just(ExtendedMessage()),
    st.just(OwnMinimum()),
    st.builds(
        GracefulRestartCapability,
        bits(12),
        tuples(st.builds(KeptFamily, bits(16), bits(8), st.booleans()), 3),
        st.sampled_from((0, 0x8000, 0x4000, 0xC000)),
    ),
    st.builds(FourOctetAs, bits(32)),
    st.builds(HostnameCapability, st.text(max_size=60), st.text(max_size=3)),
    st.builds(UnknownCapability, st.integers(74, 255), st.binary(max_size=120)),
)
OPENS = st.builds(OpenMessage, bits(16), bits(16), bits(32), tuples(CAPABILITIES, 9))
NOTIFICATIONS = st.builds(Notification, bits(8), bits(8), st.binary(max_size=300))
REFRESHES = st.builds(RouteRefresh, bits(16), bits(8), bits(8))
OTHER_MESSAGES = OPENS | NOTIFICATIONS | REFRESHES | st.just(Keepalive())


@st.composite
def updates(draw):
    """Updates as an internal session of four octets carries them."""
    withdrawn = draw(tuples(prefixes(4) | prefixes(6), 8))
    routes = tuple(draw(strategy) for strategy in (ROUTES4, ROUTES6) if draw(st.booleans()))
    if not routes:
        return Update(withdrawn, end_of_rib=draw(st.sampled_from((None, 4, 6))))
    local = next(cls for cls in ATTRIBUTES if cls.label == "local_pref")
    return Update(withdrawn, routes, draw(attribute_sets((Origin, AsPath, local))))
