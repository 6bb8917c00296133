"""Information of an application (RFC 6823) in LSPs of its own, which links do not delay."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import Prefix
from fared.core.information import APPLICATION
from fared.protocols.igp.events import InformationOffered, InformationUpdated
from fared.protocols.isis.origination.fragment import Item, TlvKind, keyed
from fared.protocols.isis.origination.fragments import FragmentTable
from fared.protocols.isis.pdu.geninfo import GENINFO, pieces_of
from fared.protocols.isis.pdu.tlvs import IpReach, UnknownTlv
from tests.isis.net import BOTH, ONE, TWO, Network, node

INFORMATION, IPV4 = TlvKind(GENINFO, APPLICATION), TlvKind(4)
ROOM = 300


def told(net: Network, number: int) -> list[tuple[int, int, bytes | None]]:
    """Router, key and value of what a node learned."""
    said = net.nodes[number].said(InformationUpdated)
    return [(update.node, update.key, update.value) for update in said]


def test_information_is_flooded_at_once_after_its_routers_link_has_flapped():
    """The throttle of the LSP with the link has grown to seconds by then."""
    net = Network()
    for number in (1, 2, 3):
        net.add(number, information_application=APPLICATION)
    net.join(1, 2)
    net.join(2, 3)
    net.settle()
    link, settings = net.nodes[2].links[2]
    for turn in range(40):
        net.link(2, replace(link, speed=1e6 * (turn + 1)), settings)
        net.run(0.1)
    net.input(2, InformationOffered({4: b"epoch 1"}))
    net.run(0.01)
    assert told(net, 1) == told(net, 3) == [(node(2), 4, b"epoch 1")]
    net.input(2, InformationOffered({5: b"epoch 2"}))
    net.run(0.1)
    assert told(net, 3)[1:] == [(node(2), 4, None), (node(2), 5, b"epoch 2")]


def test_information_for_one_level_stays_there():
    net = Network()
    for number, levels in ((1, ONE), (2, BOTH), (3, TWO)):
        net.add(number, information_application=APPLICATION, levels=levels)
    net.join(1, 2)
    net.join(2, 3)
    net.settle()
    net.input(2, InformationOffered({4: b"all"}, {1: {5: b"one"}, 2: {6: b"two"}}))
    net.run(1)
    assert told(net, 1) == [(node(2), 4, b"all"), (node(2), 5, b"one")]
    assert told(net, 3) == [(node(2), 4, b"all"), (node(2), 6, b"two")]
    net.input(2, InformationOffered({4: b"all"}, {2: {6: b"two"}}))
    net.run(1)
    assert told(net, 1)[2:] == [(node(2), 5, None)]
    assert len(told(net, 3)) == 2


def entries(number: int, size: int, group: int) -> list[tuple[tuple[int, ...], Item]]:
    """A value of information, or a prefix in a group."""
    if group < 0:
        pieces = pieces_of(number, bytes(4 * size))
        return [
            (keyed(INFORMATION, (number, at)), Item(INFORMATION, p, len(p))) for at, p in pieces
        ]
    reach = IpReach(Prefix(4, number << 8, 24), 10)
    return [(keyed(IPV4, (reach.prefix.network, 24)), Item(IPV4, reach, size, group))]


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(9, 60), st.integers(-1, 3), st.booleans()),
        max_size=60,
    )
)
def test_no_fragment_has_information_and_anything_else(changes):
    table, wanted = FragmentTable(ROOM), {}
    for number, size, group, withdrawn in changes:
        for key, item in entries(number, size, group):
            wanted.pop(key, None) if withdrawn else wanted.update({key: item})
            table.remove(key) if withdrawn else table.put(key, item)
        table.settle()
        places = {key: table.number_of(key) for key in wanted}
        told_in = {at for key, at in places.items() if key[0] == GENINFO}
        assert None not in places.values()
        assert not told_in & {at for key, at in places.items() if key[0] != GENINFO}
        assert 0 not in told_in
        assert not any(isinstance(tlv, UnknownTlv) for tlv in table.contents(0) or ())
