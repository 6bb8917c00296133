"""What each error leads to: a session reset, withdrawn routes, or an attribute less (RFC 7606)."""

import pytest

from fared.protocols.bgp.packet.attributes import (
    KNOWN,
    Action,
    Origin,
    SharedLimits,
    UnknownAttribute,
)
from fared.protocols.bgp.packet.codec import decode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.notification import MessageError

ORIGIN, AS_PATH, NEXT_HOP = "40010100", "40020602010000fde9", "4003040a090101"
NLRI = "180a0002"
GOOD = ORIGIN + AS_PATH + NEXT_HOP
INTERNAL = Coding(internal=True)
pytestmark = [pytest.mark.rfc("RFC 7606 §7")]


def update(attributes="", nlri="", withdrawn=""):
    parts = []
    for text in (withdrawn, attributes):
        block = bytes.fromhex(text)
        parts.append(len(block).to_bytes(2, "big") + block)
    body = b"".join(parts) + bytes.fromhex(nlri)
    return b"\xff" * 16 + (19 + len(body)).to_bytes(2, "big") + b"\2" + body


def read(attributes="", nlri=NLRI, coding=None, withdrawn=""):
    return decode_message(update(attributes, nlri, withdrawn), coding)


def reset(*arguments, **options):
    with pytest.raises(MessageError) as caught:
        read(*arguments, **options)
    return caught.value.notification.kind, caught.value.what


WITHDRAWN = {
    "origin of two bytes": (ORIGIN.replace("0100", "020000") + AS_PATH + NEXT_HOP, "origin of 2"),
    "origin 3": ("40010103" + AS_PATH + NEXT_HOP, "origin 3"),
    "no origin": (AS_PATH + NEXT_HOP, "origin is missing"),
    "no path": (ORIGIN + NEXT_HOP, "as_path is missing"),
    "no next hop": (ORIGIN + AS_PATH, "next_hop is missing"),
    "next hop of 3 bytes": (ORIGIN + AS_PATH + "4003030a0901", "next_hop is malformed"),
    "path that exceeds": (ORIGIN + "40020602020000fde9" + NEXT_HOP, "of 2 numbers"),
    "path of no numbers": (ORIGIN + "4002020200" + NEXT_HOP, "of 0 numbers"),
    "path of confederations": (ORIGIN + "40020603010000fde9" + NEXT_HOP, "of type 3"),
    "path with AS 0": (ORIGIN + "400206020100000000" + NEXT_HOP, "AS 0"),
    "half a segment": (ORIGIN + "40020102" + NEXT_HOP, "without a length"),
    "med of 3 bytes": (GOOD + "800403000000", "med of 3"),
    "communities of 3 bytes": (GOOD + "c00803000000", "communities: 3 bytes"),
    "no communities": (GOOD + "c00800", "communities: 0 bytes"),
    "extended communities of 9 bytes": (GOOD + "c01009" + "00" * 9, "9 bytes, 8 each"),
    "large communities of 8 bytes": (GOOD + "c02008" + "00" * 8, "8 bytes, 12 each"),
    "optional origin": ("c0010100" + AS_PATH + NEXT_HOP, "origin has flags 0xc0"),
    "attribute that exceeds": (GOOD + "c010ff", "attributes exceed their length"),
    "half an attribute": (GOOD + "c0", "attributes exceed their length"),
}


@pytest.mark.rfc("RFC 7606 §3 (c)", "RFC 7606 §3 (d)", "RFC 7606 §4", "RFC 7607 §2")
@pytest.mark.parametrize("name", WITHDRAWN)
def test_routes_with_a_malformed_attribute_are_withdrawn(name):
    attributes, what = WITHDRAWN[name]
    found = read(attributes)
    assert [*map(str, found.withdrawn)] == ["10.0.2.0/24"]
    assert not found.routes
    assert any(what in str(one) for one in found.findings)
    assert any(one.action is Action.WITHDRAW for one in found.findings)


@pytest.mark.rfc("RFC 7606 §3 (c)")
def test_prefixes_in_an_attribute_with_other_flags_are_withdrawn():
    reach = "0e1e" + "000201" + "10" + "fd" + "00" * 14 + "01" + "00" + "40fd00000000000002"
    assert len(read(ORIGIN + AS_PATH + "80" + reach, "").routes) == 1
    found = read(ORIGIN + AS_PATH + "c0" + reach, "")
    assert [*map(str, found.withdrawn)] == ["fd00:0:0:2::/64"]
    assert not found.routes
    assert "mp_reach_nlri has flags 0xc0: treated as withdrawn" in map(str, found.findings)


DISCARDED = {
    "atomic aggregate with contents": ("40060100", "atomic_aggregate of 1"),
    "aggregator of six bytes": ("c00706000000000000", "aggregator of 6"),
    "local preference of an external neighbor": ("40050400000064", "external"),
    "originator of an external neighbor": ("80090400000064", "external"),
    "clusters of an external neighbor": ("800a0400000064", "external"),
    "a second origin": ("40010101", "attribute 1 comes twice"),
}


@pytest.mark.rfc("RFC 7606 §3 (g)")
@pytest.mark.parametrize("name", DISCARDED)
def test_some_attributes_are_discarded_and_the_route_stays(name):
    attribute, what = DISCARDED[name]
    found = read(GOOD + attribute)
    assert found.routes
    assert [one.label for one in found.attributes.items] == ["origin", "as_path"]
    assert found.attributes.find(Origin) == Origin(0)
    (finding,) = found.findings
    assert what in str(finding)
    assert str(finding).endswith("attribute discarded")


