"""Every message survives encoding and decoding; many prefixes need few messages."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.ids import Prefix, ipv4_prefix, parse_dotted
from fared.protocols.bgp.packet.as_path import (
    AsSegment,
    decode_path,
    encode_path,
    join_paths,
    merge_paths,
    path_length,
    path_text,
    sequence,
)
from fared.protocols.bgp.packet.attribute_block import block_reader, write_block
from fared.protocols.bgp.packet.attributes import (
    As4Aggregator,
    AsAggregator,
    AsPath,
    ExtendedCommunities,
    LocalPref,
    Med,
    Origin,
    attributes_of,
)
from fared.protocols.bgp.packet.codec import Decoder, decode_message, encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.communities import LinkBandwidth
from fared.protocols.bgp.packet.framing import check_header
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from tests.bgp_packet.strategies import OTHER_MESSAGES, PATHS, attribute_sets, updates

INTERNAL = Coding(internal=True)
HOP = BgpNextHop(4, parse_dotted("10.9.1.1"))
ATTRIBUTES = attributes_of(
    (Origin(0), AsPath(sequence(65001)), ExtendedCommunities((LinkBandwidth(65001, 1e9).raw,)))
)


@settings(max_examples=60)
@given(OTHER_MESSAGES)
def test_every_message_but_updates(message):
    (encoded,) = encode_message(message)
    assert decode_message(encoded) == message


@settings(max_examples=25)
@given(updates(), st.sampled_from((True, False)), st.sampled_from((4096, 65535)))
def test_every_update(update, four_octet_as, limit):
    """Its messages together say the same, and to a neighbor that knows two octets, too."""
    coding = Coding(four_octet_as, internal=True, limit=limit)
    found = [decode_message(one, coding) for one in encode_message(update, coding)]
    assert not [one.findings for one in found if one.findings]
    withdrawn = [prefix for one in found for prefix in one.withdrawn]
    assert sorted(withdrawn) == sorted(update.withdrawn)
    assert tuple(routes for one in found for routes in one.routes) == update.routes
    assert all(one.attributes == update.attributes for one in found if one.routes)
    ends = [one.end_of_rib for one in found if one.end_of_rib]
    assert ends == ([update.end_of_rib] if update.end_of_rib else [])


@settings(max_examples=30)
@given(attribute_sets())
def test_attributes_that_came_before_are_the_same_object(attributes):
    read, block = block_reader(INTERNAL), write_block(attributes, INTERNAL)
    assert read(block).attributes == attributes
    if len(block) <= 1024:
        assert read(bytes(bytearray(block))).attributes is read(block).attributes


@pytest.mark.parametrize(("limit", "messages"), [(4096, 10), (65535, 1)])
def test_prefixes_with_common_attributes_fill_messages(limit, messages):
    """1,010 of /24 fit into 4,096 octets."""
    prefixes = tuple(ipv4_prefix(n << 8, 24) for n in range(10_000))
    update = Update((), (RouteGroup(HOP, prefixes),), ATTRIBUTES)
    encoded = [*encode_message(update, Coding(limit=limit))]
    assert len(encoded) == messages
    assert limit == 65535 or len(encoded[0]) == 4094
    decoder = Decoder(Coding())
    found = [decoder.decode(*split(one)) for one in encoded]
    assert sum((one.routes[0].prefixes for one in found), ()) == prefixes
    assert len({id(one.attributes) for one in found}) == 1
    withdrawn = [*encode_message(Update(prefixes), Coding(limit=limit))]
    assert len(withdrawn) == messages


def split(message):
    kind, length = check_header(message[:19], 65535)
    assert length == len(message)
    return kind, message


def test_messages_are_made_when_they_are_asked_for():
    prefixes = (ipv4_prefix(n << 8, 24) for n in range(2_000))
    update = Update((), (RouteGroup(HOP, tuple(prefixes)),), ATTRIBUTES)
    first = next(encode_message(update))
    assert len(decode_message(first).routes[0].prefixes) == 1010


def test_attributes_that_leave_no_room_for_a_prefix_are_an_error():
    many = ExtendedCommunities((bytes(8),) * 510)
    update = Update((), (RouteGroup(HOP, (ipv4_prefix(0, 24),)),), attributes_of((Origin(0), many)))
    with pytest.raises(ValueError, match="no room for a prefix"):
        list(encode_message(update))
    assert list(encode_message(update, Coding(limit=65535)))


def test_host_bits_are_cleared():
    raw = next(encode_message(Update((Prefix(4, 0x0A0002FF, 24),))))
    assert raw.hex().endswith("180a00020000")
    raw = raw[:-6] + bytes.fromhex("170a00ff0000")
    assert [*map(str, decode_message(raw).withdrawn)] == ["10.0.254.0/23"]


@settings(max_examples=20)
@given(PATHS, st.sampled_from((2, 4)))
def test_long_paths_are_split_into_segments(path, size):
    long = (AsSegment(2, tuple(range(1, 601))), *path)
    again = decode_path(encode_path(long, 4), 4)
    assert [len(one.numbers) for one in again[:3]] == [255, 255, 90]
    assert decode_path(encode_path(path, size), size) is not None


@pytest.mark.rfc("RFC 6793 §4.2.3")
def test_paths_of_two_and_four_octets_are_merged():
    big, trans = 4_200_000_000, 23456
    assert merge_paths(sequence(1, trans, 2), sequence(big, 2)) == sequence(1, big, 2)
    assert merge_paths(sequence(1), sequence(big, 2)) == sequence(1)
    mixed = (AsSegment(2, (1, trans)), AsSegment(1, (7, 8)))
    assert merge_paths(mixed, (AsSegment(1, (7, 8)),)) == mixed
    assert merge_paths(mixed, sequence(big)) == (AsSegment(2, (1, trans, big)),)
    assert path_length(mixed) == 3
    assert path_text(mixed) == "1 23456 {7,8}"
    assert join_paths((), sequence(1)) == sequence(1)


@pytest.mark.rfc("RFC 6793 §4.2.3")
def test_an_aggregator_that_knows_two_octets_only_makes_as4_path_worthless():
    narrow = Coding(four_octet_as=False)
    path = AsPath(sequence(1, 4_200_000_000))
    items = (Origin(0), path, AsAggregator(64999, 1))
    block = write_block(attributes_of((*items, As4Aggregator(4_100_000_000, 1))), narrow)
    read = block_reader(narrow)(block).attributes
    assert read.find(AsPath).path == sequence(1, 23456)
    assert read.find(AsAggregator) == AsAggregator(64999, 1)
    block = write_block(attributes_of(items), narrow)
    assert block_reader(narrow)(block).attributes.find(AsPath) == path
    block = write_block(attributes_of((Origin(0), path, AsAggregator(4_100_000_000, 1))), narrow)
    read = block_reader(narrow)(block).attributes
    assert read.find(AsPath) == path
    assert read.find(AsAggregator) == AsAggregator(4_100_000_000, 1)


def test_attributes_are_found_and_replaced():
    more = ATTRIBUTES.replaced(Med(7), Origin(2))
    assert [one.label for one in more.items] == ["origin", "as_path", "med", "extended_communities"]
    assert more.find(Origin) == Origin(2)
    assert more.find(LocalPref) is None
    assert more.link_bandwidth == 1e9
    assert attributes_of(()).link_bandwidth is None
