"""LSPs that only announce changed bandwidths are flooded a moment later, all others at once."""

import pytest
from msgspec.structs import replace

from fared.paths.te.attributes import TeAttributes
from fared.protocols.isis.ids import Level
from fared.protocols.isis.lsdb import StoredLsp, renewed_tlvs
from fared.protocols.isis.pdu.codec import encode_pdu
from fared.protocols.isis.pdu.model import Lsp, PduType
from fared.protocols.isis.pdu.tlvs import Hostname, IsNeighbor, IsReachability
from fared.protocols.isis.update.bandwidth import only_bandwidth
from tests.isis.floodnet import Network, name

LINK = IsNeighbor(
    7 << 8, 10, TeAttributes(max_bandwidth=1e9, available_bandwidth=5e8), local_addresses=(1,)
)
OTHER = replace(LINK, neighbor=8 << 8)
BUSY = replace(LINK, attributes=replace(LINK.attributes, available_bandwidth=1e8))


def lsp(*links: IsNeighbor, sequence=1, text="r9", **header) -> Lsp:
    tlvs = (Hostname(text), IsReachability(links))
    return Lsp(2, name(9), sequence, 1200, tlvs=tlvs, **header)


def stored(pdu: Lsp, before: StoredLsp | None = None, *, purged: bool = False) -> StoredLsp:
    pdu = replace(pdu, remaining_lifetime=0 if purged else 1200)
    renewed = renewed_tlvs(before, pdu)
    number = pdu.sequence_number
    return StoredLsp(pdu.lsp_id, number, 1, 9e9, b"", pdu, purged=purged, renewed=renewed)


BEFORE = stored(lsp(LINK, OTHER))


def test_another_available_bandwidth_is_only_that():
    assert only_bandwidth(BEFORE, stored(lsp(BUSY, OTHER), BEFORE))
    assert only_bandwidth(BEFORE, stored(lsp(LINK, OTHER, sequence=2), BEFORE))


@pytest.mark.parametrize(
    "after",
    [
        lsp(BUSY),
        lsp(OTHER, BUSY),
        lsp(replace(BUSY, metric=11), OTHER),
        lsp(replace(BUSY, local_addresses=(2,)), OTHER),
        lsp(replace(LINK, attributes=replace(LINK.attributes, max_bandwidth=2e9)), OTHER),
        lsp(BUSY, OTHER, text="other"),
        lsp(BUSY, OTHER, overload=True),
    ],
)
def test_any_other_difference_is_more(after):
    assert not only_bandwidth(BEFORE, stored(after, BEFORE))


def test_neither_a_first_instance_nor_a_purge_nor_what_follows_it():
    assert not only_bandwidth(None, BEFORE)
    purge = stored(lsp(LINK, OTHER), BEFORE, purged=True)
    assert not only_bandwidth(BEFORE, purge)
    assert not only_bandwidth(purge, stored(lsp(LINK, OTHER), purge))


@pytest.fixture
def star() -> Network:
    """Router 1 with four neighbors, which all know the LSP of router 9."""
    net = Network()
    net.add(1, 2, 3, 4, 5)
    for far in (2, 3, 4, 5):
        net.join(1, far)
    net.inject(1, 1, encode_pdu(lsp(LINK, OTHER)))
    net.run(1)
    net.sent.clear()
    return net


def test_a_changed_bandwidth_reaches_all_within_a_tenth_of_a_second(star):
    star.inject(1, 1, encode_pdu(lsp(BUSY, OTHER, sequence=2)))
    star.run(0.02)
    assert not star.pdus(PduType.L2_LSP)
    star.run(0.085)
    assert len(star.pdus(PduType.L2_LSP, by=1)) == 3
    star.run(20)
    assert star.agree()
    assert all(router.flags() == 0 for router in star.routers.values())


def test_circuits_without_flags_are_not_looked_at(star, monkeypatch):
    star.inject(1, 1, encode_pdu(lsp(BUSY, OTHER, sequence=2)))
    star.run(0.02)
    transmitter = star[1].lsp_transmitter
    looks, active = [], transmitter.active
    monkeypatch.setattr(transmitter, "active", lambda level: looks.append(level) or active(level))
    star.inject(1, 1, encode_pdu(lsp(LINK, OTHER, sequence=3)))
    star.run(0.02)
    assert star[1].instance.databases[Level.TWO].get(name(9)).sequence_number == 3
    assert not looks
    star.run(0.2)
    assert len(star.pdus(PduType.L2_LSP, by=1)) == 3


def test_circuits_with_flags_of_their_own_are_looked_at(star):
    transmitter = star[1].lsp_transmitter
    shared, queues = transmitter.shared[Level.TWO], transmitter.active(Level.TWO)
    everyone = sum(queue.bit for queue in queues[1:])
    star.inject(1, 1, encode_pdu(lsp(BUSY, OTHER, sequence=2)))
    star.run(0.01)
    assert shared.idle == everyone
    star.run(0.095)
    assert all(queue.unacknowledged for queue in queues[1:])
    assert shared.idle == 0
    star.inject(1, 1, encode_pdu(lsp(LINK, OTHER, sequence=3)))
    star.run(0.01)
    assert not any(queue.unacknowledged for queue in queues)
    assert shared.idle == everyone
    star.run(20)
    assert star.agree()
    assert all(router.flags() == 0 for router in star.routers.values())


def test_neighbors_that_have_it_meanwhile_are_sent_no_copy(star):
    for ifindex in (1, 2, 3, 4):
        star.inject(1, ifindex, encode_pdu(lsp(BUSY, OTHER, sequence=2)))
    star.run(0.5)
    assert not star.pdus(PduType.L2_LSP, by=1)


def test_a_lost_link_is_flooded_at_once(star):
    star.inject(1, 1, encode_pdu(lsp(BUSY, sequence=2)))
    star.run(0.002)
    assert len(star.pdus(PduType.L2_LSP, by=1)) == 3