def test_each_attribute_declares_what_is_done_about_it():
    """The answers of RFC 7606 §7 and of later RFCs."""
    discarded = {cls.label for cls in KNOWN.values() if cls.malformed is Action.DISCARD}
    assert discarded == {
        "atomic_aggregate",
        "aggregator",
        "as4_path",
        "as4_aggregator",
        "shared_limits",
    }
    internal = {cls.label for cls in KNOWN.values() if cls.internal_only}
    assert internal == {"local_pref", "originator_id", "cluster_list"}


def test_an_internal_neighbor_sends_local_preference():
    assert not read(GOOD, coding=INTERNAL).routes
    assert read(GOOD + "40050400000064", coding=INTERNAL).routes
    assert not read(GOOD + "400503000064", coding=INTERNAL).routes


@pytest.mark.rfc("RFC 4271 §6.3")
def test_the_first_as_of_a_path_is_that_of_the_neighbor():
    assert read(GOOD, coding=Coding(first_as=65001)).routes
    found = read(GOOD, coding=Coding(first_as=65002))
    assert "as_path begins with 65001, not 65002: treated as withdrawn" in map(str, found.findings)


RESETS = {
    "prefix of 33 bits": ((GOOD, "21" + "00" * 5), (3, 10)),
    "prefix without its bytes": ((GOOD, "180a00"), (3, 10)),
    "withdrawn prefix without its bytes": (("", "", None, "180a"), (3, 10)),
    "well-known attribute that nobody knows": ((GOOD + "406300",), (3, 2)),
    "two lists of prefixes": ((GOOD + "800f03000201" * 2,), (3, 1)),
    "list without a family": ((GOOD + "800f020002",), (3, 1)),
    "IPv6 next hop of four bytes": ((GOOD + "800e09000201" + "04" + "0a090101" + "00",), (3, 9)),
    "next hop that exceeds": ((GOOD + "800e05000201" + "1000",), (3, 9)),
    "IPv6 prefix of 129 bits": ((GOOD + "800f04000201" + "81",), (3, 10)),
    "error without prefixes": (("40010103" + AS_PATH, ""), (3, 1)),
}


@pytest.mark.rfc("RFC 7606 §5.2", "RFC 7606 §5.3", "RFC 7606 §7.11", "RFC 4271 §6.3")
@pytest.mark.parametrize("name", RESETS)
def test_the_session_is_reset_if_prefixes_cannot_be_found(name):
    arguments, kind = RESETS[name]
    assert reset(*arguments)[0] == kind


def test_lengths_that_exceed_the_message():
    for body in ("ffff0000", "0000ffff", "0001", "000000"):
        data = bytes.fromhex(body)
        raw = b"\xff" * 16 + (19 + len(data)).to_bytes(2, "big") + b"\2" + data
        with pytest.raises(MessageError):
            decode_message(raw)


def test_attributes_without_prefixes_and_without_errors_are_no_error():
    """RFC 7606 §5.2: nothing is announced, and nothing is wrong."""
    found = read(GOOD, "")
    assert (found.routes, found.findings, found.end_of_rib) == ((), (), None)


@pytest.mark.rfc("RFC 4760 §4")
def test_families_that_are_not_agreed_are_ignored():
    found = read("800f04000101" + "00", "", Coding(families=(6,)))
    assert (found.withdrawn, found.end_of_rib) == ((), None)
    assert "ipv4 unicast, which is not agreed" in str(found.findings[0])
    found = read("800f03000204", "")
    assert "afi 2 safi 4" in str(found.findings[0])


@pytest.mark.rfc("RFC 4271 §5")
def test_unknown_optional_attributes_are_kept_and_transitive_ones_marked_partial():
    found = read(GOOD + "c0630177" + "80640178").attributes
    assert found.items[2:] == (
        UnknownAttribute(0x63, 0xE0, b"\x77"),
        UnknownAttribute(0x64, 0x80, b"\x78"),
    )
    assert [one.transitive for one in found.items[2:]] == [True, False]
    assert found.document()["unknown"][0] == {"code": 0x63, "flags": 0xE0, "hex": "77"}


@pytest.mark.rfc("RFC 8950 §3", "RFC 2545 §3")
def test_next_hops_of_16_and_32_octets():
    address = "20010db8" + "00" * 11 + "01"
    local = "fe80" + "00" * 13 + "01"
    for hop, text in ((address, "2001:db8::1"), (address + local, "2001:db8::1 fe80::1")):
        size = len(hop) // 2
        value = "000101" + f"{size:02x}" + hop + "00" + NLRI
        found = read("800e" + f"{len(value) // 2:02x}" + value + ORIGIN + AS_PATH, "")
        assert [str(one.next_hop) for one in found.routes] == [text]
        assert [*map(str, found.routes[0].prefixes)] == ["10.0.2.0/24"]


@pytest.mark.parametrize("raw", ["c0ff0446415245", "80ff0401020304", "80ff00", "c0ff0101"])
def test_what_others_send_with_the_code_for_development_is_not_ours(raw):
    found = read(GOOD + raw)
    assert found.routes
    assert not found.findings
    assert found.attributes.shared_limits == ()
    assert isinstance(found.attributes.items[-1], UnknownAttribute)


def test_shared_limits_of_another_length_are_discarded():
    found = read(GOOD + "80ff0546415245ff")
    assert found.routes
    assert found.attributes.find(SharedLimits) is None
