"""The table of TE sub-TLVs, which codecs, JSON and strategies follow."""

import pytest

from fared.paths.te.attributes import ISIS_TE, OSPF_TE, TeAttributes
from fared.protocols.isis.pdu.is_reach import LinkSubTlv as IsisLink
from fared.protocols.ospf.packet.te import LinkSubTlv as OspfLink


@pytest.mark.parametrize(("table", "others"), [(OSPF_TE, OspfLink), (ISIS_TE, IsisLink)])
def test_every_attribute_has_a_type_of_its_own(table, others):
    assert [row.field for row in table.rows.values()] == list(TeAttributes.__struct_fields__)
    assert not set(table.rows) & set(others)


def test_what_a_protocol_cannot_express_is_clipped():
    """RFC 5305 §3.7, RFC 7471 §4.1.3 and §4.4.3; in OSPF the TE metric has 32 bits."""
    most = TeAttributes(te_metric=1 << 24, delay=1 << 24, min_max_delay=(1, 1 << 24), loss=60.0)
    in_ospf = {5: "01000000", 27: "80ffffff", 28: "0000000100ffffff", 30: "00ffffff"}
    in_isis = {18: "ffffff", 33: "80ffffff", 34: "0000000100ffffff", 36: "00ffffff"}
    for table, expected, delay in ((OSPF_TE, in_ospf, 27), (ISIS_TE, in_isis, 33)):
        encoded = table.encode(most, (delay, 99))
        assert {kind: value.hex() for kind, value in encoded.items()} == expected


def test_json_has_what_was_sent():
    attributes = TeAttributes(max_bandwidth=float("inf"), min_max_delay=(1, 2), loss=0.0)
    assert attributes.sent() == {"max_bandwidth": "Infinity", "min_max_delay": [1, 2], "loss": 0.0}
