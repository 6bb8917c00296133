"""How routers advertise dynamic flooding (RFC 9667) over IS-IS; ``tests/igp`` has the flooding."""

import pytest

from fared.protocols.igp.dynamic_flooding import ALGORITHM, LEADER_PRIORITY, OWN, Capability
from fared.protocols.isis.pdu.router_capability import read_capability, write_capability
from fared.protocols.isis.pdu.tlvs import UnknownTlv


@pytest.mark.rfc("RFC 9667 §5.1", "RFC 7981 §2")
def test_the_router_capability_tlv_is_that_of_rfc_9667():
    tlv = write_capability(0x0A000001, OWN)
    leader = bytes((27, 2, LEADER_PRIORITY, ALGORITHM))
    assert tlv == UnknownTlv(242, bytes((10, 0, 0, 1, 0)) + leader + bytes((28, 1, ALGORITHM)))
    assert read_capability((tlv,)) == OWN
    two = UnknownTlv(242, bytes(5) + bytes((28, 2, 1, 2)))
    assert read_capability((two,)) == Capability((1, 2))
    assert read_capability((UnknownTlv(242, bytes(5) + b"\x1b\x09"), UnknownTlv(1, b""))) is None
