"""The fragment of an entry whose group changes."""

from fared.core.ids import Prefix
from fared.protocols.isis.origination.fragment import Item, TlvKind, keyed
from fared.protocols.isis.origination.fragments import FragmentTable
from fared.protocols.isis.pdu.tlvs import IpReach, IpReachability

IPV4 = TlvKind(4)
ROOM = 200
CIRCUIT, OTHER = 7, 8


def item(number: int, group: int, size: int = 9) -> tuple[tuple[int, ...], Item]:
    """A prefix in the group of a circuit, or in none."""
    reach = IpReach(Prefix(4, number << 8, 24), 10)
    return keyed(IPV4, (reach.prefix.network, 24)), Item(IPV4, reach, size, group)


def announced(table: FragmentTable) -> list[int]:
    """The prefixes in all fragments."""
    return sorted(
        reach.prefix.network >> 8
        for number in table.numbers()
        for tlv in table.contents(number) or ()
        if isinstance(tlv, IpReachability)
        for reach in tlv.prefixes
    )


def test_a_prefix_that_changes_from_one_circuit_to_another_and_goes_leaves_nothing_behind():
    """The subnet of a link is leaked while the link is down, and connected when it is up again."""
    table = FragmentTable(ROOM)
    for group in (0, CIRCUIT, OTHER, 0, CIRCUIT):
        table.put(*item(1, group))
        assert table.settle() == {0}
    table.remove(item(1, CIRCUIT)[0])
    for group in (CIRCUIT, OTHER):
        table.put(*item(2, group))
        table.settle()
        assert announced(table) == [2]


def test_a_prefix_that_joins_a_circuit_stays_with_it_afterwards():
    """An entry that joins a group moves into the fragment of the group."""
    table = FragmentTable(ROOM)
    table.put(*item(1, 0))
    table.put(*item(2, CIRCUIT))
    table.settle()
    table.put(*item(1, CIRCUIT))
    table.settle()
    for number in range(3, 30):
        table.put(*item(number, OTHER))
    table.settle()
    table.put(*item(1, CIRCUIT, size=40))
    table.put(*item(2, CIRCUIT, size=40))
    table.settle()
    assert announced(table) == list(range(1, 30))
